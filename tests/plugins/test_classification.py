"""The classification metric: its numbers, what it costs to be suppressed, and what else may see labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings

import oracle
import shoal
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS
from shoal.core.classes import LABEL, Classes, label_of
from shoal.core.counts.in_memory import of_sizes
from shoal.core.evaluator import Evaluator
from shoal.engines import ENGINES
from shoal.errors import CannotHonour, Infeasible, InternalError
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted
from shoal.workflow.search import search
from shoal.workflow.session import OpenTable


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "zip": [13053, 13053, 13058, 13058, 14850, 14850, 14850, 14853],
            "sex": ["f", "m", "f", "m", "f", "f", "m", "m"],
            "ill": ["flu", "flu", "cold", "flu", "ulcer", "cold", "ulcer", "ulcer"],
            "paid": ["yes", "no", "yes", "yes", "no", "no", "yes", None],
        }
    )


def policy(**entries: Any) -> dict[str, Any]:
    return {
        "columns": {
            "zip": {"role": "quasi-identifier", "hierarchy": {"prefix": [3]}},
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
            "ill": {"role": "sensitive"},
            "paid": {"role": "other"},
        },
        "label": "paid",
        "models": [{"k-anonymity": {"k": 2}}],
        "metric": "classification",
    } | entries


def test_a_record_that_is_not_like_most_of_its_class_or_suppressed_counts() -> None:
    """At zip 1, sex 1: 130** has three yes and a no, 148** two no, one yes, one missing."""
    release = shoal.anonymize(people(), policy(), node={"zip": 1, "sex": 1})
    assert release.loss == pytest.approx((1 + 2) / 8)
    release = shoal.anonymize(people(), policy(suppression_limit=6), node={"zip": 0, "sex": 0})
    assert (release.suppressed, release.loss) == (6, pytest.approx(6 / 8))  # two women of 14850 agree


@pytest.mark.parametrize("name", ["contour", "exhaustive", "ola", "all-minimal", "incognito"])
@settings(max_examples=examples(60), deadline=None)
@given(case=cases(metrics=("classification",)))
def test_searches_find_the_least_loss(name: str, case: Case) -> None:
    problem = case.problem()
    algorithm = ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        return
    limits = {"low": case.low, "high": case.high, "same_level": case.same_level}
    least = oracle.least_loss(case.metric, case.rows, case.hierarchies, case.limit, **limits, **case.wishes())
    try:
        found = algorithm.search(problem, Evaluator(problem))
    except Infeasible:
        assert least is None
        return
    assert found.loss == pytest.approx(least, abs=1e-9)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(metrics=("classification",), models=()))
def test_regions_lose_what_their_classes_do(case: Case) -> None:
    heights = [len(next(iter(tree.values()))) - 1 for tree in case.hierarchies]
    case = replace(case, low=[0] * len(heights), high=heights, same_level=[], l=1)
    problem = case.problem()
    try:
        found = ALGORITHMS.create("mondrian").search(problem, Evaluator(problem))
    except Infeasible:
        return
    assert found.recoding is not None
    classes = problem.classes_of(found.recoding)
    labels: dict[int, dict[int, int]] = {}
    entries = classes.counts.sensitive[LABEL + "y"]
    for row, code, number in zip(entries.rows, entries.codes, entries.counts, strict=True):
        labels.setdefault(int(row), {})[int(code)] = int(number)
    most = sum(max(held.values()) for held in labels.values())
    assert found.loss == pytest.approx(1 - most / len(case.rows))


def test_a_finer_release_is_never_worse() -> None:
    node = shoal.anonymize(people(), policy(suppression_limit=4)).loss
    for option in ("refine", "cells"):
        finer = shoal.anonymize(people(), policy(suppression_limit=4, algorithm={"auto": {option: True}}))
        assert finer.loss <= node


def test_what_gives_classes_by_chance_is_refused() -> None:
    with pytest.raises(CannotHonour, match="divide equal records at random"):
        shoal.anonymize(people(), policy(algorithm={"mondrian": {"relaxed": True}}))
    with pytest.raises(CannotHonour, match="its metric is about classes"):
        shoal.anonymize(people(), policy(models=[{"distinct-l-diversity": {"l": 2}}], algorithm="anatomy"))


def test_labels_are_counted_where_they_are_needed_and_models_do_not_see_them() -> None:
    engine = ENGINES.create("duckdb")
    table = engine.open(people())
    models = [{"distinct-l-diversity": {"l": 2}}]  # about every sensitive column
    for entries, counts_label in (
        ({}, True),
        ({"metric": "coverage", "algorithm": "tds"}, True),
        ({"metric": "coverage"}, False),
    ):
        wished = Policy.load(policy(models=models, **entries))
        counts, _ = counted(OpenTable(engine, table), wished)
        assert (label_of(counts) is not None) == counts_label
        assert Classes(counts).sensitive == ("ill",)
    both = Policy.load(policy(models=models, label="ill"))
    counts, _ = counted(OpenTable(engine, table), both)
    assert set(counts.sensitive) == {"ill", LABEL + "ill"}
    assert shoal.anonymize(people(), policy(models=models, label="ill")).verification.verified


def test_labels_that_were_not_counted_are_our_own_defect() -> None:
    case = Case([(0,)], [{0: ["0", "*"]}], [], 1, 1, 0, "classification", [1.0], [0], [1], [])
    with pytest.raises(InternalError):
        search(case.problem())
    with pytest.raises(InternalError):
        _ = Classes(of_sizes(case.problem().counts.sizes)).labels
