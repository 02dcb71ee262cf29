"""Sessions: open, count and close a table.

A session chooses the engine by name or by the table's location. Its queries can be interrupted from another
thread or by a signal. A table without rows is rejected when it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.counts.counts import Counts, Domain
from shoal.core.progress import Progress, quiet
from shoal.core.targets import Target
from shoal.engines import ENGINES
from shoal.errors import DataError, EmptyTable, UsageError
from shoal.files.limits import check_columns
from shoal.files.signals import interrupt_on_signal

AUTO = "auto"
_ENGINES_IN_USE: ContextVar[list[Engine] | None] = ContextVar("engines_in_use", default=None)


@dataclass(frozen=True)
class RemoteTable:
    """A table in a database; its rows stay there. The address may have a password, so it is never shown."""

    name: str  # its name in messages
    table: str  # NAME or SCHEMA.NAME
    address: str = field(repr=False)  # of Ibis
    releases: str | None = None  # the schema in which releases may be written as new tables
    folder: Path | None = None  # for the files that belong to such a release

    @property
    def in_postgres(self) -> bool:
        """Whether it is in PostgreSQL. Releases can be written there, too."""
        return self.address.lower().startswith(("postgres:", "postgresql:"))


@dataclass(frozen=True)
class OpenTable:
    """A table that an engine has opened."""

    engine: Engine
    table: Any  # in the form of the engine
    role: str = "table"  # its name in messages
    files: Engine | None = None  # opens files if the engine cannot

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.engine.columns(self.table)

    def count(
        self, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count the combinations of some columns as `Engine.count` does; reject a table without rows."""
        counts, domains = self.engine.count(self.table, columns, sensitive)
        if not counts.records:
            raise EmptyTable(self.role)
        return counts, domains

    def open(self, source: Any, role: str = "release") -> OpenTable:
        """Open another table with the same engine, or a file; `role` is its name in messages."""
        if isinstance(source, RemoteTable):  # in the same database
            source = source.table
        engine = self.files if self.files is not None and isinstance(source, Path) else self.engine
        return OpenTable(engine, engine.open(source), role, self.files)

    def with_table(self, table: Any) -> OpenTable:
        """Return a copy with another table of the engine, for example with one more column."""
        return replace(self, table=table)


class Session:
    """A table and the engine that reads it; closing the session closes the engine."""

    def __init__(self, source: Any, engine: Engine, progress: Progress, role: str) -> None:
        self.source = source
        self.engine = engine
        self.progress = progress
        self.files: Engine | None = None  # reads and writes files if the engine cannot
        self._folder: Path | None = None
        self._disconnect: Callable[[], object] = lambda: None
        self._role = role
        self._samples: dict[int, OpenTable] = {}

    @classmethod
    def on_remote(
        cls, table: RemoteTable, memory_limit: str | None, progress: Progress, role: str
    ) -> Session:
        """Open a session on a table in a database."""
        from shoal.workflow.remote import DatabaseReleaseFiles, connect

        source, engine, disconnect = connect(table, memory_limit)
        remote_session = cls(source, choose_engine(engine or AUTO, source, memory_limit), progress, role)
        remote_session._disconnect, remote_session._folder = disconnect, table.folder
        remote_session.files = choose_engine(
            DatabaseReleaseFiles(memory_limit=memory_limit, remote=remote_session.engine), None
        )
        return remote_session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the engine and the connection."""
        self.engine.close()
        if self.files is not None:
            self.files.close()
        self._disconnect()

    def target(self, output: str | Path) -> Target:
        """Describe an output. If the input is in a database, a Path means a file, and a str a table there."""
        if self.files is None:
            return self.engine.target(output)
        if isinstance(output, Path):
            return self.files.target(output)
        return replace(self.engine.target(output), folder=self._folder)

    def writer(self, target: Target) -> Engine:
        """Return the engine that writes an output."""
        return self.files if self.files is not None and target.kind == "file" else self.engine

    @cached_property
    def table(self) -> OpenTable:
        """The table, opened when it is first used."""
        table = self.engine.open(self.source)
        check_columns(f"The {self._role}", len(self.engine.columns(table)))
        return OpenTable(self.engine, table, self._role, self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return self.table.columns

    @property
    def text_names(self) -> tuple[str, ...]:
        """The names of the columns, except labels of a pandas frame that are not strings."""
        if type(self.source).__module__.partition(".")[0] != "pandas":
            return self.columns
        return tuple(label for label in self.source.columns if isinstance(label, str))

    def count(
        self, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count the combinations of some columns of the table."""
        return self.table.count(columns, sensitive)

    def sample(self, step: int) -> OpenTable:
        """Return about every `step`-th row of the table; the table itself if sampling is not faster."""
        if step not in self._samples:
            opened = self.table
            self._samples[step] = opened.with_table(self.engine.sample(opened.table, step))
        return self._samples[step]

    def open(self, source: Any, role: str = "release") -> OpenTable:
        """Open another table; `role` is its name in messages."""
        return OpenTable(self.engine, None, files=self.files).open(source, role)


