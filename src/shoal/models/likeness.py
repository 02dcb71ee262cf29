"""The base class of basic and enhanced beta-likeness.

The share of a value in the input determines a cap on its share in a class.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.thresholds import TOLERANCE, above_zero, least_bound, rounded_up


@dataclass(frozen=True, kw_only=True)
class Likeness(SensitiveModel):
    """Refuse classes in which a value's share exceeds its cap."""

    beta: float
    """The greatest relative gain of a share, above 0. With 1, a share may be twice that in the table."""

    def __post_init__(self) -> None:
        above_zero(beta=self.beta)

    @property
    def needs_reference(self) -> bool:
        return True

    @abstractmethod
    def gains(self, shares: FloatArray) -> FloatArray:
        """Return, for each share in the input, by which fraction it may grow in a class."""

    def caps(self, classes: Classes, column: str) -> FloatArray:
        """Return the maximum share of each entry in its class."""
        shares = classes.column(column).shares
        caps: FloatArray = shares * (1 + self.gains(shares)) * (1 + TOLERANCE)
        return caps[classes.distribution(column).codes]

    def violating(self, classes: Classes, column: str) -> BoolArray:
        distribution = classes.distribution(column)
        return distribution.having(~(distribution.shares <= self.caps(classes, column)))

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return a lower bound on the records that fail, no matter how a class is divided."""
        return above_caps(classes.distribution(column), self.caps(classes, column))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        worst = np.max([self.smallest_beta(classes, column) for column in columns], axis=0)
        beta = least_bound(classes, worst, limit)
        return replace(self, beta=rounded_up(beta)) if beta else None

    def smallest_beta(self, classes: Classes, column: str) -> FloatArray:
        """Return the smallest beta that each class passes; infinite if there is none."""
        return greatest_gains(classes, column)


def greatest_gains(classes: Classes, column: str) -> FloatArray:
    """Return, per class, the greatest (share in the class / share in the input) - 1."""
    distribution = classes.distribution(column)
    gains = distribution.shares / classes.column(column).shares[distribution.codes] - 1
    return distribution.greatest(np.maximum(gains, 0))
