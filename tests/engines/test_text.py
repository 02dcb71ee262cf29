"""Text files as they come: in other encodings, broken, or under a wrong name."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from example_counts import examples
from shoal.cli.app import app
from shoal.core.hierarchy.lists import Csv
from shoal.engines.duckdb import query
from shoal.engines.duckdb.decoded import DecodedFile, DecodedText
from shoal.engines.duckdb.engine import DuckDb
from shoal.engines.spark.engine import Spark
from shoal.engines.text import TextFile
from shoal.errors import DataError, HierarchyError, Note
from shoal.files import text as text_files

SECRET = "SECRET"
ENGINE = DuckDb()
HEADER = ["Größe", "Ort", "Notiz"]
# The first three begin no letter of UTF-8.
LETTERS = 'öüø“€a1",;\n '


def written(rows: Iterable[Sequence[str]], encoding: str, delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(encoding)


def counted(path: Path) -> Counter[tuple[str | None, ...]]:
    engine = ENGINE
    table = engine.open(path)
    columns = engine.columns(table)
    counts, domains = engine.count(table, columns)
    codes = [counts.codes(place) for place in range(len(columns))]
    texts = [domains[name].texts for name in columns]
    return Counter(
        {
            tuple(text[code[n]] for text, code in zip(texts, codes, strict=True)): int(counts.sizes[n])
            for n in range(len(counts))
        }
    )


@contextmanager
def notes() -> Iterator[list[str]]:
    """Collect what is noted."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", Note)
        yield said
    said += [str(one.message) for one in found]


CELLS = st.text(LETTERS, max_size=4)


@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8),
    encoding=st.sampled_from(["cp1252", "utf-16"]),
    kind=st.sampled_from([(".csv", ";"), (".csv.gz", ","), (".tsv", "\t")]),
)
def test_other_encodings_are_read_as_utf_8_is(
    tmp_path: Path, rows: list[tuple[str, str, str]], encoding: str, kind: tuple[str, str]
) -> None:
    ending, delimiter = kind
    path = tmp_path / f"data{ending}"
    content = written([HEADER, *rows], encoding, delimiter)
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    with notes() as said:
        found = counted(path)
    spoken = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}[encoding]
    assert [f"is not UTF-8; it was read as {spoken}." in one for one in said] == [True]
    assert found == Counter(tuple(cell or None for cell in row) for row in rows)


FIELDS = st.one_of(
    st.text("öüø“€a1 ", max_size=3),
    st.text(LETTERS + "\r", max_size=3).map(lambda text: '"' + text.replace('"', '""') + '"'),
    st.sampled_from(["", '""', '"', 'a"b', '"a"b', '"ü\r\nü"']),
)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a file's text, whole or broken, and the ending of its name."""
    ending, delimiter = draw(
        st.sampled_from([(".csv", ";"), (".csv", ","), (".CSV.GZ", ","), (".tsv", "\t")])
    )
    wide = draw(st.sampled_from([1, 2, 3, 3]))
    width = st.integers(0, 4) if draw(st.booleans()) else st.just(wide)
    rows = draw(st.lists(width.flatmap(lambda n: st.lists(FIELDS, min_size=n, max_size=n)), max_size=6))
    lines = [delimiter.join(row) + draw(st.sampled_from(["", "", "", delimiter])) for row in rows]
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    header = delimiter.join(['"Grö\nße"', "Ort", "Notiz"][:wide])
    text = ends.join([header, *lines]) + draw(st.sampled_from(["", ends, ends * 2, "\n"]))
    return text, ending


def outcome(folder: Path, ending: str, content: bytes) -> Any:
    """Return the rows of a new file, or the message with which it is refused."""
    path = folder / f"{len(list(folder.iterdir()))}{ending}"
    path.write_bytes(gzip.compress(content) if ending == ".CSV.GZ" else content)
    try:
        return counted(path)
    except DataError as error:
        return str(error).replace(str(path), "the file")


@settings(
    max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=texts(), encoding=st.sampled_from(["cp1252", "utf-16", "utf-16-be"]), mark=st.booleans())
def test_a_file_in_another_encoding_gives_what_its_twin_in_utf_8_gives(
    tmp_path: Path, drawn: tuple[str, str], encoding: str, mark: bool
) -> None:
    """The same rows or the same message, whatever the lines are like."""
    text, ending = drawn
    told = outcome(tmp_path, ending, text.encode("utf-8-sig" if mark else "utf-8"))
    begins = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    with notes() as said:
        found = outcome(tmp_path, ending, begins + text.encode(encoding))
    assert found == told
    assert len(said) <= 1


