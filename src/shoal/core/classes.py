"""Classes: the sizes and sensitive distributions of what a recoding makes indistinguishable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts import Counts, Entries
from shoal.errors import UnknownName


@dataclass(frozen=True)
class Classes:
    """What privacy models and metrics see of a recoded table."""

    counts: Counts

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.counts)

    @property
    def sizes(self) -> IntArray:
        """The records in each class."""
        return self.counts.sizes

    @cached_property
    def records(self) -> int:
        """The records in all classes."""
        return self.counts.records

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns whose distributions are known."""
        return tuple(self.counts.sensitive)

    def distribution(self, column: str) -> Entries:
        """Return how often each value of a sensitive column occurs in each class."""
        if column not in self.counts.sensitive:
            raise UnknownName(column, "sensitive column", self.sensitive)
        return self.counts.sensitive[column]

    def distinct(self, column: str) -> IntArray:
        """Count the distinct values of a sensitive column in each class."""
        return np.bincount(self.distribution(column).rows, minlength=len(self))

    def nothing(self) -> BoolArray:
        """Return the mask that suppresses no class."""
        return np.zeros(len(self), np.bool_)
