"""Steps between cuts of hierarchies: a group gives way to the groups below it, or these give way to it.

A cut takes every value to a level of its own, such that a group is taken whole. A step is known by its
upper group and is made everywhere at once; between groups of the same values there is none, and the lower
of the two is taken. Lemma: a step down parts only the classes that have its group, a step up joins only
classes that differ in the groups below it. So all steps of a column, which concern different classes, are
judged in one pass over the combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, label_of
from shoal.core.counts import Counts, numbered, packed
from shoal.core.groups import of_levels
from shoal.core.held import gathered, selected
from shoal.core.hierarchy import Hierarchy
from shoal.core.problem import Problem


@dataclass(frozen=True)
class Tree:
    """The groups that a cut may take one column's values to, as tables over its levels."""

    column: int
    low: int
    high: int
    groups: IntArray  # (levels, values): the group of each value
    settled: IntArray  # (levels, values): the lowest level at which a value's group has the same values
    looks: IntArray  # (levels, values): what each value is released as
    gains: FloatArray  # (levels, groups): what the groups below tell of a record's label, in bits
    alike: bool  # some groups of different values look alike, so that steps are not apart
    as_is: bool  # values that are not generalized are told apart, whatever they look like

    def codes(self, levels: IntArray) -> IntArray:
        """Return a number for what each value is released as."""
        values = np.arange(len(levels))
        return values if self.as_is and not levels.any() else self.looks[levels, values]

    def pairs(self, levels: IntArray) -> IntArray:
        """Return a number for the group of each value, different at every level."""
        pairs: IntArray = levels * self.gains.shape[1] + self.groups[levels, np.arange(len(levels))]
        return pairs


@dataclass(frozen=True)
class Steps:
    """Steps of one column from one cut, and what comes of each."""

    tree: Tree
    pairs: IntArray  # (steps,): the upper group, by its level
    short: IntArray  # (steps,): records in refused classes afterwards
    least: IntArray  # (steps,): the size of the smallest class afterwards
    unknown: FloatArray  # (steps,): what is unknown of the labels afterwards, in bits

    @property
    def gains(self) -> FloatArray:
        """What the groups below tell of a record's label beyond the upper group, in bits."""
        gains: FloatArray = self.tree.gains.reshape(-1)[self.pairs]
        return gains


