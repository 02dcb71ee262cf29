"""What --force may replace: the files of one release, each a regular file with a name of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import shoal
from shoal.cli.app import app
from shoal.errors import OutputError

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

QUASI = "quasi-identifier"
ROWS = "".join(f"{20 + i % 4},{'abc'[i % 3]}\n" for i in range(24))
COLUMNS: dict[str, Any] = {"age": {"role": QUASI, "hierarchy": {"intervals": [10]}}}
PLAIN = {"columns": COLUMNS | {"ward": {"role": "other"}}, "models": [{"k-anonymity": {"k": 2}}]}
ANATOMY = {
    "columns": COLUMNS | {"ward": {"role": "sensitive"}},
    "models": [{"distinct-l-diversity": {"l": 2}}],
    "algorithm": "anatomy",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(f"age,ward\n{ROWS}", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def contents(folder: Path, begins: str = "") -> dict[str, bytes]:
    """Return every file below a folder whose name begins so."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    named = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: content for name, content in named.items() if name.startswith(begins)}


def copy_release(release: Path, other: Path) -> None:
    """Copy a release and its private folder, as people do; the audit still holds the old names."""
    shutil.copy(release, other)
    shutil.copytree(f"{release}.private", f"{other}.private")


@pytest.mark.parametrize("policy", [PLAIN, ANATOMY], ids=["plain", "anatomy"])
def test_releasing_over_a_copy_leaves_the_first_release_alone(
    data: Path, folder: Path, policy: dict[str, Any]
) -> None:
    shoal.anonymize(data, policy, output=folder / "first.csv")
    before = contents(folder, "first")
    assert "first.csv.codebook.csv" in before
    assert ("first.sensitive.csv" in before) == (policy is ANATOMY)
    copy_release(folder / "first.csv", folder / "copy.csv")
    shoal.anonymize(data, PLAIN, output=folder / "copy.csv", force=True)
    assert contents(folder, "first") == before


def test_names_in_an_edited_audit_are_not_touched(data: Path, folder: Path) -> None:
    output = folder / "r.csv"
    shoal.anonymize(data, PLAIN, output=output)
    shutil.copy(data, folder / "people.csv")
    (folder / "x.sensitive.csv").write_text("of another release", encoding="utf-8")
    audit = folder / "r.csv.private" / "audit.json"
    told = json.loads(audit.read_text(encoding="utf-8"))
    told["beside"] |= {
        "sensitive.csv": "x.sensitive.csv",
        "../../people.csv": "people.csv",
        "recipe.json": "people.csv",
    }
    audit.write_text(json.dumps(told), encoding="utf-8")
    shoal.anonymize(folder / "people.csv", PLAIN, output=output, force=True)
    assert (folder / "people.csv").read_bytes() == data.read_bytes()
    assert data.exists()
    assert (folder / "x.sensitive.csv").read_text(encoding="utf-8") == "of another release"


def test_an_input_with_the_name_of_the_old_second_table_is_not_replaced(data: Path, folder: Path) -> None:
    output = folder / "r.csv"
    shoal.anonymize(data, ANATOMY, output=output)
    shutil.copy(data, folder / "r.sensitive.csv")
    with pytest.raises(OutputError, match="is the input and would be replaced"):
        shoal.anonymize(folder / "r.sensitive.csv", PLAIN, output=output, force=True)
    assert (folder / "r.sensitive.csv").read_bytes() == data.read_bytes()


def test_a_file_named_like_a_second_table_stays_where_the_release_had_none(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "r.csv")
    (folder / "r.sensitive.csv").write_text("mine", encoding="utf-8")
    shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)
    assert (folder / "r.sensitive.csv").read_text(encoding="utf-8") == "mine"


def test_files_next_to_a_copy_that_no_release_wrote_are_neither_removed_nor_replaced(
    data: Path, folder: Path
) -> None:
    shoal.anonymize(data, ANATOMY, output=folder / "first.csv")
    copy_release(folder / "first.csv", folder / "copy.csv")
    table, codebook = folder / "copy.sensitive.csv", folder / "copy.csv.codebook.csv"
    table.write_text("mine", encoding="utf-8")
    shoal.anonymize(data, PLAIN, output=folder / "copy.csv", force=True)
    assert table.read_text(encoding="utf-8") == "mine"
    codebook.write_text("my notes", encoding="utf-8")
    with pytest.raises(OutputError, match="is not what the replaced release wrote"):
        shoal.anonymize(data, PLAIN, output=folder / "copy.csv", force=True)
    assert codebook.read_text(encoding="utf-8") == "my notes"


