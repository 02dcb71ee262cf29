"""Spark sessions: how they are started, the objects stored in them, and their errors."""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from shoal.errors import DataError, OutputError, ShoalError
from shoal.files.work_folders import WorkFolder, create_temporary
from shoal.wording import Change

OURS = "spark.shoal.session"  # marks a session that shoal started
_SETTINGS_OF_IBIS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")  # Ibis changes these
_LOOPBACK = "127.0.0.1"
_PY4J_LOGGERS = (None, "py4j.java_gateway", "py4j.clientserver")  # the loggers of Py4J, and the root logger


def start_session(master: str, memory: int) -> Any:
    """Start a session that listens only on this machine, unless its workers are elsewhere."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    folder = create_temporary()
    scratch = str(folder.path)
    settings = _settings(master, memory, scratch)
    for name in _PY4J_LOGGERS:
        logging.getLogger(name).addFilter(_is_not_py4j)
    try:
        if SparkContext._gateway is None:
            # Java and Spark print many unwanted messages at startup.
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with _on_loopback(master):
                conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
                SparkContext._ensure_initialized(gateway=launch_gateway(conf, silent))
        jvm: Any = SparkContext._jvm
        # The Java process continues if this process is killed. It then removes the folder when it exits.
        jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(scratch))
        with _restored_interrupts():
            session = SparkSession.builder.config(map=settings).getOrCreate()
    except (PySparkException, Py4JError, OSError, RuntimeError, TypeError):
        folder.remove()
        raise DataError(
            f"Cannot start Spark on {master!r}. It needs Java 17 (JAVA_HOME) and, where the master is not "
            "local, one that answers."
        ) from None
    session.sparkContext.setLogLevel("OFF")  # its messages may quote rows
    atexit.register(_stop, session, folder)
    return session


def _stop(session: Any, folder: WorkFolder) -> None:
    """Stop a session that shoal started and remove its files."""
    with suppress(Exception):  # it may have stopped already
        session.stop()
    folder.remove()


@contextmanager
def _restored_interrupts() -> Iterator[None]:
    """Restore the handler of SIGINT, because Spark's handler calls Java through a gateway that is in use."""
    before = signal.getsignal(signal.SIGINT)
    yield
    with suppress(ValueError):  # not in the main thread, so Spark set no handler
        signal.signal(signal.SIGINT, before)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """Drop the messages that Py4J logs when a command is interrupted."""
    return record.module not in ("java_gateway", "clientserver")


def _settings(master: str, memory: int, scratch: str) -> dict[str, str]:
    """Return the settings of a session that shoal starts; some are left to a Spark configuration file."""
    settings = {
        "spark.app.name": "shoal",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": scratch,
        "spark.driver.memory": f"{max(memory // 2 >> 20, 512)}m",
        OURS: "true",
    }
    if not _configured():
        settings["spark.sql.warehouse.dir"] = scratch
        settings["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={scratch}"
        if master.startswith("local"):  # the overhead of hundreds of small tasks exceeds their benefit
            settings["spark.sql.shuffle.partitions"] = str(4 * (os.cpu_count() or 1))
    if master.startswith("local"):
        settings |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    if workers := re.fullmatch(r"local-cluster\[.*,\s*(\d+)\s*\]", master):
        settings["spark.executor.memory"] = f"{workers[1]}m"
    return settings


@contextmanager
def _on_loopback(master: str) -> Iterator[None]:
    """Let Java use only the loopback interface if all workers are on this machine."""
    if not master.startswith("local") or "SPARK_LOCAL_IP" in os.environ:
        yield
        return
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    try:
        yield
    finally:
        del os.environ["SPARK_LOCAL_IP"]


def _configured() -> bool:
    """Return whether this machine has a Spark configuration file."""
    homes = [os.environ.get("SPARK_CONF_DIR"), os.path.join(os.environ.get("SPARK_HOME", "."), "conf")]
    return any(home and Path(home, "spark-defaults.conf").exists() for home in homes)


def connect(session: Any) -> Any:
    """Connect Ibis to a session, and restore the settings that Ibis changes."""
    before = {name: session.conf.get(name, None) for name in _SETTINGS_OF_IBIS}
    connection = ibis.pyspark.connect(session)
    for name, value in before.items():
        session.conf.unset(name) if value is None else session.conf.set(name, value)
    return connection


class SessionObjects:
    """The views and the persisted tables of a session, until they are removed."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.views: list[str] = []
        self.persisted: list[Any] = []

    def keep(self) -> None:
        """Keep all objects, for a table that is computed later."""
        self.views, self.persisted = [], []

    def remove(self) -> None:
        """Remove all objects."""
        with suppress(Exception):  # a stopped session has no objects left
            while self.persisted:
                self.persisted.pop().unpersist()
            while self.views:
                self.session.catalog.dropTempView(self.views.pop())


def failures() -> tuple[type[Exception], ...]:
    """Return the exception types that operations in Spark raise."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, Py4JNetworkError, pa.ArrowException, EOFError


def translated(error: Exception, path: Path | None, *, alive: bool) -> ShoalError:
    """Translate an error of Spark; `alive` says whether the session still runs."""
    text = str(error).lower()
    if "no space left" in text or "disk quota" in text:
        return OutputError("No space is left where Spark writes. Free some and run again.")
    if "outofmemory" in text or "out of memory" in text:
        return DataError(
            "Spark ran out of memory.",
            advice=[
                Change("memory_limit", action="Raise {}"),
                Change(action="Give its executors more memory"),
            ],
        )
    if not alive:
        return DataError("The connection to Spark was lost. Run again.")
    name = repr(str(path)) if path else "The table"
    message = (
        f"{name} cannot be read or processed by Spark. Check that it is complete and in the format of "
        "its name, and that all machines of Spark can access it; Spark's log says more."
    )
    return DataError(message)
