"""Datafly (Sweeney 1997): from the bottom, raise the column with the most distinct values, step by step.

It looks at one node after another and at nothing else, so it proves no more than that its node is
acceptable. It prunes nothing, so it needs no lemma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

import numpy as np

from shoal.core.contracts import Guarantee, Model, NodeSearch
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.lattice import Node
from shoal.core.problem import Problem
from shoal.errors import Infeasible


@dataclass(frozen=True)
class Datafly(NodeSearch):
    """Raise the column with the most distinct values until few enough records are left over."""

    stop: Literal["limit", "k"] = "limit"
    """Stop when no more than the policy's limit, or no more than k records, would be suppressed."""
    ties: Literal["first", "random"] = "first"
    """Of columns with equally many values raise the first of the policy, or any."""
    seed: int = 0
    """With `ties: random`, which random choices are made; the same seed makes the same."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """The node is acceptable; others may have less loss or lie below it."""
    far: ClassVar[bool] = True

    def own_limit(self, models: Sequence[Model]) -> int | None:
        """Allow as many records as a class needs, where that is when to stop."""
        return max((model.least_size for model in models), default=1) if self.stop == "k" else None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Walk up until a node will do; the top is taken where the limit allows it, whatever `stop` says."""
        for node in self._path(problem):
            found = evaluate(node)
            enough = self.stop == "limit" or found.suppressed <= problem.least_size
            if found.acceptable and (enough or node == problem.lattice.top):
                return evaluate.finish(found, self.guarantee, (node,), compared=1)
        message = "No node on the way up is acceptable."
        raise Infeasible(message)

    def _path(self, problem: Problem) -> Iterator[Node]:
        """Yield the nodes from the bottom to the top, each one step above the one before."""
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
    """Count the distinct values of the data on an axis; of several columns, the one with the most counts."""
    level = problem.lattice.low[axis] + at
    return max(
        len(np.unique(problem.hierarchies[column].groups(level)[problem.value_counts[column] > 0]))
        for column in problem.lattice.axes[axis]
    )
