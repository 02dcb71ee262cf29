"""Searches against the naive oracle."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from example_counts import examples
from problems import NODE_SEARCHES, Case, cases, counts_of, edges, larger, pairs
from shoal.algorithms import ALGORITHMS
from shoal.core import compilation, evaluator
from shoal.core.contracts import Guarantee
from shoal.core.evaluator import Evaluator
from shoal.core.lattice import walk
from shoal.core.lattice.lattice import Tags
from shoal.errors import CannotHonour, Infeasible, OutOfTime
from shoal.workflow.search import search


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
    wishes = case.asked()
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
    try:
        _, found = search(problem, algorithm)
    except Infeasible:
        # A search that promises little may pass by the nodes that are acceptable, and says so.
        assert algorithm.guarantee is Guarantee.ACCEPTABLE
        assert not problem.monotone_models
        return
    least_loss = math.isclose(found.loss, expected, rel_tol=1e-9, abs_tol=1e-9)
    assert least_loss or (algorithm.guarantee is not Guarantee.LEAST_LOSS and found.loss > expected)
    if algorithm.guarantee is Guarantee.LEAST_HEIGHT:
        assert found.height == min(map(sum, accepted(case)))
    assert found.proven is algorithm.guarantee
    assert found.node in problem.lattice
    wishes = case.asked()
    gone = oracle.suppressed(case.rows, case.hierarchies, found.node, **wishes)
    assert found.suppressed == gone <= case.limit


@pytest.mark.parametrize("name", NODE_SEARCHES)
@settings(max_examples=examples(250), deadline=None)
@given(case=cases())
def test_what_is_found_matches_the_oracle(name: str, case: Case) -> None:
    check(case, name)


@settings(max_examples=examples(250), deadline=None)
@given(case=edges())
def test_contour_matches_the_oracle_where_merging_spoils_classes(case: Case) -> None:
    check(case, "contour")


@settings(max_examples=examples(400), deadline=None)
@given(case=pairs())
def test_contour_matches_the_oracle_for_pairs_of_models(case: Case) -> None:
    check(case, "contour")


@settings(max_examples=examples(250), deadline=None)
@given(case=cases() | edges())
def test_contour_node_by_node_matches_the_oracle(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "MAX_STORED_NODES", 0)
        check(case, "contour")


def best_by_definition(case: Case) -> tuple[int, ...] | None:
    """Return the acceptable node of least loss; ties: fewer suppressed, then lower, then lexicographic."""
    wishes = case.wishes()
    losses = {n: oracle.loss(case.metric, case.rows, case.hierarchies, n, **wishes) for n in accepted(case)}
    if not losses:
        return None
    least = min(losses.values())
    tied = [n for n, loss in losses.items() if math.isclose(loss, least, rel_tol=1e-12)]
    gone = {n: oracle.suppressed(case.rows, case.hierarchies, n, **case.asked()) for n in tied}
    return min(tied, key=lambda node: (gone[node], sum(node), node))


@pytest.mark.parametrize("name", ["contour", "exhaustive"])
@settings(max_examples=examples(1000), deadline=None)
@given(case=cases(models=None))
def test_a_walk_chooses_the_best_node_by_definition(name: str, case: Case) -> None:
    case = replace(case, l=1)  # so that the sizes of classes determine what is acceptable
    expected = best_by_definition(case)
    evaluate = Evaluator(case.problem())
    if expected is None:
        with pytest.raises(Infeasible):
            ALGORITHMS.create(name).search(case.problem(), evaluate)
    else:
        assert ALGORITHMS.create(name).search(case.problem(), evaluate).node == expected
    assert (evaluate.nodes_evaluated == case.problem().lattice.size) or name == "contour"
    assert (evaluate.nodes_accepted == len(accepted(case))) or name == "contour"


@pytest.mark.parametrize("metric", ["discernibility", "non-uniform-entropy"])
@pytest.mark.parametrize("name", ["contour", "exhaustive"])
def test_a_column_of_one_level_and_many_values_is_walked(name: str, metric: str) -> None:
    """Its values tell classes apart though no level of it is chosen."""
    case = larger(7, metric)
    case = replace(case, l=1, low=[0] * len(case.low), high=[0, 0, *case.high[2:]], limit=30)
    rows = [(r % 5, r // 5 % 5, *row[2:]) for r, row in enumerate(case.rows[:60])]
    tree = {value: [str(value), "*"] for value in range(5)}
    case = replace(case, rows=rows, hierarchies=[tree, tree, *case.hierarchies[2:]], k=2)
    assert search(case.problem(), ALGORITHMS.create(name))[1].node == best_by_definition(case)


BY_SIZE = ("class-size", "composite-by-size", "composite-of-both", "discernibility", "discernibility-star")


def _between(case: Case, data: st.DataObject) -> tuple[tuple[int, ...], ...]:
    """Draw a node, one below it and one above it."""
    heights = oracle.heights(case.hierarchies)
    node = tuple(data.draw(st.integers(0, height)) for height in heights)
    low = tuple(data.draw(st.integers(0, level)) for level in node)
    top = tuple(data.draw(st.integers(level, height)) for level, height in zip(node, heights, strict=True))
    return low, node, top


@settings(max_examples=examples(400), deadline=None)
@given(case=cases(models=None, metrics=BY_SIZE), data=st.data())
def test_a_low_and_a_top_node_bound_the_loss_between(case: Case, data: st.DataObject) -> None:
    """The facts that let a walk skip a prefix, on nodes as the oracle counts them."""
    case = replace(case, l=1, low=[0] * len(case.low), high=oracle.heights(case.hierarchies), same_level=[])
    problem = case.problem()
    tree = walk.Walk(problem.counts, problem.hierarchies, problem.lattice)
    terms = problem.metric.size_terms(problem)
    penalty = tree.objective(problem.least_size, problem.most_suppressed, terms, None, skip=True).penalty
    low, node, top = _between(case, data)
    wishes = case.wishes()
    gone = [oracle.suppressed(case.rows, case.hierarchies, n, k=case.k) for n in (low, node, top)]
    assert gone[0] >= gone[1] >= gone[2]
    bound = oracle.loss(case.metric, case.rows, case.hierarchies, low, **(wishes | {"k": 1}))
    loss = oracle.loss(case.metric, case.rows, case.hierarchies, node, **wishes)
    if len(case.rows) >= case.k:
        least = bound + penalty * gone[2]
        assert loss >= least - 1e-12 * max(1, abs(least))


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(models=None))
def test_a_walk_that_pauses_at_every_step_and_needs_room_finds_the_same(case: Case) -> None:
    case = replace(case, l=1)
    assume(least(case) is not None)
    for name in ("contour", "exhaustive"):
        whole = search(case.problem(), ALGORITHMS.create(name))[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(walk, "_ROWS", 0)
            assert search(case.problem(), ALGORITHMS.create(name))[1] == whole


@settings(max_examples=examples(200), deadline=None)
@given(case=st.one_of(cases(models=None), cases()), data=st.data())
def test_a_search_with_numpy_returns_and_costs_the_same_as_a_compiled_one(
    case: Case, data: st.DataObject
) -> None:
    """Also if it goes on in compiled code after some steps."""
    assume(least(case) is not None)
    name = data.draw(st.sampled_from(["contour", "exhaustive", "ola"]))
    budget = data.draw(st.sampled_from([math.inf, 0, 3000, 900_000]))
    with pytest.MonkeyPatch.context() as patch, suppress(CannotHonour, Infeasible):
        compiled = search(case.problem(), ALGORITHMS.create(name))[1]
        patch.setattr(compilation, "_NUMPY_BUDGET", budget)
        patch.setattr(compilation.work, "loaded", False)
        patch.setattr(compilation.work, "numpy_rows", 0)
        patch.setattr(walk, "_NUMPY_STEPS", data.draw(st.sampled_from([1, 2, 200])))
        assert search(case.problem(), ALGORITHMS.create(name))[1] == compiled
        assert compilation.work.loaded == (budget < compilation.work.numpy_rows)


@pytest.mark.parametrize("metric", ["discernibility", "non-uniform-entropy"])
@pytest.mark.parametrize("name", ["contour", "exhaustive"])
def test_larger_searches_with_numpy_cost_the_same(
    name: str, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        problem = replace(larger(seed, metric), l=1).problem()
        monkeypatch.setattr(compilation.work, "loaded", True)
        compiled = search(problem, ALGORITHMS.create(name))[1]
        monkeypatch.setattr(compilation, "_NUMPY_BUDGET", math.inf)
        monkeypatch.setattr(compilation.work, "loaded", False)
        assert search(problem, ALGORITHMS.create(name))[1] == compiled
        assert not compilation.work.loaded


def test_a_walk_that_runs_out_of_time_returns_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(larger(3, "discernibility"), l=1).problem()
    monkeypatch.setattr(walk, "_ROWS", 0)
    monkeypatch.setattr(evaluator, "time", SimpleNamespace(monotonic=count().__next__))
    judge = Evaluator(problem, seconds=100)
    with pytest.raises(OutOfTime):
        judge.walk_all(skip=False)
    assert judge.best is not None
    assert judge.best.acceptable
    assert 0 < judge.nodes_evaluated < problem.lattice.size


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), data=st.data())
def test_another_row_order_gives_the_same_answer(case: Case, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.rows))))
    assume(least(case) is not None)
    for name in NODE_SEARCHES:
        algorithm = ALGORITHMS.create(name)
        proves = algorithm.guarantee is not Guarantee.ACCEPTABLE or case.problem().monotone_models
        if proves and not algorithm.refuses(case.problem()):
            one, other = search(case.problem(), algorithm)[1], search(case.problem(order), algorithm)[1]
            assert one == other


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(metrics=("non-uniform-entropy", "discernibility-star")))
def test_ola_lists_exactly_the_minimal_nodes(case: Case) -> None:
    assume(least(case) is not None and case.problem().monotone_models)
    every = accepted(case)
    minimal = {
        n for n in every if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in every)
    }
    _, found = search(case.problem(), ALGORITHMS.create("ola"))
    assert set(found.candidates) == minimal


def relaxed(case: Case, nearest: dict[str, Any]) -> Iterator[Case]:
    """The case with each relaxation of a model, where it is plain whose option it is."""
    own = [("k-anonymity", {"k": case.k}), ("distinct-l-diversity", {"l": case.l, "column": "l"})]
    own = own[: 1 + (case.l > 1)]
    models = [*own, *case.models]
    for key in nearest.keys() - {"suppression_limit", "max_level"}:
        name, _, option = key.rpartition(".")
        name, _, number = name.partition(" #")
        name, _, column = name.partition(" of ")
        having = [
            n
            for n, (model, options) in enumerate(models)
            if option in options
            and name in ("", model)
            and column in ("", options.get("column"), options.get("unit"))
            and number in ("", str(n + 1))
        ]
        if len(having) > 1 and name:  # one of them is about every column
            having = [n for n in having if not (models[n][1].get("column") or models[n][1].get("unit"))]
        assert len(having) == 1
        place = having[0] - len(own)
        if place < 0:
            yield replace(case, **{option: nearest[key]})
        else:
            model, options = case.models[place]
            changed = (model, options | {option: nearest[key]})
            yield replace(case, models=[*case.models[:place], changed, *case.models[place + 1 :]])


@settings(max_examples=examples(200), deadline=None)
@given(case=cases())
def test_the_nearest_miss_would_do(case: Case) -> None:
    """Every relaxation that an infeasible answer names makes the problem feasible."""
    assume(least(case) is None and len(case.rows) >= case.problem().least_size)
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    nearest = caught.value.nearest
    wishes = case.asked()
    top = case.problem().lattice.top
    gone = oracle.suppressed(case.rows, case.hierarchies, top, **wishes)
    told = f"{gone} of {len(case.rows)} records would have to be suppressed"
    assert (told in str(caught.value)) == (gone > case.limit or gone == len(case.rows))
    refused = f"all {case.problem().lattice.size} nodes are refused"
    several = case.problem().lattice.size > 1
    assert (refused in str(caught.value)) == (several and not case.problem().monotone_models)
    if "suppression_limit" in nearest:
        assert oracle.acceptable(case.rows, case.hierarchies, top, nearest["suppression_limit"], **wishes)
        assert nearest["suppression_limit"] > case.limit
    for weaker in relaxed(case, nearest):
        assert oracle.acceptable(case.rows, case.hierarchies, top, case.limit, **weaker.asked())
        for option in ("k", "l"):
            if getattr(weaker, option) != getattr(case, option):
                assert getattr(weaker, option) < getattr(case, option)
                stronger = wishes | {option: getattr(weaker, option) + 1}
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
    assert tags.tagged == 48


def test_a_search_that_runs_out_of_time_returns_its_best() -> None:
    rows = [(a % 5, a % 3) for a in range(30)]
    trees = [{v: [str(v), str(v // 2), "*"] for v in range(5)}, {v: [str(v), "*"] for v in range(3)}]
    case = Case(rows, trees, [0] * 30, 4, 1, 0, "height", [1.0] * 2, [0, 0], [2, 1], [])
    with pytest.raises(OutOfTime, match="seconds"):
        search(case.problem(), seconds=-1)
    evaluate = Evaluator(case.problem())
    assert evaluate((2, 1)).acceptable
    assert evaluate.best is not None


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_a_search_looks_at_the_clock_between_few_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sets of columns, nodes or groups there are: each loop can be ended."""
    rows = [tuple((a >> c) % 2 for c in range(12)) for a in range(0, 4096, 61)]
    trees = [{v: [str(v), "*"] for v in range(2)} for _ in range(12)]
    case = Case(rows, trees, [0] * len(rows), 40, 1, 0, "height", [1.0] * 12, [0] * 12, [1] * 12, [])
    problem, algorithm = case.problem(), ALGORITHMS.create(name)
    if algorithm.refuses(problem):
        pytest.skip("needs what this problem does not have")
    search(problem, algorithm)  # compiles
    calls = most = 0

    def look() -> float:
        nonlocal calls, most
        calls, most = 0, max(most, calls)
        return 0.0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    monkeypatch.setattr(evaluator, "time", SimpleNamespace(monotonic=look))
    sys.setprofile(called)
    try:
        search(case.problem(), algorithm, seconds=1)
    finally:
        sys.setprofile(None)
    look()
    assert most < 1500


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


