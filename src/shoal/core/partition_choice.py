"""The compiled loops that choose where regions are cut; a region is contiguous rows.

Each kernel works on a stretch of regions, so that threads can share a round. Loaded only when something is
partitioned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.partition_cuts import WIDTH, Cut, best_cut
from shoal.core.partition_tables import FINAL, PlaceArray, Tables, level_of, longest, varies, width
from shoal.core.partition_tally import Space, extent, space_for, tally


@compiled
def propose(
    start: int,  # the regions to look at
    stop: int,
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,): rows
    records: IntArray,  # (regions,)
    refused: NDArray[np.int64],  # (regions, columns): the last cut refused, or -1; (0, columns): none can be
    tables: Tables,
    costs: FloatArray,  # c log c of small counts
    least: int,
    choose: int,
    relaxed: bool,
    columns: IntArray,  # (regions,), written: the column to cut
    ats: IntArray,  # (regions,), written: where
    parts: IntArray,  # (regions,), written: into how many
    children: PlaceArray,  # (rows,), written: in which of them a row goes
    splits: IntArray,  # (regions, 2), written: the row that goes to both sides or -1, its records on the left
) -> None:
    """Choose each region's column and cut."""
    space = space_for(longest(begins, start, stop), places.shape[0], tables)
    for region in range(start, stop):
        columns[region] = -1
        parts[region] = FINAL
        splits[region, 0] = -1
        if records[region] < 2 * least:
            continue
        begin = begins[region]
        end = begins[region + 1]
        for column in range(places.shape[0]):
            low, high = extent(places[column, begin:end])
            space.lows[column] = low
            space.highs[column] = high
            space.tiers[column] = -1.0
            space.refused[column] = refused[region, column] if refused.shape[0] > 0 else -1
            if space.refused[column] >= 0 and tables.heights[column] > 0:
                continue  # a hierarchy has one cut
            if varies(tables, column, low, high):
                space.tiers[column] = width(tables, column, low, high) if choose == WIDTH else 0.0
        column, cut = _best(
            places, sizes, begin, end, records[region], tables, costs, least, choose, relaxed, space
        )
        if column < 0:
            continue
        columns[region] = column
        ats[region] = cut.at
        parts[region] = cut.parts
        _assign(tables, column, cut, places[column, begin:end], sizes[begin:end], space, children[begin:end])
        if relaxed and tables.heights[column] == 0:
            _share(places[column], sizes, begin, end, cut, children, splits[region])


@compiled
def _best(
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begin: int,  # the region's rows
    end: int,
    total: int,  # and records
    tables: Tables,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
    space: Space,
) -> tuple[int, Cut]:
    """Return the column to cut, or -1, and its cut."""
    best = Cut(0, 0.0, 0, 0)
    chosen = -1
    fewest = 0
    while chosen < 0:
        tier = -1.0
        for column in range(places.shape[0]):
            tier = max(tier, space.tiers[column])
        if tier < 0:
            break
        for column in range(places.shape[0]):
            if space.tiers[column] != tier:
                continue
            space.tiers[column] = -1.0
            distinct = tally(
                places[column, begin:end], sizes[begin:end], space.lows[column], space.highs[column], space
            )
            cut = best_cut(tables, column, space, distinct, total, costs, least, choose, relaxed)
            if cut.parts == 0:
                continue
            if chosen < 0 or cut.score > best.score or (cut.score == best.score and distinct < fewest):
                best = cut
                chosen = column
                fewest = distinct
    return chosen, best


@compiled
def _assign(
    tables: Tables,
    column: int,
    cut: Cut,
    places: PlaceArray,
    sizes: IntArray,
    space: Space,
    children: PlaceArray,  # written
) -> None:
    """Tell each row of a region the child it goes to."""
    if tables.heights[column] == 0:
        for row in range(places.shape[0]):
            children[row] = places[row] > cut.at
        return
    distinct = tally(places, sizes, space.lows[column], space.highs[column], space)
    groups = level_of(tables, column, cut.at)
    child = 0
    for at in range(distinct):
        if at > 0 and groups[space.values[at]] != groups[space.values[at - 1]]:
            child += 1
        space.lookup[space.values[at]] = child
    for row in range(places.shape[0]):
        children[row] = space.lookup[places[row]]


@compiled
def _share(
    places: PlaceArray,
    sizes: IntArray,
    begin: int,
    end: int,
    cut: Cut,
    children: PlaceArray,
    split: IntArray,
) -> None:
    """Send as many records of the median value to the left as are needed, the first rows first."""
    need = cut.need
    for row in range(begin, end):
        if places[row] != cut.at:
            continue
        if need == 0:
            children[row] = 1
        elif sizes[row] <= need:
            need -= sizes[row]
        else:
            split[0] = row
            split[1] = need
            need = 0
