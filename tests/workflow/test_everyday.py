"""Everyday hands: recipes, codebooks, first policies, and looking at hierarchies."""

from __future__ import annotations

import csv
import json
import os
import pty
import stat
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pandas
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.columns.presets import policy_text
from shoal.core.hierarchy.builder import number_of as core_number_of
from shoal.errors import (
    DataError,
    HierarchyError,
    Infeasible,
    OutputError,
    PolicyError,
    UnknownName,
    UsageError,
)
from shoal.sample import bundled
from shoal.workflow.inspect import guess, labels_by_level


def quasi(hierarchy: Any, **entries: Any) -> dict[str, Any]:
    return {"role": "quasi-identifier", "hierarchy": hierarchy, **entries}


def rows_of(path: Path) -> Counter[tuple[str, ...]]:
    with open(path, newline="", encoding="utf-8") as file:
        return Counter(map(tuple, csv.reader(file)))


def small(**entries: Any) -> dict[str, Any]:
    columns = {"age": quasi({"intervals": [10, 20]}), "city": quasi("flat"), "ill": {"role": "sensitive"}}
    return {"columns": columns, "models": [{"k-anonymity": {"k": 3}}], "suppression_limit": "20%", **entries}


def people(ages: list[float | None], cities: str = "AAAABBBB") -> pa.Table:
    letters = [cities[i % len(cities)] for i in range(len(ages))]
    return pa.table({"age": ages, "city": letters, "ill": ["x", "y"] * (len(ages) // 2)})


AGES = [1, 2, 3, 4, 11, 12, 13, 14, 1, 2, 3, 4, 11, 12, 13, 14]


# Recipes


def test_a_recipe_applied_to_the_same_data_gives_the_same_rows(tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    release = shoal.anonymize(data, policy, output=tmp_path / "one.csv")
    again = shoal.apply(release.recipe, data, output=tmp_path / "two.csv")
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")
    assert again.levels == release.levels


@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    ages=st.lists(st.integers(0, 60) | st.none(), min_size=4, max_size=30).filter(lambda a: len(a) % 2 == 0),
    bounds=st.booleans(),
    suppressed=st.sampled_from(["drop", "mask"]),
)
def test_a_recipe_is_the_release_again(
    tmp_path: Path, ages: list[Any], bounds: bool, suppressed: str
) -> None:
    policy = small(suppressed="drop" if bounds else suppressed)
    policy["columns"]["age"] |= {"release_as": "bounds"} if bounds else {}
    try:
        release = shoal.anonymize(people(ages), policy, output=tmp_path / "one.csv", force=True)
    except Infeasible:
        return
    shoal.apply(release.recipe, people(ages), output=tmp_path / "two.csv", force=True)
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")


def test_new_data_are_recoded_by_the_rule_and_keep_the_style_of_labels(tmp_path: Path) -> None:
    release = shoal.anonymize(people(AGES), small(), output=tmp_path / "r.csv", node={"age": 1})
    recipe = shoal.Recipe.load(release.recipe)
    new = shoal.apply(recipe, people([21.5, 22, 23, 24] * 4), output=tmp_path / "new.csv")
    assert set(new.labels["age"]) == {"20-29"}


def test_a_recipe_that_no_longer_holds_is_refused_and_says_what_would_do(tmp_path: Path) -> None:
    release = shoal.anonymize(people(AGES), small(), output=tmp_path / "r.csv")
    unlike = people([5, 15, 25, 35, 45, 55, 65, 75])
    with pytest.raises(Infeasible, match="no longer holds") as caught:
        shoal.apply(release.recipe, unlike, output=tmp_path / "new.csv")
    assert caught.value.nearest
    assert not (tmp_path / "new.csv").exists()
    found = CliRunner().invoke(
        app, ["apply", str(release.recipe), str(written(tmp_path, unlike)), "-o", str(tmp_path / "n.csv")]
    )
    assert found.exit_code == 1


def written(folder: Path, table: pa.Table) -> Path:
    from pyarrow import csv as arrow_csv

    arrow_csv.write_csv(table, folder / "written.csv")
    return folder / "written.csv"


def test_a_release_in_place_of_its_recipe_says_where_that_is(tmp_path: Path) -> None:
    data = written(tmp_path, people(AGES))
    shoal.anonymize(data, small(suppression_limit=0.5), output=tmp_path / "release.csv")
    with pytest.raises(PolicyError, match=r"is a release\. Its recipe is in .*release\.csv\.private"):
        shoal.apply(tmp_path / "release.csv", data)


def test_a_folder_in_place_of_a_table_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        shoal.anonymize(tmp_path, small())


def test_a_recipe_needs_none_of_the_files_of_its_policy(tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text("A;north\nB;south\n", encoding="utf-8")
    policy = small()
    policy["columns"]["city"] = quasi({"csv": str(tmp_path / "city.csv")})
    release = shoal.anonymize(people(AGES), policy, output=tmp_path / "r.csv")
    (tmp_path / "city.csv").unlink()
    assert shoal.apply(release.recipe, people(AGES)).levels == release.levels
    with pytest.raises(HierarchyError, match="1 value is not in the file") as caught:
        shoal.apply(release.recipe, people(AGES, "AAAABBBC"))
    assert caught.value.values == ("C",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("{}", r"This is not a recipe. Give recipe.json, from the private folder of a release."),
        ('{"recipe": 0}', "The recipe is of another version"),
        ('{"recipe": 1, "levels": null}', "lacks its levels or its hierarchies. Use an intact copy"),
    ],
)
def test_a_damaged_recipe_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "recipe.json").write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError, match=message):
        shoal.apply(tmp_path / "recipe.json", people(AGES))
    with pytest.raises(PolicyError, match="Cannot read the recipe"):
        shoal.apply(tmp_path / "nothing.json", people(AGES))


def test_a_table_in_place_of_a_recipe_is_told(tmp_path: Path) -> None:
    (tmp_path / "q2.csv").write_text("age,city\n41,A\n", encoding="utf-8")
    (tmp_path / "recipe.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        PolicyError, match=r"q2.csv' is a table, by its extension, and not a recipe. Are the two swap"
    ):
        shoal.apply(tmp_path / "q2.csv", tmp_path / "recipe.json")


# Codebook and mapping


def test_the_codebook_says_what_every_label_covers(tmp_path: Path) -> None:
    policy = small()
    policy["columns"]["city"] = quasi({"tree": {"north": ["A", "C"], "south": ["B"]}})
    release = shoal.anonymize(people(AGES), policy, output=tmp_path / "r.csv", node={"age": 1, "city": 1})
    assert release.codebook == tmp_path / "r.csv.codebook.csv"
    with open(release.codebook, newline="", encoding="utf-8") as file:
        book = {(row["column"], row["label"]): row for row in csv.DictReader(file)}
    assert book["city", "north"]["covers"] == "A; C"
    assert book["age", "0-9"]["covers"] == "numbers in 0-9"
    assert book["age", "0-9"]["level"] == "1"
    used = {(name, label) for name, labels in release.labels.items() for label in labels}
    assert set(book) == used


def test_the_mapping_is_private_and_tells_what_became_of_each_value(tmp_path: Path) -> None:
    shoal.anonymize(people(AGES), small(), output=tmp_path / "r.csv", node={"age": 1}, mapping=True)
    files = sorted((tmp_path / "r.csv.private" / "mapping").iterdir())
    assert [file.name for file in files] == ["01-age.csv", "02-city.csv"]
    assert rows_of(files[0])[("12", "10-19")] == 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_bounds_are_two_numeric_columns(tmp_path: Path) -> None:
    policy = small()
    policy["columns"]["age"] = quasi({"intervals": [10], "top_coding": 90}, release_as="bounds")
    table = people([1, 2, 3, 4, 95, 96, 97, 98, None, None, None, None, None, None, None, None])
    release = shoal.anonymize(table, policy, node={"age": 1, "city": 1})
    assert release.table.column_names == ["age_lower", "age_upper", "city", "ill"]
    assert release.table["age_lower"].type == pa.int64()
    ends = set(
        zip(release.table["age_lower"].to_pylist(), release.table["age_upper"].to_pylist(), strict=True)
    )
    assert ends == {(0, 9), (90, None), (None, None)}
    with pytest.raises(PolicyError, match="release_as bounds is for hierarchies of intervals or cuts"):
        shoal.Policy.load(small(columns={"city": quasi("flat", release_as="bounds")}))


# Looking at hierarchies


def test_a_value_climbs_to_the_top(tmp_path: Path) -> None:
    policy = shoal.Policy.load(small())
    assert labels_by_level(policy, "age", ["7", "13"]) == [
        ("7", "0-9", "0-19", "*"),
        ("13", "10-19", "0-19", "*"),
    ]
    with pytest.raises(UnknownName, match="Did you mean 'age'"):
        labels_by_level(policy, "agee", ["7"])


def test_all_hierarchies_are_checked_at_once(tmp_path: Path) -> None:
    policy = small()
    policy["columns"]["city"] = quasi({"tree": {"north": ["A"]}})
    policy["columns"]["age"] = quasi({"intervals": [5, 12]})
    found = shoal.check_hierarchies(people([*AGES[:-2], None, None]), policy)
    assert [one.column for one in found] == ["age", "city"]
    assert "splits a group" in (found[0].problem or "")
    assert "1 value is not covered" in (found[1].problem or "")
    assert found[1].values == ("B",)
    assert found[0].missing == 2
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    arguments = ["hierarchy", "check", str(written(tmp_path, people(AGES))), "--policy", str(path)]
    plain = CliRunner().invoke(app, [*arguments, "--json"])
    assert plain.exit_code == 2
    assert all("values" not in one for one in json.loads(plain.stdout)["columns"])
    shown = CliRunner().invoke(app, [*arguments, "--reveal"])
    assert "Values: 'B'" in shown.stderr
    assert "Values" not in CliRunner().invoke(app, arguments).stderr


def test_show_prints_how_labels_climb(tmp_path: Path) -> None:
    _, policy = bundled(tmp_path)
    call = ["hierarchy", "show", "--policy", str(policy), "--column", "age", "3", "95", "--json"]
    found = CliRunner().invoke(app, call)
    assert json.loads(found.stdout)["labels"][1] == ["95", "90+", "90+", "90+", "*"]


# A first policy


def test_a_first_policy_fits_the_sample(tmp_path: Path) -> None:
    data, _ = bundled(tmp_path)
    target = tmp_path / "first.yaml"
    done = CliRunner().invoke(app, ["init", str(data), "--output", str(target), "--yes"])
    assert done.exit_code == 0
    policy = shoal.Policy.load(target)
    roles = {name: column.role.value for name, column in policy.columns.items()}
    assert roles["name"] == roles["card_number"] == "identifier"
    assert roles["diagnosis"] == "sensitive"
    assert set(roles.values()) == {"identifier", "sensitive", "quasi-identifier"}
    units = ["week_of_month", "month", "quarter", "half_year", "year"]
    assert policy.columns["admitted"].hierarchy == {"dates": units}
    assert policy.columns["postcode"].hierarchy == {"prefix": [3, 2, 1], "unknown": ["99999"]}
    assert not any(one.problem for one in shoal.check_hierarchies(data, policy))
    assert CliRunner().invoke(app, ["init", str(data), "--output", str(target), "--yes"]).exit_code == 2


def test_guesses_know_numbers_dates_times_and_codes_for_unknown() -> None:
    table = pa.table(
        {
            "weight kg": [f"{50 + i}.5" for i in range(20)],
            "born": [f"{i + 1:02}.03.1980" for i in range(20)],
            "seen at": [f"{i:02}:30" for i in range(20)],
            "age": [*range(30, 49), 999],
            "ward": ["a", "b"] * 10,
            "nothing": pa.nulls(20, pa.string()),
            "code": [f"X{i:03}" for i in range(10)] * 2,
        }
    )
    found = {one.column: one for one in guess(table)}
    assert found["weight kg"].kind == "number"
    assert found["born"].hierarchy == {"dates": ["week_of_month"], "format": "%d.%m.%Y"}
    assert found["seen at"].hierarchy == {"times": ["part_of_day", "half_day"]}
    assert found["age"].hierarchy == {"intervals": [5, 10], "unknown": ["999"]}
    assert found["ward"].reason == "not recognized; treated as a quasi-identifier to be safe"
    assert found["nothing"].kind == "empty"
    assert found["code"].kind == "code"
    shoal.anonymize(table, yaml.safe_load(policy_text(list(found.values()), k=2, suppression_limit="90%")))


def test_a_column_of_a_million_names_is_not_read_name_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def number_of(text: str, decimal: str = ".") -> Decimal | None:
        asked.append(text)
        return core_number_of(text, decimal)

    monkeypatch.setattr("shoal.core.hierarchy.builder.number_of", number_of)
    names = [f"Person {n}" for n in range(5000)]
    assert guess(pa.table({"who": [*names, "unknown"]}))[0].kind == "category"
    assert len(asked) < 10


def test_codes_for_unknown_lie_far_from_all_other_numbers() -> None:
    def unknown(*texts: str) -> list[str]:
        found = guess(pa.table({"n": list(texts)}))[0].hierarchy
        return found.get("unknown", []) if isinstance(found, dict) else []

    ages = [str(age) for age in range(20, 40)]
    assert unknown(*ages, "99", "U") == ["99", "U"]
    assert unknown(*ages, "50", "99") == []
    assert unknown(*ages, "-1") == ["-1"]
    assert unknown(*ages, "-5", "-1") == []
    assert unknown(*ages, "99", "99.0") == ["99"]  # the same number, however it is written


def test_the_schema_describes_every_entry() -> None:
    found = json.loads(CliRunner().invoke(app, ["policy-schema"]).stdout)
    assert set(found["properties"]) == set(shoal.Policy.model_fields)
    kinds = found["$defs"]["Column"]["properties"]["hierarchy"]["anyOf"]
    assert {kind["required"][0] for kind in kinds if "required" in kind} >= {
        "cuts",
        "dates",
        "order",
        "times",
    }


# Ugly tables


UGLY = (
    '\ufeff"patient age";select;"quote""d";über\r\n34;a;"x;1";é\r\n35;b;"line\nbreak";é\r\n'
    '36;a;"x;1";ß\r\n37;b;"line\nbreak";ß\r\n'
)


def test_an_ugly_csv_is_read_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "ugly.csv"
    data.write_bytes(UGLY.encode())
    columns = {
        "patient age": quasi({"intervals": [10]}),
        "select": quasi("flat"),
        'quote"d': {"role": "other"},
        "über": {"role": "other"},
    }
    release = shoal.anonymize(
        data, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}, output=tmp_path / "o.csv"
    )
    assert release.levels == {"patient age": 1, "select": 0}
    found = rows_of(tmp_path / "o.csv")
    assert found[("30-39", "b", "line\nbreak", "é")] == 1
    assert found[("30-39", "a", "x;1", "ß")] == 1


