"""Presets: first policies that follow a published rule; what they release keeps it."""

from __future__ import annotations

import csv
import json
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.columns.identifiers import IDENTIFIERS
from shoal.columns.names import WORDS, normalized_name
from shoal.columns.presets import PRESETS, SMALL_ZIP_AREAS, preset_text, safe_harbor
from shoal.core.contracts import Role
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy import builders
from shoal.errors import HierarchyError, UnknownName
from shoal.policy.policy import Policy
from shoal.policy.schema import policy_schema
from shoal.web.pages.hierarchy import kind_of, spec_of, texts_of
from shoal.workflow.inspect import guess, inspect

ZIPS = ["12345", "67890", "94110-1234", "941101234", "03601", "05912-0001", "89012", "893011111", "99999"]


def patients(size: int = 240) -> dict[str, list[Any]]:
    """Make a table with every kind of column that the rule is about."""
    draw = random.Random(3)
    day = lambda: (draw.randint(1, 28), draw.randint(1, 12))  # noqa: E731
    rows: dict[str, list[Any]] = {
        "who": [f"{draw.choice(['Mary', 'John', 'Anna'])} Smith{'abcdefgh'[n % 8]}" for n in range(size)],
        "mrn": [str(n) for n in range(size)],
        "contact": [f"p{n}@example.org" for n in range(size)],
        "age": [str(n % 107) for n in range(size)],
        "dob": [f"{draw.randint(1910, 2020)}-{month:02}-{d:02}" for d, month in (day() for _ in range(size))],
        "birth_year": [str(draw.randint(1910, 2020)) for _ in range(size)],
        "zip": [draw.choice(ZIPS) for _ in range(size)],
        "city": [draw.choice(["Reno", "Boston", "Salem"]) for _ in range(size)],
        "state": [draw.choice(["NV", "MA"]) for _ in range(size)],
        "admitted": [f"{d:02}.{month:02}.2023" for d, month in (day() for _ in range(size))],
        "diagnosis_date": [f"2023{month:02}{d:02}" for d, month in (day() for _ in range(size))],
        "last_visit": [f"{month}/{d}/23 10:30" for d, month in (day() for _ in range(size))],
        "month": [str(n % 12 + 1) for n in range(size)],
        "sex": [draw.choice("fm") for _ in range(size)],
        "diagnosis": [draw.choice(["E11.9", "I10", "J45"]) for _ in range(size)],
    }
    rows["age"][5] = rows["zip"][7] = rows["dob"][9] = None
    return rows


def written(folder: Path) -> Path:
    path = folder / "patients.csv"
    rows = patients()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path


