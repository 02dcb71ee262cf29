"""Compiled loops over counts: arrays in, arrays out, no Python objects.

Kernels that Python calls have an equivalent in NumPy (`numpy_kernels`). To roll up counts, keys are first
rewritten field by field, in simple loops that the compiler vectorizes. Equal keys are then found with an
open-addressing hash table whose slots contain row numbers of the result.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled
from shoal.core.counts import numpy_kernels
from shoal.core.counts.numpy_kernels import CLOSE, ENTROPY, MEASURE_BITS, MOST_L, RECURSIVE

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads packed keys over the table


@partial(compiled, numpy=numpy_kernels.roll_up_word)
def roll_up_word(
    keys: IntArray,  # (rows,)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word (0), shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) receives the position of each row in the result, or (0,) if it is not needed
) -> tuple[IntArray, IntArray]:
    """Map fields of one-word keys to groups and sum the counts of equal keys."""
    rows = keys.shape[0]
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten, fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    slots = np.empty(table_size(rows), np.int32)
    out_keys = np.empty(rows, np.int64)
    out_counts = np.empty(rows, np.int64)
    distinct = group(rewritten, counts, slots, out_keys, out_counts, inverse)
    return out_keys[:distinct].copy(), out_counts[:distinct].copy()


@partial(compiled, numpy=numpy_kernels.roll_up_words)
def roll_up_words(
    keys: IntArray,  # (words, rows)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word, shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) receives the position of each row in the result, or (0,) if it is not needed
) -> tuple[IntArray, IntArray]:
    """Map fields of keys of several words to groups and sum the counts of equal keys."""
    words, rows = keys.shape
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten[fields[field, 0]], fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    size = table_size(rows)
    slots = np.full(size, -1, np.int32)
    out_keys = np.empty((words, rows), np.int64)
    out_counts = np.empty(rows, np.int64)
    distinct = 0
    for row in range(rows):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = (mixed ^ np.uint64(rewritten[w, row])) * _GOLDEN
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed) & (size - 1)
        while True:
            at = slots[slot]
            if at < 0:
                at = distinct
                slots[slot] = distinct
                for w in range(words):
                    out_keys[w, distinct] = rewritten[w, row]
                out_counts[distinct] = counts[row]
                distinct += 1
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
    return out_keys[:, :distinct].copy(), out_counts[:distinct].copy()


@partial(compiled, numpy=numpy_kernels.rewrite)
def rewrite(keys: IntArray, shift: int, mask: int, groups: IntArray) -> None:
    """Replace one field of every key by its group."""
    clear = ~(mask << shift)
    for row in range(keys.shape[0]):
        key = keys[row]
        keys[row] = (key & clear) | (groups[(key >> shift) & mask] << shift)


@partial(compiled, numpy=numpy_kernels.table_size)
def table_size(rows: int) -> int:
    """Return a power of two that leaves two thirds of the hash table empty."""
    size = 16
    while size < 3 * rows:
        size *= 2
    return size


@partial(compiled, numpy=numpy_kernels.group)
def group(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,  # of the length that table_size returns
    out_keys: IntArray,
    out_counts: IntArray,
    inverse: IntArray,
) -> int:
    """Sum the counts of equal keys, in order of first appearance; return the number of distinct keys."""
    bits = 4
    while (1 << bits) < slots.shape[0]:
        bits += 1
    spread = np.uint64(64 - bits)
    last = slots.shape[0] - 1
    fill_inverse = inverse.shape[0] > 0
    slots[:] = -1
    distinct = 0
    for row in range(keys.shape[0]):
        key = keys[row]
        slot = np.int64((np.uint64(key) * _GOLDEN) >> spread)
        while True:
            at = slots[slot]
            if at < 0:
                at = distinct
                slots[slot] = distinct
                out_keys[distinct] = key
                out_counts[distinct] = counts[row]
                distinct += 1
                break
            if out_keys[at] == key:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & last
        if fill_inverse:
            inverse[row] = at
    return distinct


@partial(compiled, numpy=numpy_kernels.pack, sorts=False)
def pack(keys: IntArray, fields: IntArray, words: int) -> IntArray:
    """Move fields (word, shift, mask, new word, new shift) of keys (words, rows) to new keys."""
    rows = keys.shape[1]
    packed = np.zeros((words, rows), np.int64)
    for field in range(fields.shape[0]):
        word, shift, mask, new_word, new_shift = fields[field]
        for row in range(rows):
            packed[new_word, row] |= ((keys[word, row] >> shift) & mask) << new_shift
    return packed


@partial(compiled, numpy=numpy_kernels.add_up_cells, sorts=False)
def add_up_cells(keys: IntArray, counts: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Sum the counts of equal keys below `size` in an array of cells; return the keys in order."""
    cells = np.zeros(size, np.int64)
    for row in range(keys.shape[0]):
        cells[keys[row]] += counts[row]
    distinct = 0
    for cell in range(size):
        distinct += cells[cell] > 0
    out_keys = np.empty(distinct, np.int64)
    out_counts = np.empty(distinct, np.int64)
    at = 0
    for cell in range(size):
        if cells[cell] > 0:
            out_keys[at] = cell
            out_counts[at] = cells[cell]
            at += 1
    return out_keys, out_counts


