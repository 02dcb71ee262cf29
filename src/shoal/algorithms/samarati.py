"""Samarati's search (Samarati 2001): the least height by bisection, then the best node of that height.

Lemma: in a monotone problem, if some height has an acceptable node, every greater height has one, so
bisection finds the least. Every node above an acceptable node is acceptable, and every node except the top
has a node above it whose height is greater by one.

If columns share a level (`same_level`), a step increases the height by more than one. Then the lemma does not
hold, and all heights are tried from the bottom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.pruning import check_top, least_loss, refuse_unless_monotone
from shoal.core.arrays import IntArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Lattice, Node, nodes_of
from shoal.core.problem import Problem
from shoal.errors import Refusal


@dataclass(frozen=True)
class Samarati(NodeSearch):
    """Find the least height by bisection, then the node of least loss at that height."""

    plain_summary: ClassVar[str] = (
        "Finds the smallest sufficient number of merging steps, and the best choice with that number."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_HEIGHT
    lists_candidates: ClassVar[bool] = True
    supports_remote: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        """Return why the lemma does not hold, or None."""
        return refuse_unless_monotone(problem, "sorted by height")

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        lattice = problem.lattice
        check_top(evaluate)
        layers = _Layers(lattice)
        least_height = _scanned(layers, evaluate) if _stepped(lattice) else _bisected(layers, evaluate)
        accepted = [
            evaluation for node in layers.nodes(least_height) if (evaluation := evaluate(node)).acceptable
        ]
        chosen = least_loss(accepted)
        candidates = [evaluation.node for evaluation in accepted]
        return evaluate.finish(chosen, self.guarantee, candidates, compared=len(candidates))


class _Layers:
    """The nodes of a lattice by height."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.heights: IntArray = lattice.heights_of_nodes()

    def nodes(self, height: int) -> Iterator[Node]:
        """Yield the nodes of a height, in lexicographic order."""
        return nodes_of(self.lattice, self.heights == height)

    def any_acceptable(self, height: int, evaluate: Evaluator) -> bool:
        """Return whether a height has an acceptable node; stops at the first."""
        return any(evaluate(node).acceptable for node in self.nodes(height))


def _stepped(lattice: Lattice) -> bool:
    """Return whether a step may raise the height by more than one."""
    return any(len(members) > 1 for members in lattice.axes)


def _bisected(layers: _Layers, evaluate: Evaluator) -> int:
    """Return the least height with an acceptable node; the greatest height is known to have one."""
    low, high = sum(layers.lattice.bottom), sum(layers.lattice.top)
    while low < high:
        middle = (low + high) // 2
        if layers.any_acceptable(middle, evaluate):
            high = middle
        else:
            low = middle + 1
    return high


def _scanned(layers: _Layers, evaluate: Evaluator) -> int:
    """Return the least height with an acceptable node, trying every height from the bottom."""
    heights = np.unique(layers.heights).tolist()
    return next((h for h in heights if layers.any_acceptable(h, evaluate)), sum(layers.lattice.top))