@dataclass(frozen=True)
class Cut:
    """A level for every value of every column, and the classes that come of them."""

    problem: Problem
    base: Counts  # with labels only where what is unknown of them is asked for: models do not look at them
    trees: tuple[Tree, ...]
    levels: tuple[IntArray, ...]  # per column: (values,)

    @cached_property
    def _codes(self) -> list[IntArray]:
        pairs = zip(self.trees, self.levels, strict=True)
        return [tree.codes(levels)[self.base.codes(tree.column)] for tree, levels in pairs]

    @cached_property
    def of(self) -> IntArray:
        """The class of each combination."""
        return numbered(packed(self._codes))

    @cached_property
    def classes(self) -> Classes:
        """The classes."""
        return Classes(gathered(self.base, self.of), self.problem.about)

    @cached_property
    def refused(self) -> BoolArray:
        """The classes that some model refuses."""
        return self.problem.violations(self.classes)

    @cached_property
    def short(self) -> int:
        """The records in these classes."""
        return int(self.classes.sizes[self.refused].sum())

    @cached_property
    def least(self) -> int:
        """The size of the smallest class, whether it is refused or not."""
        return int(self.classes.sizes.min())

    @cached_property
    def unknown(self) -> float:
        """What is unknown of the records' labels, in bits; 0 where labels are not followed."""
        return float(self._unknown.sum())

    @cached_property
    def _unknown(self) -> FloatArray:
        return self._unknown_in(self.classes, self.refused)

    def _unknown_in(self, classes: Classes, refused: BoolArray) -> FloatArray:
        """Return what is unknown of the labels in each class; of suppressed records it is everything."""
        label = label_of(self.base)
        if label is None:
            return np.zeros(len(classes))
        entries, known = classes.counts.sensitive[label], self.base.sensitive[label]
        every = np.log2(len(np.unique(known.codes)))
        return np.where(refused, classes.sizes * every, _bits(entries.rows, entries.counts))

    @cached_property
    def acceptable(self) -> bool:
        """Whether what is refused can be suppressed and what remains released."""
        if not self.problem.acceptable(self.short):
            return False
        return all(model.holds(self.classes, self.refused) for model in self.problem.models)

    def down(self, tree: Tree, pair: int) -> Cut:
        """Let a group give way to the groups below it."""
        levels = self.levels[tree.column]
        here = tree.pairs(levels) == pair
        return self._with(tree, np.where(here, tree.settled[levels - 1, np.arange(len(levels))], levels))

    def up(self, tree: Tree, pair: int) -> Cut:
        """Let groups give way to the one above them."""
        levels = self.levels[tree.column]
        level, group = divmod(pair, tree.gains.shape[1])
        return self._with(tree, np.where(tree.groups[level] == group, level, levels))

    def _with(self, tree: Tree, levels: IntArray) -> Cut:
        changed = (*self.levels[: tree.column], levels, *self.levels[tree.column + 1 :])
        return Cut(self.problem, self.base, self.trees, changed)

    def steps_down(self, tree: Tree, closed: Sequence[int] = ()) -> Steps | None:
        """Judge every step down in a column, but those that are closed."""
        levels = self.levels[tree.column]
        upper = np.where(levels > tree.low, tree.pairs(levels), -1)
        upper[np.isin(upper, list(closed))] = -1
        pairs, step = _steps(upper)
        if not len(pairs):
            return None
        if tree.alike:
            return _one_by_one(tree, pairs, [self.down(tree, pair) for pair in pairs.tolist()])
        lower = tree.pairs(np.maximum(0, levels - 1))
        values = self.base.codes(tree.column)
        rows = np.flatnonzero(step[values] >= 0)
        keys = packed([lower[values[rows]], self.of[rows]])
        return self._judged(tree, pairs, step[values[rows]], selected(self.base, rows), keys, self.of[rows])

    def steps_up(self, tree: Tree) -> Steps | None:
        """Judge every step up in a column."""
        levels = self.levels[tree.column]
        upper = np.full(len(levels), -1)
        for level in range(tree.low + 1, tree.high + 1):
            inside = (levels == tree.settled[level - 1]) & (tree.settled[level] == level)
            groups = tree.groups[level]
            inside &= np.bincount(groups[~inside], minlength=len(levels))[groups] == 0  # a group is whole
            upper[inside] = tree.pairs(np.full_like(levels, level))[inside]
        pairs, step = _steps(upper)
        if not len(pairs):
            return None
        if tree.alike:
            return _one_by_one(tree, pairs, [self.up(tree, pair) for pair in pairs.tolist()])
        first = np.empty(len(self.classes), np.int64)
        first[self.of[::-1]] = np.arange(len(self.of))[::-1]
        of = step[self.base.codes(tree.column)[first]]
        rows = np.flatnonzero(of >= 0)
        codes = [own[first[rows]] for own in self._codes]
        codes[tree.column] = of[rows]
        part = selected(self.classes.counts, rows)
        return self._judged(tree, pairs, of[rows], part, packed(codes), rows)

    def _judged(
        self, tree: Tree, pairs: IntArray, step: IntArray, part: Counts, keys: IntArray, before: IntArray
    ) -> Steps:
        """Judge the classes that steps make; parts with equal keys are one, and were in the class before."""
        after = numbered(keys)
        classes = Classes(gathered(part, after), self.problem.about)
        of = np.empty(len(classes), np.int64)
        of[after] = step
        number = len(pairs)
        parted = np.full(len(self.classes), number)  # by no step
        parted[before] = step
        refused = self.problem.violations(classes)
        was = np.where(self.refused, self.classes.sizes, 0)
        short = self.short + _per_step(of, np.where(refused, classes.sizes, 0), number)
        short -= _per_step(parted, was, number)
        unknown = self.unknown + _per_step(of, self._unknown_in(classes, refused), number)
        unknown -= _per_step(parted, self._unknown, number)
        least = self._least_beside(number, parted)
        np.minimum.at(least, of, classes.sizes)
        return Steps(tree, pairs, short.astype(np.int64), least, unknown)

    def _least_beside(self, number: int, of: IntArray) -> IntArray:
        """Return the size of the smallest class that is in none of a step's, for each."""
        least = np.full(number + 1, self.problem.records)
        np.minimum.at(least, of, self.classes.sizes)
        smallest = int(np.argmin(least))
        beside = np.full(number + 1, least[smallest])
        beside[smallest] = np.delete(least, smallest).min()
        return beside[:number]


def top(problem: Problem) -> Cut:
    """Return the cut that takes every value as high as it may go; labels are followed if some may be lost."""
    trees = _trees(problem)
    base = problem.counts if problem.limit else _unlabelled(problem)
    return Cut(problem, base, trees, tuple(tree.settled[tree.high] for tree in trees))


