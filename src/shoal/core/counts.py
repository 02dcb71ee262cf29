"""Counts: the distinct combinations of quasi-identifier values, packed into integers, with their counts.

A combination is one or more 63-bit words; every column has a bit field in one of them. Rolling a column
up rewrites its field and adds up what became equal, so counts come from counts and never from rows. Here
is what counts can be asked, wherever they are: in memory (`held`) or in an engine (`far`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from shoal.core.held import HeldCounts

WORD_BITS = 63  # the sign bit stays free
NOBODY = np.empty(0, np.int64)  # asks where its row went
NO_FIELDS = np.empty((0, 4), np.int64)  # are rewritten


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


def moves(old: Sequence[Field], new: Sequence[Field]) -> IntArray:
    """Tell how fields move: word, shift, mask, new word, new shift; those that move alike go together."""
    found: list[list[int]] = []
    for a, b in zip(old, new, strict=True):
        last = found[-1] if found else [-1] * 5
        by = a.shift - last[1]
        if (a.word, b.word, b.shift) == (last[0], last[3], last[4] + by) and by > 0:
            last[2] |= a.mask << by
        else:
            found.append([a.word, a.shift, a.mask, b.word, b.shift])
    return np.array(found)


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
        keys, counts = roll_up_word(self.keys, self.counts, row, inverse, NOBODY)
        return Entries(keys, counts, self.bits)


@dataclass(frozen=True)
class Variety:
    """How many records are in classes of each measure, such as their size or the distinct values in them.

    >>> found = Variety.of(np.array([2, 1, 2]), np.array([5, 3, 4]))
    >>> found.values.tolist(), found.records.tolist(), found.classes
    ([1, 2], [3, 9], 3)
    """

    values: IntArray  # the measures that occur, ascending
    records: IntArray  # those in classes of that measure
    classes: int  # all

    @classmethod
    def of(cls, measures: IntArray, sizes: IntArray) -> Variety:
        """Add up the records of the classes of each measure."""
        if measures.max(initial=0) <= 4 * len(measures):
            sums = np.bincount(measures, sizes)
            values = np.flatnonzero(sums)
            sums = sums[values]
        else:
            values, place = np.unique(measures, return_inverse=True)
            sums = np.bincount(place, sizes)
        return cls(values, sums.astype(np.int64), len(measures))


class Counts(ABC):
    """Distinct combinations with their counts, and the sensitive values that occur in each."""

    held: ClassVar[bool]  # in memory

    fields: tuple[Field, ...]  # one per quasi-identifier
    keys: IntArray  # (words, combinations): to be asked for only where counts are held
    sizes: IntArray  # (combinations,)
    sensitive: Mapping[str, Entries]  # where counts are not held: of the whole table alone
    population: HeldCounts | None  # what the records were drawn from, coded alike

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of combinations."""

    @property
    @abstractmethod
    def words(self) -> int:
        """The words of a key."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records behind the counts."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the counts hold in memory."""

    @property
    @abstractmethod
    def rows_read(self) -> int:
        """How many rows are read where these counts are rolled up."""

    @abstractmethod
    def near(self) -> HeldCounts:
        """Return these counts in memory, or refuse."""

    @abstractmethod
    def fits(self, combinations: int, memory: int) -> bool:
        """Tell whether so many combinations made of these, with their sensitive values, fit in memory."""

    @abstractmethod
    def sample(self, most: int) -> HeldCounts:
        """Return about so many combinations, evenly spread, without sensitive values."""

    @abstractmethod
    def naming(self, names: Mapping[str, str]) -> Counts:
        """Return the same counts with new names, which may be several, of sensitive columns."""

    @abstractmethod
    def roll_up(self, groups: Mapping[int, IntArray]) -> Counts:
        """Replace some columns' codes by their groups, in one pass, and add up what became equal."""

    @abstractmethod
    def project(self, columns: Sequence[int]) -> Counts:
        """Keep some columns' fields, packed afresh in this order, and add up what became equal."""

    @abstractmethod
    def totals(self, column: int, length: int) -> IntArray:
        """Count the records of each code of a column."""

    @abstractmethod
    def variety(self, sensitive: str | None = None) -> Variety:
        """Tell classes by their size, or by the distinct values of a sensitive column in each."""

    @abstractmethod
    def variety_of(self, column: int) -> Variety:
        """Tell the classes that the other columns make by the distinct values of one column in each."""

    @abstractmethod
    def short(self, least: int) -> int:
        """Count the records in combinations of fewer than so many."""

    @abstractmethod
    def parts(self) -> Iterator[bytes]:
        """Yield what tells these counts from others, for a fingerprint."""

    def codes(self, column: int) -> IntArray:
        """Return one column's code in every combination, which must be held."""
        field = self.fields[column]
        codes: IntArray = (self.keys[field.word] >> field.shift) & field.mask
        return codes


def missing_records(counts: Counts, domain: Domain) -> int:
    """Count the records without a value, given the counts of one column."""
    null = np.array([text is None for text in domain.texts])
    return int(counts.sizes[null[counts.codes(0)]].sum())


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
        roll_up_word(words[0], ones, NO_FIELDS, NOBODY, inverse)
    else:
        roll_up_words(words, ones, NO_FIELDS, NOBODY, inverse)
    return inverse
