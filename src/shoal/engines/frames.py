"""Tables in memory: data frames of the caller, and binary files that are read into an Arrow table.

A damaged Arrow file can hold offsets that point outside its buffers. Every array is therefore checked before
use, and files are not memory-mapped: if a mapped file were truncated, the process would be killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.relational.relations import INTERNAL, text_of
from shoal.errors import DataError
from shoal.files.limits import check_columns, check_unpacked, limits
from shoal.wording import quote

_HEADER = "Does the table begin with a line of column names? Give every column one of its own."


def is_encodable(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_names(names: Sequence[str]) -> None:
    """Refuse column names that the database would rename or confuse, and tables without columns."""
    if not names:
        raise DataError("The table has no columns. Give one that has some.")
    number_of_name: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(f"Column {number} has no name. {_HEADER}")
        if not is_encodable(name):
            raise DataError(
                f"The name of column {number} contains an incomplete character (a lone surrogate). Rename it."
            )
        if name.startswith(INTERNAL):
            raise DataError(
                f"Column {name!r}: names that begin with {INTERNAL!r} are shoal's own. Rename it."
            )
        other = number_of_name.setdefault(name.lower(), number)
        if other != number:
            # The names are not shown: the line may be a record instead of a header.
            problem = "the same name" if names[other - 1] == name else "names that differ only in case"
            raise DataError(f"Columns {other} and {number} have {problem}. {_HEADER}")


def checked(table: pa.Table) -> pa.Table:
    """Refuse ambiguous names, and convert types that the database does not have."""
    check_names(table.column_names)
    columns = [_readable(name, table[name]) for name in table.column_names]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _readable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert types that the database does not have; a time with a zone becomes the local time."""
    kind = column.type
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    if pa.types.is_interval(kind):
        return text_column(
            [
                None if value is None else f"{value.months}M{value.days}d{value.nanoseconds}ns"
                for value in column.to_pylist()
            ]
        )
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(kind):
        return text_column(column.to_pylist())
    if pa.types.is_time(kind):
        return _times(column).cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.tz:
        try:
            return pc.local_timestamp(column)
        except pa.ArrowInvalid:
            raise DataError(
                f"Column {quote(name)} holds times of an unknown zone. Turn them into text."
            ) from None
    return column


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times of day to microseconds, unless some are more precise."""
    try:
        return column.cast(pa.time64("us"))
    except pa.ArrowInvalid:
        return column


@dataclass(frozen=True)
class Frame:
    """A data frame, the Arrow table that engines read in its place, and how the two differ."""

    frame: Any
    arrow: pa.Table
    notes: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()  # the columns of durations, which are numbers or text in the Arrow table


def arrow_of(source: Any) -> pa.Table:
    """Convert a data frame to an Arrow table, without its index."""
    return read_frame(source).arrow


def read_frame(source: Any) -> Frame:
    """Convert a data frame to a Frame; a lazy frame is collected once."""
    library = library_of(source)
    if library == "pyarrow":
        return _readable_frame(source, source)
    if library == "pandas":
        names = [str(name) for name in source.columns]
        check_names(names)
        columns = [_valid_column(source.iloc[:, number], name) for number, name in enumerate(names)]
        notes = tuple(
            f"Column {name!r} holds values of several types. They are compared as text: 1 and '1' are equal."
            for name, (_, mixed) in zip(names, columns, strict=True)
            if mixed
        )
        arrow = pa.Table.from_arrays([column for column, _ in columns], names=names)
        return _readable_frame(source, arrow, notes)
    if library == "polars":
        frame = source.collect() if hasattr(source, "collect") else source
        columns = [_polars_column(frame[name]) for name in frame.columns]
        return _readable_frame(frame, pa.Table.from_arrays(columns, names=frame.columns))
    type_name = type(source).__name__
    raise DataError(
        f"Cannot read a table from {type_name}. Give a path, or a pandas, polars or pyarrow table."
    )


def _readable_frame(frame: Any, arrow: pa.Table, notes: tuple[str, ...] = ()) -> Frame:
    """Check the Arrow table of a frame, and list its columns of durations."""
    durations = [
        field.name
        for field in arrow.schema
        if pa.types.is_duration(field.type) or pa.types.is_interval(field.type)
    ]
    return Frame(frame, checked(arrow), notes, tuple(durations))


def library_of(source: Any) -> str | None:
    """Return the name of a data frame's library, or None if the object is not a data frame."""
    if isinstance(source, pa.Table):
        return "pyarrow"
    library = type(source).__module__.partition(".")[0]
    framed = hasattr(type(source), "columns")  # a series is not a table
    return library if framed and library in ("pandas", "polars") else None


