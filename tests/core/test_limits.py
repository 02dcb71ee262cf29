"""Limits on what is read: bombs are refused before they are unpacked, endless lines are not read whole."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from shoal.engines.duckdb.engine import DuckDb
from shoal.engines.file_checks import check_size, pages
from shoal.engines.text import read_header
from shoal.errors import DataError
from shoal.files.limits import LONGEST_CELL, Limits, limited
from shoal.files.text import other_encoding, read_text
from shoal.workflow.inspect import inspect

MIB = 1 << 20


@contextmanager
def memory_within(most: int) -> Iterator[None]:
    """Fail where Python objects take more memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@contextmanager
def nothing_unpacked() -> Iterator[None]:
    """Fail where a page or a batch is unpacked."""

    def unpack(*_: Any, **__: Any) -> None:
        pytest.fail("it was unpacked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyarrow.feather, "read_table", unpack)
        patch.setattr(pyarrow.parquet.ParquetFile, "iter_batches", unpack)
        yield


def refused(path: Path, match: str, **given: int) -> None:
    with limited(Limits(**given)), pytest.raises(DataError, match=match) as error:
        DuckDb().open(path)
    assert len(str(error.value)) < 1000


# Unpacked size.


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    line = b"0" * 1023 + b"\n"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"a\n")
        for _ in range(64):
            file.write(line * 1024)
    assert path.stat().st_size < MIB
    with memory_within(16 * MIB):
        refused(path, "unpacks to more than 4,194,304 bytes, which is the limit", unpacked=4 * MIB)
    assert DuckDb().open(path) is not None  # the command line reads whatever its user names


def test_what_is_within_the_limits_is_read_as_before(tmp_path: Path) -> None:
    table = pa.table({"age": [34, 35, 34], "town": ["Bern", None, "Basel"]})
    (tmp_path / "t.csv").write_text("age,town\n34,Bern\n35,\n34,Basel\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    for codec in ("none", "snappy", "zstd", "gzip"):
        pyarrow.parquet.write_table(table, tmp_path / f"{codec}.parquet", compression=codec)
    pyarrow.parquet.write_table(table, tmp_path / "v2.parquet", data_page_version="2.0", use_dictionary=False)
    for codec in ("uncompressed", "lz4", "zstd"):
        pyarrow.feather.write_feather(table, str(tmp_path / f"{codec}.arrow"), compression=codec)
    encoded = table.set_column(1, "town", table["town"].dictionary_encode())
    pyarrow.feather.write_feather(encoded, str(tmp_path / "dictionary.arrow"))
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 11
    with limited(Limits(unpacked=MIB, columns=2)):
        for path in paths:
            assert inspect(path).records == 3, path


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_a_parquet_bomb_is_refused_by_the_headers_of_its_pages(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"a": np.zeros(4_000_000, "int64")})
    pyarrow.parquet.write_table(table, path, compression=codec, use_dictionary=False)
    assert path.stat().st_size < MIB
    del table
    with nothing_unpacked():
        refused(path, "unpacks to more than 8,388,608 bytes", unpacked=8 * MIB)


