"""DuckDB: the embedded engine, for files and frames on this machine."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import duckdb
import pyarrow as pa

from shoal.core.arrays import IntArray
from shoal.core.contracts import ReleaseColumns
from shoal.core.counts.counts import Counts, Domain
from shoal.core.targets import Target
from shoal.engines.duckdb import query
from shoal.engines.duckdb.connection import Database, connect, translate_errors
from shoal.engines.duckdb.query import SqlTable, Type, quote
from shoal.engines.file_checks import check_cells, check_content, check_size
from shoal.engines.frames import READERS, check_names, checked, parquet_names, read_arrow, read_foreign
from shoal.engines.names import check_readable, ending_of
from shoal.engines.relational import few_rows, relations
from shoal.engines.relational.columns import count_each, count_unique
from shoal.engines.relational.engine import TEMPORARY, RelationalEngine, temporary_name
from shoal.engines.text import TextFile, check_lines, read_header
from shoal.errors import Note, UsageError
from shoal.files.limits import check_columns
from shoal.files.signals import check
from shoal.files.text import UTF_8, must_quote, other_encoding

if TYPE_CHECKING:
    from shoal.core.rows import Browse

T = TypeVar("T")

_FEW_ROWS = 2_000_000  # with more rows, combinations are grouped by packed keys instead of values
_SHARE, _PACKED = 16, 10  # a loaded text file may use 1/16 of the memory; gzip compresses text about 10 times
_READ_ONLY = (".txt", *READERS)


@dataclass(frozen=True)
class DuckDb(RelationalEngine):
    """Reads and writes files in place; rows of large tables never pass through Python."""

    ibis_backend = "duckdb"
    estimates: ClassVar[bool] = True
    caches_rows: ClassVar[bool] = True
    formats: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")
    sorts: ClassVar[bool] = True
    most_joins: ClassVar[int] = 32

    @property
    def expressions(self) -> Any:
        return query

    @classmethod
    def on(cls, backend: Any, memory_limit: str | None = None) -> Self:
        """Work in the database of an Ibis connection."""
        engine = cls(memory_limit=memory_limit)
        engine.__dict__["connection"], engine.__dict__["_backend"] = backend.con, backend
        return engine

    @cached_property
    def connection(self) -> Any:
        half = self.memory // 2  # the counts in Python take the other half
        database = self.__dict__["_database"] = connect(self, half, self.__dict__.get("_output"))
        return database.session

    @cached_property
    def _backend(self) -> Any:
        """An Ibis backend on the same connection, for tables of Ibis."""
        import ibis

        return ibis.duckdb.from_connection(self.connection)

    @property
    def _database(self) -> Database | None:
        """The database that this engine created; None if the connection belongs to the user."""
        return self.__dict__.get("_database")

    def interrupt(self) -> None:
        with suppress(duckdb.Error):  # the connection may be closed
            if "connection" in self.__dict__:
                self.connection.interrupt()

    def spill(self, output: Path) -> None:
        """Store data that does not fit in memory next to an output, unless it already spilled elsewhere."""
        self.__dict__["_output"] = output
        if self._database is not None:
            self._database.spill(output)

    def open(self, source: Any) -> SqlTable:
        if self._database is not None and not self._database.folders:
            self._database.spill(None)
        if _is_ibis(source):
            check_names(source.columns)
            return self._of_ibis(source)
        return super().open(source)

    def is_table(self, source: Any) -> bool:
        return isinstance(source, SqlTable) or _is_ibis(source)

    def name_of(self, table: SqlTable) -> str:
        return table.base

    def _of_ibis(self, table: Any) -> SqlTable:
        """Return the query of an Ibis table; tables that Ibis has in memory are registered first."""
        backend = self._backend
        backend.to_pyarrow(table.limit(0))
        return SqlTable(str(backend.compile(table)), self._describe, tuple(table.columns))

    def _describe(self, sql: str) -> dict[str, str]:
        """Return the types of the columns of a query."""
        return {row[0]: str(row[1]) for row in self._retry_decoded(lambda: self._all(f"DESCRIBE {sql}"))}

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return rows

    def _table(self, name: str, types: Mapping[str, Type] | None = None) -> SqlTable:
        if types is None:
            types = {
                column: Type(kind) for column, kind in self._describe(f"SELECT * FROM {quote(name)}").items()
            }
        return SqlTable(quote(name), self._describe, tuple(types), name, types=types)

    def close(self) -> None:
        self._unload()
        if self.__dict__.pop("_output", None) is not None and self._database is not None:
            self._database.leave_output()

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {}

    @cached_property
    def _temporaries(self) -> set[str]:
        return set()

    @cached_property
    def _texts(self) -> dict[str, TextFile]:
        """The text files that the database reads, by view name."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        texts = (f"The table {text.note}" for text in self._texts.values() if text.encoding != UTF_8)
        return (*texts, *super().notes)

    def path_of(self, table: SqlTable) -> Path | None:
        return self._paths.get(table.base)

    def upload(self, table: pa.Table) -> SqlTable:
        """Let the database read an Arrow table in place, without a copy."""
        name = temporary_name()
        self.connection.register(name, table)
        return self._table(name, query.types_of(table.schema))

    def fetch(self, table: SqlTable) -> pa.Table:
        return self._ask(table.query)

    def row_count_if_few(self, table: SqlTable) -> int | None:
        self._load(table.query)
        if any(name in table.query for name in self._texts if name not in self._loaded):
            return None  # a text file must be read to count its rows
        rows = self._row_counts.get(table.source)
        if rows is None:
            rows = int(self._ask(f"SELECT count(*) AS n FROM {table.source}")["n"][0].as_py())
            if table.base in self._loaded or table.base in self._frames:  # other tables may change
                self._row_counts[table.source] = rows
        return rows if rows <= _FEW_ROWS else None

    @cached_property
    def _row_counts(self) -> dict[str, int]:
        """The numbers of rows of loaded text files and of frames, by the text after FROM."""
        return {}

    @cached_property
    def _loaded(self) -> dict[str, str]:
        """The names of the tables that hold the rows of text files, by view name."""
        return {}

    def _load(self, sql: str) -> None:
        """Load the small text files of a query into the database, so that each is parsed only once."""
        for name, text in self._texts.items():
            if name in self._loaded or name not in sql or not self._fits(text.path):
                continue
            rows = temporary_name()
            create = f"CREATE TEMP TABLE {quote(rows)} AS SELECT * FROM {quote(name)}"
            self._retry_decoded(partial(self.connection.execute, create))
            view = f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT * FROM {quote(rows)}"
            self.connection.execute(view)
            self._loaded[name] = rows

    def _fits(self, path: Path) -> bool:
        """Return whether the rows of a text file need only a small share of the memory."""
        packed = _PACKED if path.suffix.lower() == ".gz" else 1
        try:
            size = os.stat(path).st_size
        except OSError:  # the query reports what is wrong with the file
            return False
        return size * packed <= self.memory // _SHARE

    def _unload(self) -> None:
        """Drop the loaded rows of text files; they are read again if they are needed."""
        while self._loaded:
            name, rows = self._loaded.popitem()
            self._row_counts.clear()
            with suppress(duckdb.Error, OSError):
                self._view(name, self._texts[name])
                self.connection.execute(f"DROP TABLE {quote(rows)}")

    def cache_table(self, table: SqlTable) -> SqlTable:
        if table.base in self._temporaries:
            return table
        self._load(table.query)
        name = temporary_name()
        statement = f"CREATE TEMP TABLE {quote(name)} AS {table.query}"
        self._retry_decoded(lambda: self.connection.execute(statement))
        self._temporaries.add(name)
        return self._table(name)

    def sample(self, table: SqlTable, step: int) -> SqlTable:
        self._load(table.query)
        name, position = temporary_name(), quote(temporary_name())
        numbered = f"SELECT *, row_number() OVER () AS {position} FROM {table.source}"
        chosen = f"SELECT * EXCLUDE ({position}) FROM ({numbered}) WHERE hash({position}) % {step} = 0"
        with self.translate_errors(self.path_of(table)):
            self._retry_decoded(
                lambda: self.connection.execute(f"CREATE TEMP TABLE {quote(name)} AS {chosen}")
            )
        self._temporaries.add(name)
        return self._table(name)

    def discard(self, table: SqlTable) -> None:
        with suppress(duckdb.Error):
            self.connection.execute(f"DROP TABLE IF EXISTS {quote(table.base)}")

    def distinct(self, table: SqlTable, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        """Return the distinct values of columns and the number of rows; wide tables need many queries."""
        if len(columns) <= self.most_joins:
            return relations.distinct_at_once(table, columns, self.fetch)
        table, values = self.cache_table(table), {}
        for name in columns:  # several times as fast as hundreds of distinct aggregates in one query
            asked = f"SELECT DISTINCT {quote(name)} AS v FROM {table.source}"
            values[name] = self._ask(asked)["v"].combine_chunks()
        return values, relations.rows_of(self, table)

    def count_each(self, table: SqlTable, columns: Sequence[str]) -> Iterator[tuple[Counts, Domain]]:
        with self.translate_errors(self.path_of(table)):
            table = relations.without_nan(self, table, columns)
            with suppress(pa.ArrowNotImplementedError):  # a type that only the database groups by
                rows = few_rows.fetch_few(self, table, columns) if columns else None
                if rows is not None:
                    yield from list(few_rows.count_each(rows))
                    return
            kinds = {name: table[name].type() for name in columns}
            yield from count_each(table.query, kinds, self._ask)

    def count_unique(self, table: SqlTable, columns: Sequence[str]) -> dict[str, int]:
        return count_unique(table.query, columns, self._ask)

    def _ask(self, sql: str) -> pa.Table:
        self._load(sql)
        return _without_dictionaries(self._retry_decoded(lambda: self.connection.sql(sql).to_arrow_table()))

    def positions(
        self, table: SqlTable, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
    ) -> IntArray:
        """Find rows of a file or a frame; a table of a database has no order."""
        path = self.path_of(table)
        if path is None and not table.base.startswith(TEMPORARY):
            raise UsageError("A table of a database has no order, so no row numbers. Give a file or a frame.")
        self._unload()  # row numbers refer to the current file
        with self.translate_errors(path):
            return relations.positions(self, table, columns, domains, keys)

    def browse(self, table: SqlTable, classes: Sequence[str]) -> Browse:
        from shoal.engines.duckdb.rows import browser

        path = self.path_of(table)

        def ask(sql: str) -> pa.Table:
            with self.translate_errors(path):
                return self._ask(sql)

        with self.translate_errors(path):
            return browser(table, self.columns(table), classes, self.cache_table, ask)

    def target(self, output: str | Path) -> Target:
        return Target(str(output), "file", ending_of(Path(output), self.formats, _READ_ONLY))

    def write(self, table: SqlTable, target: Target) -> None:
        kind, path = target.ending, target.path
        with self.translate_errors():
            if kind in (".arrow", ".feather"):
                from pyarrow.feather import write_feather

                write_feather(self.fetch(table), str(path))
                return
            options = ["FORMAT PARQUET"]
            if kind != ".parquet":
                options = ["FORMAT CSV", "HEADER", f"DELIMITER {query.text(target.separator)}"]
                options += ["COMPRESSION GZIP"] * kind.endswith(".gz")
                options += ["FORCE_QUOTE *"] * must_quote(table.columns, target.separator)
            self._load(table.query)
            copy = f"COPY ({table.query}) TO {query.text(str(path))} ({', '.join(options)})"
            self._retry_decoded(lambda: self.connection.execute(copy))

    def materialize(
        self, recoded: SqlTable, source: Any, opened: SqlTable, columns: ReleaseColumns
    ) -> tuple[Any, tuple[str, ...]]:
        if not _is_ibis(source):
            return super().materialize(recoded, source, opened, columns)
        self.__dict__["_has_lazy_result"] = True
        name = temporary_name()
        with self.translate_errors():
            self.connection.execute(f"CREATE TEMP VIEW {quote(name)} AS {recoded.query}")
            return self._backend.table(name), ()

    def named(self, source: str | Path) -> SqlTable:
        path = Path(source)
        kind = ending_of(path, (*self.formats, *_READ_ONLY))
        check_readable(path)
        check_content(path, kind)
        with self.translate_errors(path):
            check_size(path, kind)
            if kind in (".arrow", ".feather"):
                return self.upload(_within_limits(path, checked(read_arrow(path))))
            if kind in READERS:
                return self.upload(_within_limits(path, checked(read_foreign(path, kind))))
            if kind == ".parquet":
                names = parquet_names(path)
                check_columns(repr(str(path)), len(names))
                check_names(names)
                table = self._file_view(temporary_name(), f"read_parquet({query.text(str(path))})")
            else:
                table = self._read_text(path, kind)
        self._paths[table.base] = path
        return table

    def _file_view(self, name: str, function: str, types: Mapping[str, Type] | None = None) -> SqlTable:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS SELECT * FROM {function}")
        return self._table(name, types)

    def _read_text(self, path: Path, kind: str) -> SqlTable:
        check_lines(path)
        try:
            text = read_header(path, kind)
        except UnicodeDecodeError:
            text = read_header(path, kind, other_encoding(path) or UTF_8)
        return self._noted_view(temporary_name(), text)

    def _noted_view(self, name: str, text: TextFile) -> SqlTable:
        """Create a view of a text file. Other encodings than UTF-8 are decoded on reading, with a warning."""
        table = self._view(name, text)
        if text.encoding != UTF_8:
            warnings.warn(f"{str(text.path)!r} {text.note}", Note, stacklevel=2)
        return table

    def _view(self, name: str, text: TextFile) -> SqlTable:
        """Read every column as text, so that 007 stays 007 and unchanged columns stay unchanged."""
        source, packed = str(text.path), text.path.suffix.lower() == ".gz"
        if not text.database_readable:
            from shoal.engines.duckdb.decoded import DecodedText

            files = DecodedText(text.path, text.encoding)
            self.connection.register_filesystem(files)
            if self._database is not None:
                self._database.reusable = False
            source, packed = files.address, False
        columns = ", ".join(f"{query.text(column)}: 'VARCHAR'" for column in text.names)
        options = [
            query.text(source),
            f"columns = {{{columns}}}",
            "auto_detect = false",
            f"compression = '{'gzip' if packed else 'none'}'",
            "header = true",
            f"skip = {text.above}",
            f"delim = {query.text(text.delimiter)}",
            """quote = '"', escape = '"', nullstr = ''""",
            *_line_ends(text.ends),
        ]
        types = dict.fromkeys(text.names, Type("VARCHAR"))
        table = self._file_view(name, f"read_csv({', '.join(options)})", types)
        self._texts[name] = text
        return table

    def _retry_decoded(self, ask: Callable[[], T]) -> T:
        """Run a query; if a text file is not UTF-8, run it again with the actual encoding."""
        check()  # no query starts after a signal
        try:
            return ask()
        except duckdb.InvalidInputException:
            # Rows that were already read are the same in both encodings, because `other_encoding` refuses
            # files that contain multi-byte UTF-8 characters.
            for name, text in list(self._texts.items()):
                encoding = other_encoding(text.path) if text.encoding == UTF_8 else None
                if encoding is None:
                    continue
                self._noted_view(name, replace(text, encoding=encoding))
                return self._retry_decoded(ask)
            raise

    @contextmanager
    def translate_errors(self, path: Path | None = None) -> Iterator[None]:
        with translate_errors(path, self._database, partial(self._fault, path)):
            yield

    def _fault(self, path: Path | None, message: str) -> str:
        """Describe what is wrong with a file, or with one of the opened files."""
        if path is not None and not path.exists():
            return f"{str(path)!r} was removed while it was read. Restore it and run again."
        for text in self._texts.values():
            fault = None
            with suppress(OSError, EOFError, zlib.error):  # the file may have been removed
                fault = text.fault() if path in (None, text.path) else None
            if fault is not None:
                return f"{str(text.path)!r} cannot be read: {fault}"
        line = re.search(r"Line: (\d+)", message)
        where = f" at line {line.group(1)}" if line else ""
        name = repr(str(path)) if path else "The table"
        return f"{name} cannot be read{where}. Check that it is complete and in the format of its name."


def _within_limits(path: Path, table: pa.Table) -> pa.Table:
    check_columns(repr(str(path)), table.num_columns)
    check_cells(repr(str(path)), table)
    return table


def _line_ends(ends: str) -> list[str]:
    """Return the line ending as an option; detection could take a line break in a quoted name."""
    escaped = {"\n": r"\n", "\r": r"\r", "\r\n": r"\r\n"}.get(ends)
    return [f"new_line = '{escaped}'"] if escaped else []


def _is_ibis(source: Any) -> bool:
    """Return whether an object is an Ibis table, without importing Ibis."""
    return type(source).__module__.startswith("ibis.")


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Convert dictionary-encoded columns to plain values."""
    if not any(pa.types.is_dictionary(kind) for kind in table.schema.types):
        return table
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names)
