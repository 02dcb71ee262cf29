"""The compiled loops that move the rows of regions to where cuts send them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled
from shoal.core.partition_tables import FINAL, KEPT, PlaceArray, longest


@compiled
def measure(
    start: int,  # the regions to look at
    stop: int,
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: PlaceArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_rows: IntArray,  # (children,), zeros: how many rows a child gets
    child_records: IntArray,  # (children,), zeros: and how many records
) -> None:
    """Count what each child gets."""
    for region in range(start, stop):
        if parts[region] == FINAL:
            continue
        first = firsts[region]
        begin = begins[region]
        end = begins[region + 1]
        if parts[region] == KEPT:
            child_rows[first] = end - begin
            for row in range(begin, end):
                child_records[first] += sizes[row]
            continue
        for row in range(begin, end):
            child = first + children[row]
            child_rows[child] += 1
            child_records[child] += sizes[row]
        if splits[region, 0] >= 0:  # counted on the left so far
            more = sizes[splits[region, 0]] - splits[region, 1]
            child_rows[first + 1] += 1
            child_records[first] -= more
            child_records[first + 1] += more


@compiled
def divide(
    start: int,  # the regions to divide
    stop: int,
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    rows: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: PlaceArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_begins: IntArray,  # (children + 1,)
    final_begins: IntArray,  # (regions,): where a final region goes
    new_places: PlaceArray,  # written: these as above
    new_sizes: IntArray,
    new_rows: IntArray,
    final_sizes: IntArray,  # written: the rows of final regions
    final_rows: IntArray,
) -> None:
    """Move rows to the children they go to, in the same order, and those of final regions out of the way."""
    most = longest(begins, start, stop)
    sources = np.empty(most + 1, np.uint32)  # without a sign, an index is not looked at twice
    cursors = np.empty(most + 1, np.int64)
    for region in range(start, stop):
        begin = begins[region]
        end = begins[region + 1]
        if parts[region] == FINAL:
            to = final_begins[region]
            for row in range(end - begin):
                final_sizes[to + row] = sizes[begin + row]
                final_rows[to + row] = rows[begin + row]
            continue
        first = firsts[region]
        to = child_begins[first]
        count = child_begins[first + parts[region]] - to
        split = splits[region, 0]
        left = 0
        right = 0
        if parts[region] == KEPT:
            for row in range(end - begin):
                sources[row] = row
        else:
            for child in range(parts[region]):
                cursors[child] = child_begins[first + child] - to
            left, right = _in_order(children[begin:end], split - begin, cursors, sources)
        for column in range(places.shape[0]):
            source = places[column, begin:end]
            target = new_places[column, to : to + count]
            for row in range(count):
                target[row] = source[sources[row]]
        for row in range(count):
            new_sizes[to + row] = sizes[begin + sources[row]]
            new_rows[to + row] = rows[begin + sources[row]]
        if split >= 0:
            new_sizes[to + left] = splits[region, 1]
            new_sizes[to + right] = sizes[split] - splits[region, 1]


@compiled
def _in_order(
    children: PlaceArray,  # (rows,): of one region
    split: int,  # the row that goes to both sides; below 0: none
    cursors: IntArray,  # (children,): where each begins
    sources: NDArray[np.uint32],  # written: the rows, child by child
) -> tuple[int, int]:
    """Put the rows of a region in the order of their children; return where the one split goes."""
    left = 0
    right = 0
    for row in range(children.shape[0]):
        if row == split:
            left = cursors[0]
            right = cursors[1]
            sources[right] = row
            cursors[1] += 1
        child = children[row]
        sources[cursors[child]] = row
        cursors[child] += 1
    return left, right
