"""NumPy equivalents of the kernels, for small inputs in a process that has not loaded Numba.

They return the same arrays in the same order, except that `group` returns keys in ascending order. Equal keys
are found by sorting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import IntArray

if TYPE_CHECKING:
    from shoal.core.counts.kernels import Output

DISTINCT, ENTROPY, RECURSIVE = range(3)  # kinds of diversity
MEASURE_BITS = 24  # width of l in a number that combines a class's size and l; the size is in the bits above
MOST_L = (1 << MEASURE_BITS) - 1
CLOSE = 1e-9  # tolerance of the models of l-diversity when they compare entropies


def roll_up_word(
    keys: IntArray, counts: IntArray, fields: IntArray, maps: IntArray, inverse: IntArray
) -> tuple[IntArray, IntArray]:
    """Map fields of one-word keys to groups and sum the counts of equal keys."""
    words, sums = roll_up_words(keys.reshape(1, -1), counts, fields, maps, inverse)
    return words[0], sums


def roll_up_words(
    keys: IntArray, counts: IntArray, fields: IntArray, maps: IntArray, inverse: IntArray
) -> tuple[IntArray, IntArray]:
    """Map fields of keys of several words to groups and sum the counts of equal keys."""
    rewritten = keys.copy()
    for word, shift, mask, begin in fields:
        rewrite(rewritten[word], shift, mask, maps[begin:])
    first, row = _first_rows(rewritten)
    if len(inverse):
        inverse[:] = row
    return np.ascontiguousarray(rewritten[:, first]), _sums(row, counts, len(first))


def rewrite(keys: IntArray, shift: int, mask: int, groups: IntArray) -> None:
    """Replace one field of every key by its group."""
    codes = (keys >> shift) & mask
    keys &= ~(mask << shift)
    keys |= groups[codes] << shift


def table_size(rows: int) -> int:
    """Return 0, because NumPy needs no hash table."""
    return 0


def group(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,
    out_keys: IntArray,
    out_counts: IntArray,
    inverse: IntArray,
) -> int:
    """Sum the counts of equal keys, in ascending order; return the number of distinct keys."""
    if not len(keys):
        return 0
    order = np.argsort(keys)
    ordered = keys[order]
    is_first = np.empty(len(keys), np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    out_keys[: len(starts)] = ordered[starts]
    np.add.reduceat(counts[order], starts, out=out_counts[: len(starts)])
    if len(inverse):
        inverse[order] = np.cumsum(is_first) - 1
    return len(starts)


def pack(keys: IntArray, fields: IntArray, words: int) -> IntArray:
    """Move fields (word, shift, mask, new word, new shift) of keys (words, rows) to new keys."""
    packed = np.zeros((words, keys.shape[1]), np.int64)
    for word, shift, mask, new_word, new_shift in fields:
        packed[new_word] |= ((keys[word] >> shift) & mask) << new_shift
    return packed


def add_up_cells(keys: IntArray, counts: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Sum the counts of equal keys below `size` in an array of cells; return the keys in order."""
    cells = _sums(keys, counts, size)
    filled = np.flatnonzero(cells)
    return filled, cells[filled]


def spread_classes(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,
    joint: IntArray,
    distinct: IntArray,
    sizes: IntArray,
    output: Output,
) -> bool:
    """Append the histogram of a node to the output; return False if the output is full."""
    node = int(output.ends[0])
    begin = int(output.ends[node]) if node else 0
    measures, weights = counts, counts
    if output.kept != -1:
        inverse = np.empty(len(keys), np.int64)
        classes = group(keys & output.kept, counts, slots, distinct, sizes, inverse)
        weights, l = sizes[:classes], np.bincount(inverse, minlength=classes)
        measure_diversity(inverse, counts, weights, l, output.kind, output.c, output.steps)
        measures = (weights << MEASURE_BITS) | l
    values, row = np.unique(measures, return_inverse=True)
    end = begin + len(values)
    if end > len(output.values):
        return False
    output.values[begin:end], output.records[begin:end] = values, _sums(row, weights, len(values))
    output.classes[node], output.ends[node + 1], output.ends[0] = len(measures), end, node + 1
    return True


def measure_diversity(
    rows: IntArray, counts: IntArray, sizes: IntArray, measures: IntArray, kind: int, c: float, steps: int
) -> None:
    """Measure the l of each class: distinct values, exponential of the entropy, or the l for a given c."""
    if kind == ENTROPY:
        sums = np.bincount(rows, counts * np.log(counts), len(sizes))
        entropy = np.log(sizes) - sums / sizes + CLOSE
        l = np.maximum(steps, (np.exp(entropy) * steps).astype(np.int64))
        more = entropy >= np.log((l + 1) / steps)
        less = ~more & (entropy < np.log(l / steps))
        measures[:] = np.maximum(steps, np.minimum(l + more - less, measures * steps))
    if kind == RECURSIVE:
        order = np.lexsort((counts, rows))  # in each class, from the least frequent value
        totals, ends = np.cumsum(counts[order]), np.cumsum(measures)
        row = rows[order]
        tails = totals - (totals[ends - 1] - sizes)[row]
        enough = counts[order][ends - 1][row] < c * tails  # once true, it stays true, because tails grow
        measures[:] = np.bincount(row[enough], minlength=len(sizes))
    np.minimum(measures, MOST_L, out=measures)


def _first_rows(words: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct key, ascending, and the number of each row's key."""
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words)
    ordered = words[:, order]
    is_first = np.ones(len(order), np.bool_)
    np.any(ordered[:, 1:] != ordered[:, :-1], axis=0, out=is_first[1:])
    if not len(order):
        return order, order
    firsts = np.minimum.reduceat(order, np.flatnonzero(is_first))
    appearance = np.argsort(firsts)
    rank = np.empty(len(firsts), np.int64)
    rank[appearance] = np.arange(len(firsts))
    row = np.empty(len(order), np.int64)
    row[order] = rank[np.cumsum(is_first) - 1]
    return firsts[appearance], row


def _sums(row: IntArray, counts: IntArray, length: int) -> IntArray:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, row, counts)
    return sums