def diverse(values: list[int], limit: int, **entries: Any) -> Case:
    """Records of one value with flat levels, and a sensitive column."""
    rows = [(place % 2,) for place in range(len(values))]
    flat = {0: ["0", "*"], 1: ["1", "*"]}
    case = Case(rows, [flat], [], 1, 1, limit, "height", [1.0], [0], [1], [], columns={"s": values})
    return replace(case, **entries)


@pytest.mark.parametrize(
    ("name", "options", "reached"),
    [
        ("distinct-l-diversity", {"l": 5}, "l=3"),
        ("p-sensitive", {"p": 5, "k": 6}, "p=3"),
        ("entropy-l-diversity", {"l": 5}, "l=2.8284"),
        ("recursive-cl-diversity", {"c": 3, "l": 5}, "l=3"),
    ],
)
@pytest.mark.parametrize("limit", [0, 3])
def test_an_l_above_the_number_of_values_says_the_largest(
    name: str, options: dict[str, Any], reached: str, limit: int
) -> None:
    case = diverse([0, 0, 0, 0, 1, 1, 2, 2], limit, models=[(name, options)])
    for algorithm in (None, ALGORITHMS.create("exhaustive")):
        with pytest.raises(Infeasible) as caught:
            search(case.problem(), algorithm)
        only = f"No recoding of this table satisfies {name}: one class of all records reaches {reached}."
        assert only in str(caught.value)
        assert f"Any one of these changes works: {reached} (now " in str(caught.value)
        assert "suppression limit of" not in str(caught.value)


