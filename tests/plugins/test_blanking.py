"""Blanking: what a node would suppress is hidden by few blank cells, and every class passes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import adult
import oracle
from example_counts import examples
from problems import POPULATION, Case, combination_of, starts
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding import refine as blanking
from shoal.core.recoding.refine import blanked
from shoal.errors import OutOfTime

BLANK = "blank"


def nothing() -> None:
    """Time is never up."""


@pytest.fixture(params=["least", "greedy"])
def way(request: Any, monkeypatch: Any) -> str:
    """Both ways, whatever the number of classes."""
    monkeypatch.setattr(blanking, "_MAX_EXACT_CLASSES", 12 if request.param == "least" else 0)
    return str(request.param)


def labels_of(case: Case, row: tuple[int, ...], node: tuple[int, ...]) -> list[str]:
    return [case.hierarchies[c][row[c]][level] for c, level in enumerate(node)]


def refused_rows(case: Case, node: tuple[int, ...]) -> set[int]:
    found = oracle.classes(case.rows, case.hierarchies, node).items()
    bad = [
        p for labels, p in found if oracle.violates(labels, p, case.k, case.l, case.sensitive, case.extra())
    ]
    return {position for positions in bad for position in positions}


def released(
    case: Case, problem: Problem, node: tuple[int, ...], blanks: Any, gone: Any
) -> dict[tuple[str, ...], list[int]]:
    """Look at what is kept: labels, and what a blank looks like."""
    found = defaultdict(list)
    for position, i in enumerate(combination_of(case, problem)):
        if not gone[i]:
            labels = labels_of(case, case.rows[position], node)
            seen = tuple(BLANK if blanks[c, i] else label for c, label in enumerate(labels))
            found[seen].append(position)
    return found


@settings(deadline=None, max_examples=examples(200))
@given(start=starts(), data=st.data(), few=st.sampled_from([0, 12]))
def test_every_class_passes_every_model(start: Any, data: Any, few: int) -> None:
    case, problem, node = start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blanking, "_MAX_EXACT_CLASSES", few)
        blanks, gone = blanked(problem, node, check=nothing)
    of, refused = combination_of(case, problem), refused_rows(case, node)
    assert not (blanks & gone).any()
    for position, i in enumerate(of):
        assert position in refused or not (gone[i] or blanks[:, i].any())
        assert position not in refused or gone[i] or blanks[:, i].any()
    found = released(case, problem, node, blanks, gone)
    for labels, positions in found.items():
        assert not oracle.violates(labels, positions, case.k, case.l, case.sensitive, case.extra())
    names = [
        (name, options) for name, options in case.models if name in ("average-risk", "sample-uniqueness")
    ]
    if blanks.any():
        assert all(oracle.holds(name, options, found, 0, case.extra()) for name, options in names)


@settings(deadline=None, max_examples=examples(200))
@given(start=starts(models=None))
def test_few_classes_are_hidden_at_the_least_cost(start: Any) -> None:
    case, problem, node = start
    expected = least_cost(case, node)
    assume(expected is not None)
    blanks, gone = blanked(problem, node, check=nothing)
    sizes, weights = problem.counts.sizes, np.array(case.weights)
    cost = (sizes * (weights @ blanks)).sum() + sizes[gone].sum() * weights.sum()
    assert (cost, sizes[gone].sum()) == pytest.approx(expected)


def least_cost(case: Case, node: tuple[int, ...]) -> tuple[float, int] | None:
    """Try every way to blank or suppress each refused class; the least cost, then the fewest suppressed."""
    found = oracle.classes(case.rows, case.hierarchies, node).items()
    bad = [(c, p) for c, p in found if oracle.violates(c, p, case.k, case.l, case.sensitive)]
    columns = len(node)
    if not bad or len(bad) > {1: 6, 2: 6, 3: 4, 4: 3}[columns]:
        return None
    ways = [set(c) for n in range(1, columns + 1) for c in itertools.combinations(range(columns), n)]
    best = None
    for way in itertools.product([None, *ways], repeat=len(bad)):
        together, cost, lost = defaultdict(list), 0.0, 0
        for chosen, (labels, positions) in zip(way, bad, strict=True):
            if chosen is None:
                cost += len(positions) * sum(case.weights)
                lost += len(positions)
                continue
            cost += len(positions) * sum(case.weights[c] for c in chosen)
            seen = tuple(BLANK if c in chosen else ("label", label) for c, label in enumerate(labels))
            together[seen] += positions
        if all(not oracle.violates(c, p, case.k, case.l, case.sensitive) for c, p in together.items()):
            best = (cost, lost) if best is None else min(best, (cost, lost))
    return best


@settings(deadline=None, max_examples=examples(100))
@given(start=starts(models=None))
def test_greedy_costs_no_less_than_the_least_and_no_more_than_suppressing(start: Any) -> None:
    case, problem, node = start
    sizes, weights, costs = problem.counts.sizes, np.array(case.weights), []
    for few in (12, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blanking, "_MAX_EXACT_CLASSES", few)
            blanks, gone = blanked(problem, node, check=nothing)
        costs.append((sizes * (weights @ blanks)).sum() + sizes[gone].sum() * weights.sum())
    assert costs[0] <= costs[1] + 1e-9 <= len(refused_rows(case, node)) * weights.sum() + 2e-9


@settings(deadline=None, max_examples=examples(50))
@given(start=starts(), random=st.randoms(use_true_random=False), few=st.sampled_from([0, 12]))
def test_the_order_of_rows_does_not_matter(start: Any, random: Any, few: int) -> None:
    case, problem, node = start
    order = list(range(len(case.rows)))
    random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blanking, "_MAX_EXACT_CLASSES", few)
        one = blanked(problem, node, check=nothing)
        other = blanked(case.problem(order), node, check=nothing)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@settings(deadline=None, max_examples=examples(30))
@given(start=starts(models=POPULATION))
def test_with_a_population_nothing_is_blanked(start: Any) -> None:
    case, problem, node = start
    assume(case.population is not None)
    blanks, gone = blanked(problem, node, check=nothing)
    classes = problem.classes(node)
    assert not blanks.any()
    assert problem.counts.sizes[gone].sum() == classes.sizes[problem.violations(classes)].sum()


def flat(rows: list[tuple[int, ...]], k: int) -> Case:
    columns = len(rows[0])
    trees = [{v: [str(v)] for v in {row[c] for row in rows}} for c in range(columns)]
    none = [0] * columns
    return Case(
        rows=rows, hierarchies=trees, sensitive=[], k=k, l=1, limit=0, metric="coverage",
        weights=[1.0] * columns, low=none, high=none, same_level=[],
    )  # fmt: skip


def test_two_odd_ones_hide_each_other(way: str) -> None:
    case = flat([(0, 0), (0, 0), (1, 0), (1, 1)], k=2)
    blanks, gone = blanked(case.problem(), (0, 0), check=nothing)
    assert not gone.any()
    assert blanks.tolist() == [[False, False, False], [False, True, True]]


@dataclass(frozen=True)
class AtMost(Model):
    """No class is larger: the union of classes that pass may fail, unlike with any model that we have."""

    most: int
    monotone: ClassVar[When] = When.NEVER

    def violations(self, classes: Classes) -> Any:
        return classes.sizes > self.most


def at_most(problem: Problem, most: int) -> Problem:
    return replace(problem, models=(*problem.models, AtMost(most)))


def test_a_blank_is_a_value_of_its_own(way: str) -> None:
    problem = flat([(1, 0), (1, 0), (1, 1), (1, 2)], k=2).problem()
    for wish in (problem, at_most(problem, 2)):
        blanks, gone = blanked(wish, (0, 0), check=nothing)
        assert not gone.any()
        assert blanks.tolist() == [[False] * 3, [False, True, True]]


@settings(deadline=None, max_examples=examples(150))
@given(start=starts(models=None), data=st.data(), few=st.sampled_from([0, 12]))
def test_classes_that_may_not_be_united_pass_too(start: Any, data: Any, few: int) -> None:
    case, problem, node = start
    most = data.draw(st.integers(case.k, 2 * case.k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blanking, "_MAX_EXACT_CLASSES", few)
        blanks, gone = blanked(at_most(problem, most), node, check=nothing)
    assert not (blanks & gone).any()
    for labels, positions in released(case, problem, node, blanks, gone).items():
        assert not oracle.violates(labels, positions, case.k, case.l, case.sensitive)
        assert len(positions) <= most


def test_what_the_whole_table_must_be_comes_first() -> None:
    case = flat([(0, 0)] * 6 + [(1, 1), (1, 2)], k=2)
    assert blanked(case.problem(), (0, 0), check=nothing)[0].any()
    case.models = [("average-risk", {"risk": 0.2})]  # one class of six passes, two of eight do not
    blanks, gone = blanked(case.problem(), (0, 0), check=nothing)
    assert not blanks.any()
    assert gone.tolist() == [False, True, True]


@pytest.mark.parametrize("values", [2, 9])
def test_wide_tables_finish(values: int) -> None:
    random = np.random.default_rng(3)
    rows = list(map(tuple, random.integers(0, values, (400, 30)).tolist()))
    case = flat(rows, k=3)
    blanks, gone = blanked(case.problem(), (0,) * 30, check=nothing)
    found = released(case, case.problem(), (0,) * 30, blanks, gone)
    assert min(map(len, found.values())) >= 3
    assert gone.sum() < 3


def test_time_can_run_out(way: str) -> None:
    def up() -> None:
        raise OutOfTime

    case = flat([(value, value) for value in range(9)], k=2)
    with pytest.raises(OutOfTime):
        blanked(case.problem(), (0, 0), check=up)


@adult.needs_adult
@pytest.mark.parametrize(
    ("metric", "expected"), [("non-uniform-entropy", (1285, 1, 1284)), ("coverage", (1346, 4, 2204))]
)
def test_adult_keeps_nearly_all_of_what_was_suppressed(metric: str, expected: tuple[int, ...]) -> None:
    from shoal.algorithms import ALGORITHMS

    problem = adult.problem(suppression_limit="5%", metric=metric)
    found = ALGORITHMS.create("contour").search(problem, Evaluator(problem))
    blanks, gone = blanked(problem, found.node, check=nothing)
    sizes = problem.counts.sizes
    assert (found.suppressed, sizes[gone].sum(), (sizes * blanks).sum()) == expected
    seen = defaultdict(int)
    groups = [h.groups(v)[problem.counts.codes(c)] for c, (h, v) in
              enumerate(zip(problem.hierarchies, found.node, strict=True))]  # fmt: skip
    for i in np.flatnonzero(~gone):
        seen[tuple(-1 if blanks[c, i] else codes[i] for c, codes in enumerate(groups))] += sizes[i]
    assert min(seen.values()) >= 5
