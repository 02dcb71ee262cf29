"""Association: how much two columns tell of each other, and how far two distributions are apart.

Cramer's V is corrected for bias as in Bergsma (2013), A bias-correction for Cramer's V and Tschuprow's T:
without it a column of many values seems to tell of every other, and generalizing it seems to lose that.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import FloatArray, IntArray

_MOST_CELLS = 1 << 22  # that are counted one by one


def entropy(records: IntArray) -> float:
    """Return the entropy of a distribution in bits.

    >>> entropy(np.array([5, 5, 0])), entropy(np.array([7]))
    (1.0, 0.0)
    """
    shares = records[records > 0] / max(1, records.sum())
    return float(abs((shares * np.log2(shares)).sum()))


def total_variation(one: IntArray, other: IntArray) -> float:
    """Return half the sum of differences between two distributions: from 0, alike, to 1, disjoint.

    >>> total_variation(np.array([5, 5]), np.array([10, 0]))
    0.5
    """
    return float(np.abs(one / max(1, one.sum()) - other / max(1, other.sum())).sum() / 2)


def crossed(a: IntArray, b: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Add up the records of each pair of codes; return the codes and the records of those that occur."""
    width = int(b.max(initial=0)) + 1
    keys = a.astype(np.int64) * width + b
    if (int(a.max(initial=0)) + 1) * width <= _MOST_CELLS:
        cells = np.bincount(keys, sizes)
        found = np.flatnonzero(cells)
        records = cells[found]
    else:
        found, place = np.unique(keys, return_inverse=True)
        records = np.bincount(place, sizes)
    return found // width, found % width, records.astype(np.int64)


def cramers_v(a: IntArray, b: IntArray, sizes: IntArray) -> float:
    """Return Cramer's V, corrected for bias, of the codes of two columns.

    >>> half = np.array([0, 0, 1, 1])
    >>> cramers_v(half, half, half + 1), cramers_v(half, np.array([0, 1, 0, 1]), np.full(4, 7))
    (1.0, 0.0)
    """
    a, b, records = crossed(a, b, sizes)
    number = int(records.sum())
    if number < 2:
        return 0.0
    rows, columns = np.bincount(a, records), np.bincount(b, records)
    squared = float((records * (records / (rows[a] * columns[b]))).sum()) - 1
    r, c = np.count_nonzero(rows) - 1, np.count_nonzero(columns) - 1
    squared = max(0.0, squared - r * c / (number - 1))
    most = min(r - r * r / (number - 1), c - c * c / (number - 1))
    if squared < 1e-12 or most <= 0:  # below what the sum tells from nothing
        return 0.0
    return float(round(min(1.0, np.sqrt(squared / most)), 12))


def ranks(positions: FloatArray, records: IntArray) -> FloatArray:
    """Return the rank of each code's records by their position: those alike share the mean of their ranks.

    >>> ranks(np.array([30.0, 10.0, 10.0]), np.array([2, 1, 1])).tolist()
    [3.5, 1.5, 1.5]
    """
    alike, place = np.unique(positions, return_inverse=True)
    held = np.bincount(place, records, len(alike))
    middle: FloatArray = np.cumsum(held) - (held - 1) / 2
    return middle[place]


def spearman(a: IntArray, b: IntArray, sizes: IntArray, x: FloatArray, y: FloatArray) -> float | None:
    """Return Spearman's correlation of two columns whose codes have positions; None where one is constant.

    Records of which one position is not known (nan) are left out.
    """
    known = np.isfinite(x[a]) & np.isfinite(y[b])
    a, b, records = crossed(a[known], b[known], sizes[known])
    first = ranks(x, np.bincount(a, records, len(x)).astype(np.int64))[a]
    second = ranks(y, np.bincount(b, records, len(y)).astype(np.int64))[b]
    if not len(records):
        return None
    first, second = first - np.average(first, weights=records), second - np.average(second, weights=records)
    spread = float((records * first**2).sum()) * float((records * second**2).sum())
    return float(round((records * first * second).sum() / np.sqrt(spread), 12)) if spread > 0 else None
