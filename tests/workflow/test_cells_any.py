"""Releases in which a blanked cell matches every value: what is released, checked, attacked and said."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.core.recoding import refine
from shoal.errors import CannotHonour, InternalError, PolicyError
from shoal.policy.policy import Policy
from shoal.workflow.report.report import report
from shoal.workflow.statements import choice_statement, model_statements, release_verdict
from shoal.workflow.verify import WILDCARDS

pytestmark = pytest.mark.usefixtures("both_modes")

QUASI = ("age", "ward", "sex")


def people(records: int = 240, seed: int = 1) -> pd.DataFrame:
    chance = random.Random(seed)
    return pd.DataFrame(
        {
            "age": [20 + min(chance.randrange(40), chance.randrange(40)) for _ in range(records)],
            "ward": [chance.choice("aaaaaabbbbcd") for _ in range(records)],
            "sex": [chance.choice("fm") for _ in range(records)],
            "illness": [chance.choice(["flu", "asthma", "cold"]) for _ in range(records)],
        }
    )


def policy(cells: Any = "any", **entries: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    columns: dict[str, Any] = {
        "age": {**quasi, "hierarchy": {"intervals": [5, 10]}, "max_level": 1},
        "ward": {**quasi, "hierarchy": "flat", "max_level": 0},
        "sex": {**quasi, "hierarchy": "flat", "max_level": 0},
        "illness": {"role": "sensitive"},
    }
    asked = {"columns": columns, "models": [{"k-anonymity": {"k": 4}}], "metric": "coverage"}
    return asked | {"suppression_limit": "60%", "algorithm": {"auto": {"cells": cells}}} | entries


def rows_of(table: pd.DataFrame, columns: Sequence[str] = QUASI) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in table[list(columns)].itertuples(index=False)]


def matching(one: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Count the records that match one, as plain Python reads stars."""
    return sum(all("*" in (a, b) or a == b for a, b in zip(one, row, strict=True)) for row in rows)


def test_at_least_k_records_match_every_record_of_a_release() -> None:
    release = shoal.anonymize(people(), policy())
    rows = rows_of(release.table)
    assert release.cells == sum(cell == "*" for row in rows for cell in row) > 0
    counts = [matching(row, rows) for row in rows]
    assert min(counts) == release.verification.smallest_class >= 4
    sizes = release.verification.exposure
    assert dict(zip(sizes.sizes, sizes.records, strict=True)) == {n: counts.count(n) for n in set(counts)}
    assert sizes.average_risk == pytest.approx(sum(1 / n for n in counts) / len(counts))
    assert release.verification.classes == len(set(rows))
    assert min(map(rows.count, rows)) < 4  # by its looks alone it is not k-anonymous
    assert release.loss < shoal.anonymize(people(), policy(True)).loss
    assert release.levels is None
    assert release.start is not None


def test_verify_reads_a_star_as_every_value() -> None:
    release = shoal.anonymize(people(), policy())
    checked = shoal.verify(release.table, policy())
    assert checked.verified
    assert checked.wildcards
    rows = rows_of(release.table)
    assert checked.smallest_class == min(matching(row, rows) for row in rows)
    strict = shoal.verify(release.table, policy(True))
    assert not strict.verified
    assert not strict.wildcards


@pytest.mark.parametrize("given", ["recipe", "nothing"])
def test_a_recipe_with_wildcards_counts_where_the_policy_has_none(tmp_path: Path, given: str) -> None:
    """As where the option is given on the command line."""
    out, plan = tmp_path / "release.csv", tmp_path / "policy.yaml"
    release = shoal.anonymize(people(), policy(), output=out)
    plan.write_text(Policy.load(policy(False)).to_yaml())
    told = ["--recipe", str(release.recipe)] if given == "recipe" else []
    result = CliRunner().invoke(app, ["verify", str(out), "--policy", str(plan), "--json", *told])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["wildcards"]) == ((0, True) if told else (1, False))
    command = f"shoal verify {out} --policy {plan} --recipe {out}.private/recipe.json"
    (check,) = found["models"]
    if told:
        assert found["smallest_class"] == release.verification.smallest_class
        assert check["reason"] is None
    else:
        assert "cells: any" in check["reason"]
        assert check["command"] == command
        assert "holds if a blanked cell (*) matches every value" in found["unchecked"][0]
        assert command in CliRunner().invoke(app, ["verify", str(out), "--policy", str(plan)]).stdout.replace(
            "\n", ""
        )


