"""Counts: the distinct combinations of quasi-identifier values, packed into integers, with their counts.

A combination is one or more 63-bit words; every column has a bit field in one of them. Rolling a column
up rewrites its field and adds up what became equal, so counts come from counts and never from rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, IntArray

WORD_BITS = 63  # the sign bit stays free
_NOBODY = np.empty(0, np.int64)
_NO_FIELDS = np.empty((0, 4), np.int64)


@dataclass(frozen=True)
class Domain:
    """The distinct values of one column, in a canonical order; a value's code is its position."""

    name: str
    values: Sequence[object]  # as the engine holds them; a null is None
    texts: tuple[str | None, ...]  # as hierarchies read them; those of a population alone come last

    def __len__(self) -> int:
        """Return the number of distinct values."""
        return len(self.texts)

    @property
    def own(self) -> tuple[str | None, ...]:
        """The texts of the values that the table itself has."""
        return self.texts[: len(self.values)]

    @cached_property
    def bits(self) -> int:
        """The width of a field that holds every code."""
        return max(1, (len(self.texts) - 1).bit_length())


@dataclass(frozen=True)
class Field:
    """Where one column's code lies in the packed key."""

    word: int
    shift: int
    mask: int


def layout(widths: Sequence[int]) -> tuple[Field, ...]:
    """Pack fields of these widths, in order, each whole within one word.

    >>> [(f.word, f.shift) for f in layout([40, 20, 10])]
    [(0, 0), (0, 40), (1, 0)]
    """
    fields, word, used = [], 0, 0
    for bits in widths:
        if used + bits > WORD_BITS:
            word, used = word + 1, 0
        fields.append(Field(word, used, (1 << bits) - 1))
        used += bits
    return tuple(fields)


def _moves(old: Sequence[Field], new: Sequence[Field]) -> IntArray:
    """Tell how fields move: word, shift, mask, new word, new shift; those that move alike go together."""
    moves: list[list[int]] = []
    for a, b in zip(old, new, strict=True):
        last = moves[-1] if moves else [-1] * 5
        by = a.shift - last[1]
        if (a.word, b.word, b.shift) == (last[0], last[3], last[4] + by) and by > 0:
            last[2] |= a.mask << by
        else:
            moves.append([a.word, a.shift, a.mask, b.word, b.shift])
    return np.array(moves)


@dataclass(frozen=True)
class Entries:
    """How often each sensitive value occurs in each combination."""

    keys: IntArray  # (entries,): row of the combination << bits | code
    counts: IntArray  # (entries,)
    bits: int

    @property
    def rows(self) -> IntArray:
        """The combination of each entry."""
        return self.keys >> self.bits

    @property
    def codes(self) -> IntArray:
        """The sensitive code of each entry."""
        return self.keys & ((1 << self.bits) - 1)

    def moved(self, inverse: IntArray) -> Entries:
        """Follow the combinations to their new rows and add up what became equal."""
        from shoal.core.kernels import roll_up_word

        row = np.array([(0, self.bits, (1 << (WORD_BITS - self.bits)) - 1, 0)])
        keys, counts = roll_up_word(self.keys, self.counts, row, inverse, _NOBODY)
        return Entries(keys, counts, self.bits)


