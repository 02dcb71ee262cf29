"""Checks of a file before it is read: its format, and its decompressed size.

A file may decompress to a thousand times its size. The decompressed sizes are in headers inside the file,
which are FlatBuffers in Arrow files and Thrift in Parquet files.
"""

from __future__ import annotations

import gzip
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute

from shoal.errors import DataError
from shoal.files.limits import LONGEST_CELL, check_cell, check_columns, check_unpacked, limits
from shoal.wording import quote

# The first bytes of a file, and for each format its name and its extensions.
_BEGINNINGS = {
    b"PAR1": ("a Parquet file", (".parquet",)),
    b"ARROW1": ("an Arrow file", (".arrow", ".feather")),
    b"FEA1": ("a Feather file", (".feather", ".arrow")),
    b"\x1f\x8b": ("compressed with gzip", (".csv.gz",)),
    b"PK\x03\x04": ("an Excel or zip file", (".xlsx",)),
    b"\xd0\xcf\x11\xe0": ("an Excel file of before 2007", ()),
}
_TEXT = (".csv", ".tsv")


def check_statistics(path: Path) -> None:
    """Raise DataError if a Parquet file's statistics contradict its values: queries rely on both.

    Reads the whole file, one row group at a time.
    """
    from pyarrow import parquet

    with suppress(pa.ArrowException, OSError, TypeError), parquet.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            group, rows = file.metadata.row_group(number), file.read_row_group(number)
            for column in map(group.column, range(group.num_columns)):
                stated = column.statistics
                if stated is None or not stated.has_min_max or column.path_in_schema not in rows.column_names:
                    continue
                actual = pa.compute.min_max(rows[column.path_in_schema]).as_py()
                if (
                    actual["min"] is not None
                    and not stated.min <= actual["min"] <= actual["max"] <= stated.max
                ):
                    raise DataError(
                        f"{quote(path)} is damaged: its statistics contradict its values. Use an intact copy."
                    )


def check_content(path: Path, ending: str) -> None:
    """Raise DataError if the content of a file does not match its extension; suggest one that does."""
    with open(path, "rb") as file:
        first = file.read(8)
    is_text = first.isascii() and all(byte > 31 or byte in b"\t\r\n" for byte in first)
    for begins, (format_name, endings) in _BEGINNINGS.items():
        if first.startswith(begins) and ending not in endings and not is_text:
            advice = f"Let its name end in {endings[0]}." if endings else "Save it as .xlsx or CSV UTF-8."
            raise DataError(f"{str(path)!r} is {format_name}, not {_named(ending)}. {advice}")
    beginnings = [begins for begins, (_, endings) in _BEGINNINGS.items() if ending in endings]
    if beginnings and ending not in _TEXT and not first.startswith(tuple(beginnings)):
        hint = " If it is text, let its name end in .csv." if b"\0" not in first else ""
        raise DataError(f"{str(path)!r} cannot be read as {ending}: it is not {_named(ending)}.{hint}")


def _named(ending: str) -> str:
    names = [format_name for format_name, endings in _BEGINNINGS.values() if ending == (endings or ("",))[0]]
    return names[0] if names else f"a {ending} file"


_PART = 1 << 20  # bytes
_LARGEST_PAGE = 1 << 28  # bytes of a Parquet page when decompressed
_DAMAGED = (pa.ArrowException, OSError, ValueError, LookupError, struct.error, zipfile.BadZipFile)


def check_size(path: Path, ending: str) -> None:
    """Refuse a file whose decompressed size exceeds the limit or cannot be determined."""
    if limits().unpacked is None:
        return
    name = repr(str(path))
    check_unpacked(name, path.stat().st_size)
    if ending.endswith(".gz"):
        _check_gzip(path, name)
    check = {
        ".parquet": _check_parquet,
        ".arrow": _check_arrow,
        ".feather": _check_arrow,
        ".xlsx": _check_zip,
    }
    if ending in check:
        try:
            check[ending](path, name)
        except _DAMAGED:
            raise DataError(
                f"{name} cannot be read: it is damaged, or its size cannot be known before it is read."
            ) from None


