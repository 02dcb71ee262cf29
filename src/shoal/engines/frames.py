"""Frames and files of rows: what pandas, polars and pyarrow hold, as arrow tables that engines read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.relations import OWN
from shoal.errors import DataError

_HEADER = "Does the table begin with a line of column names? Give every column one of its own."


def check_names(names: Sequence[str]) -> None:
    """Refuse names that the database would rename or confuse, and a table without any."""
    if not names:
        message = "The table has no columns. Give one that has some."
        raise DataError(message)
    seen: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if not name:
            message = f"Column {place} has no name. {_HEADER}"
            raise DataError(message)
        if name.startswith(OWN):
            message = f"Column {name!r}: names that begin with {OWN!r} are shoal's own. Rename it."
            raise DataError(message)
        other = seen.setdefault(name.lower(), place)
        if other != place:
            # Neither name is shown: such a line may be a record and no header.
            same = "the same name" if names[other - 1] == name else "names that differ only in case"
            message = f"Columns {other} and {place} have {same}. {_HEADER}"
            raise DataError(message)


def checked(table: pa.Table) -> pa.Table:
    """Refuse ambiguous names; a column of nothing but nulls is text, and half floats are floats."""
    check_names(table.column_names)
    columns = [_readable(name, table[name]) for name in table.column_names]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _readable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn types that the database lacks into those it has; a time with a zone is the time on the wall."""
    kind = column.type
    if pa.types.is_duration(kind):
        message = f"Column {name!r} holds durations. Turn them into numbers or text."
        raise DataError(message)
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_time(kind):
        return column.cast(pa.time64("us"), safe=False).cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.tz:
        return pc.local_timestamp(column)
    return column


def arrow_of(source: Any) -> pa.Table:
    """Turn a frame into an arrow table; a frame's index is not data."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.Table):
        return checked(source)
    framed = hasattr(type(source), "columns")  # a series is no table
    if kind == "pandas" and framed:
        check_names([str(name) for name in source.columns])
        columns = [_pandas_column(source.iloc[:, place]) for place in range(source.shape[1])]
        return checked(pa.Table.from_arrays(columns, names=[str(name) for name in source.columns]))
    if kind == "polars" and framed:
        return checked((source.collect() if hasattr(source, "collect") else source).to_arrow())
    what = type(source).__name__
    message = f"Cannot read a table from {what}. Give a path, or a pandas, polars or pyarrow table."
    raise DataError(message)


def _pandas_column(series: Any) -> pa.Array:
    """Turn a column into arrow; periods and a mixture of types become text."""
    if str(series.dtype).startswith(("period", "complex")):
        series = series.astype("string")
    try:
        found = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        found = pa.array(series.astype("string"), from_pandas=True)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def like_frame(arrow: pa.Table, like: Any, as_is: Sequence[str]) -> Any:
    """Turn an arrow table into a frame of the same kind as another; some columns keep their types."""
    kind = type(like).__module__.partition(".")[0]
    for place, name in enumerate(arrow.column_names):
        zone = _zone_of(like, name) if name in as_is else None
        if zone and pa.types.is_timestamp(arrow[name].type) and not arrow[name].type.tz:
            there = pc.assume_timezone(arrow[name], zone, ambiguous="earliest", nonexistent="earliest")
            arrow = arrow.set_column(place, name, there)
    if kind == "pandas":
        frame = arrow.to_pandas()
        for name in as_is:
            with suppress(TypeError, ValueError):
                frame[name] = frame[name].astype(like[name].dtype)
        return frame
    if kind == "polars":
        import polars

        frame = polars.from_arrow(arrow)
        schema = like.collect_schema()
        for name in as_is:
            with suppress(polars.exceptions.PolarsError):
                frame = frame.with_columns(polars.col(name).cast(schema[name]))
        return frame
    for name in as_is if isinstance(like, pa.Table) else ():
        with suppress(pa.ArrowException):
            place = arrow.column_names.index(name)
            arrow = arrow.set_column(place, name, arrow[name].cast(like.schema.field(name).type))
    return arrow


def _zone_of(frame: Any, name: str) -> str | None:
    """Return the zone of a frame's times, which were read as those on the wall there."""
    if isinstance(frame, pa.Table):
        kind: Any = frame.schema.field(name).type
    elif hasattr(frame, "collect_schema"):
        kind = frame.collect_schema()[name]
    elif hasattr(frame, "dtypes"):
        kind = getattr(frame[name].dtype, "pyarrow_dtype", frame[name].dtype)
    else:  # a path, say
        return None
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    return None if zone is None else str(zone)
