"""All minimal nodes, breadth first (Samarati 2001); by a metric's choice among them, MinGen (Sweeney 2002).

Nodes are visited by height from the bottom, and one that lies above an accepted node is passed over.
Lemma: an accepted node that is not above an accepted one is minimal, for every node below it has less
height, was visited and was refused. A minimal node has nothing accepted below it and is never passed
over, so exactly the minimal nodes are found. In a monotone problem every acceptable node lies above one
of them, and where the loss never falls going up the least loss is among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.pruning import check_top, least_loss, unfit
from shoal.core.arrays import BoolArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.core.tags import nodes_of


@dataclass(frozen=True)
class AllMinimal(NodeSearch):
    """Find all minimal nodes from the bottom up, then the one of least loss."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    far: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which passing over or choosing among minimal nodes would be wrong."""
        return unfit(problem, by_loss=True)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Collect the minimal nodes, then compare them on loss."""
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
    passed: BoolArray = np.zeros(lattice.shape, np.bool_)  # accepted, or above an accepted node
    for height in np.unique(heights).tolist():
        layer = nodes_of(lattice, (heights == height) & ~passed)
        # Nodes of one height never lie above each other: any order will do, this one shares roll-ups.
        for node in sorted(layer, key=lambda node: [node[column] for column in evaluate.order]):
            if evaluate(node).acceptable:
                passed[lattice.above(node)] = True
                yield node
