"""OLA, Optimal Lattice Anonymization (El Emam et al. 2009).

A binary search through sub-lattices: nodes at the middle height of a sub-lattice are tested. An accepted node
leads to the sub-lattice below it, a refused node to the one above it.

Lemma: in a monotone problem, every node above an accepted node is accepted, and every node below a refused
node is refused, so each test tags many nodes. The minimal accepted nodes are the k-minimal ones. If
generalizing never lowers the loss, one of them has the least loss.
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
from shoal.core.lattice.lattice import ACCEPTED, UNKNOWN, Index, Tags
from shoal.core.problem import Problem
from shoal.errors import Refusal


@dataclass(frozen=True)
class Ola(NodeSearch):
    """Find all k-minimal nodes by binary search, then the one of least loss."""

    plain_summary: ClassVar[str] = (
        "Finds every choice that cannot be made finer by halving, and takes the one that loses least."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    lists_candidates: ClassVar[bool] = True
    supports_remote: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> Refusal | None:
        return refuse_unless_monotone(problem, by_loss=True)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        lattice = problem.lattice
        tags = Tags(lattice)
        check_top(evaluate)
        tags.accept(lattice.top)
        self._tag_all(evaluate, tags)
        minimal = tags.minimal()
        tagged = lattice.size - evaluate.nodes_evaluated
        chosen = least_loss(evaluate(node) for node in minimal)
        return evaluate.finish(chosen, self.guarantee, minimal, tagged=tagged, compared=len(minimal))

    def _tag_all(self, evaluate: Evaluator, tags: Tags) -> None:
        """Visit sub-lattices, given as (bottom, top), until every node is tagged; visit none twice."""
        steps = np.indices(tags.lattice.shape).sum(axis=0)  # above the lattice's bottom
        last = tuple(levels - 1 for levels in tags.lattice.shape)
        whole = ((0,) * len(last), last)
        walked = {whole}
        stack = [(*whole, _middles(*whole, steps))]
        while stack:
            evaluate.check_time()  # many sub-lattices may be tagged already
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
    return tuple([slice(b, t + 1) for b, t in zip(bottom, top, strict=True)])


def _middles(bottom: Index, top: Index, steps: IntArray) -> Iterator[Index]:
    """Yield the indices at the middle height, in lexicographic order."""
    middle = (sum(bottom) + sum(top)) // 2
    indices = np.argwhere(steps[_between(bottom, top)] == middle) + np.array(bottom)
    return map(tuple, indices.tolist())
