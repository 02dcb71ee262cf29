"""Diagnose: count a table's combinations once, to ask how exposed it is as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.column_names import check_asked, check_header
from shoal.core.contracts import Engine
from shoal.core.progress import Progress, quiet
from shoal.core.subsets import Source
from shoal.core.warm import to_project
from shoal.diagnosis import Diagnosis
from shoal.errors import DataError, UsageError

Chosen = Sequence[str] | Callable[[Sequence[str]], Sequence[str] | None] | None

_TEXT = (".csv", ".csv.gz", ".tsv", ".txt")  # whose first line may be a record


def diagnose(
    table: Any,
    columns: Chosen = None,
    *,
    sensitive: str | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Count the combinations of some columns, of all without any, and return what answers the questions.

    `columns` are names, or a function that chooses some of the table's.

    With a sensitive column every question is about its distinct values in a class (l) instead of k.
    """
    engine = engine_for(engine, table, memory_limit)
    tell = progress or quiet
    opened = engine.open(table)
    available = engine.columns(opened)
    columns = columns(available) if callable(columns) else columns
    if isinstance(table, str | Path) and str(table).lower().endswith(_TEXT):
        check_header(available)
    chosen = _chosen(columns, sensitive, available)
    tell("count", 0, None)
    counts, domains = engine.count(opened, [*chosen, *([sensitive] if sensitive else [])])
    if not len(counts):
        message = "The table has no rows. Give one that has records."
        raise DataError(message)
    waiting = to_project()
    if waiting:
        tell("compile", 0, None)
        for compile_one in waiting:
            compile_one()
    source = Source(counts, tuple(range(len(chosen))), sensitive=sensitive is not None)
    return Diagnosis(
        columns=tuple(chosen),
        sensitive=sensitive,
        records=counts.records,
        combinations=source.combinations,
        source=source,
        domains=domains,
        engine=engine,
        table=opened,
        origin=table,
        progress=tell,
    )


def _chosen(columns: Sequence[str] | None, sensitive: str | None, available: Sequence[str]) -> list[str]:
    """Return the columns to count: those named, else all but the sensitive one."""
    if sensitive is not None:
        check_asked(str(sensitive), available, kind="sensitive column", beside=columns)
    if columns is None:
        columns = [name for name in available if name != sensitive]
        if not columns:
            message = (
                "The table has no column but the sensitive one. Leave sensitive out, or give another table."
            )
            raise UsageError(message)
    chosen = check_asked(columns, available, beside=sensitive)
    if sensitive in chosen:
        message = f"Column {sensitive!r} is the sensitive one and cannot be among the columns. Leave it out."
        raise UsageError(message)
    return chosen
