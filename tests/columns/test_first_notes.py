"""What a first look at a table says of it: contacts in texts, codes for unknown, empty rows, short years."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.columns.guesses import Guess
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.errors import HierarchyError
from shoal.workflow.inspect import check_hierarchies, guess, inspect

QUASI = "quasi-identifier"


def guessed(**columns: list[Any]) -> dict[str, Guess]:
    return {one.column: one for one in guess(pa.table(columns))}


# Contacts in texts.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Rückruf unter 0151 123456{}", ["telephone or social security numbers"]),
        ("bitte an p{}@example.org", ["e-mail addresses"]),
        ("p{0}@example.org, Tel. +49 151 123456{0}", ["e-mail addresses", "telephone or social security"]),
        ("Kontrolle am 12.03.202{}", []),
    ],
)
@pytest.mark.parametrize("different", [2, 3])
def test_contacts_in_texts_are_noted_from_three_on(text: str, told: list[str], different: int) -> None:
    values = [text.format(n) for n in range(different)] + ["o.B.", "nüchtern"]
    found = guessed(verlauf=values * 12)["verlauf"]
    assert found.role.value == QUASI
    notes = " ".join(found.notes)
    assert [word in notes for word in told] == [different == 3] * len(told)
    assert ("seem to hold" in notes) == (different == 3 and bool(told))
    assert "example" not in notes
    assert "123456" not in notes


def test_a_column_that_is_removed_gets_no_such_note() -> None:
    assert guessed(email=[f"p{n}@example.org" for n in range(40)])["email"].notes == ()


@pytest.mark.parametrize("name", ["comments", "Bemerkung", "Remarque", "observación", "opmerking", "Notas"])
def test_names_of_free_text_are_noted_where_few_values_differ(name: str) -> None:
    found = guessed(**{name: ["ohne Befund", "nüchtern", "s. Brief"] * 20})[name]
    assert any("free text, which can hold any identifier" in note for note in found.notes)
    assert not guessed(**{name: ["yes", "no"] * 20})[name].notes


# Codes for unknown among postcodes.


@pytest.mark.parametrize("code", ["99", "999", "9999", "99999", "0", "00000"])
def test_zeros_and_nines_among_postcodes_mean_unknown(code: str) -> None:
    codes = ["1067", "1069", "10115", "80331", "99084"]
    found = guessed(plz=[*codes, code] * 8)["plz"]
    assert found.hierarchy == {"prefix": [3, 2, 1], "pad": [5], "unknown": [code]}
    assert not any("shorter" in note for note in found.notes)


def test_other_short_codes_among_postcodes_are_noted() -> None:
    found = guessed(plz=["1067", "10115", "80331", "77"] * 8)["plz"]
    assert "unknown" not in found.hierarchy
    assert "at least two digits shorter" in found.notes[0]
    assert "77" not in found.notes[0]
    rule = parse("plz", {"prefix": [2], "pad": [5]})
    assert "zeros or nines alone" in (rule.note(["1067", "999"]) or "")
    assert rule.note(["1067", "10115"]) is None


# Rows that hold nothing.

TABLE = (
    "age;sex;ward\n" + "".join(f"{20 + n % 4};{'fm'[n % 2]};{'uv'[n % 2]}\n" for n in range(40)) + "30;;\n"
)
EMPTY = "2 rows are entirely empty, and counted as records: take them out of the table."


@pytest.mark.parametrize(("rows", "notes"), [(";;\n;;\n", [EMPTY]), (";f;\n31;;\n;;u\n", [])])
def test_rows_that_hold_nothing_are_noted(rows: str, notes: list[str], tmp_path: Path) -> None:
    data = tmp_path / "t.csv"
    data.write_text(TABLE + rows, encoding="utf-8")
    assert [note for note in inspect(data).notes if "empty" in note] == notes
    told = CliRunner().invoke(app, ["init", str(data), "--yes"]).stdout
    assert ("entirely empty" in told) == bool(notes)
    policy = {
        "columns": {name: {"role": QUASI, "hierarchy": "flat"} for name in ("age", "sex")}
        | {"ward": {"role": "other"}},
        "models": [{"k-anonymity": {"k": 2}}],
        "suppression_limit": "20%",
    }
    release = shoal.anonymize(data, policy, output=tmp_path / "o.csv")
    assert [note for note in release.notes if "empty" in note] == notes
    assert release.records == 41 + rows.count("\n")  # the counting is as it was
    again = shoal.apply(release.recipe, data, output=tmp_path / "p.csv")
    assert [note for note in again.notes if "empty" in note] == notes


# Dates.


def dates(texts: list[str], **options: Any) -> str:
    with pytest.raises(HierarchyError) as error:
        parse("day", {"dates": ["month", "year"], **options}).bind(Domain("day", texts, tuple(texts)))
    return str(error.value)


@pytest.mark.parametrize("form", ["{:02}.{:02}.{:02}", "{}.{}.{:02}", "{:02}/{:02}/{:02}"])
def test_years_of_two_digits_are_read_and_noted(form: str) -> None:
    days = [form.format(n % 28 + 1, n % 12 + 1, n % 99) for n in range(60)]
    found = guessed(geburtsdatum=days * 2)["geburtsdatum"]
    assert any("two digits" in note and "no date is after" in note for note in found.notes)
    assert found.hierarchy["latest"] == f"{date.today()}"
    told = dates(days, format="%d.%m.%Y")
    assert "four digits" in told
    assert "unknown" not in told


def test_many_dates_that_are_not_read_are_no_codes() -> None:
    days = [f"{n % 28 + 1:02}.{n % 12 + 1:02}.19{n:02}" for n in range(10, 60)]
    assert "They fit format: '%d.%m.%Y'. Give it" in dates(days)
    told = dates([*days, "x"])
    assert "They are too many to be codes" in told
    assert "unknown" not in told
    assert dates(["x", "y"]).endswith("Name codes under 'unknown'.")


@pytest.mark.parametrize(
    ("form", "right"),
    [
        ("dd.mm.yyyy", "%d.%m.%Y"),
        ("YYYY-MM-DD", "%Y-%m-%d"),
        ("TT.MM.JJJJ", "%d.%m.%Y"),
        ("ISO", "it as %d.%m.%Y"),
    ],
)
def test_a_format_without_signs_is_told_with_them(form: str, right: str) -> None:
    assert dates(["05.03.1961"], format=form).endswith(f"write {right}.")


# Headers in files of hierarchies.


@pytest.mark.parametrize(
    ("rows", "noted"),
    [
        ("Wert;Gruppe;Alle\nu;x;*\nv;x;*\nw;y;*\n", True),
        ("Station;Gruppe;Alle\nu;x;Alle\nv;x;Alle\nw;y;Alle\n", True),
        ("u;x;*\nv;x;*\nw;y;*\n", False),
        ("z;q;*\nu;x;*\nv;x;*\nw;y;*\n", False),  # a value that the table lacks
        ("z;q\nu;x\nv;y\nw;y2\n", False),
    ],
)
def test_a_header_in_the_file_of_a_hierarchy_is_noted(rows: str, noted: bool, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text(rows, encoding="utf-8")
    policy = tmp_path / "p.yaml"
    column = "{role: quasi-identifier, hierarchy: {csv: h.csv}}"
    policy.write_text(f"columns: {{ward: {column}}}\nmodels: [k-anonymity: {{k: 1}}]\n", encoding="utf-8")
    (found,) = check_hierarchies(pa.table({"ward": ["u", "v", "w"]}), policy)
    assert found.problem is None
    assert ("seems to be a header" in (found.note or "")) == noted
