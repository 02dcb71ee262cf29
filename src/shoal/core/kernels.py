"""The compiled loops of counts: arrays in, arrays out, no Python objects.

Loaded only when something is counted. Each kernel has a plain NumPy twin in the tests. Keys are first
rewritten field by field (simple loops that the compiler vectorizes); equal ones are then found with an
open-addressing table whose slots hold row numbers of the result.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads packed keys over the table


@compiled
def roll_up_word(
    keys: IntArray,  # (rows,)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word (0), shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Rewrite fields of one-word keys through their maps and add up the rows that became equal."""
    rows = keys.shape[0]
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten, fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    slots = np.empty(table_size(rows), np.int32)
    out_keys = np.empty(rows, np.int64)
    out_counts = np.empty(rows, np.int64)
    found = group(rewritten, counts, slots, out_keys, out_counts, inverse)
    return out_keys[:found].copy(), out_counts[:found].copy()


@compiled
def roll_up_words(
    keys: IntArray,  # (words, rows)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word, shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Do the same for keys of several words; a field lies in one of them."""
    words, rows = keys.shape
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten[fields[field, 0]], fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    size = table_size(rows)
    slots = np.full(size, -1, np.int32)
    out_keys = np.empty((words, rows), np.int64)
    out_counts = np.empty(rows, np.int64)
    found = 0
    for row in range(rows):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = (mixed ^ np.uint64(rewritten[w, row])) * _GOLDEN
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed) & (size - 1)
        while True:
            at = slots[slot]
            if at < 0:
                at = found
                slots[slot] = found
                for w in range(words):
                    out_keys[w, found] = rewritten[w, row]
                out_counts[found] = counts[row]
                found += 1
                break
            same = True
            for w in range(words):
                same &= out_keys[w, at] == rewritten[w, row]
            if same:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & (size - 1)
        if inverse.shape[0] > 0:
            inverse[row] = at
    return out_keys[:, :found].copy(), out_counts[:found].copy()


@compiled
def rewrite(keys: IntArray, shift: int, mask: int, groups: IntArray) -> None:
    """Replace one field of every key by its group."""
    clear = ~(mask << shift)
    for row in range(keys.shape[0]):
        key = keys[row]
        keys[row] = (key & clear) | (groups[(key >> shift) & mask] << shift)


@compiled
def table_size(rows: int) -> int:
    """Return a power of two that leaves the table two thirds empty."""
    size = 16
    while size < 3 * rows:
        size *= 2
    return size


@compiled
def group(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,  # as many as table_size says
    out_keys: IntArray,
    out_counts: IntArray,
    inverse: IntArray,
) -> int:
    """Add up the counts of equal keys, in the order of first appearance; return how many differ."""
    bits = 4
    while (1 << bits) < slots.shape[0]:
        bits += 1
    spread = np.uint64(64 - bits)
    last = slots.shape[0] - 1
    want_inverse = inverse.shape[0] > 0
    slots[:] = -1
    found = 0
    for row in range(keys.shape[0]):
        key = keys[row]
        slot = np.int64((np.uint64(key) * _GOLDEN) >> spread)
        while True:
            at = slots[slot]
            if at < 0:
                at = found
                slots[slot] = found
                out_keys[found] = key
                out_counts[found] = counts[row]
                found += 1
                break
            if out_keys[at] == key:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & last
        if want_inverse:
            inverse[row] = at
    return found


@compiled
def pack(keys: IntArray, fields: IntArray, words: int) -> IntArray:
    """Move fields (word, shift, mask, new word, new shift) of keys (words, rows) to keys of their own."""
    rows = keys.shape[1]
    packed = np.zeros((words, rows), np.int64)
    for field in range(fields.shape[0]):
        word, shift, mask, new_word, new_shift = fields[field]
        for row in range(rows):
            packed[new_word, row] |= ((keys[word, row] >> shift) & mask) << new_shift
    return packed


@compiled
def add_up_cells(keys: IntArray, counts: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Add up the counts of equal keys below a size, each in a cell of its own; return them in order."""
    cells = np.zeros(size, np.int64)
    for row in range(keys.shape[0]):
        cells[keys[row]] += counts[row]
    found = 0
    for cell in range(size):
        found += cells[cell] > 0
    out_keys = np.empty(found, np.int64)
    out_counts = np.empty(found, np.int64)
    at = 0
    for cell in range(size):
        if cells[cell] > 0:
            out_keys[at] = cell
            out_counts[at] = cells[cell]
            at += 1
    return out_keys, out_counts
