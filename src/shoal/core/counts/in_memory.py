"""Counts in memory, rolled up and projected by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts.counts import (
    NO_FIELDS,
    NO_INVERSE,
    WORD_BITS,
    Counts,
    Field,
    SensitiveCounts,
    SizeHistogram,
    layout,
    moves,
)

LARGE = 1_000_000  # number of combinations above which tables are grouped in partitions


@dataclass(frozen=True)
class InMemoryCounts(Counts):
    """Counts whose combinations are all in memory."""

    remote: ClassVar[bool] = False

    fields: tuple[Field, ...]  # one per quasi-identifier
    keys: IntArray  # (words, combinations)
    sizes: IntArray  # (combinations,)
    sensitive: Mapping[str, SensitiveCounts]
    population: InMemoryCounts | None = None  # the counts of the population, with the same codes

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def words(self) -> int:
        return len(self.keys)

    @property
    def rows_read(self) -> int:
        return len(self)

    def in_memory(self) -> InMemoryCounts:
        return self

    def fits(self, combinations: int, memory: int) -> bool:
        """Return True: a roll-up is never larger than these counts."""
        return True

    @cached_property
    def records(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def numbers(self) -> int:
        total = self.keys.size + self.sizes.size + sum(2 * e.keys.size for e in self.sensitive.values())
        return total + (self.population.numbers if self.population else 0)

    def sample(self, most: int) -> InMemoryCounts:
        step = -(-len(self) // most) or 1
        keys = np.ascontiguousarray(self.keys[:, ::step])
        return InMemoryCounts(self.fields, keys, self.sizes[::step].copy(), {})

    def bare(self) -> InMemoryCounts:
        """Return these counts without sensitive values and population."""
        return InMemoryCounts(self.fields, self.keys, self.sizes, {})

    def only(self, rows: BoolArray) -> InMemoryCounts:
        """Return some combinations, without sensitive values."""
        return InMemoryCounts(self.fields, self.keys[:, rows], self.sizes[rows], {})

    def totals(self, column: int, length: int) -> IntArray:
        return np.bincount(self.codes(column), self.sizes, length).astype(np.int64)

    def histogram(self, sensitive: str | None = None) -> SizeHistogram:
        if sensitive is None:
            return SizeHistogram.of(self.sizes, self.sizes)
        return SizeHistogram.of(np.bincount(self.sensitive[sensitive].rows, minlength=len(self)), self.sizes)

    def histogram_of_column(self, column: int) -> SizeHistogram:
        classes, distinct = self.without(column)
        return SizeHistogram.of(distinct, classes.sizes)

    def without(self, column: int) -> tuple[InMemoryCounts, IntArray]:
        """Drop a column; also return how many distinct values it has in each class of the others."""
        kept = [other for other in range(len(self.fields)) if other != column]
        values = replace(self, sizes=np.ones_like(self.sizes))
        # Both projections group the same keys, so the classes have the same order.
        return self.project(kept), values.project(kept).sizes

    def values_of(self, column: int) -> tuple[InMemoryCounts, SensitiveCounts]:
        """Drop a column; also return how often each of its values occurs in each class of the others."""
        bits = self.fields[column].mask.bit_length()
        entries = SensitiveCounts((np.arange(len(self)) << bits) | self.codes(column), self.sizes, bits)
        kept = [other for other in range(len(self.fields)) if other != column]
        classes = replace(self, sensitive={"": entries}).project(kept)
        return classes.bare(), classes.sensitive[""]

    def records_below(self, least: int) -> int:
        return int(self.sizes[self.sizes < least].sum())

    def rename_sensitive(self, names: Mapping[str, str]) -> InMemoryCounts:
        return replace(self, sensitive={new: self.sensitive[old] for new, old in names.items()})

    def fingerprint_parts(self) -> Iterator[bytes]:
        yield self.keys.tobytes()
        yield self.sizes.tobytes()

    def sizes_of(self, keys: IntArray) -> IntArray:
        """Return the number of records of each given combination (words, rows), or 0."""
        all_keys = np.concatenate((self.keys, keys), axis=1)
        order = np.argsort(all_keys[0]) if len(all_keys) == 1 else np.lexsort(all_keys)
        is_first = np.any(np.diff(all_keys[:, order], axis=1, prepend=-1), axis=0)  # no key is below 0
        key_number = np.empty(len(order), np.int64)
        key_number[order] = np.cumsum(is_first) - 1
        records = np.zeros(len(order), np.int64)
        records[key_number[: len(self)]] = self.sizes
        sizes: IntArray = records[key_number[len(self) :]]
        return sizes

    def widened(self, widths: Sequence[int]) -> InMemoryCounts:
        """Return the same combinations with wider fields."""
        from shoal.core.counts.kernels import pack

        fields = layout(widths)
        keys = pack(self.keys, moves(self.fields, fields), fields[-1].word + 1)
        return InMemoryCounts(fields, keys, self.sizes, self.sensitive)

    def joint(self, column: str) -> tuple[InMemoryCounts, int] | None:
        """Add the code of a sensitive column to the key; also return its shift. None if it does not fit."""
        entries = self.sensitive[column]
        used = max(field.shift + field.mask.bit_length() for field in self.fields)
        if len(self.keys) > 1 or used + entries.bits > WORD_BITS:
            return None
        keys = self.keys[0][entries.rows] | (entries.codes << used)
        return InMemoryCounts(self.fields, keys.reshape(1, -1), entries.counts, {}), used

    def roll_up(self, groups: Mapping[int, IntArray], *, in_order: bool = False) -> InMemoryCounts:
        from shoal.core.counts.kernels import roll_up_words

        field_rows, map_start = [], 0
        for column, codes in groups.items():
            field = self.fields[column]
            field_rows.append((field.word, field.shift, field.mask, map_start))
            map_start += len(codes)
        maps = next(iter(groups.values())) if len(groups) == 1 else np.concatenate(list(groups.values()))
        inverse = np.empty(len(self), np.int64) if self.sensitive else NO_INVERSE
        if len(self.keys) == 1 and not in_order:
            word, sizes = self._grouped(self.keys[0], np.array(field_rows), maps, inverse)
            keys = word.reshape(1, -1)
        else:
            keys, sizes = roll_up_words(self.keys, self.sizes, np.array(field_rows), maps, inverse)
        population = self.population.roll_up(groups) if self.population else None
        return InMemoryCounts(self.fields, keys, sizes, self._moved(inverse), population)

    def project(self, columns: Sequence[int]) -> InMemoryCounts:
        from shoal.core.counts.kernels import add_up_cells, pack, roll_up_words

        selected = [self.fields[column] for column in columns]
        fields = layout([field.mask.bit_length() for field in selected])
        words = fields[-1].word + 1
        packed = pack(self.keys, moves(selected, fields), words)
        cells = 1 << (fields[-1].shift + fields[-1].mask.bit_length())
        inverse = np.empty(len(self), np.int64) if self.sensitive else NO_INVERSE
        population = self.population.project(columns) if self.population else None
        if words > 1:
            keys, sizes = roll_up_words(packed, self.sizes, NO_FIELDS, NO_INVERSE, inverse)
            return InMemoryCounts(fields, keys, sizes, self._moved(inverse), population)
        if cells <= 2 * len(self) and not self.sensitive:  # an array with an element per key is faster
            word, sizes = add_up_cells(packed[0], self.sizes, cells)
        else:
            word, sizes = self._grouped(packed[0], NO_FIELDS, NO_INVERSE, inverse)
        return InMemoryCounts(fields, word.reshape(1, -1), sizes, self._moved(inverse), population)

    def _grouped(
        self, keys: IntArray, fields: IntArray, maps: IntArray, inverse: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Map fields of keys of one word to groups, and sum the sizes of equal keys."""
        from shoal.core.counts.kernels import roll_up_word

        if len(keys) >= LARGE and not self.sensitive:
            from shoal.core.counts.partitions import rolled_up

            return rolled_up(keys, self.sizes, fields, maps)
        word, sizes = roll_up_word(keys, self.sizes, fields, maps, inverse)
        return word, sizes

    def _moved(self, inverse: IntArray) -> dict[str, SensitiveCounts]:
        return {name: entries.moved(inverse) for name, entries in self.sensitive.items()}


