"""Greedy cuts: the baseline of k-optimize (Bayardo and Agrawal 2005), in two phases from random starts.

From a set of cuts, cuts are left out one by one, the one first whose absence lowers the cost most, then
others are taken in the same way, in turns until neither helps. No search over sets that differ by one cut
improves what it returns, and it proves no more than that it is acceptable.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.cut_search import Greedy, ground_of, refusal
from shoal.core.evaluate import Evaluation, Evaluator, Problem
from shoal.errors import Infeasible, OutOfTime, PolicyError


@dataclass(frozen=True)
class GreedyCuts(Algorithm):
    """Generalize, then specialize, from no cut and from random sets of cuts; keep the best."""

    starts: int = 20
    seed: int = 0

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if min(self.starts, self.seed) < 0:
            message = f"starts and seed must be at least 0, got {min(self.starts, self.seed)}."
            raise PolicyError(message)

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what is said of levels, of a population, or not of the records of a class."""
        return refusal(problem)

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Descend from every start; when the time is up, the best so far will do."""
        if problem.records < problem.least_size:
            message = "The table as one class is not acceptable."
            raise Infeasible(message)
        greedy = Greedy(ground_of(problem), evaluate.check_time)
        with suppress(OutOfTime):
            greedy.from_starts(self.starts, self.seed)
        recoding = greedy.ground.recoding(problem, greedy.best.cuts)
        return evaluate.finish(evaluate.recoded(recoding), self.guarantee)
