"""Hierarchy files of many values: read through Arrow as they are read row by row, and in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.core.hierarchy import lists
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.lists import Csv, csv_rows
from shoal.core.hierarchy.rows import Row, Rows, parse_rows
from shoal.errors import HierarchyError

PIECES = st.one_of(
    st.sampled_from(["a", "b", "0", "01", "é", " ", "*", ";", ",", "\n", '"', '"a"', '"b;c"', '""']),
    st.sampled_from([";", "\n", "\r\n", "\r", "\ufeff", "\0", "\x0b", "\u2028", "sep=;\n"]),
)


def _read(path: Path, limit: int) -> tuple[object, ...]:
    with patch.object(lists, "_LARGE", limit):
        try:
            rows, note = csv_rows(path, "c", "h.csv")
        except HierarchyError as error:
            return str(error), error.values
    return tuple(rows), note


@settings(
    max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.one_of(st.lists(PIECES, max_size=24).map("".join), st.text(max_size=30)))
@example(text="a;x\nb;x\n")
@example(text='"a";"x"\r\n"b";"x"\r\n')
@example(text='"a""b";x\n')
@example(text='a"b"c;x\n')
@example(text='"a;x\nb";x\n')
@example(text="sep=,\na;1,x\nb;2,x")
@example(text="a;x\n\nb;x\n")
@example(text="\ufeff\ufeffa;x\n")
def test_a_file_read_through_arrow_is_the_same_as_row_by_row(text: str, tmp_path: Path) -> None:
    """Also in what it refuses."""
    path = tmp_path / "h.csv"
    for encoding in ("utf-8", "utf-16"):
        path.write_bytes(text.encode(encoding))
        assert _read(path, -1) == _read(path, 1 << 30)


def test_plain_and_quoted_files_are_read_through_arrow() -> None:
    for data in (b"a;x\nb;x\n", b'"a","x"\r\n"b","x"', b"\xef\xbb\xbfsep=|\na|x\n"):
        assert parse_rows(data) is not None
    rows = parse_rows(b'sep=,\n"a;b",\nc,"x"\n')
    assert rows is not None
    assert tuple(rows) == (("a;b", ""), ("c", "x"))
    assert parse_rows(b"a;" + b"x" * 200_000) is None  # more than `csv` reads


class _CountedRows(Rows):
    passes = 0

    def __iter__(self) -> Iterator[Row]:
        self.passes += 1
        return super().__iter__()


def test_many_labels_are_described_in_one_pass_over_the_file() -> None:
    values, groups = [f"v{n}" for n in range(400)], [f"g{n // 4}" for n in range(400)]
    rows = _CountedRows([pa.array(values), pa.array(groups)])
    rule = Csv(csv="h.csv", rows=rows)
    assert [rule.covers(f"g{n}") for n in (0, 99)] == ["v0; v1; v2; v3", "v396; v397; v398; v399"]
    for group in dict.fromkeys(groups):
        rule.covers(group)
    assert rows.passes == 1


def test_an_order_of_many_values_is_grouped_in_one_pass() -> None:
    rule = parse("c", {"order": [str(n) for n in range(1000)], "sizes": [3, 300]})
    assert rule.listed()["4"] == ("3..5", "0..299")
    assert rule.listed()["999"] == ("999", "900..999")
    assert rule.listed() is rule.listed()


def test_a_release_lists_the_values_of_a_large_hierarchy_file(tmp_path: Path) -> None:
    count = 6_000  # more than is read row by row
    lines = [f"v{n:06};g{n // 10};*" for n in range(count)]
    (tmp_path / "h.csv").write_text("\n".join(lines))
    assert (tmp_path / "h.csv").stat().st_size > lists._LARGE
    (tmp_path / "t.csv").write_text("code\n" + "\n".join(f"v{n:06}" for n in range(count)))
    columns = {"code": {"role": "quasi-identifier", "hierarchy": {"csv": str(tmp_path / "h.csv")}}}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 5}}]}
    release = shoal.anonymize(tmp_path / "t.csv", policy, output=tmp_path / "r.csv")
    assert release.levels == {"code": 1}
    book = (tmp_path / "r.csv.codebook.csv").read_text().splitlines()
    assert len(book) == 1 + count // 10
    assert "code,1,g7," + "; ".join(f"v{n:06}" for n in range(70, 80)) in book


@pytest.mark.parametrize("repeated", ["a", "b"])
def test_a_large_file_that_repeats_a_value_is_read_or_refused_as_a_small_one(
    repeated: str, tmp_path: Path
) -> None:
    rows = [f"v{n:05},g{n % 7}" for n in range(9_000)]
    (tmp_path / "h.csv").write_text("\n".join([*rows, "v00000,g" + ("0" if repeated == "a" else "1")]))
    if repeated == "a":
        assert len(csv_rows(tmp_path / "h.csv", "c")[0]) == 9_000
    else:
        with pytest.raises(HierarchyError, match="row 9001 repeats a value with other groups"):
            csv_rows(tmp_path / "h.csv", "c")
