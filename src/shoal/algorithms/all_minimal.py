"""All minimal nodes, breadth first (Samarati 2001). Choosing the best of them is MinGen (Sweeney 2002).

Nodes are visited by height from the bottom, and nodes above an accepted node are skipped.

Lemma: exactly the minimal nodes are found. An accepted node that is not skipped is minimal: the nodes below
it have less height, so they were visited before, and all of them were refused. A minimal node has no accepted
node below it, so it is never skipped. In a monotone problem, every other acceptable node is above a minimal
one. If generalizing never lowers the loss, a minimal node has the least loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

import numpy as np

from shoal.algorithms.pruning import check_top, least_loss, refuse_unless_monotone
from shoal.core.arrays import BoolArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Node, nodes_of
from shoal.core.problem import Problem
from shoal.errors import Refusal


@dataclass(frozen=True)
class AllMinimal(NodeSearch):
    """Find all minimal nodes from the bottom up, then the one of least loss."""

    plain_summary: ClassVar[str] = (
        "Looks at every choice that cannot be made finer, and takes the one that loses least."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    lists_candidates: ClassVar[bool] = True
    supports_remote: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        return refuse_unless_monotone(problem, by_loss=True)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        lattice = problem.lattice
        check_top(evaluate)
        minimal = sorted(_minimal(evaluate))
        chosen = least_loss(evaluate(node) for node in minimal)
        tagged = lattice.size - evaluate.nodes_evaluated
        return evaluate.finish(chosen, self.guarantee, minimal, tagged=tagged, compared=len(minimal))


def _minimal(evaluate: Evaluator) -> Iterator[Node]:
    """Yield the accepted nodes that are not above an accepted one, by height."""
    lattice = evaluate.problem.lattice
    heights = lattice.heights_of_nodes()
    at_or_above_accepted: BoolArray = np.zeros(lattice.shape, np.bool_)  # accepted, or above an accepted node
    for height in np.unique(heights).tolist():
        layer = []
        for node in nodes_of(lattice, (heights == height) & ~at_or_above_accepted):
            evaluate.check_time()  # a layer may have very many nodes
            layer.append(node)
        # Nodes of one height may be evaluated in any order. In this order they share most roll-ups.
        for node in sorted(layer, key=itemgetter(*evaluate.order)):
            if evaluate(node).acceptable:
                at_or_above_accepted[lattice.above(node)] = True
                yield node
