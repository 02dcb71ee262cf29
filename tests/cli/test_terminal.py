"""What commands say beside results: of compiling, of one node, of what to type next."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import shoal
from shoal.cli import messages
from shoal.cli.app import app
from shoal.cli.demo import _program

POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}, "release_as": "bounds"},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "ill": {"role": "sensitive"},
    },
    "models": [{"k-anonymity": {"k": 2}}],
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its policy."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + n},{'mf'[n % 2]},i{n % 3}" for n in range(20)]
    Path("t.csv").write_text("\n".join(["age,sex,ill", *rows]) + "\n")
    Path("p.yaml").write_text(yaml.safe_dump(POLICY))
    return tmp_path


def call(*arguments: str, code: int = 0) -> Any:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done


def test_compiling_is_told_once_in_a_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_shown_once", set())
    for _ in range(2):
        with messages.progress_bar() as tell:
            tell("compile", 0, None)
            tell("search", 0, None)
            tell("compile", 0, 3)
    told = capsys.readouterr().err
    assert told.count("Compiling") == 1
    assert "this happens once" not in told


def test_one_node_is_no_choice(desk: Path) -> None:
    told = call("anonymize", "t.csv", "-p", "p.yaml", "-o", "out.csv", "--node", "age=1,sex=1").stdout
    assert "proven    it satisfies the policy; the levels were fixed" in told
    assert "1 nodes" not in told


def test_utility_takes_the_release_as_its_sisters_do(desk: Path) -> None:
    shoal.anonymize("t.csv", "p.yaml", output="out.csv")
    by_place = call("utility", "t.csv", "out.csv", "-p", "p.yaml", "--json")
    by_name = call("utility", "t.csv", "--release", "out.csv", "-p", "p.yaml", "--json")
    assert json.loads(by_place.stdout) == json.loads(by_name.stdout)
    for names in ((), ("out.csv", "--release", "out.csv")):
        assert (
            "Name the released table once" in call("utility", "t.csv", *names, "-p", "p.yaml", code=2).stderr
        )


def test_measure_takes_the_columns_of_a_policy(desk: Path) -> None:
    shoal.anonymize("t.csv", "p.yaml", output="out.csv")
    own = json.loads(call("measure", "t.csv", "-p", "p.yaml", "--json").stdout)
    named = call("measure", "t.csv", "--columns", "age,sex", "--sensitive", "ill", "--json").stdout
    assert own == json.loads(named)
    after = json.loads(call("measure", "out.csv", "-p", "p.yaml", "--json").stdout)
    assert after["columns"] == ["age_lower", "age_upper", "sex"]
    assert after["k"] >= 2
    other = json.loads(call("measure", "t.csv", "-p", "p.yaml", "--columns", "ill", "--json").stdout)
    assert (other["columns"], other["sensitive"]) == (["ill"], [])
    assert "give --policy" in call("measure", "t.csv", code=2).stderr


def test_suggestions_share_one_command(desk: Path) -> None:
    call("profile", "t.csv", "-p", "p.yaml", "-o", "t.profile")
    wishes = ("negotiate", "t.profile", "--k", "9", "--suppression-limit", "0", "--max-level", "age=0")
    told = call(*wishes, code=1).stdout
    assert told.count("shoal anonymize") == 1
    assert "--data and --policy fill in their names" in told
    told = call(*wishes, "--data", "t.csv", "--policy", "p.yaml", code=1).stdout
    assert "DATA" not in told
    (line,) = [line for line in told.splitlines() if "shoal anonymize" in line]
    (first,) = [line for line in told.splitlines() if line.startswith("1  '{")]
    command = line.removeprefix("To use one: ").split(" NODE, ")[0].replace("OUT", "out.csv")
    node = shlex.split(first)[1]
    assert command.startswith("shoal anonymize t.csv --policy p.yaml")
    call(*shlex.split(command)[1:], node)


def test_the_engine_is_started_once_for_a_talk(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.cli import anonymize
    from shoal.cli.options import TableReading

    read: list[str] = []
    monkeypatch.setattr(anonymize, "ask_generalizations", lambda data, policy, *_, **__: policy)
    for home, name in ((anonymize, "read_node"), (TableReading, "create")):
        one = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, one=one, name=name: (read.append(name), one(*a))[1])
    call("anonymize", "t.csv", "-p", "p.yaml", "-o", "out.csv", "--interactive")
    assert sorted(read) == ["create", "read_node"]


def test_a_hint_names_what_this_shell_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / ".venv" / "bin" / "shoal"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert _program() == "./.venv/bin/shoal"
    monkeypatch.chdir(own.parent)
    assert _program() == "./shoal"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert _program() == str(own)
    monkeypatch.setenv("PATH", str(own.parent))
    assert _program() == "shoal"
