"""delta-disclosure privacy: shares change by less than a factor (Brickell and Shmatikov 2008)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.settings import above_zero
from shoal.models.thresholds import CLOSE, rounded_up, within


@dataclass(frozen=True, kw_only=True)
class DeltaDisclosure(SensitiveModel):
    """Refuse classes in which |ln(q / p)| reaches delta for some value of the column."""

    delta: float
    """The logarithm of the factor that shares must not reach, above 0."""
    present_only: bool = False
    """Look only at values that occur in the class, as ARX does."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has shares between those of its parts; not with `present_only`."""
    values_alone = True

    def __post_init__(self) -> None:
        """Refuse a delta that means nothing."""
        above_zero(delta=self.delta)

    @property
    def needs_reference(self) -> bool:
        """Classes are compared with the whole input."""
        return True

    def is_monotone(self, suppression: bool) -> bool:
        """Tell whether a value must be in every class: merged with classes that lack it, it grows rare."""
        return super().is_monotone(suppression) and not self.present_only

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes in which a share changes too much, or a value is absent."""
        spread = classes.distribution(column)
        far = spread.having(~(changes(classes, column) < self.delta - CLOSE))
        return far if self.present_only else far | lacking_a_value(classes, column)

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: what cannot be in parts whose shares all keep within the factor."""
        spread, whole = classes.distribution(column), classes.column(column).shares
        found = above_caps(spread, np.minimum(whole * np.exp(min(self.delta, 700)), 1)[spread.codes])
        if self.present_only:
            return found
        # Parts that pass have at least the least share of every value.
        least = whole[spread.codes] * np.exp(-self.delta)
        under = np.clip(1 - (spread.shares + CLOSE) / np.maximum(least, CLOSE), 0, 1)
        found = np.maximum(found, classes.sizes * spread.greatest(under))
        return np.where(lacking_a_value(classes, column), classes.sizes, found)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest delta that these classes reach."""
        columns = self.sensitive(classes.sensitive)
        worst = np.max([self._needed(classes, column) for column in columns], axis=0)
        delta = within(classes, worst, limit)
        return None if delta is None else replace(self, delta=rounded_up(delta, beyond=True))

    def _needed(self, classes: Classes, column: str) -> FloatArray:
        found = classes.distribution(column).greatest(changes(classes, column))
        return found if self.present_only else np.where(lacking_a_value(classes, column), np.inf, found)


def changes(classes: Classes, column: str) -> FloatArray:
    """Return |ln(q / p)| of each entry; a value that the whole input does not have changes without end."""
    spread = classes.distribution(column)
    whole = classes.column(column).shares[spread.codes]
    with np.errstate(divide="ignore"):
        found: FloatArray = np.abs(np.log(spread.shares) - np.log(whole))
    return found


def lacking_a_value(classes: Classes, column: str) -> BoolArray:
    """Mark the classes in which some value of the whole input does not occur."""
    lacking: BoolArray = classes.distinct(column) < np.count_nonzero(classes.column(column).reference)
    return lacking
