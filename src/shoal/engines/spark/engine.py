"""Spark through Ibis: Parquet files, CSV files and tables, counted and recoded by its workers.

No rows are collected and no Python runs on the workers: dimension tables are broadcast. Only packed keys
with their counts, and the distinct values of columns, are sent to the driver.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlparse

import ibis
import pyarrow as pa
from ibis.expr.types import IntegerValue, Table

from shoal.core.contracts import ReleaseColumns
from shoal.core.targets import TableEngine, Target
from shoal.engines.frames import check_names
from shoal.engines.ibis.engine import IbisEngine
from shoal.engines.names import ending_of, parts_of, quoted, refuse_file
from shoal.engines.relational import relations
from shoal.engines.relational.engine import TEMPORARY, temporary_name
from shoal.engines.spark.connection import OURS, SessionObjects, connect, failures, start_session, translated
from shoal.engines.text import read_header
from shoal.errors import DataError, OutputError
from shoal.files.signals import interrupted, stopping
from shoal.files.text import TO_UTF_8

_BROADCAST = 1_000_000  # tables up to this many rows are broadcast; larger ones are shuffled
_AT_ONCE = 4  # queries that run at the same time
_PROPERTY = "shoal.mark"


@dataclass(frozen=True)
class Spark(IbisEngine, TableEngine):
    """Works in a Spark session: the active one, or a new one on a master."""

    master: str = "local[*]"
    """Where a new session runs, such as `local[4]` or `spark://host:7077`."""

    requires = "pyspark"
    ibis_backend = "pyspark"
    estimates: ClassVar[bool] = True
    caches_rows: ClassVar[bool] = True
    formats: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".parquet")

    @classmethod
    def in_session(cls, session: Any, memory_limit: str | None = None) -> Self:
        """Work in a session of the user, without changing its settings."""
        return cls.on(connect(session), memory_limit)

    @cached_property
    def connection(self) -> Any:
        from pyspark.sql import SparkSession

        running = SparkSession.getActiveSession()
        if running is not None:
            return connect(running)
        session = start_session(self.master, self.memory)
        self.__dict__["_java"] = getattr(session.sparkContext._gateway, "proc", None)
        return connect(session)

    @property
    def session(self) -> Any:
        return self.connection._session

    @cached_property
    def _session_objects(self) -> SessionObjects:
        """The objects stored in the session; they are removed with this engine."""
        objects = SessionObjects(self.session)
        weakref.finalize(self, objects.remove).atexit = False
        return objects

    def interrupt(self) -> None:
        """Cancel the running jobs of a session that shoal started, without waiting for Java."""
        if "connection" in self.__dict__ and "_cancel" not in self.__dict__:
            self.__dict__["_cancel"] = cancel = threading.Thread(target=self._cancel_jobs, daemon=True)
            cancel.start()

    def abort(self) -> None:
        """Kill the Java process of a session that shoal started, because it would continue to write."""
        if (java := self.__dict__.get("_java")) is not None:
            java.kill()
            java.wait(5)

    def _cancel_jobs(self) -> None:
        with suppress(Exception):  # it may have stopped before
            if self.session.conf.get(OURS, ""):
                self.session.sparkContext.cancelAllJobs()
        self.__dict__.pop("_cancel", None)

    @contextmanager
    def translate_errors(self, path: Path | None = None) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            with suppress(Exception):  # abandoned jobs must not continue to write
                if stopping():
                    self.abort()
                elif self.session.conf.get(OURS, ""):
                    self.session.sparkContext.cancelAllJobs()
            raise
        except failures() as error:
            if stopping():
                with suppress(Exception):  # cancelled tasks may continue to write for a moment
                    self.abort()
                raise interrupted() from None
            raise translated(error, path, alive=self._alive()) from None

    def open(self, source: Any) -> Table:
        if type(source).__module__.startswith("pyspark."):
            check_names(source.columns)
            return self._viewed(source)
        return super().open(source)

    def _alive(self) -> bool:
        try:
            return not self.session.sparkContext._jsc.sc().isStopped()
        except Exception:  # after any error, Spark counts as stopped
            return False

    def named(self, source: str | Path) -> Table:
        """Open a Parquet or CSV file, a folder of such files, or a table of the catalogue."""
        path = Path(source)
        if self._is_table(str(source)):
            name = _quoted_name(str(source))
            with self.translate_errors():
                if not self.session.catalog.tableExists(name):
                    raise DataError(
                        f"Spark has no table {str(source)!r}. A file or a folder has an ending, or a slash."
                    )
                frame = self.session.table(name)
        else:
            if not path.exists():
                raise DataError(f"No such file or folder: {str(source)!r}.")
            first = _first_file(path)
            has_extension = (
                path.suffix.lower() in self.formats
            )  # the extension of a folder, or else of its files
            ending = ending_of(path if has_extension else first, (*self.formats, ".csv.gz"))
            with self.translate_errors(path):
                frame = self._read(path, first, ending)
        check_names(frame.columns)
        return self._viewed(frame)

    def _is_table(self, name: str) -> bool:
        if not name.lower().endswith((*self.formats, ".csv.gz")):
            refuse_file(name, "spark")
        return "/" not in name and not name.lower().endswith((*self.formats, ".csv.gz"))

    def _read(self, path: Path, first: Path, ending: str) -> Any:
        uri = path.resolve().as_uri()
        if ending == ".parquet":
            return self.session.read.parquet(uri)
        try:
            header = read_header(first, first.suffix if first.suffix == ".gz" else ending)
        except (OSError, EOFError, UnicodeDecodeError):
            raise DataError(f"{str(path)!r} is not UTF-8 text. {TO_UTF_8}") from None
        if header.above:
            raise DataError(
                f"The first line of {str(first)!r} only tells Excel the delimiter, by sep=, and Spark would "
                "take it for the header. Delete that line."
            )
        schema = ", ".join(f"{quoted((name,), '`')} STRING" for name in header.names)
        # `enforceSchema=False` checks the names, because files of a folder may have different column orders.
        return self.session.read.csv(
            uri, schema=schema, header=True, sep=header.delimiter, quote='"', escape='"', multiLine=True,
            enforceSchema=False, mode="FAILFAST", nullValue="", emptyValue="",
        )  # fmt: skip

    def _viewed(self, frame: Any) -> Table:
        name = temporary_name()
        self._session_objects.views.append(name)
        frame.createOrReplaceTempView(name)
        return self.connection.table(name)

    def upload(self, table: pa.Table) -> Table:
        """Upload a table to Spark; a table that is not large is broadcast to every worker."""
        from pyspark.sql.functions import broadcast

        with self.translate_errors():
            frame = self.session.createDataFrame(table)
            return self._viewed(broadcast(frame) if len(table) <= _BROADCAST else frame)

    def fetch(self, table: Table) -> pa.Table:
        with self.translate_errors():
            return self._frame(table).toArrow()

    def distinct(self, table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            rows = pool.submit(relations.rows_of, self, table)
            values = pool.map(partial(relations.values_of, self, table), columns)
            return dict(zip(columns, values, strict=True)), rows.result()

    def _frame(self, table: Table) -> Any:
        return self.session.sql(str(self.connection.compile(table)))

    def cache_table(self, table: Table) -> Table:
        with self.translate_errors():
            frame = self._frame(table).persist()
            self._session_objects.persisted.append(frame)
            return self._viewed(frame)

    def bits(self, words: IntegerValue) -> tuple[Any, Any]:
        return _bit_and(words), _bit_or(words)

    def discard(self, table: Table) -> None:
        with suppress(Exception):  # a stopped session has nothing to remove
            self.session.table(table.get_name()).unpersist()
            self.session.catalog.dropTempView(table.get_name())
            self._session_objects.views.remove(table.get_name())

    def target(self, output: str | Path) -> Target:
        """Return the target for a folder, by its extension, or for the name of a table of the catalogue."""
        if self._is_table(str(output)):
            _parts(str(output))
            self._refuse_to_forget(str(output))
            return Target(str(output), "table")
        return Target(str(output), "folder", ending_of(Path(output), self.formats))

    def _refuse_to_forget(self, name: str) -> None:
        with self.translate_errors():
            conf = self.session.conf
            forgets = conf.get(OURS, "") and conf.get("spark.sql.catalogImplementation") == "in-memory"
        if forgets:
            raise OutputError(
                f"{name!r} would be a table that Spark loses when it stops. Name a folder, such as "
                f"{name + '.parquet'!r}, or set up a catalogue in SPARK_CONF_DIR."
            )

    def write(self, table: Table, target: Target) -> None:
        with self.translate_errors():
            writer = self._frame(table).write
            if target.kind == "table":
                writer.saveAsTable(_quoted_name(target.name))
                return
            uri = target.path.resolve().as_uri()
            if target.ending == ".parquet":
                writer.parquet(uri)
            else:
                delimiter = "\t" if target.ending == ".tsv" else ","
                writer.csv(
                    uri, header=True, sep=delimiter, quote='"', escape='"', emptyValue='""',
                    ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False,
                )  # fmt: skip

    def materialize(
        self, recoded: Table, source: Any, opened: Table, columns: ReleaseColumns
    ) -> tuple[Any, tuple[str, ...]]:
        """Return a table of the same kind as the source; a Spark frame is computed when it is used."""
        if type(source).__module__.startswith("pyspark."):
            with self.translate_errors():
                return self._frame(recoded), ()
        result = super().materialize(recoded, source, opened, columns)
        if self.has_lazy_result:
            self._session_objects.keep()
        return result

    def same(self, source: Any, target: Target) -> bool:
        """Return whether an output is the source, by its name or by its files."""
        if super().same(source, target):
            return True
        if target.kind == "file":
            return False
        if isinstance(source, str | Path) and not self._is_table(str(source)):
            return False
        with self.translate_errors():
            name = _quoted_name(target.name) if target.kind == "table" else ""
            if name and not self.session.catalog.tableExists(name):
                return False
            source_files = self._files_of(source)
            if name:
                return bool(source_files & set(self.session.table(name).inputFiles()))
        folder = target.path.resolve()
        return any(folder in Path(unquote(urlparse(file).path)).parents for file in source_files)

    def _files_of(self, source: Any) -> set[str]:
        if isinstance(source, str | Path):
            if not self.has(str(source)):
                return set()
            source = self.session.table(_quoted_name(str(source)))
        if isinstance(source, Table):
            source = self._frame(source)
        return set(source.inputFiles()) if hasattr(source, "inputFiles") else set()

    def has(self, name: str) -> bool:
        with self.translate_errors():
            return bool(self.session.catalog.tableExists(_quoted_name(name)))

    def mark(self, name: str, mark: str) -> None:
        self._do(f"ALTER TABLE {_quoted_name(name)} SET TBLPROPERTIES ('{_PROPERTY}' = '{mark}')")

    def mark_of(self, name: str) -> str | None:
        if not self.has(name):
            return None
        with self.translate_errors():
            rows = self.session.sql(f"SHOW TBLPROPERTIES {_quoted_name(name)}").collect()
        return next((row["value"] for row in rows if row["key"] == _PROPERTY), None)

    def staging_name(self, name: str, mark: str) -> str:
        return quoted((*_parts(name)[:-1], f"{TEMPORARY}{mark}"), "`")

    def publish(self, staging: str, name: str, *, replace: bool) -> None:
        """Replace a table by renaming both, because Spark has no transactions; then drop the old table."""
        backup = _backup_name(staging)
        if replace and self.has(name):
            self._rename(name, backup)
        self._rename(staging, name)
        self.drop(backup)

    def recover(self, staging: str, name: str) -> None:
        """Restore the renamed table unless it was replaced, and drop the staging table."""
        backup = _backup_name(staging)
        if self.has(backup) and not self.has(name):
            self._rename(backup, name)
        self.drop(backup)
        self.drop(staging)

    def drop(self, name: str) -> None:
        self._do(f"DROP TABLE IF EXISTS {_quoted_name(name)}")

    def _rename(self, old: str, new: str) -> None:
        self._do(f"ALTER TABLE {_quoted_name(old)} RENAME TO {_quoted_name(new)}")

    def _do(self, statement: str) -> None:
        with self.translate_errors():
            self.session.sql(statement)

    def close(self) -> None:
        super().close()
        if "_session_objects" in self.__dict__ and not self.has_lazy_result:
            self._session_objects.remove()


def _parts(name: str) -> tuple[str, ...]:
    return parts_of(name, "`", 3)


def _quoted_name(name: str) -> str:
    return quoted(_parts(name), "`")


def _backup_name(staging: str) -> str:
    """Return the name under which a replaced table is kept until it is dropped."""
    *database, name = _parts(staging)
    return quoted((*database, f"{name}_before"), "`")


def _bits(words: int) -> int:
    """Combine the words of a group bitwise."""
    raise TypeError


_bit_and, _bit_or = (ibis.udf.agg.builtin(_bits, name=name) for name in ("bit_and", "bit_or"))


def _first_file(path: Path) -> Path:
    """Return a file, or the first data file of a folder."""
    if not path.is_dir():
        return path
    files = [file for file in path.rglob("*") if file.is_file() and file.name[0] not in "._"]
    if not files:
        raise DataError(f"The folder {str(path)!r} holds no data. Name one that holds files.")
    return min(files)
