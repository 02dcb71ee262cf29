"""Subsets: the lattice in which every column is kept or dropped, counted from counts and never from rows.

A set of columns is a sorted tuple of their places. A class is measured by its size, or by the number of
distinct values that a sensitive column has in it. A set's k, where some records may be suppressed, is the
largest measure below which no more records lie (Zare-Mirakabad, Jantan and Bressan 2008).

Lemma: a superset's k is never larger, whatever the limit. Its classes lie within those of the set, so none
of them has a larger measure; every record in a class below k therefore stays in one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Any, Generic, TypeVar

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.batch import CORES
from shoal.core.counts import Counts, Variety
from shoal.core.progress import Progress, quiet
from shoal.errors import interruptible

T = TypeVar("T")
Columns = tuple[int, ...]
Judge = Callable[["Curve"], T]  # what to keep of a set's curve

_MANY = 1 << 14  # combinations from which on several threads pay
_BATCH, _PART = 1024, 8  # sets handed out at once, and to one thread


@dataclass(frozen=True)
class Curve:
    """How many records lie in classes below each measure: what suppression costs."""

    measures: IntArray  # (steps,): ascending
    below: IntArray  # (steps + 1,): records in classes of a smaller measure; the last is all records

    @classmethod
    def of(cls, variety: Variety) -> Curve:
        """Add up the records of all smaller measures."""
        below = np.zeros(len(variety.values) + 1, np.int64)
        below[1:] = np.cumsum(variety.records)
        return cls(variety.values, below)

    @property
    def records(self) -> int:
        """The records in all classes."""
        return int(self.below[-1])

    def reached(self, limit: int) -> int:
        """Return the largest k for which a class stays and at most `limit` records lie in smaller ones."""
        return int(self.measures[np.searchsorted(self.below[:-1], limit, side="right") - 1])

    def short(self, k: int) -> int:
        """Count the records in classes below k."""
        return int(self.below[np.searchsorted(self.measures, k)])

    def shorts(self, most: int) -> IntArray:
        """Count the records in classes below k, for k = 1, ..., `most`."""
        found: IntArray = self.below[np.searchsorted(self.measures, np.arange(1, most + 1))]
        return found


@dataclass(frozen=True)
class Source:
    """Counts of some columns, from which all of their subsets are counted."""

    counts: Counts
    columns: Columns  # which column each field is
    sensitive: bool = False  # one more field, the last, is the sensitive column

    def onto(self, columns: Columns) -> Source:
        """Drop all but some columns."""
        places = [self.columns.index(column) for column in columns]
        kept = [*places, len(self.columns)] if self.sensitive else places
        return replace(self, counts=self.counts.project(kept), columns=columns)

    def classes(self) -> tuple[Counts, IntArray]:
        """Return the classes of all columns, which must fit in memory, and the measure of each."""
        counts = self.counts.near()
        return counts.without(len(self.columns)) if self.sensitive else (counts, counts.sizes)

    def variety(self) -> Variety:
        """Return how many records are in classes of each measure."""
        return self.counts.variety_of(len(self.columns)) if self.sensitive else self.counts.variety()

    @property
    def combinations(self) -> int:
        """How many classes all columns together make."""
        return self.variety().classes

    def curve(self) -> Curve:
        """Return the curve of all columns together."""
        return Curve.of(self.variety())


@dataclass
class Limits:
    """When to stop, and whom to tell how far the counting is."""

    until: float = math.inf  # by time.monotonic
    tell: Progress = quiet

    def over(self) -> bool:
        """Tell whether the time is up."""
        return time.monotonic() > self.until


@dataclass
class Search(Generic[T]):
    """What a search through sets found, even where it was stopped."""

    whole: T  # of all columns together
    safe: dict[Columns, T] = field(default_factory=dict)
    unsafe: dict[Columns, T] = field(default_factory=dict)  # minimal: every subset is safe
    counts: int = 0  # sets counted
    complete: bool = False

    def maximal(self) -> list[Columns]:
        """Return the safe sets that no other safe set contains."""
        # By the lemma a safe superset has a safe subset of one column more than the set.
        covered = {lower for columns in self.safe for lower in _lower(columns)}
        return [columns for columns in self.safe if columns not in covered]


def search(
    source: Source,
    judge: Judge[T],
    safe: Callable[[T], bool],
    limits: Limits,
    *,
    max_size: int | None = None,
) -> Search[T]:
    """Go level by level; never count a set of which a subset is unsafe, for that is unsafe too."""
    whole = judge(source.curve())
    found = Search(whole)
    if safe(whole):  # by the lemma every set is then
        return Search(whole, {source.columns: whole}, {}, 1, complete=True)
    level: list[Columns] = [(column,) for column in source.columns]
    with _stoppable(), _threads(source) as each:
        while level:
            size, kept = len(level[0]), []
            for done, (columns, value) in enumerate(_judged(each, source, level, judge), 1):
                found.counts += 1
                (found.safe if safe(value) else found.unsafe)[columns] = value
                if safe(value):
                    kept.append(columns)
                limits.tell(f"sets of {size}", done, len(level))
                if limits.over():
                    return found
            level = _joined(kept, limits) if size != max_size else []
            if limits.over():
                return found
            left = tuple(sorted({column for columns in level for column in columns}))
            if left and left != source.columns:
                source = source.onto(left)
        found.complete = True
    return found


def every_set(
    source: Source, judge: Judge[T], limits: Limits, *, max_size: int | None = None
) -> tuple[dict[Columns, T], bool]:
    """Judge every set of at most so many columns, each counted from a set of one column more.

    A set is made from its union with the first column that it lacks, so that each is made once, depth
    first; the narrowest columns are first, so that the largest branches begin with the fewest combinations.
    """
    width = {c: f.mask for c, f in zip(source.columns, source.counts.fields, strict=False)}
    order = sorted(source.columns, key=lambda column: width[column])
    size = min(max_size or len(order), len(order))
    roots = combinations(range(len(order)), size)
    total = sum(math.comb(len(order), n) for n in range(1, size + 1))
    found: dict[Columns, T] = {}

    def make(job: tuple[Source, Columns]) -> tuple[Source, Columns, T]:
        above, places = job
        own = above.onto(tuple(sorted(order[place] for place in places)))
        return own, places, judge(own.curve())

    with _stoppable(), _threads(source) as each:
        stack: list[tuple[Source, Columns]] = []
        while stack or (stack := [(source, root) for root in islice(roots, CORES)]):
            batch = [stack.pop() for _ in range(min(len(stack), 4 * CORES))]
            for own, places, value in each(make, batch):
                found[own.columns] = value
                stack += [(own, lower) for lower in _dropped(places)]
                limits.tell("sets", len(found), total)
            if limits.over():
                return found, False
    return found, len(found) == total


def _dropped(places: Columns) -> Iterator[Columns]:
    """Drop, from a set that holds every place before it, one place."""
    for place, held in enumerate(places):
        if place != held or len(places) == 1:
            return
        yield places[:place] + places[place + 1 :]


def _judged(
    each: Callable[..., Iterable[Any]], source: Source, level: list[Columns], judge: Judge[T]
) -> Iterator[tuple[Columns, T]]:
    """Judge the sets of a level, in order."""

    def make(part: list[Columns]) -> list[tuple[Columns, T]]:
        return [(columns, judge(source.onto(columns).curve())) for columns in part]

    for start in range(0, len(level), _BATCH):
        batch = level[start : start + _BATCH]
        for made in each(make, [batch[at : at + _PART] for at in range(0, len(batch), _PART)]):
            yield from made


def _joined(kept: list[Columns], limits: Limits) -> list[Columns]:
    """Return the sets of one column more of which every subset was kept, as far as the time allows."""
    known = set(kept)
    found = []
    for place, first in enumerate(kept):  # in lexicographic order: those that begin alike are neighbours
        if limits.over():
            break
        for other in range(place + 1, len(kept)):
            if first[:-1] != kept[other][:-1]:
                break
            both = (*first, kept[other][-1])
            if all(lower in known for lower in _lower(both)):
                found.append(both)
    return found


def _lower(columns: Columns) -> Iterator[Columns]:
    """Yield the sets of one column less."""
    return (columns[:place] + columns[place + 1 :] for place in range(len(columns)))


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C end a search with what it found."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        return


@contextmanager
def _threads(source: Source) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a map that uses all cores, where the counts are many enough for it."""
    if not source.counts.held or len(source.counts) < _MANY or CORES == 1:
        yield map
        return
    pool = ThreadPoolExecutor(CORES)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
