"""The compiled loops: arrays in, arrays out, no Python objects.

Loaded only when something is counted. Each kernel has a plain NumPy twin in the tests.
Equal keys are found with an open-addressing table whose slots hold row numbers of the result.
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
    bits = 4
    while (1 << bits) < 3 * rows:
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int32)
    out_keys = np.empty(rows, np.int64)
    out_counts = np.empty(rows, np.int64)
    want_inverse = inverse.shape[0] > 0
    found = 0
    for row in range(rows):
        key = keys[row]
        for field in range(fields.shape[0]):
            shift, mask = fields[field, 1], fields[field, 2]
            group = maps[fields[field, 3] + ((key >> shift) & mask)]
            key = (key & ~(mask << shift)) | (group << shift)
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
    bits = 4
    while (1 << bits) < 3 * rows:
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int32)
    out_keys = np.empty((words, rows), np.int64)
    out_counts = np.empty(rows, np.int64)
    want_inverse = inverse.shape[0] > 0
    key = np.empty(words, np.int64)
    found = 0
    for row in range(rows):
        for w in range(words):
            key[w] = keys[w, row]
        for field in range(fields.shape[0]):
            w, shift, mask = fields[field, 0], fields[field, 1], fields[field, 2]
            group = maps[fields[field, 3] + ((key[w] >> shift) & mask)]
            key[w] = (key[w] & ~(mask << shift)) | (group << shift)
        mixed = np.uint64(0)
        for w in range(words):
            mixed = (mixed ^ np.uint64(key[w])) * _GOLDEN
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64((mixed * _GOLDEN) >> spread)
        while True:
            at = slots[slot]
            if at < 0:
                at = found
                slots[slot] = found
                for w in range(words):
                    out_keys[w, found] = key[w]
                out_counts[found] = counts[row]
                found += 1
                break
            same = True
            for w in range(words):
                same &= out_keys[w, at] == key[w]
            if same:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & last
        if want_inverse:
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
    held_keys: IntArray,  # (2 * axes + 1, rows): working space
    held_counts: IntArray,  # (2 * axes + 1, rows)
    slots: IntArray,  # (at least 3 * rows, a power of two)
) -> tuple[IntArray, IntArray, int]:
    """Count nodes as a prefix tree; return per node the records in classes below a size, and the classes."""
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
    scanned = 0
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
                source = where[axis + 1]
                target = 2 * axis + 1 if source != 2 * axis + 1 else 2 * axis + 2
                scanned += length[axis + 1]
                length[axis + 1] = _roll_axis(
                    held_keys[source], held_counts[source], length[axis + 1], axis, at[axis], level,
                    fields, starts, maps, slots, held_keys[target], held_counts[target],
                )  # fmt: skip
                where[axis + 1] = target
                at[axis] = level
        total = 0
        leaf = held_counts[where[axes]]
        for row in range(length[axes]):
            if leaf[row] < least_size:
                total += leaf[row]
        short[node] = total
        classes[node] = length[axes]
    return short, classes, scanned


@njit(cache=True, nogil=True)
def _roll_axis(
    keys: IntArray,
    counts: IntArray,
    rows: int,
    axis: int,
    low: int,
    high: int,
    fields: IntArray,
    starts: IntArray,
    maps: IntArray,
    slots: IntArray,
    out_keys: IntArray,
    out_counts: IntArray,
) -> int:
    """Roll every field of an axis up from one level to another; return the rows that remain."""
    first = 0
    while fields[first, 0] != axis:
        first += 1
    shift, mask = fields[first, 1], fields[first, 2]
    clear = ~(mask << shift)
    groups = maps[starts[first, low, high] :]
    bits = 4
    while (1 << bits) < 3 * rows:
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots[: last + 1] = -1
    found = 0
    for row in range(rows):
        key = keys[row]
        key = (key & clear) | (groups[(key >> shift) & mask] << shift)
        field = first + 1
        while field < fields.shape[0] and fields[field, 0] == axis:
            also, wide = fields[field, 1], fields[field, 2]
            group = maps[starts[field, low, high] + ((key >> also) & wide)]
            key = (key & ~(wide << also)) | (group << also)
            field += 1
        slot = np.int64((np.uint64(key) * _GOLDEN) >> spread)
        while True:
            place = slots[slot]
            if place < 0:
                slots[slot] = found
                out_keys[found] = key
                out_counts[found] = counts[row]
                found += 1
                break
            if out_keys[place] == key:
                out_counts[place] += counts[row]
                break
            slot = (slot + 1) & last
    return found
