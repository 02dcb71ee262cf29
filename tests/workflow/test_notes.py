"""What a custodian should look at again: columns that identify by themselves, and values that are gone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.columns.evidence import NEARLY_UNIQUE
from shoal.columns.identifiers import WITHIN
from shoal.columns.presets import policy_text
from shoal.columns.values import is_phone, is_ssn
from shoal.core.contracts import Engine
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import DataError
from shoal.workflow.inspect import guess
from shoal.workflow.release.spreadsheet import FORMULA, SAFE, is_formula, safe_cell
from shoal.workflow.session import choose_engine

QUASI = "quasi-identifier"


def people(rows: int = 60) -> dict[str, list[Any]]:
    """Most salaries and all remarks are somebody's own; one person is older than all others."""
    return {
        "age": [99, *[30 + n % 3 for n in range(1, rows)]],
        "salary": [1000.5 + max(n, 3) for n in range(rows)],
        "remark": [f"r{n}" for n in range(rows)],
        "ward": [f"w{n % 4}" for n in range(rows)],
    }


def policy(**changes: Any) -> dict[str, Any]:
    return {
        "columns": {
            "age": {"role": QUASI, "hierarchy": "flat"},
            "salary": {"role": "sensitive"},
            "remark": {"role": "other"},
            "ward": {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 3}}],
        "suppression_limit": 1,
    } | changes


DIVERSE = [{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 2}}]


def told(name: str) -> str:
    return f"{name!r} is released as it is: {NEARLY_UNIQUE}."


@pytest.mark.parametrize("models", [[{"k-anonymity": {"k": 3}}], DIVERSE], ids=["counted anew", "counted"])
def test_columns_that_identify_by_themselves_are_noted(models: list[Any]) -> None:
    release = shoal.anonymize(pa.table(people()), policy(models=models))
    assert release.notes == (told("salary"), told("remark"))
    assert release.to_dict()["notes"] == list(release.notes)
    assert told("salary").replace("'", "&#x27;") in shoal.report(release)
    assert told("remark").replace("'", "&#x27;") in release._repr_html_()


def test_few_records_say_nothing_of_a_column() -> None:
    assert shoal.anonymize(pa.table(people(20)), policy()).notes == ()


