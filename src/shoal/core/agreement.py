"""Questions about columns that are released unchanged: do their values reveal finer values of other columns?

The value of a quasi-identifier is encoded as a *path*: bit fields from its group at the highest level down to
the value itself. Records whose paths begin with the same bits are in the same group at a level. One bitwise
AND and one OR over the records of a group therefore show, for every column and level, whether the records
agree. The answers are counts only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts.counts import WORD_BITS, Domain, Field
from shoal.core.hierarchy.hierarchy import Hierarchy


@dataclass(frozen=True)
class AgreementQuestion:
    """Whether records are in the same group of one quasi-identifier, at one level finer than the release."""

    column: int
    level: int
    word: int
    mask: int  # the bits of the word that identify the group
    flag: int | None  # the number of the flag that marks the eligible records; None: all are eligible


@dataclass(frozen=True)
class EligibleFlag:
    """Marks the eligible records: those whose released label of one column covers several finer groups."""

    column: int
    eligible: BoolArray  # by value of the column; by class if the recoding has regions
    masked: bool  # whether masked records are eligible


@dataclass(frozen=True)
class AgreementQuestions:
    """The paths of the quasi-identifiers, and the questions about them."""

    fields: tuple[Field, ...]  # one per quasi-identifier
    paths: tuple[IntArray, ...]  # per quasi-identifier: (values,), shifted to its field
    released: tuple[int, ...]  # per quasi-identifier, for a node: the bits of its word that the release shows
    suppressed: IntArray | None  # (words, classes), for a node: these bits of the suppressed classes
    asked: tuple[AgreementQuestion, ...]
    flags: tuple[EligibleFlag, ...]


@dataclass(frozen=True)
class GroupTally:
    """Counts of the groups that the values of one unchanged column form, by the size of the group.

    All arrays except `sizes` have the shape (questions, sizes).
    """

    sizes: IntArray  # (sizes,): ascending
    eligible: IntArray  # the number of eligible records
    eligible_groups: IntArray  # the number of groups with eligible records
    agreeing: IntArray  # the number of eligible records in groups whose records agree
    agreeing_groups: IntArray


class ColumnAgreement(ABC):
    """The groups of released records with the same value in an unchanged column; they stay in the engine."""

    unique: int  # the number of records, or persons, that are unique in their released and unchanged values
    records: int  # the number of rows of the release
    released: int  # the number of rows that are not masked

    @abstractmethod
    def tallies(self) -> list[GroupTally]:
        """Count the groups of each unchanged column, in the order of the columns."""

    @abstractmethod
    def values(self, column: int, most: int) -> Domain:
        """Return at most `most` distinct values of an unchanged column."""

    @abstractmethod
    def matching(
        self, column: int, values: Domain, wanted: Mapping[int, IntArray]
    ) -> Mapping[int, tuple[int, int]]:
        """Count, per question, the eligible records with these values, and how many are in a given group.

        `wanted` maps a question to the bits of a group for each value, or -1 for no group.
        """

    @abstractmethod
    def close(self) -> None:
        """Drop the tables of the engine."""


def levels_of(hierarchy: Hierarchy, highest: int) -> list[int]:
    """Return the levels up to `highest` that do not have the same groups as a lower level.

    >>> from shoal.core.hierarchy.hierarchy import nest
    >>> levels_of(nest("zip", [("11", "11", "1", "*"), ("12", "12", "1", "*")]), 3)
    [0, 2]
    """
    sizes = [len(labels) for labels in hierarchy.labels[: highest + 1]]
    return [level for level, size in enumerate(sizes) if size not in sizes[:level]]


def paths_of(hierarchy: Hierarchy, levels: Sequence[int]) -> tuple[IntArray, list[int]]:
    """Return each value's path, from the last of `levels` to the first, and the bits after each level.

    >>> from shoal.core.hierarchy.hierarchy import nest
    >>> towns = nest("town", [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")])
    >>> paths, after = paths_of(towns, [0, 1, 2])
    >>> [f"{path:02b}" for path in paths], after
    (['00', '01', '10'], [0, 1, 2])
    """
    path = hierarchy.groups(levels[-1])
    widths = [0]
    for level, above in zip(levels[-2::-1], levels[:0:-1], strict=True):
        parent = hierarchy.between(level, above)  # (groups of the level,)
        order = np.argsort(parent, kind="stable")
        rank = np.empty(len(parent), np.int64)  # among the groups of the same parent
        rank[order] = np.arange(len(parent)) - np.searchsorted(parent[order], parent[order])
        widths.append(int(rank.max()).bit_length())
        path = (path << widths[-1]) | rank[hierarchy.groups(level)]
    after = np.cumsum(widths[:0:-1]).tolist()
    return path, [0, *after]


def fitting_paths(hierarchy: Hierarchy, highest: int, released: int) -> tuple[IntArray, dict[int, int]]:
    """Return paths that fit in one word, and the number of bits after each level.

    If the paths of a deep hierarchy are too long, some levels between the lowest and the highest are left
    out, but not the released one.
    """
    levels = levels_of(hierarchy, highest)
    released = same_groups(hierarchy, released)
    while True:
        path, after = paths_of(hierarchy, levels)
        if width_of(hierarchy, levels[-1], after[-1]) <= WORD_BITS:
            return path, dict(zip(levels, after, strict=True))
        removable = [level for level in levels[1:] if level != released]
        levels.remove(removable[len(removable) // 2])


def same_groups(hierarchy: Hierarchy, level: int) -> int:
    """Return the lowest level that has the same groups as this one."""
    return levels_of(hierarchy, level)[-1]


def width_of(hierarchy: Hierarchy, level: int, after: int) -> int:
    """Return the number of bits of a path that starts with a level and has `after` more bits."""
    return max(1, (len(hierarchy.labels[level]) - 1).bit_length() + after)