def test_a_release_by_safe_harbor_keeps_the_rule(tmp_path: Path) -> None:
    data, policy, output = written(tmp_path), tmp_path / "policy.yaml", tmp_path / "release.csv"
    run = CliRunner().invoke
    made = run(app, ["init", str(data), "--preset", "safe-harbor", "--output", str(policy), "--yes"])
    assert made.exit_code == 0, made.output
    done = run(app, ["anonymize", str(data), "--policy", str(policy), "--output", str(output), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["suppressed"], told["verified"]) == (0, True)
    with output.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 240
    assert set(rows[0]) == {
        "age",
        "dob",
        "birth_year",
        "zip",
        "state",
        "admitted",
        "last_visit",
        "diagnosis_date",
        "sex",
        "diagnosis",
    }
    for row in rows:
        assert row["age"] in {*map(str, range(90)), "90+", "missing"}
        for column in ("dob", "birth_year"):
            assert re.fullmatch(r"<\d{4}|\d{4}|missing", row[column])
            assert row[column][0] in "<m" or int(row[column]) > date.today().year - 90
        assert row["admitted"] == row["diagnosis_date"] == "2023"
        assert re.fullmatch(r"\d{3}\*|000|missing", row["zip"])
        assert row["zip"].rstrip("*") not in SMALL_ZIP_AREAS
    assert {row["zip"] for row in rows} == {"123*", "678*", "941*", "000", "999*", "missing"}
    assert {row["state"] for row in rows} == {"NV", "MA"}
    assert shoal.verify(output, policy).verified
    codebook = (tmp_path / "release.csv.codebook.csv").read_text(encoding="utf-8")
    assert "codes that begin with one of 036, 059" in codebook
    assert "days before" in codebook
    again = shoal.apply(told["recipe"], data, output=tmp_path / "again.csv")
    assert again.suppressed == 0


def test_zip_codes_that_were_numbers_get_their_zeros_back() -> None:
    draw = random.Random(1)
    codes = [3601, 5901, 12345, 94110, 36011234, 941101234, 63001]
    table = pa.table({"zip": draw.choices(codes, k=50), "sex": draw.choices(["f", "m"], k=50)})
    released = shoal.anonymize(table, yaml.safe_load(safe_harbor(guess(table)))).table
    assert set(released["zip"].to_pylist()) == {"000", "123*", "941*", "630*"}


def test_a_zip_code_for_unknown_keeps_three_digits_too() -> None:
    codes = ["02139", "10001", "60601", "94110", "73301", "30301", "99999"]
    table = pa.table({"zip": codes * 3, "sex": ["f", "m", "f"] * 7})
    guesses = guess(table)
    assert guesses[0].hierarchy["unknown"] == ["99999"]
    released = shoal.anonymize(table, yaml.safe_load(safe_harbor(guesses))).table
    assert set(released["zip"].to_pylist()) == {f"{code[:3]}*" for code in codes}


def test_small_areas_are_those_of_the_guidance() -> None:
    listed = "036 692 878 059 790 879 063 821 884 102 823 890 203 830 893 556 831"
    assert sorted(listed.split()) == list(SMALL_ZIP_AREAS)


def test_birth_years_are_coded_from_ninety_years_ago() -> None:
    table = pa.table({"dob": [f"19{n}-05-05" for n in range(20, 90)], "sex": ["f", "m"] * 35})
    text = safe_harbor(guess(table), today=date(2026, 7, 1))
    hierarchy = yaml.safe_load(text)["columns"]["dob"]["hierarchy"]
    assert hierarchy == {"dates": ["year", "decade"], "bottom_coding": 1937}


def test_a_code_for_unknown_may_not_pass_for_an_age() -> None:
    table = pa.table({"age": [*range(1, 21), 99], "sex": ["f", "m", "f"] * 7})
    guesses = guess(table)
    assert guesses[0].hierarchy["unknown"] == ["99"]
    released = shoal.anonymize(table, yaml.safe_load(safe_harbor(guesses))).table
    assert [*sorted(map(str, range(1, 21))), "90+"] == sorted(released["age"].to_pylist())


def test_a_role_of_the_users_own_is_kept_and_told() -> None:
    guesses = guess(pa.table(patients()))
    named = {one.column: one for one in guesses}
    chosen = [
        named["city"].with_role(Role.QUASI_IDENTIFIER).with_role(Role.OTHER),
        named["diagnosis_date"].with_role(Role.QUASI_IDENTIFIER),
        named["sex"],
    ]
    text = safe_harbor(chosen)
    columns = yaml.safe_load(text)["columns"]
    assert columns["city"] == {"role": "other"}
    assert "your choice; it looks like (B)" in text
    assert columns["diagnosis_date"]["min_level"] == 1


@pytest.mark.parametrize(("name", "k"), [("health-0.09", 11), ("health-0.05", 20), ("safe-harbor", 1)])
def test_every_preset_makes_a_policy_that_runs(name: str, k: int, tmp_path: Path) -> None:
    table = pa.table(patients())
    path = tmp_path / "policy.yaml"
    path.write_text(preset_text(name, guess(table)), encoding="utf-8")
    policy = Policy.load(path)
    assert policy.models[0] == {"k-anonymity": {"k": k}}
    assert Policy.load(yaml.safe_load(policy.to_yaml())) == policy
    release = shoal.anonymize(table, policy)
    assert release.verification.smallest_class is None or release.verification.smallest_class >= k
    assert name in json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)["presets"]
    assert (PRESETS[name].__doc__ or "").endswith(".")


# For each weak word of a direct identifier a name that it is all of, in the order of the tables.
WEAK = (
    "serial_no, Tel, mobil, cellulare, Konto, licence, IPP, Fallnummer, visit_no, notes, Bemerkung, name, "
    "Nom, alias, doctor_name, Patient, Nominativo, id, Kennung, row_names"
)


@pytest.mark.parametrize("name", WEAK.split(", "))
@pytest.mark.parametrize(
    "values", [["X17", "Y18", "Z19"], ["Xyyx", "Zzqq", "Yyxx"], ["100", "102", "107"], [None]]
)
def test_a_weak_name_of_an_identifier_is_never_kept_as_it_is(name: str, values: list[str | None]) -> None:
    table = pa.table({name: values * 60, "sex": ["f", "m"] * (30 * len(values))})
    text = safe_harbor(guess(table))
    assert yaml.safe_load(text)["columns"][name] == {"role": "identifier"}
    chosen = [guess(table)[0].with_role(Role.OTHER), guess(table)[1]]
    assert yaml.safe_load(safe_harbor(chosen))["columns"][name] == {"role": "other"}


