"""Bottom-up generalization (Wang, Yu and Chakraborty 2004): generalize values until every model holds.

A step replaces all child groups of one group of one column by that group, in the whole table. In each round,
the step is chosen that loses least information about the label per gained anonymity. Anonymity is the size of
the smallest class, up to the size that the models require.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.label_cuts.cuts import ColumnTree, Cut, LabelCuts, bottom
from shoal.core.contracts import Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.ranges import by_levels
from shoal.errors import Infeasible


@dataclass(frozen=True)
class BottomUp(LabelCuts):
    """Generalize until every model holds; choose steps by information lost per anonymity gained."""

    plain_summary: ClassVar[str] = (
        "Starts from the values as they are, and merges where that costs least for the protection."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and some were not before the last step. Another cut may lose less."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        cut = bottom(problem)
        while not cut.acceptable:
            evaluate.check_time()
            best = _best(cut)
            if best is None:
                raise Infeasible("No cut was acceptable up to the highest level of every column.")
            cut = cut.up(*best)
        return evaluate.finish(evaluate.recoding(by_levels(problem, cut.levels)), self.guarantee)


def _best(cut: Cut) -> tuple[ColumnTree, int] | None:
    """Return the step that loses least per anonymity gained; among ties, the one that gains most."""
    best_score: tuple[float, float] | None = None
    best = None
    for tree in cut.trees:
        steps = cut.steps_up(tree)
        if steps is None:
            continue
        gained_anonymity = np.maximum(
            0, np.minimum(steps.smallest_class, cut.problem.least_size) - cut.smallest_class
        )
        scores = steps.gains / np.maximum(gained_anonymity, 1)  # without such a gain, by the loss
        first = int(np.lexsort((-gained_anonymity, scores))[0])
        score = float(scores[first]), -float(gained_anonymity[first])
        if best_score is None or score < best_score:
            best_score, best = score, (tree, int(steps.pairs[first]))
    return best
