"""delta-disclosure privacy: shares change by less than a factor (Brickell and Shmatikov 2008)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.thresholds import TOLERANCE, above_zero, least_bound, rounded_up


@dataclass(frozen=True, kw_only=True)
class DeltaDisclosure(SensitiveModel):
    """Refuse classes where |ln(q / p)| reaches delta: q is a value's share of the class, p of the table."""

    delta: float
    """The logarithm of a factor, above 0. Every share must change by less than this factor."""
    present_only: bool = False
    """Check only values that occur in the class, as ARX does."""

    plain_summary: ClassVar[str] = (
        "Each sensitive value is about as frequent in every group as in the whole table."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has shares between those of its parts. Does not hold with `present_only`."""
    ignores_size = True

    def __post_init__(self) -> None:
        above_zero(delta=self.delta)

    @property
    def needs_reference(self) -> bool:
        return True

    def is_monotone(self, suppression: bool) -> bool:
        """Return False with `present_only`: a merge with a class that lacks a value makes the value rarer."""
        return super().is_monotone(suppression) and not self.present_only

    def violating(self, classes: Classes, column: str) -> BoolArray:
        distribution = classes.distribution(column)
        changed = distribution.having(~(changes(classes, column) < self.delta - TOLERANCE))
        return changed if self.present_only else changed | lacking_a_value(classes, column)

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return a lower bound on the records that fail, no matter how a class is divided."""
        distribution, input_shares = classes.distribution(column), classes.column(column).shares
        records = above_caps(
            distribution, np.minimum(input_shares * np.exp(min(self.delta, 700)), 1)[distribution.codes]
        )
        if self.present_only:
            return records
        # In a part that passes, every value has at least its minimum share.
        minimum_shares = input_shares[distribution.codes] * np.exp(-self.delta)
        missing = np.clip(1 - (distribution.shares + TOLERANCE) / np.maximum(minimum_shares, TOLERANCE), 0, 1)
        records = np.maximum(records, classes.sizes * distribution.greatest(missing))
        return np.where(lacking_a_value(classes, column), classes.sizes, records)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        worst = np.max([self._smallest_delta(classes, column) for column in columns], axis=0)
        delta = least_bound(classes, worst, limit)
        return None if delta is None else replace(self, delta=rounded_up(delta, strictly=True))

    def _smallest_delta(self, classes: Classes, column: str) -> FloatArray:
        largest = classes.distribution(column).greatest(changes(classes, column))
        return largest if self.present_only else np.where(lacking_a_value(classes, column), np.inf, largest)


def changes(classes: Classes, column: str) -> FloatArray:
    """Return |ln(q / p)| of each entry; infinite for a value that the input does not have."""
    distribution = classes.distribution(column)
    input_shares = classes.column(column).shares[distribution.codes]
    with np.errstate(divide="ignore"):
        logarithms: FloatArray = np.abs(np.log(distribution.shares) - np.log(input_shares))
    return logarithms


def lacking_a_value(classes: Classes, column: str) -> BoolArray:
    """Mark the classes that lack some value of the input."""
    lacks_value: BoolArray = classes.distinct(column) < np.count_nonzero(classes.column(column).reference)
    return lacks_value
