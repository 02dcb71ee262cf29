"""Limits on a table that is read: its unpacked size, its number of columns, and the length of a cell.

The studio limits the first two, because it reads files of other people. The length of a cell is always
limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from shoal.errors import DataError

LONGEST_CELL = 2_000_000  # bytes; also the longest line of a text file that the database accepts


@dataclass(frozen=True)
class Limits:
    """How large a table may be; None means no limit."""

    unpacked: int | None = None  # bytes
    columns: int | None = None


_LIMITS: ContextVar[Limits] = ContextVar("limits", default=Limits())  # noqa: B039


def limits() -> Limits:
    """Return the limits in the current context."""
    return _LIMITS.get()


@contextmanager
def limited(new: Limits) -> Iterator[None]:
    """Apply limits to the tables that are read inside the block."""
    token = _LIMITS.set(new)
    try:
        yield
    finally:
        _LIMITS.reset(token)


def check_columns(name: str, count: int) -> None:
    """Refuse a table with too many columns."""
    most = limits().columns
    if most is not None and count > most:
        raise DataError(f"{name} has {count:,} columns, and the limit is {most:,}. Leave columns out.")


def check_unpacked(name: str, size: float) -> None:
    """Refuse a table that unpacks to too many bytes."""
    most = limits().unpacked
    if most is not None and size > most:
        raise DataError(
            f"{name} unpacks to more than {most:,} bytes, which is the limit. Leave out columns or records."
        )


def check_cell(name: str, length: int | None) -> None:
    """Refuse a table whose longest cell is too long."""
    if length is not None and length > LONGEST_CELL:
        raise DataError(
            f"{name} has a cell of more than {LONGEST_CELL:,} bytes, which is the limit. Shorten it, or "
            "leave the column out."
        )
