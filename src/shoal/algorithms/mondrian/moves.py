"""Compiled loops that move the rows of regions to their children."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.mondrian.tables import FINAL, KEPT, RankArray, longest
from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled


@compiled
def measure(
    start: int,  # the regions to process
    stop: int,
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: RankArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_rows: IntArray,  # (children,), zeros at first: the rows of each child
    child_records: IntArray,  # (children,), zeros at first: the records of each child
) -> None:
    """Count the rows and records of each child."""
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
        if splits[region, 0] >= 0:  # so far, all records of this row are counted on the left
            right_records = sizes[splits[region, 0]] - splits[region, 1]
            child_rows[first + 1] += 1
            child_records[first] -= right_records
            child_records[first + 1] += right_records


@compiled
def divide(
    start: int,  # the regions to divide
    stop: int,
    ranks: RankArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    rows: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: RankArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_begins: IntArray,  # (children + 1,)
    final_begins: IntArray,  # (regions,): the output position of each final region
    new_ranks: RankArray,  # written: this and the next two are like `ranks`, `sizes` and `rows`
    new_sizes: IntArray,
    new_rows: IntArray,
    final_sizes: IntArray,  # written: the rows of final regions
    final_rows: IntArray,
) -> None:
    """Move rows to their children, in the same order, and rows of final regions to the output."""
    longest_region = longest(begins, start, stop)
    sources = np.empty(longest_region + 1, np.uint32)  # an unsigned index needs no check for negative values
    cursors = np.empty(longest_region + 1, np.int64)
    for region in range(start, stop):
        begin, end = begins[region], begins[region + 1]
        if parts[region] == FINAL:
            target = final_begins[region]
            final_sizes[target : target + end - begin] = sizes[begin:end]
            final_rows[target : target + end - begin] = rows[begin:end]
            continue
        first = firsts[region]
        target = child_begins[first]
        count = child_begins[first + parts[region]] - target
        split = splits[region, 0]
        left = 0
        right = 0
        if parts[region] == KEPT:
            for row in range(end - begin):
                sources[row] = row
        else:
            for child in range(parts[region]):
                cursors[child] = child_begins[first + child] - target
            left, right = _in_order(children[begin:end], split - begin, cursors, sources)
        _gather(ranks[:, begin:end], sources, new_ranks[:, target : target + count])
        for row in range(count):
            new_sizes[target + row] = sizes[begin + sources[row]]
            new_rows[target + row] = rows[begin + sources[row]]
        if split >= 0:
            new_sizes[target + left] = splits[region, 1]
            new_sizes[target + right] = sizes[split] - splits[region, 1]


@compiled
def _gather(ranks: RankArray, sources: NDArray[np.uint32], new_ranks: RankArray) -> None:
    """Copy the ranks of the source rows to the new rows, column by column."""
    for column in range(ranks.shape[0]):
        source, target = ranks[column], new_ranks[column]
        for row in range(len(target)):
            target[row] = source[sources[row]]


@compiled
def _in_order(
    children: RankArray,  # (rows,): of one region
    split: int,  # the row that is divided; below 0 if there is none
    cursors: IntArray,  # (children,): the start of each child
    sources: NDArray[np.uint32],  # written: the rows, child by child
) -> tuple[int, int]:
    """Sort the rows of a region by child; return the new position of the row that is split."""
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
