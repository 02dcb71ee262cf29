"""Basic beta-likeness: no value gains too much on its share in the whole table (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.contracts import When
from shoal.models.likeness import Likeness


@dataclass(frozen=True, kw_only=True)
class BasicBetaLikeness(Likeness):
    """Refuse classes in which (q - p) / p exceeds beta for some value."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class gains no more than the part that gained most."""
    values_alone = True

    def gains(self, shares: FloatArray) -> FloatArray:
        """Allow every value the same gain."""
        return np.full(len(shares), self.beta)
