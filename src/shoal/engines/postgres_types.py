"""Types of PostgreSQL: which values come here and go back unchanged, and what ours are called there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr.types import Table

# Types whose values come here and go back unchanged; those of other types are read as text.
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
    """Write a value as the database writes it."""
    raise TypeError


def _trim(value: Any) -> Any:
    """Write a number without zeros at its end."""
    raise TypeError


trimmed = ibis.udf.scalar.builtin(_trim, name="trim_scale", signature=(("decimal",), "decimal"))
_as_text = ibis.udf.scalar.builtin(_text, name="text", signature=((None,), "string"))


def is_plain(kind: Any) -> bool:
    """Tell whether values of a type come here and go back unchanged."""
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_array()) or (
        kind.is_temporal() and not kind.is_interval()
    )


def in_text(table: Table, columns: Sequence[str]) -> Table:
    """Read some columns as text, as the database writes them."""
    return table.mutate(**{name: _as_text(table[name]) for name in columns}) if columns else table


def type_of(kind: pa.DataType) -> str:
    """Name the type of the database that holds such values."""
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    return next((name for is_one, name in _TYPES if is_one(kind)), "text")


def arrow_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Make a table of rows; decimals take as many digits as they have."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [
        pa.array(values, None if pa.types.is_decimal(field.type) and any(values) else field.type)
        for field, values in zip(schema, columns, strict=True)
    ]
    return pa.table(arrays, names=schema.names)
