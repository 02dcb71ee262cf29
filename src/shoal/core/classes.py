"""Classes: the sizes and sensitive distributions of what a recoding makes indistinguishable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.counts import Counts, Entries
from shoal.core.held import HeldCounts
from shoal.core.hierarchy import Hierarchy
from shoal.errors import InternalError, UnknownName

T = TypeVar("T")

UNIT = "\0unit of "  # before a column's name: its distinct values are counted, and nothing else
LABEL = "\0label of "  # before a column's name: metrics and searches look at it, and models do not


def own_name(name: str) -> bool:
    """Tell whether counts name a sensitive column itself, and not a unit or a label."""
    return not name.startswith((UNIT, LABEL))


def label_of(counts: Counts) -> str | None:
    """Return the name under which labels were counted, if they were."""
    return next((name for name in counts.sensitive if name.startswith(LABEL)), None)


@dataclass(frozen=True)
class Sensitive:
    """What models may know of a sensitive column beside the classes."""

    reference: IntArray  # (codes,): how often each value occurs in the whole input
    order: IntArray  # (codes,): each value's place in the column's own order
    hierarchy: Hierarchy | None = None

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each value in the whole input, (codes,)."""
        shares: FloatArray = self.reference / self.reference.sum()
        return shares

    @cached_property
    def ordered(self) -> IntArray:
        """The codes of the values that occur in the whole input, in the column's own order."""
        present = np.flatnonzero(self.reference)
        ordered: IntArray = present[np.argsort(self.order[present])]
        return ordered


@dataclass(frozen=True)
class Distribution:
    """How often each value of a sensitive column occurs in each class; an entry is a value in a class."""

    entries: Entries
    sizes: IntArray  # (classes,)

    @cached_property
    def rows(self) -> IntArray:
        """The class of each entry."""
        return self.entries.rows

    @cached_property
    def codes(self) -> IntArray:
        """The value of each entry."""
        return self.entries.codes

    @property
    def counts(self) -> IntArray:
        """The records of each entry."""
        return self.entries.counts

    @cached_property
    def shares(self) -> FloatArray:
        """The share that each entry has in its class."""
        shares: FloatArray = self.counts / self.sizes[self.rows]
        return shares

    @cached_property
    def distinct(self) -> IntArray:
        """The distinct values in each class."""
        return np.bincount(self.rows, minlength=len(self.sizes))

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up a number per entry into one per class."""
        return np.bincount(self.rows, values, len(self.sizes)).astype(np.float64)

    def greatest(self, values: FloatArray) -> FloatArray:
        """Return the greatest number per class of one per entry; none is below 0."""
        found = np.zeros(len(self.sizes))
        np.maximum.at(found, self.rows, values)
        return found

    @cached_property
    def _known(self) -> dict[object, Any]:
        return {}

    def once(self, what: object, work_out: Callable[[], T]) -> T:
        """Work something out when it is first asked for: models look at it twice in a class that fails."""
        if what not in self._known:
            self._known[what] = work_out()
        found: T = self._known[what]
        return found

    def having(self, marked: BoolArray) -> BoolArray:
        """Mark the classes that have a marked entry."""
        found = np.zeros(len(self.sizes), np.bool_)
        found[self.rows[marked]] = True
        return found


@dataclass(frozen=True)
class Classes:
    """What privacy models and metrics see of a recoded table."""

    counts: Counts
    about: Mapping[str, Sensitive] = field(default_factory=dict)

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
        return tuple(name for name in self.counts.sensitive if own_name(name))

    @cached_property
    def in_population(self) -> IntArray:
        """How many records of the population fall into each class."""
        return self._population.sizes_of(self.counts.keys)

    @property
    def population_records(self) -> int:
        """All records of the population."""
        return self._population.records

    @property
    def _population(self) -> HeldCounts:
        if self.counts.population is None:
            message = "A model about a population was asked without one."
            raise InternalError(message)
        return self.counts.population

    @cached_property
    def _distributions(self) -> dict[str, Distribution]:
        return {}

    def distribution(self, column: str) -> Distribution:
        """Return how often each value of a sensitive column occurs in each class."""
        if column not in self.counts.sensitive:
            raise UnknownName(column, "sensitive column", self.sensitive)
        if not self.counts.held:
            message = "The sensitive values of far counts were asked for."
            raise InternalError(message)
        if column not in self._distributions:
            self._distributions[column] = Distribution(self.counts.sensitive[column], self.sizes)
        return self._distributions[column]

    def column(self, column: str) -> Sensitive:
        """Return what is known of a sensitive column; its reference is the whole input."""
        if column not in self.about:
            raise UnknownName(column, "sensitive column with a reference", self.about)
        return self.about[column]

    def distinct(self, column: str) -> IntArray:
        """Count the distinct values of a sensitive column in each class."""
        return self.distribution(column).distinct

    def units(self, column: str) -> IntArray:
        """Count the distinct units, such as persons, in each class."""
        return self.distinct(UNIT + column)

    @property
    def labels(self) -> Distribution:
        """How often each label occurs in each class."""
        found = label_of(self.counts)
        if found is None:
            message = "Labels were asked for and not counted."
            raise InternalError(message)
        return self.distribution(found)

    def nothing(self) -> BoolArray:
        """Return the mask that suppresses no class."""
        return np.zeros(len(self), np.bool_)
