"""Top-down specialization (Fung, Wang and Yu 2005, 2007): from the top of every hierarchy down.

A step replaces one group of one column by its children, in the whole table. In each round, the step is chosen
that adds most information about the label per lost anonymity. Suppressed records count with the maximum
entropy of their labels. A step that suppresses more records must lower the total entropy of the labels.
Otherwise it is tried again later.

Lemma: if models are monotone, a step that is refused is also refused from every lower cut. So it is not tried
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.algorithms.label_cuts.cuts import ColumnTree, Cut, LabelCuts, top
from shoal.core.contracts import Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.ranges import by_levels
from shoal.errors import Infeasible, OutOfTime

_ROUNDING = 1e-9  # fewer bits per record than this do not count as a gain


@dataclass(frozen=True)
class Tds(LabelCuts):
    """Specialize as long as every model holds; choose steps by information gained per anonymity lost."""

    plain_summary: ClassVar[str] = (
        "Starts from one group for all, and divides it as long as it helps to predict the label column."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and no further step is valid; another cut may lose less."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Go down step by step; when the time is up, return the current cut."""
        cut = top(problem)
        if not cut.acceptable:
            raise Infeasible("The table with every column at its highest level is not acceptable.")
        monotone = problem.monotone_models and not any(tree.shares_labels for tree in cut.trees)
        closed: list[set[int]] = [set() for _ in cut.trees]
        try:
            while True:
                evaluate.check_time()
                following = _following(cut, closed)
                if following is None:
                    break
                cut = following
                if not monotone:
                    closed = [set() for _ in cut.trees]
        except OutOfTime:
            pass
        return evaluate.finish(evaluate.recoding(by_levels(problem, cut.levels)), self.guarantee)


def _following(cut: Cut, closed: list[set[int]]) -> Cut | None:
    """Return the best cut one step down, or None; steps that are refused are added to `closed`."""
    while True:
        best = _best(cut, closed)
        if best is None:
            return None
        tree, pair = best
        following = cut.down(tree, pair)
        if following.acceptable:
            return following
        closed[tree.column].add(pair)  # the step is refused by a model about the whole table


def _best(cut: Cut, closed: list[set[int]]) -> tuple[ColumnTree, int] | None:
    """Return the step that gains most per anonymity lost; among ties, the one that loses least."""
    limit, records = cut.problem.limit, cut.problem.records
    best_score: tuple[float, float] = (-1.0, 0.0)
    best = None
    for tree in cut.trees:
        steps = cut.steps_down(tree, sorted(closed[tree.column]))
        if steps is None:
            continue
        kept = (steps.refused_records <= limit) & (steps.refused_records < records)
        closed[tree.column].update(steps.pairs[~kept].tolist())
        adds_information = steps.entropy < cut.entropy - _ROUNDING * records
        valid = kept & (adds_information | (steps.refused_records <= cut.refused_records))
        if not valid.any():
            continue
        lost_anonymity = np.maximum(0, cut.smallest_class - steps.smallest_class)
        scores = np.where(valid, steps.gains / (lost_anonymity + 1), -1.0)
        first = int(np.lexsort((lost_anonymity, -scores))[0])
        score = float(scores[first]), -float(lost_anonymity[first])
        if score > best_score:
            best_score, best = score, (tree, int(steps.pairs[first]))
    return best
