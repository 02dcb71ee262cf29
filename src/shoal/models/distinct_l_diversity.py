"""Distinct l-diversity: each class holds l different sensitive values (Machanavajjhala et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.settings import at_least_one
from shoal.models.thresholds import within


@dataclass(frozen=True, kw_only=True)
class DistinctLDiversity(SensitiveModel):
    """Refuse classes with fewer than l distinct values of a sensitive column."""

    l: int
    """The different values that every class must hold, 1 or more."""

    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes never lowers the number of different values."""
    values_alone = True

    def __post_init__(self) -> None:
        """Refuse an l that means nothing."""
        at_least_one(l=self.l)

    def about_values(self) -> str:
        """Say how many there are."""
        return f"Every group that looks alike holds at least {self.l} different sensitive values"

    @property
    def least_size(self) -> int:
        """A class with l distinct values has l records."""
        return self.l

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes with fewer than l distinct values."""
        short: BoolArray = classes.distinct(column) < self.l
        return short

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Everything in a class that falls short: its parts hold no more values."""
        return np.where(self.falls_short(classes, column), classes.sizes, 0.0)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest l that these classes reach within the limit."""
        columns = self.sensitive(classes.sensitive)
        distinct = np.min([classes.distinct(column) for column in columns], axis=0)
        worst = within(classes, -distinct.astype(np.float64), limit)
        return None if worst is None else replace(self, l=int(-worst))
