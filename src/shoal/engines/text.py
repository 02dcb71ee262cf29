"""Text files of rows: their header and delimiter, and descriptions of broken lines."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from shoal.engines.frames import check_names
from shoal.errors import DataError
from shoal.files.limits import LONGEST_CELL, check_columns
from shoal.files.text import (
    ENCODING_NAMES,
    MARKS,
    UTF_8,
    begins_as,
    declared_delimiter,
    encoding_note,
    open_file,
)
from shoal.wording import plural

_PART = 1 << 20  # bytes, less than the longest allowed line
_LIMIT = "a line is larger than the limit"
_NAMED = 5  # lines whose numbers an error lists
_TITLE = (
    "If the first line is a title, remove this line. The first line must hold the column names, delimited "
    "like the rows."
)


@dataclass(frozen=True)
class TextFile:
    """A text file of rows, with the properties that are read from its first line."""

    path: Path
    encoding: str
    names: tuple[str, ...]
    delimiter: str
    ends: str  # the line ending, which all lines must have; "" if there is only one line
    above: int = 0  # the number of lines above the header: 1 if there is a sep= line for Excel

    @property
    def database_readable(self) -> bool:
        """Whether the database can read the file itself.

        After a byte order mark, the database ignores the quotes of the first name: a line break in the name
        ends the header, and a delimiter ends the name.
        """
        breaks = set("".join(self.names[:1])) & {"\r", "\n", self.delimiter}
        return self.encoding == UTF_8 and not (breaks and begins_as(self.path, UTF_8))

    @property
    def note(self) -> str:
        """Describe how the file was read, for a sentence that begins with the file's name."""
        return encoding_note(self.encoding)

    def fault(self) -> str | None:
        """Describe what is wrong with broken lines, without quoting them; None if no line is broken."""
        field_limit = csv.field_size_limit(LONGEST_CELL)
        try:
            with open_file(self.path, self.encoding) as file:
                lines, ragged = _Lines(file), _Ragged(len(self.names), self.delimiter)
                line, problem = self._unreadable(lines, ragged) or (None, lines.mixed)
                return ragged.ragged_lines_message(line) or problem
        finally:
            csv.field_size_limit(field_limit)

    def _unreadable(self, lines: _Lines, ragged: _Ragged) -> tuple[int, str] | None:
        """Collect ragged lines; if a line cannot be read, return its number and the problem."""
        rows = csv.reader(lines, delimiter=self.delimiter, strict=True)
        while True:
            first_line = lines.number + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                return first_line, _broken(first_line, lines.number, str(error))
            except UnicodeError:
                return first_line, f"line {first_line} is not {ENCODING_NAMES[self.encoding]}."
            if row is None:
                return None
            if first_line <= self.above:
                continue
            if len(row) == len(self.names) + 1 and not row[-1]:
                row.pop()  # the database accepts a delimiter at the end of a line
            if row and len(row) != len(self.names):
                ragged.add(first_line, len(row))
            elif sum(len(value.encode()) for value in row) > LONGEST_CELL:
                return first_line, _too_long(first_line)


@dataclass
class _Ragged:
    """The lines that have more or fewer fields than the header."""

    columns: int
    delimiter: str
    lines: list[int] = field(default_factory=list)  # the numbers of the first such lines
    fields: int = 0  # the number of fields of the first ragged line
    more: int = 0
    fewer: int = 0

    def add(self, line: int, fields: int) -> None:
        self.fields = self.fields or fields
        self.more += fields > self.columns
        self.fewer += fields < self.columns
        if len(self.lines) < _NAMED:
            self.lines.append(line)

    def ragged_lines_message(self, until: int | None = None) -> str | None:
        """Describe the ragged lines, or return None; if `until` is given, reading ended before that line."""
        if not self.lines:
            return None
        message = f"line {self.lines[0]} has {plural(self.fields, 'field')}, the header {self.columns}"
        count = self.more + self.fewer
        if count > 1:
            line_numbers = ", ".join(map(str, self.lines)) + (" and so on" if count > len(self.lines) else "")
            scope = f"Before line {until}" if until else "In all"
            message = (
                f"{message}. {scope}, {count:,} lines have more or fewer than the header: {line_numbers}"
            )
        return f"{message}. {self._advice()}"

    def _advice(self) -> str:
        if self.columns == 1:
            return _TITLE
        delimiter_name = "tabs" if self.delimiter == "\t" else repr(self.delimiter)
        fill = "Fill it up." if self.fewer == 1 else "Fill up lines that are too short."
        return " ".join(
            [f"Quote values that hold {delimiter_name}."] * bool(self.more) + [fill] * bool(self.fewer)
        )


class _Lines:
    """Yields the lines of a file, counts them, and describes the first one with a different line ending."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.number = file, 0
        self.mixed: str | None = None

    def __iter__(self) -> Iterator[str]:
        first_ends = ""
        while line := self.file.readline(LONGEST_CELL + 1):
            self.number += 1
            if len(line) > LONGEST_CELL:
                raise csv.Error(_LIMIT)
            ends = _ends(line)
            first_ends = first_ends or ends
            if ends not in ("", first_ends) and self.mixed is None:
                self.mixed = _mixed_ends(self.number, ends, first_ends)
            yield line


def _delimiter_name(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else repr(delimiter)


def _ends(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _mixed_ends(line: int, ends: str, first_ends: str) -> str:
    end, first = (" ".join({"\r": "CR", "\n": "LF"}[sign] for sign in signs) for signs in (ends, first_ends))
    return f"line {line} ends in {end}, the first in {first}. Use the same line ending in all lines."


def _broken(line: int, last: int, message: str) -> str:
    """Translate an error of Python's csv reader."""
    if "expected after" in message:
        return f"line {line} has text after a closing quote. Write a quote within a value twice."
    if "limit" in message and line == last:
        return _too_long(line)
    return f"line {line} opens a quote that is not closed."


