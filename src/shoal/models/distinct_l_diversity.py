"""Distinct l-diversity: each class holds l different sensitive values (Machanavajjhala et al. 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError, UnknownName


@dataclass(frozen=True)
class DistinctLDiversity(Model):
    """Refuse classes with fewer than l distinct values of a sensitive column."""

    l: int
    column: str | None = None  # None: every sensitive column

    monotone: ClassVar[When] = When.ALWAYS

    def __post_init__(self) -> None:
        """Refuse an l that means nothing."""
        if self.l < 1:
            message = f"l must be at least 1, got {self.l}."
            raise PolicyError(message)

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes with fewer than l distinct values."""
        return self._distinct(classes) < self.l

    def _distinct(self, classes: Classes) -> IntArray:
        columns = self.sensitive(classes.sensitive)
        least: IntArray = np.min([classes.distinct(column) for column in columns], axis=0)
        return least

    @property
    def least_size(self) -> int:
        """A class with l distinct values has l records."""
        return self.l

    def sensitive(self, available: Sequence[str]) -> tuple[str, ...]:
        """Name the model's column, or every sensitive one."""
        if self.column is not None and self.column not in available:
            raise UnknownName(self.column, "sensitive column", available)
        if not available:
            message = "distinct-l-diversity needs a column whose role is sensitive."
            raise PolicyError(message)
        return tuple(available) if self.column is None else (self.column,)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest l that these classes reach within the limit."""
        distinct = self._distinct(classes)
        by_l = np.bincount(distinct, classes.sizes)
        short = np.cumsum(by_l) - by_l  # records in classes with fewer distinct values
        reached = np.flatnonzero((short <= limit) & (short < classes.records))
        reached = reached[reached >= 1]
        return replace(self, l=int(reached[-1])) if len(reached) else None
