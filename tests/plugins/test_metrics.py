"""Metrics against published numbers and the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

import oracle
from example_counts import examples
from problems import METRIC_NAMES, Case, cases, metric_of
from shoal.core.evaluator import Evaluator

# Ten records (sex, age, date) of DESIGN 5; k = 3.
TEN = [("M", 18, 1)] * 3 + [("M", 13, 1), ("M", 19, 1), ("M", 22, 1)]
TEN += [("F", 18, 2), ("F", 22, 2), ("F", 23, 2), ("F", 21, 2)]


def ten() -> Case:
    ages = {a: [str(a), f"{a // 5 * 5}", f"{a // 10 * 10}", f"{a // 20 * 20}", "*"] for a in range(13, 24)}
    sexes = {"M": ["M", "person"], "F": ["F", "person"]}
    dates = {d: [str(d), "*"] for d in (1, 2)}
    trees = [sexes, ages, dates]
    return Case(TEN, trees, [0] * 10, 3, 1, 10, "precision", [1.0] * 3, [0] * 3, [1, 4, 1], [])


@pytest.mark.parametrize(
    ("metric", "node", "expected"),
    [
        ("discernibility", (0, 0, 0), 79),
        ("discernibility-star", (0, 0, 0), 16),
        ("discernibility", (0, 1, 0), 55),
        ("discernibility-star", (0, 1, 0), 28),
        ("precision", (0, 1, 0), 0.25 / 3),
        ("discernibility-star", (1, 0, 0), 16),
        ("precision", (1, 0, 0), 1 / 3),
    ],
)
def test_the_ten_record_example(metric: str, node: tuple[int, ...], expected: float) -> None:
    case = ten()
    case.metric = metric
    assert Evaluator(case.problem())(node).loss == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRIC_NAMES)
@settings(max_examples=examples(100), deadline=None)
@given(case=cases())
def test_every_metric_equals_its_definition(metric: str, case: Case) -> None:
    case.metric = metric
    problem = case.problem()
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:20]:
        classes = evaluate.classes(node)
        mask = problem.violations(classes)
        found = problem.metric.loss(problem, problem.recoding(node), classes, mask)
        expected = oracle.loss(metric, case.rows, case.hierarchies, node, **case.wishes())
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_coverage_counts_the_values_that_a_hierarchy_lists() -> None:
    """Two of four listed values occur; at level 1 one group covers three of the four."""
    from shoal.core.counts.counts import Domain
    from shoal.core.hierarchy.builders import parse
    from shoal.core.lattice.lattice import build
    from shoal.core.problem import Problem

    case = Case([(0,), (1,)], [{0: ["a"], 1: ["b"]}], [0, 0], 1, 1, 0, "coverage", [1.0], [0], [0], [])
    base = case.problem()
    hierarchy = parse("c", {"tree": {"g": ["a", "b", "c"], "h": ["d"]}}).bind(
        Domain("c", ("a", "b"), ("a", "b"))
    )
    lattice = build({"c": hierarchy.height})
    problem = Problem(base.counts, (hierarchy,), lattice, base.models, metric_of("coverage"), 0, (1.0,))
    losses = [Evaluator(problem)((level,)).loss for level in range(3)]
    assert losses == pytest.approx([0, 2 / 3, 1])
    assert np.allclose(problem.losses(), losses)
