"""Risk in the terms of regulators, against naive versions of each formula."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import adult
import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.document.figures import draw
from shoal.errors import DataError, PolicyError, UnknownName, UsageError
from shoal.workflow.risk.exposure import TableRisk, chances, exposure_of
from shoal.workflow.risk.risk import Risk
from shoal.workflow.risk.rows import risk_plots

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, max_size=40)


def table(rows: list[tuple[str, ...]], names: tuple[str, ...] = ("a", "b")) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


def of(rows: list[tuple[str, ...]], **wishes: Any) -> TableRisk:
    return shoal.risk(table(rows), columns=["a", "b"], **wishes).before


# The records themselves.


@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "c", None])] * 3), min_size=1, max_size=12))
@settings(deadline=None, max_examples=examples(30))
def test_scores_name_the_records_that_a_naive_search_finds(rows: list[tuple[Any, ...]]) -> None:
    sets = [one for size in (1, 2, 3) for one in combinations(range(3), size)]

    def alone(row: tuple[Any, ...], places: tuple[int, ...]) -> bool:
        return sum(all(other[place] == row[place] for place in places) for other in rows) == 1

    naive = {}
    for row in rows:
        unique = [one for one in sets if alone(row, one)]
        minimal = [one for one in unique if not any(set(other) < set(one) for other in unique)]
        if minimal:
            naive[row] = len(minimal)
    names = ["a", "b", "suda"]  # one is named as a score is
    data = pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})
    found = shoal.risk(data, columns=names)
    scores = found.scores()
    assert scores.column_names == [*names, "minimal_uniques", "suda_", "dis_suda"]
    told = scores.to_pylist()
    assert {tuple(row[name] for name in names): row["minimal_uniques"] for row in told} == naive
    assert len(told) == len(naive)
    each = [row["suda_"] for row in told]
    assert each == sorted(each, reverse=True)
    special = found.before.special
    assert special is not None
    assert math.fsum(each) == pytest.approx(special.mean_score * len(rows))
    assert math.fsum(row["dis_suda"] for row in told) == pytest.approx(special.mean_dis * len(rows))


def test_scores_of_a_release_are_of_what_it_shows() -> None:
    data = pa.table({"age": [31, 32, 33, 34, 55], "sex": ["f", "f", "m", "m", "f"]})
    release = pa.table({"age": ["30-39"] * 4 + ["50-59"], "sex": ["f", "f", "m", "m", "f"]})
    found = shoal.risk(data, columns=["age", "sex"], release=release)
    assert found.scores().num_rows == 5
    assert found.after is not None
    (left,) = found.after.scores().to_pylist()
    assert (left["age"], left["sex"], left["minimal_uniques"]) == ("50-59", "f", 1)
    assert "50-59" not in repr(found) + repr(found.after) + repr(found.after.scored)
    assert "50-59" not in json.dumps(found.to_dict())


def test_scores_that_were_not_looked_for_are_refused() -> None:
    with pytest.raises(UsageError, match="Let special_size be above 0"):
        shoal.risk(pa.table({"a": ["x"]}), columns=["a"], special_size=0).scores()


# The formulas.


@given(ROWS, st.sampled_from([0.05, 0.09, 0.2, 1 / 3, 0.5, 1.0]))
@settings(deadline=None, max_examples=examples(60))
def test_the_prosecutor_finds_one_in_the_size_of_the_class(
    rows: list[tuple[str, ...]], threshold: float
) -> None:
    sizes = Counter(rows)
    each = [1 / sizes[row] for row in rows]
    found = of(rows, threshold=threshold, special_size=0)
    assert found.prosecutor.highest == max(each)
    assert found.prosecutor.average == pytest.approx(math.fsum(each) / len(rows), rel=1e-12)
    assert found.prosecutor.above == sum(one > threshold for one in each) / len(rows)
    assert (found.journalist, found.journalist_by) == (found.prosecutor, "prosecutor")  # it is not higher
    assert found.marketer == found.prosecutor.average


def naive_chance(size: int, share: float) -> float:
    """Sum Pr(F) / F over the negative binomial distribution of F given the size in the sample."""
    total, probability = 0.0, share**size
    for whole in range(size, size + 200_000):
        total += probability / whole
        probability *= (1 - share) * whole / (whole - size + 1)
        if probability < 1e-18 and whole > size / share:
            break
    return total


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.49, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 10, 29, 30, 31, 60])
def test_the_chance_in_the_population_is_the_mean_of_one_in_its_class(size: int, share: float) -> None:
    found = chances(np.array([size]), share)[0]
    assert found == pytest.approx(naive_chance(size, share), rel=1e-9)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.floats(1e-7, 1.0))
def test_chances_are_below_the_prosecutors_and_fall_with_the_size(sizes: list[int], share: float) -> None:
    ordered = np.array(sorted(sizes))
    found = chances(ordered, share)
    assert (found <= 1 / ordered + 1e-15).all()
    assert (found >= share / ordered * (1 - 1e-9)).all()  # Jensen: the mean of 1/F is at least 1 in the mean
    assert (np.diff(found) <= 1e-15).all()


@given(ROWS, st.integers(1, 50))
@settings(deadline=None, max_examples=examples(40))
def test_with_a_sampling_share_the_journalist_is_estimated(rows: list[tuple[str, ...]], times: int) -> None:
    sizes = Counter(rows)
    found = of(rows, population_size=len(rows) * times, threshold=0.2, special_size=0)
    alone = sum(size == 1 for size in sizes.values())
    certain = (found.uniques[0].in_sample or 0) / alone if alone else 0.0  # unique in the population too
    chance = {size: naive_chance(size, 1 / times) for size in sizes.values()}
    chance |= {1: max(chance[1], certain)} if alone else {}
    each = [chance[sizes[row]] for row in rows]
    assert found.journalist_by == "estimate"
    assert found.journalist.highest == pytest.approx(max(each), rel=1e-6)
    assert found.journalist.average == pytest.approx(math.fsum(each) / len(rows), rel=1e-6)
    assert found.marketer == pytest.approx(found.journalist.average)


def test_a_published_table_is_told_alike() -> None:
    """El Emam and Dankar 2008: a class of 3 of 10 records has the prosecutor's risk 0.33."""
    rows = [("m", "1")] * 3 + [("m", "2")] * 4 + [("f", "1")] * 3
    found = of(rows)
    assert found.prosecutor.highest == pytest.approx(1 / 3)
    assert found.prosecutor.average == pytest.approx(0.3)


