"""Searches against the naive oracle."""

from __future__ import annotations

import math

import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import Case, cases, counts_of, larger

from shoal.algorithms import ALGORITHMS, contour
from shoal.core import evaluate
from shoal.core.contracts import Guarantee
from shoal.core.evaluate import Evaluator
from shoal.core.tags import Tags
from shoal.errors import CannotHonour, Infeasible, OutOfTime
from shoal.search import search


def least(case: Case) -> float | None:
    return oracle.least_loss(
        case.metric,
        case.rows,
        case.hierarchies,
        case.limit,
        case.low,
        case.high,
        case.same_level,
        **case.wishes(),
    )


def accepted(case: Case) -> set[tuple[int, ...]]:
    wishes = {name: case.wishes()[name] for name in ("k", "l", "sensitive")}
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    return {n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **wishes)}


def check(case: Case, name: str) -> None:
    """Hold a search to what it promises, and to no loss below the least."""
    problem = case.problem()
    expected = least(case)
    algorithm = ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        with pytest.raises(CannotHonour, match="cannot honour"):
            search(problem, algorithm)
        return
    if expected is None:
        with pytest.raises(Infeasible):
            search(problem, algorithm)
        return
    _, found = search(problem, algorithm)
    least_loss = math.isclose(found.loss, expected, rel_tol=1e-9, abs_tol=1e-9)
    assert least_loss or (algorithm.guarantee is not Guarantee.LEAST_LOSS and found.loss > expected)
    if algorithm.guarantee is Guarantee.LEAST_HEIGHT:
        assert found.height == min(map(sum, accepted(case)))
    assert found.proven is algorithm.guarantee
    assert found.node in problem.lattice
    wishes = {name: case.wishes()[name] for name in ("k", "l", "sensitive")}
    gone = oracle.suppressed(case.rows, case.hierarchies, found.node, **wishes)
    assert found.suppressed == gone <= case.limit


@pytest.mark.parametrize("name", list(ALGORITHMS))
@settings(max_examples=250, deadline=None)
@given(case=cases())
def test_what_is_found_matches_the_oracle(name: str, case: Case) -> None:
    check(case, name)


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_contour_without_arrays_matches_the_oracle(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contour, "LARGEST_HELD", 0)
        check(case, "contour")


@settings(max_examples=100, deadline=None)
@given(case=cases(metrics=("height", "non-uniform-entropy", "precision")))
def test_contour_on_all_cores_matches_the_oracle(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "_WIDE", 0)
        check(case, "contour")


@pytest.mark.parametrize(
    "metric", ["discernibility-star", "discernibility", "class-size", "coverage", "non-uniform-entropy"]
)
def test_contour_proves_the_optimum_of_larger_problems(metric: str) -> None:
    """Groups of nodes, estimates and bounds matter only where there are many nodes."""
    for seed in range(40):
        problem = larger(seed, metric).problem()
        _, truth = search(problem, ALGORITHMS.create("exhaustive"))
        _, found = search(problem, ALGORITHMS.create("contour"))
        assert math.isclose(found.loss, truth.loss, rel_tol=1e-9), seed


@pytest.mark.parametrize("seed", range(12))
def test_what_contour_looks_at_does_not_depend_on_the_cores(seed: int) -> None:
    problem = larger(seed, "non-uniform-entropy").problem()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "_WIDE", 0)
        found = []
        for cores in (1, 2, 8):
            patch.setattr(evaluate, "CORES", cores)
            found.append(search(problem, ALGORITHMS.create("contour"))[1])
    assert found[0] == found[1] == found[2]


@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_another_row_order_gives_the_same_answer(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.rows))))
    assume(least(case) is not None)
    for name in ALGORITHMS:
        algorithm = ALGORITHMS.create(name)
        if not algorithm.refuses(case.problem()):
            one, other = search(case.problem(), algorithm)[1], search(case.problem(order), algorithm)[1]
            assert one == other


