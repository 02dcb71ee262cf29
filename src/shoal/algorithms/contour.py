"""Contour: the node of least loss, proven by skipping branches that contain no better node.

Levels are chosen axis by axis, depth first. A *branch* fixes the levels of some axes. Its lowest node has the
other axes at the bottom, and its highest node has them at the top. All nodes of the branch lie between these
two. If the sizes of classes determine acceptability and loss, compiled code searches the branches: see
`shoal.core.lattice.walk_kernels`. Other problems are searched in this module, node by node.

Lemma: in a monotone problem, every node below a refused node is refused. So if the highest node of a branch
is refused, the branch is refused (the subset property of Incognito, LeFevre et al. 2005). With a separable
metric, the bound of every node is known beforehand. A node is then *open* if its bound does not exceed the
best loss. Instead of the highest node of a branch, the lowest node above all its open nodes is evaluated.

Lemma: generalizing never lowers the loss without suppression. So the loss of the lowest node without
suppression is a lower bound for the branch.

A model may be monotone only without suppression. Then the nodes below a refused node are known to be refused
only if more records than the limit are refused at every node below (see Model.unavoidable). Otherwise only
the refused node itself is excluded, and the search stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.contracts import Guarantee, NodeSearch, When
from shoal.core.evaluation import Evaluation, below, exceeds
from shoal.core.evaluator import MAX_STORED_NODES, Evaluator
from shoal.core.lattice.lattice import Index
from shoal.core.problem import Problem
from shoal.errors import Refusal


@dataclass(frozen=True)
class Contour(NodeSearch):
    """Find the node of least loss, and prove it: every node that could lose less is counted and refused."""

    plain_summary: ClassVar[str] = (
        "Finds the choice of levels that loses least, and proves it, unless its time runs out."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    supports_remote: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        return Refusal("the metric has no bound") if problem.metric.monotone is When.NEVER else None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        if not evaluate.walk_all(skip=True) and not evaluate(problem.lattice.top).refuses_below:
            if problem.lattice.size > MAX_STORED_NODES:
                self.begin_large(problem, evaluate)
            lower_bound = evaluate.lower_bound
            if lower_bound is None or below(lower_bound, evaluate.best_loss):
                # If only the remote counts prevented the compiled walk, search in the order of that walk.
                known = problem.metric.separable is not When.NEVER and not evaluate.walkable
                if known and problem.lattice.size <= MAX_STORED_NODES and problem.lattice.has_array:
                    from shoal.algorithms.joins import OpenNodes

                    OpenNodes(problem, evaluate).search()
                else:
                    _Branches(problem, evaluate).visit(0, (0,) * len(problem.lattice.shape))
        if evaluate.best is None:
            from shoal.algorithms.pruning import no_node

            raise no_node()
        size = problem.lattice.size
        tagged = size - evaluate.nodes_evaluated if size <= MAX_STORED_NODES else 0
        return evaluate.finish(evaluate.best, self.guarantee, tagged=tagged, compared=evaluate.nodes_accepted)

    def begin_large(self, problem: Problem, evaluate: Evaluator) -> None:
        """Find a good node and a lower bound first, because the search may not end in time."""
        from shoal.algorithms.descent import descend
        from shoal.algorithms.projection import BOUND_SECONDS, projected_bound

        descend(problem, evaluate)
        if evaluate.seconds_left >= 2 * BOUND_SECONDS:  # otherwise the bound is computed after the search
            evaluate.lower_bound = projected_bound(evaluate, self, BOUND_SECONDS)


class _Branches:
    """Searches node by node. A branch is given by the number of fixed axes and its lowest node."""

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        self.problem, self.evaluate, self.lattice = problem, evaluate, problem.lattice
        self.tabled = problem.metric.separable is not When.NEVER
        self.refused, self.passed, self.costly = (_Indices(len(self.lattice.shape)) for _ in range(3))

    def visit(self, depth: int, lowest: Index) -> None:
        """Choose the level of the next axis, and visit every branch that may contain a better node."""
        self.evaluate.check_time()  # many branches in a row may be refused without an evaluation
        if depth == len(lowest):
            self.evaluate(self.lattice.node(lowest))
            return
        axis = self.evaluate.walk[depth]
        levels = range(self.lattice.shape[axis])
        branches = [(*lowest[:axis], level, *lowest[axis + 1 :]) for level in levels]
        if self.tabled:  # from the highest level down: a refused node excludes the nodes below it
            for branch in reversed(branches):
                if self.is_open(depth + 1, branch):
                    self.visit(depth + 1, branch)
            return
        for branch in [branch for branch in branches if self.is_open(depth + 1, branch)]:
            if self.is_costly(branch):
                return  # every higher level is costly too
            self.visit(depth + 1, branch)

    def is_open(self, depth: int, lowest: Index) -> bool:
        """Return whether a branch may contain an acceptable node that is at least as good as the best."""
        while True:
            join = self.join(depth, lowest)
            if join is None or self.refused.any_above(join):
                return False
            if join == lowest or self.passed.any_below(join):
                return True
            before = self.evaluate.best
            evaluation = self.evaluate(self.lattice.node(join))
            if evaluation.refuses_below:
                self.refused.add(join)
                return False
            self.passed.add(join)
            if self.evaluate.best is before:
                return True

    def join(self, depth: int, lowest: Index) -> Index | None:
        """Return the lowest node above all nodes of a branch that may be better, or None if there is none."""
        if self.tabled and self.exceeds(lowest):
            return None
        join = list(lowest)
        for axis in self.evaluate.walk[depth:]:
            join[axis] = self.lattice.shape[axis] - 1
            while self.tabled and self.exceeds((*lowest[:axis], join[axis], *lowest[axis + 1 :])):
                join[axis] -= 1
        return tuple(join)

    def exceeds(self, index: Index) -> bool:
        """Return whether a node's loss without suppression, known beforehand, exceeds the best loss."""
        return exceeds(self.problem.loss_of(self.lattice.node(index)), self.evaluate.best_loss)

    def is_costly(self, lowest: Index) -> bool:
        """Return whether the measured loss of the lowest node without suppression exceeds the best loss."""
        if self.costly.any_below(lowest):
            return True
        costly = exceeds(self.evaluate(self.lattice.node(lowest)).bound, self.evaluate.best_loss)
        if costly:
            self.costly.add(lowest)
        return costly


_MAX_STORED = 4096  # maximum number of stored nodes; older ones are rarely useful


class _Indices:
    """The most recently added nodes, by their indices."""

    def __init__(self, axes: int) -> None:
        self.indices: IntArray = np.empty((_MAX_STORED, axes), np.int64)
        self.number = 0

    def add(self, index: Index) -> None:
        self.indices[self.number % _MAX_STORED] = index
        self.number += 1

    def any_above(self, index: Index) -> bool:
        """Return whether a stored node is above a node or equal to it."""
        return bool((self.indices[: self.number] >= index).all(axis=1).any())

    def any_below(self, index: Index) -> bool:
        """Return whether a stored node is below a node or equal to it."""
        return bool((self.indices[: self.number] <= index).all(axis=1).any())