def test_every_weak_word_is_tried() -> None:
    weak = [word for word in WORDS if word.weak]
    assert all(IDENTIFIERS[word.letter].direct for word in weak)
    tried = [normalized_name(name) for name in WEAK.split(", ")]
    assert [word for word in weak if not word.is_all_of(tried)] == []


def test_why_a_weak_name_is_removed_and_how_to_keep_it() -> None:
    codes = {"Name": ["X17", "Y18"] * 60, "ward_id": ["X17", "Y18"] * 60, "mobile": ["yes", "no"] * 60}
    text = safe_harbor(guess(pa.table(codes)))
    line = next(line for line in text.splitlines() if line.startswith("  Name:"))
    assert "(A) Names: named as a person, or a person's name" in line
    assert "removed to be safe: to keep it, give it the role other" in line
    kept = yaml.safe_load(text)["columns"]
    assert [kept[name]["role"] for name in ("ward_id", "mobile")] == ["quasi-identifier"] * 2
    guesses = guess(pa.table(codes))
    assert guesses[0].role is Role.QUASI_IDENTIFIER  # without the preset, codes are made coarse


def test_surnames_of_which_there_are_few_are_not_released_by_safe_harbor() -> None:
    names = [f"{first}{last}" for first in ("Meyer", "Vogel", "Kr") for last in ("mann", "sen", "bach", "ow")]
    size = 240
    for column in ("Name", "name", "Name des Patienten", "Patient"):
        table = pa.table({column: (names * 20)[:size], "sex": ["f", "m"] * (size // 2)})
        release = shoal.anonymize(table, yaml.safe_load(safe_harbor(guess(table))))
        assert release.table.column_names == ["sex"]


def test_without_a_preset_the_policy_is_the_usual_one() -> None:
    guesses = guess(pa.table(patients()))
    assert "k: 5" in preset_text(None, guesses)
    with pytest.raises(UnknownName, match="Did you mean 'safe-harbor'"):
        preset_text("safe-harbour", guesses)


def test_a_wrong_preset_is_refused_before_the_table_is_read(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "none.csv"), "--preset", "harbor", "--json"])
    assert done.exit_code == 2
    assert "Unknown preset" in done.output


def test_what_init_says_of_a_table_holds_no_value(tmp_path: Path) -> None:
    data = written(tmp_path)
    for name in (None, *PRESETS):
        extra = ["--preset", name] if name else []
        done = CliRunner().invoke(app, ["init", str(data), "--json", *extra])
        told = json.loads(done.stdout)
        assert told["columns"]["contact"]["identifier"] == {
            "letter": "F",
            "title": "E-mail addresses",
            "by": "values",
            "reason": "the values are written as e-mail addresses",
        }
        assert told["columns"]["sex"]["identifier"] is None
        text = done.stdout
        for column in ("who", "contact", "dob", "city", "admitted"):
            assert not any(value in text for value in patients()[column] if value)


# The builders that the rule needs.


def bound(spec: dict[str, Any], texts: tuple[str | None, ...]) -> list[list[str]]:
    hierarchy = builders.parse("zip", spec).bind(Domain("zip", texts, texts))
    return [
        [hierarchy.labels[level][hierarchy.groups(level)[code]] for level in range(hierarchy.height + 1)]
        for code in range(len(texts))
    ]


def test_prefixes_that_go_together_are_one_group_up_to_the_top() -> None:
    spec = {"prefix": [3, 1], "together": ["036", "102"], "label": "000"}
    assert bound(spec, ("03601", "03701", "10299", "10399")) == [
        ["03601", "000", "000", "*"],
        ["03701", "037*", "0*", "*"],
        ["10299", "000", "000", "*"],
        ["10399", "103*", "1*", "*"],
    ]
    assert bound({"prefix": [2], "together": ["12"]}, ("123", "456")) == [
        ["123", "other", "*"],
        ["456", "45*", "*"],
    ]


@given(
    st.lists(st.text("0123", min_size=1, max_size=6), min_size=1, max_size=20, unique=True),
    st.sets(st.text("0123", min_size=3, max_size=3), max_size=5),
)
def test_together_is_the_rule_written_out(texts: list[str], together: set[str]) -> None:
    rows = bound({"prefix": [3, 2], "together": sorted(together)}, tuple(texts))
    for text, row in zip(texts, rows, strict=True):
        small = text[:3] in together
        assert row[1:] == (["other", "other", "*"] if small else [text[:3] + "*", text[:2] + "*", "*"])


def test_zeros_come_back_up_to_the_next_length() -> None:
    rows = bound({"prefix": [3], "pad": [5, 9]}, ("3601", "36011234", "12345", "1234567890", "3601-1", "x1"))
    assert [row[1] for row in rows] == ["036*", "036*", "123*", "123*", "360*", "x1*"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"together": ["36"]}, "prefixes of 3 characters.*in quotes"),
        ({"together": ["0360"]}, "prefixes of 3 characters"),
        ({"label": "000"}, "label names the prefixes"),
        ({"together": ["036"], "label": "03*"}, "must not be empty nor end in"),
        ({"together": ["036"], "label": ""}, "must not be empty nor end in"),
        ({"pad": [0]}, "whole numbers of at least 1"),
        ({"together": ["036"], "label": "000", "unknown": ["000"]}, "share a label"),
    ],
)
def test_a_wrong_group_of_prefixes_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        bound({"prefix": [3], **spec}, ("03601", "000"))


