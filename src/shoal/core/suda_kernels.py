"""The compiled loops of the search for minimal sample uniques.

A set of columns is a bit mask. The search looks for the sets of a stretch of rows, each of which has one
record; the other rows are there to be told apart from. A bit for each of these rows and each smaller set
tells whether the row was left by itself there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

RowArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

_ROWS, _SOUGHT = (1 << 32) - 1, 32  # in a cell: the mask of its rows, the shift of those that are sought


class Table(NamedTuple):
    """What is searched; columns are bits of a set."""

    codes: RowArray  # (columns, rows)
    values: IntArray  # (columns,): codes are below this
    weights: FloatArray  # (most + 1,): what a set of each size scores
    choose: IntArray  # (columns + 1, most + 1): how many sets there are of so many columns, by size


class Space(NamedTuple):
    """The classes of each set on the path that the search has taken, and working space."""

    rows: RowArray  # (levels, rows): class after class
    begins: RowArray  # (levels, classes + 1): where each class begins
    classes: IntArray  # (levels,): how many there are
    cells: IntArray  # (codes,): zeros, left as found
    seen: RowArray  # (rows,)
    met: RowArray  # (rows,)


class Found(NamedTuple):
    """What is known of the rows that are sought."""

    alone: ByteArray  # (rows, bytes): whether a row is alone on each set smaller than the largest
    numbers: IntArray  # (rows,): its minimal sets
    scores: FloatArray  # (rows,): their weights, added up


@compiled
def explore(
    table: Table,
    low: int,  # the first row that is sought
    start: int,  # a set; its classes are made from those of the set without its lowest column
    below: bool,  # whether to search on, or only to hold the classes of the set
    space: Space,
    found: Found,
) -> tuple[IntArray, IntArray]:
    """Search a set and those that add columns before its lowest to it, in growing order of their masks.

    Returns the sets that are minimal for some row, and for how many.
    """
    masks, records, sets = np.empty(16, np.int64), np.empty(16, np.int64), 0
    most = table.weights.shape[0] - 1
    places = np.empty(most + 1, np.int64)
    mask = start
    while mask & start == start:
        level, column = _bits(mask), _bits((mask & -mask) - 1)
        keep = level < most and column > 0
        high = low + found.alone.shape[0]
        met = _split(table.codes[column], table.values[column], low, high, level - 1, keep, space)
        if met > 0:
            _places(mask, table.choose, places)
            weight = table.weights[level]
            new = _record(space.met[:met], low, places[:level], level < most, weight, found)
            if new > 0:
                if sets == masks.shape[0]:
                    masks, records = _longer(masks), _longer(records)
                masks[sets], records[sets] = mask, new
                sets += 1
        if not below:
            break
        # A mask and 1 is the first set below it; a mask and its lowest bit is the first that is not.
        mask += 1 if keep and space.classes[level] > 0 else mask & -mask
    return masks[:sets].copy(), records[:sets].copy()


@compiled
def _places(mask: int, choose: IntArray, places: IntArray) -> None:
    """Tell the bit of a set, then of each set without one of its columns but the lowest.

    Sets lie by size, and in a size by the sum of choose[column, place in the set].
    """
    level, begin = _bits(mask), 0
    for size in range(1, level - 1):
        begin += choose[-1, size]
    before = 0  # the sum of the columns so far
    after = 0  # and what it is when each has moved up by one place
    for place in range(1, level + 1):
        column = _bits((mask & -mask) - 1)
        mask &= mask - 1
        if place > 1:
            after += choose[column, place - 1]
            places[place - 1] = before - after
        before += choose[column, place]
    for place in range(1, level):
        places[place] += begin + after
    places[0] = before + begin + (choose[-1, level - 1] if level > 1 else 0)


@compiled
def _split(codes: RowArray, values: int, low: int, high: int, level: int, keep: bool, space: Space) -> int:
    """Split the classes at a level by a column; tell how many rows that are sought were left by themselves.

    A class that the column does not split is dropped: the column is then superfluous to its rows, in this
    set and in every set below it. So is a class in which no row is sought.
    """
    rows, begins = space.rows[level], space.begins[level]
    out, out_begins = space.rows[level + 1], space.begins[level + 1]
    cells, seen, met = space.cells, space.seen, space.met
    found, made, filled = 0, 0, 0
    for at in range(space.classes[level]):
        begin, end = begins[at], begins[at + 1]
        if end - begin == 2:
            one, other = rows[begin], rows[begin + 1]
            if codes[one] != codes[other]:
                for row in (one, other):
                    if low <= row < high:
                        met[found] = row
                        found += 1
            continue
        parts, ones = 0, np.int64(0)
        for place in range(begin, end):
            row = rows[place]
            code = codes[row]
            seen[place - begin] = code
            cell = cells[code]
            parts += cell == 0
            ones += np.int64(cell == 0) - np.int64(cell & _ROWS == 1)
            cells[code] = cell + 1 + (np.int64(low <= row < high) << _SOUGHT)
        if (parts > 1 or end - begin == 1) and (keep or ones > 0):
            for place in range(begin, end):
                code = seen[place - begin]
                cell = cells[code]
                if cell >> _SOUGHT == 0:
                    continue
                if cell > 0:
                    size = cell & _ROWS
                    if size == 1:
                        met[found] = rows[place]
                        found += 1
                        continue
                    if not keep:
                        continue
                    out_begins[made] = filled
                    made += 1
                    cell = -1 - filled  # from now on the cell tells where its next row goes
                    filled += size
                out[-1 - cell] = rows[place]
                cells[code] = cell - 1
        if values < end - begin:
            cells[:values] = 0
        else:
            for place in range(end - begin):
                cells[seen[place]] = 0
    if keep:
        out_begins[made] = filled
        space.classes[level + 1] = made
    return found


@compiled
def _record(rows: RowArray, low: int, places: IntArray, hold: bool, weight: float, found: Found) -> int:
    """Score a set for the rows that are alone on none of its subsets; tell how many they are.

    A row comes here alone on the set, and not alone without the lowest column. Where it is alone without
    another column, it came here with that set, which has a smaller mask.
    """
    new = 0
    for row in rows:
        own = found.alone[row - low]
        minimal = True
        for place in places[1:]:
            if own[place >> 3] >> (place & 7) & 1:
                minimal = False
                break
        if hold:
            own[places[0] >> 3] |= np.uint8(1 << (places[0] & 7))
        if minimal:
            found.numbers[row] += 1
            found.scores[row] += weight
            new += 1
    return new


@compiled
def _bits(mask: int) -> int:
    """Count the bits of a set."""
    bits = 0
    while mask != 0:
        mask &= mask - 1
        bits += 1
    return bits


@compiled
def _longer(values: IntArray) -> IntArray:
    """Return the values with room for as many more."""
    longer = np.empty(2 * values.shape[0], np.int64)
    longer[: values.shape[0]] = values
    return longer
