"""Releases for spreadsheets of other countries: a delimiter, a byte order mark, and the count still holds."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import UsageError
from shoal.files.text import DELIMITERS
from shoal.policy.policy import Policy
from shoal.wording import message
from shoal.workflow.release.spreadsheet import Sheet, lines_of, safe_cell

POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "city": {"role": "quasi-identifier", "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
        "note": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 4}}, {"distinct-l-diversity": {"l": 2}}],
}
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(POLICY["columns"])
        cities = ["Köln", "Zürich; Süd", "a,b"]
        writer.writerows(
            [(n % 40 - 20, cities[n % 3], f"ä{n % 4}", ['1;2|3\t"\n', "", "=x"][n % 3]) for n in range(120)]
        )
    return path


def rows(path: Path, delimiter: str) -> list[list[str]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        header, *others = csv.reader(file, delimiter=delimiter)
    return [header, *sorted(others)]


@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize(("name", "sign"), [("semicolon", ";"), ("\t", "\t"), ("PIPE", "|"), (",", ",")])
def test_the_same_rows_are_written_and_read_by_all(
    data: Path, tmp_path: Path, name: str, sign: str, safe: bool, bom: bool
) -> None:
    usual, out = tmp_path / "usual.csv", tmp_path / "out.csv"
    before = shoal.anonymize(data, POLICY, output=usual)
    release = shoal.anonymize(data, POLICY, output=out, spreadsheet_safe=safe, delimiter=name, bom=bom)
    as_wished = safe_cell if safe else str
    for path, other in ((out, usual), (release.codebook, before.codebook)):
        header, *others = [[as_wished(cell) for cell in row] for row in rows(other, ",")]
        assert rows(path, sign) == [header, *sorted(others)]
        assert path.read_bytes().startswith(BOM) == bom
    assert release.verification.verified
    assert shoal.verify(out, POLICY, recipe=release.recipe).verified
    told, plain = shoal.utility(data, out, POLICY), shoal.utility(data, usual, POLICY)
    assert told == plain
    assert shoal.measure(out, policy=POLICY) == shoal.measure(usual, policy=POLICY)
    seen = [shoal.attack(path, data, ["age", "city"], policy=POLICY) for path in (out, usual)]
    assert seen[0].to_dict() == seen[1].to_dict()
    known = next(key for key, value in DELIMITERS.items() if value == sign)
    assert f"Values are separated by a {known}." in release.notes
    audit = json.loads((tmp_path / "out.csv.private" / "audit.json").read_text(encoding="utf-8"))
    assert audit["result"]["notes"] == list(release.notes)
    assert any("byte order mark" in note for note in release.notes) == bom


def test_the_second_table_follows(data: Path, tmp_path: Path) -> None:
    policy = POLICY | {"models": [{"distinct-l-diversity": {"l": 2}}], "algorithm": "anatomy"}
    release = shoal.anonymize(data, policy, output=tmp_path / "o.csv", delimiter="semicolon", bom=True)
    second = release.sensitive_table.read_bytes()
    assert second.startswith(BOM)
    assert second.splitlines()[0].count(b";") == 2
    assert shoal.verify(tmp_path / "o.csv", policy).verified


def test_a_recipe_is_applied_with_them(data: Path, tmp_path: Path) -> None:
    recipe = shoal.anonymize(data, POLICY, output=tmp_path / "o.csv").recipe
    again = shoal.apply(recipe, data, output=tmp_path / "2.csv", delimiter="tab", bom=True)
    assert again.verification.verified
    assert (tmp_path / "2.csv").read_bytes().startswith(BOM + b"age\tcity\t")


def test_the_commands_take_them(data: Path, tmp_path: Path) -> None:
    rules = tmp_path / "p.json"
    rules.write_text(json.dumps(POLICY))
    wish = ["--delimiter", ";", "--bom"]
    call = ["anonymize", str(data), "-p", str(rules), "-o", str(tmp_path / "out.csv"), *wish]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert "Note: Values are separated by a semicolon." in done.output
    call = ["apply", str(tmp_path / "out.csv.private"), str(data), "-o", str(tmp_path / "2.csv"), *wish]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert (tmp_path / "2.csv").read_bytes().startswith(BOM + b"age;city;")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (None, "a table in memory"),
        (Target("out.parquet", "file", ".parquet"), "a file of another format, .parquet"),
        (Target("out.csv", "folder", ".csv"), "'out.csv' is a folder"),
        (Target("out", "table"), "'out' is a table"),
    ],
)
@pytest.mark.parametrize(("sheet", "option"), [(Sheet(delimiter=";"), "delimiter"), (Sheet(bom=True), "bom")])
def test_other_outputs_are_refused(target: Target | None, words: str, sheet: Sheet, option: str) -> None:
    with pytest.raises(UsageError, match=option) as caught:
        sheet.check(Policy.load(POLICY), target)
    assert words in str(caught.value)


def test_what_contradicts_itself_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"separated by tabs, by its extension"):
        shoal.anonymize(data, POLICY, output=tmp_path / "o.tsv", delimiter=";")
    with pytest.raises(UsageError, match=r"delimiter must be comma, semicolon, tab, pipe.*got 'x'"):
        shoal.anonymize(data, POLICY, output=tmp_path / "o.csv", delimiter="x")
    with pytest.raises(UsageError, match=r"leave out delimiter and bom\.") as caught:
        shoal.anonymize(data, POLICY, output=tmp_path / "o.parquet", delimiter="tab", bom=True)
    assert message(caught.value, "cli").endswith("leave out --delimiter and --bom.")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("safe", [False, True])
def test_one_column_and_names_with_other_delimiters_are_read_back(tmp_path: Path, safe: bool) -> None:
    for place, columns in enumerate((["a"], ["a;b;c;d", "e"], ["a,b,c", "e"], [","], ["a\r\nb", "e"])):
        table = pa.table(dict.fromkeys(columns, ["1,5,7", "2;5;8"] * 10))
        roles = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in columns}
        policy = {"columns": roles, "models": [{"k-anonymity": {"k": 2}}]}
        for sign in (",", ";"):
            out = tmp_path / f"{place}.csv"
            found = shoal.anonymize(
                table, policy, output=out, delimiter=sign, spreadsheet_safe=safe, force=True
            )
            assert found.verification.verified
            assert shoal.measure(out, policy=policy).records == 20


def test_who_brings_semicolons_is_told_how_a_release_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(json.dumps(POLICY | {"suppression_limit": "50%"}), encoding="utf-8")
    rows = [f"{n};Köln;x{n % 4};y\n" for n in range(20, 30)]
    Path("t.csv").write_text("age;city;illness;note\n" + "".join(rows), encoding="cp1252")
    Path("c.csv").write_text(Path("t.csv").read_text("cp1252").replace(";", ","), encoding="utf-8")

    def told(data: str, *options: str) -> str:
        words = ["anonymize", data, "--policy", "p.yaml", "--force", *options]
        done = CliRunner().invoke(app, [*words, *([] if "-o" in options else ["-o", "o.csv"])])
        assert done.exit_code == 0
        return " ".join(done.stdout.split())

    assert "0 suppressed (0%, at most 5)" in told("t.csv")
    assert "use --delimiter semicolon --bom." in told("t.csv")
    assert told("t.csv", "--bom").endswith("use --delimiter semicolon.")
    for quiet in (["--delimiter", "comma"], ["-o", "o.parquet"], ["-o", "o.tsv"]):
        assert "parted by semicolons" not in told("t.csv", *quiet)
    assert "parted by semicolons" not in told("c.csv")
    assert json.loads(told("t.csv", "--json"))["limit"] == 5


TEXTS = st.text(",;|\tab\"'\n=", min_size=1, max_size=4)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3, unique_by=str.lower),
    st.sampled_from([*DELIMITERS.values()]),
    st.booleans(),
)
def test_whoever_reads_the_header_finds_the_delimiter(names: list[str], sign: str, anew: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine, path = DuckDb(), Path(folder, "a.csv")
        table = pa.table({name: ["x", "y"] for name in names})
        if anew:
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, ["x"] * len(names)])
            written = "".join(lines_of(path, Sheet(delimiter=sign)))
            path.write_text(written, encoding="utf-8", newline="")
        else:
            engine.write(engine.open(table), Target(str(path), "file", ".csv", sign))
        try:
            found = engine.columns(engine.open(path))
        except shoal.errors.DataError:  # names that no table may have
            return
        assert found == tuple(names)
        engine.close()


def test_a_long_cell_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n=1," + "x" * 140_000 + "\n")
    assert "".join(lines_of(path, Sheet(safe=True, delimiter=";"))) == "a;b\n'=1;" + "x" * 140_000 + "\n"
