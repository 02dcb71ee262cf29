"""Sessions of Spark: one that runs stays as it is, one of our own is silent, small and gone at the end.

What is put into either is removed when it is no longer needed.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ibis

from shoal.errors import DataError

OURS = "spark.shoal.session"  # marks a session that we started
_OWN_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")  # that Ibis changes
_LOOPBACK = "127.0.0.1"
_WIRE = (None, "py4j.java_gateway", "py4j.clientserver")  # the logs that it writes to, the program's own too


def started(master: str, memory: int) -> Any:
    """Start a session that listens on this machine alone, unless its workers are elsewhere."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    scratch = tempfile.mkdtemp(prefix="shoal-")
    settings = _settings(master, memory, scratch)
    for name in _WIRE:
        logging.getLogger(name).addFilter(_not_of_the_wire)
    try:
        if SparkContext._gateway is None:
            # Java, and Spark as it starts, say much that nobody asked for.
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with _on_loopback(master):
                conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
                SparkContext._ensure_initialized(gateway=launch_gateway(conf, silent))
        jvm: Any = SparkContext._jvm
        # Java outlives this process where that is killed, and removes the folder then.
        jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(scratch))
        with _own_interrupts():
            session = SparkSession.builder.config(map=settings).getOrCreate()
    except (PySparkException, Py4JError, OSError, RuntimeError, TypeError):
        shutil.rmtree(scratch, ignore_errors=True)
        message = (
            f"Cannot start Spark on {master!r}. It needs Java 17 (JAVA_HOME) and, where the master is not "
            "local, one that answers."
        )
        raise DataError(message) from None
    session.sparkContext.setLogLevel("OFF")  # its texts may quote rows
    atexit.register(_stop, session, scratch)
    return session


def _stop(session: Any, scratch: str) -> None:
    """Stop a session of our own and remove what it put on disk."""
    with suppress(Exception):  # it may have stopped before
        session.stop()
    shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep Ctrl-C as it is: Spark's own answer to it speaks over a wire that is in use."""
    before = signal.getsignal(signal.SIGINT)
    yield
    with suppress(ValueError):  # not the main thread, where none was set
        signal.signal(signal.SIGINT, before)


def _not_of_the_wire(record: logging.LogRecord) -> bool:
    """Drop what the wire to Java writes to the log of the whole program when a command is interrupted."""
    return record.module not in ("java_gateway", "clientserver")


def _settings(master: str, memory: int, scratch: str) -> dict[str, str]:
    """Return the settings of a session of our own; those that a user may have set elsewhere stay theirs."""
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
        if master.startswith("local"):  # hundreds of small tasks take longer than they save
            settings["spark.sql.shuffle.partitions"] = str(4 * (os.cpu_count() or 1))
    if master.startswith("local"):
        settings |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    if workers := re.fullmatch(r"local-cluster\[.*,\s*(\d+)\s*\]", master):
        settings["spark.executor.memory"] = f"{workers[1]}m"
    return settings


@contextmanager
def _on_loopback(master: str) -> Iterator[None]:
    """Let Java find nothing but loopback where all workers are on this machine."""
    if not master.startswith("local") or "SPARK_LOCAL_IP" in os.environ:
        yield
        return
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    try:
        yield
    finally:
        del os.environ["SPARK_LOCAL_IP"]


def _configured() -> bool:
    """Tell whether this machine has settings for Spark."""
    homes = [os.environ.get("SPARK_CONF_DIR"), os.path.join(os.environ.get("SPARK_HOME", "."), "conf")]
    return any(home and Path(home, "spark-defaults.conf").exists() for home in homes)


def connected(session: Any) -> Any:
    """Connect Ibis to a session and give it back the settings that Ibis changes."""
    before = {name: session.conf.get(name, None) for name in _OWN_SETTINGS}
    connection = ibis.pyspark.connect(session)
    for name, value in before.items():
        session.conf.unset(name) if value is None else session.conf.set(name, value)
    return connection


class Put:
    """Views, and tables that the workers keep, until they are removed."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.views: list[str] = []
        self.persisted: list[Any] = []

    def keep(self) -> None:
        """Leave what was put for a table that is worked out later."""
        self.views, self.persisted = [], []

    def remove(self) -> None:
        """Remove all of it."""
        with suppress(Exception):  # a session that is gone has nothing left
            while self.persisted:
                self.persisted.pop().unpersist()
            while self.views:
                self.session.catalog.dropTempView(self.views.pop())