@pytest.mark.parametrize(("high", "nearest"), [(1, {"k": 4}), (0, {})])
def test_a_k_above_the_records_names_one_that_would_do(high: int, nearest: dict[str, int]) -> None:
    """At the top all four are one class; where the top is out of reach, k = 4 would not do either."""
    case = diverse([0] * 4, 0, k=5, high=[high])
    with pytest.raises(Infeasible, match="4 records and every class needs 5") as caught:
        search(case.problem())
    assert caught.value.nearest == nearest
    units = replace(case, models=[("k-anonymity", {"k": 5, "unit": "u"})], units=[1, 2, 3, 3])
    with pytest.raises(Infeasible) as caught:
        search(units.problem())
    assert caught.value.nearest == {}


def test_a_constant_sensitive_column_has_one_value() -> None:
    case = diverse([7] * 8, 2, models=[("distinct-l-diversity", {"l": 2})])
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert caught.value.nearest == {}  # l = 1 asks for nothing
    assert str(caught.value).endswith(
        "No recoding of this table satisfies distinct-l-diversity: column 's' has one value. "
        "Leave out distinct-l-diversity, or apply it to a column with several values."
    )
    close = replace(case, models=[("t-closeness", {"t": 0.0})])
    assert search(close.problem())[1].node == (0,)


