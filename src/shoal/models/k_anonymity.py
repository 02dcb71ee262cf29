"""k-anonymity: every record looks like at least k-1 others (Samarati and Sweeney 1998)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.models.settings import at_least_one
from shoal.models.thresholds import within


@dataclass(frozen=True)
class KAnonymity(Model):
    """Refuse classes of fewer than k records, or of fewer than k distinct units such as persons."""

    k: int
    """The records that every class must have, 1 or more."""
    unit: str | None = None
    """A column that tells persons apart, where they may have several records: then k different persons."""

    monotone: ClassVar[When] = When.ALWAYS
    by_size: ClassVar[bool] = True
    """Whether only the size of a class counts; not with `unit`. Then whole lattices can be judged at once."""

    def __post_init__(self) -> None:
        """Refuse a k that means nothing."""
        at_least_one(k=self.k)

    def in_words(self) -> str:
        """Say who looks like whom."""
        if self.k == 1:
            return "A record may look like no other in the quasi-identifiers."
        told = f"Every record looks like at least {self.k - 1} others in the quasi-identifiers"
        return f"{told} ({self.unit})." if self.unit else f"{told}."

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes with fewer than k records, or units."""
        return self._measure(classes) < self.k

    def _measure(self, classes: Classes) -> IntArray:
        return classes.sizes if self.unit is None else classes.units(self.unit)

    @property
    def unit_column(self) -> str | None:
        """The unit."""
        return self.unit

    @property
    def sizes_suffice(self) -> bool:
        """Whether records are counted, not units."""
        return self.unit is None

    @property
    def least_size(self) -> int:
        """The k."""
        return self.k

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest k that these classes reach within the limit."""
        worst = within(classes, -self._measure(classes).astype(np.float64), limit)
        return None if worst is None else replace(self, k=int(-worst))
