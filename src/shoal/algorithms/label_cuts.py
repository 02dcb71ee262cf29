"""What the searches over cuts through hierarchies, made for a label, have in common."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.core.classes import label_of
from shoal.core.contracts import Algorithm
from shoal.core.problem import Problem


@dataclass(frozen=True)
class LabelCuts(Algorithm):
    """A search that weighs what a step tells of the label against the anonymity it takes or gives."""

    @property
    def needs_label(self) -> bool:
        """Gains and losses are about the label."""
        return True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what cuts cannot honour."""
        if label_of(problem.counts) is None:
            return "it needs a label: COLUMN, which a classifier is to predict"
        if len(problem.lattice.axes) < len(problem.lattice.columns):
            return "a cut has no one level for a column, so same_level says nothing of it"
        if problem.counts.population is not None:
            return "a population has no cuts to look up"
        return None