def bottom(problem: Problem) -> Cut:
    """Return the cut that takes every value as low as it may go."""
    trees = _trees(problem)
    return Cut(problem, _unlabelled(problem), trees, tuple(tree.settled[tree.low] for tree in trees))


def _unlabelled(problem: Problem) -> Counts:
    label = label_of(problem.counts)
    return problem.counts.naming({name: name for name in problem.counts.sensitive if name != label})


def _trees(problem: Problem) -> tuple[Tree, ...]:
    """Describe every column; each is one axis of the lattice."""
    levels = zip(problem.lattice.axes, problem.lattice.low, problem.lattice.high, strict=True)
    found = [_tree(problem, members[0], low, high) for members, low, high in levels]
    return tuple(sorted(found, key=lambda tree: tree.column))


def _tree(problem: Problem, column: int, low: int, high: int) -> Tree:
    hierarchy = problem.hierarchies[column]
    every = range(hierarchy.height + 1)
    groups = np.stack([hierarchy.groups(level) for level in every])
    bounds = hierarchy.name in problem.as_bounds
    _, maps = of_levels(hierarchy, problem.value_counts[column], every, bounds=bounds, blanks=False)
    looks = np.stack([maps[level] for level in every])
    alike = _alike(groups[low : high + 1], looks[low : high + 1])
    settled = np.repeat(np.array(every)[:, None], groups.shape[1], axis=1)
    if not alike:
        sizes = [np.bincount(own)[own] for own in groups]
        for level in range(low + 1, high + 1):
            settled[level] = np.where(sizes[level] == sizes[level - 1], settled[level - 1], level)
    gains = _gains(problem, column, hierarchy)
    return Tree(column, low, high, groups, settled, looks, gains, alike, as_is=not bounds)


def _alike(groups: IntArray, looks: IntArray) -> bool:
    """Tell whether groups of different values look alike, at one level or at two."""
    known: dict[int, tuple[int, int]] = {}  # of each look: how many values have it, and the first
    for own, shown in zip(groups, looks, strict=True):
        present, first, sizes = np.unique(shown, return_index=True, return_counts=True)
        if len(present) < int(own.max()) + 1:
            return True
        for look, size, value in zip(present.tolist(), sizes.tolist(), first.tolist(), strict=True):
            if known.setdefault(look, (size, value)) != (size, value):
                return True
    return False


def _gains(problem: Problem, column: int, hierarchy: Hierarchy) -> FloatArray:
    """Return what the groups below each group tell of a record's label: the entropy that they take away."""
    labels = problem.counts.sensitive[str(label_of(problem.counts))]
    codes = problem.counts.codes(column)[labels.rows]
    gains = np.zeros((hierarchy.height + 1, len(hierarchy.labels[0])))
    below = np.empty(0)
    for level in range(hierarchy.height + 1):
        own = hierarchy.groups(level)[codes]
        keys, of = np.unique((own << labels.bits) | labels.codes, return_inverse=True)
        bits = _bits(keys >> labels.bits, np.bincount(of.reshape(-1), labels.counts))
        if level:
            records = np.bincount(own, labels.counts, len(bits))
            lost = bits - np.bincount(hierarchy.steps[level - 1], below, len(bits))
            gains[level, : len(bits)] = np.maximum(0, lost) / records
        below = bits
    return gains


def _bits(groups: IntArray, counts: IntArray) -> FloatArray:
    """Return the entropy of each group's labels times its records; a label of a group is one row."""
    totals = np.bincount(groups, counts).astype(np.float64)
    bits: FloatArray = totals * np.log2(totals) - np.bincount(groups, counts * np.log2(counts))
    return bits


def _per_step(of: IntArray, amounts: IntArray | FloatArray, number: int) -> FloatArray:
    """Add up amounts of classes for each step; those of no step have its number after the last."""
    return np.bincount(of, amounts, number + 1)[:number].astype(np.float64)


def _steps(upper: IntArray) -> tuple[IntArray, IntArray]:
    """Return the steps there are, and that of each value, -1 where it has none."""
    pairs = np.unique(upper[upper >= 0])
    return pairs, np.where(upper >= 0, np.searchsorted(pairs, upper), -1)


def _one_by_one(tree: Tree, pairs: IntArray, following: Sequence[Cut]) -> Steps:
    short = np.array([cut.short for cut in following])
    least = np.array([cut.least for cut in following])
    return Steps(tree, pairs, short, least, np.array([cut.unknown for cut in following]))
