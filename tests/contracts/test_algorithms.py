"""Every promise of every algorithm."""

from __future__ import annotations

import math

import oracle
import pytest
from hypothesis import given, settings
from problems import Case, cases

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Guarantee
from shoal.core.evaluate import Evaluator
from shoal.errors import Infeasible


@pytest.mark.parametrize("name", list(ALGORITHMS))
@settings(max_examples=120, deadline=None)
@given(case=cases())
def test_what_is_promised_is_true(name: str, case: Case) -> None:
    problem = case.problem()
    algorithm = ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        return
    expected = oracle.least_loss(
        case.metric,
        case.rows,
        case.hierarchies,
        case.limit,
        case.low,
        case.high,
        case.same_level,
        **case.wishes(),
    )
    evaluate = Evaluator(problem)
    if expected is None:
        with pytest.raises(Infeasible):
            algorithm.search(problem, evaluate)
        return
    found = algorithm.search(problem, evaluate)
    assert found.acceptable
    if algorithm.guarantee is Guarantee.LEAST_LOSS:
        assert found.proven is Guarantee.LEAST_LOSS
        assert math.isclose(found.loss, expected, rel_tol=1e-9, abs_tol=1e-9)
    assert 0 < found.work.nodes_evaluated <= problem.lattice.size
    assert found.work.nodes_evaluated + found.work.nodes_tagged <= problem.lattice.size
