"""The base class of models for one sensitive column or all of them."""

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

_ROOM = 1e-6  # smaller differences are treated as zero


@dataclass(frozen=True)
class SensitiveModel(Model):
    """A model that every class must satisfy for one sensitive column, or for each of them."""

    column: str | None = field(default=None, metadata={"kind": "sensitive-column"})
    """The sensitive column to check; without it, all of them."""

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
        """Take the maximum over the columns."""
        records = np.zeros(len(classes))
        for column in self.sensitive(classes.sensitive):
            np.maximum(records, self.unavoidable_in(classes, column), out=records)
        return records

    @abstractmethod
    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return, per class, a lower bound on the records that fail here and at every node below."""


def above_caps(spread: Distribution, caps: FloatArray, patience: float = 0.0) -> FloatArray:
    """Return the number of records that cannot be in parts in which no value exceeds its cap, (classes,).

    `caps` are shares, one per entry. Lemma: take any set of values. Its share in a passing part is at most
    the sum of its caps (plus `patience`), and in other parts at most 1. So if the set has share s of a class
    and the sum c of the caps is below 1, parts with at least (s - c) / (1 - c) of its records fail.
    Dinkelbach's iteration finds the set for which this is greatest: a value belongs to it if its share
    exceeds (1 - failing) times its cap.
    """
    failing = np.zeros(len(spread.sizes))
    while True:
        chosen = spread.shares > (1 - failing[spread.rows]) * caps
        share = spread.sums(np.where(chosen, spread.shares, 0.0))
        room = 1 - patience - spread.sums(np.where(chosen, caps, 0.0))
        excess = np.where(room > _ROOM, 1 - (1 - share) / np.maximum(room, _ROOM), 0.0)
        if not (excess > failing + TOLERANCE).any():
            return np.multiply(spread.sizes, np.clip(failing - TOLERANCE, 0, 1), dtype=np.float64)
        failing = np.maximum(failing, excess)
