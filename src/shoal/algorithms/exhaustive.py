"""Exhaustive search: every node of the lattice, right for every model and metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from shoal.algorithms.pruning import no_node
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.core.warm import to_count_everywhere


@dataclass(frozen=True)
class Exhaustive(NodeSearch):
    """Count all nodes, walked so that neighbours share their roll-ups; a large lattice is never held."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    far: ClassVar[bool] = True

    def to_compile(self) -> list[Callable[[], object]]:
        """Every node is counted in one kernel, where keys fit one word."""
        return to_count_everywhere()

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Return the best of all nodes."""
        evaluate(problem.lattice.top)  # so that there is something to return when time runs out
        accepted = evaluate.acceptable_everywhere()
        if accepted is not None:
            evaluate.best_of(accepted)
        else:
            for node in problem.lattice.nodes(evaluate.walk):
                evaluate(node)
        if evaluate.best is None:
            raise no_node()
        compared = evaluate.nodes_accepted if accepted is None else int(accepted.sum())
        return evaluate.finish(evaluate.best, self.guarantee, compared=compared)