def test_an_l_above_the_records_says_the_largest_too() -> None:
    case = diverse([0, 0, 1, 1], 0, models=[("distinct-l-diversity", {"l": 5})])
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert "The table has 4 records and every class needs 5." in str(caught.value)
    assert "satisfies distinct-l-diversity: one class of all records reaches l=2." in str(caught.value)


def test_a_table_that_is_its_population_is_told() -> None:
    presence = ("delta-presence", {"maximum": 0.5, "population": "all.csv"})
    case = diverse([0] * 4, 0, models=[presence])
    case.population = list(case.rows)
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert str(caught.value).endswith(
        "No recoding of this table satisfies delta-presence: the table is the whole population. "
        "Leave out delta-presence, or give a population that holds more than the table."
    )


def test_two_models_of_one_name_are_told_apart() -> None:
    columns = {"s": [0, 1, 2, 0], "z": [0, 0, 1, 1]}

    def refusal(*models: tuple[str, dict[str, Any]]) -> Infeasible:
        case = diverse([0] * 4, 0, models=list(models), columns=columns)
        with pytest.raises(Infeasible) as caught:
            search(case.problem())
        return caught.value

    l = "distinct-l-diversity"
    found = refusal((l, {"l": 4, "column": "s"}), (l, {"l": 2, "column": "z"}))
    assert found.nearest == {f"{l} of s.l": 3}
    assert f"Any one of these changes works: {l} of s with l=3 (now 4)." in str(found)
    assert refusal((l, {"l": 4, "column": "s"}), (l, {"l": 1})).nearest == {f"{l} of s.l": 3}
    same = refusal((l, {"l": 4, "column": "s"}), (l, {"l": 2, "column": "s"}))
    assert same.nearest == {f"{l} of s #2.l": 3}  # the first is k-anonymity


