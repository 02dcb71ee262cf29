"""The compiled loops: arrays in, arrays out, no Python objects.

Loaded only when something is counted. Each kernel has a plain NumPy twin in the tests. Keys are first
rewritten field by field (simple loops that the compiler vectorizes); equal ones are then found with an
open-addressing table whose slots hold row numbers of the result.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.core.arrays import IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads packed keys over the table


@njit(cache=True, nogil=True)
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
        _rewrite(rewritten, fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    slots = np.empty(_table_size(rows), np.int32)
    out_keys = np.empty(rows, np.int64)
    out_counts = np.empty(rows, np.int64)
    found = _group(rewritten, counts, slots, out_keys, out_counts, inverse)
    return out_keys[:found].copy(), out_counts[:found].copy()


@njit(cache=True, nogil=True)
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
        _rewrite(rewritten[fields[field, 0]], fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    size = _table_size(rows)
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


@njit(cache=True, nogil=True)
def count_nodes(
    keys: IntArray,  # (rows,): one-word keys, every axis at its lowest level
    counts: IntArray,  # (rows,)
    nodes: IntArray,  # (nodes, axes): levels above the lowest, in lexicographic order
    fields: IntArray,  # (fields, 3): axis, shift, mask of each field that an axis moves, by axis
    starts: IntArray,  # (fields, levels, levels): where the map from a level to a higher one begins
    maps: IntArray,  # all maps, one after the other
    least_size: int,
    held_keys: IntArray,  # (2 * axes + 2, rows): working space
    held_counts: IntArray,  # (2 * axes + 1, rows)
    slots: IntArray,  # the table that groups
) -> tuple[IntArray, IntArray, int, int]:
    """Count nodes as a prefix tree: records in small classes and classes of each; rows read; its cost."""
    axes = nodes.shape[1]
    rows = keys.shape[0]
    # Depth d holds the counts with the first d axes at their present levels; each depth has two
    # buffers, so that one level rolls up from a lower one. At level 0 a depth is the one before it.
    held_keys[0] = keys
    held_counts[0] = counts
    where = np.zeros(axes + 1, np.int64)
    length = np.full(axes + 1, rows, np.int64)
    at = np.zeros(axes, np.int64)
    short = np.empty(nodes.shape[0], np.int64)
    classes = np.empty(nodes.shape[0], np.int64)
    nobody = np.empty(0, np.int64)
    scanned = 0
    cost = 0
    for node in range(nodes.shape[0]):
        first = 0
        while first < axes and at[first] == nodes[node, first]:
            first += 1
        for axis in range(first, axes):
            if axis > first:
                at[axis] = 0
                where[axis + 1] = where[axis]
                length[axis + 1] = length[axis]
            level = nodes[node, axis]
            if level > at[axis]:
                read = length[axis + 1]
                source = where[axis + 1]
                target = 2 * axis + 1 if source != 2 * axis + 1 else 2 * axis + 2
                rewritten = held_keys[2 * axes + 1, :read]
                rewritten[:] = held_keys[source, :read]
                for field in range(fields.shape[0]):
                    if fields[field, 0] == axis:
                        groups = maps[starts[field, at[axis], level] :]
                        _rewrite(rewritten, fields[field, 1], fields[field, 2], groups)
                        cost += read
                size = _table_size(read)
                length[axis + 1] = _group(
                    rewritten,
                    held_counts[source],
                    slots[:size],
                    held_keys[target],
                    held_counts[target],
                    nobody,
                )
                scanned += read
                where[axis + 1] = target
                at[axis] = level
        total = 0
        leaf = held_counts[where[axes]]
        for row in range(length[axes]):
            if leaf[row] < least_size:
                total += leaf[row]
        short[node] = total
        classes[node] = length[axes]
    return short, classes, scanned, cost


@njit(cache=True, nogil=True)
def _rewrite(keys: IntArray, shift: int, mask: int, groups: IntArray) -> None:
    """Replace one field of every key by its group."""
    clear = ~(mask << shift)
    for row in range(keys.shape[0]):
        key = keys[row]
        keys[row] = (key & clear) | (groups[(key >> shift) & mask] << shift)


@njit(cache=True, nogil=True)
def _table_size(rows: int) -> int:
    """Return a power of two that leaves the table two thirds empty."""
    size = 16
    while size < 3 * rows:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def _group(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,  # as many as _table_size says
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
