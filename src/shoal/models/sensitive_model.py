"""What models about one sensitive column, or all of them, have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes, Distribution
from shoal.core.contracts import Model
from shoal.errors import PolicyError, UnknownName
from shoal.models import MODELS
from shoal.models.thresholds import CLOSE

_ROOM = 1e-6  # less than this is not told from nothing


@dataclass(frozen=True)
class SensitiveModel(Model):
    """A model that every class must satisfy for a sensitive column, or for each of them."""

    column: str | None = None
    """The sensitive column to look at; without it, every one."""

    def sensitive(self, available: Sequence[str]) -> tuple[str, ...]:
        """Name the model's column, or every sensitive one."""
        if self.column is not None and self.column not in available:
            raise UnknownName(self.column, "sensitive column", available)
        if not available:
            message = f"{MODELS.name_of(self)} needs a column whose role is sensitive. Give one that role."
            raise PolicyError(message)
        return tuple(available) if self.column is None else (self.column,)

    def in_words(self) -> str | None:
        """Say what is so of the sensitive values, and of which column where it is named."""
        told = self.about_values()
        return told and (f"{told} ({self.column})." if self.column else f"{told}.")

    def about_values(self) -> str | None:
        """Say what is so of the sensitive values, without a full stop."""
        return None

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that fall short for some column."""
        found = classes.nothing()
        for column in self.sensitive(classes.sensitive):
            found |= self.falls_short(classes, column)
        return found

    @abstractmethod
    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes that fall short for one column."""

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Take, of each class, the column for which most records are refused below."""
        found = np.zeros(len(classes))
        for column in self.sensitive(classes.sensitive):
            np.maximum(found, self.stuck(classes, column), out=found)
        return found

    @abstractmethod
    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Return how many records of each class are refused, here and below, for one column."""


def above_caps(spread: Distribution, caps: FloatArray, patience: float = 0.0) -> FloatArray:
    """Return the records that cannot be in parts in which every value keeps to its cap, (classes,).

    `caps` are shares, one per entry. Lemma: take any set of values. Parts that pass have at most the sum of
    their caps (and `patience`) of it, others at most everything. So if a class has the share s of the set
    and the caps' sum c is below 1, parts with at least (s - c) / (1 - c) of its records fail. The set for
    which this is most is found by Dinkelbach's iteration: a value belongs to it if its share exceeds
    (1 - failing) of its cap.
    """
    failing = np.zeros(len(spread.sizes))
    while True:
        chosen = spread.shares > (1 - failing[spread.rows]) * caps
        share = spread.sums(np.where(chosen, spread.shares, 0.0))
        room = 1 - patience - spread.sums(np.where(chosen, caps, 0.0))
        found = np.where(room > _ROOM, 1 - (1 - share) / np.maximum(room, _ROOM), 0.0)
        if not (found > failing + CLOSE).any():
            return np.multiply(spread.sizes, np.clip(failing - CLOSE, 0, 1), dtype=np.float64)
        failing = np.maximum(failing, found)
