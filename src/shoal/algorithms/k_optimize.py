"""K-optimize (Bayardo and Agrawal 2005): the best of all sets of cuts by order, proven.

It begins with what greedy-cuts finds, improves it near at hand, and then walks the set-enumeration tree
over cuts until no open node can cost less; the lemmas are told in `shoal.core.cut_search`. When the time is
up it returns the best set with the least bound of an open node: no set of cuts loses less than that.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import isclose
from typing import ClassVar

from shoal.algorithms.order_cuts import OrderCuts
from shoal.core.contracts import Guarantee
from shoal.core.cut_greedy import Greedy
from shoal.core.cut_search import Tree
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.errors import OutOfTime


@dataclass(frozen=True)
class KOptimize(OrderCuts):
    """Enumerate sets of cuts, bounded and pruned, from the best that a greedy search finds."""

    guarantee: ClassVar[Guarantee] = Guarantee.LEAST_LOSS
    """No set of cuts loses less, when it ends; when `--seconds` are up: acceptable, and `lower_bound` tells
    what no set of cuts falls below.
    """

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Close the tree, or go as far as there is time."""
        ground = self.ground(problem)
        greedy = Greedy(ground, evaluate.check_time)
        tree = Tree(ground, greedy.best)
        with suppress(OutOfTime):
            try:
                greedy.from_starts(self.starts, self.seed)
                greedy.from_best(self.seed)
            finally:
                tree.best = min(tree.best, greedy.best, key=lambda head: head.cost)
            tree.search(evaluate.check_time)
        found = evaluate.recoded(ground.recoding(problem, tree.best.cuts))
        released = isclose(found.loss, ground.loss(tree.best.cost), rel_tol=1e-9, abs_tol=1e-12)
        # Of what is released nothing else is proven than of the cuts that were searched.
        proven = Guarantee.LEAST_LOSS if tree.closed and released else Guarantee.ACCEPTABLE
        found = evaluate.finish(found, proven, compared=tree.nodes)
        return replace(found, lower_bound=min(found.loss, ground.loss(tree.bound)))
