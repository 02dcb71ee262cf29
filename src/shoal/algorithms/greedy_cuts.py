"""Greedy cuts: the baseline of k-optimize (Bayardo and Agrawal 2005), in two phases from random starts.

From a set of cuts, cuts are left out one by one, the one first whose absence lowers the cost most, then
others are taken in the same way, in turns until neither helps. No search over sets that differ by one cut
improves what it returns, and it proves no more than that it is acceptable.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from shoal.algorithms.order_cuts import OrderCuts
from shoal.core.contracts import Guarantee
from shoal.core.cut_greedy import Greedy
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.errors import OutOfTime


@dataclass(frozen=True)
class GreedyCuts(OrderCuts):
    """Generalize, then specialize, from no cut and from random sets of cuts; keep the best."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and no cut more, or less, would lose less; other sets may."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Descend from every start; when the time is up, the best so far will do."""
        greedy = Greedy(self.ground(problem), evaluate.check_time)
        with suppress(OutOfTime):
            greedy.from_starts(self.starts, self.seed)
        recoding = greedy.ground.recoding(problem, greedy.best.cuts)
        return evaluate.finish(evaluate.recoded(recoding), self.guarantee)