def test_the_pages_of_an_old_release_go_with_it(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "r.csv", report=True, mapping=True)
    assert (folder / "r.csv.private" / "certificate.html").exists()
    shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)
    assert {path.name for path in (folder / "r.csv.private").iterdir()} == {"audit.json", "recipe.json"}


def test_a_second_table_goes_with_the_release_that_had_it(data: Path, folder: Path) -> None:
    shoal.anonymize(data, ANATOMY, output=folder / "r.csv")
    assert (folder / "r.sensitive.csv").exists()
    shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)
    assert set(os.listdir(folder)) == {"r.csv", "r.csv.codebook.csv", "r.csv.private"}


def test_a_hierarchy_file_of_the_policy_is_not_replaced(data: Path, folder: Path) -> None:
    rows = "".join(f"{age};20-29;*\n" for age in range(20, 24))
    (folder / "age.csv").write_text(rows, encoding="utf-8")
    columns = {
        "age": {"role": QUASI, "hierarchy": {"csv": str(folder / "age.csv")}},
        "ward": {"role": "other"},
    }
    policy = PLAIN | {"columns": columns}
    with pytest.raises(OutputError, match=r"is the hierarchy of 'age' and would be replaced"):
        shoal.anonymize(data, policy, output=folder / "age.csv", force=True)
    assert (folder / "age.csv").read_text(encoding="utf-8") == rows


# What is no regular file is never replaced, by no option that names an output


def make_symlink(path: Path) -> None:
    other = path.parent.parent / "elsewhere"
    other.write_text("of somebody else", encoding="utf-8")
    path.symlink_to(other)


def make_dangling(path: Path) -> None:
    path.symlink_to(path.parent.parent / "absent")


def make_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (os.mkfifo, "named pipe"),
    "symlink": (make_symlink, "symbolic link"),
    "dangling": (make_dangling, "symbolic link"),
    "socket": (make_socket, "socket"),
    "folder": (Path.mkdir, "folder"),
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def commands(data: Path, policy: Path, folder: Path) -> dict[str, tuple[list[object], list[Path]]]:
    """Return what writes each kind of output, with --force, and the files that it writes."""
    release = folder / "r.csv"
    anonymize = ["anonymize", data, "-p", policy, "-o", release, "--force"]
    return {
        "release": (anonymize, [release]),
        "codebook": (anonymize, [Path(f"{release}.codebook.csv")]),
        "private folder": (anonymize, [Path(f"{release}.private")]),
        "profile": (["profile", data, "-p", policy, "-o", folder / "p", "--force"], [folder / "p"]),
        "compare": (
            ["compare", data, "-p", policy, "--algorithm", "ola", "-o", folder / "c.csv", "--force"],
            [folder / "c.csv", folder / "c.csv.part"],
        ),
        "init": (["init", data, "-o", folder / "i.yaml", "--yes", "--force"], [folder / "i.yaml"]),
        "rows": (
            ["diagnose", data, "--k", "9", "--columns", "age", "--rows", folder / "rows", "--force"],
            [folder / "rows"],
        ),
        "demo": (
            ["demo", "--folder", folder, "--force"],
            [folder / "admissions.csv", folder / "policy.yaml"],
        ),
    }


