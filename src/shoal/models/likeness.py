"""What basic and enhanced beta-likeness share: a cap on each value's share, from that in the whole input."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.settings import above_zero
from shoal.models.thresholds import CLOSE, rounded_up, within


@dataclass(frozen=True, kw_only=True)
class Likeness(SensitiveModel):
    """Refuse classes in which a value's share exceeds its cap."""

    beta: float
    """The greatest relative gain, above 0; 1 allows twice the share."""

    def __post_init__(self) -> None:
        """Refuse a beta that means nothing."""
        above_zero(beta=self.beta)

    @property
    def needs_reference(self) -> bool:
        """Classes are compared with the whole input."""
        return True

    @abstractmethod
    def gains(self, shares: FloatArray) -> FloatArray:
        """Return by how much, relatively, each share of the whole input may be exceeded."""

    def caps(self, classes: Classes, column: str) -> FloatArray:
        """Return the share that each entry may have in its class."""
        shares = classes.column(column).shares
        caps: FloatArray = shares * (1 + self.gains(shares)) * (1 + CLOSE)
        return caps[classes.distribution(column).codes]

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes in which some value gains too much."""
        spread = classes.distribution(column)
        return spread.having(~(spread.shares <= self.caps(classes, column)))

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: what cannot be in parts in which every value keeps to its cap."""
        return above_caps(classes.distribution(column), self.caps(classes, column))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest beta that these classes reach."""
        columns = self.sensitive(classes.sensitive)
        worst = np.max([self.needed(classes, column) for column in columns], axis=0)
        beta = within(classes, worst, limit)
        return replace(self, beta=rounded_up(beta)) if beta else None

    def needed(self, classes: Classes, column: str) -> FloatArray:
        """Return the least beta that each class would pass; infinite where none would do."""
        return greatest_gains(classes, column)


def greatest_gains(classes: Classes, column: str) -> FloatArray:
    """Return the greatest relative gain of a value on its share in the whole input, in each class."""
    spread = classes.distribution(column)
    gains = spread.shares / classes.column(column).shares[spread.codes] - 1
    return spread.greatest(np.maximum(gains, 0))
