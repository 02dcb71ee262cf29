"""The base class of models for one sensitive column or for all sensitive columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes, Distribution
from shoal.core.contracts import Model
from shoal.errors import PolicyError, UnknownName
from shoal.models import MODELS
from shoal.models.thresholds import TOLERANCE

_SMALLEST_REMAINDER = 1e-6  # a smaller difference between 1 and a sum of caps is treated as zero


@dataclass(frozen=True)
class SensitiveModel(Model):
    """A model that every class must satisfy for one sensitive column, or for all sensitive columns."""

    column: str | None = field(default=None, metadata={"kind": "sensitive-column"})
    """The sensitive column to check. By default, all sensitive columns are checked."""

    def sensitive(self, available: Sequence[str]) -> tuple[str, ...]:
        """Return the column of the model, or all sensitive columns."""
        if self.column is not None and self.column not in available:
            raise UnknownName(self.column, "sensitive column", available)
        if not available:
            raise PolicyError(
                f"{MODELS.name_of(self)} needs a column whose role is sensitive. Give one that role."
            )
        return tuple(available) if self.column is None else (self.column,)

    def in_words(self) -> str | None:
        sentence = self.values_sentence()
        return sentence and (f"{sentence} ({self.column})." if self.column else f"{sentence}.")

    def values_sentence(self) -> str | None:
        """Describe the sensitive values of a class, without a full stop; None if there is no description."""
        return None

    def violations(self, classes: Classes) -> BoolArray:
        mask = classes.nothing()
        for column in self.sensitive(classes.sensitive):
            mask |= self.violating(classes, column)
        return mask

    @abstractmethod
    def violating(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes that violate the model for one column."""

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Return, per class, the maximum of `unavoidable_in` over the columns."""
        records = np.zeros(len(classes))
        for column in self.sensitive(classes.sensitive):
            np.maximum(records, self.unavoidable_in(classes, column), out=records)
        return records

    @abstractmethod
    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return, per class, a lower bound on the records that fail here and at every node below."""


def above_caps(distribution: Distribution, caps: FloatArray, tolerance: float = 0.0) -> FloatArray:
    """Return a lower bound on the records that fail, no matter how a class is divided, (classes,).

    A part of a class passes if no value exceeds its cap. `caps` are shares, one per entry.

    Lemma: take any set of values with share s of the class, and let c be the sum of its caps plus the
    `tolerance`. In a part that passes, the share of the set is at most c. In any other part it is at most 1.
    If c is below 1, parts with at least (s - c) / (1 - c) of the records fail. Dinkelbach's iteration finds
    the set with the greatest bound: a value belongs to it if its share exceeds (1 - bound) times its cap.
    """
    share_failing = np.zeros(len(distribution.sizes))
    while True:
        in_set = distribution.shares > (1 - share_failing[distribution.rows]) * caps
        set_share = distribution.sums(np.where(in_set, distribution.shares, 0.0))
        remaining = 1 - tolerance - distribution.sums(np.where(in_set, caps, 0.0))
        bound = np.where(
            remaining > _SMALLEST_REMAINDER,
            1 - (1 - set_share) / np.maximum(remaining, _SMALLEST_REMAINDER),
            0.0,
        )
        if not (bound > share_failing + TOLERANCE).any():
            return np.multiply(distribution.sizes, np.clip(share_failing - TOLERANCE, 0, 1), dtype=np.float64)
        share_failing = np.maximum(share_failing, bound)
