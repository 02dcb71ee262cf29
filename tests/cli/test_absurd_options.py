"""Absurd options: over-long names, deep nesting and thousands of widths end at once, in a short message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.cli.app import app

LONG = "x" * 100_000
NAME = "n" * 300  # longer than the name of a file may be
NESTED = "[" * 20_000
OFFER = '{"node":' * 5000
WIDTHS = ", ".join(["5"] * 3000)
RELEASE = "anonymize t.csv --policy p.yaml --output o.csv --force"
COMMANDS = [
    f"init {LONG}",
    f"init t.csv --output {LONG}",
    f"init t.csv --output {NAME}.yaml",
    f"init t.csv --preset {LONG}",
    f"anonymize t.csv --policy {LONG} --output o.csv",
    f"anonymize t.csv --policy p.yaml --output {LONG}",
    f"anonymize t.csv --policy p.yaml --output {NAME}.csv",
    f"anonymize t.csv --policy p.yaml --output {'n' * 240}.csv",  # the files beside it have longer names
    f"{RELEASE} --model {LONG}",
    f"{RELEASE} --model k-anonymity:k={LONG}",
    f"{RELEASE} --model k-anonymity:{LONG}=1",
    f"{RELEASE} --model k-anonymity:k={NESTED}",
    f"{RELEASE} --metric {LONG}",
    f"{RELEASE} --algorithm {LONG}",
    f"{RELEASE} --node {LONG}",
    f"{RELEASE} --node {OFFER}",
    f"{RELEASE} --suppression-limit {LONG}",
    f"{RELEASE} --memory-limit {LONG}",
    f"{RELEASE} --engine {LONG}",
    f"{RELEASE} --seconds {LONG}",
    f"apply {LONG} t.csv --output o.csv",
    f"verify {LONG} --policy p.yaml",
    f"verify t.csv --policy p.yaml --recipe {LONG}",
    f"verify t.csv --policy p.yaml --reference {LONG}",
    f"negotiate {LONG} --k 5",
    f"profile t.csv --policy p.yaml --output {LONG}",
    f"import-arx {LONG} --output folder",
    f"compare t.csv --policy p.yaml --output {NAME}.csv",
    f"compare t.csv --policy p.yaml --k {LONG}",
    f"diagnose t.csv --columns {LONG}",
    f"diagnose t.csv --question {LONG}",
    f"diagnose t.csv --rows {LONG} --k 3",
    f"diagnose t.csv --plots {LONG}",
    f"hierarchy show --policy p.yaml --column {LONG} 5",
    f"hierarchy show --policy p.yaml --column age {LONG}",
    f"utility {LONG} {LONG} --policy {LONG}",
    f"risk t.csv --{LONG}",
    f"list {LONG}",
    LONG,
    f"--{LONG}",
    "anonymize t.csv --policy intervals.yaml --output o.csv",
    "anonymize t.csv --policy prefix.yaml --output o.csv",
    "anonymize t.csv --policy cuts.yaml --output o.csv",
    "anonymize t.csv --policy order.yaml --output o.csv",
    "anonymize t.csv --policy csv.yaml --output o.csv",
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("absurd")
    rows = [f"{age % 70},{'mf'[age % 2]}" for age in range(100)]
    (folder / "t.csv").write_text("\n".join(["age,sex", *rows]) + "\n", encoding="utf-8")
    (folder / "h.csv").write_text(";".join(["7"] * 3000) + "\n", encoding="utf-8")
    rules = {
        "p": "{intervals: [5, 10]}",
        "intervals": f"{{intervals: [{WIDTHS}]}}",
        "prefix": f"{{prefix: [{WIDTHS}]}}",
        "cuts": f"{{cuts: [{', '.join(['[5, 10]'] * 3000)}]}}",
        "order": f"{{order: ['1', '2'], sizes: [{WIDTHS}]}}",
        "csv": "{csv: h.csv}",
    }
    for name, rule in rules.items():
        text = f"columns:\n  age: {{role: quasi-identifier, hierarchy: {rule}}}\n  sex: {{role: other}}\n"
        (folder / f"{name}.yaml").write_text(f"{text}models: [{{k-anonymity: {{k: 2}}}}]\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[:60])
def test_an_absurd_option_is_refused_in_a_short_message(
    desk: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(desk)
    result = CliRunner().invoke(app, command.split(" "))
    assert isinstance(result.exception, SystemExit), repr(result.exception)[:500]
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr) < 2000
    if "--json" not in command and not command.startswith(("x", "-")):
        result = CliRunner().invoke(app, [*command.split(" "), "--json"])
        if result.stdout:
            assert len(json.loads(result.stdout)["message"]) < 2000


def test_a_name_that_is_not_text_is_refused(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    for command in ("anonymize t.csv --policy p.yaml --output \udcff.csv", "init \udcff.csv"):
        result = CliRunner().invoke(app, command.split(" "))
        assert result.exit_code == 2
        assert "is not UTF-8 text. Rename the file or folder." in result.stderr
