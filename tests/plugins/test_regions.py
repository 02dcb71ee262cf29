"""Regions, finer classes and blanked cells: from the policy to the written release, record by record."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from problems import Case, cases
from region_tables import ABOVE, covers, policy, tables
from shoal.algorithms import ALGORITHMS
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding
from shoal.core.recoding.refine import hidden, refined
from shoal.errors import CannotHonour, HierarchyError, Infeasible, PolicyError, ShoalError, UnknownName
from shoal.workflow.search import search

SEARCHES = [
    {"mondrian": {}},
    {"mondrian": {"choose": "loss"}},
    {"mondrian": {"choose": "entropy", "categorical": "hierarchy"}},
    {"mondrian": {"relaxed": True}},
    {"auto": {"refine": True}},
    {"ola": {"refine": True}},
    {"contour": {"cells": True}},
    {"datafly": {"cells": True}},
]


def plain(rows: pd.DataFrame) -> list[tuple[Any, ...]]:
    columns = [
        [None if pd.isna(cell) else str(cell) for cell in rows[name]] for name in ("age", "land", "sex")
    ]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("algorithm", SEARCHES, ids=json.dumps)
@settings(max_examples=examples(15), deadline=None)
@given(table=tables(), k=st.integers(2, 5), l=st.integers(1, 2))
def test_every_label_covers_its_record_and_every_class_has_its_k(
    algorithm: Any, table: pd.DataFrame, k: int, l: int
) -> None:
    diverse = l > 1 and "mondrian" not in algorithm
    models = [{"k-anonymity": {"k": k}}, *([{"distinct-l-diversity": {"l": l}}] if diverse else [])]
    try:
        release = shoal.anonymize(table, policy(models=models, algorithm=algorithm))
    except Infeasible:
        return
    rows = release.table
    blanks = 0
    for _, record in rows.iterrows():
        origin = table.loc[record["id"]]
        assert record["ill"] == origin["ill"]
        for name in ("age", "land", "sex"):
            if "cells" in str(algorithm) and pd.isna(record[name]) and not pd.isna(origin[name]):
                blanks += 1
            else:
                assert covers(name, record[name], origin[name]), (name, record[name], origin[name])
    seen = Counter(plain(rows))
    assert min(seen.values()) >= k
    ills = defaultdict(set)
    for look, ill in zip(plain(rows), rows["ill"], strict=True):
        ills[look].add(ill)
    assert not diverse or min(map(len, ills.values())) >= l
    assert len(rows) + release.suppressed == len(table)
    assert release.suppressed <= 0.4 * len(table)
    assert release.verification.classes == len(seen)
    if "cells" in str(algorithm) and release.evaluation.recoding:
        assert release.cells >= blanks  # a null that was there counts as blanked too


def covered_values(problem: Problem, recoding: Recoding, column: int, group: int) -> set[str]:
    """The values of the data that a group covers, read from what a recipe would say."""
    hierarchy = problem.hierarchies[column]
    cover = recoding.column_groups[column].cover(group)
    values = hierarchy.labels[0]
    if "blank" in cover:
        return set(values)
    if "values" in cover:
        return set(cover["values"])
    if "level" in cover:
        level = cover["level"]
        group_of = hierarchy.groups(level).tolist()
        labels = cover["labels"] if "labels" in cover else [cover["label"]]
        return {v for v, g in zip(values, group_of, strict=True) if hierarchy.labels[level][g] in labels}
    low, high = cover["ends"]
    return {value for value in values if low <= float(value) <= high}


def naive_loss(problem: Problem, recoding: Recoding, metric: str) -> float:
    """Coverage and entropy, part by part."""
    regions = recoding.regions
    assert regions is not None
    total = 0.0
    for column, hierarchy in enumerate(problem.hierarchies):
        values = hierarchy.labels[0]
        often = dict(zip(values, problem.value_counts[column].tolist(), strict=True))
        own = 0.0
        for row, size, class_ in zip(regions.rows, regions.sizes, regions.classes, strict=True):
            value = values[problem.counts.codes(column)[row]]
            inside = covered_values(problem, recoding, column, int(regions.groups[column][class_]))
            assert regions.suppressed[class_] or value in inside
            if metric == "coverage":
                share = (len(inside) - 1) / max(1, hierarchy.size - 1)
                own += size * (1.0 if regions.suppressed[class_] else share)
            else:
                own += size * -math.log2(often[value] / sum(often[v] for v in inside))
        weight = problem.weights[column]
        total += weight * own
    if metric == "coverage":
        return total / problem.records / sum(problem.weights)
    return total


@pytest.mark.parametrize("metric", ["coverage", "non-uniform-entropy"])
@settings(max_examples=examples(120), deadline=None)
@given(case=cases(metrics=("coverage", "non-uniform-entropy")), data=st.data())
def test_the_loss_of_regions_is_that_of_their_records(metric: str, case: Case, data: st.DataObject) -> None:
    case.metric = metric
    problem = case.problem()
    if problem.counts.population is not None:
        return
    evaluate = Evaluator(problem)
    way = data.draw(st.sampled_from(["refine", "cells", "mondrian"]))
    try:
        if way == "mondrian":
            algorithm = ALGORITHMS.create(
                "mondrian", {"choose": data.draw(st.sampled_from(["width", "loss"]))}
            )
            if algorithm.refuses(problem):
                return
            found = algorithm.search(problem, evaluate)
        else:
            node = search(problem, ALGORITHMS.create("exhaustive"))[1]
            found = (refined if way == "refine" else hidden)(evaluate, node)
            if found.recoding is None:
                return
            if way == "refine":
                assert found.loss <= node.loss + 1e-9
    except Infeasible:
        return
    assert found.acceptable
    assert found.recoding is not None
    naive = naive_loss(problem, found.recoding, metric)
    assert math.isclose(found.loss, naive, rel_tol=1e-9, abs_tol=1e-9)


# Files, recipes and codebooks


@pytest.fixture
def data(tmp_path: Path) -> Path:
    random = np.random.default_rng(5)
    rows = 400
    table = pd.DataFrame(
        {
            "id": range(rows),
            "age": random.integers(18, 95, rows),
            "land": random.choice([*ABOVE, None], rows),
            "sex": random.choice(["f", "m"], rows),
            "ill": random.choice(list("abc"), rows),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.mark.parametrize("algorithm", SEARCHES, ids=json.dumps)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_written_release_is_verified_and_its_recipe_applies_again(
    algorithm: Any, ending: str, data: Path
) -> None:
    wish = policy(algorithm=algorithm, metric="coverage" if "mondrian" in algorithm else "precision")
    output = data.parent / f"release{ending}"
    release = shoal.anonymize(data, wish, output=output, mapping=True)
    assert release.levels is None
    assert shoal.verify(output, wish).verified
    told = json.loads((data.parent / f"release{ending}.private" / "recipe.json").read_text())
    assert (told["levels"] is None) == ("mondrian" in algorithm)
    book = pd.read_csv(release.codebook, keep_default_na=False)
    ages = {str(label) for label in _read(output)["age"] if not pd.isna(label)}
    assert ages <= set(book.loc[book.column == "age", "label"]) or "as is" in set(book.covers)
    again = shoal.apply(release.recipe, data, output=data.parent / f"again{ending}")
    assert again.verification.verified
    if algorithm != {"mondrian": {"relaxed": True}}:
        assert math.isclose(again.loss, release.loss)
        assert again.verification.classes == release.verification.classes
    mapped = pd.read_csv(data.parent / f"release{ending}.private" / "mapping" / "combinations.csv")
    assert mapped["records"].sum() == 400
    assert (mapped["fate"] == "suppressed").any() == bool(release.suppressed)


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def test_a_recipe_of_regions_suppresses_what_it_does_not_cover(data: Path) -> None:
    wish = policy(algorithm="mondrian", metric="coverage", suppression_limit=0)
    release = shoal.anonymize(data, wish, output=data.parent / "o.csv")
    older = pd.read_csv(data)
    older.loc[0, "age"] = 150
    with pytest.raises(
        Infeasible, match=r"1 of them have values that no class of the recipe covers"
    ) as found:
        shoal.apply(release.recipe, older)
    needed = found.value.nearest["suppression_limit"]
    told = json.loads(Path(str(release.recipe)).read_text())
    told["policy"]["suppression_limit"] = needed
    again = shoal.apply(told, older)
    assert again.suppressed == needed
    assert 150 not in set(again.table["age"])


@pytest.mark.parametrize(
    "spoil",
    [
        {"classes": [[0, 0, 999]]},
        {"classes": [[0, 0]]},
        {"classes": "none"},
        {"columns": {}},
    ],
    ids=str,
)
def test_a_damaged_recipe_of_regions_is_refused(spoil: dict[str, Any], data: Path) -> None:
    release = shoal.anonymize(
        data, policy(algorithm="mondrian", metric="coverage"), output=data.parent / "o.csv"
    )
    told = json.loads(Path(str(release.recipe)).read_text())
    told["regions"] |= spoil
    with pytest.raises(PolicyError, match="The recipe is damaged"):
        shoal.apply(told, data)


def test_bounds_are_the_ends_of_ranges(data: Path) -> None:
    wish = policy(algorithm="mondrian", metric="coverage")
    wish["columns"]["age"] = {**wish["columns"]["age"], "release_as": "bounds"}
    table = pd.read_csv(data)
    rows = shoal.anonymize(table, wish).table
    ages = table.set_index("id").loc[rows["id"], "age"].to_numpy()
    assert (rows["age_lower"].to_numpy() <= ages).all()
    assert (rows["age_upper"].to_numpy() >= ages).all()


# The published example, and what a class is


def test_the_example_of_the_paper() -> None:
    table = pd.DataFrame(
        {
            "age": [25, 25, 26, 27, 27, 28],
            "sex": ["M", "F", "M", "M", "F", "M"],
            "zip": [53711, 53712, 53711, 53710, 53712, 53711],
        }
    )
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in table}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": "mondrian"}
    release = shoal.anonymize(table, wish)
    assert Counter(map(tuple, release.table.to_numpy().tolist())) == {
        ("[25-26]", "M", "53711"): 2,
        ("[25-27]", "F", "53712"): 2,
        ("[27-28]", "M", "[53710-53711]"): 2,
    }


def test_blanked_cells_hide_what_would_be_suppressed() -> None:
    table = pd.DataFrame({"a": list("xxxyz"), "b": list("pppqq")})
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in table}
    wish = {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": 2,
        "metric": "precision",
    }
    assert shoal.anonymize(table, wish).suppressed == 2
    release = shoal.anonymize(table, wish | {"algorithm": {"auto": {"cells": True}}})
    assert (release.suppressed, release.cells) == (0, 2)
    rows = release.table.astype(object).where(release.table.notna(), None)
    assert Counter(map(tuple, rows.to_numpy().tolist())) == {("x", "p"): 3, (None, "q"): 2}
    assert release.start == {"a": 0, "b": 0}
    assert release.levels is None
    assert release.loss == pytest.approx(2 / 5 / 2)  # two cells of ten


def test_a_finer_release_tells_what_it_began_with() -> None:
    table = pd.DataFrame({"age": [*range(20, 30), 71, 72, 93]})
    columns = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 50]}}}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "metric": "coverage"}
    node = shoal.anonymize(table, wish)
    finer = shoal.anonymize(table, wish | {"algorithm": {"auto": {"refine": True}}})
    assert (finer.start, finer.levels) == (node.levels, None)
    assert finer.loss < node.loss
    assert finer.to_dict()["proven"] == "acceptable"


# What is refused


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"metric": "height", "algorithm": "mondrian"}, CannotHonour, "a range has none"),
        ({"algorithm": {"mondrian": {"choose": "luck"}}}, PolicyError, "Option choose of mondrian"),
        ({"algorithm": {"auto": {"refine": True, "cells": True}}}, PolicyError, "Choose one of them"),
        ({"algorithm": {"auto": {"cells": 3}}}, PolicyError, "Option cells"),
        ({"algorithm": {"auto": {"seed": 3}}}, UnknownName, "option of algorithm 'auto'"),
        ({"algorithm": {"auto": {"cells": True}}, "suppressed": "mask"}, PolicyError, "suppressed: drop"),
        ({"models": [{"average-risk": {"risk": 0.5}}], "algorithm": "mondrian"}, CannotHonour, "whole table"),
        (
            {
                "models": [{"distinct-l-diversity": {"l": 2}}],
                "algorithm": {"mondrian": {"relaxed": True}},
            },
            CannotHonour,
            "divide equal records at random",
        ),
        ({"models": [{"k-anonymity": {"k": 900}}], "algorithm": "mondrian"}, Infeasible, "400 records"),
    ],
)
def test_what_cannot_be_done_is_said(
    changes: dict[str, Any], error: type[ShoalError], text: str, data: Path
) -> None:
    with pytest.raises(error, match=text):
        shoal.anonymize(data, policy(**changes))


def test_a_number_column_with_text_is_refused_without_the_text() -> None:
    table = pd.DataFrame({"age": ["21", "22", "old", "23"]})
    columns = {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}}}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": "mondrian"}
    with pytest.raises(HierarchyError, match="1 value is not a number") as found:
        shoal.anonymize(table, wish)
    assert "old" not in str(found.value)


def test_a_column_with_one_value_and_one_with_nulls_alone_stay_as_they_are() -> None:
    table = pd.DataFrame({"one": ["x"] * 6, "none": [None] * 6, "n": [1, 2, 3, 4, 5, 6]})
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in table}
    for algorithm in ("mondrian", {"auto": {"refine": True}}):
        wish = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}], "algorithm": algorithm}
        rows = shoal.anonymize(table, wish).table
        assert set(rows["one"]) == {"x"}
        assert rows["none"].isna().all()
    assert Counter(rows["n"]) == {"*": 6}


# Ranges that look alike, values that are equal, and what a recipe no longer covers


def test_ends_that_are_unknown_tell_nothing_and_apply_again(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    age = pd.array(random.integers(20, 90, 60), dtype="Int64")
    age[random.choice(60, 6, replace=False)] = pd.NA
    table = pd.DataFrame({"age": age, "sex": random.choice(["f", "m"], 60)})
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}, "release_as": "bounds"},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}], "algorithm": "mondrian"}
    table.to_csv(tmp_path / "in.csv", index=False)
    release = shoal.anonymize(tmp_path / "in.csv", wish, output=tmp_path / "out.csv")
    book = pd.read_csv(release.codebook, keep_default_na=False)
    unknown = book.loc[(book.column == "age_lower, age_upper") & (book.label == "")]
    assert unknown.covers.tolist() == ["every value"]
    again = shoal.apply(release.recipe, tmp_path / "in.csv")
    assert again.suppressed == 0
    assert again.loss == pytest.approx(release.loss)
    assert again.to_dict()["proven"] == "acceptable"


@pytest.mark.parametrize("algorithm", ["mondrian", "contour"])
def test_bounds_of_nothing_but_nulls_are_empty(algorithm: str) -> None:
    table = pd.DataFrame({"c": pd.array([None] * 4, dtype="Int64"), "d": list("aabb")})
    columns = {
        "c": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}, "release_as": "bounds"},
        "d": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": algorithm}
    assert shoal.anonymize(table, wish).table["c_lower"].isna().all()


@pytest.mark.parametrize("metric", ["precision", "height", "coverage"])
def test_a_look_that_levels_share_counts_as_the_widest(metric: str) -> None:
    table = pd.DataFrame({"c": pd.array([None] * 4 + [1, 20, 40, 60], dtype="Int64"), "d": list("xxxxxxxx")})
    columns = {
        "c": {"role": "quasi-identifier", "hierarchy": {"intervals": [2]}, "release_as": "bounds"},
        "d": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 3}}], "metric": metric}
    finer = shoal.anonymize(table, wish | {"algorithm": {"auto": {"refine": True}}})
    assert finer.loss == pytest.approx(shoal.anonymize(table, wish).loss)


def test_ranges_of_times_cover_their_records() -> None:
    times = ["01.02.2020 9:00", "01.02.2020 10:00", "02.02.2020 8:00", "02.02.2020 11:00", "03.02.2020 9:30"]
    table = pd.DataFrame({"id": range(5), "t": times})
    rule = {"dates": ["day"], "format": "%d.%m.%Y %H:%M"}
    columns = {"id": {"role": "other"}, "t": {"role": "quasi-identifier", "hierarchy": rule}}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": "mondrian"}
    rows = shoal.anonymize(table, wish).table.set_index("id")["t"]
    assert rows[0] == rows[1] == "[01.02.2020 9:00-01.02.2020 10:00]"


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["3", "1", "1.0", "1", "2"], "flat"),
        ([-9, 1, 99, None, -9, -9, 99], {"intervals": [5], "unknown": [99, -9]}),
    ],
    ids=str,
)
def test_what_is_equal_is_never_cut_apart_and_applies_again(
    values: list[Any], rule: Any, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("c,d\n" + "".join(f"{'' if v is None else v},x\n" for v in values))
    columns = {
        "c": {"role": "quasi-identifier", "hierarchy": rule},
        "d": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    wish = {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 2}}],
        "algorithm": "mondrian",
        "metric": "coverage",
    }
    release = shoal.anonymize(path, wish, output=tmp_path / "out.csv")
    again = shoal.apply(release.recipe, path, output=tmp_path / "again.csv")
    assert Counter(pd.read_csv(again.output)["c"]) == Counter(pd.read_csv(tmp_path / "out.csv")["c"])
    assert again.loss == pytest.approx(release.loss)


def test_lost_records_count_as_wholly_lost(tmp_path: Path) -> None:
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in ("c", "g")}
    wish = {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": "60%",
        "algorithm": "mondrian",
    }
    old = pd.DataFrame({"c": range(1, 9), "g": list("aaaabbbb")})
    old.to_csv(tmp_path / "old.csv", index=False)
    release = shoal.anonymize(tmp_path / "old.csv", wish, output=tmp_path / "out.csv")
    new = pd.DataFrame({"c": [5, 5, 6, 6, 70, 80], "g": list("bbbbbb")})
    again = shoal.apply(release.recipe, new)
    assert again.suppressed == 2
    assert again.loss > 0


def test_no_cut_is_left_that_a_model_allows() -> None:
    table = pd.DataFrame({"age": [1, 2, 3, 4, 5, 6], "s": list("aaabba")})
    columns = {"age": {"role": "quasi-identifier", "hierarchy": "flat"}, "s": {"role": "sensitive"}}
    wish = {"columns": columns, "models": [{"distinct-l-diversity": {"l": 2}}], "algorithm": "mondrian"}
    assert set(shoal.anonymize(table, wish).table["age"]) == {"[1-4]", "[5-6]"}


def test_a_blank_is_told_from_what_is_missing() -> None:
    table = pd.DataFrame({"c": [None] * 20 + ["a"] * 5 + ["b"] * 5 + ["e", "f", "g"]})
    columns = {"c": {"role": "quasi-identifier", "hierarchy": "flat"}}
    wish = {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": "20%",
        "metric": "coverage",
    }
    node = shoal.anonymize(table, wish)
    release = shoal.anonymize(table, wish | {"algorithm": {"auto": {"cells": True}}})
    assert (node.suppressed, release.suppressed, release.cells) == (3, 0, 3)
    assert Counter(release.table["c"].fillna("")) == {"": 20, "a": 5, "b": 5, "*": 3}
    assert release.loss == pytest.approx(node.loss)  # a record of one column loses all of it either way


def test_sets_that_could_be_read_in_two_ways_are_written_apart() -> None:
    table = pd.DataFrame({"c": ["a", "b, c", "a, b", "c"], "n": [1, 1, 9, 9]})
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in table}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "algorithm": "mondrian"}
    assert len(set(shoal.anonymize(table, wish).table["c"])) == 2


@pytest.mark.parametrize(
    "spoil",
    [{"covers": [{"level": 1}]}, {"covers": [{"missing": True, "ends": ["x", "y"]}]}, {"covers": [3]}],
    ids=str,
)
def test_a_recipe_with_covers_that_say_nothing_is_refused(spoil: Any, data: Path) -> None:
    release = shoal.anonymize(
        data, policy(algorithm="mondrian", metric="coverage"), output=data.parent / "o.csv"
    )
    told = json.loads(Path(str(release.recipe)).read_text())
    told["regions"]["columns"]["age"] |= spoil
    with pytest.raises(PolicyError, match="The recipe is damaged"):
        shoal.apply(told, data)
    with pytest.raises(PolicyError, match="neither levels nor regions"):
        shoal.apply(told | {"regions": None}, data)
