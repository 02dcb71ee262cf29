"""Held counts: combinations that are in memory, rolled up and projected by compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts import (
    NO_FIELDS,
    NOBODY,
    WORD_BITS,
    Counts,
    Entries,
    Field,
    Variety,
    layout,
    moves,
)


@dataclass(frozen=True)
class HeldCounts(Counts):
    """Counts of which every combination is in memory."""

    held: ClassVar[bool] = True

    fields: tuple[Field, ...]  # one per quasi-identifier
    keys: IntArray  # (words, combinations)
    sizes: IntArray  # (combinations,)
    sensitive: Mapping[str, Entries]
    population: HeldCounts | None = None  # what the records were drawn from, coded alike

    def __len__(self) -> int:
        """Return the number of combinations."""
        return len(self.sizes)

    @property
    def words(self) -> int:
        """The words of a key."""
        return len(self.keys)

    @property
    def rows_read(self) -> int:
        """The combinations themselves."""
        return len(self)

    def near(self) -> HeldCounts:
        """Return these counts, which are here."""
        return self

    def fits(self, combinations: int, memory: int) -> bool:
        """Tell that what is made of these fits, as they do themselves."""
        return True

    @cached_property
    def records(self) -> int:
        """The number of records behind the counts."""
        return int(self.sizes.sum())

    @cached_property
    def numbers(self) -> int:
        """How many numbers the counts hold in memory."""
        own = self.keys.size + self.sizes.size + sum(2 * e.keys.size for e in self.sensitive.values())
        return own + (self.population.numbers if self.population else 0)

    def sample(self, most: int) -> HeldCounts:
        """Return at most so many combinations, evenly spread, without sensitive values."""
        step = -(-len(self) // most) or 1
        keys = np.ascontiguousarray(self.keys[:, ::step])
        return HeldCounts(self.fields, keys, self.sizes[::step].copy(), {})

    def bare(self) -> HeldCounts:
        """Return the combinations with their sizes and nothing else."""
        return HeldCounts(self.fields, self.keys, self.sizes, {})

    def only(self, rows: BoolArray) -> HeldCounts:
        """Return some combinations, without sensitive values."""
        return HeldCounts(self.fields, self.keys[:, rows], self.sizes[rows], {})

    def totals(self, column: int, length: int) -> IntArray:
        """Count the records of each code of a column."""
        return np.bincount(self.codes(column), self.sizes, length).astype(np.int64)

    def variety(self, sensitive: str | None = None) -> Variety:
        """Tell classes by their size, or by the distinct values of a sensitive column in each."""
        if sensitive is None:
            return Variety.of(self.sizes, self.sizes)
        return Variety.of(np.bincount(self.sensitive[sensitive].rows, minlength=len(self)), self.sizes)

    def variety_of(self, column: int) -> Variety:
        """Tell the classes that the other columns make by the distinct values of one column in each."""
        classes, distinct = self.without(column)
        return Variety.of(distinct, classes.sizes)

    def without(self, column: int) -> tuple[HeldCounts, IntArray]:
        """Drop a column; return also how many of its values are in each of the classes left."""
        kept = [own for own in range(len(self.fields)) if own != column]
        values = replace(self, sizes=np.ones_like(self.sizes))
        # Equal keys are grouped alike, so both hold the classes in the same order.
        return self.project(kept), values.project(kept).sizes

    def short(self, least: int) -> int:
        """Count the records in combinations of fewer than so many."""
        return int(self.sizes[self.sizes < least].sum())

    def naming(self, names: Mapping[str, str]) -> HeldCounts:
        """Return the same counts with new names, which may be several, of sensitive columns."""
        return replace(self, sensitive={new: self.sensitive[old] for new, old in names.items()})

    def parts(self) -> Iterator[bytes]:
        """Yield what tells these counts from others, for a fingerprint."""
        yield self.keys.tobytes()
        yield self.sizes.tobytes()

    def sizes_of(self, keys: IntArray) -> IntArray:
        """Return the records of each of these combinations (words, rows), 0 where there are none."""
        both = np.concatenate((self.keys, keys), axis=1)
        order = np.argsort(both[0]) if len(both) == 1 else np.lexsort(both)
        fresh = np.any(np.diff(both[:, order], axis=1, prepend=-1), axis=0)  # no key is below 0
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(fresh) - 1
        records = np.zeros(len(order), np.int64)
        records[place[: len(self)]] = self.sizes
        found: IntArray = records[place[len(self) :]]
        return found

    def widened(self, widths: Sequence[int]) -> HeldCounts:
        """Return the same combinations with fields of other widths, each as wide or wider."""
        from shoal.core.kernels import pack

        fields = layout(widths)
        keys = pack(self.keys, moves(self.fields, fields), fields[-1].word + 1)
        return HeldCounts(fields, keys, self.sizes, self.sensitive)

    def joint(self, column: str) -> tuple[HeldCounts, int] | None:
        """Let a sensitive column's code be one more field of the key, and tell where; None without room."""
        entries = self.sensitive[column]
        used = max(field.shift + field.mask.bit_length() for field in self.fields)
        if len(self.keys) > 1 or used + entries.bits > WORD_BITS:
            return None
        keys = self.keys[0][entries.rows] | (entries.codes << used)
        return HeldCounts(self.fields, keys.reshape(1, -1), entries.counts, {}), used

    def roll_up(self, groups: Mapping[int, IntArray]) -> HeldCounts:
        """Replace some columns' codes by their groups, in one pass, and add up what became equal."""
        from shoal.core.kernels import roll_up_word, roll_up_words

        places, start = [], 0
        for column, codes in groups.items():
            field = self.fields[column]
            places.append((field.word, field.shift, field.mask, start))
            start += len(codes)
        maps = next(iter(groups.values())) if len(groups) == 1 else np.concatenate(list(groups.values()))
        inverse = np.empty(len(self), np.int64) if self.sensitive else NOBODY
        if len(self.keys) == 1:
            word, sizes = roll_up_word(self.keys[0], self.sizes, np.array(places), maps, inverse)
            keys = word.reshape(1, -1)
        else:
            keys, sizes = roll_up_words(self.keys, self.sizes, np.array(places), maps, inverse)
        population = self.population.roll_up(groups) if self.population else None
        return HeldCounts(self.fields, keys, sizes, self._moved(inverse), population)

    def project(self, columns: Sequence[int]) -> HeldCounts:
        """Keep some columns' fields, packed afresh in this order, and add up what became equal."""
        from shoal.core.kernels import add_up_cells, pack, roll_up_word, roll_up_words

        held = [self.fields[column] for column in columns]
        fields = layout([field.mask.bit_length() for field in held])
        words = fields[-1].word + 1
        packed = pack(self.keys, moves(held, fields), words)
        cells = 1 << (fields[-1].shift + fields[-1].mask.bit_length())
        inverse = np.empty(len(self), np.int64) if self.sensitive else NOBODY
        population = self.population.project(columns) if self.population else None
        if words > 1:
            keys, sizes = roll_up_words(packed, self.sizes, NO_FIELDS, NOBODY, inverse)
            return HeldCounts(fields, keys, sizes, self._moved(inverse), population)
        if cells <= len(self) and not self.sensitive:  # a cell for each possible key is then the fastest
            word, sizes = add_up_cells(packed[0], self.sizes, cells)
        else:
            word, sizes = roll_up_word(packed[0], self.sizes, NO_FIELDS, NOBODY, inverse)
        return HeldCounts(fields, word.reshape(1, -1), sizes, self._moved(inverse), population)

    def _moved(self, inverse: IntArray) -> dict[str, Entries]:
        """Let the sensitive values follow their combinations to new rows."""
        return {name: entries.moved(inverse) for name, entries in self.sensitive.items()}


