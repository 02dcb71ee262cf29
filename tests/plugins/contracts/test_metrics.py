"""Every promise of every metric."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import oracle
from example_counts import examples
from problems import METRIC_NAMES, Case, cases, metric_of
from shoal.core.classes import Classes
from shoal.core.contracts import When
from shoal.core.counts.in_memory import of_sizes
from shoal.core.evaluator import Evaluator
from shoal.metrics import METRICS

CLOSE = {"rel_tol": 1e-9, "abs_tol": 1e-9}


def test_every_metric_is_tried_here() -> None:
    assert {METRICS.name_of(metric_of(name)) for name in METRIC_NAMES} == set(METRICS)


@pytest.mark.parametrize("name", METRIC_NAMES)
@settings(max_examples=examples(120), deadline=None)
@given(case=cases())
def test_a_monotone_metric_never_falls_going_up(name: str, case: Case) -> None:
    case.metric = name
    problem = case.problem()
    metric = metric_of(name)
    evaluate = Evaluator(problem)

    def losses(node: tuple[int, ...]) -> tuple[float, float]:
        classes = evaluate.classes(node)
        recoding = problem.recoding(node)
        without = metric.loss(problem, recoding, classes, classes.nothing())
        return without, metric.loss(problem, recoding, classes, problem.violations(classes))

    for node in list(problem.lattice.nodes())[:10]:
        without, with_ = losses(node)
        if metric.monotone is not When.NEVER:
            assert with_ >= without - 1e-9  # Suppressing records never lowers the loss.
        for higher in problem.lattice.generalizations(node):
            above_without, above_with = losses(higher)
            if metric.monotone is not When.NEVER:
                assert above_without >= without - 1e-9
            if metric.monotone is When.ALWAYS:
                assert above_with >= with_ - 1e-9


@pytest.mark.parametrize("name", METRIC_NAMES)
@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_the_loss_of_an_acceptable_node_is_the_naive_one(name: str, case: Case) -> None:
    case.metric = name
    problem, metric = case.problem(), metric_of(name)
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:10]:
        if evaluate(node).acceptable:
            classes = evaluate.classes(node)
            loss = metric.loss(problem, problem.recoding(node), classes, problem.violations(classes))
            naive = oracle.loss(name, case.rows, case.hierarchies, node, **case.wishes())
            assert math.isclose(loss, naive, **CLOSE)


@pytest.mark.parametrize("name", METRIC_NAMES)
@settings(max_examples=examples(120), deadline=None)
@given(case=cases())
def test_a_separable_metric_is_the_sum_of_its_table(name: str, case: Case) -> None:
    case.metric = name
    problem = case.problem()
    metric = metric_of(name)
    if metric.separable is When.NEVER:
        with pytest.raises(TypeError):
            metric.table(problem)
        return
    evaluate = Evaluator(problem)
    losses = problem.losses()
    for node in list(problem.lattice.nodes())[:20]:
        classes = evaluate.classes(node)
        mask = problem.violations(classes) if metric.separable is When.ALWAYS else classes.nothing()
        direct = metric.loss(problem, problem.recoding(node), classes, mask)
        assert math.isclose(losses[problem.lattice.index(node)], direct, **CLOSE)
        assert math.isclose(problem.loss_of(node), direct, **CLOSE)


@pytest.mark.parametrize("name", METRIC_NAMES)
@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_a_metric_by_size_needs_nothing_but_sizes(name: str, case: Case) -> None:
    case.metric = name
    problem = case.problem()
    metric = metric_of(name)
    if not metric.by_size:
        return
    for node in list(problem.lattice.nodes())[:10]:
        classes = problem.classes(node)
        gone, recoding = problem.violations(classes), problem.recoding(node)
        alone = metric.loss(problem, recoding, Classes(of_sizes(classes.sizes)), gone)
        assert alone == metric.loss(problem, recoding, classes, gone)
