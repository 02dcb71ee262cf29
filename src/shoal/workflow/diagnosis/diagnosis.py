"""Diagnosis: a method for each question, answered from the counts of the table's combinations.

Questions 1 to 12 are those of the privacy diagnosis centre (Zare-Mirakabad, Jantan and Bressan 2008). Further
questions are those of a custodian. With a sensitive column, `k` means the l of a class (distinct, entropy or
recursive l-diversity) instead of its size. If an l is also given, `k` is the size, and classes must reach l.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from shoal.columns.guesses import Guess, guess_column, guess_columns, mark_person_key
from shoal.columns.header import check_asked
from shoal.columns.names import name_persons
from shoal.columns.presets import policy_text
from shoal.core.contracts import Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.counts.diversity import Diversity
from shoal.core.counts.subsets import ColumnIndices, Curve, Search, Source, TimeLimit, every_set, search
from shoal.core.progress import Progress, quiet
from shoal.document.document import Code, Document, Fact, HasDocument, Name, Table, of_records
from shoal.errors import DataError, UnknownName, UsageError
from shoal.files.outputs import check_file
from shoal.policy.limits import check_seconds, check_whole, limit_in_records
from shoal.wording import Change, plural
from shoal.workflow.diagnosis.questions import (
    MOST_SETS,
    Answer,
    ColumnSet,
    Overview,
    Pruned,
    SetFinding,
    Sets,
    SetTable,
    Suggestion,
    Suppression,
    ask,
    number_of_sets,
    write_rows_file,
    written,
)
from shoal.workflow.session import OpenTable

T = TypeVar("T")
_K = 5  # the k that the document describes
LimitValue = int | float | str  # 5%, 0.05, or a number of records


@dataclass(frozen=True, eq=False)
class Diagnosis(HasDocument):
    """The counts of a table's combinations, and methods that answer questions about them."""

    columns: tuple[str, ...]
    sensitive: str | None
    records: int
    combinations: int  # of all columns together
    source: Source = field(repr=False)
    domains: Mapping[str, Domain] = field(repr=False)
    opened: OpenTable = field(repr=False)
    origin: Any = field(repr=False)  # the table argument of `diagnose`
    progress: Progress = field(repr=False)
    l: float | None = None  # the l that every class needs in addition to k

    def telling(self, progress: Progress | None) -> Diagnosis:
        """Return the diagnosis with another progress callback, or without one."""
        return replace(self, progress=progress or quiet)

    @property
    def measure(self) -> str:
        """The measure of the answers: l with a sensitive column and without a required l, else k."""
        return "l" if self.sensitive and self.l is None else "k"

    @property
    def diversity(self) -> Diversity:
        """The kind of l."""
        return self.source.diversity

    @property
    def _steps(self) -> int:
        return self.diversity.steps if self.measure == "l" else 1

    def _value(self, steps: int) -> int | float:
        return self.diversity.value(steps) if self.measure == "l" else steps

    # Questions 1 to 4 without suppression, and questions 5 to 8, which are the same after suppression.

    def is_anonymous(
        self,
        k: float,
        columns: Sequence[str] | None = None,
        suppression_limit: LimitValue = 0,
        *,
        at_most: bool = False,
    ) -> bool:
        """Return whether the k of the table for some columns is at least this k; with `at_most`, at most."""
        least = self._check_k(k)
        reached = self.curve(columns).reached(self._limit(suppression_limit))
        return reached <= least if at_most else reached >= least

    def anonymity(self, columns: Sequence[str] | None = None, suppression_limit: LimitValue = 0) -> float:
        """Return the largest k for which the table is k-anonymous for some columns.

        The result is 0 if a class that is not suppressed does not reach the required l, or has no l.
        """
        return self._value(self.curve(columns).reached(self._limit(suppression_limit)))

    def largest_sets(
        self,
        k: float,
        suppression_limit: LimitValue = 0,
        *,
        at_most: bool = False,
        seconds: float | None = None,
    ) -> Sets:
        """Find the largest sets of columns for which the table is k-anonymous.

        With `at_most`, find the smallest sets whose k is at most the given k.
        """
        if at_most:
            return self.unsafe_sets(k, suppression_limit, at_most=True, seconds=seconds)
        result = self._search(self._check_k(k), suppression_limit, None, seconds)
        maximal = sorted(result.maximal(), key=lambda columns: (-len(columns), columns))
        return self._sets("maximal", result, maximal)

    def anonymity_of_sets(
        self,
        suppression_limit: LimitValue = 0,
        max_size: int | None = None,
        *,
        seconds: float | None = None,
    ) -> SetTable[float]:
        """Return the k of every set of columns."""
        limit, size, limits = self._limit(suppression_limit), self._size(max_size), self._limits(seconds)

        def judge(curve: Curve) -> int:
            return curve.reached(limit)

        least = self.source.least
        if judge(self.source.curve()) > least or not self.source.monotone(limit):  # no set can be pruned
            values, complete = every_set(self.source, judge, limits, max_size=size)
            return self._table({s: self._value(steps) for s, steps in values.items()}, complete)
        result = search(self.source, judge, lambda steps: steps > least, limits, max_size=size)
        values_by_set = {s: self._value(steps) for s, steps in (result.safe | result.unsafe).items()}
        counted = self._table(values_by_set, result.complete)
        if not result.complete:
            return counted
        # A set that was not counted contains a set with the smallest possible k, so its k is the same.
        pruned = Pruned(counted.table, self.columns, size, self._value(least))
        return SetTable(pruned, result.counts, complete=True)

    # Questions 9 to 12: how much suppression.

    def suppression(
        self, k: float, columns: Sequence[str] | None = None, *, at_most: bool = False
    ) -> Suppression | None:
        """Return what must be suppressed to make the table k-anonymous for some columns.

        With `at_most`, return the largest limit that gives at most this k; None if every limit gives more.
        """
        return self._suppression(self.curve(columns), self._check_k(k), at_most=at_most)

    def suppression_of_sets(
        self, k: float, max_size: int | None = None, *, at_most: bool = False, seconds: float | None = None
    ) -> SetTable[Suppression | None]:
        """Return what must be suppressed to make the table k-anonymous, for every set of columns."""
        least = self._check_k(k)

        def judge(curve: Curve) -> Suppression | None:
            return self._suppression(curve, least, at_most=at_most)

        size, limits = self._size(max_size), self._limits(seconds)
        return self._table(*every_set(self.source, judge, limits, max_size=size))

    def suppression_by_k(
        self, columns: Sequence[str] | None = None, most: int | None = None
    ) -> tuple[Suppression, ...]:
        """Return the suppression that each k up to `most` needs.

        Without `most`, return the largest k for each number of suppressed records. A `most` above the number
        of records is reduced to this number.
        """
        curve = self.curve(columns)
        if most is None:
            values = [steps for steps in curve.measures.tolist() if steps]
        else:
            values = [k * self._steps for k in range(1, self._most(most) + 1)]
        return tuple(
            Suppression.of(self._value(steps), curve.records_below(steps), self.records) for steps in values
        )

    def suppression_of_sets_by_k(
        self, most: int, max_size: int | None = None, *, seconds: float | None = None
    ) -> SetTable[tuple[int, ...]]:
        """Return, for every set of columns, the records to suppress for k = 1, ..., `most`."""
        most = self._most(most)

        def judge(curve: Curve) -> tuple[int, ...]:
            return tuple(curve.records_below_each(most, self._steps).tolist())

        size, limits = self._size(max_size), self._limits(seconds)
        return self._table(*every_set(self.source, judge, limits, max_size=size))

    # Further questions of a custodian.

    def unsafe_sets(
        self,
        k: float,
        suppression_limit: LimitValue = 0,
        max_size: int | None = None,
        *,
        at_most: bool = False,
        seconds: float | None = None,
    ) -> Sets:
        """Find the minimal unsafe sets: sets of columns that violate k, but whose subsets do not."""
        result = self._search(self._check_k(k) + at_most, suppression_limit, max_size, seconds)
        minimal = sorted(result.minimal(), key=lambda columns: (len(columns), columns))
        return self._sets("minimal", result, minimal)

    def rows_to_suppress(self, k: float, columns: Sequence[str] | None = None) -> int:
        """Count the records to suppress to make the table k-anonymous for some columns."""
        return self.curve(columns).records_below(self._check_k(k))

    def records_alone(self) -> int:
        """Count the unique records. If the measure is l, count the records in classes whose l is below 2."""
        return self.curve().records_below(2 * self._steps)

    def write_rows(
        self, path: str | Path, k: float, columns: Sequence[str] | None = None, *, force: bool = False
    ) -> int:
        """Write the numbers of the records to suppress, one per line, and return how many they are.

        The first record of the table has the number 1. Only the owner can read the file.
        """
        least = self._check_k(k)
        check_file(Path(path), force=force, table=self.origin)
        indices = self._indices(columns)
        classes, measures = self.source.onto(indices).classes()
        violating = measures < least
        names = [self.columns[index] for index in indices]
        self.progress("rows", 0, None)
        positions = self.opened.engine.positions(
            self.opened.table, names, self.domains, classes.keys[:, violating]
        )
        if len(positions) != int(classes.sizes[violating].sum()):
            raise DataError("The table changed while it was diagnosed. Give a table that does not change.")
        write_rows_file(Path(path), positions + 1)
        return len(positions)

    def overview(
        self, k: float = 5, suppression_limit: LimitValue = 0, *, seconds: float | None = None
    ) -> Overview:
        """Return an overview for the custodian. Parts that are not finished within `seconds` are left out."""
        start, half = time.monotonic(), math.inf if seconds is None else self._limits(seconds / 2).until
        guesses = []
        for name in self.columns:
            guesses.append(self._guess(name, with_hierarchy=False))
            if time.monotonic() > half:  # the other half of the time is for the sets
                break
        left = None if seconds is None else max(seconds - (time.monotonic() - start), seconds / 4)
        unsafe, curve = self.unsafe_sets(k, suppression_limit, seconds=left), self.curve()
        least = self._check_k(k)
        return Overview(
            k=self._value(least),
            combinations=self.combinations,
            reached=self._value(curve.reached(self._limit(suppression_limit))),
            unique=self.records_alone(),
            suppressed=curve.records_below(least),
            unsafe=unsafe,
            columns=tuple(guesses),
            missing=len(self.columns) - len(guesses),
        )

    def suggest(self) -> Suggestion:
        """Guess the role of every column of the table, and return a policy to edit."""
        guesses: list[Guess] = []
        known = {name: self._counted(name) for name in self.columns}
        known = {name: pair for name, pair in known.items() if not pair[0].remote}
        self.progress("guess", 0, None)
        records = 0
        engine, table = self.opened.engine, self.opened.table
        for guess, counts, _ in guess_columns(engine, table, known):
            guesses.append(guess.with_role(Role.SENSITIVE) if guess.column == self.sensitive else guess)
            records = counts.records
            self.progress("guess", len(guesses), None)
        guesses = mark_person_key(engine, table, guesses, records)
        return Suggestion(tuple(guesses), policy_text(guesses))

    def guess(self, column: str) -> Guess:
        """Guess the role, kind and hierarchy of one column."""
        if column not in self.columns:
            raise UnknownName(column, "column", self.columns)
        return self._guess(column, with_hierarchy=True)

    def _guess(self, column: str, *, with_hierarchy: bool) -> Guess:
        counts, domain = self._counted(column)
        persons = name_persons(self.columns)
        return guess_column(
            column, counts.in_memory(), domain, persons=persons, with_hierarchy=with_hierarchy
        )

    def _counted(self, column: str) -> tuple[Counts, Domain]:
        return self.source.counts.project([self.columns.index(column)]), self.domains[column]

    def ask(self, question: int | str, **options: Any) -> Answer:
        """Answer a question, given by number (1 to 12) or name (unsafe, rows, suggest), as plain values."""
        return ask(self, question, **options)

    def curve(self, columns: Sequence[str] | None = None) -> Curve:
        """Return how many records lie in classes below each k, for some columns."""
        indices = self._indices(columns)
        return self.source.onto(indices).curve() if indices != self.source.columns else self.source.curve()

    def number_of_sets(self, max_size: int | None = None) -> int:
        """Count the sets of at most `max_size` columns."""
        return number_of_sets(len(self.columns), max_size)

    def plot(
        self,
        suppression_limit: LimitValue = 0,
        max_size: int | None = None,
        *,
        seconds: float | None = 20,
    ) -> Any:
        """Draw the suppression that each k needs, and the k of sets by their size, with matplotlib.

        Sets are counted for at most `seconds`; the figure states which sets are missing.
        """
        from shoal.document.figures import check_matplotlib, draw_all
        from shoal.workflow.diagnosis.diagnose import diagnosis_plots

        check_matplotlib()  # before sets are counted
        plots, _ = diagnosis_plots(self, suppression_limit, max_size, seconds)
        return draw_all(plots[:2])

    def document(self) -> Document:
        """Describe what is known without further counting, and the questions to ask next."""
        distinct = [(Name(name), f"{len(self.domains[name]):,}") for name in self.columns]
        questions = [f"overview({_K})", f"unsafe_sets({_K})", f"suppression({_K})", "suggest()"]
        codes = [part for question in questions for part in (Code(question), ", ")][:-1]
        return Document(
            title=f"Diagnosis of {plural(self.records, 'record')} by {plural(len(self.columns), 'column')}",
            facts=list(self._facts()),
            tables=[Table("What somebody could know", ("column", "distinct values"), distinct)],
            hints=[("Ask next: ", *codes, "; or ", Code("plot()"), ".")],
        )

    def _facts(self) -> Iterator[Fact]:
        yield Fact("combinations", "combinations", f"{self.combinations:,}")
        if self.sensitive:
            yield Fact("sensitive", "sensitive column", Name(self.sensitive))
        if self.source.counts.remote:  # more facts would need queries
            return
        measure = self.measure
        yield Fact(measure, f"smallest {measure}", f"{self.anonymity():,}")
        unique_label = "unique records"
        if self.measure == "l" and self.diversity.kind == "distinct":
            unique_label = "records with one sensitive value in their class"
        elif self.sensitive:
            unique_label = f"records below {measure} = 2"
        yield Fact("alone", unique_label, of_records(self.records_alone(), self.records))
        below = of_records(self.rows_to_suppress(_K), self.records)
        yield Fact("below", f"records below {measure} = {_K}", below)

    def _suppression(self, curve: Curve, least: int, *, at_most: bool) -> Suppression | None:
        most = curve.records_below(least)
        if at_most:
            most = self.records if least >= curve.measures[-1] else curve.records_below(least + 1) - 1
        return Suppression.of(self._value(least), most, self.records) if most >= 0 else None

    def _search(
        self, least: int, suppression_limit: LimitValue, max_size: int | None, seconds: float | None
    ) -> Search[tuple[int, int]]:
        if max_size is not None:
            max_size = check_whole("max_size", max_size)
        limit = self._limit(suppression_limit)
        monotone = self.source.monotone(limit)
        if not monotone:
            self._size(max_size)
        return search(
            self.source,
            lambda curve: (curve.reached(limit), curve.records_below(least)),
            lambda values: values[0] >= least,
            self._limits(seconds),
            max_size=max_size,
            prune=monotone,
        )

    def _sets(
        self,
        kind: Literal["maximal", "minimal"],
        result: Search[tuple[int, int]],
        chosen: Sequence[ColumnIndices],
    ) -> Sets:
        known = result.safe | result.unsafe

        def finding(columns: ColumnSet, steps: int, suppressed: int) -> SetFinding:
            return SetFinding(columns, self._value(steps), suppressed)

        findings = tuple(finding(self._names(columns), *known[columns]) for columns in chosen)
        all_columns = finding(self.columns, *result.whole)
        return Sets(kind, findings, result.counts, result.complete, all_columns, result.full_size)

    def _table(self, values_by_set: Mapping[ColumnIndices, T], complete: bool) -> SetTable[T]:
        ordered = sorted(values_by_set, key=lambda columns: (len(columns), columns))
        values = {self._names(columns): values_by_set[columns] for columns in ordered}
        return SetTable(values, len(values_by_set), complete)

    def _names(self, indices: ColumnIndices) -> ColumnSet:
        return tuple(self.columns[index] for index in indices)

    def _indices(self, columns: Sequence[str] | None) -> ColumnIndices:
        if columns is None:
            return self.source.columns
        chosen = check_asked(columns, self.columns)
        return tuple(sorted(self.columns.index(name) for name in chosen))

    def _limit(self, limit: LimitValue) -> int:
        return limit_in_records(limit, self.records)

    def _limits(self, seconds: float | None) -> TimeLimit:
        seconds = check_seconds(seconds)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        return TimeLimit(deadline, self.progress)

    def _check_k(self, k: float) -> int:
        """Check a k (or l), and convert it to steps, the integer unit in which classes are measured."""
        if self.measure == "l" and self.diversity.kind == "entropy":
            return self.diversity.in_steps(k)
        return check_whole(self.measure, k)

    def _most(self, most: int) -> int:
        return min(check_whole("most", most), self.records)

    def _size(self, max_size: int | None) -> int:
        """Return the checked size of sets; raise if there are too many sets."""
        size = len(self.columns)
        if max_size is not None:
            size = min(check_whole("max_size", max_size), size)
        number = self.number_of_sets(size)
        if number > MOST_SETS:
            bound = f" of at most {size} columns" if size < len(self.columns) else ""
            pairs, threes = self.number_of_sets(2), self.number_of_sets(3)
            raise UsageError(
                f"{len(self.columns)} columns have {written(number)} sets{bound}.",
                field="max_size",
                advice=[
                    Change(
                        "max_size",
                        action=f"Give a {'smaller ' if bound else ''}{{}}: there are {written(pairs)} sets "
                        f"of at most 2 columns and {written(threes)} of at most 3",
                    )
                ],
            )
        return size
