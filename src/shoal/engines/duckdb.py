"""DuckDB through Ibis: the embedded engine, for files and frames on this machine."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import duckdb
import ibis
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from ibis.expr.types import Table

from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.recoding import Recoding
from shoal.engines import relations
from shoal.errors import DataError, OutputError, PolicyError


@dataclass(frozen=True)
class DuckDb(Engine):
    """Reads and writes files in place; rows never pass through Python."""

    memory_limit: str | None = None  # such as 4GB

    formats: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")

    def __post_init__(self) -> None:
        """Refuse a memory limit that is not a size."""
        if self.memory_limit and not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", self.memory_limit):
            message = f"memory_limit must be a size such as 4GB or 500MB, got {self.memory_limit!r}."
            raise PolicyError(message)

    @cached_property
    def connection(self) -> Any:
        """The connection that all tables of this engine live in."""
        connection = ibis.duckdb.connect()
        if self.memory_limit:
            with _told():
                connection.raw_sql(f"SET memory_limit = '{re.sub(r'[^0-9A-Za-z.%]', '', self.memory_limit)}'")
        return connection

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
        with _told(self._paths.get(table.get_name())):
            return relations.count(table, columns, sensitive)

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
            message = f"Cannot write {str(path)!r}: {error.strerror}."
            raise OutputError(message) from None

    def materialize(self, table: Table, like: Any) -> Any:
        """Return a table of the same kind as another: pandas, polars, pyarrow or Ibis."""
        if isinstance(like, Table):
            return table
        with _told():
            arrow = self.connection.to_pyarrow(table)
        kind = type(like).__module__.partition(".")[0]
        if kind == "pandas":
            return arrow.to_pandas()
        if kind == "polars":
            import polars

            return polars.from_arrow(arrow)
        return arrow

    def _registered(self, table: pa.Table) -> Table:
        """Let the database read an arrow table where it is, without a copy."""
        name = f"shoal_{uuid4().hex}"
        self.connection.con.register(name, table)
        return self.connection.table(name)

    def format_of(self, path: Path) -> str:
        """Return the ending that tells a file's format."""
        name = path.name.lower()
        for ending in sorted(self.formats, key=len, reverse=True):
            if name.endswith(ending):
                return ending
        message = f"Unknown format of {path.name!r}. Use one of {', '.join(self.formats)}."
        raise DataError(message)

    def _read(self, path: Path) -> Table:
        kind = self.format_of(path)
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
            line = file.readline()
        delimiter = "\t" if kind == ".tsv" else max(",;\t|", key=_outside_quotes(line).count)
        names = next(csv.reader([line], delimiter=delimiter), [])
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


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that the database would rename or confuse."""
    seen: dict[str, str] = {}
    for place, name in enumerate(names, 1):
        if not name:
            message = f"Column {place} has no name. Give every column one."
            raise DataError(message)
        if name.startswith(relations.OWN):
            message = f"Column {name!r}: names that begin with {relations.OWN!r} are shoal's own. Rename it."
            raise DataError(message)
        if name.lower() in seen:
            other = seen[name.lower()]
            same = "the same name" if other == name else "names that differ only in case"
            message = f"Two columns have {same}: {other!r} and {name!r}. Rename one."
            raise DataError(message)
        seen[name.lower()] = name


def _checked(table: pa.Table) -> pa.Table:
    """Refuse ambiguous names; a column of nothing but nulls is text."""
    _check_names(table.column_names)
    kinds = [pa.string() if pa.types.is_null(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema(zip(table.column_names, kinds, strict=True)))


def _arrow(source: Any) -> pa.Table:
    """Turn a frame into an arrow table; a frame's index is not data."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.Table):
        return _checked(source)
    if kind == "pandas":
        _check_names([str(name) for name in source.columns])
        return _checked(pa.Table.from_pandas(source, preserve_index=False))
    if kind == "polars":
        return _checked(source.to_arrow())
    what = type(source).__name__
    message = f"Cannot read a table from {what}. Give a path, or a pandas, polars or pyarrow table."
    raise DataError(message)


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
    except (duckdb.OutOfMemoryException, MemoryError):
        message = "The database ran out of memory. Raise --memory-limit or free disk space."
        raise DataError(message) from None
    except duckdb.IOException as error:
        if "space" in str(error).lower():
            message = "No space is left on the disk."
            raise OutputError(message) from None
        what = repr(str(path)) if path else "a file"
        message = f"The database could not read or write {what}."
        raise DataError(message) from None
    except (duckdb.Error, pa.ArrowInvalid) as error:
        line = re.search(r"Line: (\d+)", str(error))
        where = f" at line {line.group(1)}" if line else ""
        what = "is not UTF-8 text" if "utf" in str(error).lower() else "cannot be read"
        name = repr(str(path)) if path else "The table"
        message = f"{name} {what}{where} ({type(error).__name__}). Check its delimiter, quotes and encoding."
        raise DataError(message) from None
