"""verify counts persons, where the column that tells them apart is an identifier that the release lacks."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import PolicyError

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

QUASI = "quasi-identifier"


def policy(k: int = 3, **entries: Any) -> dict[str, Any]:
    columns = {
        "patient": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [10, 20]}},
        "ward": {"role": QUASI, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
        "label": {"role": "other"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": k, "unit": "patient"}}]} | entries


def visits(persons: int = 24) -> pa.Table:
    """Every person has one to three visits."""
    rows = [
        (f"p{person}", 20 + person % 6 * 4, "AB"[person % 2], f"i{person % 3}", "uv"[person % 2])
        for person in range(persons)
        for _ in range(1 + person % 3)
    ]
    names = ["patient", "age", "ward", "illness", "label"]
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=names)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy()))
    return tmp_path


def call(*words: str | Path) -> tuple[int, Any]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_the_command_that_verify_names_checks_persons(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    assert call("anonymize", "visits.csv", "-p", "policy.yaml", "-o", "out.csv")[0] == 0
    code, found = call("verify", "out.csv", "-p", "policy.yaml")
    (check,) = found["models"]
    assert (code, found["verified"], found["reasons"], check["passed"]) == (1, False, [], None)
    assert "does not have 'patient'" in check["reason"]
    assert check["command"] in found["unchecked"][0]
    words = shlex.split(check["command"].replace("INPUT", "visits.csv"))
    assert words[0] == "shoal"
    code, found = call(*words[1:])
    assert (code, found["verified"], found["models"][0]["passed"]) == (0, True, True)
    assert (found["models"][0]["reason"], found["models"][0]["command"]) == (None, None)
    shown = CliRunner().invoke(app, ["verify", "out.csv", "-p", "policy.yaml"]).stdout
    assert "NO" not in shown
    assert "not checkable" in shown


ALGORITHMS: list[Any] = [
    "contour", {"contour": {"refine": True}}, {"contour": {"cells": True}}, "datafly", "mondrian", "tds",
    "bottom-up",
]  # fmt: skip


@pytest.mark.parametrize("suppressed", ["drop", "mask"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_persons_of_every_recoding_are_counted(algorithm: Any, suppressed: str, tmp_path: Path) -> None:
    cells = isinstance(algorithm, dict) and "cells" in algorithm["contour"]
    wish = policy(
        3,
        algorithm=algorithm,
        suppressed="drop" if cells else suppressed,
        suppression_limit=0.3,
        label="label",
        metric="coverage",
    )
    table = visits()
    out = tmp_path / "out.parquet"
    release = shoal.anonymize(table, wish, output=out)
    alone = shoal.verify(out, wish, recipe=release.recipe)
    assert (alone.models[0].passed, alone.reasons, alone.verified) == (None, (), False)
    found = shoal.verify(out, wish, recipe=release.recipe, reference=table)
    assert (found.verified, found.models[0].passed) == (True, True)
    assert found.classes == release.verification.classes
    more = policy(1000, **{name: value for name, value in wish.items() if name not in ("columns", "models")})
    assert not shoal.verify(out, more, recipe=release.recipe, reference=table).verified


def test_a_release_of_few_persons_is_refused(tmp_path: Path) -> None:
    """The attack: six records look alike, and all are of one person."""
    columns = policy()["columns"]
    records = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}]}
    table = pa.table(
        {
            "patient": ["p0"] * 6 + [f"p{i}" for i in range(1, 7)],
            "age": [25] * 6 + [45] * 6,
            "ward": ["A"] * 12,
            "illness": ["flu"] * 12,
            "label": ["u"] * 12,
        }
    )
    release = shoal.anonymize(table, records, output=tmp_path / "out.csv", node={"age": 1, "ward": 0})
    found = shoal.verify(tmp_path / "out.csv", policy(), recipe=release.recipe, reference=table)
    assert not found.verified
    (check,) = found.models
    assert (check.passed, check.violating_classes, check.violating_records) == (False, 1, 6)
    assert found.reasons == ("k-anonymity: 6 records in 1 class violate it",)


def test_masked_records_of_few_persons_are_refused(tmp_path: Path) -> None:
    """The attack: whoever is in no class is masked, and the masked records are of one person."""
    records = {
        **policy(),
        "models": [{"k-anonymity": {"k": 3}}],
        "suppressed": "mask",
        "suppression_limit": 9,
    }
    table = pa.table(
        {
            "patient": ["p0"] * 4 + [f"p{i}" for i in range(1, 7)],
            "age": [81, 81, 99, 99] + [45] * 6,
            "ward": ["A"] * 10,
            "illness": ["flu"] * 10,
            "label": ["u"] * 10,
        }
    )
    release = shoal.anonymize(table, records, output=tmp_path / "out.csv", node={"age": 0, "ward": 0})
    assert release.masked == 4
    wish = policy(suppressed="mask")
    found = shoal.verify(tmp_path / "out.csv", wish, recipe=release.recipe, reference=table)
    assert found.reasons == ("masked records belong to 1 person, fewer than 3",)


def test_after_apply_the_new_table_tells_the_persons(tmp_path: Path) -> None:
    wish = policy(2, suppression_limit=0.5)
    before = shoal.anonymize(visits(), wish, output=tmp_path / "a.csv")
    assert before.recipe is not None
    new = visits(18)
    pyarrow.parquet.write_table(new, tmp_path / "new.parquet")
    after = shoal.apply(before.recipe, new, output=tmp_path / "b.csv")
    for recipe in (before.recipe, after.recipe):
        found = shoal.verify(tmp_path / "b.csv", wish, recipe=recipe, reference=tmp_path / "new.parquet")
        assert found.verified, found
    other = shoal.verify(tmp_path / "b.csv", wish, recipe=after.recipe, reference=visits())
    assert (other.verified, other.models[0].passed, other.models[0].command) == (False, None, None)
    assert "not what its recipe makes of the reference" in str(other.models[0].reason)


def test_a_reference_without_persons_is_refused(tmp_path: Path) -> None:
    release = shoal.anonymize(visits(), policy(), output=tmp_path / "a.csv")
    with pytest.raises(PolicyError, match="The reference lacks columns of the policy: 'patient'"):
        shoal.verify(
            tmp_path / "a.csv", policy(), recipe=release.recipe, reference=visits().drop_columns(["patient"])
        )


def test_numbers_and_formulas_that_a_file_writes_otherwise_are_the_same(tmp_path: Path) -> None:
    """A CSV that is safe for spreadsheets writes -5 as '-5; a table of floats 45.0 as 45."""
    columns = {
        "patient": {"role": "identifier"},
        "balance": {"role": QUASI, "hierarchy": {"intervals": [10]}},
    }
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2, "unit": "patient"}}]}
    table = pa.table({"patient": list("abcdef"), "balance": [-5.0, -5.0, 45.0, 45.0, 0.5, 0.5]})
    release = shoal.anonymize(
        table, wish, output=tmp_path / "a.csv", spreadsheet_safe=True, node={"balance": 0}
    )
    assert shoal.verify(tmp_path / "a.csv", wish, recipe=release.recipe, reference=table).verified
