"""(alpha,k)-anonymity: k records, and no value above a share of alpha in any class (Wong et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError, invalid
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.thresholds import TOLERANCE, at_least_one, least_bound, rounded_up

_NO_CAP = 1e9  # not infinite, because infinity times 0 is undefined


@dataclass(frozen=True, kw_only=True)
class AlphaKAnonymity(SensitiveModel):
    """Refuse classes of fewer than k records, or in which the share of a sensitive value exceeds alpha."""

    alpha: float
    """The greatest share of one value in a class, above 0 and at most 1."""
    k: int
    """The number of records that every class must have, 1 or more."""
    rarer_than: float | None = None
    """Limit only values whose share of all records is below this number (up to 1). By default, limit all."""

    plain_summary: ClassVar[str] = (
        "Each record looks like k - 1 others, and no sensitive value is too frequent among them."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has shares between those of its parts."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise invalid("alpha", "above 0 and at most 1", self.alpha, PolicyError)
        at_least_one(k=self.k)
        if self.rarer_than is not None and not 0 < self.rarer_than <= 1:
            raise invalid("rarer_than", "above 0 and at most 1", self.rarer_than, PolicyError)

    @property
    def least_size(self) -> int:
        return self.k

    @property
    def needs_reference(self) -> bool:
        return self.rarer_than is not None

    def shares(self, classes: Classes, column: str) -> FloatArray:
        """Return the share of each entry in its class; 0 for values that are not limited."""
        distribution = classes.distribution(column)
        if self.rarer_than is None:
            return distribution.shares
        rare = classes.column(column).shares < self.rarer_than - TOLERANCE
        return np.where(rare[distribution.codes], distribution.shares, 0.0)

    def violating(self, classes: Classes, column: str) -> BoolArray:
        exceeding = self.shares(classes, column) > self.alpha + TOLERANCE
        return (classes.sizes < self.k) | classes.distribution(column).having(exceeding)

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return all records of classes below k. For larger classes, return the bound of `above_caps`."""
        limited = self.shares(classes, column) > 0
        caps = np.where(limited, self.alpha + TOLERANCE, _NO_CAP)
        records = above_caps(classes.distribution(column), caps)
        return np.where(classes.sizes < self.k, classes.sizes, records)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        shares = {c: self.shares(classes, c) for c in self.sensitive(classes.sensitive)}
        worst = np.max([classes.distribution(c).greatest(shares[c]) for c in shares], axis=0)
        alpha = least_bound(classes, np.where(classes.sizes < self.k, np.inf, worst), limit)
        return replace(self, alpha=rounded_up(alpha)) if alpha and rounded_up(alpha) < 1 else None


def greatest_shares(classes: Classes, column: str) -> FloatArray:
    """Return the share of the most frequent value in each class."""
    distribution = classes.distribution(column)
    return distribution.greatest(distribution.shares)
