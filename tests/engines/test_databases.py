"""Databases in memory: one for each engine, which goes with what it has put on disk."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import shoal
from shoal.engines.duckdb import connection
from shoal.engines.duckdb.connection import Database, connect
from shoal.engines.duckdb.engine import DuckDb

MEMORY = 1_000_000_000


FOLDER = "SELECT current_setting('temp_directory')"


def asked(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


class Owner:
    """What a database belongs to."""


def test_a_run_may_end_at_any_line_of_the_begin_of_another() -> None:
    """As when garbage is collected there; a lock would wait for itself."""
    lines = []

    def end_another(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != connection.__file__:
            return None
        if event == "line":
            sys.settrace(None)
            lines.append(frame.f_lineno)
            database = Database()
            database.begin(MEMORY, None)
            database.end()
            sys.settrace(end_another)
        return end_another

    def begin() -> None:
        sys.settrace(end_another)
        connect(Owner(), MEMORY)
        sys.settrace(None)

    thread = Thread(target=begin, daemon=True)
    thread.start()
    thread.join(300)
    assert not thread.is_alive()
    assert len(lines) > 5


def test_two_engines_have_two_databases() -> None:
    owners = Owner(), Owner()
    one, other = (connect(owner, (n + 1) * MEMORY).session for n, owner in enumerate(owners))
    assert asked(one, "SELECT current_setting('memory_limit')") == "953.6 MiB"
    assert asked(other, "SELECT current_setting('memory_limit')") == "1.8 GiB"
    one.execute("CREATE TABLE people (age INTEGER)")
    assert asked(other, "SELECT count(*) FROM duckdb_tables()") == 0


@pytest.mark.filterwarnings("ignore::shoal.errors.Note")
def test_a_database_goes_with_its_engine(tmp_path: Path) -> None:
    text = tmp_path / "a.csv"
    text.write_bytes("größe\n1\n".encode("cp1252"))
    engine = DuckDb(memory_limit="1GB")
    engine.fetch(engine.open(text))
    session, folder = engine.connection, Path(asked(engine.connection, FOLDER))
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    del engine
    gc.collect()
    assert not folder.parent.exists()
    with pytest.raises(duckdb.ConnectionException):
        session.execute("SELECT 1")


def test_a_folder_that_was_used_is_removed(tmp_path: Path) -> None:
    owner = Owner()
    database = connect(owner, 60_000_000)
    connection = database.session
    first = Path(asked(connection, FOLDER))
    connection.execute("CREATE TEMP TABLE much AS SELECT random() AS a, random() AS b FROM range(8_000_000)")
    assert list(first.iterdir())
    database.spill(tmp_path / "release.csv")  # too late
    assert asked(connection, FOLDER) == str(first)
    del owner
    gc.collect()
    assert not first.parent.exists()
    assert not list(tmp_path.iterdir())


SCRIPT = """
import os, sys
import pyarrow as pa
from shoal.engines.duckdb.engine import DuckDb
def count():
    engine = DuckDb()
    return engine.count(engine.open(pa.table({"a": list("xyx") * 50_000})), ["a"])[0].sizes.tolist()
assert count() == [100_000, 50_000]
kept = DuckDb()
folder = kept.connection.execute("SELECT current_setting('temp_directory')").fetchone()[0]
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        del kept  # is the parent's
        assert os.path.isdir(os.path.dirname(folder))
        assert count() == [100_000, 50_000]
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert count() == [100_000, 50_000]
"""


def test_a_forked_process_has_its_own_and_nothing_stays_at_the_end(tmp_path: Path) -> None:
    source = str(Path(shoal.__file__).resolve().parents[1])
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": source}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_run_is_seen_by_the_next() -> None:
    """Neither tables and views, nor what was registered, nor settings."""
    owner = Owner()
    first = connect(owner, MEMORY)
    first.session.execute("CREATE TEMP TABLE people AS SELECT 1 AS age")
    first.session.execute("CREATE TEMP VIEW persons AS SELECT * FROM people")
    first.session.register("frame", pa.table({"age": [1]}))
    folder = Path(asked(first.session, FOLDER))
    del owner
    gc.collect()
    assert not folder.parent.exists()
    owner = Owner()
    second = connect(owner, 2 * MEMORY)
    assert second is first  # which was given back
    assert asked(second.session, "SELECT current_setting('memory_limit')") == "1.8 GiB"
    assert asked(second.session, FOLDER) != str(folder)
    for name in ("people", "persons", "frame"):
        with pytest.raises(duckdb.CatalogException):
            second.session.execute(f"SELECT * FROM {name}")
    assert asked(second.session, "SELECT count(*) FROM duckdb_tables()") == 0


def test_a_database_that_wrote_to_its_folder_is_not_used_again() -> None:
    owner = Owner()
    database = connect(owner, 60_000_000)
    database.session.execute(
        "CREATE TEMP TABLE much AS SELECT random() AS a, random() AS b FROM range(8_000_000)"
    )
    del owner
    gc.collect()
    assert connect(Owner(), MEMORY) is not database