@dataclass(frozen=True)
class Counts:
    """Distinct combinations with their counts, and the sensitive values that occur in each."""

    fields: tuple[Field, ...]  # one per quasi-identifier
    keys: IntArray  # (words, combinations)
    sizes: IntArray  # (combinations,)
    sensitive: Mapping[str, Entries]
    population: Counts | None = None  # what the records were drawn from, coded alike

    held: ClassVar[bool] = True  # in memory; far counts are in an engine

    def __len__(self) -> int:
        """Return the number of combinations."""
        return len(self.sizes)

    @property
    def words(self) -> int:
        """The words of a key."""
        return len(self.keys)

    def near(self) -> Counts:
        """Return these counts in memory, where they are."""
        return self

    @cached_property
    def records(self) -> int:
        """The number of records behind the counts."""
        return int(self.sizes.sum())

    @cached_property
    def numbers(self) -> int:
        """How many numbers the counts hold in memory."""
        own = self.keys.size + self.sizes.size + sum(2 * e.keys.size for e in self.sensitive.values())
        return own + (self.population.numbers if self.population else 0)

    def sample(self, most: int) -> Counts:
        """Return at most so many combinations, evenly spread, without sensitive values."""
        step = -(-len(self) // most) or 1
        return Counts(self.fields, np.ascontiguousarray(self.keys[:, ::step]), self.sizes[::step].copy(), {})

    def only(self, rows: BoolArray) -> Counts:
        """Return some combinations, without sensitive values."""
        return Counts(self.fields, self.keys[:, rows], self.sizes[rows], {})

    def codes(self, column: int) -> IntArray:
        """Return one column's code in every combination."""
        field = self.fields[column]
        codes: IntArray = (self.keys[field.word] >> field.shift) & field.mask
        return codes

    def totals(self, column: int, length: int) -> IntArray:
        """Count the records of each code of a column."""
        return np.bincount(self.codes(column), self.sizes, length).astype(np.int64)

    def naming(self, names: Mapping[str, str]) -> Counts:
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

    def widened(self, widths: Sequence[int]) -> Counts:
        """Return the same combinations with fields of other widths, each as wide or wider."""
        from shoal.core.kernels import pack

        fields = layout(widths)
        moves = _moves(self.fields, fields)
        return Counts(fields, pack(self.keys, moves, fields[-1].word + 1), self.sizes, self.sensitive)

    def joint(self, column: str) -> tuple[Counts, int] | None:
        """Let a sensitive column's code be one more field of the key, and tell where; None without room."""
        entries = self.sensitive[column]
        used = max(field.shift + field.mask.bit_length() for field in self.fields)
        if len(self.keys) > 1 or used + entries.bits > WORD_BITS:
            return None
        keys = self.keys[0][entries.rows] | (entries.codes << used)
        return Counts(self.fields, keys.reshape(1, -1), entries.counts, {}), used

    def roll_up(self, groups: Mapping[int, IntArray]) -> Counts:
        """Replace some columns' codes by their groups, in one pass, and add up what became equal."""
        from shoal.core.kernels import roll_up_word, roll_up_words

        places, start = [], 0
        for column, codes in groups.items():
            field = self.fields[column]
            places.append((field.word, field.shift, field.mask, start))
            start += len(codes)
        maps = next(iter(groups.values())) if len(groups) == 1 else np.concatenate(list(groups.values()))
        inverse = np.empty(len(self), np.int64) if self.sensitive else _NOBODY
        if len(self.keys) == 1:
            word, sizes = roll_up_word(self.keys[0], self.sizes, np.array(places), maps, inverse)
            keys = word.reshape(1, -1)
        else:
            keys, sizes = roll_up_words(self.keys, self.sizes, np.array(places), maps, inverse)
        population = self.population.roll_up(groups) if self.population else None
        return Counts(self.fields, keys, sizes, self._moved(inverse), population)

    def project(self, columns: Sequence[int]) -> Counts:
        """Keep some columns' fields, packed afresh in this order, and add up what became equal."""
        from shoal.core.kernels import add_up_cells, pack, roll_up_word, roll_up_words

        held = [self.fields[column] for column in columns]
        fields = layout([field.mask.bit_length() for field in held])
        words = fields[-1].word + 1
        packed = pack(self.keys, _moves(held, fields), words)
        cells = 1 << (fields[-1].shift + fields[-1].mask.bit_length())
        inverse = np.empty(len(self), np.int64) if self.sensitive else _NOBODY
        population = self.population.project(columns) if self.population else None
        if words > 1:
            keys, sizes = roll_up_words(packed, self.sizes, _NO_FIELDS, _NOBODY, inverse)
            return Counts(fields, keys, sizes, self._moved(inverse), population)
        if cells <= len(self) and not self.sensitive:  # a cell for each possible key is then the fastest
            word, sizes = add_up_cells(packed[0], self.sizes, cells)
        else:
            word, sizes = roll_up_word(packed[0], self.sizes, _NO_FIELDS, _NOBODY, inverse)
        return Counts(fields, word.reshape(1, -1), sizes, self._moved(inverse), population)

    def _moved(self, inverse: IntArray) -> dict[str, Entries]:
        """Let the sensitive values follow their combinations to new rows."""
        return {name: entries.moved(inverse) for name, entries in self.sensitive.items()}


def of_sizes(sizes: IntArray) -> Counts:
    """Build counts of which nothing but the sizes is known."""
    return Counts((), np.empty((0, len(sizes)), np.int64), sizes, {})


def missing_records(counts: Counts, domain: Domain) -> int:
    """Count the records without a value, given the counts of one column."""
    null = np.array([text is None for text in domain.texts])
    return int(counts.sizes[null[counts.codes(0)]].sum())


def from_joint(
    widths: Sequence[int],  # bits of each quasi-identifier
    sensitive: Mapping[str, int],  # bits of each sensitive column
    keys: IntArray,  # (words, rows): the quasi-identifiers' fields, then the sensitive ones'
    sizes: IntArray,  # (rows,)
) -> Counts:
    """Build counts from what an engine grouped by quasi-identifiers and sensitive columns together."""
    fields = layout([*widths, *sensitive.values()])
    quasi, rest = fields[: len(widths)], fields[len(widths) :]
    order = np.lexsort(keys)  # a canonical order, whatever the order of the rows
    keys, sizes = np.ascontiguousarray(keys[:, order]), sizes[order]
    if not sensitive or not len(sizes):
        empty = {name: Entries(sizes, sizes, bits) for name, bits in sensitive.items()}
        return Counts(quasi, keys, sizes, empty)
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
    return Counts(quasi, unique, np.add.reduceat(sizes, starts), tables)


def _entries(keys: IntArray, sizes: IntArray, bits: int) -> Entries:
    """Add up the sizes of equal keys."""
    order = np.argsort(keys, kind="stable")
    keys, sizes = keys[order], sizes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return Entries(keys[starts], np.add.reduceat(sizes, starts), bits)


def packed(codes: Sequence[IntArray | BoolArray]) -> IntArray:
    """Pack several codes of each row, which are 0 or more, into words (words, rows).

    >>> packed([np.array([1, 2]), np.array([True, False])]).tolist()
    [[5, 2]]
    """
    fields = layout([max(1, int(own.max()).bit_length()) for own in codes])
    words = np.zeros((fields[-1].word + 1, len(codes[0])), np.int64)
    for field, own in zip(fields, codes, strict=True):
        words[field.word] |= own.astype(np.int64) << field.shift
    return words


def numbered(words: IntArray) -> IntArray:
    """Give keys (words, rows) numbers from 0 in the order of first appearance, equal ones the same."""
    from shoal.core.kernels import roll_up_word, roll_up_words

    ones, inverse = np.ones(words.shape[1], np.int64), np.empty(words.shape[1], np.int64)
    if len(words) == 1:
        roll_up_word(words[0], ones, _NO_FIELDS, _NOBODY, inverse)
    else:
        roll_up_words(words, ones, _NO_FIELDS, _NOBODY, inverse)
    return inverse


def gathered(counts: Counts, of: IntArray) -> Counts:
    """Add combinations up into classes numbered from 0; those numbered -1 are left out."""
    inside = of >= 0
    sizes = np.bincount(of[inside], counts.sizes[inside]).astype(np.int64)
    sensitive = {name: _followed(entries, of) for name, entries in counts.sensitive.items()}
    return Counts((), np.empty((0, len(sizes)), np.int64), sizes, sensitive)


def selected(counts: Counts, rows: IntArray) -> Counts:
    """Keep some combinations, in this order."""
    place = np.full(len(counts), -1)
    place[rows] = np.arange(len(rows))
    sensitive = {name: _followed(entries, place) for name, entries in counts.sensitive.items()}
    return Counts(counts.fields, np.ascontiguousarray(counts.keys[:, rows]), counts.sizes[rows], sensitive)


def _followed(entries: Entries, of: IntArray) -> Entries:
    """Let sensitive values follow their combinations; those of combinations numbered -1 are left out."""
    from shoal.core.kernels import roll_up_word

    rows = of[entries.rows]
    inside = rows >= 0
    keys = (rows[inside] << entries.bits) | entries.codes[inside]
    keys, counts = roll_up_word(keys, entries.counts[inside], _NO_FIELDS, _NOBODY, _NOBODY)
    return Entries(keys, counts, entries.bits)
