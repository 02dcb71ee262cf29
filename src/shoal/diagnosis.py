"""Diagnosis: a method for each question, answered from the counts of the table's combinations.

The questions are those of the privacy diagnosis centre (Zare-Mirakabad, Jantan and Bressan 2008), and those
that a custodian asks next. Where a sensitive column was named, k stands for its distinct values in a class
(distinct l-diversity) instead of the records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeVar

from shoal.column_names import check_asked
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.progress import Progress, quiet
from shoal.core.schema import Role
from shoal.core.subsets import Columns, Curve, Limits, Search, Source, every_set, search
from shoal.diagnosing.findings import (
    MOST_SETS,
    ColumnSet,
    Overview,
    Pruned,
    SetFinding,
    Sets,
    SetTable,
    Suggestion,
    Suppression,
)
from shoal.diagnosing.questions import Answer, ask, check_whole
from shoal.diagnosing.rows import write_rows_file
from shoal.errors import DataError, UnknownName, UsageError
from shoal.identifiers.names import name_persons
from shoal.outputs import check_file
from shoal.policies.first import policy_text
from shoal.policies.guesses import Guess, guess_column, guess_columns
from shoal.policies.shares import limit_in_records

T = TypeVar("T")
Limit = int | float | str  # 5%, 0.05, or a number of records


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The counts of a table's combinations, ready to be asked."""

    columns: tuple[str, ...]
    sensitive: str | None
    records: int
    combinations: int  # of all columns together
    source: Source = field(repr=False)
    domains: Mapping[str, Domain] = field(repr=False)
    engine: Engine = field(repr=False)
    table: Any = field(repr=False)  # as the engine opened it
    origin: Any = field(repr=False)  # as it came
    progress: Progress = field(repr=False)

    def telling(self, progress: Progress | None) -> Diagnosis:
        """Return the diagnosis that tells how far it is to somebody else, or to nobody."""
        return replace(self, progress=progress or quiet)

    @property
    def measure(self) -> str:
        """What the answers are about: k, or l where there is a sensitive column."""
        return "l" if self.sensitive else "k"

    # Questions 1 and 5, 2 and 6, 3 and 7, 4 and 8: without and with suppression.

    def is_anonymous(
        self,
        k: int,
        columns: Sequence[str] | None = None,
        suppression_limit: Limit = 0,
        *,
        at_most: bool = False,
    ) -> bool:
        """Tell whether the table is k-anonymous for some columns; `at_most`: whether its k is no larger."""
        k = self._check_k(k)
        reached = self.anonymity(columns, suppression_limit)
        return reached <= k if at_most else reached >= k

    def anonymity(self, columns: Sequence[str] | None = None, suppression_limit: Limit = 0) -> int:
        """Return the largest k for which the table is k-anonymous for some columns."""
        return self.curve(columns).reached(self._limit(suppression_limit))

    def largest_sets(
        self, k: int, suppression_limit: Limit = 0, *, at_most: bool = False, seconds: float | None = None
    ) -> Sets:
        """Find the largest sets of columns for which the table is k-anonymous.

        `at_most`: the smallest sets whose k is at most this.
        """
        if at_most:
            return self.unsafe_sets(k, suppression_limit, at_most=True, seconds=seconds)
        found = self._search(k, suppression_limit, None, seconds)
        maximal = sorted(found.maximal(), key=lambda columns: (-len(columns), columns))
        return self._sets("maximal", found, maximal)

    def anonymity_of_sets(
        self, suppression_limit: Limit = 0, max_size: int | None = None, *, seconds: float | None = None
    ) -> SetTable[int]:
        """Return the k of every set of columns."""
        limit, size, limits = self._limit(suppression_limit), self._size(max_size), self._limits(seconds)

        def judge(curve: Curve) -> int:
            return curve.reached(limit)

        if judge(self.source.curve()) > 1:  # nothing to prune
            return self._table(*every_set(self.source, judge, limits, max_size=size))
        found = search(self.source, judge, lambda k: k > 1, limits, max_size=size)
        counted = self._table(found.safe | found.unsafe, found.complete)
        if not found.complete:
            return counted
        # What was not counted contains a set whose k is 1.
        return SetTable(Pruned(counted.table, self.columns, size, 1), found.counts, complete=True)

    # Questions 9 to 12: how much suppression.

    def suppression(
        self, k: int, columns: Sequence[str] | None = None, *, at_most: bool = False
    ) -> Suppression | None:
        """Return what must be suppressed to make the table k-anonymous for some columns.

        `at_most`: the most that a limit may allow for k to stay at most this; None where it is above anyway.
        """
        k = self._check_k(k)
        return self._suppression(self.curve(columns), k, at_most=at_most)

    def suppression_of_sets(
        self, k: int, max_size: int | None = None, *, at_most: bool = False, seconds: float | None = None
    ) -> SetTable[Suppression | None]:
        """Return what must be suppressed to make the table k-anonymous, for every set of columns."""
        k = self._check_k(k)

        def judge(curve: Curve) -> Suppression | None:
            return self._suppression(curve, k, at_most=at_most)

        size, limits = self._size(max_size), self._limits(seconds)
        return self._table(*every_set(self.source, judge, limits, max_size=size))

    def suppression_by_k(
        self, columns: Sequence[str] | None = None, most: int | None = None
    ) -> tuple[Suppression, ...]:
        """Return what every k up to `most` costs some columns; without it, the largest k at each cost.

        No class is larger than the table, so `most` counts as at most its records.
        """
        curve = self.curve(columns)
        ks = curve.measures.tolist() if most is None else range(1, self._most(most) + 1)
        return tuple(Suppression.of(k, curve.short(k), self.records) for k in ks)

    def suppression_of_sets_by_k(
        self, most: int, max_size: int | None = None, *, seconds: float | None = None
    ) -> SetTable[tuple[int, ...]]:
        """Return, for every set of columns, the records to suppress for k = 1, ..., `most`."""
        most = self._most(most)

        def judge(curve: Curve) -> tuple[int, ...]:
            return tuple(curve.shorts(most).tolist())

        size, limits = self._size(max_size), self._limits(seconds)
        return self._table(*every_set(self.source, judge, limits, max_size=size))

    # What a custodian asks next.

    def unsafe_sets(
        self,
        k: int,
        suppression_limit: Limit = 0,
        max_size: int | None = None,
        *,
        at_most: bool = False,
        seconds: float | None = None,
    ) -> Sets:
        """Find the minimal unsafe sets: known from outside, they break k; none of their subsets does."""
        k = self._check_k(k)
        found = self._search(k + at_most, suppression_limit, max_size, seconds)
        minimal = sorted(found.unsafe, key=lambda columns: (len(columns), columns))
        return self._sets("minimal", found, minimal)

    def rows_to_suppress(self, k: int, columns: Sequence[str] | None = None) -> int:
        """Count the records that would have to go to make the table k-anonymous for some columns."""
        k = self._check_k(k)
        return self.curve(columns).short(k)

    def write_rows(
        self, path: str | Path, k: int, columns: Sequence[str] | None = None, *, force: bool = False
    ) -> int:
        """Write the numbers of the records that would have to go, a line each, the first record being 1.

        The file is closed to others. Returns how many there are.
        """
        k = self._check_k(k)
        check_file(Path(path), force=force, table=self.origin)
        places = self._places(columns)
        classes, measures = self.source.onto(places).classes()
        gone = measures < k
        names = [self.columns[place] for place in places]
        self.progress("rows", 0, None)
        found = self.engine.positions(self.table, names, self.domains, classes.keys[:, gone])
        if len(found) != int(classes.sizes[gone].sum()):
            message = "The table changed while it was diagnosed. Give one that stays as it is."
            raise DataError(message)
        write_rows_file(Path(path), found + 1)
        return len(found)

    def overview(self, k: int = 5, suppression_limit: Limit = 0, *, seconds: float | None = None) -> Overview:
        """Put together what a custodian wants to see first."""
        unsafe, curve = self.unsafe_sets(k, suppression_limit, seconds=seconds), self.curve()
        return Overview(
            k=self._check_k(k),
            combinations=self.combinations,
            reached=curve.reached(self._limit(suppression_limit)),
            alone=curve.short(2),
            suppressed=curve.short(k),
            unsafe=unsafe,
            columns=tuple(self.guess(name) for name in self.columns),
        )

    def suggest(self) -> Suggestion:
        """Guess the role of every column of the table, with what tells records apart, as a policy to edit."""
        guesses: list[Guess] = []
        known = {name: self._counted(name) for name in self.columns}
        known = {name: own for name, own in known.items() if own[0].held}
        self.progress("guess", 0, None)
        for found, _, _ in guess_columns(self.engine, self.table, known):
            guesses.append(found.with_role(Role.SENSITIVE) if found.column == self.sensitive else found)
            self.progress("guess", len(guesses), None)
        return Suggestion(tuple(guesses), policy_text(guesses))

    def guess(self, column: str) -> Guess:
        """Guess what one of the columns is."""
        if column not in self.columns:
            raise UnknownName(column, "column", self.columns)
        counts, domain = self._counted(column)
        return guess_column(column, counts.near(), domain, persons=name_persons(self.columns))

    def _counted(self, column: str) -> tuple[Counts, Domain]:
        return self.source.counts.project([self.columns.index(column)]), self.domains[column]

    def ask(self, question: int | str, **wishes: Any) -> Answer:
        """Ask by number, 1 to 12, or name (unsafe, rows, suggest); the answer is made of plain values."""
        return ask(self, question, **wishes)

    def curve(self, columns: Sequence[str] | None = None) -> Curve:
        """Return how many records lie in classes below each k, for some columns."""
        places = self._places(columns)
        return self.source.onto(places).curve() if places != self.source.columns else self.source.curve()

    def number_of_sets(self, max_size: int | None = None) -> int:
        """Count the sets of at most so many columns."""
        most = min(max_size or len(self.columns), len(self.columns))
        return sum(math.comb(len(self.columns), size) for size in range(1, most + 1))

    def plot(
        self, suppression_limit: Limit = 0, max_size: int | None = None, *, seconds: float | None = 20
    ) -> Any:
        """Draw what each k costs, and the k of sets by their size, as a figure of matplotlib.

        Sets are counted until the seconds are up; the figure tells which are not in it.
        """
        from shoal.core.figure import check_matplotlib
        from shoal.diagnosing.plots import diagnosis_plots
        from shoal.plots import together

        check_matplotlib()  # before sets are counted
        plots, _ = diagnosis_plots(self, suppression_limit, max_size, seconds)
        return together(plots[:2])

    def _repr_html_(self) -> str:
        from shoal.notebook import diagnosis_block

        return diagnosis_block(self)

    def _suppression(self, curve: Curve, k: int, *, at_most: bool) -> Suppression | None:
        most = curve.short(k)
        if at_most:
            most = self.records if k >= curve.measures[-1] else curve.short(k + 1) - 1
        return Suppression.of(k, most, self.records) if most >= 0 else None

    def _search(
        self, k: int, suppression_limit: Limit, max_size: int | None, seconds: float | None
    ) -> Search[tuple[int, int]]:
        k = self._check_k(k)
        if max_size is not None:
            max_size = check_whole("max_size", max_size)
        limit = self._limit(suppression_limit)
        return search(
            self.source,
            lambda curve: (curve.reached(limit), curve.short(k)),
            lambda found: found[0] >= k,
            self._limits(seconds),
            max_size=max_size,
        )

    def _sets(
        self,
        kind: Literal["maximal", "minimal"],
        found: Search[tuple[int, int]],
        chosen: Sequence[Columns],
    ) -> Sets:
        known = found.safe | found.unsafe
        findings = tuple(SetFinding(self._names(columns), *known[columns]) for columns in chosen)
        whole = SetFinding(self.columns, *found.whole)
        return Sets(kind, findings, found.counts, found.complete, whole)

    def _table(self, found: Mapping[Columns, T], complete: bool) -> SetTable[T]:
        ordered = sorted(found, key=lambda columns: (len(columns), columns))
        values = {self._names(columns): found[columns] for columns in ordered}
        return SetTable(values, len(found), complete)

    def _names(self, places: Columns) -> ColumnSet:
        return tuple(self.columns[place] for place in places)

    def _places(self, columns: Sequence[str] | None) -> Columns:
        if columns is None:
            return self.source.columns
        chosen = check_asked(columns, self.columns)
        return tuple(sorted(self.columns.index(name) for name in chosen))

    def _limit(self, limit: Limit) -> int:
        return limit_in_records(limit, self.records)

    def _limits(self, seconds: float | None) -> Limits:
        if seconds is not None and not (isinstance(seconds, Real) and seconds > 0):
            message = f"seconds must be a number above 0, got {seconds!r}."
            raise UsageError(message)
        until = math.inf if seconds is None else time.monotonic() + seconds
        return Limits(until, self.progress)

    def _check_k(self, k: int) -> int:
        return check_whole(self.measure, k)

    def _most(self, most: int) -> int:
        return min(check_whole("most", most), self.records)

    def _size(self, max_size: int | None) -> int:
        """Refuse a table over more sets than anyone can wait for."""
        size = len(self.columns)
        if max_size is not None:
            size = min(check_whole("max_size", max_size), size)
        number = self.number_of_sets(size)
        if number > MOST_SETS:
            bound = f" of at most {size} columns" if size < len(self.columns) else ""
            pairs, threes = self.number_of_sets(2), self.number_of_sets(3)
            message = (
                f"{len(self.columns)} columns have {number:,} sets{bound}. Give a "
                f"{'smaller ' if bound else ''}max_size: there are {pairs:,} sets of at most 2 "
                f"columns and {threes:,} of at most 3."
            )
            raise UsageError(message)
        return size