def _valid_column(series: Any, name: str) -> tuple[pa.Array, bool]:
    """Convert a column to Arrow, or refuse text that cannot be written to a file."""
    try:
        return _pandas_column(series)
    except UnicodeEncodeError:  # its message quotes the text
        raise DataError(
            f"Column {quote(name)} has text with an incomplete character (a lone surrogate). Correct it."
        ) from None


def _pandas_column(series: Any) -> tuple[pa.Array, bool]:
    """Convert a column to Arrow; mixed types and periods become text. Also return whether types are mixed."""
    import pandas

    if isinstance(series.dtype, pandas.SparseDtype):
        series = series.sparse.to_dense()
    values = getattr(series.dtype, "categories", series).dtype  # categories of pandas.cut are intervals
    if str(values).startswith(("period", "interval", "complex")):
        series = series.astype("string")
    mixed = series.dtype == object and _is_mixed(series)
    try:
        column = text_column(_python_values(series)) if mixed else pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        column = text_column(_python_values(series))
    return (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column), mixed


def _polars_column(series: Any) -> pa.Array:
    """Convert a column to Arrow; types that Arrow lacks, such as 128-bit integers, become text."""
    import polars

    if series.dtype == polars.Object:
        return text_column(series.to_list())
    try:
        return series.to_arrow()
    except pa.ArrowException:
        return text_column(series.to_list())


def _is_mixed(series: Any) -> bool:
    """Return whether a column of objects holds values of several types; numbers count as one type."""
    types = set(map(type, series[series.notna()]))
    return len(types) > 1 and not all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in types
    )


def _python_values(series: Any) -> list[Any]:
    """Return a column's values, with None for missing values."""
    return [None if null else value for value, null in zip(series, series.isna(), strict=True)]


def text_column(values: Sequence[Any]) -> pa.Array:
    """Return values as the texts that hierarchies use."""
    plain = (value.item() if isinstance(value, np.bool_ | np.floating) else value for value in values)
    return pa.array([text_of(value) for value in plain], pa.string())


def read_arrow(path: Path) -> pa.Table:
    """Read an Arrow file (Feather version 2) and check all of it."""
    with open(path, "rb") as file:
        if file.read(4) == b"FEA1":
            # Its reader does not validate the file: 136 of 1,000 damaged files crashed the process.
            raise DataError(
                f"{quote(path)} is a Feather file of version 1, which cannot be read safely. Save it as "
                "version 2, as pyarrow.feather.write_feather does, or as Parquet."
            )
    with _damage_reported(path):
        from pyarrow.feather import read_table  # a slow import, and most tables are text

        table = read_table(str(path), memory_map=False)
        table.validate(full=True)
        _ = table.column_names  # raises if they are not UTF-8
        return table


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet file."""
    with _damage_reported(path):
        from pyarrow.parquet import read_schema

        return list(read_schema(str(path)).names)


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    """Translate the errors of readers, whose messages may quote the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        reason = getattr(error, "strerror", None)
        raise DataError(
            f"{quote(path)} cannot be read: {reason or 'it is damaged'}. Use an intact copy."
        ) from None


_BYTES_OF_A_CELL = 8  # minimum memory per cell


def read_foreign(path: Path, ending: str) -> pa.Table:
    """Read a file of another program, or the first sheet of a workbook, into an Arrow table."""
    package, read = READERS[ending]
    with _foreign_errors(path, ending, package) as library:
        table: pa.Table = read(library, str(path), ending)
    return table


@contextmanager
def _foreign_errors(path: Path, ending: str, package: str) -> Iterator[Any]:
    """Yield the library for a file format, and translate its errors, which may quote cells."""
    try:
        library = import_module(package)
    except ImportError:
        raise DataError(
            f"Reading {ending} files needs {package}. Install it with: pip install 'shoal[formats]'."
        ) from None
    try:
        yield library
    except DataError:
        raise
    except Exception:
        # Each library has its own error types, whose messages may quote cells.
        raise DataError(
            f"{str(path)!r} cannot be read as {ending}: it is damaged, or of another program."
        ) from None


@dataclass(frozen=True)
class WorkbookSheet:
    """A sheet of a workbook, and the number of its header row, from 1."""

    name: str
    header_row: int = 1


_LOOKED_AT = 20  # rows that are searched for the header
_WIDEST = 1_000  # columns that are searched for the header


