"""What PostgreSQL refuses, in our words: its own may quote rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from shoal.errors import DataError, OutputError, ShoalError

_NO_ROOM = "The database has no room left for this. Free some space there and run again."
_APPEARED = "A table of this name appeared while this ran. Use force=True to replace it."
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
    errors.InFailedSqlTransaction: (
        DataError,
        "The database refused something before, and ended the run. Run again; its log says what it was.",
    ),
    errors.QueryCanceled: (
        DataError,
        "The database cancelled a query, by its own time limit or its administrator's word.",
    ),
}
# What the first two signs of a code of the SQL standard stand for.
_KINDS = {
    "0A": "it cannot do this",
    "21": "a query found more than one row where there must be one",
    "22": "a value does not fit what is asked of it, as a date or number that is none",
    "23": "a rule of the table forbids it, as that values are unique",
    "25": "it takes no changes, for it or the session is read-only",
    "28": "it does not know this user, or not the password",
    "3D": "there is no such database",
    "3F": "there is no such schema",
    "40": "others changed the same at the same time; run again",
    "42": "a table, column or function that it needs is not there, or of another kind",
    "53": "it has no room or no connection left",
    "54": "the query is too large for it, as by too many columns",
    "55": "others use what is to be changed; run again",
    "57": "its administrator stopped it",
    "58": "its system fails it, as a disk that cannot be read",
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
    code = error.sqlstate or ""
    why = f": {_KINDS[code[:2]]}" if code[:2] in _KINDS else ""
    log = f"The log of the database says more, under the code {code}." if code else ""
    return DataError(f"The database refused a query{why}. {log}".strip())


def _lost(error: psycopg.Error) -> bool:
    """Tell an end of the connection from what the server refuses over one that stands."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate[:2] == "08" or error.sqlstate in _ENDED
