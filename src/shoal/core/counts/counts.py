"""Counts: the distinct combinations of quasi-identifier values, packed into integers, with their counts.

A combination is one or more 63-bit words; every column has a bit field in one of them. Rolling up a column
rewrites its field and sums the counts of keys that become equal, so the rows of the table are read only once.
This module defines the interface; the combinations are in memory or in an engine (`remote`).
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
    from shoal.core.counts.in_memory import InMemoryCounts

WORD_BITS = 63  # the sign bit stays free
NO_INVERSE = np.empty(0, np.int64)  # passed as `inverse` if the new position of each row is not needed
NO_FIELDS = np.empty((0, 4), np.int64)  # passed if no fields are rewritten


@dataclass(frozen=True)
class Domain:
    """The distinct values of one column, in a canonical order; the code of a value is its position.

    Values that have the same text in a release share a code. Then `codes` maps values to codes.
    """

    name: str
    values: Sequence[object]  # as the engine stores them; a null is None
    texts: tuple[str | None, ...]  # as hierarchies read them; texts that occur only in a population are last
    codes: IntArray | None = None  # the code of each value; values that occur only in a population are last

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def table_texts(self) -> tuple[str | None, ...]:
        """The texts of the values that occur in the table, without those of a population."""
        if self.codes is None:
            return self.texts[: len(self.values)]
        return tuple(self.texts[code] for code in np.unique(self.codes[: len(self.values)]))

    @cached_property
    def bits(self) -> int:
        """The width of a field that can store every code, including codes that were merged."""
        count = len(self.texts if self.codes is None else self.codes)
        return max(1, (count - 1).bit_length())


@dataclass(frozen=True)
class Field:
    """The position of a column's code in the packed key."""

    word: int
    shift: int
    mask: int