def test_a_column_whose_values_are_shared_is_not_noted() -> None:
    rows = people()
    rows["salary"] = [float(n // 2) for n in range(60)]
    rows["remark"] = [f"r{n}" for n in range(54)] + ["same"] * 6  # nine of ten, not more
    assert shoal.anonymize(pa.table(rows), policy()).notes == ()


def test_a_column_that_is_released_apart_does_not_identify() -> None:
    found = shoal.anonymize(pa.table(people()), policy(models=DIVERSE[1:], algorithm="anatomy"))
    assert found.notes == (told("remark"),)


def test_a_column_of_lists_is_no_obstacle() -> None:
    rows = people()
    rows["ward"] = [[n, n] for n in range(60)]
    assert shoal.anonymize(pa.table(rows), policy()).notes == (told("salary"), told("remark"))


def test_the_terminal_and_the_audit_tell_what_init_tells(tmp_path: Path) -> None:
    path, rules = tmp_path / "t.csv", tmp_path / "p.json"
    rows = people()
    lines = zip(*rows.values(), strict=True)
    path.write_text("\n".join([",".join(rows), *(",".join(map(str, line)) for line in lines)]) + "\n")
    assert NEARLY_UNIQUE in policy_text(guess(path))
    rules.write_text(json.dumps(policy()))
    done = CliRunner().invoke(
        app, ["anonymize", str(path), "-p", str(rules), "-o", str(tmp_path / "out.csv")]
    )
    assert done.exit_code == 0, done.output
    assert f"Note: {told('salary')}" in done.output
    assert "values lost  1 value of age: all records that had it were suppressed" in done.output
    audit = json.loads((tmp_path / "out.csv.private" / "audit.json").read_text())
    assert audit["result"]["notes"] == [told("salary"), told("remark")]
    assert audit["result"]["lost_values"] == {"age": 1}


def test_a_role_of_ones_own_is_noted_too() -> None:
    from shoal.core.contracts import Role

    found = {one.column: one for one in guess(pa.table(people()))}
    assert NEARLY_UNIQUE in found["remark"].with_role(Role.OTHER).reason
    assert found["remark"].with_role(Role.QUASI_IDENTIFIER).reason == "your choice"
    assert found["ward"].with_role(Role.OTHER).reason == "your choice"


columns = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", None]), min_size=24, max_size=24)


@settings(max_examples=examples(20), deadline=None)
@given(columns, st.integers(0, 24), st.sampled_from([-1, 24]))
def test_values_that_occur_once_are_counted_as_a_naive_count_does(
    values: list[Any], own: int, most: int
) -> None:
    mixed = [f"x{n}" for n in range(own)] + values[own:]
    table = pa.table({"text": mixed, "number": [None if v is None else hash(v) % 97 for v in mixed]})
    engine = choose_engine("auto", table)
    with patch("shoal.engines.relational.few_rows.FEW_ROWS", most):  # -1: the database counts
        found = engine.scan_columns(engine.open(table), ["text", "number"])
    for name, number in ((name, scan.unique_values) for name, scan in found.items()):
        plain = table[name].to_pylist()
        alone = sum(plain.count(value) == 1 for value in plain)
        assert number == alone if len(set(plain) - {None}) > 17 else number in (0, alone)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from("uvw")), min_size=8, max_size=30
    ),
    st.sampled_from(["contour", {"contour": {"cells": True}}, {"contour": {"refine": True}}, "mondrian"]),
)
def test_values_that_are_gone_are_those_of_suppressed_records_alone(
    rows: list[tuple[int, int, str]], algorithm: Any
) -> None:
    table = pa.table(
        {
            "a": [row[0] for row in rows],
            "b": [row[1] for row in rows],
            "s": [row[2] for row in rows],
            "row": [f"{place}" for place in range(len(rows))],
        }
    )
    wish = {
        "columns": {
            "a": {"role": QUASI, "hierarchy": {"intervals": [2]}},
            "b": {"role": QUASI, "hierarchy": "flat"},
            "s": {"role": "sensitive"},
            "row": {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 1}}],
        "suppression_limit": "40%",
        "algorithm": algorithm,
    }
    release = shoal.anonymize(table, wish)
    kept = [rows[int(place)] for place in release.table["row"].to_pylist()]
    expected = {}
    for column, name in enumerate("abs"):
        left = {row[column] for row in kept}
        if release.levels and name in release.levels:  # what shares a label with a kept value is left
            climbs = {0: lambda value: value, 1: lambda value: value // 2 if name == "a" else "*"}  # noqa: B023
            climb = climbs.get(release.levels[name], lambda _: "*")
            labels = {climb(value) for value in left}
            left = {row[column] for row in rows if climb(row[column]) in labels}
        gone = {row[column] for row in rows} - left
        if gone:
            expected[name] = len(gone)
    assert release.lost_values == expected


def contacts(rows: int = 90) -> dict[str, list[Any]]:
    """A third of the contacts are telephone numbers, few remarks hold an address, one ward has one."""
    return {
        "age": [30 + n % 3 for n in range(rows)],
        "contact": [f"+49 170 12345{n:02}" if n % 3 == 0 else f"none{n % 3}" for n in range(rows)],
        "remark": [f"write to p{n}@example.org soon" if n < 4 else "nothing" for n in range(rows)],
        "ward": ["a@example.org" if n % 2 else "b@example.org" for n in range(rows)],
    }


def as_they_are(names: Sequence[str], **changes: Any) -> dict[str, Any]:
    quasi = {"age": {"role": QUASI, "hierarchy": "flat"}}
    roles = {name: {"role": "sensitive" if place else "other"} for place, name in enumerate(names)}
    return {"columns": quasi | roles, "models": [{"k-anonymity": {"k": 3}}]} | changes


def test_values_that_look_like_direct_identifiers_are_counted() -> None:
    table = pa.table(contacts())
    advice = "make the column an identifier, or remove them from its values"
    numbers = "telephone or social security numbers"
    of = "of its different values in the input"
    expected = (
        f"'contact' is released as it is: {of}, 30 seem to hold {numbers}: {advice}.",
        f"'remark' is released as it is: {of}, 4 seem to hold e-mail addresses: {advice}.",
    )
    names = ["contact", "remark", "ward"]
    assert shoal.anonymize(table, as_they_are(names)).notes == expected
    apart = as_they_are(names[:1], models=[{"distinct-l-diversity": {"l": 2}}])
    apart["columns"]["contact"]["role"] = "sensitive"
    twice = pa.table(
        {name: (values * 2) for name, values in contacts().items() if name in ("age", "contact")}
    )
    persons, *others = shoal.anonymize(twice, apart | {"algorithm": "anatomy"}).notes
    assert persons.startswith("180 rows seem to be of 32 persons (column 'contact'): the models count rows.")
    assert others == [expected[0]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a.b@example.org", 0),
        ("mail a@b.co.uk now", 0),
        ("+49 170 1234567", 1),
        ("+1 (555) 123-4567", 1),
        ("(555) 123-4567", 1),
        ("555-123-4567", 1),
        ("0170 1234567", 1),
        ("030/1234567", 1),
        ("0170-1234567", 1),
        ("06 12 34 56 78", 1),
        ("123-45-6789", 1),
        ("a@b", None),
        ("3 @ 4.50", None),
        ("2024-01-31", None),
        ("01.02.2024", None),
        ("2024-01-31 12:30:00", None),
        ("0123-4567-89", None),  # a drug's code
        ("01234-5678-90", None),
        ("E11.9", None),
        ("0012345678", None),
        ("1234567890", None),
        ("-1234.5678", None),
        ("+12.5", None),
        ("12345-6789", None),  # a ZIP code
        ("20-29", None),
        ("192.168.10.12", None),
        ("seit 12.03.2024 und 14.03.2024", None),
        ("am 2024-01-31 12:30:00", None),
        ("0123-4567-89 gegeben", None),
        ("Code 01234-5678-90", None),
        ("code 01234-567-89 x", None),
        ("E11.9, I10", None),
        ("IBAN DE89 3704 0044 0532 0130 00", None),
        ("GB29 NWBK 0161 3319 2681 91", None),
        ("GB29 NWBK 0116 1331 9268 19", None),
        ("PLZ 01067 Dresden", None),
        ("ZIP 12345-6789", None),
        ("RR 120/80, Puls 75", None),
        ("um 0830 12.03.2024", None),
        ("Gabe 0800 1200 1800", None),
        ("0830-0900 120 mg", None),
        ("Nr. 0012345678", None),
        ("Fall 1234567890", None),
        ("+12.5 mg 13.5", None),
        ("Werte +20 2024-01-31", None),
        ("Kontrolle +25 12/03/2024", None),
        ("Tel. 12.03.2024", None),
        ("Tel. am 2024-03-12", None),
        ("LOINC 2345-7", None),
        ("ATC C09AA05", None),
        ("ICD-10 M54.16", None),
        ("1.234.567,89 EUR", None),
        ("192.168.10.12 host", None),
        ("ISBN 978-3-16-148410-0", None),
        ("20-29 Jahre", None),
        ("01/02/2024-03/04/2024", None),
        ("UDI (01)00884838000001", None),
        ("OPS 5-820.00", None),
        ("GTIN 04012345678901", None),
        ("PZN 01234567", None),
        ("Hotel 123456789", None),
        ("123.456.78", None),
        ("DE02120300000000202051", None),
        ("IT60 X054 2811 1010 0000 0123 456", None),
        ("FR14 2004 1010 0505 0001 3M02 606", None),
        ("Tel. 0151 12345678", 1),
        ("Rückruf unter 0151 12345678", 1),
        ("appeler le 06 12 34 56 78", 1),
        ("Tel. +49 151 12345678", 1),
        ("Tel.:0151/12345678.", 1),
        ("mobil 0151-12345678, bitte", 1),
        ("(030) 1234567 anrufen", 1),
        ("ruf +4915112345678 an", 1),
        ("+33 6 12 34 56 78 rappeler", 1),
        ("call 555-123-4567 today", 1),
        ("call (555) 123-4567", 1),
        ("call +1 (555) 123-4567!", 1),
        ("Tel. 612 345 678", 1),
        ("Tel 015112345678", 1),
        ("0049 151 12345678 privat", 1),
        ("ring 020 7946 0958 now", 1),
        ("+49 (0)151 12345678 ist", 1),
        ("SSN 123-45-6789 noted", 1),
        ("06.12.34.56.78 le soir", 1),
        ("bel 06-12345678 vanavond", 1),
        ("Handy: 0151 1234 5678", 1),
        ("089 / 1234567 Büro", 1),
        ("0151 12345678 12:00 Uhr", 1),
        ("tel 0161 496 0958", 1),
        ("téléphone +41 44 668 18 00", 1),
        ("Tél. 0612345678", 1),
    ],
)
def test_what_is_found_within_is_what_is_recognized(text: str, kind: int | None) -> None:
    found = [re.search(pattern, text) is not None for pattern in WITHIN.values()]
    assert found == [place == kind for place in range(2)]
    table = pa.table({"t": [text]})
    engine = choose_engine("auto", table)
    assert engine.scan_columns(engine.open(table), ["t"], [*WITHIN.values()])["t"].matches == tuple(
        map(int, found)
    )
    if kind == 1 and not re.search(r"[^\W\d_]{2}", text):
        assert is_phone(text) or is_ssn(text)