def test_dates_before_a_year_are_one_group() -> None:
    spec = {"dates": ["year", "decade"], "bottom_coding": 1937}
    rows = bound(spec, ("1936-12-31", "1937-01-01", "1900-05-05", None))
    assert [row[1:] for row in rows] == [
        ["<1937", "<1937", "*"],
        ["1937", "1930s", "*"],
        ["<1937", "<1937", "*"],
        ["missing", "missing", "*"],
    ]
    rule = builders.parse("dob", spec)
    assert [rule.covers(label) for label in ("<1937", "1937", "*")] == [
        "days before 1937",
        "days in 1937",
        "every value",
    ]
    for year in (1937.5, 0, 12345):
        with pytest.raises(HierarchyError, match="is a year"):
            bound({**spec, "bottom_coding": year}, ("1936-12-31",))


def test_the_schema_and_the_preview_know_the_options() -> None:
    kinds = policy_schema()["$defs"]["Column"]["properties"]["hierarchy"]["anyOf"]
    prefix = next(kind for kind in kinds if kind.get("required") == ["prefix"])
    assert {"together", "label", "pad"} <= set(prefix["properties"])
    found = inspect(pa.table({"zip": ["03601", "12345"]}))
    spec = {"prefix": [3], "together": ["036"], "label": "000"}
    assert found.preview("zip", spec).examples == (("03601", "000", "*"), ("12345", "123*", "*"))


@pytest.mark.parametrize(
    "spec",
    [
        {"prefix": [3], "together": ["036", "059"], "label": "000", "pad": [5, 9]},
        {"prefix": [3, 1]},
        {"intervals": [5, 10], "decimal": ","},
        {"dates": ["year"], "format": "%d.%m.%Y", "bottom_coding": 1937},
    ],
)
def test_the_editor_of_the_studio_writes_what_it_shows(spec: dict[str, Any]) -> None:
    kind = kind_of(spec)
    assert kind in spec
    assert spec_of(kind, texts_of(kind, spec)) == spec
    assert spec_of("prefix", {"prefix": "3", "together": "036, 059"})["together"] == ["036", "059"]


def test_ages_with_a_decimal_comma_keep_it(tmp_path: Path) -> None:
    data = tmp_path / "ages.csv"
    rows = [f"{20 + place % 60},{place % 10};m" for place in range(200)]
    data.write_text("\n".join(["age;sex", *rows]), encoding="utf-8")
    policy = yaml.safe_load(preset_text("safe-harbor", guess(data)))
    assert policy["columns"]["age"]["hierarchy"]["decimal"] == ","
    shoal.anonymize(data, policy)


@pytest.mark.parametrize("name", ["death_date", "zip", "Geburtsdatum", "phone"])
def test_safe_harbor_removes_an_empty_column_that_may_be_filled_elsewhere(name: str, tmp_path: Path) -> None:
    data = tmp_path / "empty.csv"
    data.write_text("\n".join([f"sex,{name}", *(f"{'mf'[place % 2]}," for place in range(30))]))
    policy = yaml.safe_load(preset_text("safe-harbor", guess(data)))
    assert policy["columns"][name] == {"role": "identifier"}
