"""p-sensitive k-anonymity: k records and p distinct sensitive values in each class (Truta and Vinay 2006)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.settings import at_least_one
from shoal.models.thresholds import within


@dataclass(frozen=True, kw_only=True)
class PSensitive(SensitiveModel):
    """Refuse classes of fewer than k records or fewer than p distinct values of a sensitive column."""

    p: int
    """The different values that every class must hold, from 1 to k."""
    k: int
    """The records that every class must have, 1 or more."""

    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes lowers neither the records nor the different values."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        at_least_one(p=self.p, k=self.k)
        if self.p > self.k:
            message = f"p must not be above k, got p={self.p} and k={self.k}. Lower p or raise k."
            raise PolicyError(message)

    @property
    def least_size(self) -> int:
        """The k."""
        return self.k

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes that are too small or hold too few values."""
        short: BoolArray = (classes.sizes < self.k) | (classes.distinct(column) < self.p)
        return short

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Everything in a class that falls short: its parts have no more records and values."""
        return np.where(self.falls_short(classes, column), classes.sizes, 0.0)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest p that these classes reach, with the same k."""
        columns = self.sensitive(classes.sensitive)
        distinct = np.min([classes.distinct(column) for column in columns], axis=0)
        worst = within(classes, np.where(classes.sizes < self.k, np.inf, -distinct), limit)
        return None if worst is None or worst > -2 else replace(self, p=min(int(-worst), self.k))