def test_one_node_is_not_called_all_nodes() -> None:
    case = diverse([0] * 5, 1, models=[("sample-uniqueness", {"share": 0.0})], high=[0], k=2)
    case.rows = [(0,), (0,), (0,), (1,), (2,)]
    case.hierarchies = [{0: ["0"], 1: ["1"], 2: ["2"]}]
    with pytest.raises(Infeasible, match="No acceptable recoding: at these levels 2 of 5"):
        search(case.problem())


def test_what_a_model_about_the_whole_table_refuses_is_told_as_such() -> None:
    case = diverse([0] * 8, 0, models=[("average-risk", {"risk": 0.1})])
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert str(caught.value) == (
        "No acceptable recoding: at the highest levels what remains violates average-risk. "
        "Any one of these changes works: risk=0.125 (now 0.1)."
    )


def test_no_limit_is_named_that_would_not_do() -> None:
    """Without the two that fall short of k, five remain in one class: a risk of 0.2."""
    rows = [(0,)] * 5 + [(1,)] * 2
    trees = [{0: ["0"], 1: ["1"]}]
    case = Case(
        rows, trees, [], 3, 1, 0, "height", [1.0], [0], [0], [], models=[("average-risk", {"risk": 0.1})]
    )
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert caught.value.nearest == {}
    assert "2 of 7 records would have to be suppressed, and the limit is 0" in str(caught.value)
    easy = replace(case, models=[("average-risk", {"risk": 0.2})])
    with pytest.raises(Infeasible) as caught:
        search(easy.problem())
    assert caught.value.nearest == {"suppression_limit": 2}


