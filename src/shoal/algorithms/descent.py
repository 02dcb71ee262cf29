"""Steepest descent: a quick way to a good node of a very large lattice."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.core.contracts import When
from shoal.core.evaluation import below, better
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Lattice, Node
from shoal.core.problem import Problem


def descend(problem: Problem, evaluate: Evaluator) -> None:
    """Start at the top. Go to the best node that differs in one axis, and repeat until none is better.

    If losses without suppression are known beforehand, nodes are tried in the order of these losses. A step
    ends at the first node whose known loss is not below the best loss, because no later node can be better.
    """
    known = problem.metric.separable is not When.NEVER
    node = problem.lattice.top
    evaluate(node)
    while True:
        neighbours = list(_neighbours(problem.lattice, node))
        if known:
            neighbours.sort(key=problem.loss_of)
        best = evaluate.best
        for neighbour in neighbours:
            if best is not None and known and not below(problem.loss_of(neighbour), best.loss):
                break
            evaluation = evaluate(neighbour)
            if evaluation.acceptable and better(evaluation, best):
                best = evaluation
        if best is None or best.node == node:
            return
        node = best.node


def _neighbours(lattice: Lattice, node: Node) -> Iterator[Node]:
    """Yield the nodes that differ in one axis, by any number of levels."""
    index = lattice.index(node)
    for axis, levels in enumerate(lattice.shape):
        for level in range(levels):
            if level != index[axis]:
                yield lattice.node([*index[:axis], level, *index[axis + 1 :]])
