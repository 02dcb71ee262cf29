"""Databases that serve one engine after the other: nothing of the one is seen by the next."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.engines import databases
from shoal.engines.databases import connect
from shoal.engines.duckdb import DuckDb

MEMORY = 1_000_000_000


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """Let none wait that another test left."""
    gc.collect()
    while databases._waiting:
        databases._waiting.pop().root.close()
    yield
    gc.collect()


OWN = "SELECT database_oid FROM duckdb_databases() WHERE database_name = 'memory'"
FOLDER = "SELECT current_setting('temp_directory')"


def asked(connection: Any, query: str) -> Any:
    return connection.con.execute(query).fetchone()[0]


@pytest.mark.filterwarnings("ignore::shoal.errors.Note")
def test_the_next_engine_has_the_same_database_and_sees_nothing_of_the_last(tmp_path: Path) -> None:
    text = tmp_path / "a.csv"
    text.write_bytes("größe\n1\n".encode("cp1252"))
    engine = DuckDb(memory_limit="1GB")
    engine.fetch(engine.open(text))
    engine.kept(engine.open(pa.table({"a": [1]})))
    before = asked(engine.connection, FOLDER)
    engine.spill(tmp_path)
    first = asked(
        engine.connection, "SELECT database_oid FROM duckdb_databases() WHERE database_name = 'memory'"
    )
    assert engine.connection.con.list_filesystems()
    assert asked(engine.connection, "SELECT count(*) FROM duckdb_tables()") == 1
    del engine
    gc.collect()
    assert len(databases._waiting) == 1
    other = connect(MEMORY)
    assert databases._waiting == []
    assert asked(other, OWN) == first
    assert other.con.list_filesystems() == []
    assert asked(other, "SELECT count(*) FROM duckdb_tables()") == 0
    assert asked(other, "SELECT count(*) FROM duckdb_views() WHERE NOT internal") == 0
    assert asked(other, FOLDER) not in (str(tmp_path), before)
    assert asked(other, "SELECT current_setting('memory_limit')") == "953.6 MiB"


def test_two_engines_at_once_have_two_databases() -> None:
    one, other = connect(MEMORY), connect(2 * MEMORY)
    assert asked(one, "SELECT current_setting('memory_limit')") == "953.6 MiB"
    assert asked(other, "SELECT current_setting('memory_limit')") == "1.8 GiB"


def test_few_wait_and_their_folders_go() -> None:
    several = [connect(MEMORY) for _ in range(4)]
    folders = [Path(asked(one, FOLDER)) for one in several]
    assert all(folder.is_dir() for folder in folders)
    del several
    gc.collect()
    assert len(databases._waiting) == 2
    assert not any(folder.exists() for folder in folders)


def test_one_whose_memory_went_elsewhere_serves_no_more(tmp_path: Path) -> None:
    connection = connect(60_000_000)
    own = Path(asked(connection, FOLDER))
    connection.con.execute("SET temp_directory = ?", [str(tmp_path / "spill")])
    connection.con.execute(
        "CREATE TEMP TABLE much AS SELECT random() AS a, random() AS b FROM range(8_000_000)"
    )
    assert list((tmp_path / "spill").iterdir())
    del connection
    gc.collect()
    assert databases._waiting == []
    assert not own.exists()
    assert not list((tmp_path / "spill").glob("*"))


SCRIPT = """
import os, sys
import pyarrow as pa
from shoal.engines.duckdb import DuckDb
def count():
    engine = DuckDb()
    return engine.count(engine.open(pa.table({"a": list("xyx") * 50_000})), ["a"])[0].sizes.tolist()
assert count() == [100_000, 50_000]
kept = DuckDb()
folder = kept.connection.con.execute("SELECT current_setting('temp_directory')").fetchone()[0]
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        del kept  # is the parent's
        assert os.path.isdir(folder)
        assert count() == [100_000, 50_000]
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert count() == [100_000, 50_000]
"""


def test_a_forked_process_has_its_own_and_nothing_stays_at_the_end(tmp_path: Path) -> None:
    source = str(Path(shoal.__file__).resolve().parents[1])
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": source}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
