"""Average risk: one over the average class of what is released stays within a bound (El Emam 2013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError
from shoal.models.thresholds import CLOSE, rounded_up


@dataclass(frozen=True)
class AverageRisk(Model):
    """Refuse releases whose classes are on average smaller than one over the risk."""

    risk: float
    """The greatest mean risk of a released record, above 0 and at most 1."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """Merging leaves fewer classes of the same records."""

    def __post_init__(self) -> None:
        """Refuse a risk that means nothing."""
        if not 0 < self.risk <= 1:
            message = f"risk must be above 0 and at most 1, got {self.risk}."
            raise PolicyError(message)

    def violations(self, classes: Classes) -> BoolArray:
        """Mark nothing: the release is judged as a whole."""
        return classes.nothing()

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Tell whether classes over records, the mean risk of a record, is within the bound."""
        kept = classes.sizes[~suppressed]
        return bool(len(kept) <= self.risk * kept.sum() + CLOSE)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest risk that these classes have without suppression."""
        risk = rounded_up(len(classes) / classes.records)
        return replace(self, risk=risk) if risk < 1 else None
