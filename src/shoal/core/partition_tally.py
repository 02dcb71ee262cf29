"""The compiled loops that tell which places occur in a region, and how many records each has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.partition_tables import PlaceArray, Tables

_SPARSE = 4  # cells for each row, above which values are sorted rather than counted
_FEW = 32  # rows that are sorted by insertion


class Space(NamedTuple):
    """Working space of one thread."""

    lows: IntArray  # (columns,): the least place in the region
    highs: IntArray  # (columns,): and the greatest
    refused: IntArray  # (columns,): the last cut that was refused, or -1
    tiers: FloatArray  # (columns,): the greater are tried first, those alike together; below 0: not any more
    cells: IntArray  # zeros, left as found
    keys: IntArray  # with the next two, what `_sort` needs
    other: IntArray
    digits: IntArray
    values: IntArray  # what `tally` finds: the places that occur, ascending
    records: IntArray  # and their records
    lookup: PlaceArray  # the child of each place that occurs


@compiled
def space_for(longest: int, columns: int, tables: Tables) -> Space:
    """Make room for the longest region."""
    widest = 0
    for column in range(columns):
        widest = max(widest, tables.values[column])
    return Space(
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
def extent(places: PlaceArray) -> tuple[int, int]:
    """Return the least and the greatest place."""
    low = places[0]
    high = places[0]
    for row in range(1, places.shape[0]):
        low = min(low, places[row])
        high = max(high, places[row])
    return np.int64(low), np.int64(high)  # type: ignore[return-value]


@compiled
def tally(places: PlaceArray, sizes: IntArray, low: int, high: int, space: Space) -> int:
    """Write the places that occur, ascending, and the records of each; return how many."""
    rows = places.shape[0]
    values = space.values
    records = space.records
    if high - low < _SPARSE * rows:
        return int(_tally_cells(places, sizes, low, high, space.cells, values, records))
    found = 0
    if rows <= _FEW:
        for row in range(rows):
            place = np.int64(places[row])
            at = found
            while at > 0 and values[at - 1] > place:
                at -= 1
            if at > 0 and values[at - 1] == place:
                records[at - 1] += sizes[row]
                continue
            for later in range(found, at, -1):
                values[later] = values[later - 1]
                records[later] = records[later - 1]
            values[at] = place
            records[at] = sizes[row]
            found += 1
        return found
    keys = space.keys[:rows]
    for row in range(rows):
        keys[row] = ((np.int64(places[row]) - low) << 32) | row
    for key in _sort(keys, space.other[:rows], space.digits, high - low):
        place = low + (key >> 32)
        if found == 0 or values[found - 1] != place:
            values[found] = place
            records[found] = 0
            found += 1
        records[found - 1] += sizes[key & 0xFFFFFFFF]
    return found


@compiled
def _tally_cells(
    places: PlaceArray,
    sizes: IntArray,
    low: int,
    high: int,
    cells: IntArray,
    values: IntArray,
    records: IntArray,
) -> int:
    """Do so with a cell for every place between the least and the greatest."""
    for row in range(places.shape[0]):
        cells[places[row] - low] += sizes[row]
    found = 0
    for cell in range(high - low + 1):
        if cells[cell] > 0:
            values[found] = low + cell
            records[found] = cells[cell]
            cells[cell] = 0
            found += 1
    return found


@compiled
def _sort(keys: IntArray, other: IntArray, digits: IntArray, greatest: int) -> IntArray:
    """Sort keys by what lies above their lower half, byte by byte; return which array holds them."""
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
