"""Subsets of columns: a subset is counted from the counts of a superset.

A set of columns is a sorted tuple of their indices. A class has a *measure*: its size, its l for a sensitive
column, or a combination of both (its size if its l is large enough, else 0). Given a limit of suppressed
records, the *k* of a set is the largest measure for which all classes below it may be suppressed
(Zare-Mirakabad, Jantan and Bressan 2008).

Lemma: the k of a superset is never larger. Each class of the superset is contained in a class of the set, so
its measure is not larger. A record whose class of the set is below k is thus in a class of the superset that
is below k, too. For entropy and recursive l-diversity, some parts of a class may have a larger l than the
class, but never all of them. So for these two kinds, the lemma holds only if nothing is suppressed.
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
from shoal.core.compilation import compile_events
from shoal.core.counts.counts import Counts, SizeHistogram
from shoal.core.counts.diversity import DISTINCT, Diversity
from shoal.core.memory import CORES
from shoal.core.progress import Progress, quiet
from shoal.errors import interruptible
from shoal.files.signals import keeping

T = TypeVar("T")
ColumnIndices = tuple[int, ...]
Judge = Callable[["Curve"], T]  # returns the value that is stored for a set

_MANY = 1 << 14  # number of combinations above which several threads are faster
_BATCH, _PART = 1024, 8  # number of sets that are evaluated at once, and by one thread at once
_MOST_OF_SIZE = 1 << 20  # maximum number of sets of one size that are counted
_MOST_HELD = 1 << 21  # maximum number of sets whose result is kept in memory: about 700 MB


@dataclass(frozen=True)
class Curve:
    """The number of records in classes below each measure: how many must be suppressed to reach it."""

    measures: IntArray  # (steps,): ascending
    below: IntArray  # (steps + 1,): records in classes of a smaller measure; the last is all records

    @classmethod
    def of(cls, histogram: SizeHistogram) -> Curve:
        below = np.zeros(len(histogram.values) + 1, np.int64)
        below[1:] = np.cumsum(histogram.records)
        return cls(histogram.values, below)

    @property
    def records(self) -> int:
        return int(self.below[-1])

    def reached(self, limit: int) -> int:
        """Return the largest k that some class reaches with at most `limit` records in classes below it."""
        return int(self.measures[np.searchsorted(self.below[:-1], limit, side="right") - 1])

    def records_below(self, k: int) -> int:
        """Count the records in classes below k."""
        return int(self.below[np.searchsorted(self.measures, k)])

    def records_below_each(self, most: int, steps: int = 1) -> IntArray:
        """Count the records in classes below k, for k = 1, ..., `most`; a k of 1 is a measure of `steps`."""
        counts: IntArray = self.below[np.searchsorted(self.measures, np.arange(1, most + 1) * steps)]
        return counts


@dataclass(frozen=True)
class Source:
    """Counts of some columns, from which all their subsets are counted."""

    counts: Counts
    columns: ColumnIndices  # the column of each field
    sensitive: bool = False  # whether there is one more field, the last one, for a sensitive column
    diversity: Diversity = DISTINCT  # the kind of its l
    # In steps. If 0, the measure of a class is its l; otherwise it is its size, or 0 if its l is below this.
    least_l: int = 0

    def monotone(self, limit: int) -> bool:
        """Return whether the k of a superset is never larger."""
        return limit == 0 or not self.sensitive or self.diversity.monotone

    @property
    def least(self) -> int:
        """The smallest measure that is possible."""
        return 0 if self.least_l else self.diversity.least

    def onto(self, columns: ColumnIndices) -> Source:
        """Project to some columns."""
        positions = [self.columns.index(column) for column in columns]
        kept = [*positions, len(self.columns)] if self.sensitive else positions
        return replace(self, counts=self.counts.project(kept), columns=columns)

    def classes(self) -> tuple[Counts, IntArray]:
        """Return the classes of all columns, which must fit in memory, and the measure of each."""
        counts = self.counts.in_memory()
        if not self.sensitive:
            return counts, counts.sizes
        if self._counts_values:
            return counts.without(len(self.columns))
        classes, entries = counts.values_of(len(self.columns))
        measures = self.diversity.measures(entries.rows, entries.counts, classes.sizes)
        if self.least_l:
            measures = np.where(measures >= self.least_l, classes.sizes, 0)
        return classes, measures

    @property
    def _counts_values(self) -> bool:
        """Whether the measure is the number of distinct values, which an engine can count."""
        return self.diversity.kind == "distinct" and not self.least_l

    def histogram(self) -> SizeHistogram:
        if not self.sensitive:
            return self.counts.histogram()
        if self._counts_values:
            return self.counts.histogram_of_column(len(self.columns))
        classes, measures = self.classes()
        return SizeHistogram.of(measures, classes.sizes)

    @property
    def combinations(self) -> int:
        """The number of classes of all columns together."""
        return self.histogram().classes

    def curve(self) -> Curve:
        return Curve.of(self.histogram())


@dataclass
class TimeLimit:
    """When a search must stop, and the callback for its progress."""

    until: float = math.inf  # as returned by time.monotonic
    tell: Progress = quiet

    def over(self) -> bool:
        return time.monotonic() > self.until


@dataclass
class Search(Generic[T]):
    """The result of a search over sets of columns, which may have been stopped early."""

    whole: T  # the value for all columns together
    safe: dict[ColumnIndices, T] = field(default_factory=dict)
    unsafe: dict[ColumnIndices, T] = field(default_factory=dict)  # with pruning: all their subsets are safe
    counts: int = 0  # number of sets counted
    complete: bool = False
    full_size: int = 0  # all sets up to this size were counted or contain an unsafe one

    def maximal(self) -> list[ColumnIndices]:
        """Return the safe sets that no other safe set contains."""
        covered: set[ColumnIndices] = set()
        for columns in sorted((*self.safe, *self.unsafe), key=len, reverse=True):
            if columns in self.safe or columns in covered:
                covered.update(_lower(columns))
        return [columns for columns in self.safe if columns not in covered]

    def minimal(self) -> list[ColumnIndices]:
        """Return the unsafe sets that contain no other unsafe set."""
        above: set[ColumnIndices] = set()  # sets that contain an unsafe one
        for columns in sorted((*self.safe, *self.unsafe), key=len):
            if any(lower in self.unsafe or lower in above for lower in _lower(columns)):
                above.add(columns)
        return [columns for columns in self.unsafe if columns not in above]


def search(
    source: Source,
    judge: Judge[T],
    safe: Callable[[T], bool],
    limits: TimeLimit,
    *,
    max_size: int | None = None,
    prune: bool = True,
) -> Search[T]:
    """Evaluate sets of columns, small sets first. With `prune`, supersets of unsafe sets are not counted.

    `prune` is valid only if every superset of an unsafe set is unsafe.
    """
    whole = judge(source.curve())
    result = Search(whole)
    if prune and safe(whole):  # then every set is safe, by the lemma
        full_size = len(source.columns)
        return Search(whole, {source.columns: whole}, {}, 1, complete=True, full_size=full_size)
    level: list[ColumnIndices] = [(column,) for column in source.columns]
    with _stoppable(), compile_events(limits.tell), _threads(source) as each:
        while level:
            size, extended = len(level[0]), []
            for done, (columns, value) in enumerate(_judged(each, source, level, judge, limits), 1):
                result.counts += 1
                (result.safe if safe(value) else result.unsafe)[columns] = value
                if safe(value) or not prune:
                    extended.append(columns)
                limits.tell(f"sets of {size}", done, len(level))
                if limits.over() or result.counts == _MOST_HELD:
                    return result
            if len(level) == _MOST_OF_SIZE:  # more sets of this size may exist
                return result
            result.full_size = size
            level = list(islice(_joined(extended, limits), _MOST_OF_SIZE)) if size != max_size else []
            if limits.over():
                return result
            remaining_columns = tuple(sorted({column for columns in level for column in columns}))
            if remaining_columns and remaining_columns != source.columns:
                source = source.onto(remaining_columns)
        result.complete = True
    return result


def every_set(
    source: Source, judge: Judge[T], limits: TimeLimit, *, max_size: int | None = None
) -> tuple[dict[ColumnIndices, T], bool]:
    """Evaluate every set of at most `max_size` columns.

    Each set is counted once, depth first, from a set with one more column, namely the first one that it
    lacks. Columns with few values come first. The largest branches then begin by leaving out a column with
    many values, so they have the fewest combinations.
    """
    width = {c: f.mask for c, f in zip(source.columns, source.counts.fields, strict=False)}
    order = sorted(source.columns, key=lambda column: width[column])
    size = min(max_size or len(order), len(order))
    roots = combinations(range(len(order)), size)
    total = sum(math.comb(len(order), n) for n in range(1, size + 1))
    values: dict[ColumnIndices, T] = {}

    def make(job: tuple[Source, ColumnIndices]) -> tuple[Source, ColumnIndices, T]:
        above, positions = job
        subset = above.onto(tuple(sorted(order[position] for position in positions)))
        return subset, positions, judge(subset.curve())

    with _stoppable(), _threads(source) as each:
        stack: list[tuple[Source, ColumnIndices]] = []
        while stack or (stack := [(source, root) for root in islice(roots, CORES)]):
            batch = [stack.pop() for _ in range(min(len(stack), 4 * CORES))]
            for subset, positions, value in each(make, batch):
                values[subset.columns] = value
                stack += [(subset, lower) for lower in _dropped(positions)]
                limits.tell("sets", len(values), total)
            if limits.over() or len(values) > _MOST_HELD:
                return values, False
    return values, len(values) == total


def _dropped(positions: ColumnIndices) -> Iterator[ColumnIndices]:
    """Yield the sets without one position; all positions before it must be present."""
    for index, position in enumerate(positions):
        if index != position or len(positions) == 1:
            return
        yield positions[:index] + positions[index + 1 :]


def _judged(
    each: Callable[..., Iterable[Any]],
    source: Source,
    level: list[ColumnIndices],
    judge: Judge[T],
    limits: TimeLimit,
) -> Iterator[tuple[ColumnIndices, T]]:
    """Evaluate the sets of a level in order; after the time limit, only those that are already started."""

    def evaluate_part(part: list[ColumnIndices]) -> list[tuple[ColumnIndices, T]]:
        results = []
        for columns in part:
            results.append((columns, judge(source.onto(columns).curve())))
            if time.monotonic() > limits.until:
                break
        return results

    for start in range(0, len(level), _BATCH):
        batch = level[start : start + _BATCH]
        for results in each(evaluate_part, [batch[at : at + _PART] for at in range(0, len(batch), _PART)]):
            yield from results


def _joined(kept: list[ColumnIndices], limits: TimeLimit) -> Iterator[ColumnIndices]:
    """Yield the sets with one more column whose subsets are all in `kept`, until the time limit."""
    kept_sets = set(kept)
    for index, first in enumerate(kept):  # in lexicographic order: sets with the same start are adjacent
        if limits.over():
            break
        for other in range(index + 1, len(kept)):
            if first[:-1] != kept[other][:-1]:
                break
            joined_set = (*first, kept[other][-1])
            if all(lower in kept_sets for lower in _lower(joined_set)):
                yield joined_set


def _lower(columns: ColumnIndices) -> Iterator[ColumnIndices]:
    """Yield the sets with one column less."""
    return (columns[:index] + columns[index + 1 :] for index in range(len(columns)))


@contextmanager
def _stoppable() -> Iterator[None]:
    """Stop a search on Ctrl-C; its results so far are kept."""
    try:
        with interruptible(), keeping():
            yield
    except KeyboardInterrupt:
        return


@contextmanager
def _threads(source: Source) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a map function that uses all cores if there are enough combinations."""
    if source.counts.remote or len(source.counts) < _MANY or CORES == 1:
        yield map
        return
    pool = ThreadPoolExecutor(CORES)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