class Output(NamedTuple):
    """The histograms of several nodes, one after the other."""

    kept: int  # the bits of a key that identify a class; the other bits are a sensitive code. -1: no code
    ends: IntArray  # (nodes + 1,): first the number of nodes, then the end of each node's values
    classes: IntArray  # (nodes,)
    values: IntArray  # (room,): the measures of classes, ascending within a node
    records: IntArray  # (room,): the records in classes of that measure
    tally: IntArray  # zeros; values below its length are counted here instead of being sorted
    kind: int  # the kind of diversity
    c: float
    steps: int


@partial(compiled, numpy=numpy_kernels.spread_classes)
def spread_classes(
    keys: IntArray,  # (rows,)
    counts: IntArray,  # (rows,)
    slots: IntArray,
    joint: IntArray,  # (rows,): working space, like the next two
    distinct: IntArray,
    sizes: IntArray,
    output: Output,
) -> bool:
    """Append the histogram of a node to the output; return False if the output is full.

    With a sensitive code, the measure of a class combines its size and its l.
    """
    node = output.ends[0]
    begin = output.ends[node] if node > 0 else 0
    values, records = output.values[begin:], output.records[begin:]
    if output.kept == -1:
        classes = keys.shape[0]
        used = _spread(counts, counts, output.tally, values, records)
    else:
        rows = keys.shape[0]
        for row in range(rows):
            joint[row] = keys[row] & output.kept
        inverse = np.empty(rows, np.int64)
        classes = group(joint[:rows], counts, slots[: table_size(rows)], distinct, sizes, inverse)
        if values.shape[0] < classes:
            return False
        distinct[:classes] = 0
        for row in range(rows):
            distinct[inverse[row]] += 1
        measure_diversity(
            inverse, counts, sizes[:classes], distinct[:classes], output.kind, output.c, output.steps
        )
        for row in range(classes):
            joint[row] = (sizes[row] << MEASURE_BITS) | distinct[row]
        table = slots[: table_size(classes)]
        used = group(joint[:classes], sizes[:classes], table, values, records, inverse[:0])
        _sort(values[:used], records[:used])
    if used < 0:
        return False
    output.classes[node] = classes
    output.ends[node + 1] = begin + used
    output.ends[0] = node + 1
    return True


