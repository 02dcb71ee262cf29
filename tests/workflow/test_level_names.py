"""Levels are named by what they do to the values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.policy.policy import Policy
from shoal.sample import bundled
from shoal.workflow.inspect import inspect
from shoal.workflow.level_names import LevelNames, level_names, names_of_levels

DAYS = ["2024-01-02", "2024-07-09", "2025-03-04"]


def names(column: str, spec: Any, values: list[str]) -> tuple[str, ...]:
    domain = Domain(column, np.array(sorted(values)), tuple(sorted(values)))
    return names_of_levels(spec, parse(column, spec).bind(domain, np.arange(1, len(values) + 1)))


@pytest.mark.parametrize(
    ("column", "spec", "values", "expected"),
    [
        ("age", {"intervals": [5, 10]}, ["3", "44"], ("in 5-year bands", "in 10-year bands", "removed")),
        ("age_months", {"intervals": [6]}, ["3", "44"], ("in 6-month bands", "removed")),
        ("income", {"intervals": [1000]}, ["3", "4400"], ("in bands of 1000", "removed")),
        ("income", {"intervals": [0.5]}, ["3", "4400"], ("in bands of 0.5", "removed")),
        (
            "points",
            {"intervals": [5], "split": 10},
            ["3", "44"],
            ("in bands of 5", "below 10, or 10 and above", "removed"),
        ),
        (
            "points",
            {"intervals": [5], "split": [[10, 20, 40], 20]},
            ["3", "44"],
            ("in bands of 5", "in 4 bands", "below 20, or 20 and above", "removed"),
        ),
        (
            "postcode",
            {"prefix": [3, 1]},
            ["1234", "2234"],
            ("by the first 3 characters", "by the first character", "removed"),
        ),
        ("admitted", {"dates": ["month", "five_years"]}, DAYS, ("by month", "in 5-year periods", "removed")),
        ("at", {"times": ["part_of_day"]}, ["14:05", "03:00"], ("by part of day", "removed")),
        ("points", {"cuts": [[6, 18], [18]]}, ["3", "44"], ("in 3 bands", "in 2 bands", "removed")),
        (
            "pain",
            {"order": ["a", "b", "c", "d"], "sizes": [2]},
            ["a", "d"],
            ("in groups of 2 neighbours", "removed"),
        ),
        (
            "job",
            {"rare": ["20%", 3]},
            ["a", "b", "c"],
            ("with values below 20% together", "with values below 3 records together", "removed"),
        ),
        ("code", {"icd_10": ["block"]}, ["A00", "J45"], ("by block", "removed")),
        ("sex", "flat", ["f", "m"], ("removed",)),
        ("town", {"tree": {"n": ["a", "b"], "s": ["c"]}}, ["a", "b", "c"], ("in 2 groups", "removed")),
        ("town", {"tree": {"n": ["a", "b"], "s": ["c"]}, "top": False}, ["a", "b", "c"], ("in 2 groups",)),
    ],
)
def test_a_level_is_named_by_its_rule(
    column: str, spec: Any, values: list[str], expected: tuple[str, ...]
) -> None:
    assert names(column, spec, values) == ("as it is", *expected)


def test_levels_of_one_column_have_different_names() -> None:
    spec = {"tree": {"t": {"n": ["a"], "s": ["b"]}, "u": {"w": ["c"], "e": ["d"]}}}
    shown = names("town", spec, ["a", "b", "c", "d"])
    assert len(set(shown)) == len(shown)


def test_the_sample_is_described_without_numbers_of_levels(tmp_path: Path) -> None:
    data, policy_file = bundled(tmp_path)
    policy, inspection = Policy.load(policy_file), inspect(data)
    bound = [
        inspection.preview(name, policy.columns[name].hierarchy).hierarchy
        for name in policy.roles.quasi_identifiers
        if name not in policy.files
    ]
    shown = level_names(policy, bound)
    assert shown.phrase("age", 1) == "age in 5-year bands"
    assert shown.phrase("postcode", 4) == "postcode removed"
    assert shown.describe({"age": 1, "sex": 0}) == "age in 5-year bands, sex as it is"
    assert shown.describe({"age": 1, "sex": 0}, unchanged=False) == "age in 5-year bands"
    assert shown.describe({"sex": 0}, unchanged=False) == "every column as it is"


def test_what_has_no_name_is_a_level() -> None:
    assert LevelNames({"age": ("as it is",)}).phrase("age", 3) == "age level 3"
    assert LevelNames({}).phrase("x", 1) == "x level 1"
