"""Steps between cuts of hierarchies: a group is replaced by its children, or the children by the group.

A *cut* assigns a level to every value of every column; all values of a released group have the same level. A
step applies to the whole table and is identified by its upper group. If a group and its only child have the
same values, a cut uses the child, and there is no step between them.

Lemma: a step down splits only classes with its upper group, and a step up merges only classes with groups
below it. So two steps of one column never change the same class, and all steps of a column are evaluated in
one pass over the combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, label_of
from shoal.core.contracts import Algorithm
from shoal.core.counts.counts import Counts, numbered, packed
from shoal.core.counts.in_memory import gathered, selected
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import groups_of_levels
from shoal.errors import Refusal


@dataclass(frozen=True)
class LabelCuts(Algorithm):
    """A search that trades information about the label against anonymity."""

    @property
    def needs_label(self) -> bool:
        return True

    def refuses(self, problem: Problem) -> Refusal | None:
        if label_of(problem.counts) is None:
            return Refusal("it needs `label: COLUMN`, the column that a classifier is to predict")
        if len(problem.lattice.axes) < len(problem.lattice.columns):
            return Refusal("same_level needs one level for each column, and a cut has several")
        if problem.counts.population is not None:
            return Refusal("it cannot count the population of the classes of a cut")
        return None


@dataclass(frozen=True)
class ColumnTree:
    """The groups of one column that a cut may use, as tables over its levels."""

    column: int
    low: int
    high: int
    groups: IntArray  # (levels, values): the group of each value
    lowest_equal: IntArray  # (levels, values): the lowest level with the same group
    label_numbers: IntArray  # (levels, values): a number for the label of each value
    gains: FloatArray  # (levels, groups): the information about a record's label that children add, in bits
    shares_labels: bool  # whether different groups have the same label, so that steps are not independent
    as_is: bool  # whether values that are not generalized stay distinct, even if their labels are equal

    def codes(self, levels: IntArray) -> IntArray:
        """Return a number for the released label of each value."""
        values = np.arange(len(levels))
        return values if self.as_is and not levels.any() else self.label_numbers[levels, values]

    def pairs(self, levels: IntArray) -> IntArray:
        """Return a number for the group of each value, distinct for every level."""
        pairs: IntArray = levels * self.gains.shape[1] + self.groups[levels, np.arange(len(levels))]
        return pairs


@dataclass(frozen=True)
class CutSteps:
    """The steps of one column from one cut, and their effects."""

    tree: ColumnTree
    pairs: IntArray  # (steps,): the number of the upper group and its level
    refused_records: IntArray  # (steps,): records in refused classes after the step
    smallest_class: IntArray  # (steps,): the size of the smallest class after the step
    entropy: FloatArray  # (steps,): the entropy of the labels after the step, in bits

    @property
    def gains(self) -> FloatArray:
        """The information about a record's label that the child groups add, in bits."""
        gains: FloatArray = self.tree.gains.reshape(-1)[self.pairs]
        return gains


