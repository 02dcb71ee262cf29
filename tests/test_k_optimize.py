"""Searches over cuts: the least of all sets by brute force, bounds at every moment, and the lemmas."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Case, cases

import shoal
from shoal.algorithms import ALGORITHMS
from shoal.core import cut_nodes, cut_steps, cut_tables
from shoal.core.contracts import Guarantee
from shoal.core.cut_greedy import Greedy
from shoal.core.cut_ground import Ground, ground_of
from shoal.core.cut_search import Tree
from shoal.core.evaluate import Evaluator
from shoal.core.problem import Problem
from shoal.errors import CannotHonour, Infeasible, OutOfTime, PolicyError

METRICS = ("discernibility", "classification")


@st.composite
def problems(draw: Any, metrics: tuple[str, ...] = METRICS) -> Problem:
    """A random problem that searches over cuts take, with few cuts and any limit."""
    columns = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 4)) for _ in range(columns)]
    row = st.tuples(*[st.integers(0, size - 1) for size in sizes])
    rows = draw(st.lists(row, min_size=1, max_size=draw(st.sampled_from([8, 30]))))
    few = draw(st.lists(st.integers(0, len(rows) - 1), max_size=12))
    rows = [*rows, *(rows[at] for at in few for _ in range(3))]
    k = draw(st.integers(1, min(6, len(rows))))
    case = Case(
        rows=rows, hierarchies=[{v: [str(v), "*"] for v in range(size)} for size in sizes], sensitive=[],
        k=k, l=1, limit=draw(st.sampled_from([0, 1, k, len(rows) // 4, len(rows)])),
        metric=draw(st.sampled_from(metrics)), weights=[1.0] * columns, low=[0] * columns,
        high=[1] * columns, same_level=[], labels=[draw(st.integers(0, 2)) for _ in rows],
    )  # fmt: skip
    return case.problem()


def cost_of(problem: Problem, places: list[Any], cuts: set[tuple[int, int]]) -> tuple[float, int]:
    """What a set of cuts costs and suppresses, in plain dicts; infinite where it is not acceptable."""
    entries = problem.counts.sensitive["\0label of y"]
    classes: dict[tuple[int, ...], dict[int, int]] = {}
    for row, label, count in zip(entries.rows, entries.codes, entries.counts, strict=True):
        look = tuple(
            sum(column == c and own[row] >= at for c, at in cuts) for column, own in enumerate(places)
        )
        held = classes.setdefault(look, {})
        held[int(label)] = held.get(int(label), 0) + int(count)
    gone, cost, kept = 0, 0.0, 0
    for held in classes.values():
        size = sum(held.values())
        kept += size >= problem.least_size
        gone += size if size < problem.least_size else 0
        if type(problem.metric).__name__ == "Discernibility":
            cost += size * (problem.records if size < problem.least_size else size)
        else:
            cost += (size if size < problem.least_size else size - max(held.values())) / problem.records
    return (cost, gone) if kept and gone <= problem.limit else (math.inf, gone)


def every_set(problem: Problem) -> tuple[list[Any], list[set[tuple[int, int]]]]:
    ground = ground_of(problem)
    places = [column.places[problem.counts.codes(c)] for c, column in enumerate(ground.columns)]
    cuts = [(c, at) for c, own in enumerate(places) for at in range(1, len(set(own.tolist())))]
    return places, [set(some) for size in range(len(cuts) + 1) for some in combinations(cuts, size)]


def least(problem: Problem) -> float:
    places, sets = every_set(problem)
    return min(cost_of(problem, places, cuts)[0] for cuts in sets)


@settings(max_examples=250, deadline=None)
@given(problem=problems())
def test_k_optimize_finds_the_least_of_all_sets_of_cuts(problem: Problem) -> None:
    found = ALGORITHMS.create("k-optimize").search(problem, Evaluator(problem))
    assert found.acceptable
    assert found.proven is Guarantee.LEAST_LOSS
    assert math.isclose(found.loss, least(problem), rel_tol=1e-9, abs_tol=1e-12)
    assert found.lower_bound is not None
    assert math.isclose(found.lower_bound, found.loss, rel_tol=1e-9, abs_tol=1e-12)


@settings(max_examples=250, deadline=None)
@given(problem=problems(), steps=st.integers(0, 40))
def test_the_bound_is_never_above_the_least(problem: Problem, steps: int) -> None:
    """Without a good set to begin with, so that there is something to do, and stopped at any moment."""
    ground = ground_of(problem)
    truth = least(problem)
    tree = Tree(ground, Greedy(ground, lambda: None).best)
    left = steps
    last = -math.inf

    def check() -> None:
        nonlocal left, last
        assert ground.loss(tree.bound) <= truth * (1 + 1e-9) + 1e-12
        left -= 1
        if left < 0:
            raise OutOfTime

    try:
        tree.search(check)
    except OutOfTime:
        last = ground.loss(tree.bound)
        assert last <= truth * (1 + 1e-9) + 1e-12
        left = 10**9
        tree.search(check)
    assert tree.closed
    assert math.isclose(ground.loss(tree.best.cost), truth, rel_tol=1e-9, abs_tol=1e-12)
    assert ground.loss(tree.bound) >= last


@settings(max_examples=150, deadline=None)
@given(problem=problems(), data=st.data())
def test_bounds_hold_for_every_set_between_head_and_tail(problem: Problem, data: st.DataObject) -> None:
    ground = ground_of(problem)
    state = np.array([data.draw(st.integers(0, 2)) for _ in range(len(ground))], np.uint8)
    table, gone = table_of(ground, state)
    if gone > ground.limit:
        return
    bound, exact, taken, left, lost, useful, _ = cut_nodes.measure(
        *table, state, ground.begins, ground.k, ground.records, ground.limit, gone,
        math.inf, ground.minority,
    )  # fmt: skip
    head = ground.head(state == cut_tables.HEAD)
    assert math.isclose(exact, head.cost)
    assert head.gone == gone
    tail = np.flatnonzero(state == cut_tables.TAIL)
    for size in range(len(tail) + 1):
        for some in combinations(tail.tolist(), size):
            cuts = head.cuts.copy()
            cuts[list(some)] = True
            whole = ground.head(cuts)
            for cut in some:
                single = head.cuts.copy()
                single[cut] = True
                one = ground.head(single)
                assert one.gone - gone == lost[cut] <= whole.gone - gone
                if not useful[cut]:  # the lemma
                    without = cuts.copy()
                    without[cut] = False
                    other = ground.head(without)
                    assert (other.cost, other.gone) <= (whole.cost, whole.gone)
                    assert other.gone <= whole.gone
            if whole.gone > ground.limit:
                continue
            assert whole.cost >= bound - 1e-6
            for cut in tail:
                assert whole.cost >= bound + (taken if cut in some else left)[cut] - 1e-6


def test_what_is_cut_off_a_class_is_charged_on_its_floor() -> None:
    """A class of 30 (k=5) beside one of 100, and a cut that takes 1 record off it, by hand.

    Its finest cells have 20, 3, 3 and 4 records: the floor is 400 + 15 + 15 + 20 = 450. Either cut that
    counts leaves 7 records together, which cost 49 and not 35: the bound is 464. With the third cut a
    record costs 130, and the rest at least the floor less 1 · (2 · 29 + 1): 521, which is 57 more.
    """
    codes = np.array(
        [[0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0], [0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 0, 0]], np.int32
    )
    sizes = np.array([19, 1, 3, 3, 4, 100])
    table = codes, sizes, np.zeros((6, 0), np.int64), np.array([0, 5, 6])
    state = np.array([cut_tables.HEAD, *[cut_tables.TAIL] * 3], np.uint8)
    begins = np.arange(5)
    bound, exact, taken, left, lost, useful, pairs = cut_nodes.measure(
        *table, state, begins, 5, 130, 130, 0, math.inf, False
    )
    assert (bound, exact) == (10_000 + 464, 10_000 + 900)
    assert taken.tolist() == [0, 0, 0, 57]
    assert lost.tolist() == [0, 0, 0, 1]
    assert useful.tolist() == [False, True, True, False]
    assert pairs.tolist() == [0, 2 * 7 * 23, 2 * 7 * 23, 0]
    # Without one of the two, cells of 23 and 7 remain; the bound knew 464 already.
    assert left.tolist() == [0, 23**2 + 7**2 - 464, 23**2 + 7**2 - 464, 0]


def test_what_a_cut_suppresses_in_one_class_is_its_price_in_another() -> None:
    """Classes of 40 and 12 (k=10), 1,000 records: one cut halves the first and takes 2 off the second.

    The second alone would do without it and the first alone would take it, which is 144 + 800. Together
    a set with the cut pays 2 · (1000 - 2 · 12) more, and the first gains 800: nothing beats the head.
    """
    codes = np.array([[0, 0, 1, 1, 2], [0, 1, 0, 1, 0]], np.int32)
    sizes = np.array([20, 20, 10, 2, 948])
    table = codes, sizes, np.zeros((5, 0), np.int64), np.array([0, 2, 4, 5])
    state = np.array([cut_tables.HEAD, cut_tables.HEAD, cut_tables.TAIL], np.uint8)
    bound, exact, taken, *_ = cut_nodes.measure(
        *table, state, np.array([0, 2, 3]), 10, 1000, 1000, 0, math.inf, False
    )
    assert exact == 40**2 + 12**2 + 948**2
    assert bound == exact
    assert bound + taken[2] <= 2 * 20**2 + 10**2 + 2 * 1000 + 948**2


@settings(max_examples=100, deadline=None)
@given(problem=problems(), most=st.integers(0, 3))
def test_with_no_room_for_open_nodes_the_least_is_found_all_the_same(problem: Problem, most: int) -> None:
    ground = ground_of(problem)
    tree = Tree(ground, Greedy(ground, lambda: None).best, most_aside=most)

    def check() -> None:
        assert len(tree.aside) <= max(most, 1)

    tree.search(check)
    assert tree.closed
    assert math.isclose(ground.loss(tree.best.cost), least(problem), rel_tol=1e-9, abs_tol=1e-12)


def table_of(ground: Ground, state: Any) -> tuple[Any, int]:
    table: Any = cut_tables.merge(*ground.table(), ground.state(), state != cut_tables.OUT, ground.begins)
    gone = 0
    for cut in np.flatnonzero(state == cut_tables.HEAD):
        *table, more = cut_tables.divide(*table, state, ground.begins, cut, ground.k)
        gone += more
    return table, gone


@settings(max_examples=150, deadline=None)
@given(problem=problems(), data=st.data())
def test_one_cut_more_or_less_costs_what_it_says(problem: Problem, data: st.DataObject) -> None:
    ground = ground_of(problem)
    cuts = np.array([data.draw(st.booleans()) for _ in range(len(ground))], np.bool_)
    head = ground.head(cuts)
    places, _ = every_set(problem)
    column = np.searchsorted(ground.begins, np.arange(len(ground)), side="right") - 1
    told = cost_of(
        replace(problem, limit=problem.records),
        places,
        {(int(c), int(at)) for c, at in zip(column[cuts], ground.places[cuts], strict=True)},
    )
    assert head.gone == told[1]
    assert told[0] == math.inf or math.isclose(ground.loss(head.cost), told[0], abs_tol=1e-9)
    state = np.where(cuts, cut_tables.HEAD, cut_tables.OUT).astype(np.uint8)
    classes = ground.classes(cuts)
    costs, gone = cut_steps.removed(
        *classes[:3], state, ground.begins, ground.k, ground.records, ground.minority
    )
    table, _ = table_of(ground, np.where(cuts, cut_tables.HEAD, cut_tables.TAIL).astype(np.uint8))
    more, lost = cut_steps.added(
        *table, ground.state(), ground.begins, ground.k, ground.records, ground.minority
    )
    for cut in range(len(ground)):
        other = cuts.copy()
        other[cut] = not cuts[cut]
        one = ground.head(other)
        change, records = (costs[cut], gone[cut]) if cuts[cut] else (more[cut], lost[cut])
        assert math.isclose(one.cost, head.cost + change, abs_tol=1e-6)
        assert one.gone == head.gone + records


@settings(max_examples=100, deadline=None)
@given(problem=problems(), seed=st.integers(0, 3))
def test_greedy_cuts_are_acceptable_the_same_for_a_seed_and_never_better(problem: Problem, seed: int) -> None:
    options = {"seed": seed, "starts": 3}
    greedy = ALGORITHMS.create("greedy-cuts", options)
    found = greedy.search(problem, Evaluator(problem))
    assert found.acceptable
    assert found.suppressed <= problem.limit
    again = greedy.search(problem, Evaluator(problem))
    assert (found.loss, found.suppressed) == (again.loss, again.suppressed)
    assert found.recoding is not None
    assert again.recoding is not None
    assert (found.recoding.regions.groups == again.recoding.regions.groups).all()  # type: ignore[union-attr]
    best = ALGORITHMS.create("k-optimize", options).search(problem, Evaluator(problem))
    assert best.loss <= found.loss + 1e-9


@pytest.mark.parametrize("name", ["k-optimize", "greedy-cuts"])
@settings(max_examples=60, deadline=None)
@given(case=cases(metrics=METRICS))
def test_whatever_the_hierarchies_the_loss_is_that_of_the_cuts(name: str, case: Case) -> None:
    problem = case.problem()
    algorithm = ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        return
    try:
        found = algorithm.search(problem, Evaluator(problem))
    except Infeasible:
        assert problem.records < problem.least_size
        return
    assert found.acceptable
    if found.lower_bound is not None:
        assert math.isclose(found.lower_bound, found.loss, rel_tol=1e-9, abs_tol=1e-12)


class Clock(Evaluator):
    """Is out of time after so many looks at the clock."""

    left = 0

    def check_time(self, done: int | None = None) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


def people(records: int = 400) -> pd.DataFrame:
    lots = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": lots.binomial(30, 0.5, records),
            "land": lots.choice(list("abcdefg"), records),
            "sex": lots.choice(["f", "m", None], records, p=[0.45, 0.45, 0.1]),
        }
    )


def policy(**changes: Any) -> dict[str, Any]:
    names = ("age", "land", "sex")
    return {
        "columns": {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in names},
        "models": [{"k-anonymity": {"k": 5}}],
        "suppression_limit": "100%",
        "metric": "discernibility",
        "algorithm": "k-optimize",
    } | changes


def problem_with(table: pd.DataFrame, wish: dict[str, Any]) -> Problem:
    from shoal.engines import ENGINES
    from shoal.policy import Policy
    from shoal.problem import counted, problem_of

    engine = ENGINES.create("duckdb")
    loaded = Policy.load(wish)
    return problem_of(loaded, *counted(engine.open(table), loaded, engine))


@pytest.mark.parametrize("name", ["k-optimize", "greedy-cuts"])
def test_with_more_time_the_loss_never_grows(name: str) -> None:
    """Also within the first descent, of which what is at hand is returned."""
    problem = problem_with(people(), policy(suppression_limit=0))
    losses = []
    for looks in [*range(60), 100, 200, 400, 800]:
        clock = Clock(problem)
        clock.left = looks
        found = ALGORITHMS.create(name).search(problem, clock)
        assert found.acceptable
        losses.append(found.loss)
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == problem.records**2
    assert losses[3] < losses[1] < losses[0]
    assert losses[-1] < losses[3]


def test_out_of_time_the_best_comes_with_a_bound_that_grows() -> None:
    problem = problem_with(people(), policy())
    truth = ALGORITHMS.create("k-optimize").search(problem, Evaluator(problem))
    assert truth.proven is Guarantee.LEAST_LOSS
    bounds = []
    for looks in (0, 5, 200, 2000, 4000):
        clock = Clock(problem)
        clock.left = looks
        found = ALGORITHMS.create("k-optimize").search(problem, clock)
        assert found.acceptable
        assert found.lower_bound is not None
        assert found.lower_bound <= truth.loss <= found.loss
        assert (found.proven is Guarantee.LEAST_LOSS) == (found.lower_bound == found.loss)
        bounds.append(found.lower_bound)
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


ODD = (  # values that look like labels of others
    ("a", "b", "c", "missing", None),
    ("a", "b", "{a, b}", "*", None),
    ("a", "b", "c", "[a-b]", "b or missing", None),
    ("a", "1-2", "a to 1", "2", "missing"),  # [a to 1-2] of two kinds
)


def of_released(sizes: Any, k: int) -> float:
    """What classes of such sizes cost (DM)."""
    return float(sum(size * (sizes.sum() if size < k else size) for size in sizes))


def looks(problem: Problem, ground: Ground, cuts: Any) -> pd.Series:
    """The records of each look of a set of cuts."""
    recoding = ground.recoding(problem, cuts)
    assert recoding.regions is not None
    shown: dict[str, Any] = {}
    for about, hierarchy, groups in zip(
        recoding.about, problem.hierarchies, recoding.regions.groups, strict=True
    ):
        values = [None if c == hierarchy.null else text for c, text in enumerate(hierarchy.labels[0])]
        for name, labels in (about.labels or {hierarchy.name: values}).items():
            shown[name] = [labels[group] for group in groups[recoding.regions.classes]]
    table = pd.DataFrame(shown, dtype=object).assign(records=recoding.regions.sizes)
    return table.groupby(list(shown), dropna=False)["records"].sum()


@pytest.mark.parametrize("odd", ODD, ids=str)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_looks_like_another_label_is_told_apart_and_proven(odd: Any, data: st.DataObject) -> None:
    wish = policy(models=[{"k-anonymity": {"k": data.draw(st.integers(2, 3))}}])
    wish["suppression_limit"] = data.draw(st.sampled_from([0, "100%"]))
    texts = data.draw(st.permutations([value for value in odd if value is not None]))
    rule = data.draw(st.sampled_from(["flat", {"order": texts, "sizes": [len(texts)]}]))
    wish["columns"] = {
        "a": {"role": "quasi-identifier", "hierarchy": rule},
        "b": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    many = [data.draw(st.integers(0, 4)) for _ in odd]
    values = [value for value, times in zip(odd, many, strict=True) for _ in range(times)] or ["a"] * 3
    other = data.draw(st.lists(st.sampled_from("xxxxy"), min_size=len(values), max_size=len(values)))
    table = pd.DataFrame({"a": [*values, "a", "a"], "b": [*other, "x", "x"]}, dtype=object)
    problem = problem_with(table, wish)
    ground = ground_of(problem)
    truth = math.inf
    for bits in range(2 ** len(ground)):
        cuts = (bits >> np.arange(len(ground))) & 1 == 1
        head = ground.head(cuts)
        cost = of_released(looks(problem, ground, cuts), ground.k)
        assert cost == head.cost
        if head.gone <= ground.limit:
            truth = min(truth, cost)
    release = shoal.anonymize(table, wish)
    found = release.evaluation
    assert found.proven is Guarantee.LEAST_LOSS
    assert found.loss == found.lower_bound == truth
    sizes = release.table.groupby(list(wish["columns"]), dropna=False).size()
    assert (sizes**2).sum() + found.suppressed * problem.records == truth


def test_nulls_and_the_text_missing_are_told_apart(tmp_path: Any) -> None:
    """As two classes the cuts below cost 26; had they looked alike they would have cost 44."""
    table = pd.DataFrame({"a": ["a", "b", "c", "c", *["missing"] * 3, *[None] * 3]})
    wish = policy(models=[{"k-anonymity": {"k": 2}}])
    wish["columns"] = {"a": {"role": "quasi-identifier", "hierarchy": "flat"}}
    release = shoal.anonymize(table, wish, output=tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv")["a"]
    assert written.value_counts().to_dict() == {"{a, b}": 2, "c": 2, '"missing"': 3, "missing": 3}
    assert release.loss == release.evaluation.lower_bound == 26
    assert pd.read_csv(release.codebook)[["label", "covers"]].to_numpy().tolist() == [
        ["{a, b}", "a; b"],
        ["c", "c"],
        ['"missing"', '"missing"'],
        ["missing", "missing"],
    ]
    shoal.apply(release.recipe, table, output=tmp_path / "again.csv")
    assert sorted(pd.read_csv(tmp_path / "again.csv")["a"]) == sorted(written)


def test_nothing_is_proven_of_a_release_that_loses_more_than_was_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_with(people(), policy())
    whole = Ground.recoding
    monkeypatch.setattr(Ground, "recoding", lambda self, p, cuts: whole(self, p, np.zeros_like(cuts)))
    found = ALGORITHMS.create("k-optimize").search(problem, Evaluator(problem))
    assert found.proven is Guarantee.ACCEPTABLE
    assert found.lower_bound is not None
    assert found.lower_bound < found.loss == problem.records**2


def test_a_release_tells_its_bound_and_is_verified(tmp_path: Any) -> None:
    release = shoal.anonymize(people(), policy(), output=tmp_path / "out.csv")
    told = release.to_dict()
    assert told["lower_bound"] == told["loss"]
    assert (told["proven"], told["verified"], told["levels"]) == ("least loss", True, None)
    assert shoal.verify(tmp_path / "out.csv", policy()).verified
    again = shoal.apply(release.recipe, people(), output=tmp_path / "again.csv")
    assert math.isclose(again.loss, release.loss)


def test_the_line_about_what_is_proven() -> None:
    from shoal.commands.releases import _within

    assert _within(10, 10, "k-optimize") == "least loss among cuts by order (k-optimize)"
    assert _within(10.32, 10, "k-optimize").startswith("within 3.2% of the least among cuts by order")
    assert _within(10, 0, "k-optimize").endswith("(k-optimize, not proven to be the least)")


@pytest.mark.parametrize("name", ["k-optimize", "greedy-cuts"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metric": "coverage"}, "its metrics are discernibility and classification"),
        ({"metric": "discernibility-star"}, "its metrics are discernibility and classification"),
        ({"same_level": [["age", "land"]]}, "a cut has no level"),
    ],
)
def test_what_cuts_cannot_honour_is_refused(name: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(CannotHonour, match=reason):
        shoal.anonymize(people(), policy(algorithm=name, **changes))


def test_options_below_0_are_refused() -> None:
    with pytest.raises(PolicyError, match="starts and seed must be at least 0, got -1"):
        shoal.anonymize(people(), policy(algorithm={"k-optimize": {"starts": -1}}))
