"""p-sensitive k-anonymity: k records and p distinct sensitive values in each class (Truta and Vinay 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.thresholds import at_least_one, least_bound


@dataclass(frozen=True, kw_only=True)
class PSensitive(SensitiveModel):
    """Refuse classes of fewer than k records or fewer than p distinct values of a sensitive column."""

    p: int
    """The number of different values that every class must contain, from 1 to k."""
    k: int
    """The number of records that every class must have, 1 or more."""

    plain_summary: ClassVar[str] = (
        "Each record looks like k - 1 others, with at least p different sensitive values."
    )
    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes lowers neither the number of records nor the number of different values."""

    def __post_init__(self) -> None:
        at_least_one(p=self.p, k=self.k)
        if self.p > self.k:
            raise PolicyError(f"p must not be above k, got p={self.p} and k={self.k}. Lower p or raise k.")

    @property
    def least_size(self) -> int:
        return self.k

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(self.sensitive(available), self.p)

    def violating(self, classes: Classes, column: str) -> BoolArray:
        violations: BoolArray = (classes.sizes < self.k) | (classes.distinct(column) < self.p)
        return violations

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return all records of a failing class: no part of it has more records or more distinct values."""
        return np.where(self.violating(classes, column), classes.sizes, 0.0)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        distinct = np.min([classes.distinct(column) for column in columns], axis=0)
        worst = least_bound(classes, np.where(classes.sizes < self.k, np.inf, -distinct), limit)
        return None if worst is None or worst > -2 else replace(self, p=min(int(-worst), self.k))