@dataclass(frozen=True)
class Cut:
    """A level for every value of every column, and the resulting classes."""

    problem: Problem
    base: Counts  # includes labels only if their entropy is needed: models ignore them
    trees: tuple[ColumnTree, ...]
    levels: tuple[IntArray, ...]  # per column: (values,)

    @cached_property
    def _codes(self) -> list[IntArray]:
        pairs = zip(self.trees, self.levels, strict=True)
        return [tree.codes(levels)[self.base.codes(tree.column)] for tree, levels in pairs]

    @cached_property
    def class_of_row(self) -> IntArray:
        """The class of each combination."""
        return numbered(packed(self._codes))

    @cached_property
    def classes(self) -> Classes:
        return Classes(gathered(self.base, self.class_of_row), self.problem.sensitive_info)

    @cached_property
    def refused(self) -> BoolArray:
        """The classes that some model refuses."""
        return self.problem.violations(self.classes)

    @cached_property
    def refused_records(self) -> int:
        """The number of records in refused classes."""
        return int(self.classes.sizes[self.refused].sum())

    @cached_property
    def smallest_class(self) -> int:
        """The size of the smallest class, refused or not."""
        return int(self.classes.sizes.min())

    @cached_property
    def entropy(self) -> float:
        """The entropy of the records' labels, in bits; 0 if labels are not counted."""
        return float(self._entropies.sum())

    @cached_property
    def _entropies(self) -> FloatArray:
        return self._entropies_of(self.classes, self.refused)

    def _entropies_of(self, classes: Classes, refused: BoolArray) -> FloatArray:
        """Return the entropy of the labels per class; suppressed records have the maximum."""
        label = label_of(self.base)
        if label is None:
            return np.zeros(len(classes))
        entries, input_entries = classes.counts.sensitive[label], self.base.sensitive[label]
        maximum = np.log2(len(np.unique(input_entries.codes)))
        return np.where(refused, classes.sizes * maximum, _bits(entries.rows, entries.counts))

    @cached_property
    def acceptable(self) -> bool:
        """Whether the refused classes may be suppressed and the rest released."""
        if not self.problem.acceptable(self.refused_records):
            return False
        return all(model.holds(self.classes, self.refused) for model in self.problem.models)

    def down(self, tree: ColumnTree, pair: int) -> Cut:
        """Replace a group by its children."""
        levels = self.levels[tree.column]
        in_group = tree.pairs(levels) == pair
        return self._with(
            tree, np.where(in_group, tree.lowest_equal[levels - 1, np.arange(len(levels))], levels)
        )

    def up(self, tree: ColumnTree, pair: int) -> Cut:
        """Replace groups by their parent."""
        levels = self.levels[tree.column]
        level, group = divmod(pair, tree.gains.shape[1])
        return self._with(tree, np.where(tree.groups[level] == group, level, levels))

    def _with(self, tree: ColumnTree, levels: IntArray) -> Cut:
        changed = (*self.levels[: tree.column], levels, *self.levels[tree.column + 1 :])
        return Cut(self.problem, self.base, self.trees, changed)

    def steps_down(self, tree: ColumnTree, closed: Sequence[int] = ()) -> CutSteps | None:
        """Evaluate every step down in a column, except those in `closed`."""
        levels = self.levels[tree.column]
        upper = np.where(levels > tree.low, tree.pairs(levels), -1)
        upper[np.isin(upper, list(closed))] = -1
        pairs, step = _steps(upper)
        if not len(pairs):
            return None
        if tree.shares_labels:
            return _one_by_one(tree, pairs, [self.down(tree, pair) for pair in pairs.tolist()])
        lower = tree.pairs(np.maximum(0, levels - 1))
        values = self.base.codes(tree.column)
        rows = np.flatnonzero(step[values] >= 0)
        keys = packed([lower[values[rows]], self.class_of_row[rows]])
        return self._evaluated(
            tree, pairs, step[values[rows]], selected(self.base, rows), keys, self.class_of_row[rows]
        )

    def steps_up(self, tree: ColumnTree) -> CutSteps | None:
        """Evaluate every step up in a column."""
        levels = self.levels[tree.column]
        upper = np.full(len(levels), -1)
        for level in range(tree.low + 1, tree.high + 1):
            inside = (levels == tree.lowest_equal[level - 1]) & (tree.lowest_equal[level] == level)
            groups = tree.groups[level]
            inside &= np.bincount(groups[~inside], minlength=len(levels))[groups] == 0  # only complete groups
            upper[inside] = tree.pairs(np.full_like(levels, level))[inside]
        pairs, step = _steps(upper)
        if not len(pairs):
            return None
        if tree.shares_labels:
            return _one_by_one(tree, pairs, [self.up(tree, pair) for pair in pairs.tolist()])
        first = np.empty(len(self.classes), np.int64)
        first[self.class_of_row[::-1]] = np.arange(len(self.class_of_row))[::-1]
        step_of_class_row = step[self.base.codes(tree.column)[first]]
        rows = np.flatnonzero(step_of_class_row >= 0)
        codes = [column[first[rows]] for column in self._codes]
        codes[tree.column] = step_of_class_row[rows]
        part = selected(self.classes.counts, rows)
        return self._evaluated(tree, pairs, step_of_class_row[rows], part, packed(codes), rows)

    def _evaluated(
        self,
        tree: ColumnTree,
        pairs: IntArray,
        step: IntArray,
        part: Counts,
        keys: IntArray,
        old_class: IntArray,
    ) -> CutSteps:
        """Evaluate steps. Parts with equal keys form a class; `old_class` is the class before the step."""
        class_of = numbered(keys)
        classes = Classes(gathered(part, class_of), self.problem.sensitive_info)
        step_of_new_class = np.empty(len(classes), np.int64)
        step_of_new_class[class_of] = step
        number = len(pairs)
        step_of_class = np.full(len(self.classes), number)  # `number`: a class that no step changes
        step_of_class[old_class] = step
        refused = self.problem.violations(classes)
        refused_before = np.where(self.refused, self.classes.sizes, 0)
        refused_records = self.refused_records + _per_step(
            step_of_new_class, np.where(refused, classes.sizes, 0), number
        )
        refused_records -= _per_step(step_of_class, refused_before, number)
        entropy = self.entropy + _per_step(step_of_new_class, self._entropies_of(classes, refused), number)
        entropy -= _per_step(step_of_class, self._entropies, number)
        smallest_class = self._smallest_unchanged(number, step_of_class)
        np.minimum.at(smallest_class, step_of_new_class, classes.sizes)
        return CutSteps(tree, pairs, refused_records.astype(np.int64), smallest_class, entropy)

    def _smallest_unchanged(self, number: int, step_of_class: IntArray) -> IntArray:
        """Return, per step, the size of the smallest class that the step does not change."""
        smallest_class = np.full(number + 1, self.problem.records)
        np.minimum.at(smallest_class, step_of_class, self.classes.sizes)
        smallest = int(np.argmin(smallest_class))
        unchanged = np.full(number + 1, smallest_class[smallest])
        unchanged[smallest] = np.delete(smallest_class, smallest).min()
        return unchanged[:number]


