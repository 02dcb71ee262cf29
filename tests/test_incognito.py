"""Incognito: the subset property, and all acceptable nodes whatever the variant."""

from __future__ import annotations

import math

import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import Case, cases

from shoal.algorithms import ALGORITHMS
from shoal.core.evaluation import Evaluation
from shoal.search import search

VARIANTS = ("basic", "cube", "super-roots")


def acceptable_nodes(case: Case) -> set:
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    return {n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **case.asked())}


def run(case: Case, variant: str) -> Evaluation:
    return search(case.problem(), ALGORITHMS.create("incognito", {"variant": variant}))[1]


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_every_variant_finds_all_acceptable_nodes(variant: str, case: Case) -> None:
    expected = acceptable_nodes(case)
    assume(expected and case.problem().monotone_models)
    found = run(case, variant)
    assert set(found.candidates) == expected
    assert found.work.nodes_compared == len(expected)
    losses = [oracle.loss(case.metric, case.rows, case.hierarchies, n, **case.wishes()) for n in expected]
    assert math.isclose(found.loss, min(losses), rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=100, deadline=None)
@given(case=cases(metrics=("height",)))
def test_variants_differ_only_in_what_they_read(case: Case) -> None:
    assume(acceptable_nodes(case) and case.problem().monotone_models)
    basic, cube, roots = (run(case, variant) for variant in VARIANTS)
    for other in (cube, roots):
        assert other.node == basic.node
        assert other.work.nodes_evaluated == basic.work.nodes_evaluated
        assert other.work.subset_evaluations >= basic.work.subset_evaluations  # and what they begin with


@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_what_is_refused_on_some_columns_is_refused_on_all(case: Case, data: st.DataObject) -> None:
    """The lemma, by the oracle alone: leaving a column out never makes an acceptable node refused."""
    expected = acceptable_nodes(case)
    assume(expected and len(case.hierarchies) > 1 and case.problem().monotone_models)
    node = data.draw(st.sampled_from(sorted(expected)))
    gone = data.draw(st.integers(0, len(node) - 1))

    def left(values: list | tuple) -> list:
        return [value for column, value in enumerate(values) if column != gone]

    rows = [tuple(left(row)) for row in case.rows]
    if case.population is not None:
        case.population = [tuple(left(row)) for row in case.population]
    assert oracle.acceptable(rows, left(case.hierarchies), left(node), case.limit, **case.asked())


def test_a_refused_pair_is_never_counted_with_a_third_column() -> None:
    """Two columns that identify everyone leave no candidates, so nothing above them is counted."""
    flat = {value: [str(value), "*"] for value in range(4)}
    rows = [(a, b, 0) for a in range(4) for b in range(4)]
    case = Case(
        rows=rows, hierarchies=[flat, flat, {0: ["0"]}], sensitive=[0] * 16, k=2, l=1, limit=0,
        metric="height", weights=[1.0] * 3, low=[0, 0, 0], high=[1, 1, 0], same_level=[],
    )  # fmt: skip
    found = run(case, "basic")
    # Singles 2 + 2 + 1 of which (0), (0), (0) pass at once: 3. Pairs: (a, b) 3 nodes, the others 1 each.
    # And each column at its top, to order them.
    assert found.work.subset_evaluations == 3 + 3 + 1 + 1 + 3
    # (0, 0) is refused as a pair; of the rest (0, 1, 0) and (1, 0, 0) pass and tag the top.
    assert found.work.nodes_evaluated == 2
    assert set(found.candidates) == {(0, 1, 0), (1, 0, 0), (1, 1, 0)}
