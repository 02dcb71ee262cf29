"""Incognito (LeFevre, DeWitt and Ramakrishnan 2005): all acceptable nodes, through growing column sets.

Lemma (subset property): where some columns at their levels are refused, every node that has them at these
levels is refused, for adding columns only splits classes. So the nodes over a set of columns that need
counting are those whose parts over every smaller set were accepted, and these are closed upward: going
up breadth first, an accepted node accepts all that lies above it, and a refused one hands its counts to
the nodes one step above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from shoal.algorithms.pruning import no_node, unfit
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.counts import Counts
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.lattice import Index
from shoal.core.problem import Problem
from shoal.core.tags import minimal

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Incognito(NodeSearch):
    """Find all acceptable nodes over ever more columns, then the one of least loss."""

    variant: Literal["basic", "cube", "super-roots"] = "basic"
    """Where the lowest counts of a set of columns come from."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which a refused part would not refuse the whole."""
        return unfit(problem)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return the best of all acceptable nodes."""
        walk = _Walk(problem, evaluate, self.variant)
        accepted = walk.accepted_everywhere()
        if not accepted.any():
            raise no_node()
        chosen = evaluate.best_of(accepted)
        tagged = problem.lattice.size - evaluate.nodes_evaluated
        assert chosen is not None
        nodes = [problem.lattice.node(index) for index in np.argwhere(accepted).tolist()]
        return evaluate.finish(chosen, self.guarantee, nodes, tagged=tagged, compared=len(nodes))


class _Walk:
    """One run: which levels of each set of axes are accepted."""

    def __init__(self, problem: Problem, evaluate: Evaluator, variant: str) -> None:
        self.problem = problem
        self.evaluate = evaluate
        self.variant = variant
        self.lattice = problem.lattice
        self.lowest: dict[Axes, Counts] = {}  # the cube: counts over a set as it is

    def accepted_everywhere(self) -> BoolArray:
        """Grow the sets of axes until all are in."""
        every = tuple(range(len(self.lattice.axes)))
        if self.variant == "cube":
            self.fill_cube(every)
        known: dict[Axes, BoolArray] = {(): np.ones((), np.bool_)}
        for size in range(1, len(every) + 1):
            known = {axes: self.accepted(axes, known) for axes in combinations(every, size)}
        return known[every]

    def accepted(self, axes: Axes, smaller: dict[Axes, BoolArray]) -> BoolArray:
        """Search the levels of some axes, given what was accepted over all but one of them."""
        candidates = np.ones([self.lattice.shape[axis] for axis in axes], np.bool_)
        for place in range(len(axes)):
            part = smaller[(*axes[:place], *axes[place + 1 :])]
            candidates &= np.expand_dims(part, place)
        accepted = np.zeros_like(candidates)
        roots = list(map(tuple, np.argwhere(minimal(candidates)).tolist()))
        start = self.super_root(axes, roots)
        below: dict[Index, Counts] = {}  # refused, one step below
        for indices in _by_height(candidates):
            refused: dict[Index, Counts] = {}
            for index in indices:
                if accepted[index]:
                    continue
                counts = self.counts(axes, index, below, start)
                if self.holds(axes, index, counts):
                    accepted[tuple(slice(at, None) for at in index)] = True
                else:
                    refused[index] = counts
            below = refused
        return accepted

    def holds(self, axes: Axes, index: Index, counts: Counts) -> bool:
        """Judge counts over some axes; over all of them they are a node's."""
        if len(axes) < len(self.lattice.axes):
            return self.evaluate.holds(counts)
        return self.evaluate.judged(self.lattice.node(index), counts).acceptable

    def counts(
        self, axes: Axes, index: Index, below: dict[Index, Counts], start: tuple[Index, Counts] | None
    ) -> Counts:
        """Roll up from the smallest counts one step below, or from where the variant begins."""
        sources = [(len(below[low]), low) for low in _steps_below(index) if low in below]
        if sources:
            _, low = min(sources)
            return self.rolled(below[low], axes, low, index)
        if start is not None:
            return self.rolled(start[1], axes, start[0], index)
        if self.variant == "cube":
            return self.rolled(self.lowest[axes], axes, None, index)
        return self.from_table(axes, index)

    def super_root(self, axes: Axes, roots: list[Index]) -> tuple[Index, Counts] | None:
        """Count the greatest node below all roots, from which they roll up."""
        if self.variant != "super-roots" or len(roots) < 2:
            return None
        meet = tuple(min(levels) for levels in zip(*roots, strict=True))
        return meet, self.from_table(axes, meet, subset=len(axes) < len(self.lattice.axes))

    def from_table(self, axes: Axes, index: Index, *, subset: bool = False) -> Counts:
        """Count some axes at their levels from all combinations, without the other axes."""
        groups = self.dropping(set(range(len(self.lattice.axes))) - set(axes))
        groups |= self.between(axes, None, index)
        return self.evaluate.rolled(self.problem.counts, groups, subset=subset)

    def fill_cube(self, every: Axes) -> None:
        """Count every set of axes as it is, each from the smallest set that has one more."""
        self.lowest[every] = self.problem.counts
        for size in range(len(every) - 1, 0, -1):
            for axes in combinations(every, size):
                wider = [tuple(sorted((*axes, axis))) for axis in every if axis not in axes]
                source = min(wider, key=lambda wide: len(self.lowest[wide]))
                gone = self.dropping(set(source) - set(axes))
                self.lowest[axes] = self.evaluate.rolled(self.lowest[source], gone, subset=True)

    def rolled(self, counts: Counts, axes: Axes, low: Index | None, index: Index) -> Counts:
        """Raise some axes from one index to another."""
        return self.evaluate.rolled(counts, self.between(axes, low, index))

    def between(self, axes: Axes, low: Index | None, high: Index) -> dict[int, IntArray]:
        """Return the maps that raise some axes; without `low` from the values as they are."""
        groups = {}
        for place, axis in enumerate(axes):
            begin = 0 if low is None else low[place] + self.lattice.low[axis]
            end = high[place] + self.lattice.low[axis]
            if begin < end:
                for column in self.lattice.axes[axis]:
                    groups[column] = self.problem.hierarchies[column].between(begin, end)
        return groups

    def dropping(self, gone: Iterable[int]) -> dict[int, IntArray]:
        """Return the maps that make every value of some axes alike."""
        columns = [column for axis in sorted(gone) for column in self.lattice.axes[axis]]
        return {c: np.zeros(len(self.problem.hierarchies[c].labels[0]), np.int64) for c in columns}


def _by_height(members: BoolArray) -> Iterator[list[Index]]:
    """Yield the members' indices height by height, lexicographically."""
    found = np.argwhere(members)
    heights = found.sum(axis=1)
    for height in np.unique(heights).tolist():
        yield list(map(tuple, found[heights == height].tolist()))


def _steps_below(index: Index) -> Iterator[Index]:
    for place, at in enumerate(index):
        if at:
            yield (*index[:place], at - 1, *index[place + 1 :])
