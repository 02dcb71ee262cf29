"""A fault at any statement of a run in PostgreSQL, or at any call that changes the disk beside it."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import injection
import shoal
from example_counts import NIGHTLY, usual_or_nightly
from injection import CANARY, NEW, OLD, Killer, exposed, fail, faults, state
from servers import needs_postgres, postgres
from shoal.errors import DataError, Note, OutputError, ShoalError

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.xdist_group("servers"),
    needs_postgres,
]
RUN = injection.OPERATIONS["postgres"]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A database with the table of people, and a folder of one's own to be in."""
    for name, value in postgres().environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    connection = postgres().connection
    connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    connection.execute(
        f"CREATE TABLE people AS SELECT '{CANARY}-' || i AS name, 20 + i % 12 AS age, "
        "substr('abcd', 1 + i % 4, 1) AS ward FROM generate_series(0, 35) AS i"
    )
    return connection


@pytest.fixture
def begin(server: Any) -> Callable[[], dict[str, bytes]]:
    """What brings back the old release, which a run replaces; it returns the files beside it."""
    folder = Path.cwd()
    shoal.anonymize("people", OLD, output="r", engine="postgres")
    shutil.copytree(folder, folder.with_name("before"))
    mark = server.execute("SELECT obj_description('r'::regclass, 'pg_class')").fetchone()[0]
    server.execute("CREATE TABLE old AS TABLE r")

    def begun() -> dict[str, bytes]:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(folder.with_name("before"), folder, dirs_exist_ok=True)
        server.execute(f"DROP TABLE IF EXISTS r; CREATE TABLE r AS TABLE old; COMMENT ON TABLE r IS '{mark}'")
        return state(folder)

    return begun


def terminate(server: Any) -> Callable[[], Any]:
    """Return what ends the connections of the run, and waits until they are gone."""

    def strike() -> None:
        query = (
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'shoal'"
        )
        server.execute(query).fetchall()

    return strike


def outcome(server: Any, old: dict[str, bytes]) -> str:
    """Let the next command read the release; tell whether it is the old one or the new, each whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        shoal.verify("r", NEW, engine="postgres")
    now = state(Path.cwd())
    bands = server.execute("SELECT count(*) FROM r WHERE age::text LIKE '%-%'").fetchone()[0]
    assert not [name for name, text in now.items() if CANARY.encode() in text]
    assert server.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'shoal%'").fetchone()[0] == 0
    if now == old:
        assert bands == 0
        return "old"
    assert bands == 36
    assert set(now) == {"r.codebook.csv", "r.private/recipe.json", "r.private/audit.json"}
    recipe = json.loads(now["r.private/recipe.json"])
    assert recipe["policy"]["models"] == NEW["models"]
    mark = server.execute("SELECT obj_description('r'::regclass, 'pg_class')").fetchone()[0]
    assert mark == f"shoal {json.loads(now['r.private/audit.json'])['release_sha256']}"
    assert now["r.codebook.csv"] != old["r.codebook.csv"]
    return "new"


def run() -> str:
    """Replace the release; tell what the run reports."""
    try:
        RUN(Path(), Path.cwd())
    except (DataError, OutputError) as error:
        return "new" if "was released, but" in str(error) else "old"
    return "new"


def test_a_connection_that_is_lost_at_any_statement_leaves_the_old_state_or_the_new_one(
    server: Any, begin: Callable[[], dict[str, bytes]]
) -> None:
    results = []
    begin()
    with faults(lambda: None, 0, targets=injection.statements()) as counted:
        run()
    numbers = range(1, counted.count + 1)
    few = [*numbers[:-12:8], *numbers[-12:]]  # the last ones are those of the commit
    for number in numbers if NIGHTLY else few:
        old = begin()
        with faults(terminate(server), number, targets=injection.statements()):
            reported = run()
        results.append(outcome(server, old))
        assert results[-1] == reported, f"statement {number}"
    assert {*results} == {"old", "new"}


def test_a_commit_whose_answer_is_lost_is_known_to_be_one(
    server: Any, begin: Callable[[], dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    real, strike = psycopg.Connection.commit, terminate(server)

    def commit(self: Any) -> None:
        real(self)
        strike()
        self.execute("SELECT 1")  # the connection is gone

    old = begin()
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "commit", commit)
        assert run() == "new"
    assert outcome(server, old) == "new"


def test_an_error_of_the_disk_at_any_call_leaves_the_old_state_or_the_new_one(
    server: Any, begin: Callable[[], dict[str, bytes]]
) -> None:
    results = []
    for number in range(1, 100):
        old = begin()
        with faults(fail(), number) as injected:
            reported = run()
        if injected.count < number:
            break
        results.append(outcome(server, old))
        assert results[-1] == reported, f"call {number}"
    assert {*results} == {"old", "new"}


def test_a_new_table_is_taken_back_where_the_disk_fails_for_good(server: Any) -> None:
    """The table is removed for good, not in a transaction that nobody commits."""
    for number in range(1, usual_or_nightly(10, 30)):
        reported = "new"
        with faults(fail(), number, 10_000):
            try:
                shoal.anonymize("people", NEW, output="fresh", engine="postgres")
            except (DataError, OutputError) as error:
                reported = "new" if "was released, but" in str(error) else "old"
        there = server.execute("SELECT to_regclass('fresh')").fetchone()[0]
        assert (there is not None) == (reported == "new"), f"from call {number} on"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Note)
            try:
                shoal.verify("fresh", NEW, engine="postgres")
            except ShoalError:
                assert there is None
        names = {path.name for path in Path().iterdir()}
        if there is None:
            assert names <= {".fresh.tmp"}
        else:
            assert {"fresh.private", "fresh.codebook.csv"} <= names
            server.execute("DROP TABLE fresh")
        for path in Path().iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def killer(server: Any) -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


def test_a_kill_before_any_call_leaves_the_old_state_or_the_new_one(
    server: Any, begin: Callable[[], dict[str, bytes]], killer: Killer
) -> None:
    begin()
    with faults(
        lambda: None, 0, targets=[*injection.DISK, *injection.statements()], folder=Path.cwd()
    ) as injected:
        assert run() == "new"
    numbers = range(1, injected.count + 1)
    assert not killer("postgres", Path(), Path.cwd(), 10_000)
    results, killed = [], []
    for number in numbers if NIGHTLY else numbers[-16::3]:
        old = begin()
        killed.append(killer("postgres", Path(), Path.cwd(), number))
        assert not exposed(Path.cwd())
        terminate(server)()  # what the server has not noticed yet
        results.append(outcome(server, old))
    assert {*results} == {"old", "new"}
    assert all(killed)
