"""What is left of each column is counted from the released table by hand."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.workflow.advice import advice_summary

RANGES = {"intervals": [5, 10, 20]}


def people(seed: int, records: int = 200) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "age": [str(chance.randrange(20, 60)) for _ in range(records)],
            "ward": [chance.choice("abcdef") for _ in range(records)],
            "sex": [chance.choice("fm") for _ in range(records)],
            "unit": ["one"] * records,
        }
    )


def policy(**entries: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    columns = {
        "age": {**quasi, "hierarchy": RANGES},
        "ward": {**quasi, "hierarchy": "flat"},
        "sex": {**quasi, "hierarchy": "flat"},
        "unit": {**quasi, "hierarchy": "flat"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 5}}], "suppression_limit": "10%", **entries}


def covered(label: str, values: set[str]) -> int:
    """Return how many values of a column a label stands for."""
    if label == "*":
        return len(values)
    if "-" in label:
        low, high = map(int, label.strip("[]").split("-"))
        return sum(low <= int(value) <= high for value in values)
    return 1


@pytest.mark.parametrize("algorithm", ["contour", "mondrian", {"contour": {"refine": True}}])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_retained_is_counted_in_the_released_table(algorithm: Any, seed: int) -> None:
    table = people(seed)
    release = shoal.anonymize(table, policy(algorithm=algorithm, metric="coverage"))
    for name in ("age", "unit"):
        values = set(table[name].to_pylist())
        lost = table.num_rows - release.table.num_rows  # each suppressed record counts as lost
        for label, records in Counter(release.table[name].to_pylist()).items():
            lost += records * (covered(label, values) - 1) / max(1, len(values) - 1)
        assert release.retained[name] == pytest.approx(1 - lost / table.num_rows)
    assert release.retained_overall == pytest.approx(sum(release.retained.values()) / 4)
    result = release.to_dict()["retained"]
    assert result == {"overall": release.retained_overall, "columns": release.retained}


def test_a_column_with_one_label_is_lost_whatever_its_level() -> None:
    release = shoal.anonymize(people(0), policy(), node={"age": 4, "sex": 1, "ward": 0})
    assert release.columns_without_information == ("age", "sex")  # `unit` had one value before
    assert {fate.column: fate.retained for fate in release.fates()}["sex"] == "lost"
    text = str(release)
    assert "nothing is left of age, sex" in text
    one_decade = pa.table({"age": [str(20 + number % 10) for number in range(40)]})
    narrow = {**policy(), "columns": {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}}}}
    assert shoal.anonymize(one_decade, narrow, node={"age": 1}).columns_without_information == ("age",)


def test_verified_is_never_said_without_what_is_retained() -> None:
    release = shoal.anonymize(people(1), policy(), node={"age": 4, "sex": 1, "ward": 1})
    verdict = release.document().verdict
    assert verdict is not None
    assert verdict.tone == "warn"
    assert verdict.text.startswith("Verified")
    assert "0% of the information is retained" not in verdict.text  # the constant column lost nothing
    assert "only 2" in verdict.text
    assert "1 of 4 quasi-identifiers still carries information" in verdict.text


def test_a_column_of_one_value_is_named_where_it_counts_as_retained() -> None:
    release = shoal.anonymize(people(0), policy(), node={"age": 4, "sex": 1, "ward": 1})
    assert release.columns_with_one_value == ("unit",)
    assert release.to_dict()["columns_with_one_value"] == ["unit"]
    assert {fate.column: fate.retained for fate in release.fates()}["unit"] == "one value"
    named = "unit has one value in the input, and counts as retained"
    assert named in str(release)
    verdict = release.document().verdict
    assert verdict is not None
    assert f"still carries information ({named})" in verdict.text
    assert named in advice_summary(release, ())
    varied = policy()
    del varied["columns"]["unit"]
    other = shoal.anonymize(people(0).drop_columns("unit"), varied, node={"age": 4, "sex": 1, "ward": 1})
    assert other.columns_with_one_value == ()
    assert "one value" not in str(other) + advice_summary(other, ())
