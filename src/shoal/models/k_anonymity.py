"""k-anonymity: every record is indistinguishable from at least k-1 others (Samarati and Sweeney 1998)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import UNIT, Classes
from shoal.core.contracts import Model, When
from shoal.models.thresholds import at_least_one, least_bound


@dataclass(frozen=True)
class KAnonymity(Model):
    """Refuse classes of fewer than k records, or of fewer than k distinct units such as persons."""

    k: int
    """The number of records that every class must have, 1 or more."""
    unit: str | None = field(default=None, metadata={"kind": "column"})
    """A column that identifies persons. With it, every class must have k different persons, not k records."""

    plain_summary: ClassVar[str] = "Each record looks like at least k - 1 others."
    monotone: ClassVar[When] = When.ALWAYS
    by_size: ClassVar[bool] = True
    """Whether only class sizes matter, so that whole lattices can be evaluated at once. Not with `unit`."""

    def __post_init__(self) -> None:
        at_least_one(k=self.k)

    def in_words(self) -> str:
        if self.k == 1:
            return "A record may look like no other in the quasi-identifiers."
        sentence = f"Every record looks like at least {self.k - 1} others in the quasi-identifiers"
        return f"{sentence} ({self.unit})." if self.unit else f"{sentence}."

    def violations(self, classes: Classes) -> BoolArray:
        return self._measure(classes) < self.k

    def _measure(self, classes: Classes) -> IntArray:
        return classes.sizes if self.unit is None else classes.units(self.unit)

    @property
    def unit_column(self) -> str | None:
        return self.unit

    @property
    def sizes_suffice(self) -> bool:
        return self.unit is None

    @property
    def least_size(self) -> int:
        return self.k

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        return {} if self.unit is None else {UNIT + self.unit: self.k}

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        worst = least_bound(classes, -self._measure(classes).astype(np.float64), limit)
        return None if worst is None else replace(self, k=int(-worst))
