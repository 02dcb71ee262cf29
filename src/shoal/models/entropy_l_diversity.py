"""Entropy l-diversity: each class is as mixed as l equally frequent values (Machanavajjhala et al. 2007)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError, invalid
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.thresholds import TOLERANCE, least_bound, rounded_up


@dataclass(frozen=True, kw_only=True)
class EntropyLDiversity(SensitiveModel):
    """Refuse classes whose entropy of a sensitive column is below the logarithm of l."""

    l: float
    """Each class needs at least the entropy of l equally frequent values. 1 or more, need not be whole."""

    plain_summary: ClassVar[str] = (
        "Records that look alike are as mixed as l equally frequent sensitive values."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has at least the mean entropy of its parts."""
    ignores_size = True

    def __post_init__(self) -> None:
        if not 1 <= self.l < math.inf:
            raise invalid("l", "a number of at least 1", self.l, PolicyError)

    def values_sentence(self) -> str:
        return f"Sensitive values in every group are as mixed as {self.l:g} equally frequent ones"

    @property
    def least_size(self) -> int:
        return math.ceil(self.l)

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(self.sensitive(available), math.ceil(self.l))

    def violating(self, classes: Classes, column: str) -> BoolArray:
        below_entropy: BoolArray = entropies(classes, column) < math.log(self.l) - TOLERANCE
        return below_entropy | (classes.distinct(column) < math.ceil(self.l))

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return a lower bound on the failing records.

        The entropy of a class is at least the mean entropy of its parts, and a part that passes has at least
        ln l.
        """
        if self.l == 1:
            return np.zeros(len(classes))
        missing = 1 - (entropies(classes, column) + TOLERANCE) / math.log(self.l)
        too_few_values = classes.distinct(column) < math.ceil(self.l)
        return np.where(too_few_values, classes.sizes, classes.sizes * np.clip(missing, 0, 1))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        smallest = np.min([entropies(classes, c) for c in self.sensitive(classes.sensitive)], axis=0)
        worst = least_bound(classes, -np.exp(smallest), limit)
        l = None if worst is None else -rounded_up(worst)
        return replace(self, l=l) if l and l > 1 else None


def entropies(classes: Classes, column: str) -> FloatArray:
    """Return the entropy of a sensitive column in each class, in nats."""
    distribution = classes.distribution(column)
    return distribution.cached(
        entropies, lambda: distribution.sums(-distribution.shares * np.log(distribution.shares))
    )
