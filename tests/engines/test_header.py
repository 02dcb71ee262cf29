"""A file without a line of column names: its first record is in no message."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.cli.app import app

POLICY = """
columns:
  age: {role: quasi-identifier, hierarchy: flat}
  city: {role: quasi-identifier, hierarchy: flat}
  ill: {role: sensitive}
models:
  - k-anonymity: {k: 1}
"""
COMMANDS = [
    "risk {table} --columns age",
    "measure {table} --columns age",
    "measure {table} --policy {policy}",
    "measure {table} --columns cit",
    "diagnose {table} --columns age",
    "verify {table} --policy {policy}",
    "anonymize {table} --policy {policy} --output {output}",
    "attack {table} --known {table} --on age",
    "attack {release} --known {table} --on age",
    "utility {table} --release {release} --policy {policy}",
    "profile {table} --policy {policy} --output {output}",
    "hierarchy check {table} --policy {policy}",
]


WORDS = ("Mueller", "Dresden", "Hiv", "Schmidt", "Berlin")


def told_of(first: str, command: str, folder: Path) -> tuple[int, str]:
    table, release, policy = folder / "t.csv", folder / "r.csv", folder / "p.yaml"
    table.write_text(f"{first}\nSchmidt;Berlin;Grippe\n", encoding="utf-8")
    release.write_text("age,city,ill\n4,x,y\n5,x,y\n", encoding="utf-8")
    policy.write_text(POLICY, encoding="utf-8")
    words = command.format(table=table, release=release, policy=policy, output=folder / "o.csv").split()
    found = CliRunner().invoke(app, words)
    return found.exit_code, found.output + str(found.exception)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_message_shows_the_first_record(command: str, tmp_path: Path) -> None:
    code, told = told_of("Mueller;Dresden;Hiv", command, tmp_path)
    assert code
    assert not [word for word in WORDS if word in told]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_line_with_a_number_is_no_header_whatever_else_it_holds(command: str, tmp_path: Path) -> None:
    code, told = told_of("Mueller;Dresden;41", command, tmp_path)
    assert code or command.startswith("utility")
    assert not [word for word in (*WORDS, "41") if word in told.replace("--columns Dresden", "")]


@pytest.mark.parametrize("command", ["init {table} --yes", *COMMANDS])
def test_no_message_shows_a_record_that_repeats_a_value(command: str, tmp_path: Path) -> None:
    code, told = told_of("Mueller;Dresden;Dresden", command, tmp_path)
    assert code
    assert not [word for word in WORDS if word in told]


@pytest.mark.parametrize("command", [own for own in COMMANDS if "--policy" in own])
def test_what_a_table_has_is_not_shown_where_it_has_few_of_the_columns(command: str, tmp_path: Path) -> None:
    code, told = told_of("age;Dresden;Hiv", command, tmp_path)
    assert code or command.startswith("utility")  # which compares what both tables have
    assert not [word for word in WORDS if word in told]


def test_strange_columns_of_a_release_are_counted_and_shown_where_that_is_asked_for(tmp_path: Path) -> None:
    verify = "verify {table} --policy {policy}"
    code, told = told_of("age;city;Hiv", verify, tmp_path)
    assert code == 2
    assert "The release has 1 column that the policy does not name." in " ".join(told.split())
    assert "Columns: 'Hiv'." in told_of("age;city;Hiv", verify + " --reveal", tmp_path)[1]


def test_a_number_beside_the_column_that_was_asked_for_keeps_the_rest_hidden(tmp_path: Path) -> None:
    code, told = told_of("Mueller;41;Hiv", "measure {table} --columns 41 --sensitive ill", tmp_path)
    assert code == 2
    assert "no column 'ill'" in told
    assert not [word for word in WORDS if word in told]


@pytest.mark.parametrize(
    ("first", "asked"),
    [
        ("Station 3;Dresden;Hiv", "Station"),
        ("Muellers;Dresden;Hiv", "Mueller"),
        ("Grippe;Dresden;Hiv", "gripe"),
    ],
)
def test_a_value_that_is_like_what_was_asked_for_is_not_proposed(
    first: str, asked: str, tmp_path: Path
) -> None:
    value = first.partition(";")[0]
    command = f"measure {{table}} --columns {asked}"
    code, told = told_of(first, command, tmp_path)
    assert code == 2
    assert f"no column '{asked}', nor one like it" in told
    assert value not in told
    assert f"Columns: {value!r}, " in told_of(first, f"{command} --reveal", tmp_path)[1]


@pytest.mark.parametrize(
    ("first", "asked", "proposed"),
    [
        ("Age;lab;x", "Agee", "Age"),
        ("age;sex;hba1c", "hba1d", "hba1c"),  # two usual names tell that it is a header
        ("x;y;Größe", "grosse", "Größe"),
        ("Geburtsdatum;a;b", "Gebursdatum", "Geburtsdatum"),
    ],
)
def test_a_name_of_a_header_is_proposed(first: str, asked: str, proposed: str, tmp_path: Path) -> None:
    told = told_of(first, f"measure {{table}} --columns {asked}", tmp_path)[1]
    assert f"Did you mean '{proposed}'?" in told
