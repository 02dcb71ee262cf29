"""Ranking of nodes by grouping power, and the order in which the nodes of a profile are counted.

A level has much grouping power if it merges many classes into few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from heapq import heappop, heappush, merge
from itertools import count, islice, pairwise
from math import fsum, prod
from operator import mul

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.lattice.lattice import MOST_AXES, Lattice
from shoal.core.problem import Problem
from shoal.errors import UnknownName, UsageError, invalid
from shoal.policy.limits import decimal_point
from shoal.wording import number_text
from shoal.workflow.profile.tabulate import Tabulation


@dataclass(frozen=True)
class Grouping:
    """The grouping power of each column's levels."""

    groups: tuple[tuple[int, ...], ...]  # classes, per column and level
    sizes: tuple[tuple[float, ...], ...]  # average group size
    importances: tuple[tuple[float, ...], ...]


def grouping_of(problem: Problem) -> Grouping:
    """Count the classes at each level of each column, with all other columns at level 0."""
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


_DIGITS = 9  # decimal places of scores: smaller differences are ties
_LONGEST = 60  # maximum number of digits of a share

Score = Callable[[FloatArray, FloatArray], FloatArray]
SCORES: dict[str, Score] = {
    "weighted-log": lambda sizes, importances: np.log2(sizes) * importances,
    "sizes": lambda sizes, importances: sizes,
    "importances": lambda sizes, importances: importances,
    "products": lambda sizes, importances: sizes * importances,
}


def scores(lattice: Lattice, grouping: Grouping, score: str) -> FloatArray:
    """Return every node's score, a sum over its columns, in the lattice's shape; higher is better."""
    return lattice.sums(_parts(grouping, score))


def _parts(grouping: Grouping, score: str) -> list[FloatArray]:
    pairs = zip(grouping.sizes, grouping.importances, strict=True)
    return [SCORES[score](np.array(sizes), np.array(importances)) for sizes, importances in pairs]


def ranked(lattice: Lattice, grouping: Grouping, score: str) -> IntArray:
    """Return the numbers of all nodes: the top, then by descending score; in a tie, higher nodes first."""
    values = scores(lattice, grouping, score).ravel()
    heights = lattice.sums([np.arange(height + 1.0) for height in lattice.heights]).ravel()
    order = np.lexsort((-heights.astype(np.int32), -values.round(_DIGITS)))
    top = lattice.size - 1  # the top answers every request that has an answer
    return np.concatenate([[top], order[order != top]])


def best_of_heights(
    lattice: Lattice, grouping: Grouping, score: str, share: Fraction | None = None
) -> IntArray:
    """Return the numbers of the best nodes of each height: a share of them, or all.

    The share is rounded up, so that every height has a node. The order is round-robin: the best node of each
    height, from the top down, then the second of each, and so on.
    """
    heights = lattice.heights_of_nodes().ravel()
    values = lattice.sums(_units(grouping, score)).ravel()
    order = np.lexsort((-values, heights))
    sizes = np.bincount(heights)
    turns = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    if share is not None:
        quotas = np.array([math.ceil(share * size) for size in sizes.tolist()])
        within_quota = turns < quotas[heights[order]]
        order, turns = order[within_quota], turns[within_quota]
    by_turn: IntArray = order[np.lexsort((-heights[order], turns))]
    return by_turn


def _units(grouping: Grouping, score: str) -> list[FloatArray]:
    """Return the parts of a score as integers, so that their sum does not depend on the order."""
    return [np.rint(part * 10.0**_DIGITS) for part in _parts(grouping, score)]


def heights_in_turn(lattice: Lattice, grouping: Grouping, score: str) -> Iterator[int]:
    """Yield nodes lazily in the order of `best_of_heights`, for a lattice that is too large to rank."""
    units = _units(grouping, score)
    sums = [
        [sum(int(units[column][level]) for column in axis) for level in range(levels)]
        for axis, levels in zip(lattice.axes, lattice.shape, strict=True)
    ]
    streams = _Streams(sums, [len(axis) for axis in lattice.axes], lattice.shape)
    turn = 0
    while True:
        numbers = [streams.at(0, height, turn) for height in range(sum(lattice.heights), -1, -1)]
        nodes = [entry[1] for entry in numbers if entry]
        if not nodes:
            return
        yield from nodes
        turn += 1