def session(
    table: Any,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    *,
    role: str = "table",
) -> Session:
    """Open a session with the engine of a table; a `with` statement closes the engine at its end."""
    if isinstance(table, RemoteTable):
        return Session.on_remote(table, memory_limit, progress or quiet, role)
    return Session(table, choose_engine(engine, table, memory_limit), progress or quiet, role)


@contextmanager
def interruptible_sessions() -> Iterator[Callable[[], None]]:
    """Yield a function that interrupts the queries of all sessions started in this context.

    Another thread may call it at any time.
    """
    engines: list[Engine] = []

    def interrupt() -> None:
        for engine in tuple(engines):  # another session may start meanwhile
            engine.interrupt()

    token = _ENGINES_IN_USE.set(engines)
    try:
        yield interrupt
    finally:
        _ENGINES_IN_USE.reset(token)
        engines.clear()


def choose_engine(
    engine: str | Engine, table: Any, memory_limit: str | None = None, spark_master: str | None = None
) -> Engine:
    """Return the given engine, the engine of this name, or the one that the table belongs to."""
    chosen = (
        engine if isinstance(engine, Engine) else _engine_named(engine, table, memory_limit, spark_master)
    )
    interrupt_on_signal(chosen)
    if (engines := _ENGINES_IN_USE.get()) is not None:
        engines.append(chosen)
    return chosen


def _engine_named(name: str, table: Any, memory_limit: str | None, spark_master: str | None) -> Engine:
    if name == AUTO and spark_master is None:
        return _engine_of_table(table, memory_limit)
    options = {"memory_limit": memory_limit} if memory_limit else {}
    if spark_master is not None:
        if name != "spark":
            raise UsageError(
                f"is for the engine 'spark', and this one is {name!r}. Leave it out.", option="spark_master"
            )
        options["master"] = spark_master
    return _create(name, options)


def _create(name: str, options: dict[str, str]) -> Engine:
    try:
        if required := ENGINES.load(name).requires:
            import_module(required)
        return ENGINES.create(name, options)
    except ModuleNotFoundError as error:
        required = error.name or ""
        if required != ENGINES.promise(name, "requires"):
            raise
        package = f"'shoal[{name}]'" if name in ENGINES.built_in else required
        raise DataError(
            f"Engine {name!r} needs {required}. Install it with: pip install {package}."
        ) from None


def _engine_of_table(table: Any, memory_limit: str | None) -> Engine:
    library = type(table).__module__.partition(".")[0]
    if library == "pyspark":
        from shoal.engines.spark.engine import Spark

        return Spark.in_session(table.sparkSession, memory_limit)
    if library == "ibis":
        from shoal.engines.ibis.engine import IbisTableEngine

        backend = table.get_backend()
        name = next((name for name in ENGINES if ENGINES.promise(name, "ibis_backend") == backend.name), None)
        engine_type: Any = ENGINES.load(name) if name else IbisTableEngine
        if name == "spark":
            create = partial(engine_type.in_session, backend._session)
        else:
            create = partial(engine_type.on, backend)
        engine: Engine = create(memory_limit)
        return engine
    return _create("duckdb", {"memory_limit": memory_limit} if memory_limit else {})