def test_a_release_that_fails_under_either_reading_names_no_recipe(tmp_path: Path) -> None:
    out = tmp_path / "release.csv"
    shoal.anonymize(people(), policy(), output=out)
    strict = policy(False) | {"models": [{"k-anonymity": {"k": 40}}]}
    assert not shoal.verify(out, strict).unchecked


def test_a_model_of_more_than_sizes_reads_stars_as_a_value(tmp_path: Path) -> None:
    out = tmp_path / "release.csv"
    release = shoal.anonymize(people(), policy(), output=out)
    both = policy(False) | {"models": [{"k-anonymity": {"k": 4}}, {"distinct-l-diversity": {"l": 3}}]}
    checked = shoal.verify(out, both, recipe=release.recipe)
    rows = pd.read_csv(out, dtype=str)
    varieties = rows.groupby(list(QUASI)).illness.nunique()
    assert [check.passed for check in checked.models] == [True, False]
    assert checked.models[1].violating_classes == int((varieties < 3).sum())


def test_verify_finds_a_record_that_too_few_match() -> None:
    table = shoal.anonymize(people(), policy()).table.astype(str)
    table.loc[0, list(QUASI)] = ["99", "z", "f"]
    checked = shoal.verify(table, policy())
    assert [check.violating_records for check in checked.models] == [1]
    assert not checked.verified


def test_a_missing_value_matches_no_other() -> None:
    table = people()
    table.loc[:5, "ward"] = None
    release = shoal.anonymize(table, policy())
    rows = [tuple(map(str, row)) for row in release.table[list(QUASI)].itertuples(index=False)]
    assert any(cell in ("None", "nan") for row in rows for cell in row)
    assert min(matching(row, rows) for row in rows) == release.verification.smallest_class >= 4


@pytest.mark.parametrize("tells", ["policy", "recipe", "nothing"])
def test_an_attack_reads_a_star_as_every_value(tmp_path: Path, tells: str) -> None:
    table, out = people(), tmp_path / "release.csv"
    table["id"] = [f"p{n}" for n in range(len(table))]
    asked = policy()
    asked["columns"] |= {"id": {"role": "identifier"}}
    release = shoal.anonymize(table, asked, output=out)
    start = release.start
    assert start is not None
    told: dict[str, Any] = {"policy": asked} if tells == "policy" else {}
    told = {"recipe": release.recipe} if tells == "recipe" else told
    found = shoal.attack(out, table, list(QUASI), k=4, **told)
    shown = rows_of(pd.read_csv(out, dtype=str))
    width = [1, 5][start["age"]]
    sizes = []
    for age, ward, sex in table[list(QUASI)].itertuples(index=False):
        low = age // width * width
        known = (str(age) if width == 1 else f"{low}-{low + width - 1}", ward, sex)
        sizes.append(matching(known, shown))
    assert found.singled_out == sizes.count(1)
    assert found.below_k == sum(0 < size < 4 for size in sizes) > 0  # which the release does not rule out
    assert (WILDCARDS in found.notes) == (tells != "nothing")


def test_what_it_guarantees_is_said_wherever_the_release_is_described(tmp_path: Path) -> None:
    asked = Policy.load(policy())
    release = shoal.anonymize(people(), asked, output=tmp_path / "release.csv", report=True)
    reading = "if a blanked cell matches every value"
    assert reading in release_verdict(release).text
    document = release.document()
    assert f"Note: {WILDCARDS}" in document.notes
    assert "match each record" in {fact.key: fact.value for fact in document.facts}["classes"]
    checked = release.verification.document()
    assert WILDCARDS in checked.notes
    assert checked.verdict is not None
    assert reading in checked.verdict.text
    page = report(release)
    assert "guarantees less than classes that look alike" in page
    assert reading in page
    assert model_statements(asked) == [
        "At least 4 records match every record in the quasi-identifiers.",
        WILDCARDS,
    ]
    assert "A blank counts as a match of every value" in choice_statement(asked)
    assert release.to_dict()["wildcards"] is True
    book = pd.read_csv(release.codebook, dtype=str, keep_default_na=False)
    assert set(book[book["label"] == "*"]["covers"]) == {"every value"}


