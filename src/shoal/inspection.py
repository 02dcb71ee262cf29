"""Inspection: every column of a table looked at once, so that hierarchies can be tried on its own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from shoal.choose import AUTO, engine_for
from shoal.column_names import check_header
from shoal.core.builder import decimal_of, number_of
from shoal.core.builders import parse
from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.core.hierarchy import Hierarchy
from shoal.core.listed import Csv, csv_rows
from shoal.core.progress import Progress, quiet
from shoal.errors import HierarchyError, UnknownName
from shoal.policies.guesses import Guess, guess_columns
from shoal.policies.notes import notes_on

Rows = Sequence[Sequence[str]]  # of a hierarchy's file: each value with its groups, from left to right


@dataclass(frozen=True)
class Preview:
    """How a column's own values climb a hierarchy. It holds values: it is for the custodian's eyes alone."""

    column: str
    builder: str
    groups: tuple[int, ...]  # how many at each level
    examples: tuple[tuple[str, ...], ...]  # of each value shown, its labels from level 0 to the top
    hierarchy: Hierarchy = field(repr=False, compare=False)
    order: Sequence[int] = field(default=(), repr=False, compare=False)  # of the values; () is their codes'

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.groups) - 1

    def tree(self, most: int = 12) -> dict[str, Any]:
        """Draw the hierarchy as a tree from the top: at most so many branches each, then how many more."""
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
            found: dict[str, Any] = {"name": bound.labels[level][group], "level": level}
            under = below[level][group]
            if under:
                found["children"] = [branch(level - 1, one) for one in under[:most]]
                if len(under) > most:
                    more = {"name": f"{len(under) - most:,} more", "level": level - 1, "more": True}
                    found["children"].append(more)
            return found

        top = bound.height
        roots = [branch(top, group) for group in order[:most]]
        return roots[0] if len(roots) == 1 else {"name": self.column, "level": top + 1, "children": roots}


@dataclass(frozen=True)
class Inspection:
    """What each column of a table is, with its distinct values."""

    records: int
    columns: tuple[Guess, ...]
    domains: Mapping[str, Domain] = field(repr=False)
    read_notes: tuple[str, ...] = ()  # on how the table was read

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in the table's order."""
        return tuple(found.column for found in self.columns)

    @property
    def notes(self) -> list[str]:
        """What is doubtful about the columns, without a value."""
        return notes_on(self.columns)

    def preview(self, column: str, spec: Any, rows: Rows = (), *, values: int = 8) -> Preview:
        """Try a hierarchy, as a policy writes it, on all values of a column; a file's rows are given."""
        if column not in self.domains:
            raise UnknownName(column, "column", self.names)
        builder = parse(column, spec)
        if isinstance(builder, Csv):
            if not rows:
                message = f"Hierarchy of {column!r}: its file is not here. Upload it."
                raise HierarchyError(message)
            builder = replace(builder, rows=tuple(map(tuple, rows)))
        bound = builder.bind(self.domains[column])
        order = self._order(column)
        shown = [order[place] for place in _spread(len(order), values)]
        levels = [(bound.labels[level], bound.groups(level)) for level in range(bound.height + 1)]
        examples = tuple(tuple(labels[groups[code]] for labels, groups in levels) for code in shown)
        return Preview(column, type(builder).keyword, tuple(map(len, bound.labels)), examples, bound, order)

    def _order(self, column: str) -> Sequence[int]:
        """Return the codes of a column's values, numbers from the smallest up; what is none comes last."""
        texts = self.domains[column].texts
        guess = self.columns[self.names.index(column)]
        if guess.kind != "number":
            return range(len(texts))
        decimal = decimal_of([text for text in texts if text is not None])
        if decimal is None:  # a code for unknown among them
            return range(len(texts))
        numbers = [number_of(text or "", decimal) for text in texts]
        places = np.array([np.nan if number is None else float(number) for number in numbers])
        found: list[int] = np.argsort(places, kind="stable").tolist()
        return found


def inspect(table: Any, *, engine: str | Engine = AUTO, progress: Progress | None = None) -> Inspection:
    """Look at every column of a table: guess its role and keep its distinct values."""
    engine = engine_for(engine, table)
    tell = progress or quiet
    with closing(engine):  # also where it is cancelled
        opened = engine.open(table)
        names = engine.columns(opened)
        check_header(names)
        guesses, domains, records = [], {}, 0
        tell("inspect", 0, len(names))
        for found, counts, domain in guess_columns(engine, opened):
            guesses.append(found)
            domains[found.column] = domain
            records = counts.records
            tell("inspect", len(guesses), len(names))  # whoever cancels before the last word gets nothing
        read_notes = engine.notes
    return Inspection(records, tuple(guesses), domains, read_notes)


def table_endings() -> tuple[str, ...]:
    """Return the endings of files that can be read here; of other programs, where a reader is installed."""
    from shoal.engines.duckdb import DuckDb
    from shoal.engines.foreign import READERS

    foreign = (ending for ending, (needed, _) in READERS.items() if find_spec(needed))
    return (*DuckDb.formats, ".txt", *foreign)


def hierarchy_rows(path: str | Path, column: str) -> tuple[list[list[str]], str | None]:
    """Read the file of a hierarchy: a row per value, from the value up, and a note on its encoding."""
    rows, note = csv_rows(Path(path), column)
    return [list(row) for row in rows], note


def _spread(size: int, most: int) -> list[int]:
    """Choose places spread evenly, the first and the last among them.

    >>> _spread(10, 4), _spread(3, 8)
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return list(range(size))
    return [place * (size - 1) // (most - 1) for place in range(most)] if most > 1 else [0][:most]
