"""Average risk: 1 / (average size of the released classes) is at most a bound (El Emam 2013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError, invalid
from shoal.models.thresholds import TOLERANCE, rounded_up


@dataclass(frozen=True)
class AverageRisk(Model):
    """Refuse releases whose classes are on average smaller than one over the risk."""

    risk: float
    """The greatest mean risk of a released record, above 0 and at most 1."""

    plain_summary: ClassVar[str] = (
        "On average, the records that look alike are numerous enough; single ones may be rare."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """Merging classes lowers the number of classes. The number of records stays the same."""

    def __post_init__(self) -> None:
        if not 0 < self.risk <= 1:
            raise invalid("risk", "above 0 and at most 1", self.risk, PolicyError)

    def violations(self, classes: Classes) -> BoolArray:
        """Return no violations: the model applies to the release as a whole."""
        return classes.nothing()

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Compare the average risk of a record, classes / records, with the bound."""
        kept = classes.sizes[~suppressed]
        return bool(len(kept) <= self.risk * kept.sum() + TOLERANCE)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        risk = rounded_up(len(classes) / classes.records)
        return replace(self, risk=risk) if risk < 1 else None
