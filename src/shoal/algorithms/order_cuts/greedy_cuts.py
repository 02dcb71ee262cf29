"""Greedy cuts: the baseline of k-optimize (Bayardo and Agrawal 2005), in two phases from random starts.

From a set of cuts, cuts are removed one by one, always the one whose removal lowers the cost most. Then cuts
are added in the same way. Both phases alternate until neither helps. Changing one cut cannot improve the
result. Only its acceptability is proven.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from shoal.algorithms.order_cuts.cuts import OrderCuts
from shoal.algorithms.order_cuts.greedy import Greedy
from shoal.core.contracts import Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.errors import OutOfTime


@dataclass(frozen=True)
class GreedyCuts(OrderCuts):
    """Improve the empty set of cuts and random sets, by removing and adding cuts; keep the best set."""

    plain_summary: ClassVar[str] = (
        "Chooses break points in ordered columns step by step; quick, without a proof."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable. Adding or removing one cut cannot lower the loss; another set can."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Improve every start; when the time is up, return the best so far."""
        greedy = Greedy(self.problem_cuts(problem), evaluate.check_time)
        with suppress(OutOfTime):
            greedy.from_starts(self.starts, self.seed)
        recoding = greedy.problem_cuts.recoding(problem, greedy.best.cuts)
        return evaluate.finish(evaluate.recoding(recoding), self.guarantee)
