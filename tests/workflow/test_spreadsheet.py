"""Releases that a spreadsheet may open: no cell begins like a formula, and the fresh count still holds."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import PolicyError, UsageError
from shoal.workflow.release.spreadsheet import SAFE, Sheet, lines_of, plain_cell, safe_cell

ROUGH = st.text("a=-@'\",\r\n\t ", max_size=5)  # letters that readers of CSV take for signs

ILL = ["=SUM(A1)", "-5", "@cmd", "+1", "flu", "'tis", "a=b", ""]
POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "illness": {"role": "sensitive"},
        "note": {"role": "other"},
    },
    "models": [
        {"k-anonymity": {"k": 4}},
        {"distinct-l-diversity": {"l": 2}},
        {"t-closeness": {"t": 0.9, "distance": "ordered"}},
    ],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "illness", "note"])
        writer.writerows([(n % 40 - 20, ILL[n % len(ILL)], '=1,"\n2' if n % 3 else "") for n in range(80)])
    return path


def cells(path: Path) -> list[str]:
    with open(path, newline="") as file:
        return [
            cell for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",") for cell in row
        ]


@given(st.text(max_size=5))
def test_a_safe_cell_is_no_formula_and_is_read_back(cell: str) -> None:
    assert safe_cell(cell)[:1] not in ("=", "+", "-", "@", "\t", "\r")
    if cell[:1] != "'":
        assert plain_cell(safe_cell(cell)) == cell


@given(st.lists(st.tuples(ROUGH, ROUGH), min_size=1, max_size=4))
def test_safe_lines_hold_the_same_rows(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, safe = Path(folder, "a.csv"), Path(folder, "b.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
        safe.write_text("".join(lines_of(path, Sheet(safe=True))), encoding="utf-8", newline="")
        with open(safe, encoding="utf-8", newline="") as file:
            assert [tuple(row) for row in csv.reader(file)] == [tuple(map(safe_cell, row)) for row in rows]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_no_cell_begins_like_a_formula(data: Path, tmp_path: Path, ending: str) -> None:
    as_it_is, out = tmp_path / f"as-it-is{ending}", tmp_path / f"out{ending}"
    shoal.anonymize(data, POLICY, output=as_it_is)
    release = shoal.anonymize(data, POLICY, output=out, spreadsheet_safe=True, report=True)
    assert sorted(cells(out)) == sorted(map(safe_cell, cells(as_it_is)))
    assert "'=SUM(A1)" in cells(out)
    assert cells(release.codebook) == [
        safe_cell(c) for c in cells(tmp_path / f"as-it-is{ending}.codebook.csv")
    ]
    assert any(cell.startswith("'-") for cell in cells(release.codebook))
    assert release.notes[-1] == SAFE
    assert release.utility is not None
    assert {one.suppressed_shift for one in release.utility.columns} == {0.0}


def test_such_a_release_is_verified(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    release = shoal.anonymize(data, POLICY, output=out, spreadsheet_safe=True)
    assert release.verification.verified
    assert shoal.verify(out, POLICY, recipe=release.recipe).verified
    assert shoal.verify(out, POLICY, reference=data).verified
    again = shoal.apply(release.recipe, data, output=tmp_path / "again.csv", spreadsheet_safe=True)
    assert again.verification.verified
    assert "'@cmd" in cells(tmp_path / "again.csv")


def test_the_second_table_is_made_safe_too(data: Path, tmp_path: Path) -> None:
    policy = POLICY | {"models": [{"distinct-l-diversity": {"l": 2}}], "algorithm": "anatomy"}
    release = shoal.anonymize(data, policy, output=tmp_path / "out.csv", spreadsheet_safe=True)
    assert "'=SUM(A1)" in cells(release.sensitive_table)
    assert shoal.verify(tmp_path / "out.csv", policy).verified


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (None, "a table in memory"),
        ("out.parquet", "a file of another format, .parquet"),
        ("out.csv.gz", ".csv.gz"),
    ],
)
def test_other_outputs_are_refused(data: Path, tmp_path: Path, output: str | None, words: str) -> None:
    where = None if output is None else tmp_path / output
    with pytest.raises(UsageError, match=r"spreadsheet_safe") as caught:
        shoal.anonymize(data, POLICY, output=where, spreadsheet_safe=True)
    assert words in str(caught.value)
    assert not list(tmp_path.glob("*out*"))


def test_a_name_that_would_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,-x\n" + "31,1\n" * 5)
    policy = {
        "columns": {"age": POLICY["columns"]["age"], "-x": {"role": "other"}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    with pytest.raises(PolicyError, match=r"'-x'\. Rename it"):
        shoal.anonymize(path, policy, output=tmp_path / "out.csv", spreadsheet_safe=True)


def test_the_command_takes_it(data: Path, tmp_path: Path) -> None:
    rules = tmp_path / "p.json"
    rules.write_text(json.dumps(POLICY))
    call = ["anonymize", str(data), "-p", str(rules), "-o", str(tmp_path / "out.csv"), "--spreadsheet-safe"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert f"Note: {SAFE}" in done.output
    call = ["apply", str(tmp_path / "out.csv.private"), str(data), "-o", str(tmp_path / "2.csv")]
    assert CliRunner().invoke(app, [*call, "--spreadsheet-safe"]).exit_code == 0
    assert "'-5" in cells(tmp_path / "2.csv")


def test_a_hierarchy_of_a_sensitive_column_reads_through_the_apostrophe(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    rows = [f"{place % 2},{value}" for place in range(40) for value in ("-5", "-9", "+1", "3")]
    data.write_text("\n".join(["sex,dx", *rows]) + "\n", encoding="utf-8")
    tree = {"low": ["-5", "-9"], "high": ["+1", "3"]}
    policy = {
        "columns": {
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
            "dx": {"role": "sensitive", "hierarchy": {"tree": tree}},
        },
        "models": [{"distinct-l-diversity": {"l": 2}}],
    }
    shoal.anonymize(data, policy, output=tmp_path / "r.csv", spreadsheet_safe=True)
    assert shoal.verify(tmp_path / "r.csv", policy).verified


@pytest.mark.parametrize("release_as", ["text", "bounds"])
def test_an_attack_and_a_second_release_read_through_the_apostrophe(tmp_path: Path, release_as: str) -> None:
    data = tmp_path / "d.csv"
    rows = [f"{place % 13 - 9},{'mf'[place % 2]},{place % 3}" for place in range(40)]
    data.write_text("\n".join(["temp,sex,dx", *rows]) + "\n", encoding="utf-8")
    temp = {"role": "quasi-identifier", "hierarchy": {"intervals": [3, 6]}, "release_as": release_as}
    policy: dict[str, Any] = {
        "columns": {
            "temp": temp,
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
            "dx": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": "20%",
    }
    found = []
    for name in ("plain", "safe"):
        made = [tmp_path / f"{name}{level}.csv" for level in (1, 2)]
        for level, path in enumerate(made, 1):
            node = {"temp": level, "sex": 0}
            shoal.anonymize(data, policy, output=path, node=node, spreadsheet_safe=name == "safe")
        recipe = tmp_path / f"{name}1.csv.private" / "recipe.json"
        for told in ({"policy": policy}, {"recipe": recipe}, {}):
            seen = shoal.attack(made[0], data, on=["temp", "sex"], k=7, **told)
            found.append((name, seen.singled_out, seen.below_k, seen.matched))
        found.append((name, shoal.intersect(*made, policy).k))
    half = len(found) // 2
    assert [one[1:] for one in found[:half]] == [one[1:] for one in found[half:]]


@pytest.mark.parametrize("release_as", ["text", "bounds"])
def test_utility_reads_through_the_apostrophe(tmp_path: Path, release_as: str) -> None:
    data = tmp_path / "d.csv"
    rows = [f"{place % 13 - 9},{place % 5 - 2},{ILL[place % 6]}" for place in range(60)]
    data.write_text("\n".join(["temp,change,dx", *rows]) + "\n", encoding="utf-8")
    temp = {"role": "quasi-identifier", "hierarchy": {"intervals": [3, 6]}, "release_as": release_as}
    policy = {
        "columns": {
            "temp": temp,
            "change": {"role": "quasi-identifier", "hierarchy": "flat"},
            "dx": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": "20%",
    }
    found = []
    for safe in (False, True):
        out = tmp_path / f"{safe}.csv"
        shoal.anonymize(data, policy, output=out, node={"temp": 1, "change": 0}, spreadsheet_safe=safe)
        found.append(shoal.utility(data, out, policy))
    assert found[0] == found[1]
    kept = found[1].records_after / 60  # all values are kept of the records that are not suppressed
    assert found[1].columns[1].kept_information == pytest.approx(kept)
