"""The composite metric: how it is written, its range, and what a search proves of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import adult
import oracle
import shoal
from adult import needs_adult
from cpu_time import fastest
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS, projection
from shoal.cli.app import app
from shoal.cli.parsing import read_plugin, read_plugins
from shoal.core.contracts import Guarantee, When
from shoal.core.evaluator import Evaluator
from shoal.errors import CannotHonour, PolicyError, UnknownName
from shoal.metrics import METRICS
from shoal.metrics.height import Height
from shoal.policy.policy import Policy, plugin_text
from shoal.workflow.search import search

TWO = [{"precision": 1}, {"discernibility": 2}]


def composite(*parts: Any) -> Any:
    return METRICS.create("composite", {"parts": list(parts)})


def table() -> pd.DataFrame:
    ages = [20, 21, 23, 25, 28, 31, 34, 36, 47, 47, 48, 49, 52, 55, 58, 80]
    return pd.DataFrame({"age": ages, "sex": list("fm" * 8)})


def policy(**changes: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": 2, **changes}


@pytest.mark.parametrize(
    ("parts", "monotone", "separable", "by_size", "by_level"),
    [
        (["precision", "non-uniform-entropy"], When.ALWAYS, When.ALWAYS, False, True),
        (["precision", "coverage"], When.WITHOUT_SUPPRESSION, When.WITHOUT_SUPPRESSION, False, True),
        (["uniform-entropy", "discernibility-star"], When.ALWAYS, When.NEVER, False, False),
        (["class-size", "discernibility"], When.WITHOUT_SUPPRESSION, When.NEVER, True, False),
        ([{"coverage": {"aggregate": "geometric"}}], When.WITHOUT_SUPPRESSION, When.NEVER, False, False),
    ],
)
def test_promises_are_those_of_the_weakest_part(
    parts: list[Any], monotone: When, separable: When, by_size: bool, by_level: bool
) -> None:
    metric = composite(*parts)
    assert (metric.monotone, metric.separable) == (monotone, separable)
    assert (metric.by_size, metric.by_level) == (by_size, by_level)


def test_a_part_that_is_never_monotone_leaves_nothing_to_prune(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Height, "monotone", When.NEVER)
    problem = adult_like(metric={"composite": {"parts": ["height", "precision"]}})
    with pytest.raises(CannotHonour, match=r"the metric has no bound.*Use 'exhaustive'"):
        search(problem, ALGORITHMS.create("contour"))
    name, result = search(problem)
    assert (name, result.proven) == ("exhaustive", Guarantee.LEAST_LOSS)


def adult_like(**changes: Any) -> Any:
    from shoal.workflow.problem import counted, problem_of
    from shoal.workflow.session import session

    loaded = Policy.load(policy(**changes))
    with session(table(), "auto", None, None) as s:
        return problem_of(loaded, *counted(s.table, loaded))


def test_the_range_is_that_of_the_levels_that_the_policy_allows() -> None:
    metric = {"composite": {"parts": ["height"]}}
    free = shoal.anonymize(table(), policy(metric=metric), node={"age": 3, "sex": 1})
    assert free.loss == pytest.approx(4 / 5)
    narrow = policy(metric=metric)
    narrow["columns"]["age"] |= {"min_level": 2, "max_level": 3}
    assert shoal.anonymize(table(), narrow, node={"age": 3, "sex": 0}).loss == pytest.approx(1 / 2)
    one_level = policy(metric=metric, suppression_limit=10)
    for column in one_level["columns"].values():
        column |= {"min_level": 1, "max_level": 1}
    assert shoal.anonymize(table(), one_level).loss == 0


def test_a_loss_means_the_same_for_every_k_and_algorithm() -> None:
    rows = shoal.compare(
        table(), policy(metric={"composite": {"parts": TWO}}), algorithms=["contour", "datafly"], k=[2, 3, 8]
    ).rows
    for row in rows:
        assert row.losses is not None
        bottom = sum(size**2 for size in table().value_counts())
        scaled = (row.losses["discernibility"] - bottom) / (256 - bottom)
        assert row.loss == pytest.approx((row.losses["precision"] + 2 * scaled) / 3)


@pytest.mark.parametrize(
    "text",
    [
        "composite:parts=[{precision: 1}, {discernibility: 2}]",
        'composite:parts=[{"precision": 1},{"discernibility": 2}]',
        "composite:parts=[precision, {discernibility: {weight: 2}}]",
    ],
)
def test_the_command_line_reads_parts_in_brackets(text: str) -> None:
    (name, options) = next(iter(read_plugin(text).items()))  # type: ignore[union-attr]
    read = METRICS.create(name, options)
    assert [(type(p.metric), p.weight) for p in read.members] == [  # type: ignore[attr-defined]
        (type(p.metric), p.weight) for p in composite(*TWO).members
    ]
    assert read_plugins([f"height,{text},coverage:aggregate=geometric"]) == [
        "height", read_plugin(text), {"coverage": {"aggregate": "geometric"}},
    ]  # fmt: skip
    assert read_plugin(plugin_text({name: options})) == {name: options}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "needs parts"),
        ("precision", "must be a list of metrics and weights"),
        ([5], "must be a list of metrics and weights"),
        ([{"precision": 0}], "weight of precision in composite must be a number above 0, got 0"),
        ([{"precision": -1}], "above 0"),
        ([{"precision": True}], "above 0"),
        ([{"precision": "2"}], "above 0"),
        ([{"precision": float("inf")}], "above 0"),
        ([{"precision": 1e308}, {"height": 1e308}], "too large"),
        ([{"precision": 1, "height": 2}], "Write each metric as a part of its own"),
        ([{}], "got none"),
        ([{"composite": {"parts": TWO}}], "cannot be composite"),
        ([{"precision": {"range": [1, 0]}}], "two numbers, the smaller one first"),
        ([{"precision": {"range": [0, 1, 2]}}], "two numbers"),
        ([{"precision": {"range": [0, float("nan")]}}], "two numbers"),
        ([{"coverage": {"aggregate": "median"}}], "Option aggregate of coverage must be"),
    ],
)
def test_parts_that_cannot_be_read_are_refused(parts: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Policy.load(policy(metric={"composite": {"parts": parts}}))


@pytest.mark.parametrize(
    ("part", "meant"), [({"precison": 1}, "precision"), ({"coverage": {"agregate": "mean"}}, "aggregate")]
)
def test_a_misspelt_part_or_option_is_named(part: Any, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean '{meant}'"):
        composite(part)


def test_the_command_releases_by_a_composite_and_writes_nothing_for_a_wrong_one(tmp_path: Path) -> None:
    data, rules, output = tmp_path / "data.csv", tmp_path / "policy.json", tmp_path / "r.csv"
    table().to_csv(data, index=False)
    rules.write_text(json.dumps(policy()), encoding="utf-8")
    command = ["anonymize", str(data), "--policy", str(rules), "--output", str(output), "--json", "--report"]
    before = set(tmp_path.iterdir())
    for wrong in ("composite", "composite:parts=[{precision: 0}]", "composite:parts=[{precision: 1}"):
        result = CliRunner().invoke(app, [*command, "--metric", wrong])
        assert result.exit_code == 2
        assert "composite" in json.loads(result.stdout)["message"]
        assert set(tmp_path.iterdir()) == before
    text = "composite:parts=[{precision: 1}, {discernibility: 2}]"
    result = CliRunner().invoke(app, [*command, "--metric", text])
    released = json.loads(result.stdout)
    assert (released["metric"], released["proven"]) == ("composite", "least loss")
    assert released["losses"][plugin_text(read_plugin(text))] == released["loss"]
    assert released["losses"]["uniform-entropy"] > 0
    report = Path(released["report"]).read_text(encoding="utf-8")
    assert "discernibility" in report


def test_a_profile_tabulates_a_composite_that_is_separable(tmp_path: Path) -> None:
    metric = {"composite": {"parts": [{"precision": 1}, {"uniform-entropy": 1}]}}
    asked = policy(metric=metric)
    profile = shoal.profile(table(), asked)
    exact = profile.negotiate(k=2, suppression_limit=2, prefer="loss").exact
    release = shoal.anonymize(table(), asked)
    assert exact is not None
    assert exact.loss == pytest.approx(release.loss)
    assert shoal.profile(table(), policy(metric={"composite": {"parts": TWO}})).losses.keys() == {
        "coverage", "height", "non-uniform-entropy", "precision", "uniform-entropy",
    }  # fmt: skip


@pytest.mark.parametrize("metric", ["composite-by-column", "composite-by-size", "composite-of-both"])
@pytest.mark.parametrize("name", ["contour", "exhaustive"])
@settings(max_examples=examples(600), deadline=None)
@given(case=cases(models=None), k=st.sampled_from([2, 3, 4]))
def test_a_walk_finds_the_least_composite(name: str, metric: str, case: Case, k: int) -> None:
    """Class sizes and what is known of each node are added in compiled code."""
    case = replace(case, l=1, k=k, metric=metric, low=[0] * len(case.low), same_level=[])
    case = replace(case, high=oracle.heights(case.hierarchies))
    bounds = (case.limit, case.low, case.high, case.same_level)
    least = oracle.least_loss(case.metric, case.rows, case.hierarchies, *bounds, **case.wishes())
    assume(least is not None)
    problem = case.problem()
    assert problem.sizes_decide
    _, result = search(problem, ALGORITHMS.create(name))
    assert math.isclose(result.loss, least, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("name", ["auto", "ola", "incognito", "exhaustive"])
def test_a_range_above_what_is_lost_makes_losses_negative(name: str) -> None:
    metric = {"composite": {"parts": [{"height": {"range": [10, 20]}}]}}
    release = shoal.anonymize(table(), policy(metric=metric, algorithm=name))
    height = sum(release.start.values())  # type: ignore[union-attr]
    assert release.loss == pytest.approx((height - 10) / 10)
    assert height == shoal.anonymize(table(), policy(metric="height")).loss
    (row,) = shoal.compare(table(), policy(metric=metric), algorithms=[name]).rows
    assert row.relative_loss == 1
    (worse,) = shoal.compare(table(), policy(metric=metric), algorithms=["mondrian"]).rows
    assert worse.relative_loss is None


# The least loss at k=5 and 5% and its suppressed records, as incognito finds them node by node; and how many
# nodes contour may evaluate, of 12,960.
ADULT: list[tuple[list[Any], float, int, int]] = [
    ([{"precision": 1}, {"non-uniform-entropy": 2}], 0.46166788107840406, 1422, 1000),
    ([{"coverage": 1}, {"precision": 1}], 0.316104028107128, 1374, 500),
    (TWO, 0.1575234780224128, 1322, 6000),
    ([{"discernibility": 1}, {"class-size": 2}], 0.004191640560259187, 105, 1500),
]


@needs_adult
@pytest.mark.parametrize(("parts", "loss", "suppressed", "most"), ADULT)
def test_contour_proves_the_least_composite_on_adult(
    parts: list[Any], loss: float, suppressed: int, most: int
) -> None:
    problem = adult.problem(suppression_limit="5%", metric={"composite": {"parts": parts}})
    _, result = search(problem, ALGORITHMS.create("contour"))
    assert result.proven is Guarantee.LEAST_LOSS
    assert result.loss == pytest.approx(loss, rel=1e-12)
    assert result.suppressed == suppressed
    assert result.work.nodes_evaluated < most


@needs_adult
@pytest.mark.parametrize(
    "parts",
    [
        [{"precision": 1}, {"non-uniform-entropy": 2}],
        [{"uniform-entropy": 1}, {"height": 1}],
        [{"coverage": 1}, {"precision": 1}],
    ],
)
def test_a_composite_of_two_separable_parts_is_proven_on_adult_in_little_time(parts: list[Any]) -> None:
    """In CPU time, once kernels are loaded and records are counted."""

    def prove() -> None:
        problem = adult.problem(suppression_limit="5%", metric={"composite": {"parts": parts}})
        assert search(problem, ALGORITHMS.create("contour"))[1].proven is Guarantee.LEAST_LOSS

    prove()
    assert fastest(prove, 0.15) < 0.15


@settings(max_examples=examples(300), deadline=None)
@given(case=cases(models=None), coverage=st.booleans(), stated=st.booleans())
def test_the_bound_of_a_composite_of_separable_parts_holds(case: Case, coverage: bool, stated: bool) -> None:
    """Parts are scaled over all columns, not over those of a group, and weights count as in the whole."""
    case = replace(case, l=1, same_level=[])
    heights: Any = {"height": {"range": [1, 3], "weight": 2}} if stated else {"height": 2}
    metric = composite("coverage" if coverage else "precision", heights, {"uniform-entropy": 0.5})
    problem = replace(case.problem(), metric=metric)
    nodes = [Evaluator(problem)(node) for node in problem.lattice.nodes()]
    losses = [found.loss for found in nodes if found.acceptable]
    assume(losses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "_SIZES", (2, 4))
        bound = projection.projected_bound(Evaluator(problem), ALGORITHMS.create("contour"), 60)
    if bound is not None:
        assert bound <= min(losses) + 1e-9
        assert bound >= problem.loss_of(problem.lattice.bottom) - 1e-9


@needs_adult
def test_a_composite_of_separable_parts_that_runs_out_of_time_has_a_bound() -> None:
    parts = [{"precision": 1}, {"non-uniform-entropy": 2}]
    problem = adult.problem(suppression_limit="5%", metric={"composite": {"parts": parts}})
    found = search(problem, ALGORITHMS.create("exhaustive"), seconds=0, fallback=True)[1]
    assert found.lower_bound is not None
    assert 0.1 < found.lower_bound <= 0.46166788107840406 <= found.loss
