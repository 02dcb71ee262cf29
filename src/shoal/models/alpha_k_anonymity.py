"""(alpha,k)-anonymity: k records, and no value has more than alpha of a class (Wong et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.errors import PolicyError
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.settings import at_least_one
from shoal.models.thresholds import CLOSE, rounded_up, within


@dataclass(frozen=True, kw_only=True)
class AlphaKAnonymity(SensitiveModel):
    """Refuse classes of fewer than k records, or in which one sensitive value has more than alpha."""

    alpha: float
    """The greatest share of one value in a class, above 0 and at most 1."""
    k: int
    """The records that every class must have, 1 or more."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has shares between those of its parts."""

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        if not 0 < self.alpha <= 1:
            message = f"alpha must be above 0 and at most 1, got {self.alpha}."
            raise PolicyError(message)
        at_least_one(k=self.k)

    @property
    def least_size(self) -> int:
        """The k."""
        return self.k

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes that are too small or too much of one value."""
        spread = classes.distribution(column)
        return (classes.sizes < self.k) | spread.having(spread.shares > self.alpha + CLOSE)

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: small classes, and what cannot be in parts that keep to alpha."""
        spread = classes.distribution(column)
        over = above_caps(spread, np.full(len(spread.rows), self.alpha + CLOSE))
        return np.where(classes.sizes < self.k, classes.sizes, over)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest alpha that these classes reach, with the same k."""
        worst = np.max([greatest_shares(classes, c) for c in self.sensitive(classes.sensitive)], axis=0)
        alpha = within(classes, np.where(classes.sizes < self.k, np.inf, worst), limit)
        return replace(self, alpha=rounded_up(alpha)) if alpha and rounded_up(alpha) < 1 else None


def greatest_shares(classes: Classes, column: str) -> FloatArray:
    """Return the share of the most frequent value in each class."""
    spread = classes.distribution(column)
    return spread.greatest(spread.shares)
