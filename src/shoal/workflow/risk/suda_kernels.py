"""The compiled loops of the search for minimal sample uniques.

A row is a combination, and a set of columns is a bit mask. Only a range of the rows with one record is
searched at a time; all other rows are only compared with the rows of this range. For each row of the range
and each smaller set, one bit says whether the row is unique on that set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

RowArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

_ROWS, _SOUGHT = (1 << 32) - 1, 32  # a cell packs two counts: all rows (mask), rows in the range (shift)


class SudaTable(NamedTuple):
    """The input of the search; column i is bit i of a set."""

    codes: RowArray  # (columns, rows)
    values: IntArray  # (columns,): codes are below this
    weights: FloatArray  # (most + 1,): the score of a set of each size
    choose: IntArray  # (columns + 1, most + 1): number of sets of columns, by size


class Space(NamedTuple):
    """The classes of each set on the current search path, and scratch arrays."""

    rows: RowArray  # (levels, rows): sorted by class
    begins: RowArray  # (levels, classes + 1): where each class begins
    classes: IntArray  # (levels,): the number of classes
    cells: IntArray  # (codes,): zeros before and after each call
    seen: RowArray  # (rows,)
    met: RowArray  # (rows,)


class Results(NamedTuple):
    """The results for the rows that are searched."""

    unique: ByteArray  # (rows, bytes): a bit for each smaller set on which a row is unique
    numbers: IntArray  # (rows,): the number of a row's minimal sets
    scores: FloatArray  # (rows,): the sum of the weights of these sets


@compiled
def explore(
    table: SudaTable,
    low: int,  # the first row that is searched
    start: int,  # a set; its classes come from those of the set without its lowest column
    below: bool,  # whether to search larger sets, or only to compute the classes of the set
    space: Space,
    results: Results,
) -> tuple[IntArray, IntArray]:
    """Search a set, and the sets that add columns below its lowest column, in ascending order of their masks.

    Return the sets that are minimal for some row, and the number of such rows.
    """
    masks, records, sets = np.empty(16, np.int64), np.empty(16, np.int64), 0
    most = table.weights.shape[0] - 1
    bits = np.empty(most + 1, np.int64)
    mask = start
    while mask & start == start:
        level, column = _bits(mask), _bits((mask & -mask) - 1)
        keep = level < most and column > 0
        high = low + results.unique.shape[0]
        met = _split(table.codes[column], table.values[column], low, high, level - 1, keep, space)
        if met > 0:
            _places(mask, table.choose, bits)
            weight = table.weights[level]
            new = _record(space.met[:met], low, bits[:level], level < most, weight, results)
            if new > 0:
                if sets == masks.shape[0]:
                    masks, records = _longer(masks), _longer(records)
                masks[sets], records[sets] = mask, new
                sets += 1
        if not below:
            break
        # `mask + 1` is the first set that extends this one. `mask` plus its lowest bit is the next set that
        # does not.
        mask += 1 if keep and space.classes[level] > 0 else mask & -mask
    return masks[:sets].copy(), records[:sets].copy()


@compiled
def _places(mask: int, choose: IntArray, places: IntArray) -> None:
    """Compute the bit position of a set, then of each of its subsets that lack one column (not the lowest).

    Bits are ordered by the size of the set, then by the sum of choose[column, position in the set].
    """
    level, begin = _bits(mask), 0
    for size in range(1, level - 1):
        begin += choose[-1, size]
    before = 0  # the sum of the columns so far
    after = 0  # the same sum with every position lower by one
    for position in range(1, level + 1):
        column = _bits((mask & -mask) - 1)
        mask &= mask - 1
        if position > 1:
            after += choose[column, position - 1]
            places[position - 1] = before - after
        before += choose[column, position]
    for position in range(1, level):
        places[position] += begin + after
    places[0] = before + begin + (choose[-1, level - 1] if level > 1 else 0)


@compiled
def _split(codes: RowArray, values: int, low: int, high: int, level: int, keep: bool, space: Space) -> int:
    """Split the classes at a level by a column; return the number of searched rows that are now unique.

    A class that the column does not split is dropped: no minimal set of its rows contains the new set. A
    class without searched rows is dropped, too.
    """
    rows, begins = space.rows[level], space.begins[level]
    out, out_begins = space.rows[level + 1], space.begins[level + 1]
    cells, codes_seen, met = space.cells, space.seen, space.met
    count, made, filled = 0, 0, 0
    for class_index in range(space.classes[level]):
        begin, end = begins[class_index], begins[class_index + 1]
        if end - begin == 2:
            first, second = rows[begin], rows[begin + 1]
            if codes[first] != codes[second]:
                for row in (first, second):
                    if low <= row < high:
                        met[count] = row
                        count += 1
            continue
        parts, ones = _count_codes(codes, rows[begin:end], low, high, cells, codes_seen)
        if (parts > 1 or end - begin == 1) and (keep or ones > 0):
            for position in range(begin, end):
                code = codes_seen[position - begin]
                cell = cells[code]
                if cell >> _SOUGHT == 0:
                    continue
                if cell > 0:
                    size = cell & _ROWS
                    if size == 1:
                        met[count] = rows[position]
                        count += 1
                        continue
                    if not keep:
                        continue
                    out_begins[made] = filled
                    made += 1
                    cell = -1 - filled  # the cell now holds the position of its next row
                    filled += size
                out[-1 - cell] = rows[position]
                cells[code] = cell - 1
        if values < end - begin:
            cells[:values] = 0
        else:
            for position in range(end - begin):
                cells[codes_seen[position]] = 0
    if keep:
        out_begins[made] = filled
        space.classes[level + 1] = made
    return count


@compiled
def _count_codes(
    codes: RowArray, rows: RowArray, low: int, high: int, cells: IntArray, codes_seen: RowArray
) -> tuple[int, int]:
    """Count the rows of a class by code in `cells`; return the number of codes, and of codes with one row."""
    parts, ones = 0, np.int64(0)
    for position, row in enumerate(rows):
        code = codes[row]
        codes_seen[position] = code
        cell = cells[code]
        parts += cell == 0
        ones += np.int64(cell == 0) - np.int64(cell & _ROWS == 1)
        cells[code] = cell + 1 + (np.int64(low <= row < high) << _SOUGHT)
    return parts, int(ones)


@compiled
def _record(
    rows: RowArray, low: int, bit_positions: IntArray, hold: bool, weight: float, results: Results
) -> int:
    """Score a set for the rows that are not unique on any of its subsets; return the number of these rows.

    Each given row is unique on the set, but not on the set without its lowest column. If a row is unique on
    the set without another column, an earlier call has recorded this: that subset has a smaller mask.
    """
    new = 0
    for row in rows:
        bits = results.unique[row - low]
        minimal = True
        for position in bit_positions[1:]:
            if bits[position >> 3] >> (position & 7) & 1:
                minimal = False
                break
        if hold:
            bits[bit_positions[0] >> 3] |= np.uint8(1 << (bit_positions[0] & 7))
        if minimal:
            results.numbers[row] += 1
            results.scores[row] += weight
            new += 1
    return new


@compiled
def _bits(mask: int) -> int:
    bits = 0
    while mask != 0:
        mask &= mask - 1
        bits += 1
    return bits


@compiled
def _longer(values: IntArray) -> IntArray:
    longer = np.empty(2 * values.shape[0], np.int64)
    longer[: values.shape[0]] = values
    return longer
