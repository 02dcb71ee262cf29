"""Anatomy: groups of different sensitive values, in two tables that agree, and nothing more than they say."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.errors import CannotHonour, DataError, Infeasible, OutputError, PolicyError, UsageError
from shoal.policy.policy import Policy
from shoal.workflow.release.release import Release
from shoal.workflow.release.stage import second_table_path

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

SECRET = "SECRETVAL7"
Rows = list[dict[str, Any]]


def quasi(hierarchy: Any = "flat", **entries: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **entries}


COLUMNS: dict[str, Any] = {
    "name": {"role": "identifier"},
    "age": quasi({"intervals": [5, 10]}),
    "sex": quasi(),
    "illness": {"role": "sensitive"},
    "row": {"role": "other"},
}


def policy(l: float = 3, **entries: Any) -> dict[str, Any]:
    models = [{"distinct-l-diversity": {"l": l}}]
    return {"columns": COLUMNS, "models": models, "algorithm": "anatomy"} | entries


def people(illnesses: Sequence[str | None]) -> pa.Table:
    """A table of few combinations, so that many records look alike; `row` tells who is who."""
    number = len(illnesses)
    return pa.table(
        {
            "name": [f"{SECRET}{i}" for i in range(number)],
            "age": [20 + i * 7 % 5 for i in range(number)],
            "sex": ["fm"[i % 2] for i in range(number)],
            "illness": pa.array(illnesses, pa.string()),
            "row": list(range(number)),
        }
    )


MANY = [f"{SECRET}{i * i % 11}" for i in range(132)]


def tables(release: Release) -> tuple[Rows, Rows]:
    return release.table.to_pylist(), release.sensitive_table.to_pylist()


def held(second: Rows) -> dict[int, Counter[Any]]:
    """The values of each group, by the second table."""
    found: dict[int, Counter[Any]] = {}
    for row in second:
        found.setdefault(row["illness_group"], Counter())[row["illness"]] += row["records"]
    return found


# What the two tables are


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    values=st.lists(st.sampled_from(["flu", "cold", "gout", "asthma", None]), min_size=1, max_size=40),
    l=st.integers(1, 4),
)
def test_every_group_has_l_different_values_and_every_record_is_there_once(
    values: list[str | None], l: int
) -> None:
    table = people(values)
    most, groups = max(Counter(values).values()), len(values) // l
    if most > groups:
        with pytest.raises(Infeasible):
            shoal.anonymize(table, policy(l))
        return
    release = shoal.anonymize(table, policy(l))
    first, second = tables(release)
    by_group = held(second)
    assert release.table.column_names == ["age", "sex", "illness_group", "row"]
    assert release.sensitive_table.column_names == ["illness_group", "illness", "records"]
    assert [row["illness_group"] for row in second] == sorted(row["illness_group"] for row in second)
    assert all(len(found) >= l and max(found.values()) == 1 for found in by_group.values())
    assert {group: found.total() for group, found in by_group.items()} == Counter(
        row["illness_group"] for row in first
    )
    assert sorted(by_group) == list(range(1, groups + 1))
    original = {row["row"]: row for row in table.to_pylist()}
    assert sorted(row["row"] for row in first) == sorted(original)
    for row in first:
        true = original[row["row"]]
        assert (row["age"], row["sex"]) == (true["age"], true["sex"])
        assert true["illness"] in by_group[row["illness_group"]]
    # Group by group the values of its records are exactly those that the second table tells.
    truth = Counter((row["illness_group"], original[row["row"]]["illness"]) for row in first)
    assert truth == Counter({(g, value): n for g, found in by_group.items() for value, n in found.items()})
    assert (release.records, release.suppressed, release.loss) == (len(values), 0, 0.0)
    assert release.levels is None
    assert (release.verification.classes, release.verification.records) == (groups, len(values))
    assert release.verification.smallest_class == len(values) // groups


def test_a_value_that_is_missing_is_a_value_of_its_own() -> None:
    first, second = tables(shoal.anonymize(people(["flu", "cold", None] * 4), policy(3)))
    assert all(found == Counter(["flu", "cold", None]) for found in held(second).values())
    assert len(held(second)) == 4
    assert len(first) == 12


def test_a_value_that_is_too_frequent_is_told_without_its_name() -> None:
    values = [SECRET] * 5 + [f"{SECRET}{i}" for i in range(7)]
    with pytest.raises(Infeasible) as caught:
        shoal.anonymize(people(values), policy(3))
    assert caught.value.nearest == {"l": 2}
    assert str(caught.value) == (
        "Column 'illness': the most frequent value has 5 of 12 records, and groups of 3 different values "
        "allow 4. Use l=2."
    )
    assert shoal.anonymize(people(values), policy(2)).verification.verified
    with pytest.raises(Infeasible, match="No l above 1 is possible") as caught:
        shoal.anonymize(people(["flu"] * 9 + ["cold"] * 3), policy(2))
    assert caught.value.nearest == {}


# What is left to chance


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "unique"])
def test_which_record_goes_to_which_group_is_left_to_chance(alike: bool) -> None:
    table = people(MANY)
    if not alike:
        table = table.set_column(1, "age", pa.array(range(len(MANY))))
    groups = []
    for _ in range(2):
        first, _second = tables(shoal.anonymize(table, policy(3)))
        groups.append({row["row"]: row["illness_group"] for row in first})
    together = [{(a, b) for a in found for b in found if a < b and found[a] == found[b]} for found in groups]
    assert together[0] != together[1]
    assert len(together[0] & together[1]) < len(together[0]) / 2


def test_the_order_of_rows_does_not_tell() -> None:
    """In a group of two the record that comes first has the value that comes first as often as not."""
    number = 400
    table = people([f"{SECRET}{i % 2}" for i in range(number)])
    first, second = tables(shoal.anonymize(table, policy(2)))
    assert [row["illness_group"] for row in first] == sorted(row["illness_group"] for row in first)
    leading = {row["illness_group"]: row["row"] for row in reversed(first)}
    agreeing = sum(leading[row["illness_group"]] % 2 == 0 for row in second[::2])
    assert 60 < agreeing < 140  # of 200
    early = [row["row"] for row in first[: number // 2]]
    assert abs(sum(early) / len(early) - number / 2) < number / 8  # 4 deviations


# What it refuses, as data

UNLEVELLED: dict[str, tuple[dict[str, Any], str]] = {
    "k": ({"models": [{"k-anonymity": {"k": 2}}]}, "nobody is hidden among k"),
    "k beside l": (
        {"models": [{"distinct-l-diversity": {"l": 2}}, {"k-anonymity": {"k": 2}}]},
        "nobody is hidden among k",
    ),
    "p-sensitive": ({"models": [{"p-sensitive": {"p": 2, "k": 3}}]}, "nobody is hidden among k"),
    "alpha-k": ({"models": [{"alpha-k-anonymity": {"alpha": 0.5, "k": 2}}]}, "nobody is hidden among k"),
    "average risk": (
        {"models": [{"distinct-l-diversity": {"l": 2}}, {"average-risk": {"risk": 0.5}}]},
        "nobody is hidden among k",
    ),
    "units": (
        {"models": [{"distinct-l-diversity": {"l": 2}}, {"k-anonymity": {"k": 2, "unit": "name"}}]},
        "no persons are counted",
    ),
    "height": ({"metric": "height"}, "its metric needs levels"),
    "precision": ({"metric": "precision"}, "its metric needs levels"),
    "max_level": (
        {"columns": COLUMNS | {"age": quasi({"intervals": [5, 10]}, max_level=1)}},
        "max_level, min_level, same_level and fixed levels do not apply",
    ),
    "bounds": (
        {"columns": COLUMNS | {"age": quasi({"intervals": [5, 10]}, release_as="bounds")}},
        "release_as: bounds does not apply",
    ),
}


@pytest.mark.parametrize("wish", UNLEVELLED)
def test_what_is_said_of_quasi_identifiers_is_refused(wish: str) -> None:
    entries, reason = UNLEVELLED[wish]
    with pytest.raises(CannotHonour, match=reason) as caught:
        shoal.anonymize(people(MANY), policy(3, **entries))
    advice = "Use distinct-l-diversity instead, or use another" if "among k" in reason else "Use 'contour' or"
    assert advice in str(caught.value)


def test_fixed_levels_are_refused() -> None:
    with pytest.raises(CannotHonour, match="fixed levels do not apply"):
        shoal.anonymize(people(MANY), policy(), node={"age": 1})


def test_a_population_is_refused(tmp_path: Path) -> None:
    from shoal.engines.duckdb.engine import DuckDb

    engine, table = DuckDb(), people(MANY)
    engine.write(engine.open(table), engine.target(tmp_path / "all.csv"))
    models = [
        {"distinct-l-diversity": {"l": 2}},
        {"k-map": {"k": 2, "population": str(tmp_path / "all.csv")}},
    ]
    with pytest.raises(CannotHonour, match="nobody is hidden in a population"):
        shoal.anonymize(table, policy(models=models))


def test_exactly_one_column_is_sensitive() -> None:
    two = COLUMNS | {"row": {"role": "sensitive"}}
    models = [{"distinct-l-diversity": {"l": 2, "column": "illness"}}]
    with pytest.raises(PolicyError, match=r"exactly one column must be sensitive.*The policy has 2"):
        shoal.anonymize(people(MANY), policy(columns=two, models=models))
    none = COLUMNS | {"illness": {"role": "other"}}
    with pytest.raises(PolicyError, match=r"exactly one column must be sensitive.*The policy has 0"):
        shoal.anonymize(people(MANY), policy(columns=none, models=[{"k-anonymity": {"k": 2}}]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("row", "Illness_Group", "has a name that the groups"), ("illness", "Records", "of its own")],
)
def test_names_that_the_tables_need_are_refused(old: str, new: str, words: str) -> None:
    columns = {new if name == old else name: column for name, column in COLUMNS.items()}
    table = people(MANY).rename_columns(list(columns))
    with pytest.raises(PolicyError, match=words):
        shoal.anonymize(table, policy(columns=columns))


# Models


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ({"entropy-l-diversity": {"l": 2.5}}, 3),
        ({"recursive-cl-diversity": {"c": 2, "l": 3}}, 3),
        ({"recursive-cl-diversity": {"c": 0.5, "l": 3}}, 5),  # 1 < 0.5 x 3
        ({"t-closeness": {"t": 0.3}}, 7),
        ({"basic-beta-likeness": {"beta": 1}}, 5),
    ],
)
def test_groups_are_as_small_as_the_models_allow(model: dict[str, Any], least: int) -> None:
    even = [f"v{i % 10}" for i in range(200)]
    release = shoal.anonymize(people(even), policy(models=[model]))
    assert release.verification.verified
    assert 200 // release.verification.classes == release.verification.smallest_class >= least
    _, second = tables(release)
    assert all(max(found.values()) == 1 for found in held(second).values())


def test_what_no_groups_satisfy_is_told() -> None:
    with pytest.raises(Infeasible, match=r"groups of up to 2 different values.*do not satisfy all models"):
        shoal.anonymize(people(["a", "b", "b", "c"] * 5), policy(models=[{"t-closeness": {"t": 0.0}}]))


@pytest.mark.parametrize("metric", ["class-size", "coverage", "discernibility", "discernibility-star"])
def test_other_metrics_measure_the_groups(metric: str) -> None:
    release = shoal.anonymize(people(["a", "b", "c"] * 10), policy(3, metric=metric))
    expected = {"class-size": 1.0, "coverage": 0.0, "discernibility": 90.0, "discernibility-star": 90.0}
    assert release.loss == expected[metric]


def test_there_is_nothing_to_mask() -> None:
    release = shoal.anonymize(people(["a", "b", "c"] * 10), policy(3, suppressed="mask", suppression_limit=5))
    assert (release.suppressed, release.masked, release.verification.masked) == (0, 0, 0)


# Files


def written(table: pa.Table, path: Path) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(["" if cell is None else cell for cell in row.values()] for row in table.to_pylist())
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    written(people([*MANY, *[None] * 12]), tmp_path / "people.csv")
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy()), encoding="utf-8")
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def asked(desk: Path, output: str, *options: object) -> Result:
    return run(
        "anonymize",
        desk / "people.csv",
        "--policy",
        desk / "policy.yaml",
        "--output",
        desk / output,
        *options,
    )


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"])
def test_the_second_table_is_written_beside_the_release(desk: Path, ending: str) -> None:
    done = asked(desk, f"out{ending}", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["sensitive_table"] == str(desk / f"out.sensitive{ending}")
    assert (told["levels"], told["verified"], told["classes"], told["smallest_class"]) == (None, True, 48, 3)
    names = {f"out{ending}", f"out{ending}.private", f"out{ending}.codebook.csv", f"out.sensitive{ending}"}
    assert {path.name for path in desk.iterdir()} == {"people.csv", "policy.yaml", *names}
    assert {path.name for path in (desk / f"out{ending}.private").iterdir()} == {"recipe.json", "audit.json"}
    checked = run("verify", desk / f"out{ending}", "--policy", desk / "policy.yaml", "--json")
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["classes"] == 48
    recipe = json.loads((desk / f"out{ending}.private" / "recipe.json").read_text())
    assert (recipe["levels"], recipe["regions"]) == (None, None)


def test_what_is_shown_tells_of_both_tables(desk: Path) -> None:
    done = asked(desk, "out.csv", "--mapping")
    assert done.exit_code == 0, done.output
    assert "second table" in done.stdout
    assert "out.sensitive.csv" in done.stdout
    assert "illness_group" in done.stdout
    assert SECRET not in done.output
    book = (desk / "out.csv.codebook.csv").read_text()
    assert "illness_group,,,a second table holds each group's values of illness" in book
    assert SECRET not in book
    with open(desk / "out.csv.private" / "mapping" / "combinations.csv", newline="") as file:
        mapped = Counter((r["age"], r["sex"], r["illness"]) for r in csv.DictReader(file))
    with open(desk / "people.csv", newline="") as file:
        assert mapped == Counter((r["age"], r["sex"], r["illness"]) for r in csv.DictReader(file))


def test_a_frame_comes_back_as_two_frames() -> None:
    import pandas as pd
    import polars

    table = people(MANY)
    for frame, kind in ((table.to_pandas(), pd.DataFrame), (polars.from_arrow(table), polars.DataFrame)):
        release = shoal.anonymize(frame, policy())
        assert isinstance(release.table, kind)
        assert isinstance(release.sensitive_table, kind)
        assert shoal.verify(release.table, policy(), sensitive_table=release.sensitive_table).verified


def test_new_data_are_grouped_anew(desk: Path) -> None:
    assert asked(desk, "out.csv").exit_code == 0
    again = run(
        "apply", desk / "out.csv.private", desk / "people.csv", "--output", desk / "new.csv", "--json"
    )
    assert again.exit_code == 0, again.output
    told = json.loads(again.stdout)
    assert told["sensitive_table"] == str(desk / "new.sensitive.csv")
    assert told["classes"] == 48
    assert (desk / "new.sensitive.csv").read_bytes() != (desk / "out.sensitive.csv").read_bytes()
    assert shoal.verify(desk / "new.csv", policy()).verified


def test_a_second_table_that_exists_is_not_replaced_without_force(desk: Path) -> None:
    (desk / "out.sensitive.csv").write_text("mine")
    with pytest.raises(OutputError, match=r"exists\. Use force=True"):
        shoal.anonymize(desk / "people.csv", policy(), output=desk / "out.csv")
    assert (desk / "out.sensitive.csv").read_text() == "mine"
    shutil.copy(desk / "people.csv", desk / "in.sensitive.csv")
    with pytest.raises(OutputError, match="is the input and would be replaced"):
        shoal.anonymize(desk / "in.sensitive.csv", policy(), output=desk / "in.csv", force=True)


def test_a_release_of_another_kind_takes_the_second_table_away(desk: Path) -> None:
    shoal.anonymize(desk / "people.csv", policy(), output=desk / "out.csv")
    other = policy(models=[{"k-anonymity": {"k": 3}}], algorithm="auto")
    release = shoal.anonymize(desk / "people.csv", other, output=desk / "out.csv", force=True)
    assert not (desk / "out.sensitive.csv").exists()
    assert release.to_dict()["sensitive_table"] is None
    shoal.anonymize(desk / "people.csv", policy(), output=desk / "out.csv", force=True)
    assert shoal.verify(desk / "out.csv", policy()).verified


# Verification


@pytest.fixture(scope="module")
def good() -> tuple[pa.Table, pa.Table]:
    release = shoal.anonymize(people(MANY), policy())
    return release.table, release.sensitive_table


def edited(table: pa.Table, change: Callable[[Rows], Any]) -> pa.Table:
    rows = table.to_pylist()
    change(rows)
    return pa.Table.from_pylist(rows, schema=table.schema)


def same_value(rows: Rows) -> None:
    rows[1]["illness"] = rows[0]["illness"]


def more_records(rows: Rows) -> None:
    rows[0]["records"] += 1


def fewer_groups(rows: Rows) -> None:
    del rows[:3]


def swapped(rows: Rows) -> None:
    """Move a record's value to another group, both counts told as they should be."""
    rows[0]["illness_group"] = rows[-1]["illness_group"]


