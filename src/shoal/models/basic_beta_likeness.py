"""Basic beta-likeness: no value's share rises too far above its share in the table (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.contracts import When
from shoal.models.likeness import Likeness


@dataclass(frozen=True, kw_only=True)
class BasicBetaLikeness(Likeness):
    """Refuse classes with (q - p) / p above beta; q is a value's share in the class, p overall."""

    plain_summary: ClassVar[str] = (
        "No sensitive value becomes much more likely for a group than for everyone."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """The gain (q - p) / p in a merged class is at most the greatest gain in its parts."""
    ignores_size = True

    def gains(self, shares: FloatArray) -> FloatArray:
        return np.full(len(shares), self.beta)