class _Streams:
    """Lazy streams: for the last axes and a height, the nodes of this height, best first (ties by number)."""

    def __init__(self, scores: list[list[int]], members: list[int], shape: tuple[int, ...]) -> None:
        self._scores, self._members, self._shape = scores, members, shape
        self._produced: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (-score, number), per stream
        self._sources: dict[tuple[int, int], Iterator[tuple[int, int]]] = {}

    def at(self, axis: int, height: int, position: int) -> tuple[int, int] | None:
        """Return the node at a position of a stream, or None if the stream is shorter."""
        key = axis, height
        if key not in self._sources:
            self._produced[key], self._sources[key] = [], self._merged(axis, height)
        produced = self._produced[key]
        while len(produced) <= position:
            following = next(self._sources[key], None)
            if following is None:
                return None
            produced.append(following)
        return produced[position]

    def _merged(self, axis: int, height: int) -> Iterator[tuple[int, int]]:
        if axis == len(self._scores):
            return iter([(0, 0)] if height == 0 else [])
        levels = range(min(len(self._scores[axis]), height // self._members[axis] + 1))
        return merge(*(self._with_level(axis, height, level) for level in levels))

    def _with_level(self, axis: int, height: int, level: int) -> Iterator[tuple[int, int]]:
        stride, score = prod(self._shape[axis + 1 :]), self._scores[axis][level]
        for position in count():
            others = self.at(axis + 1, height - level * self._members[axis], position)
            if others is None:
                return
            yield others[0] - score, others[1] + level * stride


_Entry = tuple[float, int, int, float, tuple[int, ...], int]


def best_first(lattice: Lattice, grouping: Grouping, score: str) -> Iterator[int]:
    """Yield nodes lazily in the order of `ranked`, for a lattice that is too large to rank.

    The levels of each axis are sorted by score; in a tie, higher levels come first. Every node except the
    best has one predecessor: the last axis that is not at its best level is moved one step towards it.
    A predecessor's score is at least as high, so each node is yielded once and after its predecessor.
    """
    top = lattice.size - 1
    yield top
    parts = _parts(grouping, score)
    sums = [sum((parts[column] for column in axis), np.zeros(1)) for axis in lattice.axes]
    order = [np.lexsort((-np.arange(len(levels)), -levels)).tolist() for levels in sums]
    steps = [(-levels[positions]).tolist() for levels, positions in zip(sums, order, strict=True)]
    strides = [prod(lattice.shape[axis + 1 :]) for axis in range(len(order))]
    members = [len(axis) for axis in lattice.axes]

    def entry(total: float, positions: tuple[int, ...], last: int) -> _Entry:
        levels = [by_score[position] for by_score, position in zip(order, positions, strict=True)]
        number = sum(map(mul, levels, strides))
        return round(total, _DIGITS), -sum(map(mul, levels, members)), number, total, positions, last

    waiting = [entry(fsum(step[0] for step in steps), (0,) * len(order), 0)]
    while waiting:
        *_, number, total, positions, last = heappop(waiting)
        if number != top:
            yield number
        for axis in range(last, len(order)):
            position = positions[axis] + 1
            if position < len(order[axis]):
                worse = total + (steps[axis][position] - steps[axis][position - 1])
                heappush(waiting, entry(worse, (*positions[:axis], position, *positions[axis + 1 :]), axis))


def share_of(share: float | str) -> Fraction:
    """Parse a share of the lattice: 10%, 0.1, or 10, which means 10%."""
    text = decimal_point(str(share).strip())
    try:
        decimal = Decimal(text.removesuffix("%"))
        bounded = len(text) <= _LONGEST and decimal.is_finite() and abs(decimal.adjusted()) <= _LONGEST
        number = Fraction(decimal) if bounded else Fraction(0)  # 1e-300000000 would take very long
    except (ValueError, ArithmeticError):
        number = Fraction(0)
    if "%" in text or not set(".eE") & set(text):
        number /= 100
    if not 0 < number <= 1:
        raise invalid("share", "a part of the lattice, such as 10% or 0.1", share)
    return number


LARGEST_RANKED = 20_000_000  # nodes; the nodes of a larger lattice are generated best first
_BEST_FIRST = 256  # nodes counted between two checks of a time limit


RANKINGS = ("height", "lattice")


def check_ranking(score: str, by: str) -> None:
    """Raise UnknownName if the score or the ranking does not exist."""
    if score not in SCORES:
        raise UnknownName(score, "score", SCORES)
    if by not in RANKINGS:
        raise UnknownName(by, "ranking", RANKINGS)


def best_nodes(
    lattice: Lattice, grouping: Grouping, share: float | str | None, score: str, by: str = "height"
) -> IntArray:
    """Return the nodes to count, in order: the best share of each height, or of the whole lattice."""
    part = None if share is None else share_of(share)
    if by == "height":
        return best_of_heights(lattice, grouping, score, part)
    order = ranked(lattice, grouping, score)
    return order if part is None else order[: math.ceil(part * lattice.size)]


def slices(
    tabulation: Tabulation,
    grouping: Grouping,
    share: float | str | None,
    seconds: float | None,
    score: str,
    by: str,
) -> Iterator[tuple[int, int]]:
    """Count the requested nodes, best first unless all are requested; yield the number done and the total."""
    lattice = tabulation.lattice
    size = {} if seconds is None else {"size": _BEST_FIRST}
    known = tabulation.numbers
    if lattice.size > LARGEST_RANKED:
        nodes = (heights_in_turn if by == "height" else best_first)(lattice, grouping, score)
        while batch := list(islice(nodes, _BEST_FIRST)):
            fresh = np.array(batch)[~np.isin(batch, known)]
            for counted in tabulation.slices(fresh, **size):
                yield counted, lattice.size
        return
    if share is None and seconds is None and not len(known):
        for counted in tabulation.slices():
            yield counted, lattice.size
        return
    missing = best_nodes(lattice, grouping, share, score, by)
    missing = missing[~np.isin(missing, known)]
    for counted in tabulation.slices(missing, **size):
        yield counted, len(known) + len(missing)


def check_size(lattice: Lattice, seconds: float | None) -> None:
    """Raise if a lattice is too large to number its nodes, or too large to rank without a time limit."""
    if lattice.size >= 1 << 63:
        raise UsageError(
            f"The lattice has {lattice.size:.3g} nodes, more than a profile can number. "
            "Use fewer quasi-identifiers or fewer levels."
        )
    if not lattice.has_array:
        raise UsageError(
            f"The policy has {len(lattice.axes)} quasi-identifiers, and a profile at most {MOST_AXES}. "
            "Use fewer."
        )
    if lattice.size > LARGEST_RANKED and seconds is None:
        raise UsageError(
            f"The lattice has {number_text(lattice.size)} nodes, too many to tabulate or to rank. "
            "Give seconds: the best nodes are tabulated until the time is up."
        )
