"""Figures in the style of the papers: counts over k, incognito's search space, partitions of two columns."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import oracle
import shoal
from example_counts import examples
from problems import cases
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.core.evaluator import Evaluator
from shoal.document.figures import check_folder
from shoal.errors import Infeasible, OutputError, ShoalError, UsageError
from shoal.policy.policy import Policy
from shoal.workflow.compare.partitions import draw_partitions, partition_plot
from shoal.workflow.diagnosis.diagnose import diagnosis_plots


def people(records: int = 150, seed: int = 1) -> pd.DataFrame:
    chance = random.Random(seed)
    return pd.DataFrame(
        {
            "age": [chance.randrange(20, 60) for _ in range(records)],
            "height": [round(chance.gauss(170, 12)) for _ in range(records)],
            "ward": [chance.choice("aabcd") for _ in range(records)],
            "illness": [chance.choice(["flu", "cold"]) for _ in range(records)],
        }
    )


def policy(**entries: Any) -> dict[str, Any]:
    quasi = {"role": "quasi-identifier"}
    columns: dict[str, Any] = {
        "age": {**quasi, "hierarchy": {"intervals": [5, 20]}, "max_level": 1, "weight": 2},
        "height": {**quasi, "hierarchy": {"intervals": [10]}},
        "ward": {**quasi, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 4}}], "suppression_limit": "5%"} | entries


def safe(rows: list[tuple[Any, ...]], columns: tuple[int, ...], k: int, limit: int) -> bool:
    sizes = Counter(tuple(row[c] for c in columns) for row in rows).values()
    small = sum(size for size in sizes if size < k)
    return small <= limit and small < len(rows)


@pytest.mark.parametrize("limit", [0, 9])
def test_counts_over_k_are_those_of_the_questions(limit: int) -> None:
    table = people()
    rows = list(table.itertuples(index=False, name=None))
    diagnosis = shoal.diagnose(table)
    figure = next(plot for plot in diagnosis_plots(diagnosis, limit)[0] if plot.name == "counts")
    (panel,) = figure.strips[0].panels
    assert list(panel) == ["question 3", *(["question 7"] if limit else []), "every set"]
    assert {up for _, up in panel["every set"]} == {15}
    sets = [c for size in range(1, 5) for c in itertools.combinations(range(4), size)]
    for name, allowed in (("question 3", 0), ("question 7", limit)):
        for k, counted in panel.get(name, ()):
            assert counted == diagnosis.largest_sets(int(k), allowed).counts
            good = {c for c in sets if safe(rows, c, int(k), allowed)}
            largest = [c for c in good if not any(set(c) < set(other) for other in good)]
            smallest = [c for c in sets if c not in good and all(set(c) - {x} == set() or tuple(
                y for y in c if y != x) in good for x in c)]  # fmt: skip
            assert len(largest) + len(smallest) <= counted <= 15  # no search can do without these


def test_no_counts_are_drawn_for_many_columns() -> None:
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (50, 12)), columns=list("abcdefghijkl"))
    names = [plot.name for plot in diagnosis_plots(shoal.diagnose(wide), max_size=2)[0]]
    assert names == ["suppression", "sets", "frontier"]


@settings(deadline=None, max_examples=examples(150))
@given(case=cases(models=None), variant=st.sampled_from(["basic", "cube", "super-roots"]))
def test_the_search_space_of_incognito_is_that_of_plain_python(case: Any, variant: str) -> None:
    case = replace(case, same_level=[], l=1, low=[0] * len(case.low), metric="precision")
    case.high = [len(next(iter(tree.values()))) - 1 for tree in case.hierarchies]
    problem = case.problem()
    try:
        result = ALGORITHMS.create("incognito", {"variant": variant}).search(problem, Evaluator(problem))
    except Infeasible:
        assume(False)
    levels = [range(high + 1) for high in case.high]
    axes = range(len(levels))

    def acceptable(columns: tuple[int, ...], node: tuple[int, ...]) -> bool:
        rows = [tuple(row[c] for c in columns) for row in case.rows]
        sizes = [len(p) for p in oracle.classes(rows, [case.hierarchies[c] for c in columns], node).values()]
        small = sum(size for size in sizes if size < case.k)
        return small <= case.limit and small < len(rows)

    for of_size in result.search_space:
        sets = list(itertools.combinations(axes, of_size.columns))
        assert of_size.nodes == sum(prod(len(levels[c]) for c in columns) for columns in sets)
        candidates = [
            (columns, node)
            for columns in sets
            for node in itertools.product(*(levels[c] for c in columns))
            if len(columns) == 1
            or all(
                acceptable((*columns[:i], *columns[i + 1 :]), (*node[:i], *node[i + 1 :]))
                for i in range(len(columns))
            )
        ]
        assert of_size.candidates == len(candidates)
        refused = sum(not acceptable(columns, node) for columns, node in candidates)
        assert refused <= of_size.counted <= len(candidates)  # what is refused was counted
    assert [of_size.columns for of_size in result.search_space] == list(range(1, len(levels) + 1))


def test_compare_draws_the_search_space_of_incognito() -> None:
    compared = shoal.compare(people(), policy(), algorithms=["incognito", "ola"], k=[2, 4])
    rows = [row for row in compared.rows if row.search_space]
    assert [row.algorithm for row in rows] == ["incognito"] * 2
    drawn = [plot for plot in compared.document().figures if plot.name.startswith("search-space")]
    assert len(drawn) == 2
    for plot, row in zip(drawn, rows, strict=True):
        (panel,) = plot.strips[0].panels
        for name, key in (("all nodes", "nodes"), ("candidates", "candidates"), ("counted", "counted")):
            assert row.search_space is not None
            expected = [(size["columns"], size[key]) for size in row.search_space if size[key]]
            assert panel[name] == expected


@pytest.mark.parametrize("pair", [("age", "height"), ("height", "ward")])
def test_every_record_is_in_a_box_of_k_records(pair: tuple[str, str]) -> None:
    table = people()
    plot = partition_plot(table, policy(), pair)
    assert [axis.name for axis in plot.axes] == list(pair)
    assert sorted(plot.points[:, 2].tolist()) == sorted(
        Counter(zip(*(table[c] for c in pair), strict=True)).values()
    )
    for partition in plot.partitions:
        inside = [
            (
                (plot.points[:, 0] > a)
                & (plot.points[:, 0] < b)
                & (plot.points[:, 1] > c)
                & (plot.points[:, 1] < d)
            )
            for a, b, c, d in partition.boxes.tolist()
        ]
        if pair == ("age", "height"):  # ranges of numbers do not overlap
            assert np.sum(inside, axis=0).tolist() == [1] * len(plot.points)
        assert np.any(inside, axis=0).all()
        assert min(plot.points[box, 2].sum() for box in inside) >= 4
    one, several = plot.partitions
    assert one.heading.startswith("one-dimensional (greedy-cuts): ")
    assert several.heading.startswith("multidimensional (mondrian): ")
    edges = {tuple(box[:2]) for box in one.boxes.tolist()}, {tuple(box[2:]) for box in one.boxes.tolist()}
    assert len(one.boxes) <= len(edges[0]) * len(edges[1])  # cuts go through the whole table
    if pair == ("age", "height"):
        assert len(several.boxes) > len(one.boxes)
    figure = draw_partitions(plot)
    assert len(figure.axes) == 2


def test_places_are_those_of_the_values() -> None:
    table = pd.DataFrame({"age": [20, 20, 30, 50], "day": ["2024-01-01", "2024-01-01", "2024-03-01", None]})
    quasi = {"role": "quasi-identifier"}
    asked = {
        "columns": {
            "age": {**quasi, "hierarchy": "flat"},
            "day": {**quasi, "hierarchy": {"dates": ["year"]}},
        },
        "models": [{"k-anonymity": {"k": 2}}],
    }
    plot = partition_plot(table, asked, ["age", "day"])
    assert np.isnan(plot.points[:, 1]).sum() == 1  # a missing value has no place
    assert draw_partitions(plot)
    assert list(plot.axes[1].ticks.values()) == ["2024-01-01", "2024-03-01"]


@pytest.mark.parametrize(
    ("columns", "changes", "message"),
    [
        (["age"], {}, "two different columns"),
        (["age", "age"], {}, "two different columns"),
        (["age", "illness"], {}, "illness"),
        (["age", "wards"], {}, "Did you mean 'ward'"),
        (["age", "ward"], {"models": [{"k-anonymity": {"k": 1}}]}, "at least 2 records"),
    ],
)
def test_what_is_no_pair_is_refused(columns: list[str], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ShoalError) as error:
        partition_plot(people(), policy(**changes), columns)
    assert message in str(error.value)
    assert isinstance(error.value, UsageError)


def test_the_command_draws_all_of_them(tmp_path: Path) -> None:
    table, plan, folder = tmp_path / "people.csv", tmp_path / "policy.yaml", tmp_path / "plots"
    people().to_csv(table, index=False)
    plan.write_text(Policy.load(policy()).to_yaml())
    command = ["compare", str(table), "--policy", str(plan), "--algorithm", "incognito"]
    for wrong in (["--partitions", "age,height"], ["--plots", str(folder), "--partitions", "age,x"]):
        result = CliRunner().invoke(app, [*command, *wrong])
        assert result.exit_code == 2, result.output
        assert not folder.exists()
    result = CliRunner().invoke(app, [*command, "--plots", str(folder), "--partitions", "age,height"])
    assert result.exit_code == 0, result.output
    names = {path.name for path in folder.iterdir()}
    assert {"partitions.png", "partitions.svg", "search-space-incognito-k4-5.png"} <= names
    result = CliRunner().invoke(
        app, ["diagnose", str(table), "--suppression-limit", "5%", "--plots", str(folder)]
    )
    assert result.exit_code == 0, result.output
    assert (folder / "counts.png").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["profile", "TABLE", "--policy", "PLAN", "--output", "OUT", "--node", "nothing=1"],
        ["profile", "TABLE", "--policy", "PLAN", "--output", "OUT", "--node", "age=99"],
        ["compare", "TABLE", "--policy", "PLAN", "--metric", "coverage:aggregate=median"],
        ["diagnose", "TABLE", "--columns", "nothing"],
        ["risk", "TABLE", "--columns", "nothing"],
        ["utility", "TABLE", "TABLE", "--policy", "PLAN", "--target", "nothing"],
    ],
)
def test_a_command_that_fails_leaves_no_folder_for_plots(tmp_path: Path, command: list[str]) -> None:
    table, plan, folder = tmp_path / "people.csv", tmp_path / "policy.yaml", tmp_path / "new" / "plots"
    people().to_csv(table, index=False)
    plan.write_text(Policy.load(policy()).to_yaml())
    names = {"TABLE": str(table), "PLAN": str(plan), "OUT": str(tmp_path / "made.profile")}
    before = set(tmp_path.iterdir())
    result = CliRunner().invoke(app, [*(names.get(word, word) for word in command), "--plots", str(folder)])
    assert result.exit_code == 2, result.output
    assert set(tmp_path.iterdir()) == before


def test_a_folder_for_plots_that_cannot_be_made_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        check_folder(tmp_path / "file" / "plots")
    check_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
