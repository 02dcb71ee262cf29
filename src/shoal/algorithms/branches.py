"""A walk for lattices too large to hold: levels are chosen axis by axis, depth first.

Lemma (the subset property of Incognito, LeFevre et al. 2005): if some axes at these levels are refused
with all others at their top, every completion is refused, for it lies below.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.core.contracts import When
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import below
from shoal.core.problem import Problem


class Branches:
    """The walk, with the levels chosen so far."""

    def __init__(self, problem: Problem, evaluate: Evaluator) -> None:
        """Begin at the top."""
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
            if not self.evaluate(self.lattice.node(index)).hopeless:
                self.visit(depth + 1, index)
        index[axis] = self.last[axis]

    def bound(self, depth: int, index: Iterable[int]) -> float:
        """Return the least loss of any completion: the axes not yet chosen at their bottom."""
        chosen = set(self.evaluate.walk[:depth])
        least = self.lattice.node([at if axis in chosen else 0 for axis, at in enumerate(index)])
        if self.problem.metric.separable is not When.NEVER:
            return self.problem.loss_of(least)
        return self.evaluate(least).bound
