"""The cuts inside each class of the head: which there are, and which of them count.

A cut *counts* in a class when it has k records on both sides of it, or could be worth what it suppresses:
the least cost of the class is reached with such cuts alone (the lemma of useless cuts).
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.cut_tables import CodeArray, count_codes

# Of each class the cuts inside it, column after column: where those of a column begin (classes, columns + 1),
# the first code of a column (classes, columns), and of each entry the cut, the records on its left and
# whether it counts.
Entries = tuple[IntArray, IntArray, IntArray, IntArray, BoolArray]


@compiled
def entries_of(
    codes: CodeArray,
    sizes: IntArray,
    begins: IntArray,
    totals: IntArray,  # (classes,): records
    below: IntArray,  # (columns, codes): the cut below each code
    cuts: int,
    k: int,
    records: int,
    minority: bool,
) -> Entries:
    """List the cuts inside each class."""
    columns = codes.shape[0]
    classes = begins.shape[0] - 1
    at = np.zeros((classes, columns + 1), np.int64)
    lows = np.zeros((classes, columns), np.int64)
    cut = np.empty(8 * cuts, np.int64)
    left = np.empty(8 * cuts, np.int64)
    counts = np.empty(8 * cuts, np.bool_)
    in_size = np.zeros(below.shape[1], np.int64)
    found = 0
    for group in range(classes):
        start, stop = begins[group], begins[group + 1]
        at[group, 0] = found
        if found + cuts > cut.shape[0]:
            cut = np.concatenate((cut, np.empty_like(cut)))
            left = np.concatenate((left, np.empty_like(left)))
            counts = np.concatenate((counts, np.empty_like(counts)))
        for column in range(columns):
            low, high = count_codes(codes[column], sizes, start, stop, in_size)
            lows[group, column] = low
            left_size = 0
            for code in range(low, high):
                left_size += in_size[code]
                in_size[code] = 0
                small = min(left_size, totals[group] - left_size)
                large = totals[group] - small
                cut[found] = below[column, code + 1]
                left[found] = left_size
                counts[found] = small >= k or (not minority and 2 * large + small > records and large >= k)
                found += 1
            in_size[high] = 0
            at[group, column + 1] = found
    return at, lows, cut[:found], left[:found], counts[:found]