ROUGH = st.text("=+-@\t\r019.,eE%a \n()/", max_size=9)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(ROUGH, st.none()), min_size=1, max_size=30), st.sampled_from([-1, 30]))
@example(["-%\n"], -1)
@example(["-%\n"], 30)
def test_every_engine_finds_what_python_finds(values: list[str | None], most: int) -> None:
    table = pa.table({"text": pa.array(values, pa.string()), "number": [-n for n in range(len(values))]})
    engine, patterns = DuckDb(), (*WITHIN.values(), FORMULA)
    opened = engine.open(table)
    with patch("shoal.engines.relational.few_rows.FEW_ROWS", most):  # -1: the database matches
        found = engine.scan_columns(opened, ["text", "number"], patterns)
    naive = Engine.scan_columns(engine, opened, ["text", "number"], patterns)
    assert [look.matches for look in found.values()] == [look.matches for look in naive.values()]
    engine.close()


@given(ROUGH)
def test_a_formula_is_what_safe_cells_change_unless_it_is_a_number(cell: str) -> None:
    if is_formula(cell):
        assert safe_cell(cell) != cell
    elif safe_cell(cell) != cell:
        assert re.fullmatch(r"[+-][\d.,]*([eE][+-]?.*|%.*|)", cell, re.DOTALL)


