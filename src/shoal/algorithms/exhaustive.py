"""Exhaustive search: every node of the lattice, valid for every model and metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.algorithms.pruning import no_node
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem


@dataclass(frozen=True)
class Exhaustive(NodeSearch):
    """Count all nodes, in an order in which neighbouring nodes share roll-ups."""

    plain_summary: ClassVar[str] = (
        "Looks at every choice of levels, one after the other; slow, and used as a check."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    supports_remote: ClassVar[bool] = True

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        if not evaluate.walk_all(skip=False):
            evaluate(problem.lattice.top)  # so that there is a result if the time limit is reached
            for node in problem.lattice.nodes(evaluate.walk):
                evaluate(node)
        if evaluate.best is None:
            raise no_node()
        return evaluate.finish(evaluate.best, self.guarantee, compared=evaluate.nodes_accepted)
