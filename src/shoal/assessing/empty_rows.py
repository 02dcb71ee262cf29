"""Rows that hold nothing: spreadsheets leave them at the end of a table, and each counts as a person."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.errors import DataError


def has_blanks(domain: Domain) -> bool:
    """Tell whether a column is empty in some row, so that the whole row may be."""
    return any(text is None or not text.strip() for text in domain.texts)


def empty_rows(engine: Engine, table: Any) -> list[str]:
    """Say how many rows of an open table are entirely empty; nothing where none is."""
    number = 0
    with suppress(DataError):  # nothing fails because of a note
        number = engine.empty(table)
    if not number:
        return []
    told = "1 row is" if number == 1 else f"{number:,} rows are"
    return [f"{told} entirely empty, and counted as records: take them out of the table."]
