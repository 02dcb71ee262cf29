"""Attacks on what is written otherwise: dates and numbers are read, and what is not is no all-clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from example_counts import examples
from list_engine import ListEngine
from shoal.cli.app import app
from shoal.core.hierarchy.builders import parse
from shoal.errors import UsageError
from shoal.workflow.attack.covering import ScaleIndex, rewritten_texts
from shoal.workflow.attack.labels import Span

LIST_ENGINE = ListEngine()
QUASI = "quasi-identifier"
GERMAN = {"dates": ["day", "month", "quarter", "year"], "format": "%d.%m.%Y %H:%M"}


def frame(texts: list[Any], name: str = "x") -> pd.DataFrame:
    return pd.DataFrame({name: texts}, dtype="string")


def policy(rule: Any, **more: Any) -> dict[str, Any]:
    columns = {"x": {"role": QUASI, "hierarchy": rule}, **more}
    return {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}


def joined(labels: list[Any], known: list[Any], rule: Any = None) -> shoal.Attack:
    told = {} if rule is None else {"policy": policy(rule)}
    return shoal.attack(frame(labels), frame(known), "x", engine=LIST_ENGINE, **told)


@pytest.mark.parametrize("label", ["2024-03-05", "2024-03", "2024-Q1", "2024"])
@pytest.mark.parametrize("rule", [None, GERMAN, {"dates": ["day", "month", "quarter", "year"]}])
@pytest.mark.parametrize(
    "known",
    ["05.03.2024", "5.3.2024", "05.03.2024 14:15", "05.03.2024 14:15:59", "05/03/2024", "2024-03-05",
     "2024-03-05 14:15", "05-03-2024", "2024/03/05", "05/03/2024 2:15 PM", " 05.03.2024"],
)  # fmt: skip
def test_dates_are_read_however_they_are_known(label: str, rule: Any, known: str) -> None:
    found = joined([label, label, "2023-11-30"], [known], rule)
    assert (found.smallest, found.matched, found.conclusive) == (2, 1, True)


@pytest.mark.parametrize(
    ("style", "others", "known", "matched"),
    [
        ("%m/%d/%Y", [], "05/03/2024", "2024-05-03"),
        ("%m/%d/%Y %H:%M", [], "05/03/2024", "2024-05-03"),
        ("%d/%m/%Y %H:%M", [], "05/03/2024", "2024-03-05"),
        ("%m.%d.%Y %H:%M", [], "05.03.2024", "2024-05-03"),
        (None, [], "05/03/2024", "2024-03-05"),
        (None, ["12/31/2024"], "05/03/2024", "2024-05-03"),
        (None, ["31/12/2024"], "05/03/2024", "2024-03-05"),
    ],
)
def test_the_rule_and_the_other_values_tell_what_comes_first(
    style: str | None, others: list[str], known: str, matched: str
) -> None:
    rule = {"dates": ["day", "month"], "format": style} if style else None
    days = {"2024-05-03", "2024-03-05"}
    assert joined([matched], [known, *others], rule).matched == 1
    assert joined([*(days - {matched})], [known, *others], rule).matched == 0
    notes = joined([*days], [known, *others], rule).notes
    unsure = any("may begin with the day or the month; the day was taken" in note for note in notes)
    assert unsure is (style is None and not others)


@pytest.mark.parametrize("rule", [None, {"intervals": [1, 10]}, {"intervals": [1, 10], "decimal": ","}])
@pytest.mark.parametrize("known", [["36,6", "41,0"], ["36.6", "41.0"], ["36,6", "k.A.", "41"]])
def test_decimal_commas_are_read(rule: Any, known: list[str]) -> None:
    found = joined(["[36, 37)", "[36, 37)", "[41, 42)"], known, rule)
    assert (found.matched, found.singled_out) == (2, 1)
    assert found.conclusive


def test_a_comma_that_may_part_thousands_is_not_read() -> None:
    found = joined(["1000-1999", "0-999"], ["1,234", "999"])
    assert (found.matched, found.conclusive) == (1, True)
    assert found.notes[0].startswith("1 known value of 'x' could not be read and matches no record.")


@pytest.mark.parametrize(
    ("label", "known"), [("05.03.2024", "2024-03-05"), ("38,0", "38.0"), ("38,5", "38.5")]
)
@pytest.mark.parametrize("rule", [None, "flat"])
def test_values_that_are_released_as_they_are_are_read_too(label: str, known: str, rule: Any) -> None:
    for labels, person in ((label, known), (known, label), (label, label)):
        found = joined([labels, "*"], [person], rule)
        assert (found.smallest, found.notes) == (2, ())
    assert joined([label, label[:-1] + "7"], [known], rule).singled_out == 1


@settings(max_examples=examples(60), deadline=None)
@given(st.dates(), st.sampled_from(["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d"]))
def test_a_day_is_the_same_however_it_is_written(day: Any, style: str) -> None:
    text = day.strftime(style).rjust(len("01.01.2024") if style != "%Y%m%d" else 8, "0")
    if f"{day.year:04}" not in text:  # years before 1000 are not padded everywhere
        return
    rule = parse("x", {"dates": ["day"], "format": "%H:%M"})
    first = style.startswith("%m")
    assert rewritten_texts([text], rule, months_first=first) == {text: day.isoformat()}


def test_the_decimal_sign_is_the_rule_s() -> None:
    comma = parse("x", {"intervals": [1], "decimal": ","})
    assert rewritten_texts(["36.6", "1"], comma) == {"36.6": "36,6"}
    assert rewritten_texts(["36,6", "1"], parse("x", {"prefix": [1]})) == {}
    assert rewritten_texts(["20240305", "7"], None) == {}


@pytest.mark.parametrize(
    ("labels", "known", "rule"),
    [
        (["2024-Q1"], ["Spring", "Lent"], None),
        (["2024-Q1"], ["Spring", "Lent"], GERMAN),
        (["[36, 37)"], ["warm", "hot"], {"intervals": [1]}),
        (["22", "*"], ["20-24", "25-29"], {"intervals": [5]}),
        (["22", None], ["20-24", "25-29"], None),
        (["warm"], ["rot", "gelb"], {"tree": {"warm": ["red"], "cold": ["blue"]}}),
        (["14:00-14:59"], ["noon", "dusk"], None),
    ],
)
def test_what_cannot_be_read_is_told_and_proves_nothing(
    labels: list[Any], known: list[str], rule: Any
) -> None:
    found = joined(labels, known, rule)
    assert any(
        note.startswith("2 known values of 'x' could not be read and match no record.")
        for note in found.notes
    )
    assert not found.conclusive
    assert found.to_dict()["conclusive"] is False
    assert not any(value in note for note in found.notes for value in known)


def test_half_of_the_values_without_a_record_are_told() -> None:
    found = joined(["m", "m", "w"], ["m", "f"], "flat")
    assert found.conclusive
    assert found.notes == (
        "1 of 2 known values of 'x' match no record by that column alone. Does the release "
        "write them in another way?",
    )
    assert joined(["m", "w", "d"], ["m", "w", "f"], "flat").notes == ()


def test_an_empty_column_or_nothing_known_is_no_reason_for_a_note() -> None:
    for labels, known in ((["*", None], ["Spring"]), (["2024"], [None])):
        found = joined(labels, known, GERMAN)
        assert (found.notes, found.conclusive) == ((), True)


def write(path: Path, table: pd.DataFrame, sep: str = ",") -> Path:
    table.to_csv(path, index=False, sep=sep)
    return path


def run(*arguments: Any) -> Any:
    return CliRunner(env={"COLUMNS": "140"}).invoke(app, [str(argument) for argument in arguments])


def test_a_register_without_times_finds_whom_one_with_iso_dates_finds(tmp_path: Path) -> None:
    days = [f"{day:02}.03.2024" for day in range(1, 29)]
    table = pd.DataFrame({"x": [f"{day} 03:45" for day in days], "y": range(28)})
    wanted = policy(GERMAN, y={"role": "other"}) | {"models": [{"k-anonymity": {"k": 1}}]}
    write(tmp_path / "data.csv", table)
    shoal.anonymize(tmp_path / "data.csv", wanted, output=tmp_path / "release.csv", node={"x": 1})
    ways = {"day": days, "iso": [f"{d[6:]}-{d[3:5]}-{d[:2]}" for d in days]}
    for name, texts in ways.items():
        known = write(tmp_path / f"{name}.csv", frame(texts), ";")
        for told in ({"policy": wanted}, {"recipe": tmp_path / "release.csv.private"}, {}):
            found = shoal.attack(tmp_path / "release.csv", known, "x", **told)
            assert (found.singled_out, found.notes) == (28, ()), (name, told)


def test_nobody_who_matches_is_exit_code_1(tmp_path: Path) -> None:
    release = write(tmp_path / "release.csv", frame(["20-24"] * 9))
    known = write(tmp_path / "known.csv", frame(["77", "78"]))
    told = run("attack", release, "--known", known, "--on", "x")
    assert told.exit_code == 1
    assert "Nobody matches any record, which proves nothing" in told.stdout
    assert "No person matches fewer" not in told.stdout
    as_json = run("attack", release, "--known", known, "--on", "x", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["conclusive"]) == (1, False)


def test_a_column_that_could_not_be_read_is_exit_code_1(tmp_path: Path) -> None:
    release = write(tmp_path / "release.csv", frame(["22", *["*"] * 9]))
    known = write(tmp_path / "known.csv", frame(["20-24", "25-29"]))
    told = run("attack", release, "--known", known, "--on", "x")
    assert told.exit_code == 1
    assert "No known value of one column could be read, so the attack proves nothing." in told.stdout
    assert "No person matches fewer" not in told.stdout


@pytest.fixture
def swapped(tmp_path: Path) -> dict[str, Path]:
    raw = pd.DataFrame({"name": list("abcdefgh"), "x": range(20, 28), "ill": ["flu", "gout"] * 4})
    wanted = policy({"intervals": [10]}, name={"role": "identifier"}, ill={"role": "sensitive"})
    paths = {"raw": write(tmp_path / "raw.csv", raw), "release": tmp_path / "release.csv"}
    paths["policy"] = tmp_path / "policy.yaml"
    paths["policy"].write_text(json.dumps(wanted), encoding="utf-8")
    shoal.anonymize(paths["raw"], paths["policy"], output=paths["release"])
    return paths


def test_swapped_tables_are_refused(swapped: dict[str, Path]) -> None:
    raw, release, wanted = swapped["raw"], swapped["release"], swapped["policy"]
    own = release.with_name("release.csv.private")
    for arguments in (
        ("attack", raw, "--known", release, "--on", "x", "--policy", wanted),
        ("attack", raw, "--known", release, "--on", "x", "--recipe", own),
        ("utility", release, raw, "--policy", wanted),
        ("risk", release, "--release", raw, "--policy", wanted),
    ):
        told = run(*arguments)
        assert told.exit_code == 2, arguments
        words = " ".join(told.stderr.split())
        assert "The release has identifiers of the policy, which the" in words
        assert "'name'. Are the release and the" in words
    for call in (shoal.utility, lambda *two: shoal.risk(two[0], two[2], release=two[1])):
        with pytest.raises(UsageError, match="swapped"):
            call(release, raw, wanted)
        call(raw, release, wanted)
        call(raw, raw, wanted)  # the same table twice is not swapped


def test_swapped_tables_are_noted_where_no_policy_tells(swapped: dict[str, Path]) -> None:
    raw, release = swapped["raw"], swapped["release"]
    found = shoal.risk(release, columns=["x"], release=raw)
    assert "The release has 1 column that the table lacks. Are the two swapped?" in found.notes
    assert shoal.risk(raw, columns=["x"], release=release).notes == ()
    found = shoal.attack(raw, release, "x")
    assert not found.conclusive


def test_a_release_with_more_records_than_its_table_is_refused(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw.csv", pd.DataFrame({"x": range(20, 28)}))
    release = write(tmp_path / "release.csv", pd.DataFrame({"x": ["20-29"] * 7}))
    wanted = policy({"intervals": [10]})
    for call in (shoal.utility, lambda *tables: shoal.risk(tables[0], tables[2], release=tables[1])):
        with pytest.raises(UsageError, match="has 8 records, and the table 7"):
            call(release, raw, wanted)
        call(raw, release, wanted)


STRETCH = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(STRETCH, min_size=1, max_size=12), STRETCH)
def test_stretches_that_meet_are_found(ends: list[tuple[int, int]], wanted: tuple[int, int]) -> None:
    low, high = map(np.array, zip(*ends, strict=True))
    scale = ScaleIndex.of(low.astype(float), high.astype(float), np.arange(len(ends)))
    expected = [place for place, (a, b) in enumerate(ends) if a <= wanted[1] and b >= wanted[0]]
    assert sorted(scale.overlapping(Span("number", *map(float, wanted))).tolist()) == expected


def test_ranges_with_a_decimal_comma_are_read_without_a_policy() -> None:
    found = joined(["[36,4-36,9]", "[37,0-38,5]", "[37,0-38,5]", "41,5"], ["36.6", "37.2", "41,5", "40"])
    assert (found.matched, found.singled_out, found.notes) == (3, 2, ())
    unclear = joined(["[1,234-2,345]", "7"], ["1.5", "8"])
    assert unclear.notes[0].startswith("1 label of 'x' could not be read")


def test_an_attack_by_many_moments_reads_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one is read alone, which took most of the time."""
    monkeypatch.setattr("shoal.core.hierarchy.dates._parse_one", None)
    texts = [f"{n % 28 + 1:02}.{n % 12 + 1:02}.2024 {n % 24:02}:{n % 60:02}" for n in range(1680)]
    found = joined([f"2024-{n % 12 + 1:02}" for n in range(1680)], texts)
    assert (found.matched, found.conclusive, found.notes) == (len(texts), True, ())