def no_group(rows: Rows) -> None:
    for row in rows[:3]:
        row["illness_group"] = None


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (same_value, {"distinct-l-diversity: 3 records in 1 class violate it"}),
        (more_records, {"1 groups have a different number of records in the second table"}),
        (fewer_groups, {"1 groups of the release are not in the second table"}),
        (
            swapped,
            {
                "2 groups have a different number of records in the second table",
                "distinct-l-diversity: 2 records in 1 class violate it",
            },
        ),
        (
            no_group,
            {
                "1 groups of the release are not in the second table",
                "1 groups of the second table are not in the release",
                "some records have no group",
            },
        ),
    ],
)
def test_a_second_table_that_was_touched_is_found(
    good: tuple[pa.Table, pa.Table], change: Callable[[Rows], Any], reasons: set[str]
) -> None:
    first, second = good
    assert shoal.verify(first, policy(), sensitive_table=second).verified
    found = shoal.verify(first, policy(), sensitive_table=edited(second, change))
    assert not found.verified
    assert set(found.reasons) == reasons


def test_a_release_that_was_touched_is_found(good: tuple[pa.Table, pa.Table]) -> None:
    first, second = good
    found = shoal.verify(first.slice(3), policy(), sensitive_table=second)
    assert found.reasons == ("1 groups of the second table are not in the release",)
    for name, words in (
        ("illness", "sensitive column 'illness' is in the release itself"),
        ("name", "ident"),
    ):
        more = first.append_column(name, pa.array([SECRET] * len(first)))
        found = shoal.verify(more, policy(), sensitive_table=second)
        assert not found.verified
        assert words in found.reasons[0]
    more = first.append_column("extra", pa.array([1] * len(first)))
    with pytest.raises(PolicyError, match="1 column that the policy does not name"):
        shoal.verify(more, policy(), sensitive_table=second)
    with pytest.raises(PolicyError, match="lacks columns of the policy: 'illness_group'"):
        shoal.verify(first.drop_columns(["illness_group"]), policy(), sensitive_table=second)