def check_cells(name: str, table: pa.Table) -> None:
    """Refuse a table in memory with a cell that is too long."""
    for column in table.columns:
        for chunk in column.chunks:
            values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            kind = values.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
                check_cell(name, pyarrow.compute.max(pyarrow.compute.binary_length(values)).as_py())


def _check_gzip(path: Path, name: str) -> None:
    size = 0
    with gzip.open(path) as file:
        while part := file.read(_PART):
            size += len(part)
            check_unpacked(name, size)


def _check_parquet(path: Path, name: str) -> None:
    """Sum the sizes in the page headers, because the reader uses these; sizes in the footer may be wrong."""
    from pyarrow.parquet import ParquetFile  # a slow import, and most tables are text

    with ParquetFile(str(path)) as table, open(path, "rb") as file:
        footer = table.metadata
        check_columns(name, footer.num_columns)
        check_unpacked(
            name, footer.num_rows * footer.num_columns
        )  # in the file, a repeated value takes almost no space
        size, chunks_to_check = 0, []
        for number in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(number).column(column)
                largest = 0
                for page in pages(file, chunk):
                    size += page.size
                    largest = max(largest, page.size)
                    check_unpacked(name, size)
                    _check_page(name, page)
                if largest > LONGEST_CELL and chunk.physical_type == "BYTE_ARRAY":
                    chunks_to_check.append((number, chunk.path_in_schema))
        for number, column in chunks_to_check:
            for batch in table.iter_batches(1024, row_groups=[number], columns=[column]):
                check_cells(name, pa.Table.from_batches([batch]))


