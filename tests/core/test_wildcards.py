"""A blanked cell that matches every value: what is released is hidden, by few cells."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from example_counts import examples
from problems import Case, combination_of, starts
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.refine import blanked, blanked_any, hidden
from shoal.core.recoding.wildcards import match_sizes
from shoal.errors import CannotHonour, OutOfTime

Row = tuple[str | None, ...]  # None is a blank


def nothing() -> None:
    """Time is never up."""


def match(one: Row, other: Row) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def bare(start: Any) -> tuple[Case, Problem, tuple[int, ...]]:
    """The same problem with k-anonymity alone."""
    case, _, node = start
    case = replace(case, l=1, models=[], population=None)
    return case, case.problem(), node


def labels_of(case: Case, node: tuple[int, ...]) -> list[Row]:
    return [tuple(case.hierarchies[c][row[c]][level] for c, level in enumerate(node)) for row in case.rows]


def refused_rows(case: Case, node: tuple[int, ...]) -> set[int]:
    groups = oracle.classes(case.rows, case.hierarchies, node).values()
    return {position for positions in groups if len(positions) < case.k for position in positions}


@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_matching_records_are_those_that_plain_python_counts(data: Any) -> None:
    columns = data.draw(st.integers(1, 4))
    look = st.tuples(*[st.sampled_from([None, "0", "1", "2"])] * columns)
    looks = data.draw(st.lists(look, min_size=1, max_size=15))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=len(looks), max_size=len(looks)))
    codes = [np.array([int(row[c] or 0) for row in looks]) for c in range(columns)]
    blanks = np.array([[row[c] is None for row in looks] for c in range(columns)])
    expected = [
        sum(size for other, size in zip(looks, sizes, strict=True) if match(row, other)) for row in looks
    ]
    assert match_sizes(codes, blanks, np.array(sizes)).tolist() == expected


@settings(deadline=None, max_examples=examples(300))
@given(start=starts(models=None))
def test_at_least_k_records_match_every_released_record(start: Any) -> None:
    case, problem, node = bare(start)
    blanks, gone = blanked_any(problem, node, check=nothing)
    of, refused, labels = combination_of(case, problem), refused_rows(case, node), labels_of(case, node)
    kept = [position for position, i in enumerate(of) if not gone[i]]
    shown = {
        position: tuple(
            None if blanks[c, of[position]] else label for c, label in enumerate(labels[position])
        )
        for position in kept
    }
    for position in kept:
        assert sum(match(shown[position], other) for other in shown.values()) >= case.k
        # Each record is hidden by its own blanks, before others are blanked.
        assert sum(match(shown[position], labels[other]) for other in kept) >= case.k
    for position, i in enumerate(of):
        assert position in refused or not (gone[i] or blanks[:, i].any())
    assert not (blanks & gone).any()
    empty = sum(not any(row) for row in shown.values())
    assert empty == 0 or empty >= case.k


@settings(deadline=None, max_examples=examples(300))
@given(start=starts(models=None))
def test_every_record_has_the_blanks_of_least_weight(start: Any) -> None:
    case, problem, node = bare(start)
    blanks, gone = blanked_any(problem, node, check=nothing)
    of, refused, labels = combination_of(case, problem), refused_rows(case, node), labels_of(case, node)
    kept = [position for position, i in enumerate(of) if not gone[i]]
    columns = range(len(node))
    for position in refused & set(kept):
        mine = blanks[:, of[position]]
        weights = [
            sum(case.weights[c] for c in chosen)
            for size in columns
            for chosen in itertools.combinations(columns, size)
            if sum(
                all(labels[position][c] == labels[other][c] for c in columns if c not in chosen)
                for other in kept
            )
            >= case.k
        ]
        assert mine.all() or (np.array(case.weights) @ mine) == pytest.approx(min(weights))
        assert not (mine.all() and weights)


@settings(deadline=None, max_examples=examples(200))
@given(start=starts(models=None))
def test_it_blanks_no_more_than_where_a_blank_is_a_value(start: Any) -> None:
    case, problem, node = bare(start)
    sizes, weights, costs = problem.counts.sizes, np.array(case.weights), []
    for search in (blanked_any, blanked):
        blanks, gone = search(problem, node, check=nothing)
        costs.append((sizes * (weights @ blanks)).sum() + sizes[gone].sum() * weights.sum())
    assert costs[0] <= costs[1] + 1e-9


@settings(deadline=None, max_examples=examples(50))
@given(start=starts(models=None), random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(start: Any, random: Any) -> None:
    case, problem, node = bare(start)
    order = list(range(len(case.rows)))
    random.shuffle(order)
    one = blanked_any(problem, node, check=nothing)
    other = blanked_any(case.problem(order), node, check=nothing)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@settings(deadline=None, max_examples=examples(100))
@given(start=starts(models=None))
def test_the_judgement_agrees(start: Any) -> None:
    case, problem, node = bare(start)
    at_node = Evaluator(problem)(node)
    stars = [{tree[v][level] for v in tree} for tree, level in zip(case.hierarchies, node, strict=True)]
    assume(at_node.acceptable and not any("*" in labels and len(labels) > 1 for labels in stars))
    result = hidden(Evaluator(problem), at_node, wildcards=True)
    blanks, gone = blanked_any(problem, node, check=nothing)
    if not blanks.any():
        assert result is at_node
        return
    assert result.recoding is not None
    assert result.recoding.wildcards
    assert result.acceptable
    assert result.suppressed == problem.counts.sizes[gone].sum()
    assert result.recoding.cells == (problem.counts.sizes * blanks).sum()
    matches = result.recoding.matches()
    assert ((matches >= case.k) | result.recoding.regions.suppressed).all()


def flat(rows: list[tuple[int, ...]], k: int) -> Case:
    columns = len(rows[0])
    trees = [{v: [str(v)] for v in {row[c] for row in rows}} for c in range(columns)]
    none = [0] * columns
    return Case(
        rows=rows, hierarchies=trees, sensitive=[], k=k, l=1, limit=len(rows), metric="coverage",
        weights=[1.0] * columns, low=none, high=none, same_level=[],
    )  # fmt: skip


def test_a_blank_need_not_look_like_others() -> None:
    case = flat([(0, 0), (0, 0), (1, 0), (2, 0)], k=2)
    blanks, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert not gone.any()
    assert blanks.tolist() == [[False, True, True], [False, False, False]]
    case = flat([(0, 0), (0, 0), (1, 0)], k=2)  # alone with its blank
    assert blanked(case.problem(), (0, 0), check=nothing)[1].tolist() == [False, True]
    blanks, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert blanks.tolist() == [[False, True], [False, False]]
    assert not gone.any()


def test_a_record_of_which_nothing_would_be_left_is_suppressed() -> None:
    case = flat([(0, 0), (0, 0), (1, 1)], k=2)
    blanks, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert gone.tolist() == [False, True]
    assert not blanks.any()
    case = flat([(0, 0), (0, 0), (1, 1), (2, 2)], k=2)  # two of them are alike
    blanks, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert blanks.tolist() == [[False, True, True]] * 2
    assert not gone.any()


def test_what_is_suppressed_hides_no_other() -> None:
    # (2, 9) shares its 2 with (2, 8) alone, (2, 8) with (2, 9) and, by its 8, with (3, 8).
    case = flat([(0, 0)] * 3 + [(2, 9), (2, 8), (3, 8)], k=3)
    _, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert gone.tolist() == [False, False, False, False]  # three records without any value are enough
    case = flat([(0, 0)] * 3 + [(2, 9), (2, 8)], k=3)
    _, gone = blanked_any(case.problem(), (0, 0), check=nothing)
    assert gone.tolist() == [False, True, True]


def test_a_label_that_looks_like_a_blank_is_refused() -> None:
    case = flat([(0, 0), (0, 0), (1, 0)], k=2)
    case.hierarchies[0] = {0: ["0"], 1: ["*"]}
    problem = case.problem()
    with pytest.raises(CannotHonour, match=r"writes a blank as \*, and column 'c0' has this label"):
        hidden(Evaluator(problem), Evaluator(problem)((0, 0)), wildcards=True)


@pytest.mark.parametrize("values", [2, 9])
def test_wide_tables_finish(values: int) -> None:
    random = np.random.default_rng(3)
    rows = list(map(tuple, random.integers(0, values, (300, 25)).tolist()))
    case = flat(rows, k=3)
    blanks, gone = blanked_any(case.problem(), (0,) * 25, check=nothing)
    codes = [case.problem().counts.codes(c) for c in range(25)]
    assert not gone.any()
    assert match_sizes(codes, blanks, case.problem().counts.sizes).min() >= 3


def test_time_can_run_out() -> None:
    def up() -> None:
        raise OutOfTime

    case = flat([(value, value) for value in range(9)], k=2)
    with pytest.raises(OutOfTime):
        blanked_any(case.problem(), (0, 0), check=up)