def test_a_second_table_that_is_none_is_refused(good: tuple[pa.Table, pa.Table], desk: Path) -> None:
    first, second = good
    with pytest.raises(UsageError, match="Give it as sensitive_table"):
        shoal.verify(first, policy())
    with pytest.raises(PolicyError, match="'illness_group', 'illness', 'records' and no others"):
        shoal.verify(first, policy(), sensitive_table=second.append_column("age", second["records"]))
    with pytest.raises(DataError, match="whole numbers above 0"):
        shoal.verify(first, policy(), sensitive_table=edited(second, lambda rows: rows[0].update(records=0)))
    with pytest.raises(UsageError, match="makes no second table"):
        shoal.verify(first, policy(algorithm="auto"), sensitive_table=second)
    with pytest.raises(PolicyError, match="nobody is hidden among k"):
        shoal.verify(first, policy(models=[{"k-anonymity": {"k": 2}}]), sensitive_table=second)
    assert asked(desk, "out.csv").exit_code == 0
    (desk / "out.sensitive.csv").rename(desk / "elsewhere.csv")
    alone = run("verify", desk / "out.csv", "--policy", desk / "policy.yaml")
    assert alone.exit_code == 2
    assert "--sensitive-table" in alone.stderr
    with pytest.raises(DataError, match=r"there is no .*out\.sensitive\.csv"):
        shoal.verify(desk / "out.csv", policy())
    options = ("--policy", desk / "policy.yaml", "--sensitive-table", desk / "elsewhere.csv")
    assert run("verify", desk / "out.csv", *options).exit_code == 0


