"""The classic searches (samarati, all-minimal, datafly) against naive ones and a published example."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import shoal
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS, pruning
from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Guarantee, Model, When
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.engines import ENGINES
from shoal.errors import CannotHonour, Infeasible, PolicyError, UnknownName
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import search
from shoal.workflow.session import session

Node = tuple[int, ...]


class Recorder(Evaluator):
    """An evaluator that remembers which nodes it was asked for, in order."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.asked: list[Node] = []

    def __call__(self, node: Node) -> Evaluation:
        self.asked.append(node)
        return super().__call__(node)


def asked(case: Case) -> dict[str, Any]:
    return case.asked()


def acceptable_nodes(case: Case) -> list[Node]:
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    return [n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **asked(case))]


def loss(case: Case, node: Node) -> float:
    return oracle.loss(case.metric, case.rows, case.hierarchies, node, **case.wishes())


def is_below(one: Node, other: Node) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def quasi(hierarchy: Any, **entries: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **entries}


@settings(max_examples=examples(300), deadline=None)
@given(case=cases(models=None))
def test_samarati_finds_the_best_node_of_the_least_height(case: Case) -> None:
    nodes = acceptable_nodes(case)
    assume(nodes)
    found = ALGORITHMS.create("samarati").search(case.problem(), Evaluator(case.problem()))
    least = min(map(sum, nodes))
    lowest = [node for node in nodes if sum(node) == least]
    assert found.height == least
    assert list(found.candidates) == lowest
    assert math.isclose(found.loss, min(loss(case, n) for n in lowest), rel_tol=1e-9, abs_tol=1e-9)
    assert found.proven is Guarantee.LEAST_HEIGHT
    assert found.work.nodes_compared == len(lowest)


@pytest.mark.parametrize(("weights", "node"), [([1.0, 2.0], (1, 0)), ([2.0, 1.0], (0, 1))])
def test_samarati_lets_the_metric_choose_at_the_least_height(weights: list[float], node: Node) -> None:
    rows = [(0, 0), (0, 1), (1, 0), (1, 1)]  # either column alone makes pairs of them
    trees = [{0: ["0", "*"], 1: ["1", "*"]}] * 2
    case = Case(rows, trees, [0] * 4, 2, 1, 0, "non-uniform-entropy", weights, [0, 0], [1, 1], [])
    found = search(case.problem(), ALGORITHMS.create("samarati"))[1]
    assert (found.node, found.candidates) == (node, ((0, 1), (1, 0)))


def stairs(columns: int, levels: int, records: int, **entries: Any) -> Case:
    """Columns whose values merge two by two on each level; every record is its own at the bottom."""
    rows = [(r,) * columns for r in range(records)]
    tree = {r: [str(r >> level) for level in range(levels)] for r in range(records)}
    high = [levels - 1] * columns
    case = Case(
        rows, [tree] * columns, [0] * records, 1, 1, 0, "height", [1.0] * columns, [0] * columns, high, []
    )
    return replace(case, **entries)


def test_samarati_bisects_the_heights() -> None:
    """Of one column with 9 levels the heights 4, 6, 5 are tested, 5 is the least; the top is known."""
    case = stairs(1, 9, 256, k=32)
    evaluate = Recorder(case.problem())
    found = ALGORITHMS.create("samarati").search(case.problem(), evaluate)
    assert found.node == (5,)
    assert list(dict.fromkeys(evaluate.asked)) == [(8,), (4,), (6,), (5,)]


def test_samarati_scans_where_columns_move_together() -> None:
    """The heights are 0, 2, 4, ...: bisection would stop at 3 and 5, which no node has."""
    case = stairs(2, 5, 16, k=4, same_level=[(0, 1)])
    evaluate = Recorder(case.problem())
    found = ALGORITHMS.create("samarati").search(case.problem(), evaluate)
    assert found.node == (2, 2)
    assert list(dict.fromkeys(evaluate.asked)) == [(4, 4), (0, 0), (1, 1), (2, 2)]


def test_the_first_acceptable_node_settles_a_height() -> None:
    """Height 2 of two columns with 5 levels: (0, 2) is acceptable for k = 4, (1, 1) and (2, 0) wait."""
    rows = [(r, 0) for r in range(16)]
    trees = [{r: [str(r >> level) for level in range(5)] for r in range(16)}, {0: list("abcde")}]
    case = Case(rows, trees, [0] * 16, 4, 1, 0, "height", [1.0] * 2, [0, 0], [4, 4], [])
    evaluate = Recorder(case.problem())
    found = ALGORITHMS.create("samarati").search(case.problem(), evaluate)
    assert found.node == (2, 0)
    order = list(dict.fromkeys(evaluate.asked))
    assert order[:4] == [
        (4, 4),
        (0, 4),
        (1, 3),
        (2, 2),
    ]  # the top, then height 4 up to the first that will do
    assert (3, 1) not in order


