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
    """Refuse classes in which |ln(q / p)| reaches delta for some value of the column."""

    delta: float
    """The logarithm of the factor that shares must not reach, above 0."""
    present_only: bool = False
    """Look only at values that occur in the class, as ARX does."""

    plain_summary: ClassVar[str] = (
        "Each sensitive value is about as frequent in every group as in the whole table."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has shares between those of its parts; not with `present_only`."""
    ignores_size = True

    def __post_init__(self) -> None:
        above_zero(delta=self.delta)

    @property
    def needs_reference(self) -> bool:
        return True

    def is_monotone(self, suppression: bool) -> bool:
        """With `present_only`, merging with classes that lack a value can make it too rare."""
        return super().is_monotone(suppression) and not self.present_only

    def violating(self, classes: Classes, column: str) -> BoolArray:
        spread = classes.distribution(column)
        changed = spread.having(~(changes(classes, column) < self.delta - TOLERANCE))
        return changed if self.present_only else changed | lacking_a_value(classes, column)

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Bound the failing records: those that exceed the factor in any partition."""
        spread, whole = classes.distribution(column), classes.column(column).shares
        over = above_caps(spread, np.minimum(whole * np.exp(min(self.delta, 700)), 1)[spread.codes])
        if self.present_only:
            return over
        # Parts that pass have at least the least share of every value.
        least = whole[spread.codes] * np.exp(-self.delta)
        under = np.clip(1 - (spread.shares + TOLERANCE) / np.maximum(least, TOLERANCE), 0, 1)
        over = np.maximum(over, classes.sizes * spread.greatest(under))
        return np.where(lacking_a_value(classes, column), classes.sizes, over)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        worst = np.max([self._needed(classes, column) for column in columns], axis=0)
        delta = least_bound(classes, worst, limit)
        return None if delta is None else replace(self, delta=rounded_up(delta, strictly=True))

    def _needed(self, classes: Classes, column: str) -> FloatArray:
        deltas = classes.distribution(column).greatest(changes(classes, column))
        return deltas if self.present_only else np.where(lacking_a_value(classes, column), np.inf, deltas)


def changes(classes: Classes, column: str) -> FloatArray:
    """Return |ln(q / p)| of each entry; infinite for a value that the input does not have."""
    spread = classes.distribution(column)
    whole = classes.column(column).shares[spread.codes]
    with np.errstate(divide="ignore"):
        logarithms: FloatArray = np.abs(np.log(spread.shares) - np.log(whole))
    return logarithms


def lacking_a_value(classes: Classes, column: str) -> BoolArray:
    """Mark the classes that lack some value of the input."""
    lacking: BoolArray = classes.distinct(column) < np.count_nonzero(classes.column(column).reference)
    return lacking
