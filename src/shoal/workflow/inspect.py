"""Inspect a table before a run: its columns and rows, hierarchy labels, and how hierarchy rules fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from shoal.columns.guesses import Guess, guess_columns, mark_person_key
from shoal.columns.header import check_asked, check_header
from shoal.columns.identifiers import Finding, identifiers_in
from shoal.columns.presets import notes_on
from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Domain, missing_records
from shoal.core.hierarchy.builder import decimal_of, number_of
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.hierarchy.lists import Csv, csv_rows
from shoal.core.progress import Progress
from shoal.core.rows import RowPage, RowRequest
from shoal.errors import HierarchyError, PolicyError, UnknownName
from shoal.policy.policy import Policy
from shoal.workflow.release.recovery import load_policy
from shoal.workflow.session import AUTO, OpenTable, Session, session


@dataclass(frozen=True)
class ColumnGuesses:
    """The guesses for the columns of a table, and its number of records."""

    guesses: tuple[Guess, ...]
    records: int


def guess(table: Any, *, engine: str | Engine = AUTO) -> list[Guess]:
    """Guess the role and the hierarchy of every column of a table."""
    with session(table, engine) as s:
        return list(guess_columns_of(s).guesses)


def guess_columns_of(s: Session, columns: dict[str, tuple[Domain, IntArray]] | None = None) -> ColumnGuesses:
    """Guess the role and hierarchy of every column; put values and record counts into `columns`."""
    check_header(s.text_names)
    guesses: list[Guess] = []
    records, total = 0, len(s.columns)
    s.progress("inspect", 0, total)
    for guess, counts, domain in guess_columns(s.engine, s.table.table):
        guesses.append(guess)
        records = counts.records
        if columns is not None:
            columns[guess.column] = domain, counts.totals(0, len(domain))
        s.progress("inspect", len(guesses), total)
    return ColumnGuesses(tuple(mark_person_key(s.engine, s.table.table, guesses, records)), records)


def safe_harbor_findings(table: Any, *, engine: str | Engine = AUTO) -> dict[str, Finding]:
    """Return the columns of a table that look like one of the 18 identifiers of Safe Harbor, and why."""
    return identifiers_in(guess(table, engine=engine))


HierarchyRows = Sequence[Sequence[str]]  # rows of a file: each value with its groups, left to right


@dataclass(frozen=True)
class Preview:
    """The labels of a column's values at each level. Only the custodian may see it: it contains values."""

    column: str
    builder: str
    groups: tuple[int, ...]  # number of groups at each level
    examples: tuple[tuple[str, ...], ...]  # for each value shown: its labels from level 0 to the top
    hierarchy: Hierarchy = field(repr=False, compare=False)
    order: Sequence[int] = field(default=(), repr=False, compare=False)  # of the codes; () if ascending

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.groups) - 1

    def tree(self, most: int = 12) -> dict[str, Any]:
        """Return the hierarchy as a tree: at most `most` branches per node, and the number of other ones."""
        bound = self.hierarchy
        below: list[list[list[int]]] = [[[] for _ in labels] for labels in bound.labels]
        order: Sequence[int] = self.order or range(len(bound.labels[0]))
        for level, step in enumerate(bound.steps, 1):
            groups = step.tolist()
            for under in order:
                if groups[under] >= 0:
                    below[level][groups[under]].append(under)
            order = list(dict.fromkeys(groups[under] for under in order if groups[under] >= 0))

        def branch(level: int, group: int) -> dict[str, Any]:
            node: dict[str, Any] = {"name": bound.labels[level][group], "level": level}
            under = below[level][group]
            if under:
                node["children"] = [branch(level - 1, subgroup) for subgroup in under[:most]]
                if len(under) > most:
                    more = {"name": f"{len(under) - most:,} more", "level": level - 1, "more": True}
                    node["children"].append(more)
            return node

        top = bound.height
        roots = [branch(top, group) for group in order[:most]]
        return roots[0] if len(roots) == 1 else {"name": self.column, "level": top + 1, "children": roots}


@dataclass(frozen=True)
class ValueSummary:
    """The most frequent values of a column, and its distribution; only the custodian may see it."""

    samples: tuple[str, ...]
    bars: tuple[int, ...]  # number of records in equal parts of a range, or with the most frequent values
    range: tuple[str, str] | None = None  # the smallest and the largest number

    @property
    def text(self) -> str:
        """What the bars show, in words."""
        often = f"most often {', '.join(self.samples)}" if self.samples else "no values"
        return often if self.range is None else f"from {self.range[0]} to {self.range[1]}; {often}"


