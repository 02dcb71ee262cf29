"""Counts that stay in an engine because they do not fit in memory.

The result of a roll-up or projection is fetched as soon as it fits in memory. Until then, each method runs an
aggregate query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Counts, Field, SensitiveCounts, SizeHistogram, layout
from shoal.core.counts.in_memory import InMemoryCounts, from_joint
from shoal.core.memory import fits
from shoal.errors import DataError, InternalError
from shoal.wording import Change


class Store(ABC):
    """The packed keys of all combinations, with their counts, in an engine."""

    fields: tuple[Field, ...]  # those of quasi-identifiers, followed by those of sensitive columns
    sizes: tuple[int, ...]  # the number of codes of each field
    combinations: int
    records: int

    @abstractmethod
    def grouped(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Map codes to groups, keep some fields, and group; return keys and numbers of records.

        The fields are repacked in the order of `kept`.
        """

    @abstractmethod
    def size_counts(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Group like `grouped`; return the sizes of groups, ascending, and how many groups have each size."""

    @abstractmethod
    def distinct_counts(
        self, maps: Mapping[int, IntArray], kept: Sequence[int], beside: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Group like `grouped`, and count the distinct codes of the field `beside` in each group.

        Return the counts that occur, ascending, and the number of records and of groups for each of them.
        """

    @abstractmethod
    def sample(self, step: int, kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return about one in `step` keys of some fields, with their records, independent of row order."""


class RemoteCounts(Counts):
    """Counts whose combinations are in an engine; attributes are fetched at first use."""

    remote: ClassVar[bool] = True
    population = None

    def __init__(
        self,
        store: Store,
        sensitive_fields: Mapping[str, int],
        memory: int,
        columns: Sequence[int],
        maps: Mapping[int, IntArray] | None = None,
    ) -> None:
        """Keep some columns of a store, with codes mapped to groups."""
        self.store = store
        self.sensitive_fields = dict(sensitive_fields)  # the fields of sensitive columns, by name
        self.memory = memory
        self.columns = tuple(columns)  # numbers of columns in the store
        self.maps = dict(maps or {})  # by number of the column in the store

    def __repr__(self) -> str:
        return f"RemoteCounts({len(self.columns)} columns, {self.records} records)"

    @property
    def _distinct_fields(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.sensitive_fields.values()))

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return layout(self._widths(self.columns))

    def _widths(self, columns: Sequence[int]) -> list[int]:
        return [self.store.fields[column].mask.bit_length() for column in columns]

    @cached_property
    def keys(self) -> IntArray:  # type: ignore[override]
        """Raise an error: the keys are in the engine."""
        raise InternalError("The keys of remote counts were requested.")

    @property
    def words(self) -> int:
        return self.fields[-1].word + 1

    @cached_property
    def _size_counts(self) -> tuple[IntArray, IntArray]:
        return self.store.size_counts(self.maps, self.columns)

    def __len__(self) -> int:
        if not self.maps and len(self.columns) == len(self.store.fields):
            return self.store.combinations
        return int(self._size_counts[1].sum())

    @property
    def records(self) -> int:
        return self.store.records

    @property
    def rows_read(self) -> int:
        """The number of rows of the store, because an aggregate query reads all of them."""
        return self.store.combinations

    @property
    def numbers(self) -> int:
        return 2 * len(self._size_counts[0]) if "_size_counts" in self.__dict__ else 0

    @cached_property
    def sizes(self) -> IntArray:  # type: ignore[override]
        """The sizes of all combinations, ascending; they are not aligned with keys."""
        return np.repeat(*self._size_counts)

    def histogram(self, sensitive: str | None = None) -> SizeHistogram:
        if sensitive is not None:
            return self._histogram(self.columns, self.sensitive_fields[sensitive])
        sizes, numbers = self._size_counts
        return SizeHistogram(sizes, sizes * numbers, int(numbers.sum()))

    def histogram_of_column(self, column: int) -> SizeHistogram:
        field = self.columns[column]
        return self._histogram([other for other in self.columns if other != field], field)

    def _histogram(self, columns: Sequence[int], field: int) -> SizeHistogram:
        values, records, numbers = self.store.distinct_counts(self.maps, columns, field)
        return SizeHistogram(values, records, int(numbers.sum()))

    def records_below(self, least: int) -> int:
        sizes, numbers = self._size_counts
        small = sizes < least
        return int((sizes[small] * numbers[small]).sum())

    @cached_property
    def sensitive(self) -> Mapping[str, SensitiveCounts]:  # type: ignore[override]
        """How often each sensitive value occurs in the whole table."""
        counts_of = {}
        for field in self._distinct_fields:
            keys, counts = self.store.grouped({}, [field])
            counts_of[field] = SensitiveCounts(keys[0], counts, self._widths([field])[0])
        return {name: counts_of[field] for name, field in self.sensitive_fields.items()}

    def rename_sensitive(self, names: Mapping[str, str]) -> RemoteCounts:
        fields = {new: self.sensitive_fields[old] for new, old in names.items()}
        return RemoteCounts(self.store, fields, self.memory, self.columns, self.maps)

    def totals(self, column: int, length: int) -> IntArray:
        field = self.columns[column]
        keys, counts = self.store.grouped({c: m for c, m in self.maps.items() if c == field}, [field])
        totals = np.zeros(length, np.int64)
        totals[keys[0]] = counts
        return totals

    def roll_up(self, groups: Mapping[int, IntArray], *, in_order: bool = False) -> Counts:
        """Roll up in the engine; the result is fetched if it fits in memory."""
        maps = dict(self.maps)
        for column, codes in groups.items():
            field = self.columns[column]
            maps[field] = codes[maps[field]] if field in maps else codes
        return self._fetch_if_small(
            RemoteCounts(self.store, self.sensitive_fields, self.memory, self.columns, maps)
        )

    def project(self, columns: Sequence[int]) -> Counts:
        """Project in the engine; the result is fetched if it fits in memory."""
        kept = [self.columns[column] for column in columns]
        maps = {field: codes for field, codes in self.maps.items() if field in kept}
        return self._fetch_if_small(RemoteCounts(self.store, self.sensitive_fields, self.memory, kept, maps))

    @staticmethod
    def _fetch_if_small(counts: RemoteCounts) -> Counts:
        return counts.in_memory() if counts._fits_in_memory else counts

    @property
    def _fits_in_memory(self) -> bool:
        """Whether all combinations fit in memory; an upper bound is tried first, because counting is slow."""
        codes = [
            int(self.maps[field].max()) + 1 if field in self.maps else self.store.sizes[field]
            for field in (*self.columns, *self._distinct_fields)
        ]
        if fits(min(prod(codes), self.store.combinations), self._row_words, self.memory):
            return True
        return fits(self._rows, self._row_words, self.memory)

    def fits(self, combinations: int, memory: int) -> bool:
        """Return whether this many combinations fit, each with the average number of sensitive values."""
        return fits(int(combinations * self._rows_per_combination), self._row_words, memory)

    @property
    def _row_words(self) -> int:
        """The number of words of a key that includes sensitive values."""
        return layout(self._widths((*self.columns, *self._distinct_fields)))[-1].word + 1

    @cached_property
    def _rows_per_combination(self) -> float:
        """The average number of rows of a combination: one per sensitive value."""
        return self.store.combinations / max(1, len(self)) if self.sensitive_fields else 1.0

    @cached_property
    def _rows(self) -> int:
        """The number of rows: one per combination and sensitive value."""
        if not self.sensitive_fields:
            return len(self)
        return int(self.store.size_counts(self.maps, (*self.columns, *self._distinct_fields))[1].sum())

    def in_memory(self) -> InMemoryCounts:
        if not self._fits_in_memory:
            noun = "classes with their sensitive values" if self.sensitive_fields else "classes"
            raise DataError(
                f"{self._rows:,} {noun} do not fit in the memory that this run may use.",
                code="out-of-memory",
                advice=[
                    Change("memory_limit", action="Raise {}"),
                    Change(action="Take fewer columns"),
                    Change(action="Generalize more (min_level)"),
                ],
            )
        keys, sizes = self.store.grouped(self.maps, (*self.columns, *self._distinct_fields))
        widths = self._widths(self.columns)
        counts = from_joint(widths, self._bits(), keys, sizes)
        return counts.rename_sensitive({name: str(field) for name, field in self.sensitive_fields.items()})

    def _bits(self) -> dict[str, int]:
        """Return the number of bits of each sensitive column; the names are field numbers."""
        return {
            str(field): bits
            for field, bits in zip(self._distinct_fields, self._widths(self._distinct_fields), strict=True)
        }

    def sample(self, most: int) -> InMemoryCounts:
        step = -(-self.store.combinations // most) or 1
        keys, sizes = self.store.sample(step, (*self.columns, *self._distinct_fields))
        counts = from_joint(self._widths(self.columns), self._bits(), keys, sizes)
        return InMemoryCounts(counts.fields, counts.keys, counts.sizes, {})

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the totals of each column, because the keys are in the engine."""
        yield repr((self.store.combinations, self.store.records)).encode()
        for column, field in enumerate(self.columns):
            yield self.totals(column, self.store.sizes[field]).tobytes()
