"""What a custodian should look at again: columns that identify by themselves, and values that are gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.assessing.nearly_unique import NEARLY_UNIQUE
from shoal.choose import engine_for
from shoal.cli import app
from shoal.init import guess
from shoal.policies.first import policy_text

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
    assert "vanished  1 value of age: all records that had them were suppressed" in done.output
    audit = json.loads((tmp_path / "out.csv.private" / "audit.json").read_text())
    assert audit["result"]["notes"] == [told("salary"), told("remark")]
    assert audit["result"]["vanished"] == {"age": 1}


def test_a_role_of_ones_own_is_noted_too() -> None:
    from shoal.core.schema import Role

    found = {one.column: one for one in guess(pa.table(people()))}
    assert NEARLY_UNIQUE in found["remark"].with_role(Role.OTHER).reason
    assert found["remark"].with_role(Role.QUASI_IDENTIFIER).reason == "your choice"
    assert found["ward"].with_role(Role.OTHER).reason == "your choice"


columns = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", None]), min_size=24, max_size=24)


@settings(max_examples=20, deadline=None)
@given(columns, st.integers(0, 24))
def test_values_that_occur_once_are_counted_as_a_naive_count_does(values: list[Any], own: int) -> None:
    mixed = [f"x{n}" for n in range(own)] + values[own:]
    table = pa.table({"text": mixed, "number": [None if v is None else hash(v) % 97 for v in mixed]})
    engine = engine_for("auto", table)
    found = engine.lone_values(engine.open(table), ["text", "number"])
    for name, number in found.items():
        plain = table[name].to_pylist()
        alone = sum(plain.count(value) == 1 for value in plain)
        assert number == alone if len(set(plain) - {None}) > 17 else number in (0, alone)


@settings(max_examples=30, deadline=None)
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
    assert release.vanished == expected