def of_sizes(sizes: IntArray, sensitive: Mapping[str, SensitiveCounts] | None = None) -> InMemoryCounts:
    """Create counts without keys, from sizes and sensitive values only."""
    return InMemoryCounts((), np.empty((0, len(sizes)), np.int64), sizes, sensitive or {})


def from_joint(
    widths: Sequence[int],  # bits of each quasi-identifier
    sensitive: Mapping[str, int],  # bits of each sensitive column
    keys: IntArray,  # (words, rows): the fields of the quasi-identifiers, then of the sensitive columns
    sizes: IntArray,  # (rows,)
) -> InMemoryCounts:
    """Create counts from keys that an engine has grouped by quasi-identifiers and sensitive columns."""
    fields = layout([*widths, *sensitive.values()])
    quasi, sensitive_fields = fields[: len(widths)], fields[len(widths) :]
    # The result must not depend on the order of the rows.
    order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys)
    keys, sizes = np.ascontiguousarray(keys[:, order]), sizes[order]
    if not sensitive or not len(sizes):
        empty = {name: SensitiveCounts(sizes, sizes, bits) for name, bits in sensitive.items()}
        return InMemoryCounts(quasi, keys, sizes, empty)
    combination = keys[: quasi[-1].word + 1].copy()
    for field in sensitive_fields:
        if field.word < len(combination):
            combination[field.word] &= ~(field.mask << field.shift)
    order = np.lexsort(combination)
    combination, sizes = combination[:, order], sizes[order]
    is_first = np.ones(len(sizes), np.bool_)
    is_first[1:] = (combination[:, 1:] != combination[:, :-1]).any(axis=0)
    starts, row = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    tables = {}
    for (name, bits), field in zip(sensitive.items(), sensitive_fields, strict=True):
        codes = (keys[field.word][order] >> field.shift) & field.mask
        tables[name] = _entries((row << bits) | codes, sizes, bits)
    unique = np.ascontiguousarray(combination[:, starts])
    return InMemoryCounts(quasi, unique, np.add.reduceat(sizes, starts), tables)


