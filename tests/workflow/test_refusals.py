"""What is refused, or shown, says the next step that fits: the texts, word for word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.document.terminal import show
from shoal.errors import CannotHonour, OutOfTime, PolicyError

QUASI = {"role": "quasi-identifier", "hierarchy": "flat"}
AGE = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10], "top_coding": 60}}
COLUMNS: dict[str, Any] = {"age": AGE, "sex": QUASI, "illness": {"role": "sensitive"}}
DIVERSE: list[Any] = [{"distinct-l-diversity": {"l": 2}}]


def people(number: int = 60) -> pa.Table:
    return pa.table(
        {
            "age": [20 + i * i * i % 47 for i in range(number)],
            "sex": ["fm"[i % 2] for i in range(number)],
            "illness": [f"illness {i * i % 7}" for i in range(number)],
        }
    )


def policy(algorithm: Any, models: Any = ({"k-anonymity": {"k": 3}},), **entries: Any) -> dict[str, Any]:
    return {
        "columns": COLUMNS,
        "models": list(models),
        "algorithm": algorithm,
        "metric": "coverage",
    } | entries


@pytest.mark.parametrize("option", ["refine", "cells"])
@pytest.mark.parametrize("algorithm", ["auto", "contour"])
def test_a_finer_release_with_a_population_is_advised_to_leave_the_option_out(
    algorithm: str, option: str, tmp_path: Path
) -> None:
    from shoal.engines.duckdb.engine import DuckDb

    engine, everybody = DuckDb(), tmp_path / "all.csv"
    engine.write(engine.open(people()), engine.target(everybody))
    asked = policy({algorithm: {option: True}}, [{"k-map": {"k": 2, "population": str(everybody)}}])
    with pytest.raises(CannotHonour) as caught:
        shoal.anonymize(people(), asked)
    assert str(caught.value) == (
        f"Algorithm '{algorithm}' cannot honour this policy: {option} gives classes their own levels, "
        f"which cannot be looked up in a population. Leave out {option}."
    )


def test_relaxed_regions_with_l_diversity_are_advised_to_be_strict() -> None:
    with pytest.raises(CannotHonour) as caught:
        shoal.anonymize(people(), policy({"mondrian": {"relaxed": True}}, DIVERSE))
    assert str(caught.value) == (
        "Algorithm 'mondrian' cannot honour this policy: relaxed regions divide equal records at random, "
        "so only the size of classes can be checked. Use relaxed: false."
    )
    assert shoal.anonymize(people(), policy({"mondrian": {"relaxed": False}}, DIVERSE)).records == 60


def test_regions_with_levels_are_advised_another_algorithm() -> None:
    with pytest.raises(CannotHonour, match=r"a range has none\. Use 'contour' or 'auto'\.$"):
        shoal.anonymize(people(), policy("mondrian", metric="height"))


def test_anatomy_with_k_names_a_model_that_it_can_honour() -> None:
    with pytest.raises(CannotHonour) as caught:
        shoal.anonymize(people(), policy("anatomy"))
    assert str(caught.value) == (
        "Algorithm 'anatomy' cannot honour this policy: quasi-identifiers stay as they are, so nobody is "
        "hidden among k: models can only use sensitive values. Use distinct-l-diversity instead, or "
        "use another algorithm."
    )


@pytest.mark.parametrize(
    ("roles", "advice"),
    [
        ({"illness": {"role": "other"}}, "The policy has 0. Give one column the role sensitive."),
        ({"ward": {"role": "sensitive"}}, "The policy has 2. Change the other columns' roles."),
    ],
)
def test_anatomy_says_which_roles_to_change(roles: dict[str, Any], advice: str) -> None:
    with pytest.raises(PolicyError) as caught:
        shoal.anonymize(people(), policy("anatomy", columns=COLUMNS | roles))
    assert str(caught.value).endswith(advice)


HINT = "If this is a release by anatomy, set algorithm: anatomy in the policy."


def test_a_release_by_anatomy_under_another_policy_is_recognized() -> None:
    release = shoal.anonymize(people(), policy("anatomy", DIVERSE))
    with pytest.raises(PolicyError, match=r"1 column that the policy does not name\. " + HINT):
        shoal.verify(release.table, policy("auto", DIVERSE))
    named = COLUMNS | {"illness_group": {"role": "other"}}
    with pytest.raises(PolicyError, match=r"lacks columns of the policy: 'illness'\. " + HINT):
        shoal.verify(release.table, policy("auto", DIVERSE, columns=named))


def test_another_strange_column_is_not_taken_for_anatomy() -> None:
    strange = people().append_column("extra", pa.array(["x"] * 60))
    with pytest.raises(PolicyError) as caught:
        shoal.verify(strange, policy("auto"))
    assert str(caught.value) == "The release has 1 column that the policy does not name."


def test_a_search_that_is_for_no_node_has_no_result_without_time() -> None:
    with pytest.raises(OutOfTime) as caught:
        shoal.anonymize(people(), policy("mondrian"), seconds=1e-9)
    assert str(caught.value) == "No acceptable recoding was found within 1e-09 seconds. Allow more."


@pytest.mark.parametrize("algorithm", ["auto", "contour"])
def test_a_wrong_option_is_told_of_the_algorithm_that_was_named(algorithm: str) -> None:
    with pytest.raises(
        PolicyError, match=rf"^Option refine of {algorithm} must be true or false, got 'maybe'\.$"
    ):
        shoal.anonymize(people(), policy({algorithm: {"refine": "maybe"}}))


def test_compare_refuses_before_it_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.algorithms.anatomy import Anatomy

    def search(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Anatomy, "search", search)
    two = COLUMNS | {"sex": {"role": "sensitive"}}
    models = [{"distinct-l-diversity": {"l": 2, "column": "illness"}}]
    asked = policy("anatomy", models, columns=two)
    (row,) = shoal.compare(people(), asked, algorithms=["anatomy"]).rows
    assert (row.note or "").startswith("refused: With algorithm anatomy exactly one column must be sensitive")


# What a release shows


def shown(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], table: pa.Table | None = None
) -> tuple[shoal.Release, dict[str, list[str]]]:
    """Return a release, and the cells of the table that is shown of it, by column."""
    from shoal.engines.duckdb.engine import DuckDb

    engine = DuckDb()
    engine.write(engine.open(people() if table is None else table), engine.target(tmp_path / "in.csv"))
    release = shoal.anonymize(tmp_path / "in.csv", asked, output=tmp_path / "out.csv")
    show(release.document())
    lines = [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines()]
    return release, {cells[0]: cells[1:] for cells in lines}


def test_blanked_cells_leave_levels_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ages = [20 + i % 5 + i // 30 * 20 for i in range(60)]  # three of each age and sex
    table = pa.table(
        {
            "age": [*ages, 20, 21, 40, 41],
            "sex": [*("fm"[i % 2] for i in range(60)), *"xxxx"],
            "illness": ["illness"] * 64,
        }
    )
    asked = policy({"auto": {"cells": True}}, [{"k-anonymity": {"k": 4}}], suppression_limit="20%")
    release, cells = shown(asked, tmp_path, capsys, table)
    assert (release.cells, release.levels, release.start) == (4, None, {"age": 1, "sex": 0})
    assert [row[1] for row in (cells["age"], cells["sex"])] == ["1 of 3", "0 of 1"]


def test_levels_of_classes_are_shown_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release, cells = shown(policy({"auto": {"refine": True}}, suppression_limit="20%"), tmp_path, capsys)
    assert release.levels is None
    assert cells["age"][1] == "by class"


def test_bounds_are_shown_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = COLUMNS | {"age": AGE | {"release_as": "bounds"}}
    asked = policy({"auto": {"refine": True}}, columns=columns, suppression_limit="20%")
    release, _ = shown(asked, tmp_path, capsys)
    assert release.levels is None
    assert "from 60" in release.labels["age"]
    assert all(label and not label.startswith(" ") for label in release.labels["age"])


def test_the_groups_of_anatomy_are_shown_by_their_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, cells = shown(policy("anatomy", DIVERSE), tmp_path, capsys)
    assert release.group_column == "illness_group"
    assert cells["illness"][-1].startswith("illness_group: a second")
