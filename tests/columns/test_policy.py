"""Policies: YAML round trip and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.errors import PolicyError, ShoalError, UnknownName
from shoal.policy.policy import Policy

GOOD: dict[str, Any] = {
    "columns": {"a": {"role": "quasi-identifier", "hierarchy": "flat"}, "s": {"role": "sensitive"}},
    "models": [{"k-anonymity": {"k": 5}}],
}
HIERARCHIES = st.sampled_from(
    [
        "flat",
        {"intervals": [5, 10], "origin": 1},
        {"prefix": [3, 1], "unknown": ["99"]},
        {"tree": {"g": ["x"]}},
    ]
)
NAMES = st.text(min_size=1, max_size=8).filter(lambda n: n.isprintable())


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    columns: dict[str, Any] = {names[0]: {"role": "quasi-identifier", "hierarchy": draw(HIERARCHIES)}}
    columns[names[1]] = {"role": "sensitive"}
    for name in names[2:]:
        columns[name] = {"role": draw(st.sampled_from(["identifier", "other"]))}
    if draw(st.booleans()):
        columns[names[0]] |= {
            "max_level": draw(st.integers(0, 2)),
            "weight": draw(st.sampled_from([0.5, 2.0])),
        }
    return {
        "columns": columns,
        "models": [{"k-anonymity": {"k": draw(st.integers(1, 9))}}, {"distinct-l-diversity": {"l": 2}}],
        "suppression_limit": draw(st.sampled_from([0, 7, 0.05, "5%"])),
        "suppressed": draw(st.sampled_from(["drop", "mask"])),
        "metric": draw(st.sampled_from(["precision", {"coverage": {"aggregate": "geometric"}}])),
        "algorithm": draw(st.sampled_from(["auto", "ola"])),
    }


@settings(max_examples=examples(150), deadline=None)
@given(policies())
def test_policy_to_yaml_to_policy_is_the_identity(data: dict[str, Any]) -> None:
    import tempfile

    policy = Policy.load(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.yaml"
        path.write_text(policy.to_yaml(), encoding="utf-8")
        assert Policy.load(path) == policy


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"models": []}, PolicyError, "models"),
        ({"models": [{"k-anonymity": {"k": 0}}]}, PolicyError, "k must be at least 1, got 0"),
        ({"models": ["k-anonymity"]}, PolicyError, "needs k"),
        ({"models": [{"k-anonymity": {"k": "many"}}]}, PolicyError, "Option k of k-anonymity"),
        ({"models": [{"k-anonimity": {"k": 2}}]}, UnknownName, "Did you mean 'k-anonymity'"),
        (
            {"models": [{"distinct-l-diversity": {"l": 2, "column": "a"}}]},
            UnknownName,
            "sensitive column 'a'",
        ),
        ({"algorithm": "olaa"}, UnknownName, "Did you mean 'ola'"),
        ({"metric": {"coverage": {"aggregate": "median"}}}, PolicyError, "aggregate"),
        ({"suppresion_limit": 3}, UnknownName, "Did you mean 'suppression_limit'"),
        ({"suppression_limit": -1}, PolicyError, "must not be below 0"),
        ({"columns": {"a": {"role": "other"}}}, PolicyError, "no quasi-identifier"),
        ({"columns": {"a": {"role": "quasi-identifier"}}}, PolicyError, "needs a hierarchy"),
        ({"columns": {"a": {"role": "secret"}}}, PolicyError, "columns.a.role"),
        ({"columns": {"a": {"role": "other", "wieght": 2}}}, UnknownName, "Did you mean 'weight'"),
        ({"columns": {"a": {"role": "other", "weight": 2}}}, PolicyError, "for quasi-identifiers"),
    ],
)
def test_a_wrong_policy_says_what_is_wrong(
    change: dict[str, Any], error: type[ShoalError], message: str
) -> None:
    with pytest.raises(error, match=message):
        Policy.load({**GOOD, **change})
