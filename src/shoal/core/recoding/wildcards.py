"""Local suppression with wildcards: a blanked cell matches every value, as in OLA (El Emam et al. 2009).

Two records match if they have, in every column, the same label or a blanked cell in one of them. A record is
hidden if at least k records match it, including itself. Records that match one record need not match each
other. So there are no classes, and only the number of matching records is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts.counts import numbered, packed


def match_sizes(codes: Sequence[IntArray], blanks: BoolArray, sizes: IntArray) -> IntArray:
    """Return the number of records that match each class; `blanks` is (columns, classes).

    >>> codes = [np.array([0, 0, 1]), np.array([0, 1, 1])]
    >>> blanks = np.array([[False, False, False], [False, True, False]])
    >>> match_sizes(codes, blanks, np.array([2, 1, 4])).tolist()
    [3, 3, 4]
    """
    patterns, pattern_of = np.unique(blanks, axis=1, return_inverse=True)
    members = [np.flatnonzero(pattern_of.reshape(-1) == pattern) for pattern in range(patterns.shape[1])]
    result = np.zeros(len(sizes), np.int64)
    for number, rows in enumerate(members):
        for other in range(number + 1):
            all_rows = np.concatenate((rows, members[other]))
            visible = np.flatnonzero(~(patterns[:, number] | patterns[:, other]))
            visible_keys = numbered(
                packed([np.zeros(len(all_rows), np.int64), *(codes[c][all_rows] for c in visible.tolist())])
            )
            keys, other_keys = visible_keys[: len(rows)], visible_keys[len(rows) :]
            length = int(visible_keys.max(initial=-1)) + 1
            result[rows] += np.bincount(other_keys, sizes[members[other]], length).astype(np.int64)[keys]
            if other != number:
                result[members[other]] += np.bincount(keys, sizes[rows], length).astype(np.int64)[other_keys]
    return result
