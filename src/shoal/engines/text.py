"""Text files of rows: the header and the delimiter, how letters are written, and at which line one is broken.

A file is taken to be UTF-8, which costs nothing to check: the database refuses what is not. Only then is the
file looked at here. Excel writes Windows-1252 in much of Europe, and UTF-16 as "Unicode text".
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from shoal.engines.frames import check_names
from shoal.errors import DataError, so_many

UTF_8 = "utf-8-sig"
TO_UTF_8 = (
    "Save it as CSV UTF-8, or convert it, with its own encoding in place of cp1252: python -c "
    "\"open('NEW', 'w', encoding='utf-8', newline='')"
    ".write(open('OLD', encoding='cp1252', newline='').read())\""
)
# In place of an encoding's name, how to say it.
_SPOKEN = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}

_LONGEST = 2_000_000  # bytes of a line that the database takes
_SEVERAL = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)  # a letter of UTF-8 that takes several bytes
_TITLE = "If that is a title, take it away: the first line names the columns, parted as the rows are."
_BLOCK = 1 << 26  # bytes read at once: Arrow loses the LF of a quoted CR LF where two blocks meet
_NO_LETTER = re.compile(rb"[\x00\x81\x8d\x8f\x90\x9d]")  # nothing in Windows-1252


@dataclass(frozen=True)
class TextFile:
    """A file of rows, with what its first line tells."""

    path: Path
    ending: str
    encoding: str
    names: tuple[str, ...]
    delimiter: str

    @property
    def note(self) -> str:
        """Say how the file was read; the file's name goes before."""
        how = f"is not UTF-8; it was read as {_SPOKEN[self.encoding]}"
        return f"{how}. If letters look wrong, save it as CSV UTF-8."

    def dataset(self) -> pyarrow.dataset.Dataset:
        """Return the rows for a database to read, as often as it likes, decoded on the way; all is text."""
        kinds = dict.fromkeys(self.names, pa.string())
        # The header is read as a row and left out, since it may hold line breaks.
        read = pyarrow.csv.ReadOptions(
            encoding=self.encoding.removesuffix("-sig"),
            column_names=self.names,
            skip_rows_after_names=1,
            block_size=_BLOCK,
        )
        convert = pyarrow.csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True)
        parse = pyarrow.csv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
        )
        options = pyarrow.dataset.CsvFragmentScanOptions(convert_options=convert, read_options=read)
        form = pyarrow.dataset.CsvFileFormat(parse_options=parse, default_fragment_scan_options=options)
        return pyarrow.dataset.dataset(str(self.path), format=form, schema=pa.schema(list(kinds.items())))

    def fault(self) -> str | None:
        """Say what is wrong with the first line that is broken; the line itself is not shown."""
        broken, mixed = self._faults()
        return broken or mixed

    def check(self) -> None:
        """Refuse a file with a broken line, where who reads it would let it pass: Arrow swallows records."""
        broken, _ = self._faults()
        if broken is not None:
            message = f"{str(self.path)!r} cannot be read: {broken}"
            raise DataError(message)

    def _faults(self) -> tuple[str | None, str | None]:
        """Return what is wrong with a line, if anything is, and which ends otherwise than the first."""
        usual = csv.field_size_limit(_LONGEST)
        try:
            return self._read()
        finally:
            csv.field_size_limit(usual)

    def _read(self) -> tuple[str | None, str | None]:
        with _opened(self.path, self.ending, self.encoding) as file:
            lines = _Lines(file)
            rows = csv.reader(lines, delimiter=self.delimiter, strict=True)
            while True:
                begun = lines.number + 1
                try:
                    row = next(rows, None)
                except csv.Error as error:
                    return _broken(begun, lines.number, str(error)), None
                except UnicodeError:
                    return f"line {begun} is not {_SPOKEN.get(self.encoding, 'UTF-8')}.", None
                if row is None:
                    return None, lines.mixed
                if self.encoding == UTF_8 and len(row) == len(self.names) + 1 and not row[-1]:
                    row.pop()  # the database lets a line end in a delimiter
                if row and len(row) != len(self.names):
                    return _ragged(begun, len(row), len(self.names), self.delimiter), None
                if sum(map(len, row)) > _LONGEST:
                    return _too_long(begun), None


