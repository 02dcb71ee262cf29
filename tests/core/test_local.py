"""Local recoding: every class against the naive definitions, and from the policy to the written release."""

from __future__ import annotations

import json
import math
import random as shuffling
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adult
import oracle
import shoal
from example_counts import examples
from problems import Case, combination_of, larger, starts
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.local.search import localized
from shoal.core.recoding.recoding import Recoding
from shoal.core.recoding.refine import recoding_of, refined
from shoal.errors import CannotHonour, OutOfTime, PolicyError
from shoal.workflow.search import search
from ticking import let_looks_take_time

pytestmark = pytest.mark.usefixtures("both_modes")

LABELS = st.sampled_from([1, 1, 2, 3])
Cell = tuple[int, frozenset[Any]]  # a level, and the values that are covered


def cells_of(case: Case, problem: Problem, recoding: Recoding) -> list[tuple[Cell, ...] | None]:
    """What each row is released as: a level and the covered values of each column; None: suppressed."""
    regions = recoding.regions
    assert regions is not None
    of = combination_of(case, problem)
    shown = []
    for chosen in regions.classes[of].tolist():
        if regions.suppressed[chosen]:
            shown.append(None)
            continue
        cells = []
        for column, groups in enumerate(recoding.column_groups):
            code = int(regions.groups[column][chosen])
            cover, tree = groups.cover(code), case.hierarchies[column]
            assert groups.levels is not None
            level = int(groups.levels[code])
            if level:
                labels = set(cover.get("labels", [cover.get("label")]))
                inside = {v for v in {row[column] for row in case.rows} if tree[v][level] in labels}
            else:
                inside = {int(value) for value in cover["values"]}
            cells.append((level, frozenset(inside)))
        shown.append(tuple(cells))
    return shown


def classes_of(cells: list[tuple[Cell, ...] | None]) -> dict[Any, list[int]]:
    found = defaultdict(list)
    for position, cell in enumerate(cells):
        if cell is not None:
            found[cell].append(position)
    return found


def coverage(case: Case, cells: list[tuple[Cell, ...] | None]) -> float:
    """The weighted coverage loss, record by record; a suppressed record has lost everything."""
    total = 0.0
    for cell in cells:
        for column, weight in enumerate(case.weights):
            values = len({row[column] for row in case.rows})
            covered = values if cell is None else len(cell[column][1])
            total += weight * (1.0 if cell is None else (covered - 1) / max(1, values - 1))
    return total


def at_node(problem: Problem, node: tuple[int, ...]) -> tuple[Evaluator, Evaluation]:
    evaluate = Evaluator(problem)
    return evaluate, evaluate(node)


def as_regions(problem: Problem, case: Case, evaluation: Evaluation) -> Recoding:
    """The recoding of a node, written by regions."""
    if evaluation.recoding is not None:
        return evaluation.recoding
    gone = np.zeros(len(problem.counts), np.bool_)
    of = combination_of(case, problem)
    extra = case.extra()
    for labels, positions in oracle.classes(case.rows, case.hierarchies, evaluation.node).items():
        if oracle.violates(labels, positions, case.k, case.l, case.sensitive, extra):
            gone[[of[p] for p in positions]] = True
    levels = np.repeat(np.array(evaluation.node)[:, None], len(gone), axis=1)
    return recoding_of(problem, levels, gone)


@settings(deadline=None, max_examples=examples(300))
@given(start=starts(), labels=LABELS)
def test_models_limit_and_constraints_hold(start: Any, labels: int) -> None:
    case, problem, node = start
    evaluate, begin = at_node(problem, node)
    if not begin.acceptable:
        return
    result = localized(evaluate, begin, labels)
    assert result.acceptable
    if result.recoding is None:
        return
    cells = cells_of(case, problem, result.recoding)
    found, extra = classes_of(cells), case.extra()
    for shown, positions in found.items():
        assert not oracle.violates(shown, positions, case.k, case.l, case.sensitive, extra)
    gone = len(case.rows) - sum(map(len, found.values()))
    assert gone == result.suppressed <= case.limit
    assert found
    assert all(oracle.holds(name, options, found, gone, extra) for name, options in case.models)
    for position, shown in enumerate(cells):
        for column, (level, inside) in enumerate(shown or ()):
            tree = case.hierarchies[column]
            assert case.rows[position][column] in inside
            assert case.low[column] <= level <= case.high[column]
            assert len({tree[v][level] for v in inside}) <= labels
        for group in case.same_level if shown else ():
            assert len({shown[column][0] for column in group}) == 1


