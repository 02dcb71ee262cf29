"""Top-down specialization (Fung, Wang and Yu 2005, 2007): from the top of every hierarchy down.

Each step lets one group of one column give way to the groups below it, everywhere at once: the one that
tells most of the label for the anonymity it takes. Lemma: where models are monotone, a step that is refused
is refused from every lower cut as well, so it is not looked at again. A step that suppresses further records
must tell more of the other labels than is lost with them; later it may suppress none, and is looked at again.
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
from shoal.core.specialization import Cut, Tree, top
from shoal.errors import Infeasible, OutOfTime

_ROUNDING = 1e-9  # bits of a record that are no gain


@dataclass(frozen=True)
class Tds(LabelCuts):
    """Specialize as long as every model allows, by information gained per anonymity lost."""

    guarantee: ClassVar[Guarantee] = Guarantee.ACCEPTABLE
    """Every class is acceptable, and no further step is valid; another cut may lose less."""

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Go down step by step; when the time is up, the cut reached will do."""
        cut = top(problem)
        if not cut.acceptable:
            message = "The table with every column at its highest level is not acceptable."
            raise Infeasible(message)
        monotone = problem.monotone_models and not any(tree.alike for tree in cut.trees)
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
        return evaluate.finish(evaluate.recoded(by_levels(problem, cut.levels)), self.guarantee)


def _following(cut: Cut, closed: list[set[int]]) -> Cut | None:
    """Return the best cut one step down, or None; what is refused is closed."""
    while True:
        best = _best(cut, closed)
        if best is None:
            return None
        tree, pair = best
        following = cut.down(tree, pair)
        if following.acceptable:
            return following
        closed[tree.column].add(pair)  # a model about the whole table refuses it


def _best(cut: Cut, closed: list[set[int]]) -> tuple[Tree, int] | None:
    """Return the step that gains most per anonymity lost; of equal ones that which loses least."""
    limit, records = cut.problem.limit, cut.problem.records
    found: tuple[float, float] = (-1.0, 0.0)
    best = None
    for tree in cut.trees:
        steps = cut.steps_down(tree, sorted(closed[tree.column]))
        if steps is None:
            continue
        kept = (steps.short <= limit) & (steps.short < records)
        closed[tree.column].update(steps.pairs[~kept].tolist())
        tells = steps.unknown < cut.unknown - _ROUNDING * records
        valid = kept & (tells | (steps.short <= cut.short))
        if not valid.any():
            continue
        lost = np.maximum(0, cut.least - steps.least)
        scores = np.where(valid, steps.gains / (lost + 1), -1.0)
        first = int(np.lexsort((lost, -scores))[0])
        told = float(scores[first]), -float(lost[first])
        if told > found:
            found, best = told, (tree, int(steps.pairs[first]))
    return best