@pytest.mark.parametrize("column", ["age", "note"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_letter_far_down_is_found_by_whoever_reads_it_first(
    tmp_path: Path, column: str, ending: str
) -> None:
    """The column of notes is read only when the release is written."""
    data, out = tmp_path / "data.csv", tmp_path / f"out{ending}"
    cells = {"age": "40", "note": "none"} | {column: "€ü"}
    rows = [["age", "note"], *[["30", "plain"]] * 20_000, *[[cells["age"], cells["note"]]] * 5]
    data.write_bytes(written(rows, "cp1252"))
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "flat"}, "note": {"role": "other"}},
        "models": [{"k-anonymity": {"k": 5}}],
    }
    with notes() as said:
        release = shoal.anonymize(data, policy, output=out)
    assert len(said) == 1
    assert release.records == 20_005
    engine = DuckDb()
    counts, domains = engine.count(engine.open(out), [column])
    assert dict(zip(domains[column].texts, counts.sizes.tolist(), strict=True))["€ü"] == 5


def test_several_texts_of_one_query_are_read_again(tmp_path: Path) -> None:
    engine = DuckDb()
    tables = []
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_bytes(written([["a"], *[["x"]] * 9000, ["ü"]], "cp1252"))
        tables.append(engine.open(tmp_path / name))
    with notes() as said:
        counts, domains = engine.count(query.union(*tables), ["a"])
    assert dict(zip(domains["a"].texts, counts.sizes.tolist(), strict=True)) == {"x": 18_000, "ü": 2}
    assert len(said) == 2


def test_the_command_line_says_once_how_a_file_was_read(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_bytes("Größe,Ort\n1,Köln\n1,Köln\n".encode("cp1252"))
    found = CliRunner().invoke(app, ["measure", str(data), "--columns", "Größe,Ort", "--json"])
    assert (found.exit_code, json.loads(found.stdout)["k"]) == (0, 2)
    assert found.stderr.startswith("Note: ")
    assert found.stderr.count("read as Windows-1252") == 1


TRICKY = 'ab,ü\n€ö,"x\r\ny"\r\n' * 9


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    encoding=st.sampled_from(["cp1252", "utf-16-le", "utf-16-be", "utf-8-sig"]),
    ending=st.sampled_from([".csv", ".csv.gz"]),
    part=st.integers(1, 40),
    seeks=st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 60)), max_size=12),
)
def test_what_is_decoded_is_read_from_any_place(
    tmp_path: Path, encoding: str, ending: str, part: int, seeks: list[tuple[int, int]]
) -> None:
    """A letter may lie where two parts meet."""
    text = TRICKY if encoding == "cp1252" else TRICKY.replace("x", "😀")
    path = tmp_path / f"data{ending}"
    content = text_files.MARKS.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))
    path.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    with patch.object(text_files, "_CHUNK_BYTES", part):
        files = DecodedText(path, encoding)
    wanted = text.encode()
    with files.open(files.address) as file:
        assert (files.size(files.address), file.read()) == (len(wanted), wanted)
        for place, size in seeks:
            file.seek(place)
            assert file.read(size) == (wanted[place:] if size < 0 else wanted[place : place + size])


def test_a_file_that_changed_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("a\nü\n".encode("cp1252"))
    engine = DuckDb()
    with notes():
        table = engine.open(path)
    path.write_bytes("a\nü\nö\n".encode("cp1252"))
    assert engine.count(table, ["a"])[0].records == 2


def test_a_key_that_interrupts_decoding_interrupts_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def struck(self: DecodedFile, size: int = -1) -> bytes:
        raise KeyboardInterrupt

    (tmp_path / "data.csv").write_bytes("a\nü\n".encode("cp1252"))
    with notes():
        table = ENGINE.open(tmp_path / "data.csv")
    monkeypatch.setattr(DecodedFile, "read", struck)
    with pytest.raises(KeyboardInterrupt):
        ENGINE.count(table, ["a"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["Age\n(years)", "Age\r\n(years)", "Age\r(years)", ",", "plain"])
def test_what_is_in_a_quoted_name_ends_no_line(tmp_path: Path, name: str, ends: str, encoding: str) -> None:
    """Excel writes LF for a break within a cell, and CR LF after a row."""
    path = tmp_path / "a.csv"
    path.write_bytes(f'"{name}",sex{ends}1,f{ends}2,m{ends}2,m{ends}'.encode(encoding))
    with notes():
        assert counted(path) == Counter({("1", "f"): 1, ("2", "m"): 2})


def test_a_file_that_is_gone_says_so_and_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe,b\n1,Geheim,3\n".encode("cp1252"))
    engine = DuckDb()
    with notes():
        table = engine.open(path)
        path.unlink()
        with pytest.raises(DataError, match="was removed while it was read"):
            engine.count(table, ["b"])
    path.write_text("a,b\n1,Geheim,3\n")
    gone = patch.object(TextFile, "fault", side_effect=FileNotFoundError)
    with gone, pytest.raises(DataError, match="cannot be read") as caught:
        engine.count(engine.open(path), ["b"])
    assert "Geheim" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "content", [gzip.compress(b"a;b;c\n" * 99, mtime=0)[:-9], b"a;b", b"\x1f\x8b" + b"x" * 40]
)
def test_a_damaged_hierarchy_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "h.csv.gz").write_bytes(content)
    with pytest.raises(HierarchyError, match="it is damaged, or not a CSV file"):
        Csv(csv="h.csv.gz").read(tmp_path, "age")


