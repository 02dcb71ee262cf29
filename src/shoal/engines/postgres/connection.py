"""The connection to a PostgreSQL server: its errors, its types, and its binary copies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ibis
import numpy as np
import psycopg
import pyarrow as pa
from ibis.expr.types import Table
from psycopg import errors

from shoal.errors import DataError, OutputError, ShoalError
from shoal.files.outputs import REPLACE
from shoal.files.signals import interrupted, stopping


def connect(address: str = "") -> Any:
    """Connect to an address, or by libpq's settings; all statements run in one transaction."""
    try:
        connection = psycopg.connect(address, fallback_application_name="shoal", autocommit=True)
        # A search may take longer than the server's limit for idle transactions. The limit is
        # removed outside a transaction, because a rollback would restore it.
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    except psycopg.Error:
        if address:  # the address is not shown: it may contain a password
            raise DataError(
                "Cannot connect to PostgreSQL. The address, the user and the password of this source are in "
                "the file of sources."
            ) from None
        raise DataError(
            "Cannot connect to PostgreSQL. Set PGHOST, PGPORT, PGDATABASE and PGUSER (or PGSERVICE), and "
            "keep the password in ~/.pgpass or PGPASSWORD."
        ) from None
    return connection


# Messages for the errors of the database, whose own messages may quote rows.
_NO_ROOM = "The database has no room left for this. Free some space there and run again."
_MESSAGES: dict[type[psycopg.Error], tuple[type[ShoalError], str]] = {
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
        "The name of the output belongs to something other than a table. Name another output.",
    ),
    errors.InvalidSchemaName: (OutputError, "The database has no such schema. Create it first."),
    errors.InFailedSqlTransaction: (
        DataError,
        "The database refused something before, and ended the run. Run again; its log says what it was.",
    ),
    errors.QueryCanceled: (
        DataError,
        "The database cancelled a query, because of a time limit or a request of its administrator.",
    ),
}
# The meaning of the first two characters of an SQLSTATE code.
_REASONS = {
    "0A": "it cannot do this",
    "21": "a query found more than one row where there must be one",
    "22": "a value is not valid for its use, such as an invalid date or number",
    "23": "a constraint of the table forbids it, such as a unique one",
    "25": "it accepts no changes: it or the session is read-only",
    "28": "the user or the password is not valid",
    "3D": "there is no such database",
    "3F": "there is no such schema",
    "40": "others changed the same data at the same time; run again",
    "42": "a table, column or function does not exist, or has another type",
    "53": "it has no space or no connections left",
    "54": "the query is too large, for example it has too many columns",
    "55": "the object to change is in use; run again",
    "57": "its administrator stopped it",
    "58": "its system failed, for example a disk cannot be read",
}
_CONNECTION_LOST = "The connection to the database was lost. Run again."
_ENDED = ("57P01", "57P02", "57P03", "57P05")  # ended by an administrator, a crash, a restart or a time limit


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate the database's errors to shoal's."""
    try:
        yield
    except psycopg.Error as error:
        if stopping() and isinstance(error, errors.QueryCanceled | errors.InFailedSqlTransaction):
            raise interrupted() from None
        raise _translated(error) from None


def _translated(error: psycopg.Error) -> ShoalError:
    if isinstance(error, errors.DuplicateTable | errors.UniqueViolation):
        return OutputError(
            "A table of this name appeared while this ran.", code="output-exists", advice=[REPLACE]
        )
    for kind, (error_class, message) in _MESSAGES.items():
        if isinstance(error, kind):
            return error_class(message)
    if _is_connection_lost(error):
        return DataError(_CONNECTION_LOST)
    code = error.sqlstate or ""
    reason = f": {_REASONS[code[:2]]}" if code[:2] in _REASONS else ""
    log = f"The log of the database says more, under the code {code}." if code else ""
    return DataError(f"The database refused a query{reason}. {log}".strip())


def _is_connection_lost(error: psycopg.Error) -> bool:
    """Return whether the connection was lost, as opposed to a query that the server refused."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate[:2] == "08" or error.sqlstate in _ENDED


_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension


def _row_type(columns: Sequence[str]) -> np.dtype[Any]:
    """Return the dtype of a row of 64-bit numbers in a binary copy.

    A row is the number of columns, followed by the length and the value of each column.
    """
    lengths = [(f"length{number}", ">i4") for number in range(len(columns))]
    values = [(f"value{number}", ">i8") for number in range(len(columns))]
    return np.dtype(
        [("columns", ">i2"), *[field for pair in zip(lengths, values, strict=True) for field in pair]]
    )


def packed(table: pa.Table) -> bytes:
    """Return a table of whole numbers in the binary copy format."""
    rows = np.empty(len(table), _row_type(table.column_names))
    rows["columns"] = table.num_columns
    for number, column in enumerate(table.columns):
        rows[f"length{number}"] = 8
        rows[f"value{number}"] = column.to_numpy()
    return _SIGNATURE + rows.tobytes() + b"\xff\xff"


def unpacked(content: bytes, columns: Sequence[str]) -> pa.Table | None:
    """Read whole numbers from a binary copy; return None if it contains nulls, which make rows shorter."""
    kind = _row_type(columns)
    body = len(content) - len(_SIGNATURE) - 2
    is_valid = body % kind.itemsize == 0
    rows = (
        np.frombuffer(content, kind, body // kind.itemsize, len(_SIGNATURE))
        if is_valid
        else np.empty(0, kind)
    )
    if not is_valid or any((rows[f"length{number}"] != 8).any() for number in range(len(columns))):
        return None
    return pa.table({name: rows[f"value{number}"].astype(np.int64) for number, name in enumerate(columns)})


# Types whose values do not change if they are read and written again; other types are read as text.
PLAIN = re.compile(
    r"(smallint|integer|bigint|real|double precision|numeric|boolean|text|character varying|date"
    r"|timestamp|time without time zone)(\W.*)?( with(out)? time zone)?"
)
_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_decimal, "numeric"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
)


def _text(value: Any) -> str:
    """Return a value as the text that the database writes for it."""
    raise TypeError


def _trim(value: Any) -> Any:
    raise TypeError


trimmed = ibis.udf.scalar.builtin(_trim, name="trim_scale", signature=(("decimal",), "decimal"))
_as_text_function = ibis.udf.scalar.builtin(_text, name="text", signature=((None,), "string"))


def is_plain(kind: Any) -> bool:
    """Return whether values of a type do not change if they are read and written again."""
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_array()) or (
        kind.is_temporal() and not kind.is_interval()
    )


def in_text(table: Table, columns: Sequence[str]) -> Table:
    """Return a table with some columns as text, in the notation of the database."""
    return table.mutate(**{name: _as_text_function(table[name]) for name in columns}) if columns else table


def type_of(kind: pa.DataType) -> str:
    """Return the name of the database type for values of an Arrow type."""
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    return next((name for is_one, name in _TYPES if is_one(kind)), "text")


def arrow_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return rows as an Arrow table; decimals keep all their digits."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [
        pa.array(values, None if pa.types.is_decimal(field.type) and any(values) else field.type)
        for field, values in zip(schema, columns, strict=True)
    ]
    return pa.table(arrays, names=schema.names)
