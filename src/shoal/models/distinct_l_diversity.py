"""Distinct l-diversity: each class holds l different sensitive values (Machanavajjhala et al. 2007)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.thresholds import at_least_one, least_bound


@dataclass(frozen=True, kw_only=True)
class DistinctLDiversity(SensitiveModel):
    """Refuse classes with fewer than l distinct values of a sensitive column."""

    l: int
    """The number of different values that every class must contain, 1 or more."""

    plain_summary: ClassVar[str] = "Records that look alike have at least l different sensitive values."
    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes never lowers the number of different values."""
    ignores_size = True

    def __post_init__(self) -> None:
        at_least_one(l=self.l)

    def values_sentence(self) -> str:
        return f"Every group that looks alike holds at least {self.l} different sensitive values"

    @property
    def least_size(self) -> int:
        return self.l

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(self.sensitive(available), self.l)

    def violating(self, classes: Classes, column: str) -> BoolArray:
        violations: BoolArray = classes.distinct(column) < self.l
        return violations

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return all records of a failing class: no part of it has more distinct values."""
        return np.where(self.violating(classes, column), classes.sizes, 0.0)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        distinct = np.min([classes.distinct(column) for column in columns], axis=0)
        worst = least_bound(classes, -distinct.astype(np.float64), limit)
        return None if worst is None else replace(self, l=int(-worst))
