"""Contour: the least loss, proven by refusing the nodes along its contour.

Where the loss of every node is known beforehand (a separable metric) no frontier is needed: take an
acceptable node as incumbent and look only at the maximal nodes whose loss is smaller. Lemma: in a
monotone problem a refused node refuses everything below it, so once all maximal nodes with a smaller
loss are refused, every node with a smaller loss is, and the incumbent is optimal.

Where suppression makes a model not monotone, a refused node says nothing of those below, unless it is
hopeless: more records than the limit are refused there whatever lies below (see Model.unavoidable). Then
a node that is refused without being hopeless closes itself alone, and the search stays exact.

Other metrics are bounded. `rising` is the loss without suppression: it never falls going up, so what is
measured at a node holds above it. An accepted node whose bound is below the incumbent stays open until
it is evaluated itself, which keeps the search exact. An estimate learned on the way says where the contour
is likely to lie: what is estimated to be better is refused through nodes above, the rest is shown to be no
better through nodes below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.branches import Branches
from shoal.algorithms.estimate import Estimate
from shoal.algorithms.pruning import no_node
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.contracts import Guarantee, NodeSearch, When
from shoal.core.evaluate import LARGEST_HELD, Evaluator
from shoal.core.evaluation import Evaluation, below
from shoal.core.lattice import Lattice, Node
from shoal.core.problem import Problem
from shoal.core.tags import maximal, minimal, nodes_of

_AHEAD = 2  # nodes evaluated at once where that pays; what is looked at does not depend on the machine
_SLACK = 0.8  # a node estimated at this share of the best loss may still be shown to be no better


@dataclass(frozen=True)
class Contour(NodeSearch):
    """Find the node of least loss, and prove it: any that could lose less is counted and refused."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    far: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which refusing what lies below, or bounding the loss, would be wrong."""
        return "the metric has no bound" if problem.metric.monotone is When.NEVER else None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return a node of least loss."""
        tagged = 0
        if not evaluate(problem.lattice.top).hopeless:
            if problem.lattice.size > LARGEST_HELD:
                Branches(problem, evaluate).search()
            else:
                _Field(problem, evaluate).search()
                tagged = problem.lattice.size - evaluate.nodes_evaluated
        if evaluate.best is None:
            raise no_node()
        return evaluate.finish(evaluate.best, self.guarantee, tagged=tagged, compared=evaluate.nodes_accepted)


class _Field:
    """The lattice with what is known of each node: open or closed, accepted, and a bound of its loss."""

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        self.lattice: Lattice = problem.lattice
        self.evaluate = evaluate
        self.exact = problem.metric.separable.given(problem.limit > 0)
        self.tabled = problem.metric.separable is not When.NEVER
        self.rising: FloatArray = problem.losses() if self.tabled else np.full(self.lattice.shape, -np.inf)
        self.closed: BoolArray = np.zeros(self.lattice.shape, np.bool_)  # refused or evaluated
        self.spared: BoolArray = np.zeros(
            self.lattice.shape, np.bool_
        )  # not hopeless, nor is what lies above
        retained = _retained(problem)
        self.kept: list[list[float]] = retained.tolist()  # bits, by axis and level
        self.estimate = Estimate(self.lattice, retained)

    def search(self) -> None:
        """Close every node that could be better than the best."""
        self.probe(self.lattice.top)
        self.descend(self.lattice.top)
        while (nodes := self.open_nodes()).any():
            if self.exact:
                self.refuse_together(np.argwhere(maximal(nodes)))
            elif self.tabled or self.evaluate.best is None:
                self.probe_each(maximal(nodes))
            else:
                self.close_in(nodes)
        self.lower_within_ties()

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
        if found.hopeless:
            self.closed[self.lattice.below(node)] = True
        else:
            self.closed[self.lattice.index(node)] = True
            self.spared[self.lattice.above(node)] = True
        if not self.tabled:
            above = self.rising[self.lattice.above(node)]
            np.maximum(above, found.bound, out=above)
            self.estimate.learn(self.lattice.index(node), found.bound)
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
            self.look_ahead(groups)
            group = groups.pop()
            join = group.max(axis=0)
            if len(group) == 1 or not self.spared[tuple(join)]:
                node = self.lattice.node(join)
                found = self.probe(node)
                if found.hopeless:
                    continue
                if len(group) == 1:
                    if found.acceptable:
                        self.descend(node)
                        return
                    continue  # Only this node is refused; what lies below it comes next.
            groups += self.split(group, group.min(axis=0), join)

    def look_ahead(self, groups: list[IntArray]) -> None:
        """Evaluate the nodes above the next groups beside each other, for nearly all will be needed."""
        if self.evaluate.wide:
            joins = [group.max(axis=0) for group in groups[-_AHEAD:]]
            self.evaluate.ahead([self.lattice.node(join) for join in joins if not self.spared[tuple(join)]])

    def split(self, group: IntArray, meet: IntArray, join: IntArray) -> list[IntArray]:
        """Split nodes where one axis keeps most more information on one side than on the other."""
        apart = []
        for axis, (low, high) in enumerate(zip(meet.tolist(), join.tolist(), strict=True)):
            if low < high:  # where no axis differs in what it keeps, any that differs at all will do
                apart.append((self.kept[axis][low] - self.kept[axis][high], -axis, low, high))
        _, axis, low, high = max(apart)
        kept = self.kept[-axis]
        cut = max(range(low, high), key=lambda level: kept[level] - kept[level + 1])
        under = group[:, -axis] <= cut
        return [group[~under], group[under]]

    def probe_each(self, chosen: BoolArray) -> None:
        """Evaluate nodes that are still open, in the order in which they share roll-ups."""
        order = self.evaluate.order
        for node in sorted(nodes_of(self.lattice, chosen), key=lambda node: [node[c] for c in order]):
            if self.is_open(node):
                self.probe(node)

    def close_in(self, nodes: BoolArray) -> None:
        """Refuse what the estimate takes for better than the best; show that the rest is not."""
        loss = self.evaluate.best_loss
        estimated = self.estimate.losses(near=loss)
        better = below(estimated, loss)
        if not self.settle(np.argwhere(maximal(nodes & better)), self.refuse_join):
            rest = self.open_nodes() & ~better
            self.settle(
                np.argwhere(minimal(rest)), lambda group: self.raise_meet(group, estimated, _SLACK * loss)
            )

    def settle(self, points: IntArray, attempt: Callable[[IntArray], bool]) -> bool:
        """Close nodes by attempts on groups, split where one fails; tell of a better node, which ends it."""
        loss = self.evaluate.best_loss
        groups = [points] if len(points) else []
        while groups:
            group = groups.pop()
            group = group[self.are_open(group)]
            if not len(group):
                continue
            done = attempt(group)
            if self.evaluate.best and below(self.evaluate.best_loss, loss):
                self.descend(self.evaluate.best.node)
                return True
            if not done and len(group) > 1:
                groups += self.split(group, group.min(axis=0), group.max(axis=0))
        return False

    def refuse_join(self, group: IntArray) -> bool:
        """Refuse the node above all of a group, and so all of them."""
        join = group.max(axis=0)
        if self.spared[tuple(join)] and len(group) > 1:
            return False
        return self.probe(self.lattice.node(join)).hopeless

    def raise_meet(self, group: IntArray, estimated: FloatArray, promising: float) -> bool:
        """Show that the node below all of a group is no better than the best, and so none of them is."""
        meet = group.min(axis=0)
        if len(group) > 1 and estimated[tuple(meet)] < promising:
            return False
        return not below(self.probe(self.lattice.node(meet)).bound, self.evaluate.best_loss)

    def are_open(self, points: IntArray) -> BoolArray:
        """Mark the nodes, given by their indices, that could be better than the best."""
        at = tuple(points.T)
        found: BoolArray = ~self.closed[at] & below(self.rising[at], self.evaluate.best_loss)
        return found


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
