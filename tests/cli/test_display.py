"""Tables in a terminal: no word is broken, however narrow it is."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.document.document import Table
from shoal.document.terminal import fitted, show_table

LONG = "admission date of the stay"
words = st.text("abc", min_size=1, max_size=8)
cells = st.lists(words, min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(cells, cells, cells), max_size=4), st.integers(1, 60))
def test_columns_fit_and_hold_their_longest_word(rows: list[tuple[str, ...]], room: int) -> None:
    columns = list(zip(("one", "two", "three"), *rows, strict=True))
    least = [max(len(word) for cell in own for word in cell.split()) for own in columns]
    widths = fitted(("one", "two", "three"), rows, room)
    if widths is None:
        assert sum(least) > room
        return
    assert sum(widths) <= room
    assert all(width >= short for width, short in zip(widths, least, strict=True))
    whole = [max(map(len, own)) for own in columns]
    assert sum(widths) == min(room, sum(whole))


@pytest.mark.parametrize("width", [12, 30, 40, 80])
def test_no_line_is_wider_than_the_screen_and_no_word_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [(LONG, "quasi-identifier", "1,234"), ("[b]age", "sensitive", "7")]
    show_table(Table("Title", ("column", "role", "records"), rows))
    told = capsys.readouterr().out
    for word in (
        "admission",
        "stay",
        "quasi-identifier",
        "sensitive",
        "1,234",
        "[b]age",
        "column",
        "records",
    ):
        assert word in told
    if width >= 40:  # the words fit beside each other
        assert all(len(line) <= width for line in told.splitlines())
    else:
        assert "role     quasi-identifier" in told


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with long names, its policy and its release."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = ["identity", "age in years", LONG, "diagnosis of the doctor", "salary in euro", "hospital"]
    with open("t.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for n in range(120):
            row = f"Person {n}", 20 + n % 30, f"2024-{1 + n % 12:02}-11", f"illness {n % 3}"
            writer.writerow([*row, 250000 + n, f"H{n % 4}"])
    Path("p.yaml").write_text(
        "columns:\n"
        "  identity: {role: identifier}\n"
        "  age in years: {role: quasi-identifier, hierarchy: {intervals: [10]}}\n"
        f"  {LONG}: {{role: quasi-identifier, hierarchy: {{dates: [month, year]}}}}\n"
        "  diagnosis of the doctor: {role: sensitive}\n"
        "  salary in euro: {role: other}\n"
        "  hospital: {role: quasi-identifier, hierarchy: flat}\n"
        "models: [{k-anonymity: {k: 3}}]\n"
    )
    shoal.anonymize("t.csv", "p.yaml", output="out.csv")
    return tmp_path


def told(*call: str) -> str:
    done = CliRunner().invoke(app, list(call))
    assert done.exit_code in (0, 1), done.output
    return done.stdout


CALLS: dict[str, tuple[str, ...]] = {
    "utility": ("utility", "t.csv", "out.csv", "--policy", "p.yaml"),
    "overview": ("diagnose", "t.csv"),
    "question 12": ("diagnose", "t.csv", "--question", "12", "--most", "200"),
    "attack": ("attack", "t.csv", "--known", "t.csv", "--on", f"identity,{LONG}", "--reveal",
               "--sensitive", "diagnosis of the doctor,salary in euro"),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_tables_of_eighty_columns_are_readable(desk: Path, call: tuple[str, ...]) -> None:
    found = told(*call)
    assert "\u2026" not in found
    broken = [line for line in found.splitlines() if len(line) > 80 and line[:1] in "\u2502 "]
    assert not broken
    for word in ("admission", "hospital"):
        assert word in found


def test_a_release_on_a_narrow_screen_is_whole(desk: Path) -> None:
    found: Any = told("anonymize", "t.csv", "-p", "p.yaml", "-o", "again.csv")
    assert "quasi-identifier" in found
    assert "\u2026" not in found
