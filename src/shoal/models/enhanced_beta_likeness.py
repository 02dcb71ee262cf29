"""Enhanced beta-likeness: no value gains too much on its share in the whole table (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.likeness import Likeness, greatest_gains
from shoal.models.thresholds import CLOSE


@dataclass(frozen=True, kw_only=True)
class EnhancedBetaLikeness(Likeness):
    """Refuse classes in which (q - p) / p exceeds beta, or -ln p, for some value."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class gains no more than the part that gained most."""
    values_alone = True

    def gains(self, shares: FloatArray) -> FloatArray:
        """Allow frequent values less."""
        return np.minimum(self.beta, most_gains(shares))

    def needed(self, classes: Classes, column: str) -> FloatArray:
        """Return the least beta that each class would pass; infinite where a value gains more than -ln p."""
        return enhanced_gains(classes, column)


def most_gains(shares: FloatArray) -> FloatArray:
    """Return what no beta lets a value exceed: -ln of its share; a value that never occurs may not gain."""
    return -np.log(np.where(shares > 0, shares, 1.0))


def enhanced_gains(classes: Classes, column: str) -> FloatArray:
    """Return the greatest gain of a value in each class, infinite where one exceeds -ln of its share."""
    spread = classes.distribution(column)
    shares = classes.column(column).shares
    most = (shares * (1 + most_gains(shares)) * (1 + CLOSE))[spread.codes]
    return np.where(spread.having(spread.shares > most), np.inf, greatest_gains(classes, column))
