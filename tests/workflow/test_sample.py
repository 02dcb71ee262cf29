"""The sample is seeded, typed as promised, consistent within a person, and skewed."""

import csv
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal.sample import admissions, write_csv

TYPES = {
    "name": pa.string(),
    "card_number": pa.string(),
    "age": pa.int64(),
    "sex": pa.string(),
    "postcode": pa.string(),
    "admitted": pa.date32(),
    "discharged": pa.date32(),
    "ethnicity": pa.string(),
    "marital_status": pa.string(),
    "insurance": pa.string(),
    "diagnosis": pa.string(),
    "length_of_stay": pa.int64(),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return admissions()


@pytest.fixture(scope="module")
def rows(table: pa.Table) -> list[dict[str, Any]]:
    return list(table.to_pylist())


@pytest.fixture(scope="module")
def persons(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    by_card: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_card[row["card_number"]].append(row)
    return by_card


def share_of_the_most_frequent(table: pa.Table, column: str) -> float:
    return Counter(table[column].to_pylist()).most_common(1)[0][1] / len(table)


@pytest.mark.parametrize("records", [1, 17, 5000])
def test_a_seed_gives_the_same_table(records: int) -> None:
    assert admissions(records, seed=3).equals(admissions(records, seed=3))


def test_another_seed_gives_another_table(table: pa.Table) -> None:
    assert not admissions(seed=8).equals(table)


@pytest.mark.parametrize("records", [1, 17, 5000])
def test_the_table_has_the_size_and_types_asked_for(records: int) -> None:
    table = admissions(records)
    assert len(table) == records
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == TYPES
    assert table.column_names == list(TYPES)


@pytest.mark.parametrize("records", [0, -3])
def test_no_records_is_an_error(records: int) -> None:
    with pytest.raises(ValueError, match=rf"^records must be at least 1, got {records}\.$"):
        admissions(records)


def test_length_of_stay_is_the_days_between_admission_and_discharge(rows: list[dict[str, Any]]) -> None:
    assert all((row["discharged"] - row["admitted"]).days == row["length_of_stay"] >= 0 for row in rows)


def test_admissions_are_in_order_and_within_two_years(rows: list[dict[str, Any]]) -> None:
    admitted = [row["admitted"].isoformat() for row in rows]
    assert admitted == sorted(admitted)
    assert admitted[0] >= "2024-01-01"
    assert admitted[-1] <= "2025-12-31"


def test_weekends_and_summers_are_quieter() -> None:
    admitted = admissions(50_000)["admitted"].to_pylist()
    weekdays = Counter(day.weekday() for day in admitted)
    months = Counter(day.month for day in admitted)
    assert max(weekdays[5], weekdays[6]) < min(weekdays[day] for day in range(5))
    assert months[7] < months[1]


def test_a_repeated_person_keeps_name_and_demographics(persons: dict[str, list[dict[str, Any]]]) -> None:
    kept = ("name", "sex", "postcode", "ethnicity", "marital_status", "insurance")
    for stays in persons.values():
        assert len({tuple(stay[column] for column in kept) for stay in stays}) == 1


def test_a_repeated_person_ages_at_most_two_years_and_never_grows_younger(
    persons: dict[str, list[dict[str, Any]]],
) -> None:
    for stays in persons.values():
        ages = [stay["age"] for stay in stays]
        assert ages == sorted(ages)
        assert ages[-1] - ages[0] <= 2


def test_stays_of_a_person_do_not_overlap(persons: dict[str, list[dict[str, Any]]]) -> None:
    for stays in persons.values():
        assert all(before["discharged"] <= after["admitted"] for before, after in pairwise(stays))


def test_about_an_eighth_of_persons_come_back(persons: dict[str, list[dict[str, Any]]]) -> None:
    repeated = sum(len(stays) > 1 for stays in persons.values())
    assert 0.10 < repeated / len(persons) < 0.14


def test_card_numbers_and_postcodes_have_one_form(table: pa.Table) -> None:
    forms = {"card_number": r"^HC-\d{4}-\d{4}-\d{2}$", "postcode": r"^\d{5}$"}
    for column, form in forms.items():
        assert pc.all(pc.match_substring_regex(table[column], form)).as_py()
    assert pc.any(pc.starts_with(table["postcode"], "0")).as_py()


def test_unknown_codes_and_missing_values_are_present_but_rare(table: pa.Table) -> None:
    codes = {
        "sex": ("U", 0.005),
        "postcode": ("99999", 0.004),
        "ethnicity": ("unknown", 0.03),
        "marital_status": ("unknown", 0.01),
        "insurance": (None, 0.015),
    }
    for column, (code, share) in codes.items():
        found = table[column].to_pylist().count(code) / len(table)
        assert share / 2 < found < share * 2, column
    assert {name for name in TYPES if table[name].null_count} == {"insurance"}


def test_ages_are_those_of_a_hospital(table: pa.Table) -> None:
    ages = Counter(table["age"].to_pylist())
    assert min(ages) == 0
    assert max(ages) <= 104
    assert ages.most_common(1)[0][0] == 0
    over_90 = sum(count for age, count in ages.items() if age > 90) / len(table)
    assert 0 < over_90 < 0.03


def test_diagnoses_fit_age_and_sex() -> None:
    found = admissions(50_000).select(["diagnosis", "age", "sex"]).to_pylist()
    newborn = {"preterm birth", "newborn jaundice", "newborn infection"}
    assert {row["age"] for row in found if row["diagnosis"] in newborn} == {0}
    births = [row for row in found if row["diagnosis"] == "childbirth"]
    assert all(15 <= row["age"] < 50 and row["sex"] != "male" for row in births)
    assert all(row["sex"] != "female" for row in found if row["diagnosis"] == "prostate cancer")


def test_children_are_not_married(rows: list[dict[str, Any]]) -> None:
    assert {row["marital_status"] for row in rows if row["age"] < 18} <= {"single", "unknown"}


def test_diagnoses_and_postcodes_are_skewed(table: pa.Table) -> None:
    assert 0.05 < share_of_the_most_frequent(table, "diagnosis") < 0.25
    assert share_of_the_most_frequent(table, "postcode") > 0.01
    assert 20 <= len(set(table["diagnosis"].to_pylist())) <= 30


def test_the_csv_holds_the_table(tmp_path: Path) -> None:
    path = tmp_path / "admissions.csv"
    write_csv(path, records=400, seed=2)
    assert '"' not in path.read_text(encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    written = admissions(400, seed=2).to_pylist()
    assert list(read[0]) == list(TYPES)
    assert read == [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in written
    ]
    assert any(row["insurance"] == "" for row in read)
