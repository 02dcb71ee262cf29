"""DuckDB through Ibis: the embedded engine, for files and frames on this machine."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import duckdb
import ibis
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet
from ibis.expr.types import Table

from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.recoding import Recoding
from shoal.engines import relations
from shoal.engines.foreign import READERS, read_foreign
from shoal.errors import DataError, OutputError, PolicyError, UsageError

_OWN = "shoal_"  # begins the names of frames that the database reads where they are


@dataclass(frozen=True)
class DuckDb(Engine):
    """Reads and writes files in place; rows never pass through Python."""

    memory_limit: str | None = None  # such as 4GB

    formats: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")

    def __post_init__(self) -> None:
        """Refuse a memory limit that is not a size."""
        if self.memory_limit and not re.fullmatch(r"0*[1-9]\d*(\.\d+)? ?[KMGT]i?B", self.memory_limit, re.I):
            message = f"memory_limit must be a size such as 4GB or 500MB, got {self.memory_limit!r}."
            raise PolicyError(message)

    @cached_property
    def connection(self) -> Any:
        """The connection that all tables of this engine live in."""
        # What does not fit in memory spills to a folder that is ours alone and goes with the connection.
        spill = tempfile.mkdtemp(prefix="shoal-")
        connection = ibis.duckdb.connect(temp_directory=spill)
        weakref.finalize(connection, shutil.rmtree, spill, ignore_errors=True)
        if self.memory_limit:
            connection.raw_sql(f"SET memory_limit = '{self.memory_limit}'")
        return connection

    def spill(self, folder: Path) -> None:
        """Let what does not fit in memory go to a folder, unless some has already gone elsewhere."""
        with suppress(duckdb.NotImplementedException):
            self.connection.con.execute("SET temp_directory = ?", [str(folder)])

    @cached_property
    def _paths(self) -> dict[str, Path]:
        """The file behind each table, to name it in errors."""
        return {}

    def open(self, source: Any) -> Table:
        """Open a path, or take a pandas, polars or pyarrow table or an Ibis expression."""
        if isinstance(source, Table):
            return source
        if isinstance(source, str | Path):
            return self._read(Path(source))
        return self._registered(_arrow(source))

    def columns(self, table: Table) -> tuple[str, ...]:
        """Name the table's columns."""
        return tuple(table.columns)

    def count(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count combinations inside the database."""
        with _told(self._paths.get(getattr(table.op(), "name", ""))):
            return relations.count(table, columns, sensitive)

    def positions(
        self, table: Table, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
    ) -> IntArray:
        """Find rows of a file or a frame; a table of a database has no order."""
        name = getattr(table.op(), "name", "")
        if name not in self._paths and not name.startswith(_OWN):
            message = "A table of a database has no order, so no row numbers. Give a file or a frame."
            raise UsageError(message)
        with _told(self._paths.get(name)):
            return relations.positions(table, columns, domains, keys)

    def recode(
        self,
        table: Table,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        *,
        keep: Sequence[str],
        blank: Sequence[str] | None,
    ) -> Table:
        """Recode by joins, lazily."""
        return relations.recode(table, recoding, domains, keep, blank)

    def write(self, table: Table, path: Path) -> None:
        """Write a file in the format that its ending says."""
        kind = self.format_of(path)
        try:
            with _told():
                if kind == ".parquet":
                    self.connection.to_parquet(table, path)
                elif kind in (".arrow", ".feather"):
                    pyarrow.feather.write_feather(self.connection.to_pyarrow(table), str(path))
                else:
                    delimiter = "\t" if kind == ".tsv" else ","
                    options = {"compression": "gzip"} if kind.endswith(".gz") else {}
                    self.connection.to_csv(table, path, header=True, delimiter=delimiter, **options)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise  # the draft says where, and what to do
            message = f"Cannot write {str(path)!r}: {error.strerror}."
            raise OutputError(message) from None

    def materialize(self, table: Table, like: Any, as_is: Sequence[str]) -> Any:
        """Return a table of the same kind as another: pandas, polars, pyarrow or Ibis."""
        if isinstance(like, Table):
            return table
        with _told():
            arrow = self.connection.to_pyarrow(table)
        kind = type(like).__module__.partition(".")[0]
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

    def _registered(self, table: pa.Table) -> Table:
        """Let the database read an arrow table where it is, without a copy."""
        name = f"{_OWN}{uuid4().hex}"
        self.connection.con.register(name, table)
        return self.connection.table(name)

    def format_of(self, path: Path, *, reading: bool = False) -> str:
        """Return the ending that tells a file's format; some can be read but not written."""
        known = (*self.formats, *READERS) if reading else self.formats
        for ending in sorted(known, key=len, reverse=True):
            if path.name.lower().endswith(ending):
                return ending
        message = f"Unknown format of {path.name!r}. Use one of {', '.join(known)}."
        raise DataError(message)

    def _read(self, path: Path) -> Table:
        kind = self.format_of(path, reading=True)
        if not path.exists():
            message = f"No such file: {str(path)!r}."
            raise DataError(message)
        if not path.is_file():
            message = f"{str(path)!r} is not a file."
            raise DataError(message)
        if path.stat().st_size == 0:
            message = f"{str(path)!r} is empty."
            raise DataError(message)
        with _told(path):
            if kind in (".arrow", ".feather"):
                return self._registered(_checked(pyarrow.feather.read_table(str(path))))
            if kind in READERS:
                return self._registered(_checked(read_foreign(path, kind)))
            if kind == ".parquet":
                _check_names(pyarrow.parquet.read_schema(str(path)).names)
                table = self.connection.read_parquet(str(path))
            else:
                table = self._read_text(path, kind)
        self._paths[table.get_name()] = path
        return table

    def _read_text(self, path: Path, kind: str) -> Table:
        """Read every column as text, so that 007 stays 007 and what is kept as is stays as it was.

        Nothing is guessed but the delimiter, and that from the header: a guess that looks at rows can
        take a ragged row for the header.
        """
        opener = gzip.open if kind.endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            while header.count('"') % 2 and (more := file.readline()):  # a name may hold line breaks
                header += more
        outside = re.sub(r'"[^"]*"', "", header)
        delimiter = "\t" if kind == ".tsv" else max(",;\t|", key=outside.count)
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
        _check_names(names)
        return self.connection.read_csv(
            str(path),
            columns=dict.fromkeys(names, "VARCHAR"),
            auto_detect=False,
            header=True,
            delim=delimiter,
            quote='"',
            escape='"',
            nullstr="",
        )


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that the database would rename or confuse, and a table without any."""
    if not names:
        message = "The table has no columns. Give one that has some."
        raise DataError(message)
    seen: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if not name:
            message = f"Column {place} has no name. Give every column one."
            raise DataError(message)
        if name.startswith(relations.OWN):
            message = f"Column {name!r}: names that begin with {relations.OWN!r} are shoal's own. Rename it."
            raise DataError(message)
        other = seen.setdefault(name.lower(), place)
        if other != place:
            same = "the same name" if names[other - 1] == name else "names that differ only in case"
            # A line with numbers is a record, not a header: it is not shown.
            shown = (
                "" if any(re.search(r"\d{2}", n) for n in names) else f": {names[other - 1]!r} and {name!r}"
            )
            message = f"Columns {other} and {place} have {same}{shown}. Rename one."
            raise DataError(message)


def _checked(table: pa.Table) -> pa.Table:
    """Refuse ambiguous names; a column of nothing but nulls is text, and half floats are floats."""
    _check_names(table.column_names)
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


def _arrow(source: Any) -> pa.Table:
    """Turn a frame into an arrow table; a frame's index is not data."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.Table):
        return _checked(source)
    framed = hasattr(type(source), "columns")  # a series is no table
    if kind == "pandas" and framed:
        _check_names([str(name) for name in source.columns])
        columns = [_pandas_column(source.iloc[:, place]) for place in range(source.shape[1])]
        return _checked(pa.Table.from_arrays(columns, names=[str(name) for name in source.columns]))
    if kind == "polars" and framed:
        return _checked((source.collect() if hasattr(source, "collect") else source).to_arrow())
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


@contextmanager
def _told(path: Path | None = None) -> Iterator[None]:
    """Turn the database's errors into ours: its texts may quote rows."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError):
        message = f"{str(path)!r} is not a gzip file."
        raise DataError(message) from None
    except UnicodeDecodeError:
        message = f"{str(path)!r} is not UTF-8 text. Convert it first."
        raise DataError(message) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None  # the database's word for a signal
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, MemoryError):
        message = "The database ran out of memory. Raise --memory-limit or free disk space."
        raise DataError(message) from None
    except duckdb.IOException as error:
        if "no space left" in str(error).lower() or "quota" in str(error).lower():
            # The database names the file that it could not write.
            named = re.search(r'file \\?"([^"\\]+)', str(error))
            where = f"in the folder {str(Path(named[1]).parent)!r}" if named else "on the disk"
            message = f"No space is left {where}. Free some space there and run again."
            raise OutputError(message) from None
        what = repr(str(path)) if path else "a file"
        message = f"The database could not read or write {what}."
        raise DataError(message) from None
    except (duckdb.Error, pa.ArrowException) as error:
        line = re.search(r"Line: (\d+)", str(error))
        where = f" at line {line.group(1)}" if line else ""
        what = "is not UTF-8 text" if "utf" in str(error).lower() else "cannot be read"
        name = repr(str(path)) if path else "The table"
        check = "Check its delimiter, quotes, line ends and encoding."
        message = f"{name} {what}{where} ({type(error).__name__}). {check}"
        raise DataError(message) from None