_MOST_BARS, _SAMPLES, _LONGEST_SAMPLE = 12, 3, 24
_MOST_NUMBERS = 100_000  # maximum number of distinct numbers for a distribution


@dataclass(frozen=True)
class Inspection:
    """The guesses for each column of a table, and its distinct values."""

    records: int
    columns: tuple[Guess, ...]
    domains: Mapping[str, Domain] = field(repr=False)
    read_notes: tuple[str, ...] = ()  # about how the table was read
    value_counts: Mapping[str, IntArray] = field(default_factory=dict, repr=False)  # per distinct value

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in the table's order."""
        return tuple(guess.column for guess in self.columns)

    @property
    def notes(self) -> list[str]:
        """Doubts about the columns, without values of the data."""
        return notes_on(self.columns)

    def preview(self, column: str, spec: Any, rows: HierarchyRows = (), *, values: int = 8) -> Preview:
        """Apply a hierarchy, written as in a policy, to a column's values; `rows` are those of its file."""
        if column not in self.domains:
            raise UnknownName(column, "column", self.names)
        builder = parse(column, spec)
        if isinstance(builder, Csv):
            if not rows:
                raise HierarchyError(f"Hierarchy of {column!r}: its file is not here. Upload it.")
            builder = replace(builder, rows=tuple(map(tuple, rows)))
        bound = builder.bind(self.domains[column], self.value_counts[column])
        order = self._order(column)
        shown = [order[index] for index in _spread(len(order), values)]
        levels = [(bound.labels[level], bound.groups(level)) for level in range(bound.height + 1)]
        examples = tuple(tuple(labels[groups[code]] for labels, groups in levels) for code in shown)
        return Preview(column, type(builder).keyword, tuple(map(len, bound.labels)), examples, bound, order)

    def summary(self, column: str) -> ValueSummary:
        """Summarize the values of a column from the available counts."""
        texts, counts = self.domains[column].texts, self.value_counts[column]
        known = np.flatnonzero(np.array([text is not None for text in texts], bool))
        most = known[np.argsort(-counts[known], kind="stable")[:_MOST_BARS]]
        samples = tuple((texts[code] or "")[:_LONGEST_SAMPLE] for code in most[:_SAMPLES].tolist())
        order = self._order(column) if len(texts) <= _MOST_NUMBERS else range(len(texts))
        if isinstance(order, range) or not len(known):
            return ValueSummary(samples, tuple(counts[most].tolist()))
        decimal = decimal_of([texts[code] or "" for code in known.tolist()])
        codes = [code for code in order if texts[code] is not None]
        numbers = [number_of(texts[code] or "", decimal) if decimal else None for code in codes]
        pairs = [(float(n), code) for n, code in zip(numbers, codes, strict=True) if n is not None]
        if not pairs:
            return ValueSummary(samples, tuple(counts[most].tolist()))
        values, numbered = np.array([n for n, _ in pairs]), [code for _, code in pairs]
        bars, _ = np.histogram(values, bins=min(_MOST_BARS, len(pairs)), weights=counts[numbered])
        ends = (texts[numbered[0]] or "", texts[numbered[-1]] or "")
        return ValueSummary(samples, tuple(bars.astype(int).tolist()), ends)

    def _order(self, column: str) -> Sequence[int]:
        """Return the codes of a column's values: first numbers in ascending order, then other texts."""
        texts = self.domains[column].texts
        guess = self.columns[self.names.index(column)]
        if guess.kind != "number":
            return range(len(texts))
        decimal = decimal_of([text for text in texts if text is not None])
        if decimal is None:  # the texts include a code for unknown
            return range(len(texts))
        numbers = [number_of(text or "", decimal) for text in texts]
        positions = np.array([np.nan if number is None else float(number) for number in numbers])
        order: list[int] = np.argsort(positions, kind="stable").tolist()
        return order


def inspect(table: Any, *, engine: str | Engine = AUTO, progress: Progress | None = None) -> Inspection:
    """Guess the role of every column of a table, and collect its distinct values."""
    columns: dict[str, tuple[Domain, IntArray]] = {}
    with session(table, engine, progress=progress) as s:
        guessed = guess_columns_of(s, columns)
        domains = {name: domain for name, (domain, _) in columns.items()}
        value_counts = {name: totals for name, (_, totals) in columns.items()}
        return Inspection(guessed.records, guessed.guesses, domains, s.engine.notes, value_counts)


