"""Pages of rows of a table, which are shown only to its owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RowRequest:
    """Which rows to show, and in which order; by default, in the order of the table."""

    start: int = 0
    count: int = 100
    sort: tuple[tuple[str, bool], ...] = ()  # (column, whether descending), the most important column first
    contains: Mapping[str, str] = field(default_factory=dict)  # texts that columns contain, ignoring case
    below: int = 0  # only rows in classes with fewer records than this; 0: all rows


@dataclass(frozen=True)
class TableRow:
    """A row, as texts."""

    number: int  # the position in the table, from 1
    alike: int | None  # the number of records in its class
    values: tuple[str | None, ...]  # shortened


@dataclass(frozen=True)
class RowPage:
    """Some rows, and the total number of rows."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    total: int


Browse = Callable[[RowRequest], RowPage]
