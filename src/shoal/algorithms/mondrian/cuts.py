"""Compiled loops that choose the cuts of regions; a region is a range of consecutive rows.

Each kernel processes a range of regions, so several threads can work on the same round. The module is
imported only when a table is partitioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.mondrian.tables import (
    FINAL,
    RankArray,
    Tables,
    WorkingSpace,
    common,
    extent,
    level_of,
    longest,
    space_for,
    span,
    tally,
    varies,
    width,
)
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

WIDTH, ENTROPY, LOSS = 0, 1, 2


class RegionCut(NamedTuple):
    """A cut of one column: its score and position."""

    parts: int  # the number of parts; 0 if no cut is allowed
    score: float  # greater is better
    at: int  # the last rank on the left; for a hierarchy, the level
    need: int  # the number of records of that rank on the left; used only in relaxed partitions


@compiled
def best_cut(
    tables: Tables,
    column: int,
    space: WorkingSpace,
    distinct: int,
    total: int,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
) -> RegionCut:
    """Return the best cut of one column, given the tally of its values."""
    values = space.values[:distinct]
    records = space.records[:distinct]
    if tables.heights[column] > 0:
        cut = _cut_by_level(tables, column, values, records, total, least)
    elif relaxed:
        cut = _cut_in_two(values, records, total)
    else:
        cut = _cut_by_order(values, records, total, least, choose, space.refused[column])
    if cut.parts == 0 or choose == WIDTH:
        return RegionCut(cut.parts, 0.0, cut.at, cut.need)
    if choose == LOSS:
        score = cut.score / (tables.values[column] - 1) * tables.weights[column]
        return RegionCut(cut.parts, score, cut.at, cut.need)
    score = cost(total)  # a sum of whole numbers, so it does not depend on their order
    for count in records:
        score -= costs[count] if count < costs.shape[0] else cost(count)
    return RegionCut(cut.parts, score * tables.weights[column], cut.at, cut.need)


@compiled
def cost(count: int) -> float:
    """Return count * log2(count), rounded to multiples of 2^-20 bits, so that equal entropies are ties."""
    return float(np.rint(count * np.log2(count) * 1048576.0))


@compiled
def _cut_by_order(
    values: IntArray, records: IntArray, total: int, least: int, choose: int, refused: int
) -> RegionCut:
    """Return the allowed cut nearest to the median; with LOSS, the nearest of those with the largest gain.

    If a cut was refused, return the next best one, because all better ones were refused before.
    """
    gain, distance, refused_index = (
        _gain_of_cut(values, records, total, choose, refused) if refused >= 0 else (-1, 0, -1)
    )
    last = values.shape[0] - 1
    best = RegionCut(0, 0.0, 0, 0)
    nearest = 0
    left_records = 0
    for index in range(last):
        left_records += records[index]
        if total - left_records < least:
            break
        if left_records < least:
            continue
        gain_here = _gain(values, index, left_records, total) if choose == LOSS else 0
        distance_here = abs(2 * left_records - total)
        was_tried = gain_here > gain or (
            gain_here == gain
            and (distance_here < distance or (distance_here == distance and index <= refused_index))
        )
        if refused >= 0 and was_tried:
            continue
        if best.parts == 0 or gain_here > best.score or (gain_here == best.score and distance_here < nearest):
            best = RegionCut(2, float(gain_here), values[index], 0)
            nearest = distance_here
    return best


@compiled
def _gain(values: IntArray, at: int, left_records: int, total: int) -> int:
    """Return the gain of a cut after a value: how much the sum of records times covered ranks decreases."""
    last = values.shape[0] - 1
    whole = total * (values[last] - values[0])
    return int(
        whole
        - left_records * (values[at] - values[0])
        - (total - left_records) * (values[last] - values[at + 1])
    )


@compiled
def _gain_of_cut(
    values: IntArray, records: IntArray, total: int, choose: int, rank: int
) -> tuple[int, int, int]:
    """Return the gain of the cut after a rank, its distance from the median, and its position."""
    left_records = 0
    index = 0
    while values[index] <= rank:
        left_records += records[index]
        index += 1
    gain = _gain(values, index - 1, left_records, total) if choose == LOSS else 0
    return gain, abs(2 * left_records - total), index - 1


@compiled
def _cut_in_two(values: IntArray, records: IntArray, total: int) -> RegionCut:
    """Put half of the records on the left; records with the median value are divided as needed."""
    need = total // 2
    index = 0
    while records[index] < need:
        need -= records[index]
        index += 1
    first = values[0]
    last = values[-1]
    right = values[index] if need < records[index] else values[index + 1]
    left_records = total // 2
    gain = (
        total * (last - first)
        - left_records * (values[index] - first)
        - (total - left_records) * (last - right)
    )
    return RegionCut(2, float(gain), values[index], need)


@compiled
def _cut_by_level(
    tables: Tables, column: int, values: IntArray, records: IntArray, total: int, least: int
) -> RegionCut:
    """Cut into the groups one level below the lowest common group."""
    last = values.shape[0] - 1
    level = common(tables, column, values[0], values[last]) - 1
    groups = level_of(tables, column, level)
    gain = total * span(tables, column, values[0], values[last])
    parts = 0
    first = 0
    part_records = 0
    for index in range(last + 1):
        part_records += records[index]
        if index == last or groups[values[index]] != groups[values[index + 1]]:
            if part_records < least:
                return RegionCut(0, 0.0, 0, 0)
            gain -= part_records * span(tables, column, values[first], values[index])
            parts += 1
            first = index + 1
            part_records = 0
    return RegionCut(parts, float(gain), level, 0)


@compiled
def propose(
    start: int,  # the regions to process
    stop: int,
    ranks: RankArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,): rows
    records: IntArray,  # (regions,)
    refused: NDArray[np.int64],  # (regions, columns): the last refused cut, or -1; (0, columns): no checks
    tables: Tables,
    costs: FloatArray,  # c log c of small counts
    least: int,
    choose: int,
    relaxed: bool,
    columns: IntArray,  # (regions,), written: the column to cut
    ats: IntArray,  # (regions,), written: the rank after which, or the level at which, to cut
    parts: IntArray,  # (regions,), written: the number of parts
    children: RankArray,  # (rows,), written: the part that each row goes to
    splits: IntArray,  # (regions, 2), written: the row that is divided, or -1, and its records on the left
) -> None:
    """Choose the column and the cut of each region."""
    space = space_for(longest(begins, start, stop), ranks.shape[0], tables)
    for region in range(start, stop):
        columns[region] = -1
        parts[region] = FINAL
        splits[region, 0] = -1
        if records[region] < 2 * least:
            continue
        begin, end = begins[region], begins[region + 1]
        for column in range(ranks.shape[0]):
            low, high = extent(ranks[column, begin:end])
            space.lows[column] = low
            space.highs[column] = high
            space.tiers[column] = -1.0
            space.refused[column] = refused[region, column] if refused.shape[0] > 0 else -1
            if space.refused[column] >= 0 and tables.heights[column] > 0:
                continue  # a hierarchy has one cut
            if varies(tables, column, low, high):
                relative_width = width(tables, column, low, high) if choose == WIDTH else 0.0
                space.tiers[column] = tables.weights[column] * relative_width
        column, cut = _best(
            ranks, sizes, begin, end, records[region], tables, costs, least, choose, relaxed, space
        )
        if column < 0:
            continue
        columns[region] = column
        ats[region] = cut.at
        parts[region] = cut.parts
        _assign(tables, column, cut, ranks[column, begin:end], sizes[begin:end], space, children[begin:end])
        if relaxed and tables.heights[column] == 0:
            _divide_median(ranks[column], sizes, begin, end, cut, children, splits[region])


@compiled
def _best(
    ranks: RankArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begin: int,  # the region's rows
    end: int,
    total: int,  # and records
    tables: Tables,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
    space: WorkingSpace,
) -> tuple[int, RegionCut]:
    """Return the column to cut, or -1, and its cut."""
    best = RegionCut(0, 0.0, 0, 0)
    chosen = -1
    fewest = 0
    while chosen < 0:
        tier = -1.0
        for column in range(ranks.shape[0]):
            tier = max(tier, space.tiers[column])
        if tier < 0:
            break
        for column in range(ranks.shape[0]):
            if space.tiers[column] != tier:
                continue
            space.tiers[column] = -1.0
            distinct = tally(
                ranks[column, begin:end], sizes[begin:end], space.lows[column], space.highs[column], space
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
    cut: RegionCut,
    ranks: RankArray,
    sizes: IntArray,
    space: WorkingSpace,
    children: RankArray,  # written
) -> None:
    """Assign each row of a region to a child."""
    if tables.heights[column] == 0:
        for row in range(ranks.shape[0]):
            children[row] = ranks[row] > cut.at
        return
    distinct = tally(ranks, sizes, space.lows[column], space.highs[column], space)
    groups = level_of(tables, column, cut.at)
    child = 0
    for at in range(distinct):
        if at > 0 and groups[space.values[at]] != groups[space.values[at - 1]]:
            child += 1
        space.lookup[space.values[at]] = child
    for row in range(ranks.shape[0]):
        children[row] = space.lookup[ranks[row]]


@compiled
def _divide_median(
    ranks: RankArray,
    sizes: IntArray,
    begin: int,
    end: int,
    cut: RegionCut,
    children: RankArray,
    split: IntArray,
) -> None:
    """Assign as many records with the median value to the left as needed, in the order of rows."""
    need = cut.need
    for row in range(begin, end):
        if ranks[row] != cut.at:
            continue
        if need == 0:
            children[row] = 1
        elif sizes[row] <= need:
            need -= sizes[row]
        else:
            split[0] = row
            split[1] = need
            need = 0
