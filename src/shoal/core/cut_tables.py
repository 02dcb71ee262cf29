"""Tables of classes that cuts make, as runs of rows: split by a cut, or merged without one.

A table holds rows that some set of cuts tells apart, class after class: a class is what the cuts taken so
far (the head) tell apart, its rows are what those that may still be taken (the tail) would. A row has a
code in each column: how many cuts of head and tail lie below it. Classes below k are not in the table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled

CodeArray = NDArray[np.int32]
StateArray = NDArray[np.uint8]  # (cuts,): OUT, TAIL or HEAD
Table = tuple[CodeArray, IntArray, IntArray, IntArray]  # codes (columns, rows), sizes, labels, begins

OUT, TAIL, HEAD = 0, 1, 2
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled
def boundaries(state: StateArray, begins: IntArray) -> IntArray:
    """Return which cut lies below each code of each column, (columns, most cuts + 1)."""
    columns = begins.shape[0] - 1
    widest = 0
    for column in range(columns):
        widest = max(widest, begins[column + 1] - begins[column])
    found = np.full((columns, widest + 1), -1, np.int64)
    for column in range(columns):
        code = 0
        for cut in range(begins[column], begins[column + 1]):
            if state[cut] != OUT:
                code += 1
                found[column, code] = cut
    return found


@compiled
def divide(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,  # (rows, labels): records of each label; (rows, 0) where nobody asks
    begins: IntArray,  # (classes + 1,)
    state: StateArray,
    column_begins: IntArray,  # (columns + 1,): each column's cuts
    cut: int,
    k: int,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int]:
    """Split every class at a cut and leave out what is below k; return how many records that is."""
    column = 0
    while column_begins[column + 1] <= cut:
        column += 1
    edge = 0
    for other in range(column_begins[column], cut + 1):
        edge += state[other] != OUT
    columns, rows = codes.shape
    order = np.empty(rows, np.int64)
    new_begins = np.empty(2 * begins.shape[0], np.int64)
    new_begins[0] = 0
    made = 0
    found = 0
    gone = 0
    own = codes[column]
    for group in range(begins.shape[0] - 1):
        for side in range(2):
            start = found
            size = 0
            for row in range(begins[group], begins[group + 1]):
                if (own[row] >= edge) == (side == 1):
                    order[found] = row
                    found += 1
                    size += sizes[row]
            if size < k:
                gone += size
                found = start
            else:
                made += 1
                new_begins[made] = found
    new_codes = np.empty((columns, found), np.int32)
    for c in range(columns):
        for row in range(found):
            new_codes[c, row] = codes[c, order[row]]
    new_labels = np.empty((found, labels.shape[1]), np.int64)
    for row in range(found):
        for label in range(labels.shape[1]):
            new_labels[row, label] = labels[order[row], label]
    return new_codes, sizes[order[:found]], new_labels, new_begins[: made + 1].copy(), gone


@compiled
def merge(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    kept: BoolArray,  # (cuts,): what stays of head and tail
    column_begins: IntArray,
) -> tuple[CodeArray, IntArray, IntArray, IntArray]:
    """Add up the rows of a class that differ no more without some cuts."""
    columns, rows = codes.shape
    classes = begins.shape[0] - 1
    moved, mixed = _renumbered(codes, state, kept, column_begins)
    bits = slot_bits(rows)
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int64)
    first = np.empty(rows, np.int64)  # of each new row: the first old one
    new_sizes = np.empty(rows, np.int64)
    new_labels = np.empty((rows, labels.shape[1]), np.int64)
    new_begins = np.empty(classes + 1, np.int64)
    new_begins[0] = 0
    found = 0
    for group in range(classes):
        start = found
        for row in range(begins[group], begins[group + 1]):
            slot = np.int64(((mixed[row] + np.uint64(group)) * GOLDEN) >> spread)
            while True:
                at = slots[slot]
                if at < 0:
                    slots[slot] = found
                    first[found] = row
                    new_sizes[found] = sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[found, label] = labels[row, label]
                    found += 1
                    break
                same = at >= start
                if same:
                    other = first[at]
                    for column in range(columns):
                        if moved[column, other] != moved[column, row]:
                            same = False
                            break
                if same:
                    new_sizes[at] += sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[at, label] += labels[row, label]
                    break
                slot = (slot + 1) & last
        new_begins[group + 1] = found
    new_codes = np.empty((columns, found), np.int32)
    for column in range(columns):
        for row in range(found):
            new_codes[column, row] = moved[column, first[row]]
    return new_codes, new_sizes[:found].copy(), new_labels[:found].copy(), new_begins


@compiled
def _renumbered(
    codes: CodeArray, state: StateArray, kept: BoolArray, column_begins: IntArray
) -> tuple[CodeArray, NDArray[np.uint64]]:
    """Return the codes of rows by the cuts that stay, (columns, rows), and a number that mixes each row's."""
    columns, rows = codes.shape
    moved = np.empty((columns, rows), np.int32)
    mixed = np.zeros(rows, np.uint64)
    for column in range(columns):
        begin, end = column_begins[column], column_begins[column + 1]
        own = np.zeros(end - begin + 1, np.int32)  # the new code of each
        old = 0
        new = 0
        for cut in range(begin, end):
            if state[cut] != OUT:
                old += 1
                new += kept[cut]
                own[old] = new
        for row in range(rows):
            code = own[codes[column, row]]
            moved[column, row] = code
            mixed[row] = (mixed[row] ^ np.uint64(code + 1)) * GOLDEN
            mixed[row] ^= mixed[row] >> np.uint64(29)
    return moved, mixed


@compiled
def slot_bits(rows: int) -> int:
    """Return the bits of a power of two that leaves a table of so many rows half empty."""
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    return bits


@compiled
def count_codes(own: CodeArray, sizes: IntArray, start: int, stop: int, in_size: IntArray) -> tuple[int, int]:
    """Add the records of some rows to their codes in one column; return the least code and the greatest."""
    low = own[start]
    high = low
    for row in range(start, stop):
        code = own[row]
        low = min(low, code)
        high = max(high, code)
        in_size[code] += sizes[row]
    return low, high


@compiled
def most_of(labels: IntArray) -> int:
    """Return the records of the most frequent label."""
    found = 0
    for label in range(labels.shape[0]):
        found = max(found, labels[label])
    return found