def layout(widths: Sequence[int]) -> tuple[Field, ...]:
    """Pack fields of these widths, in order, each within one word.

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
    """Return the moves of fields (word, shift, mask, new word, new shift).

    Neighbouring fields that move by the same distance are one move.
    """
    groups: list[list[int]] = []
    for a, b in zip(old, new, strict=True):
        previous = groups[-1] if groups else [-1] * 5
        distance = a.shift - previous[1]
        if (a.word, b.word, b.shift) == (previous[0], previous[3], previous[4] + distance) and distance > 0:
            previous[2] |= a.mask << distance
        else:
            groups.append([a.word, a.shift, a.mask, b.word, b.shift])
    return np.array(groups)


@dataclass(frozen=True)
class SensitiveCounts:
    """How often each sensitive value occurs in each combination."""

    keys: IntArray  # (entries,): row of the combination << bits | code
    counts: IntArray  # (entries,)
    bits: int

    @property
    def rows(self) -> IntArray:
        return self.keys >> self.bits

    @property
    def codes(self) -> IntArray:
        return self.keys & ((1 << self.bits) - 1)

    def moved(self, inverse: IntArray) -> SensitiveCounts:
        """Move the combinations to new rows, and sum the counts of entries that become equal."""
        from shoal.core.counts.kernels import roll_up_word

        row = np.array([(0, self.bits, (1 << (WORD_BITS - self.bits)) - 1, 0)])
        keys, counts = roll_up_word(self.keys, self.counts, row, inverse, NO_INVERSE)
        return SensitiveCounts(keys, counts, self.bits)


@dataclass(frozen=True)
class SizeHistogram:
    """The number of records by a measure of their class: its size, or its number of distinct values.

    >>> histogram = SizeHistogram.of(np.array([2, 1, 2]), np.array([5, 3, 4]))
    >>> histogram.values.tolist(), histogram.records.tolist(), histogram.classes
    ([1, 2], [3, 9], 3)
    """

    values: IntArray  # the measures that occur, ascending
    records: IntArray  # the number of records in classes of that measure
    classes: int  # the number of all classes

    @classmethod
    def of(cls, measures: IntArray, sizes: IntArray) -> SizeHistogram:
        """Sum the sizes of classes by measure."""
        if measures.max(initial=0) <= 4 * len(measures):
            sums = np.bincount(measures, sizes)
            values = np.flatnonzero(sums)
            sums = sums[values]
        else:
            values, inverse = np.unique(measures, return_inverse=True)
            sums = np.bincount(inverse, sizes)
        return cls(values, sums.astype(np.int64), len(measures))


class Counts(ABC):
    """Distinct combinations with their counts, and the sensitive values in each."""

    remote: ClassVar[bool]  # whether the combinations are in an engine

    fields: tuple[Field, ...]  # one per quasi-identifier
    keys: IntArray  # (words, combinations): only for counts in memory
    sizes: IntArray  # (combinations,)
    sensitive: Mapping[str, SensitiveCounts]  # if the counts are remote: for the whole table only
    population: InMemoryCounts | None  # the counts of the population, with the same codes

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of combinations."""

    @property
    @abstractmethod
    def words(self) -> int:
        """The number of words of a key."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """The number of integers that the counts hold in memory."""

    @property
    @abstractmethod
    def rows_read(self) -> int:
        """The number of rows that a roll-up of these counts reads."""

    @abstractmethod
    def in_memory(self) -> InMemoryCounts:
        """Return these counts in memory; raise DataError if they do not fit."""

    @abstractmethod
    def fits(self, combinations: int, memory: int) -> bool:
        """Return whether this many combinations, with their sensitive values, fit in memory."""

    @abstractmethod
    def sample(self, most: int) -> InMemoryCounts:
        """Return about `most` combinations, evenly spread, without sensitive values."""

    @abstractmethod
    def rename_sensitive(self, names: Mapping[str, str]) -> Counts:
        """Rename sensitive columns; `names` maps each new name to an old one. Old names may repeat."""

    @abstractmethod
    def roll_up(self, groups: Mapping[int, IntArray], *, in_order: bool = False) -> Counts:
        """Replace the codes of some columns by their groups, and sum the counts of equal keys.

        With `in_order`, combinations in memory keep the order of first appearance, as in `numbered`.
        """

    @abstractmethod
    def project(self, columns: Sequence[int]) -> Counts:
        """Keep some columns, repacked in this order, and sum the counts of equal keys."""

    @abstractmethod
    def totals(self, column: int, length: int) -> IntArray:
        """Count the records of each code of a column."""

    @abstractmethod
    def histogram(self, sensitive: str | None = None) -> SizeHistogram:
        """Return the histogram of class sizes, or of the number of distinct sensitive values per class."""

    @abstractmethod
    def histogram_of_column(self, column: int) -> SizeHistogram:
        """Return the histogram of the distinct values of one column in the classes of the other columns."""

    @abstractmethod
    def records_below(self, least: int) -> int:
        """Count the records in combinations of fewer than `least` records."""

    @abstractmethod
    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the bytes of a fingerprint of these counts."""

    def codes(self, column: int) -> IntArray:
        """Return a column's code in every combination; only for counts in memory."""
        field = self.fields[column]
        codes: IntArray = (self.keys[field.word] >> field.shift) & field.mask
        return codes


def missing_records(counts: Counts, domain: Domain) -> int:
    """Count the records without a value, given the counts of one column."""
    null = np.array([text is None for text in domain.texts])
    return int(counts.sizes[null[counts.codes(0)]].sum())


def packed(codes: Sequence[IntArray | BoolArray]) -> IntArray:
    """Pack several non-negative codes per row into words (words, rows).

    >>> packed([np.array([1, 2]), np.array([True, False])]).tolist()
    [[5, 2]]
    """
    fields = layout([max(1, int(column.max()).bit_length()) for column in codes])
    words = np.zeros((fields[-1].word + 1, len(codes[0])), np.int64)
    for field, column in zip(fields, codes, strict=True):
        words[field.word] |= column.astype(np.int64) << field.shift
    return words


def numbered(words: IntArray) -> IntArray:
    """Assign numbers from 0 to keys (words, rows) in order of first appearance."""
    from shoal.core.counts.kernels import roll_up_word, roll_up_words

    ones, inverse = np.ones(words.shape[1], np.int64), np.empty(words.shape[1], np.int64)
    if len(words) == 1:
        roll_up_word(words[0], ones, NO_FIELDS, NO_INVERSE, inverse)
    else:
        roll_up_words(words, ones, NO_FIELDS, NO_INVERSE, inverse)
    return inverse