def test_the_pages_of_a_parquet_file_are_those_of_its_footer(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rng = np.random.default_rng(7)
    table = pa.table({"a": rng.normal(size=50_000), "b": [f"town {n % 777}" for n in range(50_000)]})
    for version in ("1.0", "2.0"):
        pyarrow.parquet.write_table(
            table, path, row_group_size=20_000, data_page_size=10_000, data_page_version=version
        )
        footer = pyarrow.parquet.read_metadata(path)
        with open(path, "rb") as file:
            for group in range(footer.num_row_groups):
                for column in range(2):
                    chunk = footer.row_group(group).column(column)
                    sizes = [page.size for page in pages(file, chunk)]
                    assert len(sizes) > 2
                    headers = chunk.total_uncompressed_size - sum(sizes)
                    assert 0 < headers <= 100 * len(sizes)


def test_repeated_values_count_although_they_take_no_room_in_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    pyarrow.parquet.write_table(pa.table({"a": pa.nulls(3_000_000, pa.int8())}), path)
    assert path.stat().st_size < 100_000
    refused(path, "unpacks to more than 1,048,576 bytes", unpacked=MIB)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_an_arrow_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "bomb.arrow"
    pyarrow.feather.write_feather(
        pa.table({"a": np.zeros(4_000_000, "int64")}), str(path), compression=codec, chunksize=4_000_000
    )
    assert path.stat().st_size < MIB
    with nothing_unpacked():
        refused(path, "unpacks to more than 8,388,608 bytes", unpacked=8 * MIB)


def test_an_arrow_file_of_endless_nulls_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nulls.arrow"
    pyarrow.feather.write_feather(pa.table({"a": pa.nulls(50_000_000)}), str(path), chunksize=50_000_000)
    assert path.stat().st_size < 10_000
    refused(path, "unpacks to more than 8,388,608 bytes", unpacked=8 * MIB)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_whose_size_cannot_be_known_is_refused(tmp_path: Path, ending: str) -> None:
    whole = tmp_path / f"whole.{ending}"
    table = pa.table({"a": list(range(5000)), "b": ["x"] * 5000})
    if ending == "parquet":
        pyarrow.parquet.write_table(table, whole)
    else:
        pyarrow.feather.write_feather(table, str(whole))
    content = whole.read_bytes()
    path = tmp_path / f"broken.{ending}"
    for place in range(8, len(content) - 8, max(1, len(content) // 150)):
        damaged = bytearray(content)
        damaged[place : place + 4] = b"\xff\xff\xff\x7f"
        path.write_bytes(damaged)
        with limited(Limits(unpacked=MIB)), suppress(DataError):  # any other error fails the test
            check_size(path, f".{ending}")


def workbook(path: Path, sheet: str) -> None:
    """Write the sheet of a workbook by hand."""
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need shoal[formats]")
    book = openpyxl.Workbook()
    book.active["A1"] = "a"
    stored = io.BytesIO()
    book.save(stored)
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            content = sheet.encode() if part.filename.endswith("sheet1.xml") else old.read(part)
            new.writestr(part.filename, content)


_SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData>'
    "</worksheet>"
)


def test_an_excel_bomb_is_refused_by_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    workbook(path, _SHEET.format(" " * 20_000_000))
    assert path.stat().st_size < MIB
    refused(path, "unpacks to more than 8,388,608 bytes", unpacked=8 * MIB)


def test_an_excel_file_whose_directory_lies_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "liar.xlsx"
    workbook(path, _SHEET.format(" " * 20_000_000))
    content = bytearray(path.read_bytes())
    true = struct.pack("<I", len(_SHEET.format("")) + 20_000_000)
    assert content.count(true) == 2  # in the directory, and before the part
    path.write_bytes(content.replace(true, struct.pack("<I", 1000)))
    with memory_within(8 * MIB):
        refused(path, "cannot be read as .xlsx", unpacked=8 * MIB)


def test_an_excel_file_of_few_cells_far_apart_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sparse.xlsx"
    cell = '<c r="{}" t="inlineStr"><is><t>x</t></is></c>'
    rows = "".join(f'<row r="{n}">{cell.format(f"XFD{n}")}</row>' for n in range(1, 300))
    workbook(path, _SHEET.format(rows))
    refused(path, "has 16,384 columns, and the limit is 5,000", unpacked=8 * MIB, columns=5000)
    with memory_within(32 * MIB):
        refused(path, "unpacks to more than 8,388,608 bytes", unpacked=8 * MIB)


def test_a_statistics_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS files need shoal[formats]")
    pandas = pytest.importorskip("pandas", reason="the file is written with pandas")
    path = tmp_path / "bomb.zsav"
    pyreadstat.write_sav(pandas.DataFrame({"a": [0.0] * 200_000, "b": [""] * 200_000}), path, compress=True)
    assert path.stat().st_size < MIB
    refused(path, "unpacks to more than 1,048,576 bytes", unpacked=MIB)
    refused(path, "has 2 columns, and the limit is 1", unpacked=64 * MIB, columns=1)


# Columns.


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "arrow", "xlsx"])
def test_too_many_columns_are_refused_in_every_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"wide.{ending}"
    names = [f"c{n}" for n in range(101)]
    table = pa.table({name: [1] for name in names})
    separator = "\t" if ending == "tsv" else ","
    text = f"{separator.join(names)}\n{separator.join('1' * 101)}\n".encode()
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif ending == "arrow":
        pyarrow.feather.write_feather(table, str(path))
    elif ending == "xlsx":
        workbook(
            path, _SHEET.format("<row>" + "".join(f'<c t="str"><v>{n}</v></c>' for n in names) + "</row>")
        )
    else:
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    refused(path, "has 101 columns, and the limit is 100. Leave columns out.", columns=100)


# Cells.


@pytest.mark.parametrize("before", ["", "sep=;\n", '"a\n'])
def test_an_endless_header_is_not_read_into_memory(tmp_path: Path, before: str) -> None:
    path = tmp_path / "endless.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(before.encode())
        for _ in range(64):
            file.write(b"a" * MIB)
    with memory_within(32 * MIB), pytest.raises(DataError, match=r"longer than 2,000,000 bytes|not closed"):
        read_header(path, ".csv.gz")


