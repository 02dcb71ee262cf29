"""Samarati's search (Samarati 2001): the least height by bisection, then the best node of that height.

Lemma: in a monotone problem what lies above an acceptable node is acceptable, and every node but the
top has one a step of height above it. So if some height has an acceptable node, every greater one has,
and bisection finds the least. Where columns move together (`same_level`) a step is more than one in
height, the lemma fails and the heights are scanned from the bottom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.pruning import check_top, least_loss, unfit
from shoal.core.arrays import IntArray
from shoal.core.contracts import Guarantee, NodeSearch
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.lattice import Lattice, Node
from shoal.core.problem import Problem
from shoal.core.tags import nodes_of


@dataclass(frozen=True)
class Samarati(NodeSearch):
    """Find the least height by bisection, then the node of least loss at that height."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_HEIGHT
    far: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which a height would say nothing of those above it."""
        return unfit(problem, "sorted by height")

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Find the least height, then compare all its acceptable nodes on loss."""
        lattice = problem.lattice
        check_top(evaluate)
        layers = _Layers(lattice)
        least = _scanned(layers, evaluate) if _stepped(lattice) else _bisected(layers, evaluate)
        accepted = [found for node in layers.nodes(least) if (found := evaluate(node)).acceptable]
        chosen = least_loss(accepted)
        candidates = [found.node for found in accepted]
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
        """Look for an acceptable node of a height; the first one ends the look."""
        return any(evaluate(node).acceptable for node in self.nodes(height))


def _stepped(lattice: Lattice) -> bool:
    """Tell whether a step of the lattice may raise the height by more than one."""
    return any(len(members) > 1 for members in lattice.axes)


def _bisected(layers: _Layers, evaluate: Evaluator) -> int:
    """Return the least height with an acceptable node; the greatest is known to have one."""
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