def _entries(keys: IntArray, sizes: IntArray, bits: int) -> SensitiveCounts:
    """Sum the sizes of equal keys."""
    order = np.argsort(keys, kind="stable")
    keys, sizes = keys[order], sizes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return SensitiveCounts(keys[starts], np.add.reduceat(sizes, starts), bits)


def gathered(counts: Counts, class_of: IntArray) -> InMemoryCounts:
    """Merge combinations into classes numbered from 0; combinations numbered -1 are left out."""
    inside = class_of >= 0
    sizes = np.bincount(class_of[inside], counts.sizes[inside]).astype(np.int64)
    sensitive = {name: _followed(entries, class_of) for name, entries in counts.sensitive.items()}
    return of_sizes(sizes, sensitive)


def selected(counts: Counts, rows: IntArray) -> InMemoryCounts:
    """Return some combinations, in this order."""
    new_row = np.full(len(counts), -1)
    new_row[rows] = np.arange(len(rows))
    sensitive = {name: _followed(entries, new_row) for name, entries in counts.sensitive.items()}
    return InMemoryCounts(
        counts.fields, np.ascontiguousarray(counts.keys[:, rows]), counts.sizes[rows], sensitive
    )


def _followed(entries: SensitiveCounts, new_row: IntArray) -> SensitiveCounts:
    """Move sensitive values with their combinations; combinations numbered -1 are left out."""
    from shoal.core.counts.kernels import roll_up_word

    rows = new_row[entries.rows]
    inside = rows >= 0
    keys = (rows[inside] << entries.bits) | entries.codes[inside]
    keys, counts = roll_up_word(keys, entries.counts[inside], NO_FIELDS, NO_INVERSE, NO_INVERSE)
    return SensitiveCounts(keys, counts, entries.bits)