def _too_long(line: int) -> str:
    return f"line {line} is longer than {LONGEST_CELL:,} bytes. Is a line end missing?"


def _has_more(lines: list[str]) -> bool:
    """Return whether both lines contain some delimiter equally often, and more than once."""
    first, second = (Counter(re.sub(r'"[^"]*"', "", line)) for line in lines)
    return any(first[sign] == second[sign] > 1 for sign in ",;\t|")


def _check_ends(path: Path, first: str, second: str) -> None:
    """Refuse a first line whose line ending differs from the second's: the database would find no rows."""
    first_end, second_end = _ends(first), _ends(second)
    if first_end and second_end and first_end != second_end:
        raise DataError(f"{str(path)!r} cannot be read: {_mixed_ends(2, second_end, first_end)}")


def check_lines(path: Path) -> None:
    """Refuse a file with a line that is too long. The database may skip such a line without an error."""
    status = os.stat(path)
    line = _long_line(path, status.st_ino, status.st_size, status.st_mtime_ns)
    if line is not None:
        raise DataError(f"{str(path)!r} cannot be read: {_too_long(line)}")


@lru_cache(maxsize=64)
def _long_line(path: Path, *_version: int) -> int | None:
    """Return the number of the first line that is too long, in any encoding."""
    length, number, ends = 0, 1, b"\n"
    with open_file(path) as file:
        while part := file.read(_PART):
            if number == 1 and length == 0 and b"\n" not in part:
                ends = b"\r"
            first = part.find(ends)
            if length + (first if first >= 0 else len(part)) > LONGEST_CELL:
                return number
            length = length + len(part) if first < 0 else len(part) - part.rfind(ends) - 1
            number += part.count(ends)
    return None


def _header_line(path: Path, file: IO[str]) -> str:
    """Read a line of the header; refuse one that is too long."""
    line = file.readline(LONGEST_CELL + 1)
    if len(line) > LONGEST_CELL:
        raise DataError(f"{str(path)!r} cannot be read: {_too_long(1)}")
    return line


def _whole_header(first: str, path: Path, file: IO[str]) -> str:
    """Return the header with further lines while a quote is open: names may contain line breaks."""
    lines, is_open, size = [first], first.count('"') % 2, len(first)
    while is_open and size <= LONGEST_CELL and (line := _header_line(path, file)):
        lines.append(line)
        is_open, size = (is_open + line.count('"')) % 2, size + len(line)
    return "".join(lines)


UNNAMED = "unnamed"
"""The name for an unnamed first column, into which R and pandas write row numbers."""


def read_header(path: Path, ending: str, encoding: str = UTF_8) -> TextFile:
    """Read the names of a text file's columns, and guess its delimiter from that line alone.

    A guess based on rows could mistake a ragged row for the header.
    """
    with open_file(path, encoding) as file:
        header = _header_line(path, file)
        declared = declared_delimiter(header)
        if declared:
            first, header = header, _header_line(path, file)
            _check_ends(path, first, header)
        header = _whole_header(header, path, file)
        next_lines = [file.readline(LONGEST_CELL), file.readline(LONGEST_CELL)]
    outside = re.sub(r'"[^"]*"', "", header)
    if '"' in outside:
        raise DataError(f"{str(path)!r} cannot be read: the header opens a quote that is not closed.")
    if "\0" in header:
        raise DataError(f"{str(path)!r} is not a text of rows: its first line contains zero bytes.")
    tabs = ending in (".tsv", ".txt") and "\t" in outside
    delimiter = declared or ("\t" if tabs else max(",;\t|", key=outside.count))
    if delimiter not in outside and _has_more(next_lines):
        raise DataError(f"{str(path)!r} has one name in its first line and more values below. {_TITLE}")
    if delimiter not in outside and ending == ".txt":
        raise DataError(
            f"{str(path)!r} has one column name in its first line. If it has only one column, rename the "
            "file so that it ends in .csv."
        )
    names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
    if len(names) > 1 and all(names[:-1]) and not names[-1]:
        raise DataError(
            f"{str(path)!r}: the header ends in {_delimiter_name(delimiter)}, so that column {len(names)} "
            "has no name. Remove it from the end of the first line, or name the column."
        )
    if len(names) > 1 and not names[0] and all(names[1:]) and UNNAMED not in names:
        names[0] = UNNAMED
    check_columns(repr(str(path)), len(names))
    check_names(names)
    return TextFile(path, encoding, tuple(names), delimiter, _ends(header), above=int(bool(declared)))


def guess_delimiter(path: Path) -> str | None:
    """Return the delimiter of a file, in any encoding; None if it is not clear."""
    marked_encodings = [encoding for encoding in MARKS if begins_as(path, encoding)]
    for encoding in marked_encodings or (UTF_8, "cp1252"):
        with suppress(DataError, UnicodeDecodeError):
            return read_header(path, path.suffix.lower(), encoding).delimiter
    return None
