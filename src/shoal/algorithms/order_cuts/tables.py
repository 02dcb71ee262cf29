"""Tables of classes. A class is a range of rows. Adding a cut divides classes; removing one merges rows.

A class has the records that the chosen cuts (the head) do not separate. Its rows are the parts that the
undecided cuts (the tail) would separate. The code of a row in a column is the number of cuts of head and tail
below it. Classes of fewer than k records are not in the table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled

CodeArray = NDArray[np.int32]
StateArray = NDArray[np.uint8]  # (cuts,): OUT, TAIL or HEAD
ClassTable = tuple[CodeArray, IntArray, IntArray, IntArray]  # codes (columns, rows), sizes, labels, begins

OUT, TAIL, HEAD = 0, 1, 2
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled
def boundaries(state: StateArray, begins: IntArray) -> IntArray:
    """Return the cut below each code of each column, (columns, most cuts + 1)."""
    columns = begins.shape[0] - 1
    widest = 0
    for column in range(columns):
        widest = max(widest, begins[column + 1] - begins[column])
    cut_at = np.full((columns, widest + 1), -1, np.int64)
    for column in range(columns):
        code = 0
        for cut in range(begins[column], begins[column + 1]):
            if state[cut] != OUT:
                code += 1
                cut_at[column, code] = cut
    return cut_at


@compiled
def divide(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,  # (rows, labels): records of each label; (rows, 0) if not needed
    begins: IntArray,  # (classes + 1,)
    state: StateArray,
    column_begins: IntArray,  # (columns + 1,): each column's cuts
    cut: int,
    k: int,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int]:
    """Split every class at a cut and remove classes below k; return the number of removed records."""
    column = 0
    while column_begins[column + 1] <= cut:
        column += 1
    first_code_above = 0
    for other in range(column_begins[column], cut + 1):
        first_code_above += state[other] != OUT
    columns, rows = codes.shape
    order = np.empty(rows, np.int64)
    new_begins = np.empty(2 * begins.shape[0], np.int64)
    new_begins[0] = 0
    classes = 0
    kept_rows = 0
    suppressed = 0
    column_codes = codes[column]
    for group in range(begins.shape[0] - 1):
        for side in range(2):
            start = kept_rows
            size = 0
            for row in range(begins[group], begins[group + 1]):
                if (column_codes[row] >= first_code_above) == (side == 1):
                    order[kept_rows] = row
                    kept_rows += 1
                    size += sizes[row]
            if size < k:
                suppressed += size
                kept_rows = start
            else:
                classes += 1
                new_begins[classes] = kept_rows
    new_codes = np.empty((columns, kept_rows), np.int32)
    for c in range(columns):
        for row in range(kept_rows):
            new_codes[c, row] = codes[c, order[row]]
    new_labels = np.empty((kept_rows, labels.shape[1]), np.int64)
    for row in range(kept_rows):
        for label in range(labels.shape[1]):
            new_labels[row, label] = labels[order[row], label]
    return new_codes, sizes[order[:kept_rows]], new_labels, new_begins[: classes + 1].copy(), suppressed


@compiled
def _same_codes(codes: CodeArray, first: int, second: int) -> bool:
    for column in range(codes.shape[0]):  # noqa: SIM110 - compiled
        if codes[column, first] != codes[column, second]:
            return False
    return True


@compiled
def merge(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    kept: BoolArray,  # (cuts,): the cuts of head and tail to keep
    column_begins: IntArray,
) -> tuple[CodeArray, IntArray, IntArray, IntArray]:
    """Remove cuts: merge the rows of each class that only these cuts separate."""
    columns, rows = codes.shape
    classes = begins.shape[0] - 1
    moved, mixed = _renumbered(codes, state, kept, column_begins)
    bits = slot_bits(rows)
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int64)
    first = np.empty(rows, np.int64)  # the first old row of each new row
    new_sizes = np.empty(rows, np.int64)
    new_labels = np.empty((rows, labels.shape[1]), np.int64)
    new_begins = np.empty(classes + 1, np.int64)
    new_begins[0] = 0
    merged = 0
    for group in range(classes):
        start = merged
        for row in range(begins[group], begins[group + 1]):
            slot = np.int64(((mixed[row] + np.uint64(group)) * GOLDEN) >> spread)
            while True:
                at = slots[slot]
                if at < 0:
                    slots[slot] = merged
                    first[merged] = row
                    new_sizes[merged] = sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[merged, label] = labels[row, label]
                    merged += 1
                    break
                if at >= start and _same_codes(moved, first[at], row):
                    new_sizes[at] += sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[at, label] += labels[row, label]
                    break
                slot = (slot + 1) & last
        new_begins[group + 1] = merged
    new_codes = np.empty((columns, merged), np.int32)
    for column in range(columns):
        for row in range(merged):
            new_codes[column, row] = moved[column, first[row]]
    return new_codes, new_sizes[:merged].copy(), new_labels[:merged].copy(), new_begins


@compiled
def _renumbered(
    codes: CodeArray, state: StateArray, kept: BoolArray, column_begins: IntArray
) -> tuple[CodeArray, NDArray[np.uint64]]:
    """Return the codes of rows without the removed cuts, (columns, rows), and a hash of each row."""
    columns, rows = codes.shape
    moved = np.empty((columns, rows), np.int32)
    mixed = np.zeros(rows, np.uint64)
    for column in range(columns):
        begin, end = column_begins[column], column_begins[column + 1]
        new_codes = np.zeros(end - begin + 1, np.int32)  # the new code of each old code
        old = 0
        new = 0
        for cut in range(begin, end):
            if state[cut] != OUT:
                old += 1
                new += kept[cut]
                new_codes[old] = new
        for row in range(rows):
            code = new_codes[codes[column, row]]
            moved[column, row] = code
            mixed[row] = (mixed[row] ^ np.uint64(code + 1)) * GOLDEN
            mixed[row] ^= mixed[row] >> np.uint64(29)
    return moved, mixed


@compiled
def slot_bits(rows: int) -> int:
    """Return the bits of the slot numbers of a hash table that is at most half full with this many rows."""
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    return bits


@compiled
def count_codes(
    codes: CodeArray, sizes: IntArray, start: int, stop: int, in_size: IntArray
) -> tuple[int, int]:
    """Add the records of some rows to `in_size` at their codes; return the smallest and largest code."""
    low = codes[start]
    high = low
    for row in range(start, stop):
        code = codes[row]
        low = min(low, code)
        high = max(high, code)
        in_size[code] += sizes[row]
    return low, high


@compiled
def most_of(labels: IntArray) -> int:
    """Return the number of records of the most frequent label."""
    most = 0
    for label in range(labels.shape[0]):
        most = max(most, labels[label])
    return most