def list_sheets(path: Path) -> list[WorkbookSheet]:
    """Return the non-empty sheets; the header is the fullest of the top rows, the first if several are."""
    sheets = []
    with _foreign_errors(path, ".xlsx", "openpyxl") as openpyxl, open(path, "rb") as file:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            for sheet in workbook.worksheets:
                rows = sheet.iter_rows(max_row=_LOOKED_AT, max_col=_WIDEST, values_only=True)
                filled = [sum(cell is not None for cell in row) for row in rows]
                if any(filled):
                    sheets.append(WorkbookSheet(sheet.title, 1 + filled.index(max(filled))))
        finally:
            workbook.close()
    return sheets


def read_sheet(path: Path, sheet: WorkbookSheet) -> pa.Table:
    """Read a sheet of a workbook without the rows above its header."""
    with _foreign_errors(path, ".xlsx", "openpyxl") as openpyxl:
        return _excel(openpyxl, str(path), ".xlsx", sheet)


def _excel(openpyxl: Any, path: str, _: str, sheet: WorkbookSheet | None = None) -> pa.Table:
    with open(path, "rb") as file:  # the library leaves unreadable files open
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            names = [worksheet.title for worksheet in workbook.worksheets]
            if sheet is not None and sheet.name not in names:
                raise DataError("The workbook has no sheet of that name. Choose one of its sheets.")
            number = 0 if sheet is None else names.index(sheet.name)
            return _worksheet(workbook.worksheets[number], path, 1 if sheet is None else sheet.header_row)
        finally:
            workbook.close()


def _worksheet(worksheet: Any, path: str, header_row: int) -> pa.Table:
    rows = worksheet.iter_rows(min_row=header_row, max_row=header_row, values_only=True)
    header = next(rows, None)
    if header is None:
        raise DataError(f"{path!r} is empty. Give a table with a line of column names.")
    check_columns(repr(path), len(header))
    rows = worksheet.iter_rows(min_row=header_row + 1, max_col=len(header), values_only=True)
    kept = list(_filled(rows, path))
    names = ["" if name is None else str(name) for name in header]
    columns = [_column([row[column] for row in kept]) for column in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _filled(rows: Iterable[tuple[Any, ...]], path: str) -> Iterator[tuple[Any, ...]]:
    """Yield the non-empty rows, and check the memory that their cells need."""
    size = 0
    for row in rows:
        if any(cell is not None for cell in row):
            size += _BYTES_OF_A_CELL * len(row)
            check_unpacked(repr(path), size)
            yield row


def _statistics(pyreadstat: Any, path: str, ending: str) -> pa.Table:
    """Read SPSS, SAS or Stata data; labelled codes stay codes."""
    reader = {
        ".sav": "sav",
        ".zsav": "sav",
        ".por": "por",
        ".sas7bdat": "sas7bdat",
        ".xpt": "xport",
        ".dta": "dta",
    }
    read = getattr(pyreadstat, f"read_{reader[ending]}")
    max_bytes = limits().unpacked
    if max_bytes is None:
        data, _ = read(path, output_format="dict")
    else:
        _, metadata = read(path, metadataonly=True)
        check_columns(repr(path), metadata.number_columns)
        widths = (max(_BYTES_OF_A_CELL, width) for width in metadata.variable_storage_width.values())
        record = max(1, sum(widths))
        # Limit the rows, because the header may be wrong.
        data, _ = read(path, output_format="dict", row_limit=max_bytes // record + 1)
        check_unpacked(repr(path), record * max(map(len, data.values()), default=0))
    return pa.Table.from_arrays([_column(list(values)) for values in data.values()], names=list(data))


def _column(values: list[Any]) -> pa.Array:
    """Return values as an Arrow column; mixed types become text, empty text and NaN become missing."""
    cleaned = [None if value == "" or value != value else value for value in values]
    try:
        return pa.array(cleaned)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # mixed types, or beyond 64 bits
        return pa.array([None if value is None else str(value) for value in cleaned])


READERS: dict[str, tuple[str, Callable[[Any, str, str], pa.Table]]] = {
    ".xlsx": ("openpyxl", _excel),
    ".sav": ("pyreadstat", _statistics),
    ".zsav": ("pyreadstat", _statistics),
    ".por": ("pyreadstat", _statistics),
    ".sas7bdat": ("pyreadstat", _statistics),
    ".xpt": ("pyreadstat", _statistics),
    ".dta": ("pyreadstat", _statistics),
}
