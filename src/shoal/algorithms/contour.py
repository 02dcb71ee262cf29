"""Contour: the least loss, proven by refusing the nodes along its contour.

Where the loss of every node is known beforehand (a separable metric) no frontier is needed: take an
acceptable node as incumbent and look only at the maximal nodes whose loss is smaller. Lemma: in a
monotone problem a refused node refuses everything below it, so once all maximal nodes with a smaller
loss are refused, every node with a smaller loss is, and the incumbent is optimal.

Other metrics are bounded. `rising` is the loss without suppression: it never falls going up, so what is
measured at a node holds above it. An accepted node whose bound is below the incumbent stays open until
it is evaluated itself, which keeps the search exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.contracts import Algorithm, Guarantee, When
from shoal.core.evaluate import LARGEST_HELD, Evaluation, Evaluator, Problem, below
from shoal.core.lattice import Lattice, Node
from shoal.core.tags import maximal, nodes_of
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Contour(Algorithm):
    """Refuse every node that could beat the incumbent, most general first."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which refusing what lies below, or bounding the loss, would be wrong."""
        if not problem.monotone_models:
            return "a privacy model is not monotone here"
        return "the metric has no bound" if problem.metric.monotone is When.NEVER else None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return a node of least loss."""
        if not evaluate(problem.lattice.top).acceptable:
            message = "No node is acceptable."
            raise Infeasible(message)
        if problem.lattice.size > LARGEST_HELD:
            Branches(problem, evaluate).search()
            settled = 0
        else:
            settled = _Field(problem, evaluate).search()
        assert evaluate.best is not None
        return evaluate.finish(
            evaluate.best,
            self.guarantee,
            tagged=max(0, settled - evaluate.nodes_evaluated),
            compared=evaluate.nodes_accepted,
        )


class _Field:
    """The lattice with what is known of each node: open or closed, accepted, and a bound of its loss."""

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        self.lattice: Lattice = problem.lattice
        self.evaluate = evaluate
        self.exact = problem.metric.separable.given(problem.limit > 0)
        self.tabled = problem.metric.separable is not When.NEVER
        self.rising: FloatArray = problem.losses() if self.tabled else np.full(self.lattice.shape, -np.inf)
        self.closed: BoolArray = np.zeros(self.lattice.shape, np.bool_)  # refused or evaluated
        self.accepted: BoolArray = np.zeros(self.lattice.shape, np.bool_)
        self.axes = np.arange(len(self.lattice.shape))
        self.retained = _retained(problem)
        self.lost = -np.diff(self.retained, axis=1)

    def search(self) -> int:
        """Close every node that could be better than the best; return how many are settled."""
        self.probe(self.lattice.top)
        self.descend(self.lattice.top)
        while (nodes := self.open_nodes()).any():
            if self.exact:
                self.refuse_together(np.argwhere(maximal(nodes)))
            else:
                self.probe_each(maximal(nodes) if self.tabled else self.middle(nodes))
        self.lower_within_ties()
        return self.lattice.size

    def lower_within_ties(self) -> None:
        """Go down from the best node as long as that costs nothing and suppresses no more."""
        node = None
        while self.evaluate.best and self.evaluate.best.node != node:
            node, loss = self.evaluate.best.node, self.evaluate.best.loss
            for lower in self.lattice.specializations(node):
                index = self.lattice.index(lower)
                if not self.closed[index] and not below(loss, float(self.rising[index])):
                    self.probe(lower)

    def open_nodes(self) -> BoolArray:
        """Mark the nodes that could be better than the best."""
        return ~self.closed & below(self.rising, self.evaluate.best_loss)

    def is_open(self, node: Node) -> bool:
        """Tell whether a node could be better than the best."""
        index = self.lattice.index(node)
        return not self.closed[index] and below(float(self.rising[index]), self.evaluate.best_loss)

    def probe(self, node: Node) -> Evaluation:
        """Evaluate a node and note what it says of others."""
        found = self.evaluate(node)
        if found.acceptable:
            self.closed[self.lattice.index(node)] = True
            self.accepted[self.lattice.above(node)] = True
        else:
            self.closed[self.lattice.below(node)] = True
        if not self.tabled:
            above = self.rising[self.lattice.above(node)]
            np.maximum(above, found.bound, out=above)
        return found

    def descend(self, node: Node) -> None:
        """Go down from an accepted node while some node one step below is accepted and better."""
        while True:
            steps = [n for n in self.lattice.specializations(node) if self.is_open(n)]
            steps.sort(key=lambda n: self.rising[self.lattice.index(n)])
            lower = next((n for n in steps if self.probe(n).acceptable), None)
            if lower is None:
                return
            node = lower

    def refuse_together(self, points: IntArray) -> None:
        """Refuse many nodes at once by refusing a node above them all, else split them.

        Stops at the first better node, for it changes which nodes matter.
        """
        groups = [points]  # (nodes, axes) each
        while groups:
            group = groups.pop()
            join = group.max(axis=0)
            if not self.accepted[tuple(join)]:
                node = self.lattice.node(join)
                if not self.probe(node).acceptable:
                    continue
                if len(group) == 1:
                    self.descend(node)
                    return
            groups += self.split(group, group.min(axis=0), join)

    def split(self, group: IntArray, meet: IntArray, join: IntArray) -> list[IntArray]:
        """Split nodes where one axis keeps most more information on one side than on the other."""
        axes = self.axes
        axis = int((self.retained[axes, meet] - self.retained[axes, join]).argmax())
        first, last = meet[axis], join[axis]
        low = group[:, axis] <= first + self.lost[axis, first:last].argmax()
        return [group[~low], group[low]]

    def probe_each(self, chosen: BoolArray) -> None:
        """Evaluate nodes that are still open, in the order in which they share roll-ups."""
        order = self.evaluate.order
        for node in sorted(nodes_of(self.lattice, chosen), key=lambda node: [node[c] for c in order]):
            if self.is_open(node):
                self.probe(node)

    def middle(self, open_nodes: BoolArray) -> BoolArray:
        """Keep the open nodes of the median height: whatever they turn out to be settles many."""
        heights = self.lattice.heights_of_nodes()
        values = np.sort(heights[open_nodes])
        chosen: BoolArray = open_nodes & (heights == values[len(values) // 2])
        return chosen


def _retained(problem: Problem) -> FloatArray:
    """Return the bits that each axis keeps at each of its levels, (axes, levels)."""
    lattice = problem.lattice
    kept = np.zeros((len(lattice.axes), max(lattice.shape)))
    for axis, members in enumerate(lattice.axes):
        for at in range(lattice.shape[axis]):
            for column in members:
                groups = problem.hierarchies[column].groups(lattice.low[axis] + at)
                counts = np.bincount(groups, problem.value_counts[column])
                share = counts[counts > 0] / problem.records
                kept[axis, at] -= float((share * np.log2(share)).sum())
    return kept


class Branches:
    """A walk for lattices too large to hold: levels are chosen axis by axis, depth first.

    Lemma (the subset property of Incognito, LeFevre et al. 2005): if some axes at these levels are
    refused with all others at their top, every completion is refused, for it lies below.
    """

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        """Walk the axes that shrink the counts most first."""
        self.problem = problem
        self.evaluate = evaluate
        self.lattice = problem.lattice
        self.last = [levels - 1 for levels in self.lattice.shape]

    def search(self) -> None:
        """Visit every branch that could hold a better node."""
        self.visit(0, list(self.last))

    def visit(self, depth: int, index: list[int]) -> None:
        """Choose the next axis' level; axes not yet chosen stand at their top."""
        if depth == len(index):
            return
        axis = self.evaluate.walk[depth]
        for level in range(self.last[axis] + 1):
            index[axis] = level
            if not below(self.bound(depth + 1, index), self.evaluate.best_loss):
                break  # The bound never falls going up.
            if self.evaluate(self.lattice.node(index)).acceptable:
                self.visit(depth + 1, index)
        index[axis] = self.last[axis]

    def bound(self, depth: int, index: Iterable[int]) -> float:
        """Return the least loss of any completion: the axes not yet chosen at their bottom."""
        chosen = set(self.evaluate.walk[:depth])
        least = self.lattice.node([at if axis in chosen else 0 for axis, at in enumerate(index)])
        if self.problem.metric.separable is not When.NEVER:
            return self.problem.loss_of(least)
        return self.evaluate(least).bound
