"""Readers of a release that a killed run left incomplete; tables and folders that change during a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import injection
import shoal
from example_counts import NIGHTLY
from injection import ANATOMY, NEW, OLD, Killer, faults, state
from shoal.cli.app import app
from shoal.errors import DataError, Note, OutputError

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    killer = Killer()
    yield killer
    killer.close()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return injection.write_table(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


PARTS = {"r.csv", "r.csv.codebook.csv", "r.csv.private"}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory, killer: Killer) -> dict[bool, Path]:
    """What runs leave that are killed with the private folder moved: with the new release, or the old."""
    home = tmp_path_factory.mktemp("left")
    table = injection.write_table(home)
    (home / "before").mkdir()
    shoal.anonymize(table, OLD, output=home / "before" / "r.csv")
    for moment in ("old", "new"):
        shutil.copytree(home / "before", home / moment)
        assert killer("anonymize", table, home / moment, 0, moment)
    return {False: home / "old", True: home / "new"}


READERS: dict[str, Callable[[Path, Path], Any]] = {
    "verify": lambda table, release: shoal.verify(release, NEW),
    "apply": lambda table, release: shoal.apply(f"{release}.private", table),
    "apply recipe": lambda table, release: shoal.apply(f"{release}.private/recipe.json", table),
    "attack": lambda table, release: shoal.attack(release, table, ["age"], recipe=f"{release}.private"),
    "utility": lambda table, release: shoal.utility(table, release, NEW),
    "risk": lambda table, release: shoal.risk(table, NEW, release=release),
    "measure": lambda table, release: shoal.measure(release, ["age"]),
    "intersect": lambda table, release: shoal.intersect(release, release, NEW, table=table),
}


@pytest.mark.parametrize("placed", [True, False], ids=["completed", "undone"])
def test_every_reader_completes_or_undoes_an_interrupted_release(
    table: Path, folder: Path, left: dict[bool, Path], placed: bool
) -> None:
    for name, read in READERS.items():
        shutil.rmtree(folder)
        shutil.copytree(left[placed], folder)
        with pytest.warns(
            Note, match="It is complete now" if placed else "The release before it is complete"
        ):
            read(table, folder / "r.csv")
        assert {path.name for path in folder.iterdir()} == PARTS, name
        recipe = json.loads((folder / "r.csv.private" / "recipe.json").read_text(encoding="utf-8"))
        assert recipe["policy"]["models"] == (NEW if placed else OLD)["models"]


POLICY_READERS: dict[str, Callable[[Path, Path, str], Any]] = {
    "verify": lambda table, release, policy: shoal.verify(release, policy),
    "anonymize": lambda table, release, policy: shoal.anonymize(table, policy),
    "utility": lambda table, release, policy: shoal.utility(table, release, policy),
    "risk": lambda table, release, policy: shoal.risk(table, policy),
    "measure": lambda table, release, policy: shoal.measure(release, policy=policy),
    "compare": lambda table, release, policy: shoal.compare(table, policy, algorithms=["contour"]),
    "profile": lambda table, release, policy: shoal.profile(table, policy),
    "check": lambda table, release, policy: shoal.check_hierarchies(table, policy),
    "show": lambda table, release, policy: CliRunner().invoke(
        app, ["hierarchy", "show", "--policy", policy, "--column", "age", "20"], catch_exceptions=False
    ),
}


@pytest.mark.parametrize("name", POLICY_READERS)
def test_a_policy_in_the_private_folder_is_read_after_an_interrupted_run_is_settled(
    name: str, table: Path, folder: Path, left: dict[bool, Path]
) -> None:
    shutil.copytree(left[False], folder, dirs_exist_ok=True)
    for private in (*folder.glob(".r.csv.*.tmp.private"), *folder.glob(".r.csv.*.tmp.replaced")):
        (private / "policy.yaml").write_text(json.dumps(OLD), encoding="utf-8")
    assert not (folder / "r.csv.private").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        POLICY_READERS[name](table, folder / "r.csv", str(folder / "r.csv.private" / "policy.yaml"))
    assert {path.name for path in folder.iterdir()} == PARTS


def test_a_release_is_read_where_its_folder_is_read_only(
    table: Path, folder: Path, left: dict[bool, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The superuser may write anywhere, so the system's refusal is simulated."""
    shutil.copytree(left[True], folder, dirs_exist_ok=True)
    before = state(folder)
    real = os.open

    def refuse(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if str(path).startswith(str(folder)) and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    with faults(injection.fail(30), 1, 10_000):
        result = CliRunner().invoke(app, ["verify", str(folder / "r.csv"), "-p", str(policy_file(table))])
    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert "was interrupted, and what it left cannot be completed or undone: Read-only file system" in said
    assert "Run this command again where the folder of the release can be written." in said
    assert state(folder) == before


def policy_file(table: Path, rules: dict[str, Any] = NEW) -> Path:
    path = table.with_name("policy.yaml")
    path.write_text(json.dumps(rules), encoding="utf-8")
    return path


def test_a_run_that_is_alive_is_left_alone_by_readers(table: Path, folder: Path) -> None:
    shoal.anonymize(table, OLD, output=folder / "r.csv")
    seen = []

    def progress(phase: str, *_: Any) -> None:
        if phase == "verify":
            before = state(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("error", Note)
                assert shoal.verify(folder / "r.csv", OLD).verified
            seen.append(state(folder) == before)

    shoal.anonymize(table, NEW, output=folder / "r.csv", force=True, progress=progress)
    assert seen == [True]


def test_a_file_with_the_name_of_the_lock_is_not_removed(table: Path, folder: Path) -> None:
    (folder / ".r.csv.tmp").write_text("mine", encoding="utf-8")
    shoal.anonymize(table, NEW, output=folder / "r.csv")
    assert shoal.verify(folder / "r.csv", NEW).verified
    assert (folder / ".r.csv.tmp").read_text(encoding="utf-8") == "mine"


# What changes while a run reads


def add_rows(table: Path) -> None:
    with open(table, "a", encoding="utf-8") as file:
        file.write("new,77,z\n" * 5)


def truncate(table: Path) -> None:
    os.truncate(table, table.stat().st_size // 2)


def swap_columns(table: Path) -> None:
    text = table.read_text(encoding="utf-8").replace("name,age,ward", "name,ward,age")
    table.write_text(text, encoding="utf-8")


def same_counts(table: Path) -> None:
    """Change what no model looks at."""
    text = table.read_text(encoding="utf-8").replace(",a\n", ",e\n")
    table.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("rules", [NEW, ANATOMY], ids=["plain", "anatomy"])
@pytest.mark.parametrize("change", [add_rows, truncate, swap_columns, same_counts, Path.unlink])
@pytest.mark.parametrize("phase", ["search", "recode", "verify"])
@pytest.mark.parametrize("to_file", [True, False], ids=["file", "memory"])
def test_a_table_that_changed_is_named(
    table: Path,
    folder: Path,
    rules: dict[str, Any],
    change: Callable[[Path], None],
    phase: str,
    to_file: bool,
) -> None:
    def progress(now: str, *_: Any) -> None:
        if now == phase and not done:
            done.append(True)
            change(table)

    done: list[bool] = []
    words = "was removed while" if change is Path.unlink else "was changed while it was read"
    with pytest.raises(DataError, match=words) as caught:
        shoal.anonymize(table, rules, output=folder / "r.csv" if to_file else None, progress=progress)
    assert repr(str(table)) in str(caught.value)
    assert not any(folder.iterdir())


def test_a_table_of_a_database_that_changed_is_named(folder: Path) -> None:
    import ibis

    backend = ibis.duckdb.connect()
    backend.raw_sql(
        "CREATE TABLE people AS SELECT 'p' || i AS name, 20 + i % 12 AS age, 'a' AS ward FROM range(36) t(i)"
    )

    def progress(now: str, *_: Any) -> None:
        if now == "recode":
            backend.raw_sql("INSERT INTO people SELECT 'q', 77, 'z' FROM range(5)")

    with pytest.raises(DataError, match="The table was changed while it was read"):
        shoal.anonymize(backend.table("people"), NEW, output=folder / "r.csv", progress=progress)


@pytest.mark.parametrize("phase", ["search", "recode", "verify"])
def test_an_output_folder_that_vanished_is_named(table: Path, folder: Path, phase: str) -> None:
    def progress(now: str, *_: Any) -> None:
        if now == phase:
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(OutputError, match="does not exist") as caught:
        shoal.anonymize(table, NEW, output=folder / "r.csv", progress=progress)
    assert repr(str(folder)) in str(caught.value)
    assert not folder.exists()


LIMITED = """
import resource, sys
from shoal.cli.app import main
import shoal.workflow.release.anonymize, shoal.workflow.compare.compare
import shoal.workflow.profile.profile, shoal.engines.duckdb.engine
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


@pytest.mark.parametrize("ending", ["csv", "arrow", *(["csv.gz", "parquet"] if NIGHTLY else [])])
def test_a_limit_on_the_size_of_files_is_named(table: Path, folder: Path, ending: str) -> None:
    from shoal.sample import write_csv

    write_csv(table, 20_000)
    rules = {
        "columns": {
            name: {"role": "other"} for name in table.read_text(encoding="utf-8").split("\n", 1)[0].split(",")
        }
        | {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}}},
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": "50%",
    }
    command = ["anonymize", table, "-p", policy_file(table, rules), "-o", folder / f"r.{ending}"]
    limited = [sys.executable, "-c", LIMITED, "16384", *map(str, command)]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    assert "(ulimit -f)" in said
    assert "Raise it and run again." in said
    assert ".tmp" not in said
    assert not any(folder.iterdir())
