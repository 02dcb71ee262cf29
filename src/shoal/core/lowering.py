"""Lowering: from a node to finer levels, class by class, as long as every model holds.

A region is a set of combinations with one level and one group in each column: what looks alike. The first
are the classes of a node, and what the node suppresses raised to the top. In every round each region
gives up a level of the column by which it gains most: children, its groups one level down, leave it
where they pass every model themselves and so does what stays behind. No level rises after the beginning.

Regions never meet again: at the level that parted them in a column their groups differ, and levels fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal.core import groups
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts import Counts, numbered, packed
from shoal.core.held import gathered, selected
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node
from shoal.core.problem import Problem

_MOVED = 1e-9  # what a step down is worth that gains nothing: finer steps may follow


def lowered(
    problem: Problem, node: Node, *, again: bool = True, check: Callable[[], None]
) -> tuple[IntArray, BoolArray]:
    """Return levels (columns, combinations) and what stays suppressed, (combinations,).

    `again` recodes what the node suppresses. `check` is called now and then and may raise. A population is
    not followed into regions: with one, the node comes back as it is.
    """
    begin = _begin(problem, node, again=again)
    if begin is None:
        return _at(problem, node), _suppressed(problem, node)
    columns = _columns(problem)
    regions, changed = begin, ~begin.suppressed
    while changed.any():
        check()
        levels, changed = _step(regions, columns, changed, check)
        if not changed.any():
            break
        following = _regions(problem, levels, begin.suppressed)
        if not _passes(problem, following):
            break
        regions = following
    return regions.levels, regions.suppressed


@dataclass(frozen=True)
class _Column:
    """What lowering needs to know of a column, as tables over its levels."""

    number: int
    low: int
    weight: float
    groups: IntArray  # (levels, values): the group of each value
    above: IntArray  # (levels, groups): the group one level up
    shares: FloatArray  # (levels, groups): the share of the column's values that a group covers


@dataclass(frozen=True)
class _Regions:
    """Combinations, their levels, and which of them look alike."""

    problem: Problem
    levels: IntArray  # (columns, combinations)
    suppressed: BoolArray  # (combinations,)
    of: IntArray  # (combinations,): the region of each
    number: int


@dataclass(frozen=True)
class _Split:
    """What leaves its region when one column goes down a level there."""

    rows: IntArray  # the combinations that leave
    gains: FloatArray  # (regions,)


def _columns(problem: Problem) -> list[_Column]:
    """Describe the columns that may be lowered: those that share their level with no other."""
    lattice = problem.free
    found = []
    for members, low, high in zip(lattice.axes, lattice.low, lattice.high, strict=True):
        if len(members) == 1 and low < high:
            column = members[0]
            found.append(_column(problem.hierarchies[column], column, low, problem.weights[column]))
    return sorted(found, key=lambda column: column.number)


def _column(hierarchy: Hierarchy, number: int, low: int, weight: float) -> _Column:
    levels, most = hierarchy.height + 1, max(map(len, hierarchy.labels))
    above = np.zeros((levels, most), np.int64)
    shares = np.zeros((levels, most))
    for level, leaves in enumerate(hierarchy.leaves):
        shares[level, : len(leaves)] = groups.shares(leaves, hierarchy.size)
    for level, step in enumerate(hierarchy.steps):
        above[level, : len(step)] = step
    members = np.stack([hierarchy.groups(level) for level in range(levels)])
    return _Column(number, low, weight, members, above, shares)


def _at(problem: Problem, node: Node) -> IntArray:
    return np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)


def _suppressed(problem: Problem, node: Node) -> BoolArray:
    """Mark the combinations in classes that a model refuses at a node."""
    of = numbered(keys_at(problem, _at(problem, node)))  # both number classes as they first appear
    refused: BoolArray = problem.violations(problem.classes(node))[of]
    return refused


def _begin(problem: Problem, node: Node, *, again: bool) -> _Regions | None:
    """Return the classes of a node, with what it suppresses at the top where that passes, or None."""
    if problem.counts.population is not None:
        return None
    refused = _suppressed(problem, node)
    levels = _at(problem, node)
    if again and refused.any():
        top = np.where(refused, np.array(problem.free.top)[:, None], levels)
        regions = _regions(problem, top, np.zeros_like(refused))
        lost = refused & _violations(problem, regions)[regions.of]
        regions = _regions(problem, top, lost)
        if not lost[refused].all() and _passes(problem, regions):
            return _regions(problem, np.where(lost, levels, top), lost)
    regions = _regions(problem, levels, refused)
    return regions if _passes(problem, regions) else None


def _regions(problem: Problem, levels: IntArray, suppressed: BoolArray) -> _Regions:
    """Put together what has the same groups at the same levels; the suppressed are apart."""
    of = numbered(keys_at(problem, levels, suppressed))
    return _Regions(problem, levels, suppressed, of, int(of.max()) + 1)


def _violations(problem: Problem, regions: _Regions) -> BoolArray:
    return problem.violations(Classes(gathered(problem.counts, regions.of), problem.about))


def _passes(problem: Problem, regions: _Regions) -> bool:
    """Tell whether every model holds, in each region and in the whole."""
    classes = Classes(gathered(problem.counts, regions.of), problem.about)
    gone = classes.nothing()
    gone[regions.of[regions.suppressed]] = True
    if gone.all() or (problem.violations(classes) & ~gone).any():
        return False
    return all(model.holds(classes, gone) for model in problem.models)


def _step(
    regions: _Regions, columns: list[_Column], changed: BoolArray, check: Callable[[], None]
) -> tuple[IntArray, BoolArray]:
    """Lower in every changed region the column that gains most; return levels, and what changed by that.

    In a region that did not change there was nothing to lower.
    """
    rows = np.flatnonzero(changed)
    of = numbered(regions.of[rows].reshape(1, -1))
    part = selected(regions.problem.counts, rows)
    best = np.zeros(int(of.max()) + 1)
    choice = np.full(len(best), -1)
    splits = {}
    for column in columns:
        check()
        split = _split(regions.problem, part, of, regions.levels[column.number][rows], column)
        if split is not None:
            splits[column.number] = split
            better = split.gains > best
            best[better], choice[better] = split.gains[better], column.number
    levels = regions.levels.copy()
    for number, split in splits.items():
        levels[number, rows[split.rows[choice[of[split.rows]] == number]]] -= 1
    again = np.zeros(len(changed), np.bool_)
    again[rows] = (choice >= 0)[of]
    return levels, again


def _split(problem: Problem, part: Counts, of: IntArray, level: IntArray, column: _Column) -> _Split | None:
    """Find the children of one column that may leave their regions, and what that gains."""
    rows = np.flatnonzero(level > column.low)
    if not len(rows):
        return None
    width = column.groups.shape[1]
    codes, number = part.codes(column.number)[rows], int(of.max()) + 1
    keys = of[rows] * width + column.groups[level[rows] - 1, codes]
    child = np.full(len(part), -1)
    child[rows] = numbered(keys.reshape(1, -1))
    first = np.empty(int(child.max()) + 1, np.int64)
    first[child[rows[::-1]]] = rows[::-1]
    classes = Classes(gathered(part, child), problem.about)
    region = of[first]
    below = level[first] - 1
    group = column.groups[below, part.codes(column.number)[first]]
    leaves = ~problem.violations(classes)
    _put_back(problem, part, of, child, region, np.lexsort((group, classes.sizes, region)), leaves)
    if not leaves.any():
        return None
    shares = column.shares[below + 1, column.above[below, group]] - column.shares[below, group]
    worth = np.where(leaves, column.weight * classes.sizes * shares, 0.0)
    moved = np.bincount(region[leaves], minlength=number) > 0
    return _Split(rows[leaves[child[rows]]], np.bincount(region, worth, number) + _MOVED * moved)


def _put_back(
    problem: Problem,
    part: Counts,
    of: IntArray,
    child: IntArray,  # (combinations,): -1 where the column cannot be lowered
    region: IntArray,  # (children,)
    order: IntArray,  # of the children: by region, the smallest first
    leaves: BoolArray,  # (children,): changed in place
) -> None:
    """Keep children, the smallest first, in their regions until what stays behind passes the models."""
    pending = np.zeros(int(of.max()) + 1, np.bool_)
    pending[region[~leaves]] = True
    while True:
        leaving = np.zeros_like(pending)
        leaving[region[leaves]] = True
        pending &= leaving  # where nothing leaves, the region is as it was
        if not pending.any():
            return
        numbers = np.where(pending, np.cumsum(pending) - 1, -1)
        stays = np.where((child >= 0) & ~leaves[child], numbers[of], -1)
        fails = problem.violations(Classes(gathered(part, stays), problem.about))
        pending[pending] = fails
        back = order[leaves[order] & pending[region[order]]]
        leaves[back[np.diff(region[back], prepend=-1) != 0]] = False


def keys_at(problem: Problem, levels: IntArray, apart: BoolArray | None = None) -> IntArray:
    """Pack each combination's groups at its levels, and the levels themselves, into words."""
    groups = []
    for column, hierarchy in enumerate(problem.hierarchies):
        every = np.stack([hierarchy.groups(level) for level in range(hierarchy.height + 1)])
        groups.append(every[levels[column], problem.counts.codes(column)])
    return packed([*groups, *levels] if apart is None else [*groups, *levels, apart])