def test_very_many_distinct_values_are_handled() -> None:
    numbers = list(range(200_000))
    table = pa.table({"n": numbers})
    policy = {
        "columns": {"n": quasi({"intervals": [1000, 100_000]})},
        "models": [{"k-anonymity": {"k": 500}}],
    }
    assert shoal.anonymize(table, policy).levels == {"n": 1}


def test_sixty_columns_are_handled() -> None:
    table = pa.table({f"c{i}": [str(j % (2 + i % 3)) for j in range(24)] for i in range(60)})
    columns = {f"c{i}": quasi("flat") for i in range(60)}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "metric": "precision"}
    release = shoal.anonymize(table, policy)
    assert release.evaluation.proven == "least loss"
    assert release.verification.verified


def test_a_record_in_place_of_a_header_is_not_shown(tmp_path: Path) -> None:
    data = tmp_path / "no-header.csv"
    data.write_text("Smith,Smith,42\nJones,Smith,43\n", encoding="utf-8")
    with pytest.raises(DataError, match="Columns 1 and 2 have the same name") as caught:
        shoal.anonymize(data, small())
    assert "Smith" not in str(caught.value)


def test_a_frame_of_mixed_types_is_counted_as_text_and_keeps_its_values() -> None:
    frame = pandas.DataFrame({"age": [1, "unknown", 1, "unknown"]})
    columns = {"age": quasi({"intervals": [5], "unknown": ["unknown"]})}
    release = shoal.anonymize(frame, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]})
    assert sorted(release.table["age"], key=str) == [1, 1, "unknown", "unknown"]
    assert [note for note in release.notes if note.startswith("Column 'age' holds values of several types")]


