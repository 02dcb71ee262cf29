"""Every promise of every algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable

import oracle
import pytest
from hypothesis import given, settings
from problems import Case, cases

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Guarantee
from shoal.core.evaluate import Evaluation, Evaluator
from shoal.errors import Infeasible

Node = tuple[int, ...]


def asked(case: Case) -> dict[str, object]:
    return case.asked()


def acceptable_nodes(case: Case) -> list[Node]:
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    return [n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **asked(case))]


def least_loss(case: Case, found: Evaluation, nodes: list[Node]) -> bool:
    losses = [oracle.loss(case.metric, case.rows, case.hierarchies, n, **case.wishes()) for n in nodes]
    return math.isclose(found.loss, min(losses), rel_tol=1e-9, abs_tol=1e-9)


def least_height(case: Case, found: Evaluation, nodes: list[Node]) -> bool:
    return sum(found.node) == min(map(sum, nodes))


def minimal(case: Case, found: Evaluation, nodes: list[Node]) -> bool:
    lower = [n for n in nodes if all(a <= b for a, b in zip(n, found.node, strict=True))]
    return lower == [found.node]


def acceptable(case: Case, found: Evaluation, nodes: list[Node]) -> bool:
    return found.node in nodes


MEANINGS: dict[Guarantee, Callable[[Case, Evaluation, list[Node]], bool]] = {
    Guarantee.LEAST_LOSS: least_loss,
    Guarantee.LEAST_HEIGHT: least_height,
    Guarantee.MINIMAL: minimal,
    Guarantee.ACCEPTABLE: acceptable,
    Guarantee.NONE: acceptable,  # nothing is promised, but what is refused is never returned
}


@pytest.mark.parametrize("name", list(ALGORITHMS))
@settings(max_examples=120, deadline=None)
@given(case=cases())
def test_what_is_promised_is_true(name: str, case: Case) -> None:
    problem = case.problem()
    algorithm = ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        return
    nodes = acceptable_nodes(case)
    evaluate = Evaluator(problem)
    if not nodes:
        with pytest.raises(Infeasible):
            algorithm.search(problem, evaluate)
        return
    try:
        found = algorithm.search(problem, evaluate)
    except Infeasible:  # it may pass by them where a node says nothing of those above
        assert algorithm.guarantee is Guarantee.ACCEPTABLE
        assert not problem.monotone_models
        return
    assert found.acceptable
    assert found.node in nodes
    assert found.proven is algorithm.guarantee
    assert MEANINGS[algorithm.guarantee](case, found, nodes)
    told = oracle.loss(case.metric, case.rows, case.hierarchies, found.node, **case.wishes())
    assert math.isclose(found.loss, told, rel_tol=1e-9, abs_tol=1e-9)
    assert found.suppressed == oracle.suppressed(case.rows, case.hierarchies, found.node, **asked(case))
    if found.candidates:
        assert found.node in found.candidates
        assert set(found.candidates) <= set(nodes)
    assert 0 < found.work.nodes_evaluated <= problem.lattice.size
    assert found.work.nodes_evaluated + found.work.nodes_tagged <= problem.lattice.size


def test_every_guarantee_has_a_meaning_that_is_tested() -> None:
    assert set(MEANINGS) == set(Guarantee)
