"""K-optimize (Bayardo and Agrawal 2005): the best of all sets of cuts by order, proven.

It starts with the result of greedy-cuts and improves it locally. Then it searches the set-enumeration tree
over cuts for sets that cost less than a target. The target is raised until it is the best cost. The lemmas
are in `shoal.algorithms.order_cuts.tree`. If the time is up, it returns the best set and the last target that
was proven: no set of cuts has a smaller loss.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import isclose
from typing import ClassVar

from shoal.algorithms.order_cuts.cuts import OrderCuts
from shoal.algorithms.order_cuts.greedy import Greedy
from shoal.algorithms.order_cuts.tree import CutTree
from shoal.core.contracts import Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.errors import OutOfTime


@dataclass(frozen=True)
class KOptimize(OrderCuts):
    """Find the best set of cuts by enumeration with bounds, starting from a greedy search."""

    plain_summary: ClassVar[str] = (
        "Tries sets of break points in ordered columns, without those that cannot be better."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    """If the search ends, no set of cuts loses less. If `--seconds` are up first, the result is acceptable,
    and no set of cuts has a loss below `lower_bound`.
    """

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Close all nodes of the tree, or as many as the time allows."""
        problem_cuts = self.problem_cuts(problem)
        greedy = Greedy(problem_cuts, evaluate.check_time)
        with suppress(OutOfTime):
            greedy.from_starts(self.starts, self.seed)
            greedy.from_best(self.seed)
        tree = CutTree(problem_cuts, greedy.best)
        with suppress(OutOfTime):
            tree.search(evaluate.check_time, lambda: evaluate.seconds_left)
        evaluation = evaluate.recoding(problem_cuts.recoding(problem, tree.best.cuts))
        released = isclose(evaluation.loss, problem_cuts.loss(tree.best.cost), rel_tol=1e-9, abs_tol=1e-12)
        # The proof is valid for the release only if its loss equals that of the cuts.
        proven = Guarantee.LEAST_LOSS if tree.closed and released else Guarantee.ACCEPTABLE
        evaluation = evaluate.finish(evaluation, proven, compared=tree.nodes)
        return replace(evaluation, lower_bound=min(evaluation.loss, problem_cuts.loss(tree.bound)))