def top(problem: Problem) -> Cut:
    """Return the cut with every value at its highest level; labels are counted only if needed."""
    trees = _trees(problem)
    base = problem.counts if problem.limit else _unlabelled(problem)
    return Cut(problem, base, trees, tuple(tree.lowest_equal[tree.high] for tree in trees))


def bottom(problem: Problem) -> Cut:
    """Return the cut with every value at its lowest level."""
    trees = _trees(problem)
    return Cut(problem, _unlabelled(problem), trees, tuple(tree.lowest_equal[tree.low] for tree in trees))


def _unlabelled(problem: Problem) -> Counts:
    label = label_of(problem.counts)
    return problem.counts.rename_sensitive({name: name for name in problem.counts.sensitive if name != label})


def _trees(problem: Problem) -> tuple[ColumnTree, ...]:
    levels = zip(problem.lattice.axes, problem.lattice.low, problem.lattice.high, strict=True)
    trees = [_tree(problem, members[0], low, high) for members, low, high in levels]
    return tuple(sorted(trees, key=lambda tree: tree.column))


def _tree(problem: Problem, column: int, low: int, high: int) -> ColumnTree:
    hierarchy = problem.hierarchies[column]
    levels = range(hierarchy.height + 1)
    groups = np.stack([hierarchy.groups(level) for level in levels])
    bounds = hierarchy.name in problem.as_bounds
    _, maps = groups_of_levels(hierarchy, problem.value_counts[column], levels, bounds=bounds, blanks=False)
    label_numbers = np.stack([maps[level] for level in levels])
    shares_labels = _share_labels(groups[low : high + 1], label_numbers[low : high + 1])
    lowest_equal = np.repeat(np.array(levels)[:, None], groups.shape[1], axis=1)
    if not shares_labels:
        sizes = [np.bincount(level_groups)[level_groups] for level_groups in groups]
        for level in range(low + 1, high + 1):
            lowest_equal[level] = np.where(sizes[level] == sizes[level - 1], lowest_equal[level - 1], level)
    gains = _gains(problem, column, hierarchy)
    return ColumnTree(
        column, low, high, groups, lowest_equal, label_numbers, gains, shares_labels, as_is=not bounds
    )


def _share_labels(groups: IntArray, label_numbers: IntArray) -> bool:
    """Return whether groups with different values have the same label."""
    values_of_label: dict[
        int, tuple[int, int]
    ] = {}  # per label: the number of its values, and the first of them
    for level_groups, labels in zip(groups, label_numbers, strict=True):
        present, first, sizes = np.unique(labels, return_index=True, return_counts=True)
        if len(present) < int(level_groups.max()) + 1:
            return True
        for label, size, value in zip(present.tolist(), sizes.tolist(), first.tolist(), strict=True):
            if values_of_label.setdefault(label, (size, value)) != (size, value):
                return True
    return False


def _gains(problem: Problem, column: int, hierarchy: Hierarchy) -> FloatArray:
    """Return the information about a record's label that the children of each group add."""
    labels = problem.counts.sensitive[str(label_of(problem.counts))]
    codes = problem.counts.codes(column)[labels.rows]
    gains = np.zeros((hierarchy.height + 1, len(hierarchy.labels[0])))
    bits_below = np.empty(0)
    for level in range(hierarchy.height + 1):
        group = hierarchy.groups(level)[codes]
        keys, index_of_pair = np.unique((group << labels.bits) | labels.codes, return_inverse=True)
        bits = _bits(keys >> labels.bits, np.bincount(index_of_pair.reshape(-1), labels.counts))
        if level:
            records = np.bincount(group, labels.counts, len(bits))
            gained = bits - np.bincount(hierarchy.steps[level - 1], bits_below, len(bits))
            gains[level, : len(bits)] = np.maximum(0, gained) / records
        bits_below = bits
    return gains


def _bits(groups: IntArray, counts: IntArray) -> FloatArray:
    """Return the entropy of the labels of each group, times its number of records.

    The arguments have one element per group and label: the group, and the number of records.
    """
    totals = np.bincount(groups, counts).astype(np.float64)
    bits: FloatArray = totals * np.log2(totals) - np.bincount(groups, counts * np.log2(counts))
    return bits


def _per_step(step_of: IntArray, amounts: IntArray | FloatArray, number: int) -> FloatArray:
    """Sum amounts per step; the step of a class that no step changes is `number`."""
    return np.bincount(step_of, amounts, number + 1)[:number].astype(np.float64)


def _steps(upper: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct steps, and the step of each value; -1 for a value without a step."""
    pairs = np.unique(upper[upper >= 0])
    return pairs, np.where(upper >= 0, np.searchsorted(pairs, upper), -1)


def _one_by_one(tree: ColumnTree, pairs: IntArray, following: Sequence[Cut]) -> CutSteps:
    refused_records = np.array([cut.refused_records for cut in following])
    smallest_class = np.array([cut.smallest_class for cut in following])
    return CutSteps(
        tree, pairs, refused_records, smallest_class, np.array([cut.entropy for cut in following])
    )
