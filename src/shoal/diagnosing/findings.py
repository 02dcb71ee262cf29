"""Findings: what a diagnosis answers with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, TypeVar

from shoal.policies.guesses import Guess

T = TypeVar("T")
ColumnSet = tuple[str, ...]  # in the order of the diagnosis
MOST_SETS = 1 << 20  # in a table: all of 20 columns


@dataclass(frozen=True)
class Suppression:
    """What must be suppressed so that a set of columns reaches a k; where nothing remains, none does."""

    k: int
    suppressed: int
    share: float  # the least that, as a suppression limit, allows so many records
    remaining: int

    @classmethod
    def of(cls, k: int, suppressed: int, records: int) -> Suppression:
        """Round the share up, with digits enough that it never allows one record more."""
        digits = 10 ** (len(str(records)) + 2)
        share = -(-suppressed * digits // records) / digits
        return cls(k, suppressed, share, records - suppressed)


@dataclass(frozen=True)
class SetFinding:
    """What was found of one set of columns."""

    columns: ColumnSet
    k: int  # that it reaches within the limit
    suppressed: int  # records in classes below the k asked for


@dataclass(frozen=True)
class Sets:
    """The safe sets that no other safe one contains, or the unsafe ones that contain no other unsafe one."""

    kind: Literal["maximal", "minimal"]
    found: tuple[SetFinding, ...]  # the best first: the most columns, or the fewest
    counts: int  # sets counted
    complete: bool  # False where it was stopped: there may be more, and safe ones may be larger
    whole: SetFinding  # all columns together: known even where it was stopped or bounded

    @property
    def sets(self) -> tuple[ColumnSet, ...]:
        """The sets of the most (the fewest) columns."""
        return tuple(one.columns for one in self.found if len(one.columns) == len(self.found[0].columns))


@dataclass(frozen=True, eq=False)
class SetTable(Mapping[ColumnSet, T]):
    """A value for every set of columns, the smallest sets first."""

    table: Mapping[ColumnSet, T] = field(repr=False)
    counts: int  # sets counted
    complete: bool

    def __getitem__(self, columns: ColumnSet) -> T:
        return self.table[columns]

    def __iter__(self) -> Iterator[ColumnSet]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True, eq=False)
class Pruned(Mapping[ColumnSet, T]):
    """Every set of at most so many columns: what was counted, and one value for all that was not."""

    counted: Mapping[ColumnSet, T] = field(repr=False)
    columns: ColumnSet
    size: int
    other: T

    def __getitem__(self, columns: ColumnSet) -> T:
        if columns in self.counted:
            return self.counted[columns]
        left = iter(self.columns)  # a set holds each of its columns once, in their order
        if isinstance(columns, tuple) and 0 < len(columns) <= self.size and all(c in left for c in columns):
            return self.other
        raise KeyError(columns)

    def __iter__(self) -> Iterator[ColumnSet]:
        return (s for size in range(1, self.size + 1) for s in combinations(self.columns, size))

    def __len__(self) -> int:
        return sum(math.comb(len(self.columns), size) for size in range(1, self.size + 1))


@dataclass(frozen=True)
class Suggestion:
    """What each column seems to be, and the policy that says so."""

    columns: tuple[Guess, ...]
    policy: str
    counts: int = 0  # sets counted


@dataclass(frozen=True)
class Overview:
    """What a custodian wants to see first, of all columns together."""

    k: int  # asked about
    combinations: int
    reached: int  # the k of the table
    alone: int  # unique records; for l: in classes of a single sensitive value
    suppressed: int  # records in classes below k
    unsafe: Sets  # the smallest sets that break k
    columns: tuple[Guess, ...]

    @property
    def counts(self) -> int:
        """The sets counted."""
        return self.unsafe.counts

    @property
    def complete(self) -> bool:
        """Whether all unsafe sets were found."""
        return self.unsafe.complete
