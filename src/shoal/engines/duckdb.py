"""DuckDB through Ibis: the embedded engine, for files and frames on this machine."""

from __future__ import annotations

import errno
import gzip
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import duckdb
import ibis
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from ibis.expr.operations import DatabaseTable, Namespace
from ibis.expr.types import Table

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts, Domain
from shoal.core.delimiters import must_quote
from shoal.core.encodings import TO_UTF_8, UTF_8, other_encoding
from shoal.core.targets import Target
from shoal.engines import relations
from shoal.engines.content import check_content
from shoal.engines.databases import connect
from shoal.engines.each import count_each, lone_of
from shoal.engines.foreign import READERS, read_foreign
from shoal.engines.frames import check_names, checked
from shoal.engines.over_ibis import HELD, OverIbis, check_file, ending_of, held_name
from shoal.engines.text import TextFile, read_header
from shoal.errors import DataError, Note, OutputError, UsageError

T = TypeVar("T")

_ALIKE = {pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()}
"""Types that the database reads as Ibis does: it need not be asked."""
_READ_ONLY = (".txt", *READERS)


@dataclass(frozen=True)
class DuckDb(OverIbis):
    """Reads and writes files in place; rows never pass through Python."""

    estimates: ClassVar[bool] = True
    formats: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")
    sorts: ClassVar[bool] = True

    @cached_property
    def connection(self) -> Any:
        """The connection that all tables of this engine live in."""
        return connect(self.memory // 2)  # what is counted here takes the other half

    def interrupt(self) -> None:
        """End the query under way."""
        with suppress(duckdb.Error):  # it may be closed
            if "connection" in self.__dict__:
                self.connection.con.interrupt()

    def spill(self, folder: Path) -> None:
        """Let what does not fit in memory go to a folder, unless some has already gone elsewhere."""
        with suppress(duckdb.NotImplementedException):
            self.connection.con.execute("SET temp_directory = ?", [str(folder)])

    @cached_property
    def _paths(self) -> dict[str, Path]:
        return {}

    @cached_property
    def _texts(self) -> dict[str, TextFile]:
        """The text files that the database reads, by the names of their views."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which texts are not UTF-8."""
        return tuple(f"The table {text.note}" for text in self._texts.values() if text.encoding != UTF_8)

    def path_of(self, table: Table) -> Path | None:
        """Return the file behind a table, to name it in errors."""
        return self._paths.get(getattr(table.op(), "name", ""))

    def hold(self, table: pa.Table) -> Table:
        """Let the database read an arrow table where it is, without a copy."""
        name = held_name()
        self.connection.con.register(name, table)
        if not all(kind in _ALIKE for kind in table.schema.types):
            return self.connection.table(name)
        schema = ibis.Schema.from_pyarrow(table.schema)
        return DatabaseTable(name, schema=schema, source=self.connection, namespace=Namespace()).to_expr()

    def fetch(self, table: Table) -> pa.Table:
        """Run a query."""
        return self._asked(lambda: self.connection.to_pyarrow(table))

    def kept(self, table: Table) -> Table:
        """Work a table out once, into a temporary table."""
        name = held_name()
        return self._asked(lambda: self.connection.create_table(name, table, temp=True))

    def distinct(self, table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        """Return the distinct values of columns, and the rows, in one pass."""
        return relations.distinct_at_once(table, columns, self.fetch)

    def count_each(self, table: Table, columns: Sequence[str]) -> Iterator[tuple[Counts, Domain]]:
        """Count the values of every column, several by one query."""
        with self.told(self.path_of(table)):
            self.fetch(table.limit(0))  # what Ibis holds itself is put into the database only when fetched
            kinds = {name: table.schema()[name] for name in columns}
            text = str(self.connection.compile(table))
            ask = self.connection.con.sql
            yield from count_each(text, kinds, lambda query: self._asked(lambda: ask(query).to_arrow_table()))

    def lone_of(self, table: Table, columns: Sequence[str]) -> dict[str, int]:
        """Count values that occur once, of all columns by one query."""
        ask = self.connection.con.sql
        text = str(self.connection.compile(table))
        return lone_of(text, columns, lambda query: self._asked(lambda: ask(query).to_arrow_table()))

    def positions(
        self, table: Table, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
    ) -> IntArray:
        """Find rows of a file or a frame; a table of a database has no order."""
        path = self.path_of(table)
        if path is None and not getattr(table.op(), "name", "").startswith(HELD):
            message = "A table of a database has no order, so no row numbers. Give a file or a frame."
            raise UsageError(message)
        with self.told(path):
            return relations.positions(self, table, columns, domains, keys)

    def target(self, output: str | Path) -> Target:
        """Tell a file's format by its ending."""
        return Target(str(output), "file", ending_of(Path(output), self.formats, _READ_ONLY))

    def write(self, table: Table, target: Target) -> None:
        """Write a file in the format that its ending says."""
        kind, path = target.ending, target.path
        try:
            with self.told():
                if kind == ".parquet":
                    self._asked(lambda: self.connection.to_parquet(table, path))
                elif kind in (".arrow", ".feather"):
                    pyarrow.feather.write_feather(self.fetch(table), str(path))
                else:
                    delimiter = target.separator
                    options: dict[str, Any] = {"compression": "gzip"} if kind.endswith(".gz") else {}
                    options |= {"force_quote": "*"} if must_quote(table.columns, delimiter) else {}
                    options |= {"header": True, "delimiter": delimiter}
                    self._asked(lambda: self.connection.to_csv(table, path, **options))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise  # the draft says where, and what to do
            message = f"Cannot write {str(path)!r}: {error.strerror}."
            raise OutputError(message) from None

    def named(self, source: str | Path) -> Table:
        """Open a file."""
        path = Path(source)
        kind = ending_of(path, (*self.formats, *_READ_ONLY))
        check_file(path)
        check_content(path, kind)
        with self.told(path):
            if kind in (".arrow", ".feather"):
                return self.hold(checked(pyarrow.feather.read_table(str(path))))
            if kind in READERS:
                return self.hold(checked(read_foreign(path, kind)))
            if kind == ".parquet":
                check_names(pyarrow.parquet.read_schema(str(path)).names)
                table = self.connection.read_parquet(str(path))
            else:
                table = self._read_text(path, kind)
        self._paths[table.get_name()] = path
        return table

    def _read_text(self, path: Path, kind: str) -> Table:
        try:
            text = read_header(path, kind)
        except UnicodeDecodeError:
            text = read_header(path, kind, other_encoding(path) or UTF_8)
        return self._view(held_name(), text)

    def _view(self, name: str, text: TextFile) -> Table:
        """Read every column as text, so that 007 stays 007 and what is kept as is stays as it was.

        What is not UTF-8 is decoded on the way, and that is noted.
        """
        source, packed = str(text.path), text.path.suffix.lower() == ".gz"
        if not text.plain:
            from shoal.engines.decoded import DecodedText

            files = DecodedText(text.path, text.encoding)
            self.connection.con.register_filesystem(files)
            source, packed = files.address, False
        table = self.connection.read_csv(
            source,
            table_name=name,
            columns=dict.fromkeys(text.names, "VARCHAR"),
            auto_detect=False,
            compression="gzip" if packed else "none",
            header=True,
            skip=text.above,
            delim=text.delimiter,
            quote='"',
            escape='"',
            nullstr="",
            **_line_ends(text.ends),
        )
        self._texts[name] = text
        if text.encoding != UTF_8:
            warnings.warn(f"{str(text.path)!r} {text.note}", Note, stacklevel=2)
        return table

    def _asked(self, ask: Callable[[], T]) -> T:
        """Ask the database; where a text turns out not to be UTF-8, once more with the encoding it has."""
        try:
            return ask()
        except duckdb.InvalidInputException:
            # What was read before is the same in both: a file with letters in UTF-8 is refused.
            for name, text in list(self._texts.items()):
                encoding = other_encoding(text.path) if text.encoding == UTF_8 else None
                if encoding is None:
                    continue
                self._view(name, replace(text, encoding=encoding))
                return self._asked(ask)
            raise

    @contextmanager
    def told(self, path: Path | None = None) -> Iterator[None]:
        """Turn the database's errors into ours: its texts may quote rows."""
        try:
            yield
        except (gzip.BadGzipFile, zlib.error, EOFError):
            raise _damaged(path) from None
        except UnicodeError:
            message = f"{str(path)!r} is not text that can be read. {TO_UTF_8}"
            raise DataError(message) from None
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None  # the database's word for a signal
        except RuntimeError as error:
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            if not isinstance(error, pa.ArrowException):
                raise
            message = "A column holds what cannot be read as values: lists, structs, intervals. Leave it out."
            raise DataError(message) from None
        except (duckdb.OutOfMemoryException, MemoryError):
            message = "The database ran out of memory. Raise memory_limit or free disk space."
            raise DataError(message) from None
        except duckdb.IOException as error:
            if "no space left" in str(error).lower() or "quota" in str(error).lower():
                # The database names the file that it could not write.
                named = re.search(r'file \\?"([^"\\]+)', str(error))
                where = f"in the folder {str(Path(named[1]).parent)!r}" if named else "on the disk"
                message = f"No space is left {where}. Free some space there and run again."
                raise OutputError(message) from None
            if path is not None and path.suffix.lower() == ".gz":
                raise _damaged(path) from None
            what = repr(str(path)) if path else "a file"
            message = f"The database could not read or write {what}."
            raise DataError(message) from None
        except (duckdb.Error, pa.ArrowException) as error:
            if re.search(r"^KeyboardInterrupt", str(error), re.MULTILINE):
                raise KeyboardInterrupt from None  # it struck while we decoded for the database
            raise DataError(self._fault(path, str(error))) from None

    def _fault(self, path: Path | None, told: str) -> str:
        """Say what is wrong with a file, or with one of those that were opened."""
        if path is not None and not path.exists():
            return f"{str(path)!r} is gone: it was taken away while it was read. Put it back and run again."
        for text in self._texts.values():
            fault = None
            with suppress(OSError, EOFError, zlib.error):  # it may be gone meanwhile
                fault = text.fault() if path in (None, text.path) else None
            if fault is not None:
                return f"{str(text.path)!r} cannot be read: {fault}"
        line = re.search(r"Line: (\d+)", told)
        where = f" at line {line.group(1)}" if line else ""
        name = repr(str(path)) if path else "The table"
        return f"{name} cannot be read{where}. Check that it is whole, and written as its name says."


def _damaged(path: Path | None) -> DataError:
    name = repr(str(path)) if path else "A file"
    return DataError(f"{name} cannot be read: what is compressed in it is cut short or damaged.")


def _line_ends(ends: str) -> dict[str, str]:
    """Tell the database how lines end: it would go by the first break, even one within a quoted name."""
    escaped = {"\n": r"\n", "\r": r"\r", "\r\n": r"\r\n"}.get(ends)
    return {"new_line": escaped} if escaped else {}
