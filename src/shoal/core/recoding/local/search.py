"""The search of local recoding: divide from the top down, regroup, and evaluate the result.

Models that need more than sizes are checked for both parts of every division, and for every regrouped class.
Conditions on the whole table are checked at the end. If they do not hold, the result of refining is returned
instead.
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

_ROUNDS = 5  # minimum number of rounds; more for many columns
_SECONDS = 10.0  # for regrouping, even if refining has used up the time
_STEP = 20_000_000  # combinations times axes that are read between two checks of the time
_PLACES = 1000  # number of classes that are regrouped between two checks of the time
_TRIED = 16  # maximum number of children of a class for which models are checked


def localized(evaluate: Evaluator, at_node: Evaluation, labels: int = 1) -> Evaluation:
    """Give every class the lowest labels that cover it, with at most `labels` labels per cell.

    If the result has a greater loss than the result of `refined`, by coverage or by the metric of the policy,
    the latter is returned. At the time limit, the search ends with the classes formed so far.
    """
    problem = evaluate.problem
    search = _Search.of(problem, evaluate.check_time)
    divided = search.divided()
    try:
        best = refined(evaluate, at_node)
    except OutOfTime:
        best = at_node
    evaluate.allow(_SECONDS)
    classes = search.regrouped(search.cheaper(divided, best.recoding), labels)
    recoding = search.recoding(classes, labels, at_node)
    judged = evaluate.recoding(recoding, at_node.node)
    if not judged.acceptable or below(best.loss, judged.loss):
        return best
    before = best.recoding or search.at_node(at_node)
    if below(_coverage(problem, before), _coverage(problem, recoding)):
        return best
    return replace(
        judged,
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
    order: IntArray  # (combinations,): the position of each in the problem's counts
    counts: InMemoryCounts
    axes: list[LabelAxis]
    labels: ClassLabels
    needs: Needs
    exact: bool  # whether sizes decide

    @classmethod
    def of(cls, problem: Problem, check: Callable[[], None]) -> _Search:
        order = np.lexsort(problem.counts.keys)
        counts = selected(problem.counts, order)
        axes = axes_of(problem, counts)
        needs = needs_of(problem, counts)
        exact = all(model.sizes_suffice for model in problem.models)
        return cls(problem, check, order, counts, axes, labels_of(axes), needs, exact)

    def late(self) -> bool:
        """Return whether the time limit is reached."""
        try:
            self.check()
        except OutOfTime:
            return True
        return False

    def fails(self, of: IntArray) -> BoolArray:
        """Mark the classes that some model refuses."""
        return self.problem.violations(Classes(gathered(self.counts, of), self.problem.sensitive_info))

    def cheaper(self, classes: IntArray, other: Recoding | None) -> IntArray:
        """Return the given class of each combination, or that of another recoding if it costs less."""
        if other is None or other.regions is None:
            return classes
        gone = other.regions.suppressed[other.regions.classes]
        given = np.where(gone, -1, other.regions.classes)[self.order]
        return given if self.cost(given) < self.cost(classes) else classes

    def cost(self, of: IntArray) -> float:
        """Return the cost of classes with one label per cell; suppressed records count as lost."""
        state = self.described(numbered_again(of), 1)
        lost = self.counts.sizes[of < 0].sum() * sum(self.problem.weights)
        return float((state.records * state.weights).sum() + lost)

    def divided(self) -> IntArray:
        """Divide classes from the top down; groups that fail at the top are suppressed."""
        labels = self.labels
        tops = [
            labels.up[labels.at[axis, height] + labels.codes[axis]]
            for axis, height in enumerate(labels.heights.tolist())
        ]
        group = numbered(packed(tops))
        group = np.where(self.fails(group)[group], -1, group)
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
        of = np.full(len(group), -1)
        of[order] = np.cumsum(begins) - 1
        return of

    def _by_size(self, order: IntArray, begins: BoolArray, ends: IntArray) -> None:
        waiting = len(ends)
        stack = np.zeros((len(order) + 2, 2), np.int64)
        stack[:waiting] = ends
        while waiting and not self.late():
            waiting = split_all(
                order, stack, waiting, begins, self.counts.sizes, self.labels, self.needs, _STEP
            )

    def _by_models(self, order: IntArray, begins: BoolArray, ends: IntArray) -> None:
        while len(ends) and not self.late():
            gains = np.empty((len(ends), _TRIED))
            children = np.empty((len(ends), _TRIED, 2), np.int64)
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
        """Return per class the best child for which both parts pass, as axis and label; axis -1: none."""
        chosen = np.full((len(ends), 2), -1)
        for rank in range(gains.shape[1]):
            asked = np.where(((gains[:, rank] > 0) & (chosen[:, 0] < 0))[:, None], children[:, rank], -1)
            here = np.flatnonzero(asked[:, 0] >= 0)
            if not len(here):
                break
            of = np.full(len(self.counts), -1)
            sides(order, np.ascontiguousarray(ends[here]), np.ascontiguousarray(asked[here]), self.labels, of)
            good = here[~self.fails(of).reshape(-1, 2).any(axis=1)]
            chosen[good] = asked[good]
        return chosen

    def described(self, of: IntArray, labels: int) -> _Described:
        """Describe classes that are numbered from 0."""
        number, axes = len(self.counts) + 3, len(self.axes)
        state = _Described(
            heads=np.full(number, -1),
            following=np.full(len(of), -1),
            cells=np.full((number, axes, labels), -1),
            records=np.zeros(number, np.int64),
            weights=np.zeros(number),
        )
        describe(of, self.lowest, self.counts.sizes, self.labels, *state.arrays)
        return state

    @cached_property
    def lowest(self) -> IntArray:
        """The labels of the combinations at the lowest levels, (combinations, axes)."""
        table = self.labels
        columns = [table.up[table.at[axis, 0] + codes] for axis, codes in enumerate(table.codes)]
        return np.ascontiguousarray(np.stack(columns, axis=1))

    def regrouped(self, of: IntArray, labels: int) -> IntArray:
        """Regroup classes in several orders; if models need more than sizes, each class once per order."""
        random = np.random.default_rng(0)
        first = random.permutation(len(self.axes))
        for number in range(max(_ROUNDS, len(first) // 2)):
            of = numbered_again(of)
            if self.late() or of.max(initial=-1) < 1:
                break
            axes = random.permutation(len(self.axes))  # the last is the most significant; changes each round
            of = self._round(of, labels, np.append(axes, first[number % len(first)]))
        return numbered_again(of)

    def _round(self, of: IntArray, labels: int, axes: IntArray) -> IntArray:
        """Regroup every class with its nearest, in the order of the paths from the top to its labels."""
        state = self.described(of, labels)
        classes = int(of.max()) + 1
        places = np.lexsort([self.labels.rank[state.cells[:classes, axis, 0]] for axis in axes.tolist()])
        before, moved = of.copy(), np.full(len(of), -1)
        many = np.bincount(of[of >= 0], minlength=len(state.heads))
        tables = (self.lowest, self.counts.sizes, self.labels, self.needs)
        for begin in range(0, classes, _PLACES):
            if self.late():
                break
            end = min(classes, begin + _PLACES)
            regroup(begin, end, not self.exact, places, of, moved, *tables, *state.arrays, many)
        return of if self.exact else self._confirmed(of, before, moved)

    def _confirmed(self, of: IntArray, before: IntArray, moved: IntArray) -> IntArray:
        """Undo each regrouping that formed a class that a model refuses."""
        now = numbered_again(of)
        refused = (now >= 0) & self.fails(now)[now] & (moved >= 0)
        undone = np.isin(moved, moved[refused])
        result: IntArray = np.where(undone, before + len(of) + 3, of)
        return result

    def recoding(self, of: IntArray, labels: int, at_node: Evaluation) -> Recoding:
        """Return the recoding of classes; suppressed records keep the levels of the node."""
        state = self.described(of, labels)
        levels = np.repeat(np.array(at_node.node, np.int64)[:, None], len(of), axis=1)
        kept = of >= 0
        for number, axis in enumerate(self.axes):
            cells = self.labels.level[state.cells[of[kept], number, 0]] + axis.low
            levels[np.ix_(np.array(axis.columns), kept)] = cells
        back = np.empty(len(of), np.int64)
        back[self.order] = np.arange(len(of))
        if labels == 1:
            return recoding_of(self.problem, levels[:, back], ~kept[back])
        return recoding_of_cells(self.problem, levels[:, back], of[back])

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
        gone = self.problem.violations(classes)[numbered(keys)]  # both number classes in order of appearance
        return recoding_of(self.problem, levels, gone)


@dataclass(frozen=True)
class _Described:
    """Classes as kernels read and change them."""

    heads: IntArray  # (classes,): the first combination
    following: IntArray  # (combinations,): the next of the same class
    cells: IntArray  # (classes, axes, labels)
    records: IntArray
    weights: FloatArray

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
        return self.heads, self.following, self.cells, self.records, self.weights


def numbered_again(of: IntArray) -> IntArray:
    """Renumber classes from 0 in order of first appearance; -1 is kept."""
    result = np.full(len(of), -1)
    kept = of >= 0
    if kept.any():
        result[kept] = numbered(of[kept].reshape(1, -1))
    return result
