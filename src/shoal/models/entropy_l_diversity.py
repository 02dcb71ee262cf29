"""Entropy l-diversity: each class is as mixed as l equally frequent values (Machanavajjhala et al. 2007)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.thresholds import CLOSE, rounded_up, within


@dataclass(frozen=True, kw_only=True)
class EntropyLDiversity(SensitiveModel):
    """Refuse classes whose entropy of a sensitive column is below the logarithm of l."""

    l: float
    """The equally frequent values that a class must be worth, 1 or more; fractions are allowed."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has at least the mean entropy of its parts."""
    values_alone = True

    def __post_init__(self) -> None:
        """Refuse an l that means nothing."""
        if not 1 <= self.l < math.inf:
            message = f"l must be a number of at least 1, got {self.l}."
            raise PolicyError(message)

    def about_values(self) -> str:
        """Say how many there are."""
        return f"Sensitive values in every group are as mixed as {self.l:g} equally frequent ones"

    @property
    def least_size(self) -> int:
        """A class of l distinct values has as many records."""
        return math.ceil(self.l)

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes of too little entropy, or of fewer than l distinct values."""
        short: BoolArray = entropies(classes, column) < math.log(self.l) - CLOSE
        return short | (classes.distinct(column) < math.ceil(self.l))

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: entropy is no less than its parts' mean, and parts that pass have ln l."""
        if self.l == 1:
            return np.zeros(len(classes))
        missing = 1 - (entropies(classes, column) + CLOSE) / math.log(self.l)
        few = classes.distinct(column) < math.ceil(self.l)
        return np.where(few, classes.sizes, classes.sizes * np.clip(missing, 0, 1))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest l that these classes reach."""
        least = np.min([entropies(classes, c) for c in self.sensitive(classes.sensitive)], axis=0)
        worst = within(classes, -np.exp(least), limit)
        l = None if worst is None else -rounded_up(worst)
        return replace(self, l=l) if l and l > 1 else None


def entropies(classes: Classes, column: str) -> FloatArray:
    """Return the entropy of a sensitive column in each class, in nats."""
    spread = classes.distribution(column)
    return spread.once(entropies, lambda: spread.sums(-spread.shares * np.log(spread.shares)))