@pytest.mark.parametrize("end", [b"", b"\n", b"\n5,6\n"])
@pytest.mark.parametrize("cell", [b"a", b'"a', b"\xff", b'"b\na'])
def test_an_endless_cell_is_refused_and_not_read_into_memory(tmp_path: Path, cell: bytes, end: bytes) -> None:
    path = tmp_path / "endless.csv"
    with open(path, "wb") as file:
        file.write(b"a,b\n1,2\n3," + cell)
        for _ in range(64):
            file.write(cell[-1:] * MIB)
        file.write((b'"' if cell[:1] == b'"' else b"") + end)
    with memory_within(32 * MIB), pytest.raises(DataError, match=r"line [34] is longer than 2,000,000 bytes"):
        inspect(path)


@pytest.mark.parametrize("end", [b"", b'"', b'"\n', b'"\n5,6\n'])
def test_a_quoted_cell_of_many_lines_is_refused(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "lines.csv"
    path.write_bytes(b'a,b\n1,2\n3,"' + (b"a" * 99 + b"\n") * 400_000 + end)
    with memory_within(32 * MIB), pytest.raises(DataError, match=r"line 3 (is longer|opens a quote)"):
        inspect(path)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_a_line_at_the_limit_is_read_and_a_longer_one_is_named(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "lines.csv"
    for length, fits in ((LONGEST_CELL - 100, True), (LONGEST_CELL + 1, False)):
        rows = ["a,b", "1,2", "1," + "x" * length, *["1,2"] * 9]
        path.write_bytes(ends.join(rows).encode() + ends.encode())
        if fits:
            assert inspect(path).records == 11
        else:
            with pytest.raises(DataError, match="line 3 is longer than 2,000,000 bytes"):
                inspect(path)


def test_a_long_run_of_letters_that_are_not_ascii_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "letters.csv"
    text = "\u6f22\u00e9\U0001f41f" * 400_000
    path.write_bytes(b"a" + text.encode())  # letters cross the ends of parts
    assert read_text(path)[0] == "a" + text
    assert other_encoding(path) is None
    path.write_bytes(b"a" + "\u00e9".encode("cp1252") * 3_000_000)
    assert other_encoding(path) == "cp1252"


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_long_cell_of_a_binary_file_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"cell.{ending}"
    for length, fits in ((LONGEST_CELL, True), (LONGEST_CELL + 1, False)):
        table = pa.table({"a": ["x", "y" * length, *"abcdefgh"], "b": range(10)})
        if ending == "parquet":
            pyarrow.parquet.write_table(table, path, compression="zstd")
        else:
            pyarrow.feather.write_feather(table, str(path))
        if fits:
            with limited(Limits(unpacked=64 * MIB)):
                DuckDb().open(path)
        else:
            refused(path, "has a cell of more than 2,000,000 bytes", unpacked=64 * MIB)


def test_a_cell_that_fills_its_page_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "cell.parquet"
    pyarrow.parquet.write_table(pa.table({"a": ["y" * 40_000_000]}), path, compression="zstd")
    with nothing_unpacked():
        refused(path, "has a cell of more than 2,000,000 bytes", unpacked=64 * MIB)


# In the studio.


def test_the_studio_refuses_a_bomb_removes_it_and_states_its_limits(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
    pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
    from studio import Custodian, running

    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000)
    with running(unpacked_limit=MIB, column_limit=3) as studio, studio.client() as client:
        custodian = Custodian(client)

        def uploaded(content: bytes, name: str) -> dict[str, Any]:
            answer = client.post(custodian.url("upload"), content=content, headers={"x-file-name": name})
            return custodian.ended(answer.json())

        job = uploaded(bomb, "bomb.csv.gz")
        assert job["status"] == "failed"
        assert job["error"] == (
            "'bomb.csv.gz' unpacks to more than 1,048,576 bytes, which is the limit. "
            "Leave out columns or records."
        )
        assert not list(studio.workspaces.get(custodian.workspace).folder.iterdir())
        assert uploaded(b"a,b,c,d\n1,2,3,4\n", "wide.csv")["error"] == (
            "'wide.csv' has 4 columns, and the limit is 3. Leave columns out."
        )
        assert uploaded(b"a,b\n1,2\n", "small.csv")["status"] == "done"
        assert studio.workspaces.upload_limits() == (
            "Up to 1 GiB, unpacked 1 MiB, 3 columns, and 2,000,000 bytes in a cell or a line of text."
        )


def test_a_request_that_is_read_into_memory_is_small(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
    pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
    from studio import Custodian, running

    with running() as studio, studio.client() as client:
        custodian = Custodian(client)
        answer = client.put(custodian.url("policy"), content=b" " * (65 << 20))
        assert answer.status_code == 413
