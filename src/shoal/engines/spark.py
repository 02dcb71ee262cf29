"""Spark through Ibis: Parquet, CSV and tables, counted and recoded by its workers.

No row is collected and no Python runs on a worker: dimension tables are broadcast, and only packed keys
with their counts, and the distinct values of columns, come to the driver.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlparse

import pyarrow as pa
from ibis.expr.types import Table

from shoal.core.encodings import TO_UTF_8
from shoal.core.targets import Target
from shoal.engines import relations
from shoal.engines.frames import check_names
from shoal.engines.names import quoted, refuse_file
from shoal.engines.over_ibis import ending_of, held_name
from shoal.engines.spark_errors import failures, ours
from shoal.engines.spark_session import OURS, Put, connected, started
from shoal.engines.spark_tables import SparkTables, table_name, table_parts
from shoal.engines.text import read_header
from shoal.errors import DataError, OutputError

_BROADCAST = 1_000_000  # rows that are sent to every worker; more are shuffled
_AT_ONCE = 4  # queries


@dataclass(frozen=True)
class Spark(SparkTables):
    """Works in a Spark session: one that is running, or a new one on a master."""

    master: str = "local[*]"
    """Where a new session runs, as `local[4]` or `spark://host:7077`."""

    estimates: ClassVar[bool] = True
    formats: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".parquet")

    @classmethod
    def in_session(cls, session: Any, memory_limit: str | None = None) -> Self:
        """Work in a session of the user's, whose settings stay as they are."""
        return cls.on(connected(session), memory_limit)

    @cached_property
    def connection(self) -> Any:
        """The Ibis backend of the session."""
        from pyspark.sql import SparkSession

        running = SparkSession.getActiveSession()
        return connected(running or started(self.master, self.memory))

    @property
    def session(self) -> Any:
        """The session that all tables of this engine live in."""
        return self.connection._session

    @cached_property
    def _put(self) -> Put:
        """What was put into the session; it goes when this engine does."""
        put = Put(self.session)
        weakref.finalize(self, put.remove).atexit = False
        return put

    @contextmanager
    def told(self, path: Path | None = None) -> Iterator[None]:
        """Turn Spark's errors into ours: its texts may quote rows."""
        try:
            yield
        except KeyboardInterrupt:
            with suppress(Exception):  # what nobody waits for must not go on writing
                if self.session.conf.get(OURS, ""):
                    self.session.sparkContext.cancelAllJobs()
            raise
        except failures() as error:
            raise ours(error, path, alive=self._alive()) from None

    def open(self, source: Any) -> Table:
        """Open a path or the name of a table, or take a Spark frame, another frame or an Ibis expression."""
        if type(source).__module__.startswith("pyspark."):
            check_names(source.columns)
            return self._viewed(source)
        return super().open(source)

    def _alive(self) -> bool:
        try:
            return not self.session.sparkContext._jsc.sc().isStopped()
        except Exception:  # whatever it is, nobody answers
            return False

    def named(self, source: str | Path) -> Table:
        """Open a Parquet or CSV file, a folder of such, or a table of the catalogue."""
        path = Path(source)
        if self._is_table(str(source)):
            name = table_name(str(source))
            with self.told():
                if not self.session.catalog.tableExists(name):
                    message = (
                        f"Spark has no table {str(source)!r}. A file or a folder has an ending, or a slash."
                    )
                    raise DataError(message)
                frame = self.session.table(name)
        else:
            if not path.exists():
                message = f"No such file or folder: {str(source)!r}."
                raise DataError(message)
            first = _first_file(path)
            told = path.suffix.lower() in self.formats  # by a folder's own name, or by that of its files
            ending = ending_of(path if told else first, (*self.formats, ".csv.gz"))
            with self.told(path):
                frame = self._read(path, first, ending)
        check_names(frame.columns)
        return self._viewed(frame)

    def _is_table(self, name: str) -> bool:
        if not name.lower().endswith((*self.formats, ".csv.gz")):
            refuse_file(name, "spark")
        return "/" not in name and not name.lower().endswith((*self.formats, ".csv.gz"))

    def _read(self, path: Path, first: Path, ending: str) -> Any:
        where = path.resolve().as_uri()
        if ending == ".parquet":
            return self.session.read.parquet(where)
        try:
            header = read_header(first, first.suffix if first.suffix == ".gz" else ending)
        except (OSError, EOFError, UnicodeDecodeError):
            message = f"{str(path)!r} is not UTF-8 text. {TO_UTF_8}"
            raise DataError(message) from None
        if header.above:
            message = (
                f"The first line of {str(first)!r} only tells Excel the delimiter, by sep=, and Spark would "
                "take it for the header. Delete that line."
            )
            raise DataError(message)
        schema = ", ".join(f"{quoted((name,), '`')} STRING" for name in header.names)
        # Names are checked, since one of many files may have its columns in another order.
        return self.session.read.csv(
            where, schema=schema, header=True, sep=header.delimiter, quote='"', escape='"', multiLine=True,
            enforceSchema=False, mode="FAILFAST", nullValue="", emptyValue="",
        )  # fmt: skip

    def _viewed(self, frame: Any) -> Table:
        name = held_name()
        self._put.views.append(name)
        frame.createOrReplaceTempView(name)
        return self.connection.table(name)

    def hold(self, table: pa.Table) -> Table:
        """Hand a table to Spark, to be sent to every worker where it is not large."""
        from pyspark.sql.functions import broadcast

        with self.told():
            frame = self.session.createDataFrame(table)
            return self._viewed(broadcast(frame) if len(table) <= _BROADCAST else frame)

    def fetch(self, table: Table) -> pa.Table:
        """Run a query."""
        with self.told():
            return self._frame(table).toArrow()

    def distinct(self, table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        """Return the distinct values of columns, and the rows; a few queries run at once."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            rows = pool.submit(relations.rows_of, self, table)
            found = pool.map(partial(relations.values_of, self, table), columns)
            return dict(zip(columns, found, strict=True)), rows.result()

    def _frame(self, table: Table) -> Any:
        return self.session.sql(str(self.connection.compile(table)))

    def kept(self, table: Table) -> Table:
        """Let the workers keep a table, in memory or on their disks."""
        with self.told():
            frame = self._frame(table).persist()
            self._put.persisted.append(frame)
            return self._viewed(frame)

    def target(self, output: str | Path) -> Target:
        """Take a folder to write to, by its ending, or the name of a table of the catalogue."""
        if self._is_table(str(output)):
            table_parts(str(output))
            self._refuse_to_forget(str(output))
            return Target(str(output), "table")
        return Target(str(output), "folder", ending_of(Path(output), self.formats))

    def _refuse_to_forget(self, name: str) -> None:
        with self.told():
            conf = self.session.conf
            forgets = conf.get(OURS, "") and conf.get("spark.sql.catalogImplementation") == "in-memory"
        if forgets:
            message = (
                f"{name!r} would be a table that Spark forgets as it stops. Name a folder, such as "
                f"{name + '.parquet'!r}, or set up a catalogue in SPARK_CONF_DIR."
            )
            raise OutputError(message)

    def write(self, table: Table, target: Target) -> None:
        """Write a folder of files, or create a table."""
        with self.told():
            writer = self._frame(table).write
            if target.kind == "table":
                writer.saveAsTable(table_name(target.name))
                return
            where = target.path.resolve().as_uri()
            if target.ending == ".parquet":
                writer.parquet(where)
            else:
                delimiter = "\t" if target.ending == ".tsv" else ","
                writer.csv(
                    where, header=True, sep=delimiter, quote='"', escape='"', emptyValue='""',
                    ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False,
                )  # fmt: skip

    def materialize(self, table: Table, like: Any, as_is: Sequence[str]) -> Any:
        """Return a table of the same kind as another; a Spark frame is worked out when it is used."""
        if type(like).__module__.startswith("pyspark."):
            with self.told():
                return self._frame(table)
        found = super().materialize(table, like, as_is)
        if self.lent:
            self._put.keep()
        return found

    def same(self, source: Any, target: Target) -> bool:
        """Tell whether an output is what is read, by its name or by the files behind it."""
        if super().same(source, target):
            return True
        if target.kind == "file":
            return False
        if isinstance(source, str | Path) and not self._is_table(str(source)):
            return False
        with self.told():
            name = table_name(target.name) if target.kind == "table" else ""
            if name and not self.session.catalog.tableExists(name):
                return False
            read = self._files_of(source)
            if name:
                return bool(read & set(self.session.table(name).inputFiles()))
        folder = target.path.resolve()
        return any(folder in Path(unquote(urlparse(file).path)).parents for file in read)

    def _files_of(self, source: Any) -> set[str]:
        """Return the files that a table or a frame is read from."""
        if isinstance(source, str | Path):
            if not self.has(str(source)):
                return set()
            source = self.session.table(table_name(str(source)))
        if isinstance(source, Table):
            source = self._frame(source)
        return set(source.inputFiles()) if hasattr(source, "inputFiles") else set()

    def close(self) -> None:
        """Let go of views and of what the workers keep."""
        if "_put" in self.__dict__ and not self.lent:
            self._put.remove()


def _first_file(path: Path) -> Path:
    """Return a file, or the first of a folder that holds data."""
    if not path.is_dir():
        return path
    files = [file for file in path.rglob("*") if file.is_file() and file.name[0] not in "._"]
    if not files:
        message = f"The folder {str(path)!r} holds no data. Name one that holds files."
        raise DataError(message)
    return min(files)
