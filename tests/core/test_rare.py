"""Rare values in one group, and values that a rule does not cover."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.errors import HierarchyError
from shoal.workflow.inspect import check_hierarchies, inspect, labels_by_level
from shoal.workflow.release.recipe import Recipe

TEXTS = st.text("abc +", min_size=1, max_size=3) | st.none() | st.sampled_from(["U", "99"])
THRESHOLDS = st.sampled_from(["1%", 0.02, "5%", "7.5%", 0.3, "50%", "100%"])


def bind(spec: Any, records: dict[str | None, int]) -> Hierarchy:
    texts = tuple(records)
    counts = np.array(list(records.values()), np.int64)
    return parse("c", spec).bind(Domain("c", texts, texts), counts)


def labels(hierarchy: Hierarchy, level: int) -> list[str]:
    return [hierarchy.labels[level][group] for group in hierarchy.groups(level).tolist()]


def test_values_below_a_share_of_the_records_are_one_group() -> None:
    records = {"de": 60, "fr": 30, "it": 5, "es": 4, "pt": 1}
    hierarchy = bind({"rare": ["5%", "10%"]}, records)
    assert labels(hierarchy, 1) == ["de", "fr", "it", "other", "other"]
    assert labels(hierarchy, 2) == ["de", "fr", "other", "other", "other"]
    assert hierarchy.labels[3] == ("*",)
    assert hierarchy.leaves[2].tolist() == [1, 1, 3]


def test_a_whole_number_is_a_number_of_records() -> None:
    hierarchy = bind({"rare": [5], "label": "rest"}, {"de": 60, "it": 5, "pt": 4, "es": 1})
    assert labels(hierarchy, 1) == ["de", "it", "rest", "rest"]


@settings(max_examples=examples(200), deadline=None)
@given(
    records=st.dictionaries(TEXTS, st.integers(0, 50), min_size=1, max_size=12),
    thresholds=st.lists(THRESHOLDS, min_size=1, max_size=4),
    top=st.booleans(),
)
def test_rare_is_nested_and_keeps_what_is_frequent(
    records: dict[str | None, int], thresholds: list[Any], top: bool
) -> None:
    shares = [float(entry.rstrip("%")) / 100 if isinstance(entry, str) else entry for entry in thresholds]
    order = sorted(range(len(shares)), key=shares.__getitem__)
    spec = {"rare": [thresholds[n] for n in order], "label": "(rare)", "unknown": ["U", "99"], "top": top}
    hierarchy = bind(spec, records)
    total = sum(number for text, number in records.items() if text not in (None, "U", "99"))
    for level, n in enumerate(order, 1):
        for text, label in zip(records, labels(hierarchy, level), strict=True):
            if text is None or text in ("U", "99"):
                assert label == (text or "missing")
            else:
                assert label == (text if records[text] >= shares[n] * total - 1e-9 else "(rare)")
    for step, below, above in zip(hierarchy.steps, hierarchy.labels[:-1], hierarchy.labels[1:], strict=True):
        assert (len(step), step.max() + 1) == (len(below), len(above))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"rare": ["5%", "1%"]}, "level 2 splits a group of level 1. Each threshold must be at least"),
        ({"rare": ["5%"], "label": "de"}, "a value of the column is written like the label"),
        ({"rare": ["5%"], "label": "*"}, "label must not be empty nor"),
        ({"rare": ["5%"], "kept": [["de"], []]}, "kept lists 2 levels, and rare 1"),
        ({"rare": ["101%"]}, "takes shares of the records such as 1%"),
        ({"rare": [0]}, "or whole numbers of records, got 0"),
        ({"rare": [True]}, "got True"),
        ({"rare": []}, "rare needs at least one entry"),
        ({"rare": ["5%"], "kept": "de"}, "kept takes a list of values for each level"),
        ({"rare": ["5%"], "uncovered": "*"}, "uncovered must not be empty"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(spec: Any, message: str) -> None:
    with pytest.raises(HierarchyError, match=message.replace("*", r"\*")) as refused:
        bind(spec, {"de": 95, "fr": 3, "it": 2})
    assert "'fr'" not in str(refused.value)


def test_without_counts_an_error_says_what_is_missing() -> None:
    texts = ("de", "fr")
    with pytest.raises(HierarchyError, match=r"'c': rare needs the number of records of each value"):
        parse("c", {"rare": ["5%"]}).bind(Domain("c", texts, texts))
    policy = {
        "columns": {"c": {"role": "quasi-identifier", "hierarchy": {"rare": ["5%"]}}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    with pytest.raises(HierarchyError, match="rare needs the number of records"):
        labels_by_level(shoal.Policy.load(policy), "c", ["de"])


LANDS = ["de"] * 120 + ["fr"] * 50 + ["it"] * 8 + ["es"] * 6 + ["pt"] * 2
POLICY = {
    "columns": {
        "land": {"role": "quasi-identifier", "hierarchy": {"rare": ["5%", "30%"]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "illness": {"role": "sensitive", "hierarchy": {"rare": ["10%"], "label": "(other)"}},
    },
    "models": [{"k-anonymity": {"k": 5}}, {"t-closeness": {"t": 0.9, "distance": "hierarchical"}}],
    "suppression_limit": 0,
}


def people() -> pa.Table:
    draw = random.Random(7)
    ill = [draw.choice(["flu"] * 9 + ["cold"] * 9 + ["gout", "measles"]) for _ in LANDS]
    return pa.table({"land": LANDS, "sex": [draw.choice("fm") for _ in LANDS], "illness": ill})


def test_a_recipe_stores_the_groups_and_new_values_fall_into_the_group(tmp_path: Path) -> None:
    table, output = people(), tmp_path / "release.csv"
    release = shoal.anonymize(table, POLICY, output=output, node={"land": 1, "sex": 0})
    assert release.verification.verified
    written = Recipe.load(release.recipe).policy.columns
    assert written["land"].hierarchy["kept"] == [["de", "fr"], ["de"]]  # type: ignore[index]
    assert set(written["illness"].hierarchy["kept"][0]) == {"flu", "cold"}  # type: ignore[index]
    assert shoal.verify(output, POLICY, recipe=release.recipe, reference=table).verified
    new = table.set_column(0, "land", pa.array(["nl", "pt", "it"] * 10 + LANDS[:-30]))
    applied = shoal.apply(release.recipe, new, output=tmp_path / "new.csv")
    shown = Counter(line.split(",")[0] for line in (tmp_path / "new.csv").read_text().splitlines()[1:])
    assert shown == {"other": 30, "de": 120, "fr": 36}
    assert applied.verification.verified


def test_every_way_to_a_hierarchy_counts_the_values(tmp_path: Path) -> None:
    table = people()
    checks = check_hierarchies(table, POLICY)
    assert [check.groups for check in checks] == [(5, 3, 2, 1), (2, 1), (4, 3, 1)]
    assert inspect(table).preview("land", {"rare": ["5%"]}).groups == (5, 3, 1)
    release = shoal.anonymize(table, POLICY, output=tmp_path / "r.csv", node={"land": 2, "sex": 0})
    assert shoal.utility(table, tmp_path / "r.csv", POLICY).columns
    assert shoal.attack(tmp_path / "r.csv", table, ["land", "sex"], policy=POLICY).to_dict()
    assert shoal.verify(tmp_path / "r.csv", POLICY, recipe=release.recipe).verified
    assert shoal.profile(table, POLICY).negotiate(k=5).exact
    assert shoal.compare(table, POLICY)
    assert release.levels == {"land": 2, "sex": 0}


# Values that a rule does not cover.


def test_values_that_are_not_covered_join_one_group_when_asked() -> None:
    records = dict.fromkeys(["2024-01-02", "2024-05-06", "soon", "n.d.", "99", None], 1)
    hierarchy = bind({"dates": ["month", "year"], "uncovered": "unknown", "unknown": [99]}, records)
    assert labels(hierarchy, 1) == ["2024-01", "2024-05", "unknown", "unknown", "99", "missing"]
    assert labels(hierarchy, 2) == ["2024", "2024", "unknown", "unknown", "99", "missing"]
    assert hierarchy.positions is not None
    assert np.isnan(hierarchy.positions).tolist() == [False, False, True, True, True, True]


def test_a_code_like_the_label_of_what_is_not_covered_is_refused() -> None:
    with pytest.raises(HierarchyError, match="share a label"):
        bind({"intervals": [5], "uncovered": "x", "unknown": ["x"]}, {"1": 1, "y": 1, "x": 1})


@pytest.mark.parametrize("release_as", ["text", "bounds"])
def test_a_release_with_values_that_are_not_covered(release_as: str, tmp_path: Path) -> None:
    ages: list[Any] = [str(20 + n % 30) for n in range(200)] + ["old", "n.a."] * 5
    rule = {"intervals": [10, 20], "uncovered": "unknown"}
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": rule, "release_as": release_as}},
        "models": [{"k-anonymity": {"k": 10}}],
        "suppression_limit": 0,
    }
    release = shoal.anonymize(pa.table({"age": ages}), policy, output=tmp_path / "r.csv")
    assert release.verification.verified
    assert release.levels == {"age": 1}
    assert shoal.verify(tmp_path / "r.csv", policy).verified
