"""Advice is a result: running what it says gives what it says."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import UnknownName


def people(seed: int, records: int = 400) -> list[dict[str, str]]:
    chance = random.Random(seed)
    rows = []
    for _ in range(records):
        age = chance.randrange(18, 90)
        row = {"age": str(age), "ticket": str(chance.randrange(200)), "town": chance.choice("abcdefgh")}
        rows.append({**row, "sex": chance.choice("fm"), "score": str(chance.randrange(5))})
    return rows


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def policy(**entries: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    sides = {"north": ["a", "b", "c", "d"], "south": ["e", "f", "g", "h"]}
    columns = {
        "age": {**quasi, "hierarchy": {"intervals": [5, 10, 20]}},
        "ticket": {**quasi, "hierarchy": {"intervals": [50, 100]}},
        "town": {**quasi, "hierarchy": {"tree": sides}},
        "sex": {**quasi, "hierarchy": "flat"},
        "score": {"role": "other"},
    }
    models = [{"k-anonymity": {"k": 5}}]
    return {
        "columns": columns,
        "models": models,
        "suppression_limit": "2%",
        "metric": "coverage",
        **entries,
    }


@pytest.mark.parametrize(
    "entries", [{}, {"metric": "non-uniform-entropy"}, {"local": True}, {"algorithm": "mondrian"}]
)
def test_every_advice_is_confirmed_by_running_its_policy(entries: dict[str, Any]) -> None:
    table = pa.Table.from_pylist(people(1))
    release = shoal.anonymize(table, policy(**entries))
    advice = release.advice()
    assert advice
    for entry in advice:
        again = shoal.anonymize(table, entry.policy)
        assert again.retained_overall == pytest.approx(entry.retained)
        assert again.suppressed == entry.suppressed
        names = entry.policy.roles.quasi_identifiers
        assert entry.instead_of == pytest.approx(sum(release.retained[name] for name in names) / len(names))
        assert entry.retained > entry.instead_of
        assert entry.drawback


def test_every_advice_is_a_complete_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, written = write(tmp_path / "people.csv", people(2)), tmp_path / "policy.yaml"
    written.write_text(json.dumps(policy()))
    arguments = ["anonymize", str(data), "--policy", str(written), "--output", str(tmp_path / "r.csv")]
    runner = CliRunner()
    monkeypatch.setattr("sys.argv", ["shoal", *arguments, "--json", "--advice"])
    result = runner.invoke(app, [*arguments, "--json", "--advice"])
    assert result.exit_code == 0
    listed = json.loads(result.stdout)["advice"]
    assert listed == sorted(listed, key=lambda entry: entry["instead_of"] - entry["retained"])
    for entry in listed:
        options = [word for option in entry["options"] for word in shlex.split(option)]
        program, *words = shlex.split(entry["command"])
        assert program == "shoal"
        assert set(options) <= set(words)
        again = runner.invoke(app, [*words, "--json"])
        assert again.exit_code == 0
        assert json.loads(again.stdout)["retained"]["overall"] == pytest.approx(entry["retained"])


def test_the_terminal_prints_commands_that_a_shell_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "my people.csv", people(3))
    arguments = [
        "anonymize",
        str(data),
        "--known",
        "age,ticket,town,sex",
        "--output",
        str(tmp_path / "r.csv"),
    ]
    monkeypatch.setattr("sys.argv", ["shoal", *arguments, "--advice"])
    result = CliRunner().invoke(app, [*arguments, "--advice"])
    assert result.exit_code == 0
    lines = [
        line.strip() for line in result.stdout.splitlines() if line.strip().startswith("shoal anonymize")
    ]
    shown = " ".join(result.stdout.split())
    assert re.search(r"\d of 4 quasi-identifiers still carry information\.", shown)
    assert re.search(r"\w+( and \w+)? costs? most\. .*Without \w+: [\d.]+% instead of [\d.]+%\.", shown)
    assert any("--local" in line for line in lines)
    assert any("--drop" in line for line in lines)
    for line in lines:
        assert CliRunner().invoke(app, shlex.split(line)[1:]).exit_code == 0


def test_without_answers_the_advice_names_what_an_outsider_could_know(tmp_path: Path) -> None:
    data, output = write(tmp_path / "people.csv", people(3)), tmp_path / "r.csv"
    arguments = ["anonymize", str(data), "--output", str(output)]
    runner = CliRunner()
    result = json.loads(runner.invoke(app, [*arguments, "--json", "--advice"]).stdout)
    best = result["advice"][0]
    assert best["options"][0].startswith("--known age")
    assert "ticket" not in best["options"][0]
    assert best["instead_of"] == pytest.approx(result["retained"]["overall"])
    again = runner.invoke(app, [*arguments, *shlex.split(best["options"][0]), "--force", "--json"])
    assert json.loads(again.stdout)["retained"]["overall"] == pytest.approx(best["retained"])
    answered = [*arguments, "--known", "age,ticket", "--force", "--json", "--advice"]
    given = json.loads(runner.invoke(app, answered).stdout)["advice"]
    assert not any(option.startswith("--known") for entry in given for option in entry["options"])


def test_the_column_whose_removal_helps_most_is_found_among_lost_ones() -> None:
    chance = random.Random(6)
    rows = [
        {**{f"flag{n}": chance.randrange(6) for n in range(6)}, "code": chance.randrange(400)}
        for _ in range(400)
    ]
    quasi = {"role": "quasi-identifier"}
    columns = {name: {**quasi, "hierarchy": "flat"} for name in rows[0]}
    columns["code"] = {**quasi, "hierarchy": {"intervals": [40, 80]}, "min_level": 1, "max_level": None}
    release = shoal.anonymize(pa.Table.from_pylist(rows), policy(columns=columns))
    assert len(release.columns_without_information) > 3
    removals = [entry for entry in release.advice() if entry.options[0][0] == "--drop"]
    gains = [entry.retained - entry.instead_of for entry in removals]
    assert len(removals) <= 3
    for name in release.columns_without_information:
        left = shoal.anonymize(pa.Table.from_pylist(rows), release.policy.dropping([name]))
        before = sum(release.retained[other] for other in left.retained) / len(left.retained)
        gain = left.retained_overall - before
        assert gain < 0.01 or name in [entry.options[0][1] for entry in removals] or gain <= min(gains) + 1e-9


def test_the_report_shows_the_advice(tmp_path: Path) -> None:
    data, written = write(tmp_path / "people.csv", people(2)), tmp_path / "policy.yaml"
    written.write_text(json.dumps(policy()))
    arguments = ["anonymize", str(data), "--policy", str(written), "--output", str(tmp_path / "r.csv")]
    plain = CliRunner().invoke(app, [*arguments, "--report", "--json"])
    page = Path(json.loads(plain.stdout)["report"])
    assert "What other choices retain" not in page.read_text()
    CliRunner().invoke(app, [*arguments, "--report", "--advice", "--force"])
    text = page.read_text()
    assert "What other choices retain" in text
    assert "--local-labels 3" in text
    assert "labels of a column overlap" in text
    assert page.stat().st_mode & 0o777 == 0o600
    assert not list(page.parent.glob("*.part"))


def test_a_release_without_classes_has_no_advice() -> None:
    table = pa.Table.from_pylist(people(4))
    columns = policy()["columns"] | {"score": {"role": "sensitive"}}
    models = [{"distinct-l-diversity": {"l": 2}}]
    entries = {"algorithm": "anatomy", "models": models, "metric": "discernibility", "columns": columns}
    assert shoal.anonymize(table, policy(**entries)).advice() == ()


def test_a_dropped_column_is_removed_and_an_unknown_one_is_refused() -> None:
    table = pa.Table.from_pylist(people(5))
    release = shoal.anonymize(table, policy(), drop=["ticket"])
    assert release.table.column_names == ["age", "town", "sex", "score"]
    with pytest.raises(UnknownName, match="Did you mean 'ticket'"):
        shoal.anonymize(table, policy(), drop=["tickets"])