def test_an_ibis_table_comes_back_as_one() -> None:
    table = ibis.duckdb.connect().create_table("t", people(AGES))
    release = shoal.anonymize(table.filter(table.age > 0), small())
    assert isinstance(release.table, ibis.Table)
    assert release.table.count().to_pyarrow().as_py() == 16 - release.suppressed


def test_yaml_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "columns:\n  no: {role: quasi-identifier, hierarchy: {order: [no, yes, 14:05], sizes: [2]}}\n"
        "  code: {role: quasi-identifier, hierarchy: {prefix: [1], unknown: [007]}}\n"
        "models: [{k-anonymity: {k: 2}}]\nsuppression_limit: 0.5\n",
        encoding="utf-8",
    )
    policy = shoal.Policy.load(path)
    assert list(policy.columns) == ["no", "code"]
    assert policy.builder("no").order == ("no", "yes", "14:05")
    assert policy.builder("code").unknown == ("007",)
    assert policy.suppression_limit == 0.5


def test_init_asks_in_a_terminal(tmp_path: Path) -> None:
    data = written(tmp_path, people(AGES))
    program = Path(sys.executable).parent / "shoal"
    main, other = pty.openpty()
    call = [str(program), "init", str(data), "--output", str(tmp_path / "p.yaml")]
    process = subprocess.Popen(call, stdin=other, stdout=other, stderr=other)
    os.close(other)
    os.write(main, b"nonsense\n1\nill\n")
    assert process.wait(300) == 0
    os.close(main)
    roles = [column.role.value for column in shoal.Policy.load(tmp_path / "p.yaml").columns.values()]
    assert roles == ["quasi-identifier", "other", "other"]


