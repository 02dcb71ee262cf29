"""Classes: groups of records that a recoding makes identical, with their sizes and sensitive values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.counts.counts import Counts, SensitiveCounts
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.errors import InternalError, UnknownName

T = TypeVar("T")

UNIT = "\0unit of "  # prefix of a column of which only the distinct values are counted
LABEL = "\0label of "  # prefix of a column that metrics and searches use, but models do not


def is_sensitive_name(name: str) -> bool:
    """Return whether a name in `Counts.sensitive` is a sensitive column, not a unit or a label."""
    return not name.startswith((UNIT, LABEL))


def label_of(counts: Counts) -> str | None:
    """Return the name of the label column in `Counts.sensitive`, or None."""
    return next((name for name in counts.sensitive if name.startswith(LABEL)), None)


@dataclass(frozen=True)
class Sensitive:
    """Facts about a sensitive column that models use in addition to the classes."""

    reference: IntArray  # (codes,): how often each value occurs in the whole input
    order: IntArray  # (codes,): the position of each value in the order of the column
    hierarchy: Hierarchy | None = None

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each value in the whole input, (codes,)."""
        shares: FloatArray = self.reference / self.reference.sum()
        return shares

    @cached_property
    def ordered(self) -> IntArray:
        """The codes of the values that occur in the input, in the order of the column."""
        present = np.flatnonzero(self.reference)
        ordered: IntArray = present[np.argsort(self.order[present])]
        return ordered


@dataclass(frozen=True)
class Distribution:
    """How often each value of a sensitive column occurs in each class; an entry is a value in a class."""

    entries: SensitiveCounts
    sizes: IntArray  # (classes,)

    @cached_property
    def rows(self) -> IntArray:
        """The class of each entry."""
        return self.entries.rows

    @cached_property
    def codes(self) -> IntArray:
        return self.entries.codes

    @property
    def counts(self) -> IntArray:
        return self.entries.counts

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each entry in its class."""
        shares: FloatArray = self.counts / self.sizes[self.rows]
        return shares

    @cached_property
    def distinct(self) -> IntArray:
        """The number of distinct values in each class."""
        return np.bincount(self.rows, minlength=len(self.sizes))

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum one number per entry within each class."""
        return np.bincount(self.rows, values, len(self.sizes)).astype(np.float64)

    def greatest(self, values: FloatArray) -> FloatArray:
        """Return the maximum of `values` (one per entry) in each class; at least 0."""
        maxima = np.zeros(len(self.sizes))
        np.maximum.at(maxima, self.rows, values)
        return maxima

    @cached_property
    def _cache(self) -> dict[object, Any]:
        return {}

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """Return the cached value of a key, or compute it."""
        if key not in self._cache:
            self._cache[key] = compute()
        value: T = self._cache[key]
        return value

    def having(self, marked: BoolArray) -> BoolArray:
        """Mark the classes that contain a marked entry."""
        classes = np.zeros(len(self.sizes), np.bool_)
        classes[self.rows[marked]] = True
        return classes


@dataclass(frozen=True)
class Classes:
    """The classes of a recoded table, as privacy models and metrics receive them."""

    counts: Counts
    sensitive_info: Mapping[str, Sensitive] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def sizes(self) -> IntArray:
        return self.counts.sizes

    @cached_property
    def records(self) -> int:
        return self.counts.records

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns whose distributions were counted."""
        return tuple(name for name in self.counts.sensitive if is_sensitive_name(name))

    @cached_property
    def in_population(self) -> IntArray:
        """The number of population records in each class."""
        return self._population.sizes_of(self.counts.keys)

    @property
    def population_records(self) -> int:
        return self._population.records

    @property
    def _population(self) -> InMemoryCounts:
        if self.counts.population is None:
            raise InternalError("A model that needs a population was used without one.")
        return self.counts.population

    @cached_property
    def _distributions(self) -> dict[str, Distribution]:
        return {}

    def distribution(self, column: str) -> Distribution:
        if column not in self.counts.sensitive:
            raise UnknownName(column, "sensitive column", self.sensitive)
        if self.counts.remote:
            raise InternalError("The sensitive values of remote counts were requested.")
        if column not in self._distributions:
            self._distributions[column] = Distribution(self.counts.sensitive[column], self.sizes)
        return self._distributions[column]

    def column(self, column: str) -> Sensitive:
        """Return the facts about a sensitive column in the whole input."""
        if column not in self.sensitive_info:
            raise UnknownName(column, "sensitive column with a reference", self.sensitive_info)
        return self.sensitive_info[column]

    def distinct(self, column: str) -> IntArray:
        """Count the distinct values of a sensitive column in each class."""
        return self.distribution(column).distinct

    def units(self, column: str) -> IntArray:
        """Count the distinct units, such as persons, in each class."""
        return self.distinct(UNIT + column)

    @property
    def labels(self) -> Distribution:
        name = label_of(self.counts)
        if name is None:
            raise InternalError("Labels were requested but not counted.")
        return self.distribution(name)

    def nothing(self) -> BoolArray:
        """Return a mask that suppresses no class."""
        return np.zeros(len(self), np.bool_)
