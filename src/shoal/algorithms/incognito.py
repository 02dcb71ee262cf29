"""Incognito (LeFevre, DeWitt and Ramakrishnan 2005): all acceptable nodes, by growing sets of columns.

Lemma (subset property): if a node over some columns is refused, every node with these columns at these levels
is refused, because more columns only split classes.

So the candidates over a set of columns are the nodes whose projections to all smaller sets were accepted. All
nodes above a candidate are candidates. They are searched breadth first from the bottom. All nodes above an
accepted node are accepted, and the counts of a refused node are rolled up to the nodes one step above.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import ClassVar, Literal

import numpy as np

from shoal.algorithms.pruning import no_node, refuse_unless_monotone
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.counts.counts import Counts
from shoal.core.evaluation import CandidateGraph, Evaluation, SearchSpace
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Index, minimal
from shoal.core.problem import Problem
from shoal.errors import Refusal

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Incognito(NodeSearch):
    """Find all acceptable nodes over growing sets of columns, then the one of least loss."""

    variant: Literal["basic", "cube", "super-roots"] = "basic"
    """What the first counts of a set of columns are computed from: the input, a cube, or super-roots."""

    plain_summary: ClassVar[str] = (
        "Starts with few columns and adds one after the other, to find every choice that works."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    lists_candidates: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        return refuse_unless_monotone(problem)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        walk = _Walk(problem, evaluate, self.variant)
        accepted = walk.accepted_everywhere()
        if not accepted.any():
            raise no_node()
        chosen = evaluate.best_of(accepted)
        tagged = problem.lattice.size - evaluate.nodes_evaluated
        assert chosen is not None
        nodes = [problem.lattice.node(index) for index in np.argwhere(accepted).tolist()]
        graph = CandidateGraph(walk.nodes, walk.edges)
        result = evaluate.finish(
            chosen, self.guarantee, nodes, tagged=tagged, compared=len(nodes), graph=graph
        )
        return replace(result, search_space=walk.search_space())


class _Walk:
    """One run: the accepted levels of each set of axes."""

    def __init__(self, problem: Problem, evaluate: Evaluator, variant: str) -> None:
        self.problem = problem
        self.evaluate = evaluate
        self.variant = variant
        self.lattice = problem.lattice
        self.lowest: dict[Axes, Counts] = {}  # the cube: the counts of each set of axes at level 0
        self.nodes = self.edges = 0  # totals over all candidate graphs
        self.candidates: Counter[int] = Counter()  # candidate nodes by the number of axes
        self.counted: Counter[int] = Counter()  # counted nodes by the number of axes

    def accepted_everywhere(self) -> BoolArray:
        """Extend the sets of axes until they contain all axes."""
        all_axes = tuple(range(len(self.lattice.axes)))
        if self.variant == "cube":
            self.fill_cube(all_axes)
        accepted: dict[Axes, BoolArray] = {(): np.ones((), np.bool_)}
        for size in range(1, len(all_axes) + 1):
            accepted = {axes: self.accepted(axes, accepted) for axes in combinations(all_axes, size)}
        return accepted[all_axes]

    def search_space(self) -> tuple[SearchSpace, ...]:
        """Return how many nodes there are over each number of axes, and how many were searched."""
        sizes = range(1, len(self.lattice.axes) + 1)
        nodes = {size: sum(map(prod, combinations(self.lattice.shape, size))) for size in sizes}
        return tuple(
            SearchSpace(size, nodes[size], self.candidates[size], self.counted[size]) for size in sizes
        )

    def accepted(self, axes: Axes, smaller: dict[Axes, BoolArray]) -> BoolArray:
        """Return which levels of some axes are accepted, given those of all subsets with one axis fewer."""
        self.evaluate.check_time()  # many sets of axes may have no candidate to count
        candidates = np.ones([self.lattice.shape[axis] for axis in axes], np.bool_)
        for position in range(len(axes)):
            accepted_part = smaller[(*axes[:position], *axes[position + 1 :])]
            candidates &= np.expand_dims(accepted_part, position)
        self.nodes += int(candidates.sum())
        self.edges += _edges(candidates)
        self.candidates[len(axes)] += int(candidates.sum())
        accepted = np.zeros_like(candidates)
        roots = list(map(tuple, np.argwhere(minimal(candidates)).tolist()))
        start = self.super_root(axes, roots)
        below: dict[Index, Counts] = {}  # counts of refused nodes, one step below
        for indices in _by_height(candidates):
            refused: dict[Index, Counts] = {}
            self.evaluate.check_time()
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
        """Return whether counts over some axes are accepted; counts over all axes are evaluated as a node."""
        self.counted[len(axes)] += 1
        if len(axes) < len(self.lattice.axes):
            return self.evaluate.holds(counts)
        return self.evaluate.from_counts(self.lattice.node(index), counts).acceptable

    def counts(
        self, axes: Axes, index: Index, below: dict[Index, Counts], start: tuple[Index, Counts] | None
    ) -> Counts:
        """Roll up the smallest counts one step below; without any, the counts that the variant provides."""
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
        """Count the highest node that is below all roots, from which the roots are rolled up."""
        if self.variant != "super-roots" or len(roots) < 2:
            return None
        meet = tuple(min(levels) for levels in zip(*roots, strict=True))
        return meet, self.from_table(axes, meet, subset=len(axes) < len(self.lattice.axes))

    def from_table(self, axes: Axes, index: Index, *, subset: bool = False) -> Counts:
        """Roll up all combinations to the levels of some axes, without the other axes."""
        groups = self.dropping(set(range(len(self.lattice.axes))) - set(axes))
        groups |= self.between(axes, None, index)
        return self.evaluate.rolled(self.problem.counts, groups, subset=subset)

    def fill_cube(self, all_axes: Axes) -> None:
        """Count every set of axes at level 0, each from the smallest set with one more axis."""
        self.lowest[all_axes] = self.problem.counts
        for size in range(len(all_axes) - 1, 0, -1):
            for axes in combinations(all_axes, size):
                wider = [tuple(sorted((*axes, axis))) for axis in all_axes if axis not in axes]
                source = min(wider, key=lambda wide: len(self.lowest[wide]))
                groups = self.dropping(set(source) - set(axes))
                self.lowest[axes] = self.evaluate.rolled(self.lowest[source], groups, subset=True)

    def rolled(self, counts: Counts, axes: Axes, low: Index | None, index: Index) -> Counts:
        """Raise some axes from one index to another."""
        return self.evaluate.rolled(counts, self.between(axes, low, index))

    def between(self, axes: Axes, low: Index | None, high: Index) -> dict[int, IntArray]:
        """Return the maps that raise some axes; without `low`, from level 0."""
        groups = {}
        for position, axis in enumerate(axes):
            begin = 0 if low is None else low[position] + self.lattice.low[axis]
            end = high[position] + self.lattice.low[axis]
            if begin < end:
                for column in self.lattice.axes[axis]:
                    groups[column] = self.problem.hierarchies[column].between(begin, end)
        return groups

    def dropping(self, axes: Iterable[int]) -> dict[int, IntArray]:
        """Return the maps that merge all values of some axes."""
        columns = [column for axis in sorted(axes) for column in self.lattice.axes[axis]]
        return {c: np.zeros(len(self.problem.hierarchies[c].labels[0]), np.int64) for c in columns}


def _edges(members: BoolArray) -> int:
    """Count the pairs of members that differ by one level of one axis."""
    edges = 0
    for axis in range(members.ndim):
        leading = (slice(None),) * axis
        edges += int((members[(*leading, slice(1, None))] & members[(*leading, slice(None, -1))]).sum())
    return edges


def _by_height(members: BoolArray) -> Iterator[list[Index]]:
    """Yield the indices of members height by height, in lexicographic order."""
    indices = np.argwhere(members)
    heights = indices.sum(axis=1)
    for height in np.unique(heights).tolist():
        yield list(map(tuple, indices[heights == height].tolist()))


def _steps_below(index: Index) -> Iterator[Index]:
    for axis, at in enumerate(index):
        if at:
            yield (*index[:axis], at - 1, *index[axis + 1 :])