@settings(max_examples=examples(300), deadline=None)
@given(case=cases(models=None))
def test_all_minimal_lists_exactly_the_minimal_nodes(case: Case) -> None:
    nodes = acceptable_nodes(case)
    problem = case.problem()
    algorithm = ALGORITHMS.create("all-minimal")
    assume(nodes and not algorithm.refuses(problem))
    minimal = [node for node in nodes if not any(is_below(other, node) for other in nodes)]
    evaluate = Recorder(problem)
    found = algorithm.search(problem, evaluate)
    assert list(found.candidates) == minimal
    assert math.isclose(found.loss, min(loss(case, n) for n in nodes), rel_tol=1e-9, abs_tol=1e-9)
    assert found.work.nodes_compared == len(minimal)
    seen = set(evaluate.asked)
    above = {node for node in problem.lattice.nodes() if any(is_below(m, node) for m in minimal)}
    assert seen - {problem.lattice.top} == set(problem.lattice.nodes()) - above - {problem.lattice.top}
    assert found.work.nodes_tagged == len(above - seen)


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(models=None))
def test_all_minimal_refuses_what_ola_refuses_and_finds_what_it_finds(case: Case) -> None:
    problem = case.problem()
    assume(acceptable_nodes(case))
    ola, other = ALGORITHMS.create("ola"), ALGORITHMS.create("all-minimal")
    assert ola.refuses(problem) == other.refuses(problem)
    if not ola.refuses(problem):
        one, two = search(problem, ola)[1], search(problem, other)[1]
        assert (one.node, one.loss, one.candidates) == (two.node, two.loss, two.candidates)


def naive_steps(case: Case, node: Node) -> list[Node]:
    """Return the nodes that Datafly may go to next, in the order of the policy's columns."""
    groups = [[c] for c in range(len(node)) if not any(c in g for g in case.same_level)]
    groups = sorted([*groups, *map(list, case.same_level)])
    found: dict[int, list[Node]] = {}
    for group in groups:
        if node[group[0]] == min(case.high[c] for c in group):
            continue
        most = max(len({case.hierarchies[c][row[c]][node[c]] for row in case.rows}) for c in group)
        raised = tuple(level + (c in group) for c, level in enumerate(node))
        found.setdefault(most, []).append(raised)
    return found[max(found)] if found else []


def naive_path(case: Case, stop: str) -> list[Node] | None:
    """Walk up as the paper says; None where the top will not do."""
    path = [tuple(case.low)]
    while True:
        gone = oracle.suppressed(case.rows, case.hierarchies, path[-1], **asked(case))
        held = gone <= case.limit and gone < len(case.rows)
        if held and (stop == "limit" or gone <= max(case.k, case.l)):
            return path
        steps = naive_steps(case, path[-1])
        if not steps:
            return path if held else None
        path.append(steps[0])


@pytest.mark.parametrize("stop", ["limit", "k"])
@settings(max_examples=examples(300), deadline=None)
@given(case=cases(models=None))
def test_datafly_walks_the_path_of_a_naive_one(stop: str, case: Case) -> None:
    expected = naive_path(case, stop)
    algorithm = ALGORITHMS.create("datafly", {"stop": stop})
    evaluate = Recorder(case.problem())
    if expected is None:
        with pytest.raises(Infeasible):
            algorithm.search(case.problem(), evaluate)
        return
    found = algorithm.search(case.problem(), evaluate)
    assert evaluate.asked == expected
    assert found.node == expected[-1]
    assert found.candidates == (found.node,)
    assert found.work.nodes_compared == 1
    assert found.work.nodes_tagged == 0


@pytest.mark.parametrize("stop", ["limit", "k"])
@settings(max_examples=examples(200), deadline=None)
@given(case=cases(models=None), seed=st.integers(0, 9), data=st.data())
def test_datafly_climbs_a_chain_to_an_acceptable_node(
    stop: str, case: Case, seed: int, data: st.DataObject
) -> None:
    nodes = acceptable_nodes(case)
    assume(nodes)
    algorithm = ALGORITHMS.create("datafly", {"stop": stop, "ties": "random", "seed": seed})
    evaluate = Recorder(case.problem())
    found = algorithm.search(case.problem(), evaluate)
    assert evaluate.asked[0] == tuple(case.low)
    for before, after in zip(evaluate.asked, evaluate.asked[1:], strict=False):
        assert after in naive_steps(case, before)  # one step on one axis, one of those with the most values
    assert found.node in nodes
    assert found.proven is Guarantee.ACCEPTABLE
    least = min(loss(case, node) for node in nodes)
    assert found.loss >= least or math.isclose(found.loss, least, rel_tol=1e-9, abs_tol=1e-9)
    order = data.draw(st.permutations(range(len(case.rows))))
    again = algorithm.search(case.problem(order), Evaluator(case.problem(order)))
    assert again == algorithm.search(case.problem(), Evaluator(case.problem()))


