"""The engine that a table needs: by name, or by where the table is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any

from shoal.core.contracts import Engine
from shoal.engines import ENGINES
from shoal.errors import DataError, UsageError

AUTO = "auto"
_NEEDS = {"spark": "pyspark", "postgres": "psycopg"}
_BACKENDS = {"duckdb": "duckdb", "pyspark": "spark", "postgres": "postgres"}
_CHOSEN: ContextVar[list[Engine] | None] = ContextVar("chosen", default=None)


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Give what another thread calls to end the queries of the engines that are chosen in this one."""
    chosen: list[Engine] = []

    def stop() -> None:
        for engine in tuple(chosen):  # the other thread may choose one more
            engine.interrupt()

    token = _CHOSEN.set(chosen)
    try:
        yield stop
    finally:
        _CHOSEN.reset(token)
        chosen.clear()


def engine_for(
    engine: str | Engine, table: Any, memory_limit: str | None = None, master: str | None = None
) -> Engine:
    """Return an engine: the one that is given, the one of this name, or the one that holds the table."""
    found = engine if isinstance(engine, Engine) else _engine_for(engine, table, memory_limit, master)
    if (chosen := _CHOSEN.get()) is not None:
        chosen.append(found)
    return found


def _engine_for(engine: str, table: Any, memory_limit: str | None, master: str | None) -> Engine:
    if engine == AUTO and master is None:
        return _holding(table, memory_limit)
    options = {"memory_limit": memory_limit} if memory_limit else {}
    if master is not None:
        if engine != "spark":
            message = f"spark_master is for engine='spark', and this one is {engine!r}. Leave it out."
            raise UsageError(message)
        options["master"] = master
    return _created(engine, options)


def _created(name: str, options: dict[str, str]) -> Engine:
    try:
        if name in _NEEDS:
            import_module(_NEEDS[name])
        return ENGINES.create(name, options)
    except ModuleNotFoundError as error:
        if name not in _NEEDS or error.name != _NEEDS[name]:
            raise
        message = f"Engine {name!r} needs {_NEEDS[name]}. Install it with: pip install 'shoal[{name}]'."
        raise DataError(message) from None


def _holding(table: Any, memory_limit: str | None) -> Engine:
    """Tell the engine by a table's own library."""
    library = type(table).__module__.partition(".")[0]
    if library == "pyspark":
        from shoal.engines.spark import Spark

        return Spark.in_session(table.sparkSession, memory_limit)
    if library == "ibis":
        from shoal.engines.other import Other

        backend = table._find_backend(use_default=True)
        name = _BACKENDS.get(backend.name)
        loaded: Any = ENGINES.load(name) if name else Other
        begin = (
            partial(loaded.in_session, backend._session) if name == "spark" else partial(loaded.on, backend)
        )
        engine: Engine = begin(memory_limit)
        return engine
    return _created("duckdb", {"memory_limit": memory_limit} if memory_limit else {})
