"""Far counts: combinations that stay in an engine, because they do not fit in memory.

They answer as counts do. What is rolled up or projected from them comes here as soon as it fits; what does
not is asked for again, one aggregate query at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import ClassVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts, Entries, Field, Variety, layout
from shoal.core.held import HeldCounts, from_joint
from shoal.core.memory import fits
from shoal.errors import DataError, InternalError


class Store(ABC):
    """Packed keys of all combinations, with their counts, in an engine."""

    fields: tuple[Field, ...]  # the quasi-identifiers', then the sensitive columns'
    sizes: tuple[int, ...]  # how many codes each of these has
    combinations: int
    records: int

    @abstractmethod
    def grouped(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Keep some fields, packed afresh in this order, some codes mapped; return keys and their records."""

    @abstractmethod
    def spread(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Group in the same way; return the sizes that groups have, ascending, and how many have each."""

    @abstractmethod
    def variety(
        self, maps: Mapping[int, IntArray], kept: Sequence[int], beside: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Group in the same way; return how many codes of one more field groups have, ascending.

        With each number come the records and the groups that have it.
        """

    @abstractmethod
    def sample(self, step: int, kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return about one in so many keys of some fields, whatever the order of rows, and their records."""


class FarCounts(Counts):
    """Counts of which the combinations are in an engine; their sizes come alone, in no order of theirs.

    What other counts hold is here found when it is asked for, once.
    """

    held: ClassVar[bool] = False
    population = None

    def __init__(
        self,
        store: Store,
        places: Mapping[str, int],
        memory: int,
        columns: Sequence[int],
        maps: Mapping[int, IntArray] | None = None,
    ) -> None:
        """Keep some columns of a store; their codes may be mapped to groups."""
        self.store = store
        self.places = dict(places)  # the fields of sensitive columns, by name
        self.memory = memory
        self.columns = tuple(columns)  # of the store
        self.maps = dict(maps or {})  # by column of the store

    def __repr__(self) -> str:
        return f"FarCounts({len(self.columns)} columns, {self.records} records)"

    @property
    def _beside(self) -> tuple[int, ...]:
        """The fields of the sensitive columns, each once."""
        return tuple(dict.fromkeys(self.places.values()))

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        """Where each column's code lies in the packed key."""
        return layout(self._widths(self.columns))

    def _widths(self, columns: Sequence[int]) -> list[int]:
        return [self.store.fields[column].mask.bit_length() for column in columns]

    @cached_property
    def keys(self) -> IntArray:  # type: ignore[override]
        """Refuse: the keys are not here."""
        message = "The keys of far counts were asked for."
        raise InternalError(message)

    @property
    def words(self) -> int:
        """The words of a key."""
        return self.fields[-1].word + 1

    @cached_property
    def _spread(self) -> tuple[IntArray, IntArray]:
        return self.store.spread(self.maps, self.columns)

    def __len__(self) -> int:
        if not self.maps and len(self.columns) == len(self.store.fields):
            return self.store.combinations
        return int(self._spread[1].sum())

    @property
    def records(self) -> int:
        """The number of records behind the counts."""
        return self.store.records

    @property
    def rows_read(self) -> int:
        """All rows of the store: an aggregate query reads them."""
        return self.store.combinations

    @property
    def numbers(self) -> int:
        """How many numbers are held in memory."""
        return 2 * len(self._spread[0]) if "_spread" in self.__dict__ else 0

    @cached_property
    def sizes(self) -> IntArray:  # type: ignore[override]
        """The sizes of all combinations, ascending: of which is which they tell nothing."""
        return np.repeat(*self._spread)

    def variety(self, sensitive: str | None = None) -> Variety:
        """Tell classes by their size, or by the distinct values of a sensitive column in each."""
        if sensitive is not None:
            return self._variety(self.columns, self.places[sensitive])
        sizes, numbers = self._spread
        return Variety(sizes, sizes * numbers, int(numbers.sum()))

    def variety_of(self, column: int) -> Variety:
        """Tell the classes that the other columns make by the distinct values of one column in each."""
        place = self.columns[column]
        return self._variety([own for own in self.columns if own != place], place)

    def _variety(self, columns: Sequence[int], place: int) -> Variety:
        values, records, numbers = self.store.variety(self.maps, columns, place)
        return Variety(values, records, int(numbers.sum()))

    def short(self, least: int) -> int:
        """Count the records in combinations of fewer than so many."""
        sizes, numbers = self._spread
        small = sizes < least
        return int((sizes[small] * numbers[small]).sum())

    @cached_property
    def sensitive(self) -> Mapping[str, Entries]:  # type: ignore[override]
        """How often each sensitive value occurs in the whole table."""
        found = {}
        for place in self._beside:
            keys, counts = self.store.grouped({}, [place])
            found[place] = Entries(keys[0], counts, self._widths([place])[0])
        return {name: found[place] for name, place in self.places.items()}

    def naming(self, names: Mapping[str, str]) -> FarCounts:
        """Return the same counts with new names, which may be several, of sensitive columns."""
        places = {new: self.places[old] for new, old in names.items()}
        return FarCounts(self.store, places, self.memory, self.columns, self.maps)

    def totals(self, column: int, length: int) -> IntArray:
        """Count the records of each code of a column."""
        place = self.columns[column]
        keys, counts = self.store.grouped({c: m for c, m in self.maps.items() if c == place}, [place])
        found = np.zeros(length, np.int64)
        found[keys[0]] = counts
        return found

    def roll_up(self, groups: Mapping[int, IntArray]) -> Counts:
        """Replace some columns' codes by their groups; what fits in memory comes here."""
        maps = dict(self.maps)
        for column, codes in groups.items():
            place = self.columns[column]
            maps[place] = codes[maps[place]] if place in maps else codes
        return self._near(FarCounts(self.store, self.places, self.memory, self.columns, maps))

    def project(self, columns: Sequence[int]) -> Counts:
        """Keep some columns; what fits in memory comes here."""
        kept = [self.columns[column] for column in columns]
        maps = {place: codes for place, codes in self.maps.items() if place in kept}
        return self._near(FarCounts(self.store, self.places, self.memory, kept, maps))

    @staticmethod
    def _near(found: FarCounts) -> Counts:
        return found.near() if found._may_come else found

    @property
    def _may_come(self) -> bool:
        """Whether all of it fits in memory: for certain, or because it was counted."""
        codes = [
            int(self.maps[place].max()) + 1 if place in self.maps else self.store.sizes[place]
            for place in (*self.columns, *self._beside)
        ]
        if fits(min(prod(codes), self.store.combinations), self._row_words, self.memory):
            return True
        return fits(self._rows, self._row_words, self.memory)

    def fits(self, combinations: int, memory: int) -> bool:
        """Tell whether so many combinations fit, each as often as one has sensitive values on average."""
        return fits(int(combinations * self._variants), self._row_words, memory)

    @property
    def _row_words(self) -> int:
        """The words of a key with its sensitive values."""
        return layout(self._widths((*self.columns, *self._beside)))[-1].word + 1

    @cached_property
    def _variants(self) -> float:
        """How many rows a combination has on average: one for each of its sensitive values."""
        return self.store.combinations / max(1, len(self)) if self.places else 1.0

    @cached_property
    def _rows(self) -> int:
        """The combinations, each as often as it has sensitive values."""
        if not self.places:
            return len(self)
        return int(self.store.spread(self.maps, (*self.columns, *self._beside))[1].sum())

    def near(self) -> HeldCounts:
        """Bring all of it here, or refuse."""
        if not self._may_come:
            what = "classes with their sensitive values" if self.places else "classes"
            message = (
                f"{self._rows:,} {what} do not fit in the memory that this may use. "
                "Raise memory_limit, take fewer columns, or generalize more (min_level)."
            )
            raise DataError(message)
        keys, sizes = self.store.grouped(self.maps, (*self.columns, *self._beside))
        widths = self._widths(self.columns)
        found = from_joint(widths, self._bits(), keys, sizes)
        return found.naming({name: str(place) for name, place in self.places.items()})

    def _bits(self) -> dict[str, int]:
        """Return the bits of each sensitive column, by its place."""
        return {
            str(place): bits for place, bits in zip(self._beside, self._widths(self._beside), strict=True)
        }

    def sample(self, most: int) -> HeldCounts:
        """Return about so many combinations, without sensitive values."""
        step = -(-self.store.combinations // most) or 1
        keys, sizes = self.store.sample(step, (*self.columns, *self._beside))
        found = from_joint(self._widths(self.columns), self._bits(), keys, sizes)
        return HeldCounts(found.fields, found.keys, found.sizes, {})

    def parts(self) -> Iterator[bytes]:
        """Yield what tells these counts from others: of far ones, the counts of each column."""
        yield repr((self.store.combinations, self.store.records)).encode()
        for column, place in enumerate(self.columns):
            yield self.totals(column, self.store.sizes[place]).tobytes()
