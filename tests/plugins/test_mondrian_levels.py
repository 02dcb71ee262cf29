"""Mondrian between min_level and max_level: every class against naive definitions of the groups."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.errors import CannotHonour, Infeasible

QUASI = {"role": "quasi-identifier"}
TREE = {"south": ["it", "es"], "north": {"nordic": ["se", "no"], "baltic": ["ee"]}}
LANDS = {
    "it": ("it", "it", "south", "*"), "es": ("es", "es", "south", "*"),
    "se": ("se", "nordic", "north", "*"), "no": ("no", "nordic", "north", "*"),
    "ee": ("ee", "baltic", "north", "*"), None: (None, "missing", "missing", "*"),
}  # fmt: skip
AGES = [20, 21, 22, 30, 31, 47, 60, 99, None]
DAYS = ["2020-01-05", "2020-01-20", "2020-02-01", "2021-02-01", "2021-07-30", "2023-01-01"]
BANDS = (5, 10, 40)
HEIGHTS = {"age": 4, "land": 3, "day": 3, "code": 2}
CODES = {"1": "odd", "2": "even", "3": "odd", "4": "even", "5": "odd"}  # groups that do not adjoin on a scale


def group(name: str, level: int, value: Any) -> Any:
    """The group of a value at a level, by definition."""
    if level == HEIGHTS[name]:
        return "*"
    if name == "land":
        return LANDS[value][level]
    if name == "code":
        return (value, CODES[value])[level]
    if name == "day":
        return (value, value[:7], value[:4])[level]
    if level == 0:
        return value
    return value if value in (None, 99) else value // BANDS[level - 1]


def covers(name: str, label: Any, value: Any) -> bool:
    """Whether a label stands for a value, as an analyst would read it."""
    if label is None:
        return value is None
    if label.startswith("{"):
        return any(covers(name, part, value) for part in label.strip("{}").split(", "))
    if " or " in label:
        return any(covers(name, part, value) for part in label.split(" or "))
    if label == "*":
        return True
    if value is None or label == "missing":
        return label == "missing" and value in (None, *([99] if name == "age" else []))
    if name == "age" and value == 99:
        return label == "99"
    if name == "age":
        ends = [int(end) for end in re.findall(r"\d+", label)]
        return ends[0] <= value <= ends[-1]
    if name == "day":
        years = re.fullmatch(r"\[(\d{4})-(\d{4})\]", label)
        ends = years.groups() if years else label.strip("[]").split(" to ")
        return ends[0] <= value[: len(ends[0])] and value[: len(ends[-1])] <= ends[-1]
    if name == "code" and label.startswith("["):
        return label[1] <= value <= label[3]
    return label in [group(name, level, value) for level in range(HEIGHTS[name])]


@st.composite
def limits(draw: Any) -> dict[str, dict[str, int]]:
    """The least and the greatest level of each column; often none."""
    chosen = {}
    for name, height in HEIGHTS.items():
        low = draw(st.sampled_from([0, 0, *range(height + 1)]))
        high = draw(st.sampled_from([height, height, *range(low, height + 1)]))
        chosen[name] = {"min_level": low, "max_level": high}
    return chosen


@st.composite
def tables(draw: Any) -> pd.DataFrame:
    rows = draw(st.integers(6, 60))

    def column(values: list[Any]) -> Any:
        return draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))

    return pd.DataFrame(
        {
            "id": range(rows),
            "age": pd.array(column(AGES), dtype="Int64"),
            "land": column(list(LANDS)),
            "day": column(DAYS),
            "code": column(list(CODES)),
            "ill": column(["a", "b", "c"]),
        }
    )


def policy(levels: dict[str, dict[str, int]], **changes: Any) -> dict[str, Any]:
    listed = {"odd": ["1", "3", "5"], "even": ["2", "4"]}
    rules = {
        "age": {"intervals": list(BANDS), "unknown": [99]},
        "land": {"tree": TREE},
        "day": {"dates": ["month", "year"]},
        "code": {"tree": listed},
    }
    columns: dict[str, Any] = {"id": {"role": "other"}, "ill": {"role": "sensitive"}}
    for name, rule in rules.items():
        columns[name] = {**QUASI, "hierarchy": rule, **levels.get(name, {})}
    return {
        "columns": columns,
        "models": [{"k-anonymity": {"k": 2}}],
        "metric": "coverage",
        "algorithm": "mondrian",
    } | changes


def cells(table: pd.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    columns = [[None if pd.isna(cell) else cell for cell in table[name]] for name in names]
    return list(zip(*columns, strict=True))


def beginning(table: pd.DataFrame, levels: dict[str, dict[str, int]]) -> dict[Any, list[int]]:
    """The positions of the records of each combination of groups at max_level."""
    found = defaultdict(list)
    for position, row in enumerate(cells(table, list(HEIGHTS))):
        key = tuple(
            group(name, levels[name]["max_level"], value) for name, value in zip(HEIGHTS, row, strict=True)
        )
        found[key].append(position)
    return found


OPTIONS = [
    {},
    {"choose": "loss"},
    {"choose": "entropy", "categorical": "hierarchy"},
    {"relaxed": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=examples(60), deadline=None)
@given(table=tables(), levels=limits(), k=st.integers(2, 4), l=st.integers(1, 2), share=st.integers(0, 60))
def test_classes_keep_both_levels_and_the_models(
    options: dict[str, Any], table: pd.DataFrame, levels: Any, k: int, l: int, share: int
) -> None:
    l = 1 if "relaxed" in options else l
    models = [{"k-anonymity": {"k": k}}, *([{"distinct-l-diversity": {"l": l}}] if l > 1 else [])]
    wish = policy(levels, models=models, suppression_limit=f"{share}%", algorithm={"mondrian": options})
    failing = [
        inside
        for inside in beginning(table, levels).values()
        if len(inside) < k or table["ill"].iloc[inside].nunique() < l
    ]
    lost = {position for inside in failing for position in inside}
    if len(lost) > share * len(table) // 100 or len(lost) == len(table):
        with pytest.raises(Infeasible):
            shoal.anonymize(table, wish)
        return
    release = shoal.anonymize(table, wish)
    rows = release.table
    assert set(range(len(table))) - set(rows["id"]) == lost
    assert release.suppressed == len(lost)
    classes = defaultdict(list)
    for shown, position in zip(cells(rows, list(HEIGHTS)), rows["id"], strict=True):
        classes[tuple(None if cell is None else str(cell) for cell in shown)].append(position)
    origin = cells(table, list(HEIGHTS))
    for shown, inside in classes.items():
        assert len(inside) >= k
        assert table["ill"].iloc[inside].nunique() >= l
        for column, (name, label) in enumerate(zip(HEIGHTS, shown, strict=True)):
            low, high = levels[name]["min_level"], levels[name]["max_level"]
            values = {origin[position][column] for position in inside}
            assert len({group(name, high, value) for value in values}) == 1
            domain = {row[column] for row in origin}
            covered = {value for value in domain if covers(name, label, value)}
            if low:  # the groups of 99 and of what is missing have labels of their own
                covered -= {99} if name == "age" and label != "*" and "99" not in label else set()
            assert values <= covered, (name, label)
            groups = {group(name, low, value) for value in covered}
            whole = {value for value in domain if group(name, low, value) in groups}
            assert not low or covered == whole, label
            # Without a limit 99 is released as what is missing; so it may seem where it is not.
            covered -= {99, None} if name == "age" else set()
            assert len({group(name, high, value) for value in covered}) <= 1, label


@settings(max_examples=examples(20), deadline=None)
@given(table=tables(), levels=limits())
def test_a_recipe_makes_the_same_release_again(table: pd.DataFrame, levels: Any) -> None:
    wish = policy(levels, suppression_limit="60%")
    with TemporaryDirectory() as folder:
        table.to_csv(Path(folder) / "in.csv", index=False)
        try:
            release = shoal.anonymize(Path(folder) / "in.csv", wish, output=Path(folder) / "out.csv")
        except Infeasible:
            return
        shoal.apply(release.recipe, Path(folder) / "in.csv", output=Path(folder) / "again.csv")
        lines = [sorted((Path(folder) / name).read_text().splitlines()) for name in ("again.csv", "out.csv")]
    assert lines[0] == lines[1]


@settings(max_examples=examples(20), deadline=None)
@given(table=tables(), low=st.integers(0, 4), high=st.integers(0, 4))
def test_bounds_keep_both_levels(table: pd.DataFrame, low: int, high: int) -> None:
    high = max(low, high)
    wish = policy({"age": {"min_level": low, "max_level": high}}, suppression_limit="60%")
    wish["columns"]["age"]["release_as"] = "bounds"
    try:
        rows = shoal.anonymize(table, wish).table.set_index("id")
    except Infeasible:
        return
    for position, row in rows.iterrows():
        value, ends = table["age"][position], (row["age_lower"], row["age_upper"])
        if pd.isna(ends[0]) or pd.isna(ends[1]):
            assert pd.isna(value) or value == 99 or high == HEIGHTS["age"]
            continue
        assert ends[0] <= value <= ends[1]
        if 0 < low < HEIGHTS["age"]:
            width = BANDS[low - 1]
            assert ends[0] % width == 0
            assert (ends[1] + 1) % width == 0
        if 0 < high < HEIGHTS["age"]:
            assert len({int(end) // BANDS[high - 1] for end in ends}) == 1


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": range(60),
            "age": [AGES[i * 7 % 7] + i % 3 for i in range(60)],
            "land": [["it", "es", "se", "no", "ee"][i % 5] for i in range(60)],
            "day": [DAYS[i * i % 6] for i in range(60)],
            "code": [list(CODES)[i % 3] for i in range(60)],
            "ill": ["abc"[i % 3] for i in range(60)],
        }
    )


def test_neighbouring_bands_are_released_as_one_and_other_groups_as_a_range() -> None:
    table = people().assign(age=[20 + i % 40 for i in range(60)])
    wish = policy({"age": {"min_level": 2}, "day": {"min_level": 1}}, models=[{"k-anonymity": {"k": 25}}])
    rows = shoal.anonymize(table, wish).table
    assert set(rows["age"]) <= {
        "20-29",
        "20-39",
        "20-49",
        "20-59",
        "30-39",
        "30-59",
        "40-59",
        "40-49",
        "50-59",
    }
    assert any(re.fullmatch(r"\[20\d\d-\d\d to 20\d\d-\d\d\]", label) for label in set(rows["day"]))


def test_a_fixed_level_is_both_limits() -> None:
    rows = shoal.anonymize(people(), policy({}), node={"land": 2}).table
    assert set(rows["land"]) == {"south", "north"}


def test_same_level_is_refused_with_its_reason() -> None:
    wish = policy({}, same_level=[["land", "day"]])
    with pytest.raises(CannotHonour) as caught:
        shoal.anonymize(people(), wish)
    assert str(caught.value) == (
        "Algorithm 'mondrian' cannot honour this policy: same_level needs a level of every column, "
        "and a range has none. Use 'contour' or 'auto'."
    )


def test_groups_that_fail_are_no_release_and_the_advice_works() -> None:
    table = people().assign(land=["ee", *["it", "es"] * 29, "it"])
    wish = policy({"land": {"max_level": 2}})
    with pytest.raises(Infeasible) as caught:
        shoal.anonymize(table, wish)
    needed = caught.value.nearest
    assert needed["suppression_limit"] == 1
    release = shoal.anonymize(table, wish | {"suppression_limit": 1})
    assert (release.suppressed, set(release.table["id"])) == (1, set(range(1, 60)))
    for name, level in needed["max_level"].items():
        wish["columns"][name]["max_level"] = level
    assert shoal.anonymize(table, wish).suppressed == 0


def test_files_that_go_with_the_release_are_right(tmp_path: Path) -> None:
    levels = {"age": {"min_level": 1, "max_level": 3}, "land": {"min_level": 1}, "code": {"max_level": 1}}
    wish = policy(levels | {"day": {"min_level": 2}}, suppression_limit="50%")
    people().to_csv(tmp_path / "in.csv", index=False)
    release = shoal.anonymize(tmp_path / "in.csv", wish, output=tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    book = pd.read_csv(release.codebook, dtype=str, keep_default_na=False)
    for name in HEIGHTS:
        listed = book[book.column == name]
        assert set(written[name]) <= set(listed.label) or set(listed.covers) == {"as is"}
    assert shoal.verify(tmp_path / "out.csv", wish).verified
    again = shoal.apply(release.recipe, tmp_path / "in.csv", output=tmp_path / "again.csv")
    assert again.loss == pytest.approx(release.loss)
    lines = [sorted((tmp_path / name).read_text().splitlines()) for name in ("again.csv", "out.csv")]
    assert lines[0] == lines[1]
    for told in ({"policy": wish}, {"recipe": release.recipe}):
        found = shoal.attack(tmp_path / "out.csv", tmp_path / "in.csv", list(HEIGHTS), **told)
        assert (found.below_k, found.singled_out) == (0, 0)
        assert found.matched >= release.records - release.suppressed


def test_a_weight_draws_the_cuts_to_its_column() -> None:
    table = pd.DataFrame({"a": [i % 8 for i in range(64)], "b": [i // 8 for i in range(64)]})
    for choose in ("width", "entropy", "loss"):
        distinct = []
        for weight in (1, 50):
            columns: dict[str, Any] = {name: {**QUASI, "hierarchy": "flat"} for name in table}
            columns["b"]["weight"] = weight
            wish = {"columns": columns, "models": [{"k-anonymity": {"k": 8}}], "metric": "coverage"}
            rows = shoal.anonymize(table, wish | {"algorithm": {"mondrian": {"choose": choose}}}).table
            distinct.append(rows["b"].nunique())
        assert distinct[0] < distinct[1] == 8


def test_a_first_policy_with_known_and_needed_columns_works() -> None:
    table = people()[["age", "land", "ill"]]
    first = shoal.init(table, known=["age", "land"], keep=["age", "ill"], k=3)
    levels = {name: column.max_level for name, column in first.columns.items()}
    assert levels["age"] is not None
    release = shoal.anonymize(table, first.with_(algorithm="mondrian"))
    assert release.retained_overall > 0.5
    assert len(release.table["age"].unique()) > 1


def test_groups_without_numbers_are_not_released_as_a_range() -> None:
    table = pd.DataFrame({"code": ["1", "1", "2"], "ill": ["a", "b", "c"]})
    columns = {
        "code": {**QUASI, "hierarchy": {"tree": {"odd": ["1"], "even": ["2"]}}, "min_level": 1},
        "ill": {"role": "sensitive"},
    }
    release = shoal.anonymize(table, policy({}) | {"columns": columns})
    assert set(release.table["code"]) == {"odd or even"}
