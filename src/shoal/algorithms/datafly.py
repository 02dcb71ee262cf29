"""Datafly (Sweeney 1997): from the bottom, generalize the column with the most distinct values, step by step.

It evaluates the nodes of one path, so it proves only that its node is acceptable. It skips no nodes, so it
needs no lemma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

import numpy as np

from shoal.core.contracts import Guarantee, Model, NodeSearch
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Datafly(NodeSearch):
    """Raise the column with the most distinct values until few enough records must be suppressed."""

    stop: Literal["limit", "k"] = "limit"
    """Stop when no more records would be suppressed than the policy allows (`limit`), or than k (`k`)."""
    ties: Literal["first", "random"] = "first"
    """Among columns with equally many values, raise the first of the policy or a random one."""
    seed: int = 0
    """The seed of the random choices with `ties: random`; the same seed gives the same result."""

    plain_summary: ClassVar[str] = (
        "Merges the column with the most different values again and again, until it is enough."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """The node is acceptable. Another acceptable node may have less loss, or lie below it."""
    supports_remote: ClassVar[bool] = True

    def default_limit(self, models: Sequence[Model]) -> int | None:
        """With `stop: k`, allow suppression of as many records as the smallest acceptable class has."""
        return max((model.least_size for model in models), default=1) if self.stop == "k" else None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Go up until a node is acceptable; `stop: k` does not apply to the top."""
        for node in self._path(problem):
            evaluation = evaluate(node)
            enough = self.stop == "limit" or evaluation.suppressed <= problem.least_size
            if evaluation.acceptable and (enough or node == problem.lattice.top):
                return evaluate.finish(evaluation, self.guarantee, (node,), compared=1)
        raise Infeasible("No node on the way up is acceptable.")

    def _path(self, problem: Problem) -> Iterator[Node]:
        """Yield the nodes of the path from the bottom to the top."""
        lattice = problem.lattice
        choices = Random(self.seed)
        index = [0] * len(lattice.axes)
        distinct = [_distinct(problem, axis, 0) for axis in range(len(index))]
        yield lattice.bottom
        while open_axes := [axis for axis, at in enumerate(index) if at + 1 < lattice.shape[axis]]:
            most = max(distinct[axis] for axis in open_axes)
            tied = [axis for axis in open_axes if distinct[axis] == most]
            axis = choices.choice(tied) if self.ties == "random" else tied[0]
            index[axis] += 1
            distinct[axis] = _distinct(problem, axis, index[axis])
            yield lattice.node(index)


def _distinct(problem: Problem, axis: int, at: int) -> int:
    """Count the distinct values on an axis; if it has several columns, return the maximum."""
    level = problem.lattice.low[axis] + at
    return max(
        len(np.unique(problem.hierarchies[column].groups(level)[problem.value_counts[column] > 0]))
        for column in problem.lattice.axes[axis]
    )
