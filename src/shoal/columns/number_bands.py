"""Bands for the numbers of a column: round and nested, with levels that each merge some values.

Evenly distributed numbers get bands of equal width, which doubles from level to level. At each level above
these, the smallest group joins its smaller neighbour, until two groups are left. Skewed numbers get bands
between round break points, with about the same number of records in each band.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray

FEW = 3  # a column with at most this number of distinct values gets a flat hierarchy
_FAIR = 0.85  # maximum share of the records in the largest group of the last level below the top
_CROWDED = 0.7  # the widest bands are left out if one of them has more than this share of the records
_JOINED = 5  # maximum number of groups at a level with joined bands
_SKEWED = 0.5  # numbers are skewed if one of eight bands of equal width has a larger share of the records
_FINEST = 128  # maximum number of bands at the finest level
_MANY = 40  # numbers with at least this range get bands of 5, 10, 20
_AGES = (1, 5, 10, 20)
_ROUND = (Decimal(1), Decimal("2.5"), Decimal(5), Decimal(10))


def bands_for(
    numbers: Sequence[Decimal], records: Sequence[int], *, are_ages: bool = False
) -> dict[str, Any] | None:
    """Return the entries of a hierarchy of bands; None if there are too few distinct numbers.

    >>> bands_for(range(0, 100), [1] * 100, are_ages=True)
    {'intervals': [5, 10, 20], 'split': [[40, 60, 80], [40, 80], [40]]}
    >>> bands_for([Decimal(n) / 2 for n in range(20)], [1] * 20)
    {'intervals': [1, 2, 4], 'split': 4}
    """
    values, inverse = np.unique(np.array(list(map(float, numbers))), return_inverse=True)
    if len(values) <= FEW:
        return None
    sizes = np.bincount(inverse, records, len(values)).astype(np.float64)
    exact: list[Decimal] = [Decimal(0)] * len(values)
    for number, index in zip(numbers, inverse.tolist(), strict=True):
        exact[index] = Decimal(number)
    with localcontext(prec=80):
        if are_ages and values[0] >= 0 and 15 < values[-1] <= 130:
            parts = len(np.unique(np.floor(values))) * 2 <= len(values)  # most ages have fractions
            widths = [Decimal(width) for width in (_AGES if parts else _AGES[1:])]
            ages = _equal(exact, sizes, widths, Decimal(0))
            if ages:
                return ages
        widths = _widths(exact)
        origin = _origin(exact, widths)
        equal = _equal(exact, sizes, widths, origin)
        if equal and len(equal["intervals"]) > 1 and not _is_skewed(values, sizes):
            return equal
        return _quantiles(exact, sizes) or equal


def useful(partitions: Sequence[IntArray], sizes: FloatArray) -> list[int]:
    """Return the levels, finest first, that merge some values and whose largest group is not too large.

    Each partition is a level: it has the group of each value. `sizes` has the records of each value.

    >>> useful([np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0, 0, 1]), np.zeros(3, int)], np.ones(3))
    [1]
    """
    total = sizes.sum()
    top = sizes.max(initial=0) / total if total else 0.0
    fair = max(_FAIR, (1 + top) / 2)  # one value alone may have most of the records
    levels, before = [], len(sizes)
    for level, groups in enumerate(partitions):
        shares = np.bincount(groups, sizes)
        group_count = int(np.count_nonzero(np.bincount(groups)))
        if 1 < group_count < before and shares.max() <= fair * total:
            levels.append(level)
            before = group_count
    return levels


def _widths(values: Sequence[Decimal]) -> list[Decimal]:
    """Return doubling widths. The first is round and larger than the mean distance between neighbours."""
    spread = values[-1] - values[0]
    least = max(spread / _FINEST, spread / (len(values) - 1) * Decimal("1.5"))
    scale = Decimal(10) ** least.adjusted()
    width = next(scale * factor for factor in _ROUND if scale * factor >= least)
    if width == Decimal("2.5"):  # 2, 4, 8 for few numbers, 5, 10, 20 for more
        width = Decimal(5) if spread >= _MANY or least > 2 else Decimal(2)
    widths = [width]
    while widths[-1] * 2 <= spread:
        widths.append(widths[-1] * 2)
    return widths


def _origin(values: Sequence[Decimal], widths: Sequence[Decimal]) -> Decimal:
    """Return where bands start: a multiple of the widest width, at most a little below the first value."""
    margin = max(widths[0] / 2, (values[-1] - values[0]) / 20)
    for width in reversed(widths):
        start = (values[0] / width).to_integral_value("ROUND_FLOOR") * width
        if values[0] - start < margin:
            return start
    starts_whole = values[0] == values[0].to_integral_value()
    return values[0] if widths[0] == 2 and starts_whole else start  # groups of two whole numbers


def _equal(
    values: Sequence[Decimal], sizes: FloatArray, widths: Sequence[Decimal], origin: Decimal
) -> dict[str, Any] | None:
    bands = np.array([int((value - origin) // widths[0]) for value in values], np.int64)
    numbered = [bands // int(width / widths[0]) for width in widths]
    partitions = [np.unique(groups, return_inverse=True)[1] for groups in numbered]
    levels = useful(partitions, sizes)
    if len(levels) > 2 and np.bincount(partitions[levels[-1]], sizes).max() > _CROWDED * sizes.sum():
        levels.pop()
    if not levels:
        return None
    widest = widths[levels[-1]]
    start = {} if origin % widest == 0 else {"origin": policy_number(origin)}
    joined = [
        [policy_number(origin + band * widest) for band in level]
        for level in _joined(numbered[levels[-1]], sizes)
    ]
    split = joined[0] if len(joined) == 1 else joined
    halves = {"split": split[0] if len(split) == 1 else split} if joined else {}
    return {"intervals": [policy_number(widths[level]) for level in levels], **start, **halves}


def _joined(bands: IntArray, sizes: FloatArray) -> list[list[int]]:
    """Return the bands at which groups begin, by level; the smallest group joins its smaller neighbour.

    >>> _joined(np.array([0, 1, 2, 4]), np.array([1.0, 5.0, 4.0, 2.0]))
    [[2, 4], [2]]
    """
    shares = np.bincount(np.unique(bands, return_inverse=True)[1], sizes).tolist()
    begins = np.unique(bands)[1:].tolist()
    levels, partitions = [], []
    while len(begins) > 1:
        least = shares.index(min(shares))
        neighbours = [index for index in (least - 1, least + 1) if 0 <= index < len(shares)]
        left = min(least, min(neighbours, key=shares.__getitem__))
        shares[left : left + 2] = [shares[left] + shares[left + 1]]
        del begins[left]
        if len(shares) <= _JOINED:
            levels.append(list(begins))
            partitions.append(np.searchsorted(begins, bands, side="right"))
    return [levels[level] for level in useful(partitions, sizes)]


def _is_skewed(values: FloatArray, sizes: FloatArray) -> bool:
    scaled = (values - values[0]) / (values[-1] - values[0])
    eighths = np.minimum((scaled * 8).astype(np.int64), 7)
    return bool(np.bincount(eighths, sizes).max() > _SKEWED * sizes.sum())


def _quantiles(values: Sequence[Decimal], sizes: FloatArray) -> dict[str, Any] | None:
    """Return levels of round break points; each level has about half as many as the level before."""
    shares = np.cumsum(sizes) / sizes.sum()
    bands = 32 if len(values) > 1000 else 16
    points: dict[int, Decimal] = {}  # by the index of the first value above the point
    for number in range(1, bands):
        low, high = (int(np.searchsorted(shares, (number + half) / bands - 1e-12)) for half in (-0.5, 0.5))
        high = min(high, len(values) - 1)
        for start, end in ((low, high),) if low < high else ((low - 1, low), (low, low + 1)):
            if 0 <= start < end < len(values):
                point = _roundest(values[start], values[end])
                if _digits(point) > 2 and _unit(point) * 500 < values[-1] - values[0]:
                    continue
                points.setdefault(_first_at(values, point, start, end), point)
    levels = _thinned(points, shares, bands)
    partitions = [np.searchsorted(level, np.arange(len(values)), side="right") for level in levels]
    useful_levels = useful([np.unique(groups, return_inverse=True)[1] for groups in partitions], sizes)
    first = [Decimal(0)] if values[0] == 0 else []
    cuts = [
        [policy_number(point) for point in (*first, *(points[index] for index in levels[n]))]
        for n in useful_levels
    ]
    return {"cuts": cuts} if cuts else None


def _first_at(values: Sequence[Decimal], point: Decimal, start: int, end: int) -> int:
    return next(index for index in range(start + 1, end + 1) if values[index] >= point)


def _thinned(points: Mapping[int, Decimal], shares: FloatArray, bands: int) -> list[list[int]]:
    """Return nested sets of break points for fewer and fewer bands: the roundest points near equal shares."""
    levels = [sorted(points)]
    while bands > 2 and len(levels[-1]) > 1:
        bands //= 2
        chosen = set()
        for number in range(1, bands):
            distance = {index: abs(shares[index - 1] - number / bands) for index in levels[-1]}
            nearest = min(distance.values())
            close = [index for index in levels[-1] if distance[index] <= max(nearest, 0.25 / bands)]
            chosen.add(min(close, key=lambda index: (_digits(points[index]), distance[index])))
        levels.append(sorted(chosen))
    return levels


def _digits(number: Decimal) -> int:
    """Return the number of digits of a number, without trailing zeros."""
    return len(number.normalize().as_tuple().digits)


def _unit(number: Decimal) -> Decimal:
    """Return the place value of the last digit that is not zero."""
    return Decimal((0, (1,), int(number.normalize().as_tuple().exponent)))


def _roundest(low: Decimal, high: Decimal) -> Decimal:
    """Return the roundest number that is above `low` and at most `high`.

    >>> [str(_roundest(Decimal(low), Decimal(high))) for low, high in ((7, 13), ("0.2", "0.7"), (3, 4))]
    ['10', '0.5', '4']
    """
    if low < 0 <= high:
        return Decimal(0)
    scale = Decimal(10) ** max(low.copy_abs(), high.copy_abs()).adjusted()
    for _ in range(40):
        for factor in (Decimal(10), Decimal(5), Decimal(2), Decimal(1)):
            step = scale * factor
            point = ((low / step).to_integral_value("ROUND_FLOOR") + 1) * step
            if point <= high:
                return point
        scale /= 10
    return high


def policy_number(number: Decimal) -> int | float:
    """Return a number as a policy writes it."""
    return int(number) if number == number.to_integral_value() else float(number)
