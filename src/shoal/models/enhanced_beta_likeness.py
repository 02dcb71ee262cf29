"""Enhanced beta-likeness: no share rises too far above that in the table (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.likeness import Likeness, greatest_gains
from shoal.models.thresholds import TOLERANCE


@dataclass(frozen=True, kw_only=True)
class EnhancedBetaLikeness(Likeness):
    """Refuse classes with (q - p) / p above beta or -ln p; q is a value's share in the class, p overall."""

    plain_summary: ClassVar[str] = (
        "Like basic-beta-likeness, with a tighter limit for frequent sensitive values."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """The gain (q - p) / p in a merged class is at most the greatest gain in its parts."""
    ignores_size = True

    def gains(self, shares: FloatArray) -> FloatArray:
        return np.minimum(self.beta, most_gains(shares))

    def smallest_beta(self, classes: Classes, column: str) -> FloatArray:
        """Return the smallest beta that each class passes; infinite if the gain of a value exceeds -ln p."""
        return enhanced_gains(classes, column)


def most_gains(shares: FloatArray) -> FloatArray:
    """Return the maximum gain for any beta: -ln of the share; 0 for a value that never occurs."""
    return -np.log(np.where(shares > 0, shares, 1.0))


def enhanced_gains(classes: Classes, column: str) -> FloatArray:
    """Return the greatest gain in each class; infinite if the gain of a value exceeds -ln of its share."""
    distribution = classes.distribution(column)
    shares = classes.column(column).shares
    maximum_shares = (shares * (1 + most_gains(shares)) * (1 + TOLERANCE))[distribution.codes]
    return np.where(
        distribution.having(distribution.shares > maximum_shares), np.inf, greatest_gains(classes, column)
    )
