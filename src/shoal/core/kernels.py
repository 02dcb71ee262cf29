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
    shift: int,
    mask: int,
    groups: IntArray,  # group of each code of the field
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Rewrite one field of one-word keys through a map and add up the rows that became equal."""
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
    clear = ~(mask << shift)
    found = 0
    for row in range(rows):
        key = keys[row]
        key = (key & clear) | (groups[(key >> shift) & mask] << shift)
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
    word: int,
    shift: int,
    mask: int,
    groups: IntArray,  # group of each code of the field
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Do the same for keys of several words; the field lies in one of them."""
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
    clear = ~(mask << shift)
    key = np.empty(words, np.int64)
    found = 0
    for row in range(rows):
        mixed = np.uint64(0)
        for w in range(words):
            part = keys[w, row]
            if w == word:
                part = (part & clear) | (groups[(part >> shift) & mask] << shift)
            key[w] = part
            mixed = (mixed ^ np.uint64(part)) * _GOLDEN
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
def tabulate(
    keys: IntArray,  # (rows,): one-word keys, every axis at its lowest level
    counts: IntArray,  # (rows,)
    levels: IntArray,  # (axes,): the levels of each axis, slowest first
    members: IntArray,  # (fields, 3): axis, shift, mask of each field that an axis moves
    starts: IntArray,  # (fields, levels): where the map that leads to a level begins
    maps: IntArray,  # all maps, one after the other
    least_size: int,
) -> tuple[IntArray, IntArray, int]:
    """Walk a whole lattice; per node the records in classes below a size, and the classes; and rows read."""
    axes = levels.shape[0]
    rows = keys.shape[0]
    bits = 4
    while (1 << bits) < 3 * rows:
        bits += 1
    slots = np.empty(1 << bits, np.int32)
    # Depth d holds the counts with the first d axes at their present levels; each depth has two
    # buffers, so that one level rolls up from the one before. At level 0 a depth is the one above it.
    held_keys = np.empty((2 * axes + 1, rows), np.int64)
    held_counts = np.empty((2 * axes + 1, rows), np.int64)
    held_keys[0] = keys
    held_counts[0] = counts
    where = np.zeros(axes + 1, np.int64)
    length = np.full(axes + 1, rows, np.int64)
    at = np.zeros(axes, np.int64)
    nodes = 1
    for axis in range(axes):
        nodes *= levels[axis]
    short = np.empty(nodes, np.int64)
    classes = np.empty(nodes, np.int64)
    scanned = 0
    for node in range(nodes):
        if node > 0:
            axis = axes - 1
            while at[axis] + 1 == levels[axis]:
                at[axis] = 0
                axis -= 1
            at[axis] += 1
            source = where[axis + 1]
            target = 2 * axis + 1 if source != 2 * axis + 1 else 2 * axis + 2
            scanned += length[axis + 1]
            found = _roll_axis(
                held_keys[source], held_counts[source], length[axis + 1], axis, at[axis], members, starts,
                maps, slots, held_keys[target], held_counts[target],
            )  # fmt: skip
            for deeper in range(axis + 1, axes + 1):
                where[deeper] = target
                length[deeper] = found
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
    level: int,
    members: IntArray,
    starts: IntArray,
    maps: IntArray,
    slots: IntArray,
    out_keys: IntArray,
    out_counts: IntArray,
) -> int:
    """Roll every field of an axis up to a level from the one below; return the rows that remain."""
    first = 0
    while members[first, 0] != axis:
        first += 1
    rest = first + 1
    shift, mask = members[first, 1], members[first, 2]
    clear = ~(mask << shift)
    groups = maps[starts[first, level] :]
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
        field = rest
        while field < members.shape[0] and members[field, 0] == axis:
            also, wide = members[field, 1], members[field, 2]
            group = maps[starts[field, level] + ((key >> also) & wide)]
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