def test_cells_that_begin_like_formulas_are_noted_by_column(tmp_path: Path) -> None:
    rows = {
        "age": [n % 8 - 5 for n in range(40)],
        "remark": ["=HYPERLINK(secret)", "fine", "-", "20-29"] * 10,
        "number": ["-5", "+1.5", "-1,234.5", "-2e-05"] * 10,
        "code": ["@sum", "x"] * 20,
    }
    wish = as_they_are(["remark", "number", "code"])
    wish["columns"]["age"]["hierarchy"] = {"intervals": [3]}
    for ending in (".csv", ".tsv"):
        found = shoal.anonymize(pa.table(rows), wish, output=tmp_path / f"o{ending}", node={"age": 0})
        assert [note for note in found.notes if "formulas" in note] == [
            "Cells of 'remark', 'code' begin like formulas, which a spreadsheet runs. The option "
            "'safe for spreadsheets' prevents that."
        ]
        assert "secret" not in str(found.notes)
    coarse = shoal.anonymize(pa.table(rows), wish, output=tmp_path / "c.csv", node={"age": 1})
    assert any(label.startswith("-") for label in coarse.labels["age"])
    assert any("Cells of 'age', 'remark', 'code'" in note for note in coarse.notes)
    for kept in ({"output": tmp_path / "o.parquet"}, {}):
        assert not any("formulas" in note for note in shoal.anonymize(pa.table(rows), wish, **kept).notes)
    safe = shoal.anonymize(pa.table(rows), wish, output=tmp_path / "s.csv", spreadsheet_safe=True)
    assert safe.notes == (SAFE,)


def test_a_column_that_fails_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DuckDb.scan_columns

    def scan_columns(self: DuckDb, table: Any, columns: Sequence[str], patterns: Sequence[str] = ()) -> Any:
        if "ward" in columns:
            message = "no"
            raise DataError(message)
        return whole(self, table, columns, patterns)

    monkeypatch.setattr(DuckDb, "scan_columns", scan_columns)
    assert shoal.anonymize(pa.table(people()), policy()).notes == (told("salary"), told("remark"))