@partial(compiled, numpy=numpy_kernels.measure_diversity)
def measure_diversity(
    rows: IntArray,  # (entries,): the class of each entry, which is a sensitive value in a class
    counts: IntArray,  # (entries,): the number of its records
    sizes: IntArray,  # (classes,)
    measures: IntArray,  # (classes,): on entry the number of distinct values, on return the l in steps
    kind: int,
    c: float,
    steps: int,
) -> None:
    """Measure the l of each class: distinct values, exponential of the entropy, or the l for a given c."""
    if kind == ENTROPY:
        sums = np.zeros(sizes.shape[0])
        for row in range(rows.shape[0]):
            sums[rows[row]] += counts[row] * np.log(counts[row])
        for group_ in range(sizes.shape[0]):
            entropy = np.log(sizes[group_]) - sums[group_] / sizes[group_] + CLOSE
            l = max(steps, int(np.exp(entropy) * steps))
            if entropy >= np.log((l + 1) / steps):
                l += 1
            elif entropy < np.log(l / steps):
                l -= 1
            measures[group_] = max(steps, min(l, measures[group_] * steps))
    if kind == RECURSIVE:
        ends = np.cumsum(measures)
        ordered = np.empty(rows.shape[0], np.int64)
        for row in range(rows.shape[0]):
            ends[rows[row]] -= 1  # ends become starts
            ordered[ends[rows[row]]] = counts[row]
        for group_ in range(sizes.shape[0]):
            inside = ordered[ends[group_] : ends[group_] + measures[group_]]
            _sort(inside, inside)
            tail = 0
            l = 0
            for position in range(inside.shape[0]):  # from the least frequent value
                tail += inside[position]
                if inside[inside.shape[0] - 1] < c * tail:
                    l = inside.shape[0] - position
                    break
            measures[group_] = l
    for group_ in range(sizes.shape[0]):
        measures[group_] = min(measures[group_], MOST_L)


@compiled
def _sort(keys: IntArray, values: IntArray) -> None:
    """Sort keys, and the values with them, in place. Most arrays are short, so Shell sort is fast enough."""
    gap = 1
    while gap < keys.shape[0] // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for row in range(gap, keys.shape[0]):
            key = keys[row]
            value = values[row]
            at = row
            while at >= gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                values[at] = values[at - gap]
                at -= gap
            keys[at] = key
            values[at] = value
        gap //= 3


@compiled
def _spread(
    values: IntArray, weights: IntArray, tally: IntArray, out_values: IntArray, out_weights: IntArray
) -> int:
    """Sum weights by value, ascending; return the number of distinct values, or -1 if the output is full."""
    distinct = 0
    greatest = 0
    for row in range(values.shape[0]):
        value = values[row]
        if value < tally.shape[0]:
            distinct += tally[value] == 0
            tally[value] += weights[row]
            greatest = max(greatest, value)
    fits = distinct <= out_values.shape[0]
    position = 0
    for value in range(greatest + 1):
        if tally[value] > 0:
            if fits:
                out_values[position] = value
                out_weights[position] = tally[value]
                position += 1
            tally[value] = 0
    if not fits:
        return -1
    for row in range(values.shape[0]):
        if values[row] >= tally.shape[0]:
            distinct = _insert(values[row], weights[row], distinct, out_values, out_weights)
            if distinct < 0:
                return -1
    return distinct


@compiled
def sum_by_value(
    begins: IntArray,  # (nodes + 1,)
    values: IntArray,
    records: IntArray,
    tally: IntArray,  # zeros
    out_begins: IntArray,  # (nodes + 1,): zeros
    out_values: IntArray,
    out_records: IntArray,
) -> int:
    """Sum the records of each node by value; return the number of sums."""
    used = 0
    for node in range(begins.shape[0] - 1):
        inside = slice(begins[node], begins[node + 1])
        used += _spread(values[inside], records[inside], tally, out_values[used:], out_records[used:])
        out_begins[node + 1] = used
    return used


@compiled
def _insert(value: int, weight: int, length: int, out_values: IntArray, out_weights: IntArray) -> int:
    """Insert a weight into ascending values; return the new length, or -1 if the array is full."""
    position = length
    while position > 0 and out_values[position - 1] > value:
        position -= 1
    if position > 0 and out_values[position - 1] == value:
        out_weights[position - 1] += weight
        return length
    if length == out_values.shape[0]:
        return -1
    for later in range(length, position, -1):
        out_values[later] = out_values[later - 1]
        out_weights[later] = out_weights[later - 1]
    out_values[position] = value
    out_weights[position] = weight
    return length + 1