def test_no_model_is_made_stronger_to_help_another() -> None:
    """With k = 4 the one unique record would go; that is not a weaker wish."""
    case = diverse([0] * 5, 1, models=[("sample-uniqueness", {"share": 0.0})], high=[0])
    case.rows = [(0,)] * 4 + [(1,)]
    with pytest.raises(Infeasible) as caught:
        search(case.problem())
    assert caught.value.nearest == {"share": 0.2, "max_level": {"c0": 1}}


def test_a_search_that_proves_nothing_does_not_say_that_nothing_is_acceptable() -> None:
    """datafly goes up past the acceptable node; merged, that class fails entropy 2-diversity."""
    values = [0, 1] * 5 + [0] * 4
    rows = [(0, place % 2) for place in range(10)] + [(1, 0)] * 2 + [(2, 0)] * 2
    trees = [{0: ["0", "a", "*"], 1: ["1", "b", "*"], 2: ["2", "b", "*"]}, {0: ["0", "*"], 1: ["1", "*"]}]
    case = Case(
        rows, trees, [], 3, 1, 4, "height", [1.0] * 2, [0, 0], [2, 1], [],
        models=[("entropy-l-diversity", {"l": 2})], columns={"s": values},
    )  # fmt: skip
    assert search(case.problem())[1].node == (0, 1)
    with pytest.raises(Infeasible, match=r"'datafly' found no .* others may find one: .* Use 'contour'"):
        search(case.problem(), ALGORITHMS.create("datafly"))


@pytest.mark.parametrize("name", ["ola", "samarati", "all-minimal", "incognito"])
def test_a_search_that_needs_a_monotone_model_names_one_that_does_not(name: str) -> None:
    case = diverse([0, 1] * 6, 2, models=[("entropy-l-diversity", {"l": 2})])
    with pytest.raises(CannotHonour, match=r"a privacy model is not monotone here. Use 'contour' or 'auto'"):
        search(case.problem(), ALGORITHMS.create(name))
    without = replace(case, limit=0)  # without suppression it is monotone
    assert search(without.problem(), ALGORITHMS.create(name))[1].acceptable


@pytest.mark.parametrize(
    "name", ["contour", "exhaustive", "datafly", "incognito", "ola", "samarati", "all-minimal"]
)
@pytest.mark.parametrize("metric", ["non-uniform-entropy", "precision", "discernibility"])
def test_more_columns_than_an_array_has_dimensions_are_searched_or_refused(name: str, metric: str) -> None:
    """All but two of 70 columns have one value and one level."""
    few = Case(
        [(n % 3, n % 4) for n in range(30)], [{n: [str(n), "*"] for n in range(4)}] * 2, [], 4, 1, 0, metric,
        [1.0] * 2, [0, 0], [1, 1], [],
    )  # fmt: skip
    many = replace(
        few,
        rows=[(*row, *[0] * 68) for row in few.rows],
        hierarchies=[*few.hierarchies, *[{0: ["0", "*"]}] * 68],
        weights=[1.0] * 70,
        low=[0] * 70,
        high=[1, 1, *[0] * 68],
    )
    expected = search(few.problem(), ALGORITHMS.create(name))[1].node
    assert expected is not None
    if name in ("incognito", "ola", "samarati", "all-minimal"):
        with pytest.raises(CannotHonour, match="70 quasi-identifiers, more than the 64 of a node array"):
            search(many.problem(), ALGORITHMS.create(name))
    else:
        assert search(many.problem(), ALGORITHMS.create(name))[1].node == (*expected, *[0] * 68)
