"""A fault before any rename, link, fsync or unlink leaves the old state or the new one, each complete."""

from __future__ import annotations

import errno
import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import injection
import shoal
from example_counts import NIGHTLY, usual_or_nightly
from injection import ANATOMY, CANARY, NEW, OLD, Killer, exposed, fail, faults, state
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import DataError, Note, OutputError
from shoal.files.outputs import private_folder
from shoal.workflow.release.recovery import matches_release
from shoal.workflow.release.stage import stage_of

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ERRORS = [errno.EIO, errno.ENOSPC] if NIGHTLY else [errno.EIO]
RELEASES = {  # the operation -> what was in place before
    "anonymize_new": None,
    "anonymize": OLD,
    "anatomy": ANATOMY,
    "apply": OLD,
}
FILES = {"profile": "p.profile", "compare": "c.csv", "init": "i.yaml"}
CASES = [
    *[(operation, before is not None) for operation, before in RELEASES.items()],
    ("anatomy", False),
    *[(operation, replaces) for operation in FILES for replaces in (False, True)],
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs, and of a folder for each operation as it is before."""
    desk = tmp_path_factory.mktemp("desk")
    table = injection.write_table(desk)
    (desk / "policy.yaml").write_text(json.dumps(NEW), encoding="utf-8")
    (desk / "other").mkdir()
    shoal.anonymize(table, OLD, output=desk / "other" / "other.csv", force=True)
    (desk / "other" / ".r.csv.mine.tmp").write_text("mine", encoding="utf-8")
    shoal.anonymize(table, NEW, output=desk / "for-recipe.csv")
    shutil.copy(desk / "for-recipe.csv.private" / "recipe.json", desk / "recipe.json")
    return desk


def before(desk: Path, operation: str, *, replaces: bool) -> Path:
    """Make the folder that an operation begins with, once: bystanders, and what it replaces."""
    made = desk / f"before-{operation}-{replaces}"
    if not made.exists():
        shutil.copytree(desk / "other", made)
        table = desk / "people.csv"
        if replaces and operation in RELEASES:
            shoal.anonymize(table, RELEASES[operation], output=made / "r.csv")
        elif operation == "init" and replaces:
            (made / FILES[operation]).write_text("old", encoding="utf-8")
        elif replaces:
            injection.OPERATIONS[operation](table, made)
    return made


def begin(desk: Path, folder: Path, operation: str, *, replaces: bool) -> dict[str, bytes]:
    """Copy that folder; return what is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(before(desk, operation, replaces=replaces), folder)
    return state(folder)


def next_command(desk: Path, folder: Path, operation: str) -> None:
    """Let the next command on the output begin, which may refuse; it changes nothing else."""
    table = desk / "people.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        if operation in RELEASES:
            rules = ANATOMY if operation == "anatomy" else NEW
            try:
                shoal.verify(folder / "r.csv", rules)
            except DataError:  # there is none
                assert not (folder / "r.csv").exists()
        else:  # files that are written whole: only the next writer tidies up
            injection.OPERATIONS[operation](table, folder)


def outcome(folder: Path, operation: str, old: dict[str, bytes]) -> str:
    """Return whether the folder is as it was or holds the new output whole; fail where it is neither."""
    now = state(folder)
    if now == old:
        return "old"
    bystanders = {name: text for name, text in old.items() if not is_output(name, operation)}
    assert {name: text for name, text in now.items() if not is_output(name, operation)} == bystanders
    assert not [name for name, text in now.items() if CANARY.encode() in text]
    if operation in RELEASES:
        check_release(folder / "r.csv", operation, now)
    else:
        assert set(now) == {*bystanders, FILES[operation]}
    return "new"


def is_output(name: str, operation: str) -> bool:
    if name == ".r.csv.mine.tmp":
        return False
    return name.lstrip(".").startswith(
        ("r.csv", "r.sensitive") if operation in RELEASES else FILES[operation]
    )


def check_release(release: Path, operation: str, now: dict[str, bytes]) -> None:
    """Check that all parts of a release are there and belong together."""
    home = private_folder(release)
    expected = {"r.csv", "r.csv.codebook.csv", "r.csv.private/recipe.json", "r.csv.private/audit.json"}
    expected |= {"r.sensitive.csv"} if operation == "anatomy" else set()
    expected |= {"r.csv.private/mapping/01-age.csv"} if operation.startswith("anonymize") else set()
    assert {name for name in now if is_output(name, operation)} == expected
    assert matches_release(home, stage_of(Target(str(release), "file", ".csv"), release, DuckDb()))
    recipe = json.loads((home / "recipe.json").read_text(encoding="utf-8"))
    rules = ANATOMY if operation == "anatomy" else NEW
    assert recipe["policy"]["models"] == rules["models"]
    assert shoal.verify(release, rules).verified
    if operation != "anatomy":
        assert (release.parent / "r.csv.codebook.csv").read_bytes() == codebook_of(operation)


@cache
def codebook_of(operation: str) -> bytes:
    """Return the codebook of the new release, which is the same each time."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        table = injection.write_table(Path(folder))
        shoal.anonymize(table, NEW, output=Path(folder) / "r.csv")
        return (Path(folder) / "r.csv.codebook.csv").read_bytes()


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(("operation", "replaces"), CASES)
def test_an_error_in_any_call_leaves_the_old_state_or_the_new_one(
    desk: Path, tmp_path: Path, operation: str, replaces: bool, error: int
) -> None:
    results = []
    for number in range(1, 200):
        old = begin(desk, tmp_path / "out", operation, replaces=replaces)
        reported = "new"
        with faults(fail(error), number, folder=tmp_path / "out") as injected:
            try:
                injection.OPERATIONS[operation](desk / "people.csv", tmp_path / "out")
            except OutputError as refused:
                reported = "new" if "was released, but" in str(refused) else "old"
        if injected.count < number:
            break
        assert not exposed(tmp_path / "out")
        if operation in RELEASES:
            next_command(desk, tmp_path / "out", operation)
            results.append(outcome(tmp_path / "out", operation, old))
        else:
            results.append(check_file(desk, tmp_path / "out", operation, old))
        assert results[-1] == reported, f"call {number}"
    assert {*results} >= {"new", "old"}
    assert outcome(tmp_path / "out", operation, old) == "new"


def check_file(desk: Path, folder: Path, operation: str, old: dict[str, bytes]) -> str:
    """Check a file that is written whole before the next command, and what is left after it."""
    name = FILES[operation]
    now = state(folder)
    result = "old" if now.get(name) == old.get(name) else "new"
    assert {name: text for name, text in now.items() if not is_output(name, operation)} == {
        name: text for name, text in old.items() if not is_output(name, operation)
    }
    assert not [name for name, text in now.items() if CANARY.encode() in text]
    next_command(desk, folder, operation)
    assert outcome(folder, operation, old) == "new"
    return result


@pytest.mark.parametrize(("operation", "replaces"), CASES[:5])
def test_a_disk_that_fails_from_any_call_on_loses_nothing(
    desk: Path, tmp_path: Path, operation: str, replaces: bool
) -> None:
    """Nothing can be tidied up before the disk works again; then the next command does."""
    step = usual_or_nightly(3, 1)
    for number in range(1, 200, step):
        old = begin(desk, tmp_path / "out", operation, replaces=replaces)
        with faults(fail(), number, 10_000, folder=tmp_path / "out") as injected, suppress(OutputError):
            injection.OPERATIONS[operation](desk / "people.csv", tmp_path / "out")
        if injected.count < number:
            break
        assert not exposed(tmp_path / "out")
        next_command(desk, tmp_path / "out", operation)
        outcome(tmp_path / "out", operation, old)
    assert number > 5


# kill -9


@pytest.fixture(scope="module")
def killer() -> Iterator[Any]:
    killer = Killer()
    yield killer
    killer.close()


@pytest.mark.parametrize(("operation", "replaces"), CASES)
def test_a_kill_before_any_call_leaves_the_old_state_or_the_new_one(
    desk: Path, tmp_path: Path, killer: Killer, operation: str, replaces: bool
) -> None:
    begin(desk, tmp_path / "out", operation, replaces=replaces)
    with faults(lambda: None, 0, folder=tmp_path / "out") as injected:
        injection.OPERATIONS[operation](desk / "people.csv", tmp_path / "out")
    calls = range(1, injected.count + 1)
    results, killed = [], []
    for number in calls if NIGHTLY else calls[:: max(1, len(calls) // 5)]:
        old = begin(desk, tmp_path / "out", operation, replaces=replaces)
        killed.append(killer(operation, desk / "people.csv", tmp_path / "out", number))
        assert not exposed(tmp_path / "out")
        if operation in RELEASES:
            next_command(desk, tmp_path / "out", operation)
            results.append(outcome(tmp_path / "out", operation, old))
        else:
            results.append(check_file(desk, tmp_path / "out", operation, old))
    assert "old" in results
    assert all(killed)
