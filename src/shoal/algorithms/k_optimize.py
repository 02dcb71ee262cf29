"""K-optimize (Bayardo and Agrawal 2005): the best of all sets of cuts by order, proven.

It begins with what greedy-cuts finds, improves it near at hand, and then walks the set-enumeration tree
over cuts until no open node can cost less; the lemmas are told in `shoal.core.cut_search`. When the time is
up it returns the best set with the least bound of an open node: no set of cuts loses less than that.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.cut_search import Greedy, Tree, ground_of, refusal
from shoal.core.evaluate import Evaluation, Evaluator, Problem
from shoal.errors import Infeasible, OutOfTime, PolicyError


@dataclass(frozen=True)
class KOptimize(Algorithm):
    """Enumerate sets of cuts, bounded and pruned, from the best that a greedy search finds."""

    starts: int = 20
    seed: int = 0

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if min(self.starts, self.seed) < 0:
            message = f"starts and seed must be at least 0, got {min(self.starts, self.seed)}."
            raise PolicyError(message)

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is said of levels, of a population, or not of the records of a class."""
        return refusal(problem)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Close the tree, or go as far as there is time."""
        if problem.records < problem.least_size:
            message = "The table as one class is not acceptable."
            raise Infeasible(message)
        ground = ground_of(problem)
        greedy = Greedy(ground, evaluate.check_time)
        tree = Tree(ground, greedy.best)
        with suppress(OutOfTime):
            try:
                greedy.from_starts(self.starts, self.seed)
                greedy.from_best(self.seed)
            finally:
                tree.best = min(tree.best, greedy.best, key=lambda head: head.cost)
            tree.search(evaluate.check_time)
        proven = Guarantee.LEAST_LOSS if tree.closed else Guarantee.ACCEPTABLE
        recoding = ground.recoding(problem, tree.best.cuts)
        found = evaluate.finish(evaluate.recoded(recoding), proven, compared=tree.nodes)
        return replace(found, lower_bound=min(found.loss, ground.loss(tree.bound)))
