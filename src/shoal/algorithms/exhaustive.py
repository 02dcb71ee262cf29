"""Exhaustive search: every node of the lattice, right for every model and metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.evaluate import Evaluation, Evaluator, Problem
from shoal.core.lattice import Node
from shoal.core.tags import nodes_of
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Exhaustive(Algorithm):
    """Count all nodes, walked so that neighbours share their roll-ups; a large lattice is never held."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return the best of all nodes."""
        evaluate(problem.lattice.top)  # so that there is something to return when time runs out
        accepted = evaluate.acceptable_everywhere()
        nodes: Iterable[Node] = problem.lattice.nodes(evaluate.walk)
        if accepted is not None:
            nodes = nodes_of(problem.lattice, _contenders(problem, accepted))
        for node in nodes:
            evaluate(node)
        if evaluate.best is None:
            message = "No node is acceptable."
            raise Infeasible(message)
        compared = evaluate.nodes_accepted if accepted is None else int(accepted.sum())
        return evaluate.finish(evaluate.best, self.guarantee, compared=compared)


def _contenders(problem: Problem, accepted: BoolArray) -> BoolArray:
    """Keep the accepted nodes whose loss is not known to be above the least."""
    if not accepted.any() or not problem.metric.separable.given(problem.limit > 0):
        return accepted
    losses = np.where(accepted, problem.losses(), np.inf)
    least: BoolArray = losses <= losses.min() * (1 + 1e-9)  # evaluated next, which settles ties
    return least