OUTPUTS = ["release", "codebook", "private folder", "profile", "compare", "init", "rows", "demo"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other kinds of files")
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("kind", list(KINDS))
def test_only_regular_files_are_replaced(data: Path, folder: Path, output: str, kind: str) -> None:
    policy = data.with_name("policy.yaml")
    policy.write_text(json.dumps(PLAIN), encoding="utf-8")
    if (output, kind) == ("private folder", "folder"):
        pytest.skip("an empty folder is taken")
    command, paths = commands(data, policy, folder)[output]
    make, word = KINDS[kind]
    for path in paths:
        make(path)
        before = path.lstat(), set(os.listdir(folder))
        done = run(*command)
        assert done.exit_code == 2, (path, done.output)
        said = " ".join(done.stderr.split())
        foreign = output == "codebook" and kind == "folder"
        assert ("was not written by shoal" if foreign else f"is a {word}") in said, said
        assert (path.lstat().st_ino, path.lstat().st_mode) == (before[0].st_ino, before[0].st_mode)
        assert set(os.listdir(folder)) == before[1]
        path.rmdir() if kind == "folder" else path.unlink()
    if kind == "symlink":
        assert (folder.parent / "elsewhere").read_text(encoding="utf-8") == "of somebody else"
    assert not (folder.parent / "absent").exists()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/null"])
def test_a_device_is_no_output(data: Path, name: str) -> None:
    policy = data.with_name("policy.yaml")
    policy.write_text(json.dumps(PLAIN), encoding="utf-8")
    for command in (["init", data, "--yes"], ["profile", data, "-p", policy]):
        done = run(*command, "-o", name, "--force")
        assert done.exit_code == 2
        assert "is a symbolic link" in done.stderr or "is a device" in done.stderr


# The private folder of the release that is replaced: the files of the user in it are kept


def guessed(data: Path, output: Path, *arguments: object) -> Result:
    return run("anonymize", data, "--known", "age", "--k", "2", "--output", output, *arguments)


def test_the_guessed_policy_can_be_edited_where_it_is_and_used_again(data: Path, folder: Path) -> None:
    output, policy = folder / "r.csv", folder / "r.csv.private" / "policy.yaml"
    assert guessed(data, output).exit_code == 0
    text = policy.read_text(encoding="utf-8").replace("k: 2", "k: 3")
    edited = f"{text}# reviewed\n"
    policy.write_text(edited, encoding="utf-8")
    (policy.parent / "notes.txt").write_text("mine", encoding="utf-8")
    (policy.parent / "minutes").mkdir()
    (policy.parent / "minutes" / "may.txt").write_text("mine, too", encoding="utf-8")
    for _ in range(2):
        done = run("anonymize", data, "--policy", policy, "--output", output, "--force", "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["smallest_class"] >= 3
        assert policy.read_text(encoding="utf-8") == edited
        assert (policy.parent / "notes.txt").read_text(encoding="utf-8") == "mine"
        assert (policy.parent / "minutes" / "may.txt").read_text(encoding="utf-8") == "mine, too"
        recipe = json.loads((policy.parent / "recipe.json").read_text(encoding="utf-8"))
        assert recipe["policy"]["models"] == [{"k-anonymity": {"k": 3}}]


def test_a_guess_never_replaces_an_edited_policy(data: Path, folder: Path) -> None:
    output, policy = folder / "r.csv", folder / "r.csv.private" / "policy.yaml"
    assert guessed(data, output).exit_code == 0
    assert guessed(data, output, "--force").exit_code == 0
    before = contents(folder)
    policy.write_text("# mine\n" + policy.read_text(encoding="utf-8"), encoding="utf-8")
    refused = guessed(data, output, "--force")
    assert refused.exit_code == 2
    assert "was edited" in refused.output
    after = contents(folder)
    assert after.pop("r.csv.private/policy.yaml").startswith(b"# mine")
    del before["r.csv.private/policy.yaml"]
    assert after == before


def test_the_policy_of_an_old_guess_goes_with_its_release(data: Path, folder: Path) -> None:
    assert guessed(data, folder / "r.csv").exit_code == 0
    shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)
    assert not (folder / "r.csv.private" / "policy.yaml").exists()
    (folder / "r.csv.private" / "policy.yaml").write_text("mine", encoding="utf-8")
    shoal.apply(folder / "r.csv.private", data, output=folder / "r.csv", force=True)
    assert (folder / "r.csv.private" / "policy.yaml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", ["anonymize", "apply"])
def test_an_input_in_the_private_folder_is_refused(data: Path, folder: Path, command: str) -> None:
    output = folder / "r.csv"
    shoal.anonymize(data, PLAIN, output=output)
    inside = folder / "r.csv.private" / "people.csv"
    shutil.copy(data, inside)
    before = contents(folder)
    work = shoal.anonymize if command == "anonymize" else shoal.apply
    first, second = (inside, PLAIN) if command == "anonymize" else (folder / "r.csv.private", inside)
    with pytest.raises(OutputError, match=r"is the input and lies in the private folder"):
        work(first, second, output=output, force=True)  # type: ignore[operator]
    assert contents(folder) == before


def test_a_hierarchy_beside_the_edited_policy_is_kept(data: Path, folder: Path) -> None:
    output, home = folder / "r.csv", folder / "r.csv.private"
    shoal.anonymize(data, PLAIN, output=output, mapping=True)
    rows = "".join(f"{age};20-29;*\n" for age in range(20, 24))
    (home / "age.csv").write_text(rows, encoding="utf-8")
    (home / "mine.yaml").write_text(
        "columns:\n  age: {role: quasi-identifier, hierarchy: {csv: age.csv}}\n  ward: {role: other}\n"
        "models: [{k-anonymity: {k: 2}}]\n",
        encoding="utf-8",
    )
    for _ in range(2):
        shoal.anonymize(data, home / "mine.yaml", output=output, force=True)
        assert (home / "age.csv").read_text(encoding="utf-8") == rows
    assert not (home / "mapping").exists()


def test_a_hierarchy_in_a_replaced_part_of_the_private_folder_is_refused(data: Path, folder: Path) -> None:
    output, home = folder / "r.csv", folder / "r.csv.private"
    shoal.anonymize(data, PLAIN, output=output, mapping=True)
    mapping = home / "mapping" / "01-age.csv"
    mapping.write_text("".join(f"{age};20-29;*\n" for age in range(20, 24)), encoding="utf-8")
    columns = {"age": {"role": QUASI, "hierarchy": {"csv": str(mapping)}}, "ward": {"role": "other"}}
    with pytest.raises(OutputError, match=r"is the hierarchy of 'age' and would be replaced"):
        shoal.anonymize(data, PLAIN | {"columns": columns}, output=output, force=True)
    assert mapping.exists()


def test_a_recipe_that_is_read_is_not_replaced_by_the_release(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "r.csv")
    recipe = folder / "r.csv.private" / "recipe.csv"
    shutil.copy(folder / "r.csv.private" / "recipe.json", recipe)
    with pytest.raises(OutputError, match="is the recipe and would be replaced"):
        shoal.apply(recipe, data, output=recipe, force=True)


def test_files_with_the_names_of_the_commit_are_not_replaced(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "r.csv")
    (folder / "r.csv.private" / "codebook.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="was not written by shoal"):
        shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)
    assert (folder / "r.csv.private" / "codebook.csv").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", ["profile", "compare", "candidates"])
def test_no_command_replaces_the_policy_or_a_hierarchy_that_it_reads(
    data: Path, folder: Path, command: str
) -> None:
    rows = "".join(f"{age};20-29;*\n" for age in range(20, 24))
    (folder / "age.csv").write_text(rows, encoding="utf-8")
    policy = folder / "p.yaml"
    policy.write_text(
        "columns:\n  age: {role: quasi-identifier, hierarchy: {csv: age.csv}}\n  ward: {role: other}\n"
        "models: [{k-anonymity: {k: 2}}]\nalgorithm: ola\n",
        encoding="utf-8",
    )
    target = folder / "age.csv"
    arguments: dict[str, list[object]] = {
        "profile": ["profile", data, "--policy", policy, "--output", target, "--force"],
        "compare": ["compare", data, "--policy", policy, "--output", target, "--force"],
        "candidates": [
            *("anonymize", data, "--policy", policy, "--output", folder / "r.csv", "--force"),
            *("--candidates", target),
        ],
    }
    refused = run(*arguments[command])
    assert refused.exit_code == 2, refused.output
    assert "is the hierarchy of 'age'" in " ".join(refused.output.split())
    assert target.read_text(encoding="utf-8") == rows


def test_candidates_are_not_written_over_the_release(data: Path, folder: Path) -> None:
    (folder / "p.yaml").write_text(json.dumps(PLAIN | {"algorithm": "ola"}), encoding="utf-8")
    output = folder / "r.csv"
    for name in ("r.csv", "r.csv.codebook.csv", "r.csv.private/recipe.json"):
        arguments = ["--policy", folder / "p.yaml", "--output", output, "--candidates", folder / name]
        refused = run("anonymize", data, *arguments, "--force")
        assert refused.exit_code == 2, name
        assert "is the output of the release" in " ".join(refused.output.split())


# The names of the files beside a release, where another release has them


def test_a_second_table_does_not_replace_a_release_of_its_name(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "r.sensitive.csv")
    for _ in range(2):
        before = contents(folder)
        with pytest.raises(OutputError, match="is not what the replaced release wrote"):
            shoal.anonymize(data, ANATOMY, output=folder / "r.csv", force=True)
        assert contents(folder) == before
        shoal.anonymize(data, PLAIN, output=folder / "r.csv", force=True)


def test_a_codebook_does_not_replace_a_release_of_its_name(data: Path, folder: Path) -> None:
    shoal.anonymize(data, PLAIN, output=folder / "mine.csv.codebook.csv")
    before = contents(folder)
    with pytest.raises(OutputError, match="is not what the replaced release wrote"):
        shoal.anonymize(data, PLAIN, output=folder / "mine.csv", force=True)
    assert contents(folder) == before


def test_a_release_does_not_replace_a_file_beside_another(data: Path, folder: Path) -> None:
    shoal.anonymize(data, ANATOMY, output=folder / "r.csv")
    before = contents(folder)
    for name in ("r.csv.codebook.csv", "r.sensitive.csv"):
        with pytest.raises(OutputError, match="belongs to the release"):
            shoal.anonymize(data, PLAIN, output=folder / name, force=True)
    assert contents(folder) == before