def test_init_refuses_a_record_in_place_of_a_header(tmp_path: Path) -> None:
    data = tmp_path / "no-header.csv"
    data.write_text("John Smith,1980-01-02\nJane Roe,1981-02-03\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["init", str(data), "--yes"])
    assert done.exit_code == 2
    assert "line of column names" in done.stderr
    assert "Smith" not in done.output


def test_minus_zero_is_zero() -> None:
    table = pa.table({"x": [0.0, -0.0, 1.0, 1.0]})
    release = shoal.anonymize(table, {"columns": {"x": quasi("flat")}, "models": [{"k-anonymity": {"k": 2}}]})
    assert sorted(map(str, release.table["x"].to_pylist())) == ["0.0", "0.0", "1.0", "1.0"]


def test_a_time_with_a_zone_is_the_time_on_the_wall() -> None:
    midnight = pandas.Timestamp("2020-01-01 00:00", tz="Europe/Paris")
    frame = pandas.DataFrame({"t": [midnight, midnight]})
    policy = {"columns": {"t": quasi({"dates": ["year"]})}, "models": [{"k-anonymity": {"k": 2}}]}
    assert set(shoal.anonymize(frame, policy, node={"t": 1}).table["t"]) == {"2020"}
    assert datetime(2019, 12, 31, 23, tzinfo=UTC) == midnight


def test_types_of_columns_kept_as_they_are_are_kept() -> None:
    frame = pandas.DataFrame(
        {
            "age": pandas.array([1, 1, None, None], dtype="Int64"),
            "kind": pandas.Categorical(["a", "a", "b", "b"]),
            "flag": pandas.array([True, None, False, True], dtype="boolean"),
        }
    )
    columns = {"age": quasi("flat"), "kind": quasi("flat"), "flag": {"role": "other"}}
    release = shoal.anonymize(frame, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]})
    assert release.table.dtypes.to_dict() == frame.dtypes.to_dict()