def test_a_population_is_looked_up(tmp_path: Path) -> None:
    rows = [("a", "x"), ("a", "x"), ("b", "y")]
    everyone = rows * 2 + [("b", "y"), ("c", "z")]
    (tmp_path / "population.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in everyone))
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (tmp_path / "policy.yaml").write_text(
        "columns:\n  a: {role: quasi-identifier, hierarchy: flat}\n"
        "  b: {role: quasi-identifier, hierarchy: flat}\n"
        "models: [{k-map: {k: 2, population: population.csv}}]\n"
    )
    found = shoal.risk(tmp_path / "data.csv", tmp_path / "policy.yaml", threshold=0.3)
    assert found.population == 8
    assert found.before.journalist_by == "population"
    assert found.before.journalist.highest == pytest.approx(1 / 3)  # b, y: three of everyone
    assert found.before.journalist.average == pytest.approx((1 / 4 + 1 / 4 + 1 / 3) / 3)
    assert found.before.journalist.above == pytest.approx(1 / 3)
    assert found.before.marketer == pytest.approx((1 / 4 + 1 / 4 + 1 / 3) / 3)


def test_the_threshold_is_one_in_the_policys_k_unless_given() -> None:
    policy = {
        "columns": {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in "ab"},
        "models": [{"k-anonymity": {"k": 4}}],
    }
    rows = [("a", "x")] * 4 + [("b", "y")] * 3
    found = shoal.risk(table(rows), policy)
    assert (found.threshold, found.before.prosecutor.above) == (0.25, 3 / 7)
    assert shoal.risk(table(rows), columns=["a", "b"]).threshold == 0.2
    assert shoal.risk(table(rows), policy, threshold="1/11").threshold == 1 / 11


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1, 12))
def test_records_above_a_threshold_are_those_below_its_size(sizes: list[int], k: int) -> None:
    found = exposure_of(np.array(sizes))
    assert found.above(1 / k) == found.below(k)


