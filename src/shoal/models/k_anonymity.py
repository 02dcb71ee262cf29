"""k-anonymity: every record looks like at least k-1 others (Samarati and Sweeney 1998)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError


@dataclass(frozen=True)
class KAnonymity(Model):
    """Refuse classes of fewer than k records."""

    k: int

    monotone: ClassVar[When] = When.ALWAYS
    by_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a k that means nothing."""
        if self.k < 1:
            message = f"k must be at least 1, got {self.k}."
            raise PolicyError(message)

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes with fewer than k records."""
        return classes.sizes < self.k

    @property
    def least_size(self) -> int:
        """The k."""
        return self.k

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest k that these classes reach within the limit."""
        sizes = np.sort(classes.sizes)
        before = np.concatenate(([0], np.cumsum(sizes)[:-1]))  # records in smaller (or equal) classes before
        reached = sizes[before <= limit]
        return replace(self, k=int(reached[-1])) if len(reached) else None
