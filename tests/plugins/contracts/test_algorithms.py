"""Every promise of every algorithm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import oracle
from example_counts import examples
from problems import NODE_SEARCHES, Case, cases
from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
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


@pytest.mark.parametrize("name", NODE_SEARCHES)
@settings(max_examples=examples(120), deadline=None)
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


# What promises nothing of the models is held to what it promises instead, in test_mu_argus.py.
PROMISES_NOTHING = [name for name in ALGORITHMS if ALGORITHMS.load(name).guarantee is Guarantee.NONE]


# What refuses every model about k, and so every case here, is held to what it promises instead.
REFUSES_K = ("anatomy",)


def honoured(case: Case, algorithm: Algorithm) -> Case:
    """The case, or where the search refuses it one without what searches by regions cannot honour."""
    if algorithm.refuses(case.problem()) is None:
        return case
    heights = [len(next(iter(tree.values()))) - 1 for tree in case.hierarchies]
    metric = ("discernibility", "classification")[case.k % 2]
    free = {"low": [0] * len(heights), "high": heights, "same_level": []}
    return replace(case, **free, l=1, models=[], population=None, metric=metric)


@pytest.mark.parametrize(
    "name", [name for name in ALGORITHMS if name not in (*NODE_SEARCHES, *PROMISES_NOTHING, *REFUSES_K)]
)
@settings(max_examples=examples(40), deadline=None)
@given(case=cases())
def test_every_class_of_a_search_by_regions_is_acceptable(name: str, case: Case) -> None:
    algorithm = ALGORITHMS.create(name)
    problem = honoured(case, algorithm).problem()
    assert algorithm.refuses(problem) is None
    try:
        found = algorithm.search(problem, Evaluator(problem))
    except Infeasible:
        return
    assert found.acceptable
    assert found.recoding is not None
    assert found.proven is algorithm.guarantee
    assert (found.lower_bound == found.loss) == (found.proven is Guarantee.LEAST_LOSS)
    assert found.proven in (Guarantee.ACCEPTABLE, Guarantee.LEAST_LOSS)
    classes = problem.classes_of(found.recoding)
    assert classes.records == problem.records
    assert found.recoding.regions is not None
    gone = found.recoding.regions.suppressed
    assert not (problem.violations(classes) & ~gone).any()
    assert found.suppressed == classes.sizes[gone].sum() <= problem.limit


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_what_refuses_k_is_declared(name: str) -> None:
    tree = {0: ["0", "*"], 1: ["1", "*"]}
    case = Case([(0,), (1,)], [tree], [], 2, 1, 0, "discernibility", [1.0], [0], [1], [])
    case.labels = [0, 1]
    assert bool(ALGORITHMS.create(name).refuses(case.problem())) == (name in REFUSES_K)


@pytest.mark.parametrize("name", REFUSES_K)
@settings(max_examples=examples(120), deadline=None)
@given(case=cases(metrics=("class-size", "coverage", "discernibility", "non-uniform-entropy"), models=()))
def test_groups_hold_each_record_once_and_l_different_values(name: str, case: Case) -> None:
    heights = [len(next(iter(tree.values()))) - 1 for tree in case.hierarchies]
    case = replace(case, l=case.l + 1, low=[0] * len(heights), high=heights, same_level=[])
    problem = case.problem()
    problem = replace(problem, models=problem.models[1:])  # all but k-anonymity
    algorithm = ALGORITHMS.create(name)
    assert algorithm.refuses(problem) is None
    values = Counter(case.sensitive)
    feasible = len(case.rows) >= case.l and max(values.values()) <= len(case.rows) // case.l
    if not feasible:
        with pytest.raises(Infeasible):
            algorithm.search(problem, Evaluator(problem))
        return
    found = algorithm.search(problem, Evaluator(problem))
    assert (found.acceptable, found.proven, found.suppressed) == (True, algorithm.guarantee, 0)
    assert found.recoding is not None
    regions = found.recoding.regions
    assert regions is not None
    assert regions.sensitive is not None
    entries = problem.counts.sensitive["l"]
    records = np.bincount(regions.rows, regions.sizes, regions.keys.shape[1])
    assert records.tolist() == entries.counts.tolist()
    groups: dict[int, Counter[int]] = {}
    for row, size, group in zip(regions.rows, regions.sizes, regions.classes, strict=True):
        groups.setdefault(int(group), Counter())[int(entries.codes[row])] += int(size)
    assert len(groups) == len(case.rows) // case.l
    assert all(len(held) >= case.l and max(held.values()) == 1 for held in groups.values())
    told = regions.sensitive["l"]
    assert Counter(zip(told.rows.tolist(), told.codes.tolist(), strict=True)) == Counter(
        {(group, code): n for group, held in groups.items() for code, n in held.items()}
    )


def test_what_promises_nothing_is_declared() -> None:
    assert PROMISES_NOTHING == ["mu-argus"]


def test_every_guarantee_has_a_meaning_that_is_tested() -> None:
    assert set(MEANINGS) == set(Guarantee)