# Before and after.


def release_of(rows: list[tuple[str, ...]]) -> tuple[pa.Table, dict[str, Any], Any]:
    policy = {
        "columns": {
            "a": {"role": "quasi-identifier", "hierarchy": "flat"},
            "b": {"role": "quasi-identifier", "hierarchy": "flat"},
        },
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": 1.0,
    }
    return table(rows), policy, shoal.anonymize(table(rows), policy)


def test_a_release_is_assessed_beside_its_input() -> None:
    rows = [("a", "x")] * 3 + [("b", "y")] + [("b", "z")]
    raw, policy, release = release_of(rows)
    found = shoal.risk(raw, policy, release=release.table)
    assert found.before.exposure.unique == 2
    assert found.after is not None
    assert found.after.exposure == release.verification.exposure
    assert found.after.prosecutor.highest <= 0.5


def test_masked_records_are_in_no_class() -> None:
    rows = [("a", "x")] * 9 + [("b", "y"), ("c", "z")]
    policy = {
        "columns": {name: {"role": "quasi-identifier", "hierarchy": "flat", "max_level": 0} for name in "ab"},
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": 2,
        "suppressed": "mask",
    }
    release = shoal.anonymize(table(rows), policy)
    found = shoal.risk(table(rows), policy, release=release.table)
    assert found.after is not None
    assert (found.after.records, found.after.exposure.smallest) == (9, 9)


def test_a_release_by_itself_is_assessed_with_its_policy() -> None:
    rows = [("a", "x")] * 3 + [("b", "y")] * 2
    _, policy, release = release_of(rows)
    assert shoal.risk(release.table, policy).before.exposure == release.verification.exposure


@adult.needs_adult
def test_adult_at_k_5_has_the_highest_prosecutor_risk_of_a_fifth(tmp_path: Path) -> None:
    root, output = adult.folder(), tmp_path / "release.csv"
    assert root is not None
    policy = adult.policy(suppression_limit="5%")
    shoal.anonymize(root / "adult.csv", policy, output=output)
    found = shoal.risk(root / "adult.csv", policy, release=output)
    assert found.after is not None
    assert found.after.prosecutor.highest == 0.2
    assert found.after.prosecutor.above == 0
    assert found.before.prosecutor.highest == 1.0


# Bad input.


@pytest.mark.parametrize(
    ("wishes", "error", "words"),
    [
        ({}, UsageError, "Name the columns"),
        ({"columns": ["a", "c"]}, UnknownName, "'c'"),
        ({"columns": ["a"], "threshold": 0}, UsageError, "threshold must be a share above 0"),
        ({"columns": ["a"], "threshold": "a lot"}, UsageError, "threshold must be a share above 0"),
        ({"columns": ["a"], "sampling_share": 2}, UsageError, "sampling_share must be a share above 0"),
        ({"columns": ["a"], "population_size": 1}, UsageError, "population"),
        ({"columns": ["a"], "population_size": 9, "sampling_share": 0.5}, UsageError, "one of"),
        ({"columns": ["a"], "special_size": -1}, UsageError, "special_size"),
    ],
)
def test_bad_wishes_are_answered(wishes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        shoal.risk(table([("a", "x")] * 3), **wishes)


def test_a_table_without_rows_or_columns_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        shoal.risk(table([]).cast(pa.schema([("a", pa.string()), ("b", pa.string())])), columns=["a"])
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "flat"}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    with pytest.raises(PolicyError, match="lacks quasi-identifiers"):
        shoal.risk(table([("a", "x")]), policy)


