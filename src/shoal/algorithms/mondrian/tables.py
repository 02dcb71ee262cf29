"""Compiled loops that count the records of each rank in a region."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

RankArray = NDArray[np.int32]

FINAL, KEPT = 0, 1  # parts of a region that is not cut: 0 if it is final, 1 if it stays open


class Tables(NamedTuple):
    """The axes in the layout of the kernels; arrays of different lengths are concatenated."""

    values: IntArray  # (columns,): the number of ranks
    scales: FloatArray  # (columns,): the width of the whole column
    starts: IntArray  # (columns,): where the column's positions start in `positions`
    positions: FloatArray
    heights: IntArray  # (columns,): levels of its hierarchy, up to a single group; 0: cut by order
    roots: IntArray  # (columns,): where the column's groups start in `groups`, level by level
    groups: RankArray  # numbered in the order of ranks within a level
    covers: RankArray  # the number of ranks in the group at the same place in `groups`
    weights: FloatArray  # (columns,): factor for the score of each column's cuts


@compiled
def longest(begins: IntArray, start: int, stop: int) -> int:
    """Return the number of rows of the longest region."""
    longest_rows = 0
    for region in range(start, stop):
        longest_rows = max(longest_rows, begins[region + 1] - begins[region])
    return longest_rows


@compiled
def level_of(tables: Tables, column: int, level: int) -> RankArray:
    """Return the groups of one level."""
    begin = tables.roots[column] + level * tables.values[column]
    return tables.groups[begin : begin + tables.values[column]]


@compiled
def common(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the lowest level at which two ranks, and all ranks in between, share a group."""
    level = 0
    at = tables.roots[column]
    while tables.groups[at + low] != tables.groups[at + high]:
        level += 1
        at += tables.values[column]
    return level


@compiled
def varies(tables: Tables, column: int, low: int, high: int) -> bool:
    """Return whether a column could be cut if there were enough records."""
    if low == high or tables.heights[column] == 0:
        return bool(low < high)
    return bool(common(tables, column, low, high) > 0)


@compiled
def span(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the number of ranks that a part covers, minus one."""
    if tables.heights[column] == 0:
        return high - low
    at = tables.roots[column] + common(tables, column, low, high) * tables.values[column]
    return int(tables.covers[at + low]) - 1


@compiled
def width(tables: Tables, column: int, low: int, high: int) -> float:
    """Return the width of a part as a share of the column's width."""
    if tables.heights[column] > 0:
        return float(span(tables, column, low, high) / (tables.values[column] - 1))
    start = tables.starts[column]
    return float((tables.positions[start + high] - tables.positions[start + low]) / tables.scales[column])


_SPARSE = 4  # with more ranks per row than this, values are sorted instead of counted in an array
_FEW = 32  # up to this many rows, insertion sort is used


class WorkingSpace(NamedTuple):
    """Working space of one thread."""

    lows: IntArray  # (columns,): the smallest rank in the region
    highs: IntArray  # (columns,): the largest rank in the region
    refused: IntArray  # (columns,): the last cut that was refused, or -1
    tiers: FloatArray  # (columns,): the column with the largest is tried first; below 0: not to be tried
    cells: IntArray  # zeros; functions that write to it set it back to zeros
    keys: IntArray  # this and the next two: buffers for `_sort`
    other: IntArray
    digits: IntArray
    values: IntArray  # result of `tally`: the ranks that occur, ascending
    records: IntArray  # result of `tally`: their numbers of records
    lookup: RankArray  # the child of each rank that occurs


@compiled
def space_for(longest: int, columns: int, tables: Tables) -> WorkingSpace:
    """Allocate working space for the longest region."""
    widest = 0
    for column in range(columns):
        widest = max(widest, tables.values[column])
    return WorkingSpace(
        np.empty(columns, np.int64),
        np.empty(columns, np.int64),
        np.empty(columns, np.int64),
        np.empty(columns, np.float64),
        np.zeros(min(_SPARSE * longest, widest), np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(256, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(widest, np.int32),
    )


@compiled
def extent(ranks: RankArray) -> tuple[int, int]:
    """Return the smallest and largest rank."""
    low = ranks[0]
    high = ranks[0]
    for row in range(1, ranks.shape[0]):
        low = min(low, ranks[row])
        high = max(high, ranks[row])
    return np.int64(low), np.int64(high)  # type: ignore[return-value]


@compiled
def tally(ranks: RankArray, sizes: IntArray, low: int, high: int, space: WorkingSpace) -> int:
    """Write the ranks that occur, ascending, with the records of each; return the number of ranks."""
    rows = ranks.shape[0]
    values = space.values
    records = space.records
    if high - low < _SPARSE * rows:
        return int(_tally_cells(ranks, sizes, low, high, space.cells, values, records))
    distinct = 0
    if rows <= _FEW:
        for row in range(rows):
            rank = np.int64(ranks[row])
            at = distinct
            while at > 0 and values[at - 1] > rank:
                at -= 1
            if at > 0 and values[at - 1] == rank:
                records[at - 1] += sizes[row]
                continue
            for later in range(distinct, at, -1):
                values[later] = values[later - 1]
                records[later] = records[later - 1]
            values[at] = rank
            records[at] = sizes[row]
            distinct += 1
        return distinct
    keys = space.keys[:rows]
    for row in range(rows):
        keys[row] = ((np.int64(ranks[row]) - low) << 32) | row
    for key in _sort(keys, space.other[:rows], space.digits, high - low):
        rank = low + (key >> 32)
        if distinct == 0 or values[distinct - 1] != rank:
            values[distinct] = rank
            records[distinct] = 0
            distinct += 1
        records[distinct - 1] += sizes[key & 0xFFFFFFFF]
    return distinct


@compiled
def _tally_cells(
    ranks: RankArray,
    sizes: IntArray,
    low: int,
    high: int,
    cells: IntArray,
    values: IntArray,
    records: IntArray,
) -> int:
    """Tally with one cell for every rank between the smallest and the largest."""
    for row in range(ranks.shape[0]):
        cells[ranks[row] - low] += sizes[row]
    distinct = 0
    for cell in range(high - low + 1):
        if cells[cell] > 0:
            values[distinct] = low + cell
            records[distinct] = cells[cell]
            cells[cell] = 0
            distinct += 1
    return distinct


@compiled
def _sort(keys: IntArray, other: IntArray, digits: IntArray, greatest: int) -> IntArray:
    """Radix-sort keys by their upper half; return which array contains the result."""
    shift = 32
    while greatest > 0:
        for digit in range(256):
            digits[digit] = 0
        for key in keys:
            digits[(key >> shift) & 255] += 1
        begin = 0
        for digit in range(256):
            count = digits[digit]
            digits[digit] = begin
            begin += count
        for key in keys:
            digit = (key >> shift) & 255
            other[digits[digit]] = key
            digits[digit] += 1
        keys, other = other, keys
        shift += 8
        greatest >>= 8
    return keys
