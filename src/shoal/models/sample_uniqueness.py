"""Sample uniqueness: the share of released records that are alone in their class stays within a bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError
from shoal.models.thresholds import CLOSE, rounded_up


@dataclass(frozen=True)
class SampleUniqueness(Model):
    """Refuse releases in which more than a share of the records are unique."""

    share: float
    """The greatest share of released records that are unique, from 0 to 1."""

    # A record that is unique was unique below, but there a model about a population may have suppressed it.
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """Generalizing makes no record unique that was not."""

    def __post_init__(self) -> None:
        """Refuse a share that means nothing."""
        if not 0 <= self.share <= 1:
            message = f"share must be from 0 to 1, got {self.share}."
            raise PolicyError(message)

    def violations(self, classes: Classes) -> BoolArray:
        """Mark nothing: the release is judged as a whole."""
        return classes.nothing()

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Tell whether few enough of the records that remain are unique."""
        kept = classes.sizes[~suppressed]
        return bool((kept == 1).sum() <= self.share * kept.sum() + CLOSE)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest share that these classes have without suppression."""
        share = rounded_up(int((classes.sizes == 1).sum()) / classes.records)
        return replace(self, share=share) if share < 1 else None