def test_periods_are_text_and_durations_are_refused() -> None:
    frame = pandas.DataFrame({"p": pandas.period_range("2020-01", periods=1, freq="M").repeat(2)})
    policy = {"columns": {"p": quasi("flat")}, "models": [{"k-anonymity": {"k": 2}}]}
    assert set(shoal.anonymize(frame, policy).table["p"].astype(str)) == {"2020-01"}
    with pytest.raises(DataError, match="Column 'p' holds durations"):
        shoal.anonymize(pandas.DataFrame({"p": pandas.to_timedelta([1, 1], unit="s")}), policy)


def test_nested_values_are_released_unchanged_but_are_no_quasi_identifier() -> None:
    frame = pandas.DataFrame({"p": [{"a": n % 2} for n in range(4)], "age": [1, 1, 2, 2]})
    models = [{"k-anonymity": {"k": 2}}]
    columns: dict[str, Any] = {"p": quasi("flat"), "age": quasi("flat")}
    with pytest.raises(DataError, match=r"Column 'p' holds nested values.*role other"):
        shoal.anonymize(frame, {"columns": columns, "models": models})
    release = shoal.anonymize(frame, {"columns": columns | {"p": {"role": "other"}}, "models": models})
    assert sorted(release.table["p"], key=str) == sorted(frame["p"], key=str)


def test_bounds_and_masks_cannot_be_told_apart() -> None:
    policy = small(suppressed="mask")
    policy["columns"]["age"]["release_as"] = "bounds"
    with pytest.raises(PolicyError, match="would look like empty bounds"):
        shoal.Policy.load(policy)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.codebook.csv"])
def test_the_input_is_never_replaced(tmp_path: Path, name: str) -> None:
    data = written(tmp_path, people(AGES)).rename(tmp_path / name)
    before = data.read_bytes()
    with pytest.raises(OutputError, match="is the input and would be replaced"):
        shoal.anonymize(data, small(), output=tmp_path / "t.csv", force=True)
    assert data.read_bytes() == before
