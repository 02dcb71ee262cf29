"""Persons with several rows: the key is found, `unit` is written, and a release without it is noted."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
import yaml
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.columns.guesses import person_key_of
from shoal.columns.presets import policy_text, preset_text
from shoal.core.contracts import Role
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.diagnosis.diagnose import diagnose
from shoal.workflow.inspect import guess, inspect

QUASI = "quasi-identifier"
Key = Callable[[int], Any]


def visits(
    name: str = "subject_id",
    key: Key = lambda person: f"S{person:03}",
    persons: int = 100,
    rows: int = 275,
    seed: int = 3,
) -> pa.Table:
    """Make a table of visits: sex and year of birth are the person's, the rest is the visit's."""
    draw = random.Random(seed)
    people = [(key(n), draw.choice("fm"), draw.randint(1940, 2000)) for n in range(persons)]
    chosen = [*people, *draw.choices(people, k=rows - persons)]
    draw.shuffle(chosen)
    return pa.table(
        {
            name: [person[0] for person in chosen],
            "sex": [person[1] for person in chosen],
            "birth_year": [person[2] for person in chosen],
            "ward": [draw.choice("ABC") for _ in chosen],
            "pressure": [draw.randint(100, 160) for _ in chosen],
            "diagnosis": [draw.choice(["E11", "I10", "J45"]) for _ in chosen],
        }
    )


def unit_of(table: pa.Table) -> str | None:
    key = person_key_of(guess(table))
    return None if key is None else key.column


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("subject_id", str),
        ("id", int),
        ("ID", lambda n: 7000 + 3 * n),
        ("pid", int),
        ("patient", lambda n: f"P{n}"),
        ("Patient", int),
        ("subject", int),
        ("person", int),
        ("mrn", lambda n: f"{n:08}"),
        ("case_no", int),
        ("Patientennummer", lambda n: 10_000 + n),
        ("id_paciente", int),
        ("numéro patient", int),
        ("codice_paziente", lambda n: f"X{n:05}"),
        ("patiëntnummer", int),
        ("member_id", int),
        ("email", lambda n: f"p{n}@example.org"),
        ("v1", lambda n: f"Q-{n:04}"),
        ("hh_code", lambda n: 40_000 + 7 * n),
        ("code2", lambda n: 1990 + n),  # as years are
        ("USUBJID", lambda n: f"S1-{n:03}"),
        ("SEQN", int),
        ("enrolid", int),
        ("Versuchsperson", int),
        ("NIP", int),
        ("n_processo", int),
        ("who", int),
        ("v1", lambda n: f"p{n}@example.org"),
        ("v1", lambda n: f"505 299 {1000 + 7 * n}"),
        ("v1", lambda n: base64.b64encode(hashlib.md5(str(n).encode()).digest()).decode()),
        ("v1", lambda n: "".join(random.Random(n).choices("ABCDEFGHJKLMNPQRSTUVWXYZ23", k=8))),
    ],
)
def test_a_repeated_key_of_persons_becomes_the_unit(name: str, key: Key) -> None:
    found = {one.column: one for one in guess(visits(name, key))}
    assert found[name].role is Role.IDENTIFIER
    assert found[name].person_key is not None
    assert found[name].person_key.to_dict() == {"column": name, "persons": 100, "records": 275}
    text = policy_text(list(found.values()))
    assert yaml.safe_load(text)["models"][0] == {"k-anonymity": {"k": 5, "unit": name}}


@pytest.mark.parametrize(
    "name", ["ward_code", "DeptID", "zip", "id", "ID", "patient", "hospital_id", "v1", "case_no"]
)
@pytest.mark.parametrize("groups", [4, 12, 60, 130])
def test_a_repeated_column_that_people_share_is_no_key(name: str, groups: int) -> None:
    draw = random.Random(groups)
    table = visits("subject_id", int, persons=275).drop_columns("subject_id")
    table = table.append_column(name, pa.array([10_000 + draw.randrange(groups) for _ in range(275)]))
    assert unit_of(table) is None
    # Also where something else hangs on it, as the name of a department on its number.
    area = pa.array([f"area {number.as_py() % 97}" for number in table[name]])
    assert unit_of(table.append_column("area", area)) is None


def test_the_same_sex_in_every_room_makes_no_persons_of_rooms() -> None:
    draw = random.Random(8)
    rooms = [(100 + n, "fm"[n % 2], "ABCD"[n % 4]) for n in range(60)]
    chosen = [rooms[n % 60] for n in range(240)]
    table = pa.table(
        {
            "room": [room for room, _, _ in chosen],
            "sex": [sex for _, sex, _ in chosen],
            "ward": [ward for _, _, ward in chosen],
            "age": [draw.randint(20, 90) for _ in chosen],
            "pressure": [draw.randint(100, 160) for _ in chosen],
            "result": [draw.choice(["good", "fair", "poor"]) for _ in chosen],
        }
    )
    assert unit_of(table) is None


def test_a_household_and_an_encounter_are_not_taken_for_the_person() -> None:
    draw = random.Random(4)
    table = visits()
    numbers = [int(key.as_py()[1:]) for key in table["subject_id"]]
    table = table.append_column("household_id", pa.array([number // 3 for number in numbers]))
    stays = [number * 4 + draw.randrange(4) for number in numbers]
    table = table.append_column("encounter_id", pa.array(stays))
    assert unit_of(table) == "subject_id"
    assert unit_of(table.drop_columns("subject_id")) != "household_id"


@pytest.mark.parametrize(("name", "unit"), [("id", None), ("patient_id", "patient_id")])
def test_rows_that_differ_in_sex_are_of_one_person_only_where_the_name_says_so(
    name: str, unit: str | None
) -> None:
    table = visits(name, int)
    sexes = pa.array([random.Random(n).choice("fm") for n in range(table.num_rows)])
    assert unit_of(table.set_column(1, "sex", sexes)) == unit


def test_few_mistakes_in_the_data_do_not_hide_a_key() -> None:
    table = visits()
    sexes = table["sex"].to_pylist()
    sexes[5], sexes[9] = "m" if sexes[5] == "f" else "f", None
    assert unit_of(table.set_column(1, "sex", pa.array(sexes))) == "subject_id"


def test_one_row_for_each_person_needs_no_unit() -> None:
    table = visits(persons=200, rows=200)
    assert unit_of(table) is None
    assert not [note for note in inspect(table).notes if "persons" in note]


def test_a_key_of_persons_counts_where_no_other_column_can_confirm_it() -> None:
    table = visits().select(["subject_id", "pressure", "ward"])
    assert unit_of(table) == "subject_id"
    renamed = table.rename_columns(["id", "pressure", "ward"])
    assert unit_of(renamed) is None
    (note,) = [one for one in inspect(renamed).notes if "persons" in one]
    assert note.startswith("275 rows may be of 100 persons (column 'id'): if so, add unit: id to k-anonymity")
    rules = {
        "id": {"role": "other"},
        "ward": {"role": QUASI, "hierarchy": "flat"},
        "pressure": {"role": "other"},
    }
    release = shoal.anonymize(renamed, plain_policy(columns=rules))
    assert any("(column 'id'): k counts rows. If so, add unit: id" in one for one in release.notes)


def test_as_many_rows_for_each_key_are_those_of_a_study() -> None:
    draw = random.Random(2)
    table = pa.table({"id": [n // 10 for n in range(500)], "kids": [draw.randrange(5) for _ in range(500)]})
    assert unit_of(table) == "id"
    assert unit_of(table.rename_columns(["kind", "kids"])) is None


def naive_persons(table: pa.Table, release: pa.Table, names: list[str]) -> int:
    """Return the fewest persons of a released combination; rows keep their order, and none is suppressed."""
    persons: dict[tuple[Any, ...], set[Any]] = {}
    rows = zip(release.to_pylist(), table["subject_id"].to_pylist(), strict=True)
    for row, person in rows:
        persons.setdefault(tuple(row[name] for name in names), set()).add(person)
    return min(map(len, persons.values()))


def test_the_first_policy_runs_and_hides_every_person_among_k(tmp_path: Path) -> None:
    data, policy, output = tmp_path / "t.csv", tmp_path / "p.yaml", tmp_path / "r.csv"
    table = visits()
    pa.csv.write_csv(table, data)
    run = CliRunner().invoke
    made = run(app, ["init", str(data), "--yes", "--json", "--output", str(policy)])
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert told["unit"] == {"column": "subject_id", "persons": 100, "records": 275}
    assert told["columns"]["subject_id"]["column_kind"] == "key"
    note = "275 rows seem to be of 100 persons (column 'subject_id')"
    assert any(one.startswith(note) for one in told["notes"])
    again = run(app, ["init", str(data), "--yes", "--force", "--output", str(policy)])
    assert note in " ".join(again.stderr.split())
    settings = yaml.safe_load(policy.read_text(encoding="utf-8")) | {"suppression_limit": 0}
    policy.write_text(yaml.safe_dump(settings), encoding="utf-8")
    done = run(app, ["anonymize", str(data), "-p", str(policy), "-o", str(output), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["verified"]
    assert not [one for one in result["notes"] if "persons" in one]
    release = pa.csv.read_csv(output)
    assert "subject_id" not in release.column_names
    assert naive_persons(table, release, ["sex", "birth_year", "ward", "pressure"]) >= 5


def plain_policy(**changes: Any) -> dict[str, Any]:
    return {
        "columns": {
            "subject_id": {"role": "identifier"},
            "sex": {"role": QUASI, "hierarchy": "flat"},
            "birth_year": {"role": QUASI, "hierarchy": {"intervals": [10, 20, 40]}},
            "ward": {"role": "other"},
            "pressure": {"role": "other"},
            "diagnosis": {"role": "sensitive"},
        },
        "models": [{"k-anonymity": {"k": 5}}],
        "suppression_limit": "5%",
    } | changes


def test_a_release_that_counts_rows_of_persons_is_noted(tmp_path: Path) -> None:
    note = (
        "275 rows seem to be of 100 persons (column 'subject_id'): k counts rows. "
        "Add unit: subject_id to k-anonymity ('Persons by' in the studio), so that it counts persons."
    )
    table = visits()
    assert note in shoal.anonymize(table, plain_policy()).notes
    by_unit = plain_policy(models=[{"k-anonymity": {"k": 5, "unit": "subject_id"}}])
    assert not [one for one in shoal.anonymize(table, by_unit).notes if "persons" in one]
    assert not shoal.anonymize(table, plain_policy(models=[{"k-anonymity": {"k": 1}}])).notes
    single = visits(persons=275)
    assert not [one for one in shoal.anonymize(single, plain_policy()).notes if "persons" in one]
    columns = plain_policy()["columns"] | {"subject_id": {"role": QUASI, "hierarchy": "flat"}}
    assert (
        note.replace("Add", "Give it the role identifier, and add")
        in shoal.anonymize(table, plain_policy(columns=columns)).notes
    )
    data, output = tmp_path / "t.csv", tmp_path / "r.csv"
    pa.csv.write_csv(table, data)
    release = shoal.anonymize(data, plain_policy(), output=output)
    assert note in shoal.apply(release.recipe, data, output=tmp_path / "again.csv").notes


@pytest.mark.parametrize(
    ("name", "key"), [("v1", lambda n: f"Q-{n:04}"), ("x", lambda n: 40_000 + 7 * n), ("SEQN", int)]
)
@pytest.mark.parametrize("role", ["other", "sensitive", QUASI])
def test_a_release_with_a_key_that_only_its_values_tell_is_noted(name: str, key: Key, role: str) -> None:
    table = visits(name, key)
    column = {"role": role, **({"hierarchy": "flat"} if role == QUASI else {})}
    columns = {name: column} | {n: c for n, c in plain_policy()["columns"].items() if n != "subject_id"}
    release = shoal.anonymize(table, plain_policy(columns=columns))
    assert any(f"275 rows seem to be of 100 persons (column {name!r})" in note for note in release.notes)
    once = shoal.anonymize(visits(name, key, persons=275), plain_policy(columns=columns))
    assert not [note for note in once.notes if "persons" in note]


@pytest.mark.parametrize("name", ["ward_code", "zip", "v1"])
@pytest.mark.parametrize("groups", [12, 60, 130])
def test_a_column_that_people_share_makes_no_note(name: str, groups: int) -> None:
    draw = random.Random(groups)
    table = visits("subject_id", int, persons=275).drop_columns("subject_id")
    table = table.append_column(name, pa.array([10_000 + draw.randrange(groups) for _ in range(275)]))
    columns = {name: {"role": "other"}}
    columns |= {n: c for n, c in plain_policy()["columns"].items() if n != "subject_id"}
    notes = shoal.anonymize(table, plain_policy(columns=columns)).notes
    assert not [note for note in notes if "persons" in note]


def test_the_studio_and_a_diagnosis_begin_with_the_unit(tmp_path: Path) -> None:
    data = tmp_path / "t.csv"
    pa.csv.write_csv(visits(), data)
    workspace = Workspace(tmp_path / "desk")
    workspace.open(data)
    models = yaml.safe_load(workspace.draft.to_yaml())["models"]
    assert models[0] == {"k-anonymity": {"k": 5, "unit": "subject_id"}}
    assert any("275 rows seem to be of 100 persons" in note for note in workspace.draft.notes())
    assert "unit: subject_id" in diagnose(data, ["sex", "birth_year"]).suggest().policy


def test_a_key_that_the_user_makes_a_quasi_identifier_is_no_unit() -> None:
    guesses = [
        one.with_role(Role.QUASI_IDENTIFIER) if one.column == "subject_id" else one for one in guess(visits())
    ]
    text = policy_text(guesses)
    assert yaml.safe_load(text)["models"][0] == {"k-anonymity": {"k": 5}}
    assert shoal.anonymize(visits(), yaml.safe_load(text)).verification.verified


@pytest.mark.parametrize(("preset", "k"), [("health-0.09", 11), ("health-0.05", 20)])
def test_presets_that_ask_for_a_k_count_persons(preset: str, k: int) -> None:
    models = yaml.safe_load(preset_text(preset, guess(visits())))["models"]
    assert models[0] == {"k-anonymity": {"k": k, "unit": "subject_id"}}


def customers(name: str, values: list[str], *, constant: bool = True) -> pa.Table:
    """Make a table of 400 purchases of 80 customers, without sex and birth."""
    draw = random.Random(5)
    people = [(value, draw.choice(["Ulm", "Bonn", "Kiel", "Jena"]), draw.choice("abc")) for value in values]
    chosen = [*people, *draw.choices(people, k=400 - len(people))]
    return pa.table(
        {
            name: [person[0] for person in chosen],
            "city": [person[1] if constant else draw.choice(["Ulm", "Bonn"]) for person in chosen],
            "job": [person[2] if constant else draw.choice("abc") for person in chosen],
            "amount": [draw.randint(1, 40) for _ in chosen],
        }
    )


HASHES = [hashlib.sha256(str(n).encode()).hexdigest()[:32] for n in range(80)]
IDENTIFIERS: dict[str, list[str]] = {
    "kundennummer": [str(1_000_003 + 7919 * n) for n in range(80)],
    "account": [str(40_000_000 + 77 * n) for n in range(80)],
    "phone": [f"0731 55{n:04}" for n in range(80)],
    "passport": [f"C0{n:05}X" for n in range(80)],
    "login": [f"user{n:03}" for n in range(80)],
    "iban": [f"DE{10 + n}500105175407324931" for n in range(80)],
    "ref": HASHES,
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_a_repeated_identifier_whose_rows_agree_becomes_the_unit(name: str) -> None:
    assert unit_of(customers(name, IDENTIFIERS[name])) == name


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_a_repeated_identifier_that_nothing_confirms_is_noted(name: str) -> None:
    table = customers(name, IDENTIFIERS[name], constant=False)
    guesses = guess(table)
    notes = [note for note in inspect(table).notes if "80 persons" in note]
    assert notes or unit_of(table) == name
    release = shoal.anonymize(table, yaml.safe_load(policy_text(guesses)))
    assert unit_of(table) == name or any("80 persons" in note for note in release.notes)


def test_first_and_last_names_together_are_noted() -> None:
    draw = random.Random(6)
    people = [(f"First{n % 13}", f"Last{n % 31}") for n in range(80)]
    chosen = [*people, *draw.choices(people, k=320)]
    table = pa.table(
        {
            "first_name": [person[0] for person in chosen],
            "last_name": [person[1] for person in chosen],
            "city": [draw.choice(["Ulm", "Bonn", "Kiel"]) for _ in chosen],
        }
    )
    expected = "400 rows may be of 80 persons (columns 'first_name' and 'last_name')"
    assert any(note.startswith(expected) for note in inspect(table).notes)
    release = shoal.anonymize(table, yaml.safe_load(policy_text(guess(table))))
    assert any(note.startswith(expected) for note in release.notes)
    once = pa.table(
        {"first_name": [f"F{n % 40}" for n in range(400)], "last_name": [f"L{n}" for n in range(400)]}
    )
    assert not [note for note in inspect(once).notes if "persons" in note]


def test_a_key_is_found_where_one_column_changes_between_visits() -> None:
    """The age grows by one from visit to visit; sex stays."""
    draw = random.Random(7)
    people = [(HASHES[n], draw.choice("fm"), draw.randint(20, 80)) for n in range(80)]
    chosen = [(*person, draw.randint(0, 3)) for person in [*people, *draw.choices(people, k=320)]]
    for key in (HASHES, [f"P{n:05}" for n in range(80)]):
        table = pa.table(
            {
                "code": [key[HASHES.index(person[0])] for person in chosen],
                "sex": [person[1] for person in chosen],
                "age": [person[2] + person[3] for person in chosen],
                "result": [draw.choice("abc") for _ in chosen],
            }
        )
        notes = [note for note in inspect(table).notes if "80 persons" in note]
        assert unit_of(table) == "code" or notes


WEAK = [
    "subj",
    "pat",
    "RID",
    "Fall",
    "donor",
    "icustay",
    "panelist",
    "hhid",
    "study_no",
    "animal",
    "code",
    "v1",
]
FORMS = {
    "number": [1000 + n for n in range(80)],
    "fraction": [1000.0 + n for n in range(80)],
    "sign": [f"S{n:04}" for n in range(80)],
    "letters": [chr(65 + n // 26) + chr(65 + n % 26) for n in range(80)],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WEAK)
def test_a_weakly_named_key_is_noted_where_nothing_else_is_constant(name: str, form: str) -> None:
    draw = random.Random(name)
    chosen = [*range(80), *draw.choices(range(80), k=160)]
    table = pa.table(
        {
            name: [FORMS[form][n] for n in chosen],
            "visit_day": [draw.randrange(400) for _ in chosen],
            "bp": [draw.randrange(90, 180) for _ in chosen],
        }
    )
    told = unit_of(table) == name or any("80 persons" in note for note in inspect(table).notes)
    # Nothing says of such a name and of plain numbers or letters that they are of persons.
    assert told == (name not in ("code", "v1") or form == "sign")
    if told and unit_of(table) != name:
        release = shoal.anonymize(table, yaml.safe_load(policy_text(guess(table))))
        assert any("80 persons" in note for note in release.notes)


def test_codes_of_things_are_no_keys_of_persons() -> None:
    draw = random.Random(9)
    table = pa.table(
        {
            "icd": [draw.choice(["C5091", "C3410", "E1190", "I1000", "J4500"]) for _ in range(300)],
            "grade": [f"G{draw.randrange(4)}" for _ in range(300)],
            "sku": [f"A{37 * draw.randrange(60):04}" for _ in range(300)],
            "town": [draw.choice(["Ulm", "Bonn", "Kiel"]) for _ in range(300)],
        }
    )
    assert not [note for note in inspect(table).notes if "persons" in note]


def test_periods_weights_and_who_signs_are_no_keys_of_persons() -> None:
    draw = random.Random(4)
    terms = [
        f"{1860 + n // 3}.{n % 12 + 1:02}.{n % 28 + 1:02} - {1880 + n // 3}.01.01 (Death)" for n in range(300)
    ]
    chosen = [*range(300), *range(12)]
    first, last = (
        ["John", "Mary", "Paul", "Anna", "Carl"],
        ["Abbott", "Bowell", "Tupper", "Meighen", "Laurier"],
    )
    term = [terms[n] for n in chosen]
    senators = pa.table(
        {
            "Name": [
                f"{last[n % 5]}{chr(97 + n // 26)}{chr(97 + n % 26)}, {first[n % 3]}" for n in range(312)
            ],
            "Advised by": [f"{last[n % 7 % 5]}, {first[n % 13 % 5]}" for n in chosen],
            "Term (yyyy.mm.dd)": term,
            "start": [text[:10].replace(".", "-") for text in term],
            "reason": [draw.choice(["Death", "Resignation"]) for _ in chosen],
        }
    )
    assert unit_of(senators) is None
    roles = {entry.column: entry.role for entry in guess(senators)}
    assert roles["Term (yyyy.mm.dd)"] == "identifier"
    assert not [note for note in inspect(senators).notes if "persons" in note]

    groups = [(draw.randrange(9000, 600_000), draw.choice("wb"), draw.choice("fm")) for _ in range(400)]
    people = [draw.choice(groups) for _ in range(700)]  # those of one sex and race have one weight
    survey = {
        "race": [race for _, race, _ in people],
        "sex": [sex for _, _, sex in people],
        "hours": [draw.randrange(60) for _ in people],
    }
    for name in ("wght", "perwt", "sampling weight"):
        table = pa.table({name: [weight for weight, _, _ in people], **survey})
        assert unit_of(table) is None
        assert not [note for note in inspect(table).notes if "persons" in note]


def test_numbers_that_repeat_another_column_are_no_keys_of_persons() -> None:
    """A first policy removes them as redundant, and their rows agree in all that follows from them."""
    draw = random.Random(3)
    towns = [(draw.randrange(10_000), draw.choice(["north", "south", "east"])) for _ in range(90)]
    chosen = draw.choices(towns, k=900)
    table = pa.table(
        {
            "popul": [people for people, _ in chosen],
            "logpopul": [math.log(people + 0.1) for people, _ in chosen],
            "region": [region for _, region in chosen],
            "NO": [draw.randrange(20, 140) for _ in chosen],
            "title": [f"{draw.choice('ABCDEFGH')} of {draw.randrange(200)}" for _ in chosen],
            "income": [draw.randrange(9) for _ in chosen],
        }
    )
    wanted = yaml.safe_load(policy_text(guess(table)))
    wanted["columns"]["logpopul"] = wanted["columns"]["title"] = {"role": "identifier"}
    assert unit_of(table) is None
    notes = shoal.anonymize(table, wanted | {"suppression_limit": "50%"}, seconds=None).notes
    assert not [note for note in (*notes, *inspect(table).notes) if "persons" in note]
    assert not [note for note in shoal.anonymize(table, k=5).notes if "persons" in note]


def test_a_removed_key_is_noted_though_its_name_says_nothing() -> None:
    draw = random.Random(4)
    people = [(f"K{17 * n}", draw.choice(["Ulm", "Bonn", "Kiel"]), draw.choice("abcd")) for n in range(80)]
    chosen = [*people, *draw.choices(people, k=240)]
    table = pa.table({name: [row[at] for row in chosen] for at, name in enumerate(("kx", "city", "job"))})
    columns: dict[str, Any] = {name: {"role": QUASI, "hierarchy": "flat"} for name in ("city", "job")}
    columns["kx"] = {"role": "identifier"}
    release = shoal.anonymize(table, {"columns": columns, "models": [{"k-anonymity": {"k": 3}}]})
    assert [note for note in release.notes if "80 persons (column 'kx')" in note]


def test_first_names_that_hundreds_share_are_no_persons() -> None:
    draw = random.Random(5)
    sexes = {f"{letter}{vowel}na": draw.choice("mf") for letter in "ABCDEFGHKLMN" for vowel in "aei"}
    names = [draw.choice(list(sexes)) for _ in range(4000)]
    table = pa.table(
        {"name": names, "sex": [sexes[name] for name in names], "call": [draw.choice("yn") for _ in names]}
    )
    assert person_key_of(inspect(table).columns) is None


def test_a_share_that_mentions_an_account_is_no_key_of_persons() -> None:
    draw = random.Random(6)
    table = pa.table(
        {
            "account_never_delinq_percent": [round(draw.uniform(60, 100), 1) for _ in range(9000)],
            "grade": [draw.choice("abc") for _ in range(9000)],
        }
    )
    assert not any(guess.person_key for guess in inspect(table).columns)
