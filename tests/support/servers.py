"""Servers that tests start for themselves: a PostgreSQL of its own, Spark in this process or beside it.

Tests that wait for them, and for a browser, are one group of xdist, "servers": one worker runs it while the
others compile, and finds compiled what it asks for in its turn.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest


def postgres_programs() -> Path | None:
    """Find the folder of the server's programs, where Debian puts them or on the path."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = shutil.which("initdb")
    return Path(found).parent if found else known[-1].parent if known else None


def why_no_postgres() -> str | None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "needs psycopg: pip install 'shoal[postgres]'"
    return None if postgres_programs() else "needs a PostgreSQL server (Debian: postgresql)"


def why_no_spark() -> str | None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "needs pyspark: pip install 'shoal[spark]'"
    return None if os.environ.get("JAVA_HOME") or shutil.which("java") else "needs Java 17"


needs_postgres = pytest.mark.skipif(why_no_postgres() is not None, reason=str(why_no_postgres()))
needs_spark = pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))


class Server:
    """A PostgreSQL server in a folder of its own, on a socket there and nowhere else."""

    def __init__(self) -> None:
        programs = postgres_programs()
        assert programs
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self.data = self.folder / "data"
        if os.getuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "shoal", "-E", "UTF8", "--locale=C.UTF-8")
        self.start()
        atexit.register(self.remove)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, timeout=600)

    def start(self) -> None:
        settings = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        self._run("pg_ctl", "-D", self.data, "-o", settings, "-l", self.folder / "log", "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    @property
    def environment(self) -> dict[str, str]:
        return {"PGHOST": str(self.folder), "PGUSER": "shoal", "PGDATABASE": "postgres", "PGPORT": "5432"}

    @cached_property
    def connection(self) -> Any:
        """A connection of the test's own, beside that of the run."""
        import psycopg

        return psycopg.connect(
            host=str(self.folder),
            user="shoal",
            dbname="postgres",
            port=5432,
            autocommit=True,
            prepare_threshold=None,  # a table of one name may be made again with other columns
        )

    def remove(self) -> None:
        if "connection" in self.__dict__:
            self.connection.close()
        with contextlib.suppress(subprocess.SubprocessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def postgres() -> Server:
    """Start one server for all tests of this process."""
    return Server()


# Java that runs for seconds gains nothing from compiling its code twice, nor from proving Spark's sound.
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


@cache
def spark() -> Any:
    """Start one session for all tests of this process, small and on loopback."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", QUICK_JAVA)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="warehouse"))
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


def watched(engine: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that will hold every table that comes from the engine or goes to it."""
    fetch, upload = engine.fetch, engine.upload
    crossed: list[Any] = []

    def fetched(self: Any, table: Any) -> Any:
        crossed.append(fetch(self, table))
        return crossed[-1]

    def uploaded(self: Any, table: Any) -> Any:
        crossed.append(table)
        return upload(self, table)

    monkeypatch.setattr(engine, "fetch", fetched)
    monkeypatch.setattr(engine, "upload", uploaded)
    return crossed
