"""Incognito: the subset property, and all acceptable nodes whatever the variant."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product
from operator import le, sub

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS
from shoal.core.evaluation import CandidateGraph, Evaluation
from shoal.workflow.search import search

VARIANTS = ("basic", "cube", "super-roots")


def acceptable_nodes(case: Case) -> set:
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    return {n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **case.asked())}


def run(case: Case, variant: str) -> Evaluation:
    return search(case.problem(), ALGORITHMS.create("incognito", {"variant": variant}))[1]


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=examples(150), deadline=None)
@given(case=cases())
def test_every_variant_finds_all_acceptable_nodes(variant: str, case: Case) -> None:
    expected = acceptable_nodes(case)
    assume(expected and case.problem().monotone_models)
    found = run(case, variant)
    assert set(found.candidates) == expected
    assert found.work.nodes_compared == len(expected)
    losses = [oracle.loss(case.metric, case.rows, case.hierarchies, n, **case.wishes()) for n in expected]
    assert math.isclose(found.loss, min(losses), rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(metrics=("height",)))
def test_variants_differ_only_in_what_they_read(case: Case) -> None:
    assume(acceptable_nodes(case) and case.problem().monotone_models)
    basic, cube, roots = (run(case, variant) for variant in VARIANTS)
    for other in (cube, roots):
        assert other.node == basic.node
        assert other.work.nodes_evaluated == basic.work.nodes_evaluated
        assert other.work.subset_evaluations >= basic.work.subset_evaluations  # and what they begin with


@settings(max_examples=examples(150), deadline=None)
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


def naive_work(case: Case) -> tuple[int, int, int, int]:
    """Count the evaluations over fewer columns and over all, and the nodes and edges of the graphs."""
    columns = range(len(case.hierarchies))
    accepted: dict[tuple[int, ...], set[tuple[int, ...]]] = {(): {()}}
    subset = whole = nodes = edges = 0
    for size in range(1, len(columns) + 1):
        for some in combinations(columns, size):
            graph = [
                node
                for node in product(*[range(case.low[c], case.high[c] + 1) for c in some])
                if all(without(node, p) in accepted[without(some, p)] for p in range(size))
            ]
            nodes += len(graph)
            edges += sum(sum(map(abs, map(sub, a, b))) == 1 for a, b in combinations(graph, 2))
            rows = [tuple(row[c] for c in some) for row in case.rows]
            trees = [case.hierarchies[c] for c in some]
            passed: set[tuple[int, ...]] = set()
            for node in sorted(graph, key=lambda node: (sum(node), node)):
                if not any(all(map(le, other, node)) for other in passed):
                    subset, whole = (subset, whole + 1) if size == len(columns) else (subset + 1, whole)
                    if not oracle.acceptable(rows, trees, node, case.limit, **case.asked()):
                        continue
                passed.add(node)
            accepted[some] = passed
    return subset, whole, nodes, edges


def without(values: tuple[int, ...], position: int) -> tuple[int, ...]:
    return values[:position] + values[position + 1 :]


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(models=None))
def test_the_work_is_that_of_the_published_search(case: Case) -> None:
    case.same_level = []
    expected = acceptable_nodes(case)
    assume(expected)
    work = run(case, "basic").work
    subset, whole, nodes, edges = naive_work(case)
    assert (work.subset_evaluations, work.nodes_evaluated) == (subset, whole)
    assert work.candidate_graph == CandidateGraph(nodes, edges)
    assert work.column_counts == len(case.hierarchies)
    assert work.nodes_evaluated + work.nodes_tagged == case.problem().lattice.size


def test_nodes_counted_only_for_their_loss_are_counted_apart() -> None:
    """Three nodes over both columns are evaluated; the top is tagged, and counted for its loss alone."""
    flat = {value: [str(value), "*"] for value in range(4)}
    case = Case(
        rows=[(a, b) for a in range(4) for b in range(4)], hierarchies=[flat, flat], sensitive=[0] * 16,
        k=2, l=1, limit=0, metric="height", weights=[1.0] * 2, low=[0, 0], high=[1, 1], same_level=[],
    )  # fmt: skip
    by_height, by_size = (run(replace(case, metric=m), "basic").work for m in ("height", "discernibility"))
    assert (by_height.nodes_evaluated, by_height.loss_evaluations, by_height.nodes_tagged) == (3, 0, 1)
    assert (by_size.nodes_evaluated, by_size.loss_evaluations, by_size.nodes_tagged) == (3, 1, 1)
    assert by_size.rows_scanned > by_height.rows_scanned


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
    assert found.work.subset_evaluations == 3 + 3 + 1 + 1
    assert found.work.column_counts == 3  # each column at its top, to order them
    # Singles 2 + 2 + 1. Pairs: 4 of (a, b), 2 and 2 with the third column. Of all three without (0, 0): 3.
    assert found.work.candidate_graph == CandidateGraph(nodes=5 + 8 + 3, edges=2 + (4 + 1 + 1) + 2)
    # (0, 0) is refused as a pair; of the rest (0, 1, 0) and (1, 0, 0) pass and tag the top.
    assert found.work.nodes_evaluated == 2
    assert set(found.candidates) == {(0, 1, 0), (1, 0, 0), (1, 1, 0)}
