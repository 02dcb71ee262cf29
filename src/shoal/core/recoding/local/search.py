"""The search of local recoding: divide classes from the top down, regroup them, and evaluate the result.

Models that need more than sizes are checked for both parts of every division, and for every regrouped class.
Models about the whole table are checked at the end. If they do not hold, the result of
`shoal.core.recoding.refine.refined` is returned instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Guarantee
from shoal.core.counts.counts import numbered, packed
from shoal.core.counts.in_memory import InMemoryCounts, gathered, selected
from shoal.core.evaluation import Evaluation, below
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.local.cells import recoding_of_cells
from shoal.core.recoding.local.regroup import describe, regroup
from shoal.core.recoding.local.split import candidates, divide, sides, split_all
from shoal.core.recoding.local.tables import ClassLabels, LabelAxis, Needs, axes_of, labels_of, needs_of
from shoal.core.recoding.recoding import Recoding
from shoal.core.recoding.refine import recoding_of, refined
from shoal.errors import OutOfTime

_MIN_ROUNDS = 5  # minimum number of rounds; more for many columns
_REGROUP_SECONDS = 10.0  # minimum time for regrouping, even if refining took all the time
_READS_PER_CHECK = 20_000_000  # combinations times axes that are read between two checks of the time
_CLASSES_PER_CHECK = 1000  # number of classes that are regrouped between two checks of the time
_MAX_CHILDREN = 16  # maximum number of children of a class for which models are checked


def localized(evaluate: Evaluator, at_node: Evaluation, labels: int = 1) -> Evaluation:
    """Recode every class to the lowest labels that cover it, with at most `labels` labels per cell.

    The result of `refined` is returned instead if it has a smaller loss, by coverage or by the metric of the
    policy. At the time limit, the search ends with the classes formed so far.
    """
    problem = evaluate.problem
    search = _Search.of(problem, evaluate.check_time)
    divided = search.divide_classes()
    try:
        best = refined(evaluate, at_node)
    except OutOfTime:
        best = at_node
    evaluate.allow(_REGROUP_SECONDS)
    classes = search.regroup_classes(search.cheaper(divided, best.recoding), labels)
    recoding = search.recoding(classes, labels, at_node)
    evaluation = evaluate.recoding(recoding, at_node.node)
    if not evaluation.acceptable or below(best.loss, evaluation.loss):
        return best
    best_recoding = best.recoding or search.at_node(at_node)
    if below(_coverage(problem, best_recoding), _coverage(problem, recoding)):
        return best
    return replace(
        evaluation,
        proven=Guarantee.ACCEPTABLE,
        candidates=at_node.candidates,
        evaluated_candidates=at_node.evaluated_candidates,
        work=at_node.work,
    )


def _coverage(problem: Problem, recoding: Recoding) -> float:
    """Return the weighted coverage loss of a recoding by regions; suppressed records count as lost."""
    if recoding.regions is None:
        raise TypeError
    regions = recoding.regions
    sizes = np.bincount(regions.classes, regions.sizes, len(regions.suppressed))
    total = 0.0
    columns = zip(problem.weights, problem.hierarchies, recoding.column_groups, regions.groups, strict=True)
    for weight, hierarchy, groups, codes in columns:
        shares = np.where(regions.suppressed, 1.0, groups.shares(hierarchy)[codes])
        total += weight * float((sizes * shares).sum())
    return total


@dataclass(frozen=True)
class _Search:
    """A partition of the combinations, in a canonical order, into classes."""

    problem: Problem
    check: Callable[[], None]
    order: IntArray  # (combinations,): the position of each combination in the problem's counts
    counts: InMemoryCounts
    axes: list[LabelAxis]
    labels: ClassLabels
    needs: Needs
    exact: bool  # whether the models require no more than `needs`, so that they need not be checked

    @classmethod
    def of(cls, problem: Problem, check: Callable[[], None]) -> _Search:
        order = np.lexsort(problem.counts.keys)
        counts = selected(problem.counts, order)
        axes = axes_of(problem, counts)
        needs = needs_of(problem, counts)
        exact = all(model.sizes_suffice for model in problem.models)
        return cls(problem, check, order, counts, axes, labels_of(axes), needs, exact)

    def is_late(self) -> bool:
        """Return whether the time limit is reached."""
        try:
            self.check()
        except OutOfTime:
            return True
        return False

    def refused(self, class_of: IntArray) -> BoolArray:
        """Mark the classes that some model refuses."""
        return self.problem.violations(Classes(gathered(self.counts, class_of), self.problem.sensitive_info))

    def cheaper(self, classes: IntArray, other: Recoding | None) -> IntArray:
        """Return the cheaper of two partitions: the given classes, or those of another recoding."""
        if other is None or other.regions is None:
            return classes
        suppressed = other.regions.suppressed[other.regions.classes]
        other_classes = np.where(suppressed, -1, other.regions.classes)[self.order]
        return other_classes if self.cost(other_classes) < self.cost(classes) else classes

    def cost(self, class_of: IntArray) -> float:
        """Return the cost of classes with one label per cell; suppressed records count as lost."""
        state = self.describe(renumbered(class_of), 1)
        suppressed = self.counts.sizes[class_of < 0].sum() * sum(self.problem.weights)
        return float((state.records * state.weights).sum() + suppressed)

    def divide_classes(self) -> IntArray:
        """Divide classes from the top down; groups that models refuse at the top are suppressed."""
        labels = self.labels
        tops = [
            labels.label_of[labels.offsets[axis, height] + labels.codes[axis]]
            for axis, height in enumerate(labels.heights.tolist())
        ]
        group = numbered(packed(tops))
        group = np.where(self.refused(group)[group], -1, group)
        kept = np.flatnonzero(group >= 0)
        order = kept[np.argsort(group[kept], kind="stable")]
        begins = np.diff(group[order], prepend=-1) != 0
        starts = np.flatnonzero(begins)
        ends = (
            np.stack((starts, np.append(starts[1:], len(order))), axis=1)
            if len(order)
            else np.empty((0, 2), np.int64)
        )
        (self._by_size if self.exact else self._by_models)(order, begins, ends)
        class_of = np.full(len(group), -1)
        class_of[order] = np.cumsum(begins) - 1
        return class_of

    def _by_size(self, order: IntArray, begins: BoolArray, ends: IntArray) -> None:
        pending = len(ends)
        stack = np.zeros((len(order) + 2, 2), np.int64)
        stack[:pending] = ends
        while pending and not self.is_late():
            pending = split_all(
                order, stack, pending, begins, self.counts.sizes, self.labels, self.needs, _READS_PER_CHECK
            )

    def _by_models(self, order: IntArray, begins: BoolArray, ends: IntArray) -> None:
        while len(ends) and not self.is_late():
            gains = np.empty((len(ends), _MAX_CHILDREN))
            children = np.empty((len(ends), _MAX_CHILDREN, 2), np.int64)
            candidates(order, ends, self.counts.sizes, self.labels, self.needs, gains, children)
            chosen = self._passing(order, ends, gains, children)
            parts = []
            for (start, end), (axis, label) in zip(ends.tolist(), chosen.tolist(), strict=True):
                if axis >= 0:
                    middle = divide(order, start, end, axis, label, self.labels)
                    begins[middle] = True
                    parts += [(start, middle), (middle, end)]
            ends = np.array(parts, np.int64).reshape(-1, 2)

    def _passing(self, order: IntArray, ends: IntArray, gains: FloatArray, children: IntArray) -> IntArray:
        """Return, per class, the axis and label of the best child so that both parts pass; axis -1: none."""
        chosen = np.full((len(ends), 2), -1)
        for rank in range(gains.shape[1]):
            tried = np.where(((gains[:, rank] > 0) & (chosen[:, 0] < 0))[:, None], children[:, rank], -1)
            pending = np.flatnonzero(tried[:, 0] >= 0)
            if not len(pending):
                break
            part_of = np.full(len(self.counts), -1)
            sides(
                order,
                np.ascontiguousarray(ends[pending]),
                np.ascontiguousarray(tried[pending]),
                self.labels,
                part_of,
            )
            passing = pending[~self.refused(part_of).reshape(-1, 2).any(axis=1)]
            chosen[passing] = tried[passing]
        return chosen

    def describe(self, class_of: IntArray, labels: int) -> _ClassArrays:
        """Compute the arrays that describe classes, which are numbered from 0."""
        size, axes = len(self.counts) + 3, len(self.axes)
        state = _ClassArrays(
            heads=np.full(size, -1),
            following=np.full(len(class_of), -1),
            cells=np.full((size, axes, labels), -1),
            records=np.zeros(size, np.int64),
            weights=np.zeros(size),
        )
        describe(class_of, self.lowest, self.counts.sizes, self.labels, *state.arrays)
        return state

    @cached_property
    def lowest(self) -> IntArray:
        """The labels of the combinations at the lowest levels, (combinations, axes)."""
        table = self.labels
        columns = [table.label_of[table.offsets[axis, 0] + codes] for axis, codes in enumerate(table.codes)]
        return np.ascontiguousarray(np.stack(columns, axis=1))

    def regroup_classes(self, class_of: IntArray, labels: int) -> IntArray:
        """Regroup classes in several rounds, each in another order."""
        random = np.random.default_rng(0)
        first = random.permutation(len(self.axes))
        for number in range(max(_MIN_ROUNDS, len(first) // 2)):
            class_of = renumbered(class_of)
            if self.is_late() or class_of.max(initial=-1) < 1:
                break
            axes = random.permutation(len(self.axes))
            class_of = self._round(class_of, labels, np.append(axes, first[number % len(first)]))
        return renumbered(class_of)

    def _round(self, class_of: IntArray, labels: int, axes: IntArray) -> IntArray:
        """Regroup every class with its nearest classes.

        Classes are sorted by the paths from the top to their labels; the last axis is the most significant.
        """
        state = self.describe(class_of, labels)
        classes = int(class_of.max()) + 1
        class_at = np.lexsort([self.labels.rank[state.cells[:classes, axis, 0]] for axis in axes.tolist()])
        before, moved = class_of.copy(), np.full(len(class_of), -1)
        row_counts = np.bincount(class_of[class_of >= 0], minlength=len(state.heads))
        tables = (self.lowest, self.counts.sizes, self.labels, self.needs)
        for begin in range(0, classes, _CLASSES_PER_CHECK):
            if self.is_late():
                break
            end = min(classes, begin + _CLASSES_PER_CHECK)
            regroup(begin, end, not self.exact, class_at, class_of, moved, *tables, *state.arrays, row_counts)
        return class_of if self.exact else self._confirmed(class_of, before, moved)

    def _confirmed(self, class_of: IntArray, before: IntArray, moved: IntArray) -> IntArray:
        """Undo each regrouping that created a class that a model refuses."""
        current = renumbered(class_of)
        refused = (current >= 0) & self.refused(current)[current] & (moved >= 0)
        undone = np.isin(moved, moved[refused])
        result: IntArray = np.where(undone, before + len(class_of) + 3, class_of)
        return result

    def recoding(self, class_of: IntArray, labels: int, at_node: Evaluation) -> Recoding:
        """Return the recoding of classes; suppressed records keep the levels of the node."""
        state = self.describe(class_of, labels)
        levels = np.repeat(np.array(at_node.node, np.int64)[:, None], len(class_of), axis=1)
        kept = class_of >= 0
        for number, axis in enumerate(self.axes):
            cells = self.labels.level[state.cells[class_of[kept], number, 0]] + axis.low
            levels[np.ix_(np.array(axis.columns), kept)] = cells
        position = np.empty(len(class_of), np.int64)
        position[self.order] = np.arange(len(class_of))
        if labels == 1:
            return recoding_of(self.problem, levels[:, position], ~kept[position])
        return recoding_of_cells(self.problem, levels[:, position], class_of[position])

    def at_node(self, evaluation: Evaluation) -> Recoding:
        """Return a node as a recoding by regions."""
        levels = np.repeat(np.array(evaluation.node, np.int64)[:, None], len(self.order), axis=1)
        classes = self.problem.classes(evaluation.node)
        keys = packed(
            [
                h.groups(level)[self.problem.counts.codes(c)]
                for c, (h, level) in enumerate(zip(self.problem.hierarchies, evaluation.node, strict=True))
            ]
        )
        suppressed = self.problem.violations(classes)[
            numbered(keys)
        ]  # `numbered` and `classes` number classes in the same order, by first appearance
        return recoding_of(self.problem, levels, suppressed)


@dataclass(frozen=True)
class _ClassArrays:
    """The arrays that describe classes, which kernels read and change."""

    heads: IntArray  # (classes,): the first combination
    following: IntArray  # (combinations,): the next combination of the same class
    cells: IntArray  # (classes, axes, labels)
    records: IntArray
    weights: FloatArray

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
        return self.heads, self.following, self.cells, self.records, self.weights


def renumbered(class_of: IntArray) -> IntArray:
    """Renumber classes from 0 in order of first appearance; -1 is kept."""
    result = np.full(len(class_of), -1)
    kept = class_of >= 0
    if kept.any():
        result[kept] = numbered(class_of[kept].reshape(1, -1))
    return result
