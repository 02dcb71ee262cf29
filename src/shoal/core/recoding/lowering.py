"""Lowering: from a node to finer levels, class by class, as long as every model holds.

A *region* is a set of combinations with the same labels: one level and one group in each column. The first
regions are the classes of a node, with the suppressed records raised to the top.

In every round, one column of each region is lowered by one level: the column that gains most. The groups one
level down are the *children*. A child leaves the region if it passes every model, and what remains of the
region passes, too. Levels never rise after the start.

Two separate regions never become equal: they differ in a group at the level at which they were separated, and
levels never rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts.counts import Counts, numbered, packed
from shoal.core.counts.in_memory import gathered, selected
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.recoding import groups

_MIN_GAIN = 1e-9  # added to every gain, so that steps without gain are made, too; a gain may follow


def lower_levels(
    problem: Problem, node: Node, *, recode_suppressed: bool = True, check: Callable[[], None]
) -> tuple[IntArray, BoolArray]:
    """Return levels (columns, combinations) and the suppressed combinations, (combinations,).

    With `recode_suppressed`, the records that the node suppresses are recoded, too. `check` is called
    regularly and may raise. If the problem has a population, the node is returned unchanged, because the
    population of a region cannot be counted.
    """
    first = _first_regions(problem, node, recode_suppressed=recode_suppressed)
    if first is None:
        return _node_levels(problem, node), _suppressed(problem, node)
    columns = _columns(problem)
    regions, changed = first, ~first.suppressed
    while changed.any():
        check()
        levels, changed = _step(regions, columns, changed, check)
        if not changed.any():
            break
        following = _regions(problem, levels, first.suppressed)
        if not _passes(problem, following):
            break
        regions = following
    return regions.levels, regions.suppressed


@dataclass(frozen=True)
class _Column:
    """Tables of a column over its levels."""

    number: int
    low: int
    weight: float
    groups: IntArray  # (levels, values): the group of each value
    above: IntArray  # (levels, groups): the group one level up
    shares: FloatArray  # (levels, groups): the share of the column's values that a group covers


@dataclass(frozen=True)
class _Regions:
    """Combinations, their levels, and the regions they form."""

    problem: Problem
    levels: IntArray  # (columns, combinations)
    suppressed: BoolArray  # (combinations,)
    region_of: IntArray  # (combinations,): the region of each combination
    number: int  # of regions


@dataclass(frozen=True)
class _Split:
    """The combinations that leave their regions when one column is lowered by a level."""

    rows: IntArray  # the combinations that leave
    gains: FloatArray  # (regions,)


def _columns(problem: Problem) -> list[_Column]:
    """Describe the columns that may be lowered: those whose level is not shared with other columns."""
    lattice = problem.free
    columns = []
    for members, low, high in zip(lattice.axes, lattice.low, lattice.high, strict=True):
        if len(members) == 1 and low < high:
            column = members[0]
            columns.append(_column(problem.hierarchies[column], column, low, problem.weights[column]))
    return sorted(columns, key=lambda column: column.number)


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


def _node_levels(problem: Problem, node: Node) -> IntArray:
    return np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)


def _suppressed(problem: Problem, node: Node) -> BoolArray:
    """Mark the combinations in classes that a model refuses at a node."""
    # `numbered` and `roll_up` both number classes in order of first appearance.
    class_of = numbered(keys_at(problem, _node_levels(problem, node)))
    refused: BoolArray = problem.violations(problem.classes(node))[class_of]
    return refused


def _first_regions(problem: Problem, node: Node, *, recode_suppressed: bool) -> _Regions | None:
    """Return the classes of a node as regions, or None if they do not pass.

    Suppressed records are raised to the top, if that passes.
    """
    if problem.counts.population is not None:
        return None
    refused = _suppressed(problem, node)
    levels = _node_levels(problem, node)
    if recode_suppressed and refused.any():
        top = np.where(refused, np.array(problem.free.top)[:, None], levels)
        regions = _regions(problem, top, np.zeros_like(refused))
        still_refused = refused & _violations(problem, regions)[regions.region_of]
        regions = _regions(problem, top, still_refused)
        if not still_refused[refused].all() and _passes(problem, regions):
            return _regions(problem, np.where(still_refused, levels, top), still_refused)
    regions = _regions(problem, levels, refused)
    return regions if _passes(problem, regions) else None


def _regions(problem: Problem, levels: IntArray, suppressed: BoolArray) -> _Regions:
    """Group combinations with the same groups at the same levels; suppressed ones form separate regions."""
    region_of = numbered(keys_at(problem, levels, suppressed))
    return _Regions(problem, levels, suppressed, region_of, int(region_of.max()) + 1)


def _violations(problem: Problem, regions: _Regions) -> BoolArray:
    return problem.violations(Classes(gathered(problem.counts, regions.region_of), problem.sensitive_info))


def _passes(problem: Problem, regions: _Regions) -> bool:
    """Return whether every model holds in each region and for the whole table."""
    classes = Classes(gathered(problem.counts, regions.region_of), problem.sensitive_info)
    suppressed = classes.nothing()
    suppressed[regions.region_of[regions.suppressed]] = True
    if suppressed.all() or (problem.violations(classes) & ~suppressed).any():
        return False
    return all(model.holds(classes, suppressed) for model in problem.models)


def _step(
    regions: _Regions, columns: list[_Column], changed: BoolArray, check: Callable[[], None]
) -> tuple[IntArray, BoolArray]:
    """Lower the best column in every changed region; return the levels and the combinations that changed.

    A region that did not change in the last round cannot be lowered.
    """
    rows = np.flatnonzero(changed)
    region_of = numbered(regions.region_of[rows].reshape(1, -1))
    part = selected(regions.problem.counts, rows)
    best = np.zeros(int(region_of.max()) + 1)
    choice = np.full(len(best), -1)
    splits = {}
    for column in columns:
        check()
        split = _split(regions.problem, part, region_of, regions.levels[column.number][rows], column)
        if split is not None:
            splits[column.number] = split
            better = split.gains > best
            best[better], choice[better] = split.gains[better], column.number
    levels = regions.levels.copy()
    for number, split in splits.items():
        levels[number, rows[split.rows[choice[region_of[split.rows]] == number]]] -= 1
    lowered = np.zeros(len(changed), np.bool_)
    lowered[rows] = (choice >= 0)[region_of]
    return levels, lowered


def _split(
    problem: Problem, part: Counts, region_of: IntArray, level: IntArray, column: _Column
) -> _Split | None:
    """Find the children of one column that may leave their regions, and the gain of each region."""
    rows = np.flatnonzero(level > column.low)
    if not len(rows):
        return None
    width = column.groups.shape[1]
    codes, number = part.codes(column.number)[rows], int(region_of.max()) + 1
    keys = region_of[rows] * width + column.groups[level[rows] - 1, codes]
    child = np.full(len(part), -1)
    child[rows] = numbered(keys.reshape(1, -1))
    first_row = np.empty(int(child.max()) + 1, np.int64)
    first_row[child[rows[::-1]]] = rows[::-1]
    classes = Classes(gathered(part, child), problem.sensitive_info)
    region = region_of[first_row]
    below = level[first_row] - 1
    group = column.groups[below, part.codes(column.number)[first_row]]
    leaving = ~problem.violations(classes)
    _keep_children(
        problem, part, region_of, child, region, np.lexsort((group, classes.sizes, region)), leaving
    )
    if not leaving.any():
        return None
    shares = column.shares[below + 1, column.above[below, group]] - column.shares[below, group]
    weighted_gains = np.where(leaving, column.weight * classes.sizes * shares, 0.0)
    has_leaving = np.bincount(region[leaving], minlength=number) > 0
    return _Split(
        rows[leaving[child[rows]]], np.bincount(region, weighted_gains, number) + _MIN_GAIN * has_leaving
    )


def _keep_children(
    problem: Problem,
    part: Counts,
    region_of: IntArray,
    child: IntArray,  # (combinations,): -1 where the column cannot be lowered
    region: IntArray,  # (children,)
    order: IntArray,  # of the children: by region, the smallest first
    leaving: BoolArray,  # (children,): changed in place
) -> None:
    """Keep children in their regions, the smallest first, until what remains of each region passes."""
    pending = np.zeros(int(region_of.max()) + 1, np.bool_)
    pending[region[~leaving]] = True
    while True:
        has_leaving = np.zeros_like(pending)
        has_leaving[region[leaving]] = True
        pending &= has_leaving  # a region that no child leaves is unchanged
        if not pending.any():
            return
        numbers = np.where(pending, np.cumsum(pending) - 1, -1)
        stays = np.where((child >= 0) & ~leaving[child], numbers[region_of], -1)
        failing = problem.violations(Classes(gathered(part, stays), problem.sensitive_info))
        pending[pending] = failing
        leaving_in_order = order[leaving[order] & pending[region[order]]]
        leaving[leaving_in_order[np.diff(region[leaving_in_order], prepend=-1) != 0]] = False


def keys_at(problem: Problem, levels: IntArray, separate: BoolArray | None = None) -> IntArray:
    """Pack the groups of each combination at its levels, and the levels, into words."""
    groups = []
    for column, hierarchy in enumerate(problem.hierarchies):
        groups_by_level = np.stack([hierarchy.groups(level) for level in range(hierarchy.height + 1)])
        groups.append(groups_by_level[levels[column], problem.counts.codes(column)])
    return packed([*groups, *levels] if separate is None else [*groups, *levels, separate])