def _check_page(name: str, page: Page) -> None:
    """Refuse a page that is too large, or whose average cell is too long."""
    if page.size > _LARGEST_PAGE:
        raise DataError(
            f"{name} has a page of more than {_LARGEST_PAGE:,} bytes, which is the limit. Write it with "
            "smaller pages."
        )
    check_cell(name, page.size // max(1, page.values) - 1_000)  # 1,000 bytes for levels and the page header


def _check_arrow(path: Path, name: str) -> None:
    """Sum the uncompressed sizes of the buffers of all batches."""
    size = 0
    with open(path, "rb") as file:
        if file.read(4) == b"FEA1":
            return  # the old format, without compression
        for batch, body in _batches(file):
            length = batch.integer(0)
            check_unpacked(name, length * max(1, batch.length(1)))  # a column of nulls has no buffer
            packed = batch.record(3) is not None
            for start, stored in batch.entries(2, "<qq"):
                size += _unpacked(file, body + start, stored) if packed and stored else stored
                check_unpacked(name, size)


def _batches(file: IO[bytes]) -> Iterator[tuple[FlatRecord, int]]:
    """Yield each batch that the footer lists, and the offset of its body."""
    file.seek(-10, 2)
    length, _ = struct.unpack("<i6s", file.read(10))
    file.seek(-10 - length, 2)
    footer = FlatRecord.root(file.read(length))
    for field in (2, 3):  # dictionaries, records
        for offset, metadata, _ in footer.entries(field, "<qi4xq"):
            file.seek(offset)
            message = FlatRecord.root(file.read(metadata)[8:])
            batch = message.record(2)
            if batch is not None and field == 2:
                batch = batch.record(1)
            if batch is not None:
                yield batch, offset + metadata


def _unpacked(file: IO[bytes], offset: int, stored: int) -> int:
    """Return the decompressed size of a buffer; the size before an uncompressed buffer is -1."""
    file.seek(offset)
    (size,) = struct.unpack("<q", file.read(8))
    return int(stored if size < 0 else size)


def _check_zip(path: Path, name: str) -> None:
    """Sum the sizes in the directory; the reader reads no more than these."""
    with zipfile.ZipFile(path) as archive:
        check_unpacked(name, sum(part.file_size for part in archive.infolist()))


@dataclass(frozen=True)
class FlatRecord:
    """A FlatBuffers table; its fields are numbered in the order of the schema."""

    content: bytes
    offset: int

    @classmethod
    def root(cls, content: bytes) -> FlatRecord:
        return cls(content, struct.unpack_from("<I", content)[0])

    def integer(self, field: int) -> int:
        at = self._at(field)
        return int(struct.unpack_from("<q", self.content, at)[0]) if at else 0

    def record(self, field: int) -> FlatRecord | None:
        at = self._at(field)
        return FlatRecord(self.content, self._target(at)) if at else None

    def length(self, field: int) -> int:
        at = self._at(field)
        return int(struct.unpack_from("<I", self.content, self._target(at))[0]) if at else 0

    def entries(self, field: int, form: str) -> Iterator[tuple[int, ...]]:
        """Yield the entries of a vector of structs of this form."""
        at = self._at(field)
        if not at:
            return
        start, size = self._target(at) + 4, struct.calcsize(form)
        for number in range(self.length(field)):
            yield struct.unpack_from(form, self.content, start + number * size)

    def _at(self, field: int) -> int:
        (back,) = struct.unpack_from("<i", self.content, self.offset)
        offsets = self.offset - back
        (size,) = struct.unpack_from("<H", self.content, offsets)
        entry = 4 + 2 * field
        (offset,) = struct.unpack_from("<H", self.content, offsets + entry) if entry < size else (0,)
        return self.offset + offset if offset else 0

    def _target(self, at: int) -> int:
        return at + int(struct.unpack_from("<I", self.content, at)[0])


_MOST_PAGES = 1_000_000  # per column chunk
_HEADER_SIZES = (1 << 12, 1 << 20)  # bytes; headers may contain the minimum and maximum of the page
_DEEPEST = 8
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12


@dataclass(frozen=True)
class Page:
    """Values from the header of a page."""

    size: int  # unpacked
    values: int


def pages(file: IO[bytes], chunk: Any) -> Iterator[Page]:
    """Yield the pages of a column chunk, including its dictionary page."""
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    offset, values = min(starts), 0
    for _ in range(_MOST_PAGES):
        if values >= chunk.num_values:
            return
        fields, length = _header_at(file, offset)
        data = (fields.get(5) or fields.get(8) or {}).get(1, 0)  # a data page of version 1 or 2
        dictionary = (fields.get(7) or {}).get(1, 0)
        values += max(0, data)
        offset += length + max(0, fields[3])
        yield Page(max(0, fields[2]), data or dictionary)
    raise ValueError("too many pages")


def _header_at(file: IO[bytes], offset: int) -> tuple[dict[int, Any], int]:
    for size in _HEADER_SIZES:
        file.seek(offset)
        header = _Header(file.read(size))
        try:
            return header.struct(), header.offset
        except IndexError:
            if size == _HEADER_SIZES[-1]:
                raise
    raise AssertionError


class _Header:
    """A reader of the integers and structs of a Thrift header; it skips the rest."""

    def __init__(self, content: bytes) -> None:
        self.content, self.offset = content, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while first := self.byte():
            number = number + (first >> 4) if first >> 4 else self.integer()
            fields[number] = self.value(first & 15, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """Read a value of this type; return None for types that are skipped."""
        if kind in _INTEGERS:
            return self.integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _BINARY:
            size = self.unsigned()
            self.offset += size
        elif kind in (_BYTE, _DOUBLE):
            self.offset += 1 if kind == _BYTE else 8
        elif kind in _LISTS:
            first = self.byte()
            for _ in range(first >> 4 if first >> 4 < 15 else self.unsigned()):
                self.value(first & 15, depth + 1)
        elif kind not in _BOOLEANS:
            raise ValueError("not a header of a page")
        return None

    def byte(self) -> int:
        self.offset += 1
        return self.content[self.offset - 1]

    def unsigned(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return number

    def integer(self) -> int:
        number = self.unsigned()
        return (number >> 1) ^ -(number & 1)