def test_the_whole_input_is_compared_with_where_a_model_does(desk: Path) -> None:
    close = policy(models=[{"t-closeness": {"t": 0.6}}])
    release = shoal.anonymize(desk / "people.csv", close, output=desk / "out.csv")
    assert shoal.verify(desk / "out.csv", close).unchecked
    assert shoal.verify(desk / "out.csv", close, recipe=release.recipe).verified
    assert shoal.verify(desk / "out.csv", close, reference=desk / "people.csv").verified


# Beside other searches


def test_it_is_compared_with_the_others() -> None:
    found = shoal.compare(people(MANY), policy(), algorithms=["anatomy", "contour"])
    rows = {row.algorithm: row for row in found.rows}
    assert rows["anatomy"].loss == 0.0
    assert rows["anatomy"].levels is None
    assert rows["contour"].loss is not None
    with_k = shoal.compare(people(MANY), policy(), algorithms="anatomy", k=3)
    assert "nobody is hidden among k" in with_k.rows[0].note
    two = policy(
        columns=COLUMNS | {"row": {"role": "sensitive"}},
        models=[{"distinct-l-diversity": {"l": 2, "column": "illness"}}],
    )
    refused = shoal.compare(people(MANY), two, algorithms="anatomy")
    assert refused.rows[0].note.startswith(
        "refused: With algorithm anatomy exactly one column must be sensitive"
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("a.csv", "a.sensitive.csv"), ("A.B.CSV.GZ", "A.B.sensitive.CSV.GZ")]
)
def test_the_second_table_is_named_after_the_release(name: str, expected: str) -> None:
    assert (
        second_table_path(Path("x") / name, ".csv.gz" if name.endswith("GZ") else ".csv")
        == Path("x") / expected
    )


def test_a_policy_with_anatomy_survives_yaml() -> None:
    one = Policy.load(policy())
    assert Policy.load(yaml.safe_load(one.to_yaml())) == one
