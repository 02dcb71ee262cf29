"""Bottom-up generalization (Wang, Yu and Chakraborty 2004): from the values up until every model holds.

Each step lets all groups below one group of one column give way to it, everywhere at once: the one that
loses least of the label for the anonymity it gains. Anonymity is the size of the smallest class, up to what
the models ask for: more is no gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.label_cuts import LabelCuts
from shoal.core.contracts import Guarantee
from shoal.core.cuts import by_levels
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.core.specialization import Cut, Tree, bottom
from shoal.errors import Infeasible


@dataclass(frozen=True)
class BottomUp(LabelCuts):
    """Generalize until every model holds, by information lost per anonymity gained."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and was not before the last step; another cut may lose less."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Go up step by step."""
        cut = bottom(problem)
        while not cut.acceptable:
            evaluate.check_time()
            best = _best(cut)
            if best is None:
                message = "No cut was acceptable up to the highest level of every column."
                raise Infeasible(message)
            cut = cut.up(*best)
        return evaluate.finish(evaluate.recoded(by_levels(problem, cut.levels)), self.guarantee)


def _best(cut: Cut) -> tuple[Tree, int] | None:
    """Return the step that loses least per anonymity gained; of equal ones that which gains most."""
    found: tuple[float, float] | None = None
    best = None
    for tree in cut.trees:
        steps = cut.steps_up(tree)
        if steps is None:
            continue
        gained = np.maximum(0, np.minimum(steps.least, cut.problem.least_size) - cut.least)
        scores = steps.gains / np.maximum(gained, 1)  # a step that gains none is told by what it loses
        first = int(np.lexsort((-gained, scores))[0])
        told = float(scores[first]), -float(gained[first])
        if found is None or told < found:
            found, best = told, (tree, int(steps.pairs[first]))
    return best
