"""OLA, Optimal Lattice Anonymization (El Emam et al. 2009).

A binary search through sub-lattices: the middle height of a sub-lattice is tested, an accepted node
leads to the sub-lattice below it, a refused one to the sub-lattice above it. Lemma: in a monotone
problem everything above an accepted node is accepted and everything below a refused one is refused, so
each test tags both ways. What remains are the k-minimal nodes, and the least loss is among them when the
loss never falls going up.
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
from shoal.core.lattice import Index
from shoal.core.problem import Problem
from shoal.core.tags import ACCEPTED, UNKNOWN, Tags


@dataclass(frozen=True)
class Ola(NodeSearch):
    """Find all k-minimal nodes by binary search, then the one of least loss."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    far: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse problems in which tagging or choosing among minimal nodes would be wrong."""
        return unfit(problem, by_loss=True)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Settle every node, then compare the minimal ones on loss."""
        lattice = problem.lattice
        tags = Tags(lattice)
        check_top(evaluate)
        tags.accept(lattice.top)
        self._settle(evaluate, tags)
        minimal = tags.minimal()
        tagged = lattice.size - evaluate.nodes_evaluated
        chosen = least_loss(evaluate(node) for node in minimal)
        return evaluate.finish(chosen, self.guarantee, minimal, tagged=tagged, compared=len(minimal))

    def _settle(self, evaluate: Evaluator, tags: Tags) -> None:
        """Walk sub-lattices (bottom, top), each once, until nothing in them is unknown."""
        steps = np.indices(tags.lattice.shape).sum(axis=0)  # above the lattice's bottom
        last = tuple(levels - 1 for levels in tags.lattice.shape)
        whole = ((0,) * len(last), last)
        walked = {whole}
        stack = [(*whole, _middles(*whole, steps))]
        while stack:
            bottom, top, middles = stack[-1]
            middle = next(middles, None)
            if middle is None or tags.state[_between(bottom, top)].all():
                stack.pop()
                continue
            if tags.state[middle] == UNKNOWN:
                self._test(evaluate, tags, middle)
            inner = (bottom, middle) if tags.state[middle] == ACCEPTED else (middle, top)
            if inner not in walked:
                walked.add(inner)
                if not tags.state[_between(*inner)].all():
                    stack.append((*inner, _middles(*inner, steps)))

    @staticmethod
    def _test(evaluate: Evaluator, tags: Tags, index: Index) -> None:
        node = tags.lattice.node(index)
        if evaluate(node).acceptable:
            tags.accept(node)
        else:
            tags.refuse(node)


def _between(bottom: Index, top: Index) -> tuple[slice, ...]:
    """Address a sub-lattice."""
    return tuple([slice(b, t + 1) for b, t in zip(bottom, top, strict=True)])


def _middles(bottom: Index, top: Index, steps: IntArray) -> Iterator[Index]:
    """Yield the indices at the middle height between bottom and top, lexicographically."""
    middle = (sum(bottom) + sum(top)) // 2
    found = np.argwhere(steps[_between(bottom, top)] == middle) + np.array(bottom)
    return map(tuple, found.tolist())