@settings(max_examples=100, deadline=None)
@given(case=cases(metrics=("non-uniform-entropy", "discernibility-star")))
def test_ola_lists_exactly_the_minimal_nodes(case: Case) -> None:
    assume(least(case) is not None)
    every = accepted(case)
    minimal = {
        n for n in every if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in every)
    }
    _, found = search(case.problem(), ALGORITHMS.create("ola"))
    assert set(found.candidates) == minimal


@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_the_nearest_miss_would_do(case: Case) -> None:
    """Every relaxation that an infeasible answer names makes the problem feasible."""
    assume(least(case) is None and len(case.rows) >= max(case.k, case.l))
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    nearest = caught.value.nearest
    wishes = {name: case.wishes()[name] for name in ("k", "l", "sensitive")}
    top = case.problem().lattice.top
    if "suppression_limit" in nearest:
        assert oracle.acceptable(case.rows, case.hierarchies, top, nearest["suppression_limit"], **wishes)
        assert nearest["suppression_limit"] > case.limit
    for option in ("k", "l"):
        if option in nearest:
            weaker = wishes | {option: nearest[option]}
            assert nearest[option] < wishes[option]
            assert oracle.acceptable(case.rows, case.hierarchies, top, case.limit, **weaker)
            stronger = wishes | {option: nearest[option] + 1}
            assert not oracle.acceptable(case.rows, case.hierarchies, top, case.limit, **stronger)
    for name, level in nearest.get("max_level", {}).items():
        raised = list(top)
        for group in [*case.same_level, (int(name[1:]),)]:
            if int(name[1:]) in group:
                for column in group:
                    raised[column] = level
        assert oracle.acceptable(case.rows, case.hierarchies, raised, case.limit, **wishes)


def test_two_known_nodes_settle_forty_eight() -> None:
    rows = [(a % 2, a % 7, a % 2, a % 3) for a in range(42)]
    sizes = (2, 7, 2, 3)
    trees = [
        {v: [str(v)] + [f"{lv}"] * (n - 1) for v, lv in zip(range(n), "*" * n, strict=True)} for n in sizes
    ]
    case = Case(rows, trees, [0] * 42, 2, 1, 0, "height", [1.0] * 4, [0] * 4, [n - 1 for n in sizes], [])
    tags = Tags(case.problem().lattice)
    assert tags.state.size == 84
    tags.refuse((1, 1, 1, 2))
    tags.accept((0, 4, 0, 1))
    assert tags.settled == 48


def test_a_search_that_runs_out_of_time_returns_its_best() -> None:
    rows = [(a % 5, a % 3) for a in range(30)]
    trees = [{v: [str(v), str(v // 2), "*"] for v in range(5)}, {v: [str(v), "*"] for v in range(3)}]
    case = Case(rows, trees, [0] * 30, 4, 1, 0, "height", [1.0] * 2, [0, 0], [2, 1], [])
    with pytest.raises(OutOfTime, match="seconds"):
        search(case.problem(), seconds=-1)
    evaluate = Evaluator(case.problem())
    assert evaluate((2, 1)).acceptable
    assert evaluate.best is not None


def test_many_columns_take_several_words() -> None:
    """Fifty columns of up to nine values do not fit one word; the answer is the oracle's."""
    rows = [tuple((r * (c + 1)) % (2 + c % 8) if c < 3 else r % 4 for c in range(50)) for r in range(40)]
    trees = []
    for c in range(50):
        values = sorted({row[c] for row in rows})
        trees.append({v: [str(v), "*"] for v in values})
    counts, _ = counts_of(rows)
    assert len(counts.keys) > 1
    high = [1, 1, 1] + [0] * 47
    case = Case(rows, trees, [0] * 40, 3, 1, 4, "discernibility", [1.0] * 50, [0] * 50, high, [])
    for name in ("contour", "exhaustive"):
        check(case, name)