def test_the_default_says_nothing_of_it() -> None:
    release = shoal.anonymize(people(), policy(True))
    assert release.cells
    assert not release.wildcards
    assert WILDCARDS not in " ".join(map(str, release.document().notes))
    assert "looks like at least 3 others" in model_statements(release.policy)[0]
    assert "every value" not in release_verdict(release).text


def test_a_recipe_blanks_anew(tmp_path: Path) -> None:
    release = shoal.anonymize(people(), policy(), output=tmp_path / "release.csv")
    again = shoal.apply(release.recipe, people())
    assert sorted(rows_of(again.table)) == sorted(rows_of(pd.read_csv(tmp_path / "release.csv", dtype=str)))
    other = shoal.apply(release.recipe, people(seed=2))
    rows = rows_of(other.table)
    assert min(matching(row, rows) for row in rows) >= 4
    assert other.wildcards


def test_a_search_that_blanks_too_little_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = refine.blanked_any

    def wrong(*args: Any, **options: Any) -> Any:
        blanks, gone = real(*args, **options)
        return blanks & (blanks.cumsum(axis=1) > 1), gone  # the first blank of each column is left out

    monkeypatch.setattr(refine, "blanked_any", wrong)
    node = shoal.anonymize(people(), policy())  # what is not acceptable is not released
    assert node.cells == 0
    enough = np.array([9])  # in place of the judgement
    monkeypatch.setattr("shoal.core.recoding.recoding.Recoding.matches", lambda _: enough)
    with pytest.raises(InternalError, match="k-anonymity"):
        shoal.anonymize(people(), policy(), output=tmp_path / "release.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": {"auto": {"cells": "some"}}}, "must be true, false or 'any', got 'some'"),
        ({"algorithm": {"contour": {"cells": "all"}}}, "must be true, false or 'any', got 'all'"),
        ({"models": [{"k-anonymity": {"k": 4}}, {"distinct-l-diversity": {"l": 2}}]}, "distinct-l-diversity"),
        ({"models": [{"k-anonymity": {"k": 4, "unit": "illness"}}]}, "k-anonymity without unit"),
        ({"models": [{"average-risk": {"risk": 0.1}}]}, "average-risk cannot use"),
        ({"suppressed": "mask"}, "Blank cells look like"),
        ({"local": True}, "The options local and cells change the same records"),
        (
            {"algorithm": {"auto": {"cells": "any", "refine": True}}},
            "The options refine and cells",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as error:
        shoal.anonymize(people(), policy() | changes, output=tmp_path / "release.csv")
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_column_with_stars_is_refused(tmp_path: Path) -> None:
    table = people()
    table.loc[:20, "ward"] = "*"
    with pytest.raises(CannotHonour, match="'ward' has this label for some records at level 0"):
        shoal.anonymize(table, policy(), output=tmp_path / "release.csv")
    assert not list(tmp_path.iterdir())


def test_compare_and_the_command_line_take_it(tmp_path: Path) -> None:
    table, plan, out = tmp_path / "people.csv", tmp_path / "policy.yaml", tmp_path / "release.csv"
    people().to_csv(table, index=False)
    plan.write_text(Policy.load(policy(False)).to_yaml())
    command = ["anonymize", str(table), "--policy", str(plan), "--output", str(out), "--json"]
    result = CliRunner().invoke(app, [*command, "--algorithm", "auto:cells=any"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["wildcards"] is True
    assert told["cells"] > 0
    searches = [{"contour": {"cells": cells}} for cells in ("any", True)]
    rows = shoal.compare(table, plan, algorithms=searches).rows
    assert rows[0].loss < rows[1].loss
    checked = CliRunner().invoke(app, ["verify", str(out), "--policy", str(plan)])
    assert checked.exit_code == 1