def of_sizes(sizes: IntArray, sensitive: Mapping[str, Entries] | None = None) -> HeldCounts:
    """Build counts of which the combinations are not known, but their sizes and sensitive values."""
    return HeldCounts((), np.empty((0, len(sizes)), np.int64), sizes, sensitive or {})


def from_joint(
    widths: Sequence[int],  # bits of each quasi-identifier
    sensitive: Mapping[str, int],  # bits of each sensitive column
    keys: IntArray,  # (words, rows): the quasi-identifiers' fields, then the sensitive ones'
    sizes: IntArray,  # (rows,)
) -> HeldCounts:
    """Build counts from what an engine grouped by quasi-identifiers and sensitive columns together."""
    fields = layout([*widths, *sensitive.values()])
    quasi, rest = fields[: len(widths)], fields[len(widths) :]
    order = np.lexsort(keys)  # a canonical order, whatever the order of the rows
    keys, sizes = np.ascontiguousarray(keys[:, order]), sizes[order]
    if not sensitive or not len(sizes):
        empty = {name: Entries(sizes, sizes, bits) for name, bits in sensitive.items()}
        return HeldCounts(quasi, keys, sizes, empty)
    combination = keys[: quasi[-1].word + 1].copy()
    for field in rest:
        if field.word < len(combination):
            combination[field.word] &= ~(field.mask << field.shift)
    order = np.lexsort(combination)
    combination, sizes = combination[:, order], sizes[order]
    fresh = np.ones(len(sizes), np.bool_)
    fresh[1:] = (combination[:, 1:] != combination[:, :-1]).any(axis=0)
    starts, row = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    tables = {}
    for (name, bits), field in zip(sensitive.items(), rest, strict=True):
        codes = (keys[field.word][order] >> field.shift) & field.mask
        tables[name] = _entries((row << bits) | codes, sizes, bits)
    unique = np.ascontiguousarray(combination[:, starts])
    return HeldCounts(quasi, unique, np.add.reduceat(sizes, starts), tables)


def _entries(keys: IntArray, sizes: IntArray, bits: int) -> Entries:
    """Add up the sizes of equal keys."""
    order = np.argsort(keys, kind="stable")
    keys, sizes = keys[order], sizes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return Entries(keys[starts], np.add.reduceat(sizes, starts), bits)


def gathered(counts: Counts, of: IntArray) -> HeldCounts:
    """Add combinations up into classes numbered from 0; those numbered -1 are left out."""
    inside = of >= 0
    sizes = np.bincount(of[inside], counts.sizes[inside]).astype(np.int64)
    sensitive = {name: _followed(entries, of) for name, entries in counts.sensitive.items()}
    return of_sizes(sizes, sensitive)


def selected(counts: Counts, rows: IntArray) -> HeldCounts:
    """Keep some combinations, in this order."""
    place = np.full(len(counts), -1)
    place[rows] = np.arange(len(rows))
    sensitive = {name: _followed(entries, place) for name, entries in counts.sensitive.items()}
    return HeldCounts(
        counts.fields, np.ascontiguousarray(counts.keys[:, rows]), counts.sizes[rows], sensitive
    )


def _followed(entries: Entries, of: IntArray) -> Entries:
    """Let sensitive values follow their combinations; those of combinations numbered -1 are left out."""
    from shoal.core.kernels import roll_up_word

    rows = of[entries.rows]
    inside = rows >= 0
    keys = (rows[inside] << entries.bits) | entries.codes[inside]
    keys, counts = roll_up_word(keys, entries.counts[inside], NO_FIELDS, NOBODY, NOBODY)
    return Entries(keys, counts, entries.bits)