class _Lines:
    """The lines of a file, counted; and whether one ends otherwise than the first."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.number = file, 0
        self.mixed: str | None = None

    def __iter__(self) -> Iterator[str]:
        usual = ""
        for line in self.file:
            self.number += 1
            ends = line[len(line.rstrip("\r\n")) :]
            usual = usual or ends
            if ends not in ("", usual) and self.mixed is None:
                ways = f"ends in {_spelt(ends)}, the first in {_spelt(usual)}"
                self.mixed = f"line {self.number} {ways}. Let all end alike."
            yield line


def _spelt(ends: str) -> str:
    return " ".join({"\r": "CR", "\n": "LF"}[sign] for sign in ends)


def _broken(line: int, last: int, told: str) -> str:
    """Say what Python's reader found, in our words."""
    if "expected after" in told:
        return f"line {line} has text after a closing quote. Write a quote within a value twice."
    if "limit" in told and line == last:
        return _too_long(line)
    return f"line {line} opens a quote that is not closed."


def _too_long(line: int) -> str:
    return f"line {line} is longer than {_LONGEST:,} bytes. Is a line end missing?"


def _ragged(line: int, fields: int, columns: int, delimiter: str) -> str:
    sign = "tabs" if delimiter == "\t" else repr(delimiter)
    has = f"line {line} has {so_many(fields, 'field')}, the header {columns}"
    if columns == 1:
        return f"{has}. {_TITLE}"
    return f"{has}. {f'Quote values that hold {sign}' if fields > columns else 'Fill it up'}."


def _has_more(lines: list[str]) -> bool:
    """Tell whether lines seem to hold several values, as those below a title do."""
    first, second = (Counter(re.sub(r'"[^"]*"', "", line)) for line in lines)
    return any(first[sign] == second[sign] > 1 for sign in ",;\t|")


def read_header(path: Path, ending: str, encoding: str = UTF_8) -> TextFile:
    """Read the names of a text file's columns, and guess its delimiter from that line alone.

    A guess that looks at rows can take a ragged row for the header.
    """
    with _opened(path, ending, encoding) as file:
        header = file.readline()
        while header.count('"') % 2 and (more := file.readline()):  # a name may hold line breaks
            header += more
        below = [file.readline(), file.readline()]
    outside = re.sub(r'"[^"]*"', "", header)
    if '"' in outside:
        message = f"{str(path)!r} cannot be read: the header opens a quote that is not closed."
        raise DataError(message)
    if "\0" in header:
        message = f"{str(path)!r} is not a text of rows: its first line holds bytes that stand for no letter."
        raise DataError(message)
    tabs = ending == ".tsv" and "\t" in outside
    delimiter = "\t" if tabs else max(",;\t|", key=outside.count)
    if delimiter not in outside and _has_more(below):
        message = f"{str(path)!r} has one name in its first line and more values below. {_TITLE}"
        raise DataError(message)
    names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
    check_names(names)
    return TextFile(path, ending, encoding, tuple(names), delimiter)


def other_encoding(path: Path, ending: str) -> str | None:
    """Tell how a file is written that is not UTF-8; refuse one of which that cannot be told.

    Windows-1252 gives nearly every byte a letter, so only a file without any letter of UTF-8 is taken for it.
    """
    wrong = mixed = strange = 0  # the first line of each kind
    with _opened(path, ending) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            strange = strange or (number if _NO_LETTER.search(line) else 0)
            if line.isascii():
                continue
            mixed = mixed or (number if _SEVERAL.search(line) else 0)
            wrong = wrong or (0 if _is_utf_8(line) else number)
    if not wrong:
        return None
    if mixed:
        why = f"has letters in UTF-8 (line {mixed}) and others that are not (line {wrong})"
    elif strange:
        why = f"is neither UTF-8 nor Windows-1252 (line {strange})"
    else:
        return "cp1252"
    message = f"{str(path)!r} {why}. {TO_UTF_8}"
    raise DataError(message)


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _opened(path: Path, ending: str, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file for its letters in an encoding, else for its bytes; a compressed one as it was before."""
    opener: Any = gzip.open if ending.endswith(".gz") else open
    text = {"mode": "rt", "encoding": encoding, "newline": ""} if encoding else {"mode": "rb"}
    with opener(path, **text) as file:
        yield file