@settings(deadline=None, max_examples=examples(300))
@given(start=starts(), labels=LABELS)
def test_it_never_loses_more_than_the_node_or_refine(start: Any, labels: int) -> None:
    case, problem, node = start
    evaluate, begin = at_node(problem, node)
    if not begin.acceptable:
        return
    finer = refined(evaluate, begin)
    result = localized(evaluate, begin, labels)
    lost = coverage(case, cells_of(case, problem, as_regions(problem, case, result)))
    for other in (begin, finer):
        assert result.loss <= other.loss + 1e-9 * abs(other.loss) + 1e-12
        assert lost <= coverage(case, cells_of(case, problem, as_regions(problem, case, other))) + 1e-9


@settings(deadline=None, max_examples=examples(100))
@given(start=starts(), labels=LABELS, seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(start: Any, labels: int, seed: int) -> None:
    case, problem, node = start
    order = list(range(len(case.rows)))
    shuffling.Random(seed).shuffle(order)
    evaluate, begin = at_node(problem, node)
    if not begin.acceptable:
        return
    one = localized(evaluate, begin, labels)
    two = localized(*at_node(case.problem(order), node), labels)
    assert (one.loss, one.suppressed, one.classes) == (two.loss, two.suppressed, two.classes)
    if one.recoding is None or two.recoding is None:
        assert one.recoding is two.recoding
        return
    assert cells_of(case, problem, one.recoding) == cells_of(case, case.problem(order), two.recoding)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("labels", [1, 3])
def test_larger_tables(seed: int, labels: int) -> None:
    case = larger(seed, "coverage")
    problem = case.problem()
    name, result = search(problem, local=labels)
    finer = search(problem, refine=True)[1]
    assert name == "contour"
    assert result.loss < finer.loss
    assert result.recoding is not None
    cells = cells_of(case, problem, result.recoding)
    for shown, positions in classes_of(cells).items():
        assert not oracle.violates(shown, positions, case.k, case.l, case.sensitive)
    assert sum(cell is None for cell in cells) == result.suppressed <= case.limit
    assert result.loss == pytest.approx(coverage(case, cells) / len(case.rows) / sum(case.weights))


def test_time_that_runs_out_leaves_what_was_formed() -> None:
    case = larger(0, "coverage")
    problem = case.problem()
    evaluate = Evaluator(problem)
    begin = search(problem)[1]
    calls = [0]

    def late(**_: Any) -> None:
        calls[0] += 1
        if calls[0] > 3:
            raise OutOfTime

    evaluate.check_time = late  # type: ignore[method-assign]
    result = localized(evaluate, begin)
    assert result.acceptable
    assert result.loss <= begin.loss


def test_it_runs_after_the_seconds_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    let_looks_take_time(monkeypatch)
    problem = larger(3, "coverage").problem()
    found = search(problem, seconds=0.005)[1]
    assert not found.complete
    regrouped = search(problem, local=1, seconds=0.005)[1]
    assert regrouped.recoding is not None
    assert regrouped.loss < found.loss


@adult.needs_adult
@pytest.mark.parametrize(("labels", "most"), [(1, 0.0545), (3, 0.0298)])
def test_adult(labels: int, most: float) -> None:
    problem = adult.problem(metric="coverage", suppression_limit="5%")
    result = search(problem, local=labels)[1]
    assert result.loss <= most
    assert result.recoding is not None
    kept = ~result.recoding.regions.suppressed  # type: ignore[union-attr]
    assert problem.classes_of(result.recoding).sizes[kept].min() >= 5


TREE = {"Europe": ["it", "es"], "Asia": {"east": ["jp", "kr"], "south": ["in"]}}


def policy(**changes: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    return {
        "columns": {
            "id": {"role": "other"},
            "age": {**quasi, "hierarchy": {"intervals": [5, 10, 40]}},
            "land": {**quasi, "hierarchy": {"tree": TREE}},
            "sex": {**quasi, "hierarchy": "flat"},
            "ill": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": "10%",
        "metric": "coverage",
    } | changes


def people(rows: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "id": range(rows),
            "age": random.integers(20, 60, rows),
            "land": random.choice(["it", "es", "jp", "kr", "in"], rows),
            "sex": random.choice(["f", "m"], rows),
            "ill": random.choice(["a", "b", "c"], rows),
        }
    )


@pytest.mark.parametrize("local", [True, {"labels": 3}])
def test_a_release_says_what_was_done(local: Any, tmp_path: Path) -> None:
    table = people()
    table.to_csv(tmp_path / "people.csv", index=False)
    chosen = policy(local=local)
    release = shoal.anonymize(tmp_path / "people.csv", chosen, output=tmp_path / "out.csv", report=True)
    result = release.to_dict()
    assert result["levels"] is None
    assert result["proven"] == "acceptable"
    assert release.loss < shoal.anonymize(table, policy(algorithm={"auto": {"refine": True}})).loss
    assert release.verification.verified
    assert {fate.column: fate.level for fate in release.fates()}["age"] == "by class"
    assert shoal.verify(tmp_path / "out.csv", chosen).verified
    again = shoal.apply(tmp_path / "out.csv.private", tmp_path / "people.csv", output=tmp_path / "again.csv")
    assert again.loss == release.loss
    names = ["age", "land", "sex", "ill"]
    first, second = (
        pd.read_csv(tmp_path / file, dtype=str)[names].sort_values(names).to_numpy().tolist()
        for file in ("out.csv", "again.csv")
    )
    assert first == second
    book = pd.read_csv(release.codebook, dtype=str)
    shown = pd.read_csv(tmp_path / "out.csv", dtype=str)
    for name in ("age", "land"):
        assert set(shown[name]) <= set(book.loc[book["column"] == name, "label"])
    joined = book["label"].fillna("").str.contains(" or ")
    assert joined.any() == (local is not True)
    everybody = shoal.attack(
        tmp_path / "out.csv", table, on=["age", "land", "sex"], recipe=tmp_path / "out.csv.private"
    )
    text = json.dumps(everybody.to_dict())
    assert text


def test_every_cell_covers_its_value() -> None:
    table = people()
    release = shoal.anonymize(table, policy(local={"labels": 3}))
    above = {"it": "Europe", "es": "Europe", "jp": "Asia east", "kr": "Asia east", "in": "Asia south"}
    rows = release.table
    assert rows["land"].str.contains(" or ").any()
    for _, row in rows.iterrows():
        origin = table.loc[row["id"]]
        labels = str(row["land"]).split(" or ")
        assert any(label in ("*", origin["land"]) or label in above[origin["land"]] for label in labels)
        bands = [label.split("-") for label in str(row["age"]).split(" or ")]
        assert row["age"] == "*" or any(int(band[0]) <= origin["age"] <= int(band[-1]) for band in bands)
    assert rows.groupby(["age", "land", "sex"]).size().min() >= 3


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(PolicyError, match="The options local and cells change the same records"):
        shoal.anonymize(people(), policy(local=True, algorithm={"auto": {"cells": True}}))
    with pytest.raises(CannotHonour, match="'mondrian' does not search for one"):
        shoal.anonymize(people(), policy(local=True, algorithm="mondrian"))
    bounds = policy(local={"labels": 2})
    bounds["columns"]["age"] = bounds["columns"]["age"] | {"release_as": "bounds"}
    with pytest.raises(PolicyError, match="a cell with several labels has no bounds"):
        shoal.anonymize(people(), bounds)
    assert shoal.anonymize(people(), bounds | {"local": True}).levels is None
    for wrong in (0, 9, "many", True):
        with pytest.raises(PolicyError, match="local must be"):
            shoal.Policy.load(policy(local={"labels": wrong}))


def test_the_loss_is_finite_by_every_metric() -> None:
    for metric in ("non-uniform-entropy", "precision", "height", "discernibility", "class-size"):
        release = shoal.anonymize(people(), policy(local={"labels": 2}, metric=metric))
        assert math.isfinite(release.loss)
        assert release.loss <= shoal.anonymize(people(), policy(metric=metric)).loss


def bound(spec: Any, values: list[str | None]) -> Any:
    from shoal.core.counts.counts import Domain
    from shoal.core.hierarchy import builders

    return builders.parse("x", spec).bind(Domain("x", values, tuple(values)))


@pytest.mark.parametrize(
    ("spec", "values", "level", "members", "text"),
    [
        ({"intervals": [5, 10]}, ["21", "26", "33"], 1, [0, 1], "20-29"),
        ({"intervals": [5, 10]}, ["21", "26", "33"], 1, [0, 2], "20-24 or 30-34"),
        ({"intervals": [5, 10]}, ["33", "26", "21"], 1, [0, 1, 2], "20-34"),
        ({"intervals": [0.5]}, ["0.1", "0.6"], 1, [0, 1], "[0, 1)"),
        ({"intervals": [5], "top_coding": 30}, ["26", "33"], 1, [0, 1], "25+"),
        ({"intervals": [5]}, ["-3", "2"], 1, [0, 1], "-5 to 4"),
        ({"intervals": [5]}, ["23", None], 0, [0, 1], "23 or missing"),
        ("flat", ["a or b", "c", "missing", None], 0, [0, 2, 3], '"a or b" or "missing" or missing'),
        ({"tree": TREE}, ["it", "jp", "in"], 1, [0, 1], None),
    ],
)
def test_labels_are_joined(
    spec: Any, values: list[str | None], level: int, members: list[int], text: str | None
) -> None:
    from shoal.core.recoding.local.cells import text_of

    hierarchy = bound(spec, values)
    shown = text_of(hierarchy, level, members)
    assert shown == (text or " or ".join(hierarchy.labels[level][member] for member in members))


def test_cells_that_look_alike_are_one_group() -> None:
    from shoal.core.recoding.local.cells import groups_of_cells

    hierarchy = bound({"intervals": [5, 10]}, ["21", "26", "33"])
    groups, codes = groups_of_cells(hierarchy, np.array([1, 2, 4]), [(1, (0, 1)), (2, (0,)), (1, (0, 2))])
    assert codes.tolist() == [0, 0, 1]
    assert groups.labels == {"x": ["20-29", "20-24 or 30-34"]}
    assert groups.leaves.tolist() == [2, 2]
    assert groups.records.tolist() == [3, 5]
    assert groups.cover(0) == {"level": 1, "labels": ["20-24", "25-29"], "values": ["21", "26"]}
    assert groups.cover(1) == {"level": 1, "labels": ["20-24", "30-34"]}


def test_saved_cells_cover_values_that_are_new() -> None:
    from shoal.core.recoding.matching import covering

    covers = [{"level": 1, "labels": ["20-24", "30-34"]}, {"level": 1, "label": "25-29"}]
    for value, inside in (("24", [True, False]), ("27", [False, True]), ("34", [True, False])):
        assert covering(bound({"intervals": [5, 10]}, [value]), covers).tolist() == inside


def test_an_outsiders_value_matches_a_cell_if_it_is_under_one_of_its_labels() -> None:
    table = people()
    release = shoal.anonymize(table, policy(local={"labels": 3}))
    rows = release.table.drop(columns=["id"])
    known = table.loc[release.table["id"].head(6), ["age", "land", "sex"]]
    above = {"it": "Europe", "es": "Europe", "jp": "Asia east", "kr": "Asia east", "in": "Asia south"}
    lands = {land: {land, "*", *labels.split()} for land, labels in above.items()}

    def fits(row: Any, person: Any) -> bool:
        bands = [label.split("-") for label in str(row["age"]).split(" or ")]
        age = row["age"] == "*" or any(int(b[0]) <= person["age"] <= int(b[-1]) for b in bands)
        land = bool(lands[person["land"]] & set(str(row["land"]).split(" or ")))
        return age and land and row["sex"] in (person["sex"], "*")

    expected = [sum(fits(row, person) for _, row in rows.iterrows()) for _, person in known.iterrows()]
    result = shoal.attack(
        rows, known, on=["age", "land", "sex"], policy=policy(local={"labels": 3})
    ).to_dict()
    assert [size["records"] for size in result["sizes"] for _ in range(size["persons"])] == sorted(expected)
    assert result["smallest"] >= 3
    alone = shoal.attack(rows, known, on="age").to_dict()  # without a policy, as anybody reads ages
    for _, person in known.iterrows():
        matches = sum(
            row["age"] == "*"
            or any(
                int(band[0]) <= person["age"] <= int(band[-1])
                for band in [label.split("-") for label in str(row["age"]).split(" or ")]
            )
            for _, row in rows.iterrows()
        )
        assert matches in [size["records"] for size in alone["sizes"]]
