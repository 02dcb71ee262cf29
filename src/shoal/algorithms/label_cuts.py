"""What the searches over cuts through hierarchies, made for a label, have in common."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.core.contracts import Algorithm
from shoal.core.evaluate import Problem
from shoal.core.specialization import refusal


@dataclass(frozen=True)
class LabelCuts(Algorithm):
    """A search that weighs what a step tells of the label against the anonymity it takes or gives."""

    @property
    def needs_label(self) -> bool:
        """Gains and losses are about the label."""
        return True

    def refuses(self, problem: Problem) -> str | None:
        """Refuse what cuts cannot honour."""
        return refusal(problem)