def test_random_ties_follow_the_seed_and_the_first_is_the_policys_order() -> None:
    case = stairs(3, 4, 8, k=2)

    def path(**options: Any) -> tuple[Node, ...]:
        evaluate = Recorder(case.problem())
        ALGORITHMS.create("datafly", options).search(case.problem(), evaluate)
        return tuple(evaluate.asked)

    assert path() == ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1))
    paths = [path(ties="random", seed=seed) for seed in range(20)]
    assert paths == [path(ties="random", seed=seed) for seed in range(20)]
    assert len(set(paths)) == 6  # the three columns in every order
    assert {path(seed=seed) for seed in range(5)} == {path()}


def test_values_that_only_the_hierarchy_has_do_not_count(tmp_path: Any) -> None:
    """Column b lists five values and has two; a has three: a is raised."""
    (tmp_path / "b.csv").write_text("".join(f"{v};*\n" for v in "vwxyz"), encoding="utf-8")
    data = pa.table({"a": list("pqrpqr"), "b": list("vvwwvw")})
    policy = {
        "columns": {"a": quasi("flat"), "b": quasi({"csv": str(tmp_path / "b.csv")})},
        "models": [{"k-anonymity": {"k": 2}}],
        "algorithm": "datafly",
    }
    assert shoal.anonymize(data, policy).levels == {"a": 1, "b": 0}


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"stop": "never"},
            PolicyError,
            "Option stop of datafly must be 'limit' or 'k', got 'never'.",
        ),
        ({"ties": "last"}, PolicyError, "Option ties of datafly must be 'first' or 'random'"),
        ({"stopp": "k"}, UnknownName, "Unknown option of datafly 'stopp'. Did you mean 'stop'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        ALGORITHMS.create("datafly", options)
    assert text in str(caught.value)


# The published example: twelve records of race, birth date, sex and ZIP; k = 2. (It writes years with two
# digits, which shoal refuses.)
TWELVE = [
    ("black", "9/20/1965", "male", "02141"), ("black", "2/14/1965", "male", "02141"),
    ("black", "10/23/1965", "female", "02138"), ("black", "8/24/1965", "female", "02138"),
    ("black", "11/7/1964", "female", "02138"), ("black", "12/1/1964", "female", "02138"),
    ("white", "10/23/1964", "male", "02138"), ("white", "3/15/1965", "female", "02139"),
    ("white", "8/13/1964", "male", "02139"), ("white", "5/5/1964", "male", "02139"),
    ("white", "2/13/1967", "male", "02138"), ("white", "3/21/1967", "male", "02138"),
]  # fmt: skip
NAMES = ("race", "birth date", "sex", "ZIP")


def twelve(**entries: Any) -> dict[str, Any]:
    return {
        "columns": {
            "race": quasi("flat"),
            "birth date": quasi({"dates": ["year"], "format": "%m/%d/%Y"}),
            "sex": quasi("flat"),
            "ZIP": quasi({"prefix": [4, 3, 2, 1]}),
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "algorithm": {"datafly": {"stop": "k"}},
        **entries,
    }


def columns(rows: list[tuple[str, ...]]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(NAMES)})


@pytest.mark.parametrize("entries", [{}, {"suppression_limit": 2}, {"suppression_limit": "20%"}])
def test_the_published_example_of_datafly(entries: dict[str, Any]) -> None:
    release = shoal.anonymize(columns(TWELVE), twelve(**entries))
    assert release.levels == {"race": 0, "birth date": 1, "sex": 0, "ZIP": 0}
    assert (release.records, release.suppressed) == (12, 2)
    assert release.evaluation.proven is Guarantee.ACCEPTABLE
    stay = [row for number, row in enumerate(TWELVE, 1) if number not in (7, 8)]
    expected = Counter((race, day[-4:], sex, code) for race, day, sex, code in stay)
    assert Counter(tuple(row.values()) for row in release.table.to_pylist()) == expected


def test_a_limit_of_zero_in_the_policy_is_zero() -> None:
    release = shoal.anonymize(columns(TWELVE), twelve(suppression_limit=0))
    assert (release.suppressed, release.table.num_rows) == (0, 12)
    assert release.verification.smallest_class >= 2


def test_a_search_that_stops_at_the_limit_brings_none_along() -> None:
    release = shoal.anonymize(columns(TWELVE), twelve(algorithm="datafly"))
    assert release.suppressed == 0


def limit_of(policy: Policy | dict[str, Any]) -> int:
    engine = ENGINES.create("duckdb")
    loaded = Policy.load(policy)
    return problem_of(loaded, *counted(session(columns(TWELVE), engine).table, loaded)).limit


def test_the_limit_that_a_search_brings_along_yields_to_the_policys(tmp_path: Any) -> None:
    bare = Policy.load(twelve())
    assert limit_of(bare) == 2
    assert limit_of(bare.with_(metric="height")) == 2
    assert limit_of(bare.with_(suppression_limit=0)) == 0
    assert limit_of(bare.with_(suppression_limit=0).with_(metric="height")) == 0
    assert limit_of(bare.with_(suppression_limit=0).with_files({})) == 0
    assert limit_of(bare.with_(algorithm="ola")) == 0
    assert limit_of(bare.with_(algorithm="auto")) == 0
    for line, limit in (("", 2), ("suppression_limit: 0\n", 0), ("suppression_limit: 1\n", 1)):
        path = tmp_path / "policy.yaml"
        path.write_text(bare.to_yaml() + line, encoding="utf-8")
        assert limit_of(Policy.load(path)) == limit


def test_the_limit_that_a_search_brings_along_is_never_above_the_records() -> None:
    policy = twelve(models=[{"k-anonymity": {"k": 50}}])
    assert limit_of(policy) == 12
    with pytest.raises(Infeasible, match="12 records and every class needs 50"):
        shoal.anonymize(columns(TWELVE), policy)


def test_a_limit_of_zero_is_written_down(tmp_path: Any) -> None:
    """A recipe, or a policy written as YAML, must not let go of a zero that the search would replace."""
    policy = Policy.load(twelve(suppression_limit=0))
    path = tmp_path / "policy.yaml"
    path.write_text(policy.to_yaml(), encoding="utf-8")
    assert limit_of(Policy.load(path)) == 0
    release = shoal.anonymize(columns(TWELVE), policy, output=tmp_path / "release.csv")
    assert release.recipe is not None
    with pytest.raises(Infeasible, match="the limit is 0"):
        shoal.apply(release.recipe, columns([*TWELVE, ("white", "1/1/1950", "female", "99999")]))


def test_a_written_release_keeps_what_the_example_keeps(tmp_path: Any) -> None:
    """The recipe of a policy without a limit suppresses again what the first release did."""
    release = shoal.anonymize(columns(TWELVE), twelve(), output=tmp_path / "release.csv")
    assert release.recipe is not None
    assert shoal.apply(release.recipe, columns(TWELVE)).suppressed == release.suppressed == 2


@pytest.mark.parametrize("name", ["samarati", "all-minimal", "datafly"])
def test_nothing_acceptable_is_infeasible_with_the_nearest_miss(name: str) -> None:
    case = stairs(2, 3, 8, k=5)  # at the top the classes have four records
    with pytest.raises(Infeasible) as caught:
        search(case.problem(), ALGORITHMS.create(name))
    assert caught.value.nearest == {"k": 4}


@dataclass(frozen=True)
class Even(Model):
    """Refuse classes of an odd number of records; merged with an odd class, an even one fails."""

    monotone: ClassVar[When] = When.NEVER

    def violations(self, classes: Classes) -> BoolArray:
        return classes.sizes % 2 == 1


@pytest.mark.parametrize("name", ["samarati", "all-minimal"])
def test_a_refusal_names_an_algorithm_that_can(name: str) -> None:
    problem = replace(stairs(2, 3, 8).problem(), models=(Even(),))
    with pytest.raises(CannotHonour) as caught:
        search(problem, ALGORITHMS.create(name))
    assert str(caught.value) == (
        f"Algorithm '{name}' cannot honour this policy: a privacy model is not monotone here. "
        "Use 'contour' or 'auto'."
    )
    able, found = search(problem)
    assert (able, found.proven) == ("contour", Guarantee.LEAST_LOSS)
    assert found.loss == search(problem, ALGORITHMS.create("exhaustive"))[1].loss


def test_datafly_needs_no_monotone_model() -> None:
    problem = replace(stairs(2, 3, 8).problem(), models=(Even(),))
    assert search(problem, ALGORITHMS.create("datafly"))[1].node == (1, 1)


def test_all_minimal_refuses_a_metric_that_is_not_monotone_and_samarati_does_not() -> None:
    problem = stairs(2, 3, 8, k=2, limit=1, metric="discernibility").problem()
    with pytest.raises(CannotHonour, match=r"the metric is not monotone here. Use 'contour' or 'auto'"):
        search(problem, ALGORITHMS.create("all-minimal"))
    assert search(problem, ALGORITHMS.create("samarati"))[1].height == 2


@pytest.mark.parametrize("name", ["samarati", "all-minimal", "ola", "incognito"])
def test_a_lattice_too_large_to_hold_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "MAX_STORED_NODES", 8)
    with pytest.raises(CannotHonour, match=r"the lattice has 9 nodes, more than can be .* Use 'contour'"):
        search(stairs(2, 3, 8).problem(), ALGORITHMS.create(name))