def test_bounds_stand_for_their_column_without_a_policy_too() -> None:
    ages = pa.table({"age": [21, 24, 33, 38]})
    release = pa.table({"age_lower": [20, 20, 30, 30], "age_upper": [29, 29, 39, 39]})
    found = shoal.risk(ages, columns=["age"], release=release)
    assert found.after is not None
    assert (found.before.exposure.smallest, found.after.exposure.smallest) == (1, 2)
    with pytest.raises(PolicyError, match="Give a release of this table, or name columns that both have"):
        shoal.risk(ages, columns=["age"], release=release.drop_columns("age_upper"))


def test_the_policy_says_how_large_the_population_is() -> None:
    policy: dict[str, Any] = {
        "columns": {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in "ab"},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    rows = [("a", "x")] * 3 + [("b", "y")]
    assert shoal.risk(table(rows), policy | {"population_size": 40}).population == 40
    assert shoal.risk(table(rows), policy | {"sampling_share": "10%"}).population == 40
    with pytest.raises(PolicyError, match="Name one of them"):
        shoal.Policy.load(policy | {"population_size": 40, "sampling_share": 0.1})
    with pytest.raises(UsageError, match="sampling_share must be a share"):
        shoal.Policy.load(policy | {"sampling_share": "often"})


# The command.


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = [("a", "x")] * 3 + [("b", "y")] * 2 + [("secret", "z")]
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["risk", *arguments])


def test_the_command_prints_json(files: Path) -> None:
    wishes = ("--columns", "a,b", "--population-size", "60", "--threshold", "0.4")
    done = run(str(files / "data.csv"), *wishes, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["before"]["prosecutor"] == {"highest": 1.0, "average": 0.5, "above": 0.5}
    assert [one["model"] for one in told["before"]["population_uniqueness"]] == [
        "dankar",
        "pitman",
        "snb",
        "zayatz",
    ]
    assert told["after"] is None
    assert told["before"]["class_sizes"][0] == {"size": 1, "records": 1, "classes": 1}


def test_the_command_shows_a_table_and_plots(files: Path) -> None:
    shown = run(
        str(files / "data.csv"),
        *("--columns", "a,b", "--release", str(files / "data.csv"), "--plots", str(files / "plots")),
    )
    assert shown.exit_code == 0, shown.stderr
    assert "prosecutor risk, highest" in shown.stdout
    assert "secret" not in shown.stdout + shown.stderr
    assert {path.name for path in (files / "plots").iterdir()} >= {"risk.png", "class-sizes.svg"}


def test_risks_before_and_after_are_drawn_on_one_scale() -> None:
    rows = [(letter, "x") for letter in "abcd"]
    found = shoal.risk(table(rows), columns=["a"], release=table([("a", "x")] * 4))
    plot = next(plot for plot in risk_plots(found) if plot.name == "risk")
    before, after = draw(plot).axes
    assert before.get_xlim() == after.get_xlim()
    assert max(after.get_xticks()) <= 1  # no risk is above 100%


def test_wrong_usage_ends_with_2(files: Path) -> None:
    done = run(str(files / "data.csv"))
    assert done.exit_code == 2
    assert "Name the columns" in done.stderr


def test_the_result_reads_back_as_plain_values() -> None:
    found = shoal.risk(table([("a", "x"), ("a", "x"), ("b", "y")]), columns=["a", "b"])
    assert isinstance(found, Risk)
    assert json.loads(json.dumps(found.to_dict()))["before"]["k"] == 1