def test_a_name_of_two_lines_after_a_mark_is_no_record(tmp_path: Path) -> None:
    """As Excel writes it in CSV UTF-8; the database itself takes the second line for a record."""
    (tmp_path / "data.csv").write_bytes(b'\xef\xbb\xbf"body\r\nheight","b"\r\n1,2\r\n')
    assert counted(tmp_path / "data.csv") == {("1", "2"): 1}


GOOD = b"a,b,c\n" + b"1,2,3\n" * 10
FAULTS = {
    "too many": (b"1,2,3,SECRET\n", "line 12 has 4 fields, the header 3. Quote values that hold ','."),
    "too few": (b"1,SECRET\n1,2,3\n", "line 12 has 2 fields, the header 3. Fill it up."),
    "after a value of two lines": (b'"1\n1",2,3\n1,SECRET\n', "line 14 has 2 fields, the header 3."),
    "open quote": (b'1,"SECRET,3\n1,2,3\n', "line 12 opens a quote that is not closed."),
    "open quote far": (b'1,"SECRET,3\n' + b"1,2,3\n" * 400_000, "line 12 opens a quote that is not closed."),
    "after a quote": (b'1,"2"SECRET,3\n', "line 12 has text after a closing quote."),
    "line ends": (b"1,2,3\r\n1,2,3\n", "line 12 ends in CR LF, the first in LF."),
    "a long line": (b"1," + b"SECRET" * 400_000 + b",3\n", "line 12 is longer than 2,000,000 bytes."),
    "many": (
        b"1,2,3,SECRET\n" * 1200,
        "line 12 has 4 fields, the header 3. In all, 1,200 lines have more or fewer than the header: "
        "12, 13, 14, 15, 16 and so on. Quote values that hold ','.",
    ),
    "both": (
        b'1,SECRET\n1,2,3\n"1\n1",2,3\n1,2,3,4\n1\n',
        "line 12 has 2 fields, the header 3. In all, 3 lines have more or fewer than the header: 12, 16, 17. "
        "Quote values that hold ','. Fill up lines that are too short.",
    ),
    "ragged and open": (
        b'1,SECRET\n1,SECRET\n1,"2,3\n',
        "line 12 has 2 fields, the header 3. Before line 14, 2 lines have more or fewer than the header: "
        "12, 13. Fill up lines that are too short.",
    ),
    "the word utf": (b"1,utf,3,SECRET\n", "line 12 has 4 fields"),
    "neither": (b"1,SECRET\x81,3\n", "is neither UTF-8 nor Windows-1252 (line 12)."),
    "mixed": (
        "1,ü,3\n".encode() + b"1,\xfc,SECRET\n",
        "has characters in UTF-8 (line 12) and others not in UTF-8 (line 13).",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_line_is_told_by_its_number(tmp_path: Path, fault: str) -> None:
    more, says = FAULTS[fault]
    (tmp_path / "data.csv").write_bytes(GOOD + more)
    with pytest.raises(DataError) as caught:
        counted(tmp_path / "data.csv")
    told = str(caught.value)
    assert says in told
    assert not [word for word in (SECRET, "Exception", "Arrow") if word in told]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_the_line_that_tells_excel_the_delimiter_is_read_over(
    tmp_path: Path, encoding: str, ends: str
) -> None:
    path = tmp_path / "t.csv"
    lines = ["sep=;", 'Größe,cm;"Ort; Land"', "1;ü", '2;"a;b"']
    path.write_bytes("".join(line + ends for line in lines).encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        table = ENGINE.open(path)
        assert ENGINE.columns(table) == ("Größe,cm", "Ort; Land")
        assert counted(path) == {("1", "ü"): 1, ("2", "a;b"): 1}


def test_spark_asks_to_delete_the_line_that_tells_excel_the_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sep=;\na;b\n1;2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"only tells Excel the delimiter.*Delete that line\."):
        Spark()._read(path, path, ".csv")


def test_lines_below_the_one_that_tells_the_delimiter_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sep=;\na;b\n1;2\n1;2;3\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 4 has 3 fields, the header 2"):
        counted(path)
    path.write_bytes(b"sep=;\na;b\r\n1;2\r\n")
    with pytest.raises(DataError, match="line 2 ends in CR LF, the first in LF"):
        counted(path)


def test_a_hierarchy_file_may_tell_excel_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("sep=;\na,b;g\nc;g\n", encoding="utf-8")
    rule = {"role": "quasi-identifier", "hierarchy": {"csv": str(tmp_path / "h.csv")}, "min_level": 1}
    policy = {"columns": {"x": rule}, "models": [{"k-anonymity": {"k": 2}}]}
    assert shoal.anonymize(pa.table({"x": ["a,b", "c"]}), policy).table["x"].to_pylist() == ["g", "g"]


def test_a_quoted_delimiter_in_the_first_name_after_a_mark_loses_no_record(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a;b";c\n1;2\n3;4\n', encoding="utf-8-sig")
    assert counted(path) == {("1", "2"): 1, ("3", "4"): 1}


def test_a_header_that_ends_in_a_delimiter_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b;\n1;2;\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"the header ends in ';', so that column 3 has no name. Remove it from"
    ):
        counted(path)
    path.write_text("a;b\n1;2;\n", encoding="utf-8")  # as it says
    assert counted(path) == {("1", "2"): 1}


def test_a_title_above_the_header_is_told_as_such(tmp_path: Path) -> None:
    for text in (b"Station 4\na;b;c\n1;2;3\n", b"Station 4\na;b;c\n1;2,5;3\n", b"Station 4\n1;2,5\n"):
        (tmp_path / "data.csv").write_bytes(text)
        with pytest.raises(DataError, match="If the first line is a title, remove this line"):
            counted(tmp_path / "data.csv")
    (tmp_path / "data.csv").write_bytes(b"note\na; b\nc; d; e\n")
    assert counted(tmp_path / "data.csv") == {("a; b",): 1, ("c; d; e",): 1}


def test_a_column_may_be_called_as_a_parquet_file_begins(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"PAR1,b\n1,2\n")
    assert counted(tmp_path / "data.csv") == {("1", "2"): 1}


def test_semicolons_in_a_tsv_part_its_columns(tmp_path: Path) -> None:
    (tmp_path / "data.tsv").write_bytes(b"a;b\n1;2\n")
    assert counted(tmp_path / "data.tsv") == {("1", "2"): 1}
    (tmp_path / "data.tsv").write_bytes(b"a;b;c\td\n1\t2\n")
    assert counted(tmp_path / "data.tsv") == {("1", "2"): 1}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("fault", list(FAULTS)[:11])
def test_no_encoding_lets_a_broken_line_swallow_others(tmp_path: Path, fault: str, encoding: str) -> None:
    more, says = FAULTS[fault]
    lines = "1,ü,3\n" + (GOOD + more).decode().partition("\n")[2].removeprefix("1,2,3\n")
    (tmp_path / "data.csv").write_bytes(("a,b,c\n" + lines).encode(encoding))
    with notes(), pytest.raises(DataError) as caught:
        counted(tmp_path / "data.csv")
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("broken", "line"), [(b"\x00\xd8,\x00", 3), (b"x", 3), (b"\n\x00" * 9 + b"\x00\xdc", 12)]
)
@pytest.mark.parametrize("part", [2, 1 << 20])
def test_a_broken_letter_of_utf_16_is_told_as_such(
    tmp_path: Path, broken: bytes, line: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK_BYTES", part)
    (tmp_path / "data.csv").write_bytes("a,b\nSECRET,2\n".encode("utf-16") + broken)
    with pytest.raises(DataError) as caught:
        counted(tmp_path / "data.csv")
    told = str(caught.value)
    assert f"begins as UTF-16, but line {line} has bytes that are invalid in UTF-16." in told
    assert not [word for word in (SECRET, "cp1252") if word in told]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_an_empty_line_of_one_column_is_a_record_without_a_value(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "data.csv").write_bytes("a\nü\n\nü\n".encode(encoding))
    with notes():
        assert counted(tmp_path / "data.csv") == {("ü",): 2, (None,): 1}


def test_a_broken_line_of_another_encoding_is_told_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(GOOD + b"1,\xfc,3\n1,SECRET\n")
    with notes(), pytest.raises(DataError, match="line 13 has 2 fields, the header 3") as caught:
        counted(tmp_path / "data.csv")
    assert SECRET not in str(caught.value)


def test_an_open_quote_in_the_header_is_told(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b'a,"b,c\n1,2,3\n')
    with pytest.raises(DataError, match="the header opens a quote that is not closed"):
        counted(tmp_path / "data.csv")


def test_a_byte_of_nothing_is_kept_in_a_value_and_refused_in_a_name(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b\n1,x\0y\n")
    assert counted(tmp_path / "data.csv") == {("1", "x\0y"): 1}
    (tmp_path / "data.csv").write_bytes(b"a,b\0\n1,x\n")
    with pytest.raises(DataError, match="is not a text of rows"):
        counted(tmp_path / "data.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_excel_calls_unicode_text_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "data.txt").write_bytes("a;b\tü\r\n1\t2\r\n".encode(encoding))
    with notes():
        assert counted(tmp_path / "data.txt") == {("1", "2"): 1}
    with pytest.raises(
        DataError, match=r"Cannot write 'out\.txt': \.txt files can only be read\. Use one of"
    ):
        ENGINE.target("out.txt")


def test_the_ending_that_would_do_is_told(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_bytes(b"Dear all\nhere it is\n")
    with pytest.raises(
        DataError, match=r"first line\. If it has only one column, rename the file so that it ends in \.csv"
    ):
        counted(tmp_path / "data.txt")
    (tmp_path / "data.dat").write_bytes(GOOD)
    with pytest.raises(DataError, match=r"If it is a text of rows, let its name end in \.csv\."):
        counted(tmp_path / "data.dat")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_hierarchy_file_may_be_in_another_encoding_too(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "towns.csv").write_bytes("Köln;“West”;*\nJena;“Öst”;*\n".encode(encoding))
    (tmp_path / "data.csv").write_text("town\n" + "Köln\nJena\n" * 3, encoding="utf-8")
    policy = "columns: {town: {role: quasi-identifier, hierarchy: {csv: towns.csv}}}\n"
    (tmp_path / "policy.yaml").write_text(f"{policy}models: [{{k-anonymity: {{k: 4}}}}]\n")
    files = [str(tmp_path / name) for name in ("data.csv", "policy.yaml", "out.csv")]
    found = CliRunner().invoke(
        app, ["anonymize", files[0], "--policy", files[1], "--output", files[2], "--json"]
    )
    assert found.exit_code == 0, found.output
    assert found.stderr.count("towns.csv' is not UTF-8; it was read as") == 1
    with notes():
        rows = Csv(csv="towns.csv").read(tmp_path, "town").rows
    assert rows == (("Köln", "“West”", "*"), ("Jena", "“Öst”", "*"))


def parquet() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"a": [SECRET]}), sink)
    return sink.getvalue()


KINDS: dict[str, tuple[Any, str]] = {
    "table.csv": (parquet, "is a Parquet file, not a .csv file. Let its name end in .parquet."),
    "short.csv": (lambda: gzip.compress(GOOD), "with gzip, not a .csv file. Let its name end in .csv.gz."),
    "sheet.csv": (lambda: b"PK\x03\x04SECRET", "is an Excel or zip file, not a .csv file."),
    "old.csv": (lambda: b"\xd0\xcf\x11\xe0SECRET", "Save it as .xlsx or CSV UTF-8."),
    "rows.parquet": (lambda: GOOD, "it is not a Parquet file. If it is text, let its name end in .csv."),
    "rows.arrow": (lambda: GOOD, "it is not an Arrow file. If it is text, let its name end in .csv."),
    "rows.csv.gz": (lambda: GOOD, "it is not compressed with gzip. If it is text, let its name end in .csv."),
    "cut.csv.gz": (lambda: gzip.compress(GOOD * 5000)[:-20], "content is truncated or damaged."),
    "cut.parquet": (lambda: parquet()[:50], "cannot be read: it is damaged. Use an intact copy."),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_file_under_a_wrong_name_is_told_which_would_do(tmp_path: Path, name: str) -> None:
    content, says = KINDS[name]
    (tmp_path / name).write_bytes(content())
    with pytest.raises(DataError) as caught:
        counted(tmp_path / name)
    told = str(caught.value)
    assert says in told
    assert not [word for word in (SECRET, "Exception", "ArrowInvalid") if word in told]