def table_endings() -> tuple[str, ...]:
    """Return the extensions of readable files; other programs' formats only if their reader is installed."""
    from shoal.engines.duckdb.engine import DuckDb
    from shoal.engines.frames import READERS

    foreign = (ending for ending, (needed, _) in READERS.items() if find_spec(needed))
    return (*DuckDb.formats, ".txt", *foreign)


def hierarchy_rows(
    path: str | Path, column: str, *, name: str | None = None
) -> tuple[list[list[str]], str | None]:
    """Read a hierarchy file: rows with a value and then its groups, and a note on the file's encoding."""
    rows, note = csv_rows(Path(path), column, name)
    return [list(row) for row in rows], note


def _spread(size: int, most: int) -> list[int]:
    """Choose evenly spread indices, including the first and the last.

    >>> _spread(10, 4), _spread(3, 8)
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return list(range(size))
    return [index * (size - 1) // (most - 1) for index in range(most)] if most > 1 else [0][:most]


@dataclass(frozen=True)
class HierarchyCheck:
    """The result of applying a hierarchy rule to a column's values."""

    column: str
    builder: str
    distinct: int
    missing: int  # records without a value
    groups: tuple[int, ...]  # number of groups at each level
    problem: str | None
    values: tuple[str, ...] = ()  # the values that the rule does not fit
    note: str | None = None  # a possible mistake, although the rule fits

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """Return the check as plain values; values of the data only if requested."""
        fields = asdict(self)
        return fields if reveal else {name: value for name, value in fields.items() if name != "values"}


def check_hierarchies(
    table: Any, policy: Policy | Mapping[str, Any] | str | Path, *, engine: str | Engine = AUTO
) -> list[HierarchyCheck]:
    """Check every hierarchy that a search or a model uses against the values of its column."""
    policy = load_policy(policy, engine)
    quasi = policy.roles.quasi_identifiers
    sensitive = [name for name in policy.sensitive_needed if policy.columns[name].hierarchy is not None]
    with session(table, engine) as s:
        for kind, names in (("quasi-identifiers", quasi), ("sensitive columns", sensitive)):
            missing = [name for name in names if name not in s.columns]
            if missing:
                raise PolicyError(
                    f"The table lacks {kind} of the policy: {', '.join(map(repr, missing))}. Give the "
                    "policy of this table."
                )
        return [_check(policy, s.table, name) for name in (*quasi, *sensitive)]


def _check(policy: Policy, table: OpenTable, name: str) -> HierarchyCheck:
    counts, domains = table.count([name])
    domain = domains[name]
    missing = missing_records(counts, domain)
    builder = type(policy.builder(name)).keyword
    check = HierarchyCheck(name, builder, len(domain), missing, (), None)
    rule = policy.builder(name)
    try:
        bound = rule.bind(domain, counts.totals(0, len(domain)))
    except HierarchyError as error:
        return replace(check, problem=str(error), values=error.values)
    message = rule.note([text for text in domain.texts if text is not None])
    note = f"Hierarchy of {name!r} ({builder}): {message}" if message else None
    return replace(check, groups=tuple(map(len, bound.labels)), note=note)


def labels_by_level(policy: Policy, name: str, values: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each value's labels from level 0 to the top."""
    if name not in policy.roles.quasi_identifiers:
        raise UnknownName(name, "quasi-identifier", policy.roles.quasi_identifiers)
    texts = tuple(dict.fromkeys(values))
    bound: Hierarchy = policy.builder(name).bind(Domain(name, texts, texts))
    levels = range(bound.height + 1)
    return [tuple(bound.labels[lv][bound.groups(lv)[code]] for lv in levels) for code in range(len(texts))]


class RowBrowser:
    """Reads rows of an open table, which contain values of the data. Close it after use."""

    def __init__(self, table: Any, classes: Sequence[str] = ()) -> None:
        self._session = session(table)
        try:
            opened = self._session.table
            self._browse = self._session.engine.browse(opened.table, classes)
            self.columns = opened.columns
        except BaseException:
            self.close()
            raise

    def page(self, request: RowRequest) -> RowPage:
        """Read some rows."""
        requested = [*[name for name, _ in request.sort], *request.contains]
        if requested:
            check_asked(list(dict.fromkeys(requested)), self.columns)
        return self._browse(request)

    def close(self) -> None:
        """Close the table."""
        self._session.close()
