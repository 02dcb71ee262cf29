"""Diagnose: count a table's combinations once, to ask how exposed it is as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.progress import Progress, quiet
from shoal.core.subsets import Source
from shoal.core.warm import to_project
from shoal.diagnosing.questions import check_names
from shoal.diagnosis import Diagnosis
from shoal.errors import DataError, UnknownName, UsageError, has_any, no_such_columns
from shoal.policies.guesses import check_header

Chosen = Sequence[str] | Callable[[Sequence[str]], Sequence[str] | None] | None

_TEXT = (".csv", ".csv.gz", ".tsv")  # whose first line may be a record


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
    columns = [columns] if isinstance(columns, str) else columns
    if isinstance(table, str | Path):
        if str(table).lower().endswith(_TEXT):
            check_header(available)
        columns = _check_any(columns, sensitive, available)
    chosen = _chosen(columns, sensitive, available)
    tell("count", 0, None)
    counts, domains = engine.count(opened, [*chosen, *([sensitive] if sensitive else [])])
    if not len(counts):
        message = "The table has no rows."
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


def _check_any(
    columns: Sequence[str] | None, sensitive: str | None, available: Sequence[str]
) -> Sequence[str] | None:
    """Refuse names of which a file has none; its first line may be a record, so that is not shown."""
    columns = list(columns) if isinstance(columns, Iterable) else columns
    asked = [*(columns if isinstance(columns, list) else []), *([sensitive] if sensitive else [])]
    if asked and not has_any(asked, available):
        raise UsageError(no_such_columns())
    return columns


def _chosen(columns: Sequence[str] | None, sensitive: str | None, available: Sequence[str]) -> list[str]:
    """Return the columns to count: those named, else all but the sensitive one."""
    if sensitive is not None and sensitive not in available:
        raise UnknownName(str(sensitive), "column", available)
    if columns is None:
        columns = [name for name in available if name != sensitive]
        if not columns:
            message = "The table has no column but the sensitive one."
            raise UsageError(message)
    chosen = check_names(columns, available)
    if sensitive in chosen:
        message = f"Column {sensitive!r} is the sensitive one and cannot be among the columns. Leave it out."
        raise UsageError(message)
    return chosen
