"""Sample uniqueness: the share of released records that are unique is at most a bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError, invalid
from shoal.models.thresholds import TOLERANCE, rounded_up


@dataclass(frozen=True)
class SampleUniqueness(Model):
    """Refuse releases in which more than a share of the records are unique."""

    share: float
    """The greatest share of released records that are unique, from 0 to 1."""

    plain_summary: ClassVar[str] = "Only a small share of the records looks like no other."
    # Not with suppression: a record may be suppressed at the lower node, and released as unique at the upper.
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """Generalizing never makes a record unique."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise invalid("share", "from 0 to 1", self.share, PolicyError)

    def violations(self, classes: Classes) -> BoolArray:
        """Return no violations: the model applies to the release as a whole."""
        return classes.nothing()

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        kept = classes.sizes[~suppressed]
        return bool((kept == 1).sum() <= self.share * kept.sum() + TOLERANCE)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        share = rounded_up(int((classes.sizes == 1).sum()) / classes.records)
        return replace(self, share=share) if share < 1 else None
