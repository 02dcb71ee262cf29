"""Grouping power: how strongly each level of each column groups records, and which nodes it speaks for.

The average group size of a level is that of the node at which the column has this level and all others are
as they are. A level's relative importance is its average group size over that of the level below; at level 0
it is one over the relative importance of level 1 (Pilalidou and Vassiliadis).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from heapq import heappop, heappush
from itertools import pairwise
from math import fsum, prod
from operator import mul

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.lattice import Lattice
from shoal.core.problem import Problem
from shoal.errors import UsageError
from shoal.policies.shares import decimal_point


@dataclass(frozen=True)
class Grouping:
    """The grouping power of each column's levels."""

    groups: tuple[tuple[int, ...], ...]  # classes, per column and level
    sizes: tuple[tuple[float, ...], ...]  # average group size
    importances: tuple[tuple[float, ...], ...]


def grouping_of(problem: Problem) -> Grouping:
    """Count each column's levels, the other columns as they are."""
    groups = []
    for column, hierarchy in enumerate(problem.hierarchies):
        levels = range(1, hierarchy.height + 1)
        rolled = (problem.counts.roll_up({column: hierarchy.groups(level)}) for level in levels)
        groups.append((len(problem.counts), *map(len, rolled)))
    sizes = tuple(tuple(problem.records / number for number in column) for column in groups)
    return Grouping(tuple(groups), sizes, tuple(_importances(column) for column in sizes))


def _importances(sizes: tuple[float, ...]) -> tuple[float, ...]:
    if len(sizes) == 1:
        return (1.0,)
    ratios = [higher / lower for lower, higher in pairwise(sizes)]
    return (1 / ratios[0], *ratios)


_DIGITS = 9  # after the point: scores that differ by less are equal
_LONGEST = 60  # digits of a share

Score = Callable[[FloatArray, FloatArray], FloatArray]
SCORES: dict[str, Score] = {
    "weighted-log": lambda sizes, importances: np.log2(sizes) * importances,
    "sizes": lambda sizes, importances: sizes,
    "importances": lambda sizes, importances: importances,
    "products": lambda sizes, importances: sizes * importances,
}


def scores(lattice: Lattice, grouping: Grouping, score: str) -> FloatArray:
    """Score every node by the sum over its columns, in the lattice's shape; the best have the most."""
    return lattice.sums(_parts(grouping, score))


def _parts(grouping: Grouping, score: str) -> list[FloatArray]:
    """Score each column's levels."""
    pairs = zip(grouping.sizes, grouping.importances, strict=True)
    return [SCORES[score](np.array(sizes), np.array(found)) for sizes, found in pairs]


def ranked(lattice: Lattice, grouping: Grouping, score: str) -> IntArray:
    """Return all nodes, by their place in the lattice: the top, then the best, of equals the highest."""
    found = scores(lattice, grouping, score).ravel()
    heights = lattice.sums([np.arange(height + 1.0) for height in lattice.heights]).ravel()
    order = np.lexsort((-heights.astype(np.int32), -found.round(_DIGITS)))
    top = lattice.size - 1  # which answers wherever anything does
    return np.concatenate([[top], order[order != top]])


_Entry = tuple[float, int, int, float, tuple[int, ...], int]


def best_first(lattice: Lattice, grouping: Grouping, score: str) -> Iterator[int]:
    """Yield nodes in the order of `ranked`, one by one; for a lattice too large to be ranked.

    Each axis has its levels in the order of their scores, of equals the highest first. A node but the best
    has one node before it: that with the last axis that is not at its best one better. So each comes once,
    after one that is no worse.
    """
    top = lattice.size - 1
    yield top
    parts = _parts(grouping, score)
    sums = [sum((parts[column] for column in axis), np.zeros(1)) for axis in lattice.axes]
    order = [np.lexsort((-np.arange(len(levels)), -levels)).tolist() for levels in sums]
    steps = [(-levels[places]).tolist() for levels, places in zip(sums, order, strict=True)]
    strides = [prod(lattice.shape[axis + 1 :]) for axis in range(len(order))]
    members = [len(axis) for axis in lattice.axes]

    def entry(total: float, places: tuple[int, ...], last: int) -> _Entry:
        levels = [found[at] for found, at in zip(order, places, strict=True)]
        number = sum(map(mul, levels, strides))
        return round(total, _DIGITS), -sum(map(mul, levels, members)), number, total, places, last

    waiting = [entry(fsum(step[0] for step in steps), (0,) * len(order), 0)]
    while waiting:
        *_, number, total, places, last = heappop(waiting)
        if number != top:
            yield number
        for axis in range(last, len(order)):
            at = places[axis] + 1
            if at < len(order[axis]):
                worse = total + (steps[axis][at] - steps[axis][at - 1])
                heappush(waiting, entry(worse, (*places[:axis], at, *places[axis + 1 :]), axis))


def share_of(share: float | str) -> Fraction:
    """Read a share of the lattice: 10%, 0.1, or 10 for percent."""
    text = decimal_point(str(share).strip())
    try:
        decimal = Decimal(text.removesuffix("%"))
        bounded = len(text) <= _LONGEST and decimal.is_finite() and abs(decimal.adjusted()) <= _LONGEST
        number = Fraction(decimal) if bounded else Fraction(0)  # 1e-300000000 would be a long time coming
    except (ValueError, ArithmeticError):
        number = Fraction(0)
    if "%" in text or not set(".eE") & set(text):
        number /= 100
    if not 0 < number <= 1:
        message = f"share must be a part of the lattice, such as 10% or 0.1, got {share!r}."
        raise UsageError(message)
    return number
