"""What PostgreSQL refuses, in our words: its own may quote rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from shoal.errors import DataError, OutputError, ShoalError

_NO_ROOM = "The database has no room left for this. Free some space there and run again."
_APPEARED = "A table of this name appeared while this ran. Use --force to replace it."
_SAID: dict[type[psycopg.Error], tuple[type[ShoalError], str]] = {
    errors.DiskFull: (OutputError, _NO_ROOM),
    errors.OutOfMemory: (OutputError, _NO_ROOM),
    errors.ProgramLimitExceeded: (OutputError, _NO_ROOM),
    errors.ConfigurationLimitExceeded: (OutputError, _NO_ROOM),
    errors.InsufficientPrivilege: (
        DataError,
        "The database does not allow this to its user. Ask for the right to read or to create.",
    ),
    errors.DependentObjectsStillExist: (
        OutputError,
        "Views or other tables depend on the table to be replaced. Name another output.",
    ),
    errors.WrongObjectType: (
        OutputError,
        "What has the name of the output is not a table. Name another output.",
    ),
    errors.DuplicateTable: (OutputError, _APPEARED),
    errors.UniqueViolation: (OutputError, _APPEARED),
    errors.InvalidSchemaName: (OutputError, "The database has no such schema. Create it first."),
    errors.QueryCanceled: (
        DataError,
        "The database cancelled a query, by its own time limit or its administrator's word.",
    ),
}
_LOST = "The connection to the database was lost; nothing was released. Run again."
_ENDED = ("57P01", "57P02", "57P03", "57P05")  # by an administrator, a crash, a restart, a time limit


@contextmanager
def told() -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise _ours(error) from None


def _ours(error: psycopg.Error) -> ShoalError:
    for kind, (ours, message) in _SAID.items():
        if isinstance(error, kind):
            return ours(message)
    if _lost(error):
        return DataError(_LOST)
    return DataError(f"The database refused a query ({type(error).__name__}).")


def _lost(error: psycopg.Error) -> bool:
    """Tell an end of the connection from what the server refuses over one that stands."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate[:2] == "08" or error.sqlstate in _ENDED
