"""Text files of rows: the header and the delimiter, and at which lines one is broken."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from shoal.core.delimiters import delimiter_told
from shoal.core.encodings import MARKS, SPOKEN, UTF_8, begins_as, opened, read_as
from shoal.engines.frames import check_names
from shoal.errors import DataError, so_many

_LONGEST = 2_000_000  # bytes of a line that the database takes
_NAMED = 5  # lines that are told by their numbers
_TITLE = "If that is a title, take it away: the first line names the columns, parted as the rows are."


@dataclass(frozen=True)
class TextFile:
    """A file of rows, with what its first line tells."""

    path: Path
    encoding: str
    names: tuple[str, ...]
    delimiter: str
    ends: str  # what its first line ends in, and so all of them; nothing where it has no other
    above: int = 0  # lines above the names: Excel's own, which tells the delimiter

    @property
    def plain(self) -> bool:
        """Whether the database can read the file itself.

        Where a mark stands before the quote of a name, it takes a line break in it for the header's end, and
        a delimiter for the name's.
        """
        breaks = set("".join(self.names[:1])) & {"\r", "\n", self.delimiter}
        return self.encoding == UTF_8 and not (breaks and begins_as(self.path, UTF_8))

    @property
    def note(self) -> str:
        """Say how the file was read; the file's name goes before."""
        return read_as(self.encoding)

    def fault(self) -> str | None:
        """Say what is wrong with the lines that are broken; the lines themselves are not shown."""
        usual = csv.field_size_limit(_LONGEST)
        try:
            with opened(self.path, self.encoding) as file:
                return self._fault(_Lines(file))
        finally:
            csv.field_size_limit(usual)

    def _fault(self, lines: _Lines) -> str | None:
        """Read to the end, or to a line after which nothing can be told."""
        ragged = _Ragged(len(self.names), self.delimiter)
        rows = csv.reader(lines, delimiter=self.delimiter, strict=True)
        while True:
            begun = lines.number + 1
            try:
                row = next(rows, None)
            except csv.Error as error:
                return ragged.told(begun) or _broken(begun, lines.number, str(error))
            except UnicodeError:
                return ragged.told(begun) or f"line {begun} is not {SPOKEN[self.encoding]}."
            if row is None:
                return ragged.told() or lines.mixed
            if begun <= self.above:
                continue
            if len(row) == len(self.names) + 1 and not row[-1]:
                row.pop()  # the database lets a line end in a delimiter
            if row and len(row) != len(self.names):
                ragged.add(begun, len(row))
            elif sum(len(value.encode()) for value in row) > _LONGEST:
                return ragged.told(begun) or _too_long(begun)


@dataclass
class _Ragged:
    """The lines that have more or fewer fields than the header."""

    columns: int
    delimiter: str
    lines: list[int] = field(default_factory=list)  # the first few
    fields: int = 0  # of the first
    more: int = 0
    fewer: int = 0

    def add(self, line: int, fields: int) -> None:
        """Take in a line."""
        self.fields = self.fields or fields
        self.more += fields > self.columns
        self.fewer += fields < self.columns
        if len(self.lines) < _NAMED:
            self.lines.append(line)

    def told(self, until: int | None = None) -> str | None:
        """Say how many there are, if there are any; before a line at which reading ended, if it did."""
        if not self.lines:
            return None
        has = f"line {self.lines[0]} has {so_many(self.fields, 'field')}, the header {self.columns}"
        count = self.more + self.fewer
        if count > 1:
            which = ", ".join(map(str, self.lines)) + (" and so on" if count > len(self.lines) else "")
            where = f"Before line {until}" if until else "In all"
            has = f"{has}. {where}, {count:,} lines have more or fewer than the header: {which}"
        return f"{has}. {self._advice()}"

    def _advice(self) -> str:
        if self.columns == 1:
            return _TITLE
        sign = "tabs" if self.delimiter == "\t" else repr(self.delimiter)
        fill = "Fill it up." if self.fewer == 1 else "Fill up lines that are too short."
        return " ".join([f"Quote values that hold {sign}."] * bool(self.more) + [fill] * bool(self.fewer))


class _Lines:
    """The lines of a file, counted; and whether one ends otherwise than the first."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.number = file, 0
        self.mixed: str | None = None

    def __iter__(self) -> Iterator[str]:
        usual = ""
        for line in self.file:
            self.number += 1
            ends = _ends(line)
            usual = usual or ends
            if ends not in ("", usual) and self.mixed is None:
                ways = f"ends in {_spelt(ends)}, the first in {_spelt(usual)}"
                self.mixed = f"line {self.number} {ways}. Let all end alike."
            yield line


def _spoken(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else repr(delimiter)


def _ends(line: str) -> str:
    """Return what a line ends in."""
    return line[len(line.rstrip("\r\n")) :]


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


def _has_more(lines: list[str]) -> bool:
    """Tell whether lines seem to hold several values, as those below a title do."""
    first, second = (Counter(re.sub(r'"[^"]*"', "", line)) for line in lines)
    return any(first[sign] == second[sign] > 1 for sign in ",;\t|")


def _check_ends(path: Path, first: str, second: str) -> None:
    """Refuse a first line that ends otherwise than the second: the database would find no rows."""
    one, other = _ends(first), _ends(second)
    if one and other and one != other:
        told = f"line 2 ends in {_spelt(other)}, the first in {_spelt(one)}. Let all end alike."
        message = f"{str(path)!r} cannot be read: {told}"
        raise DataError(message)


def read_header(path: Path, ending: str, encoding: str = UTF_8) -> TextFile:
    """Read the names of a text file's columns, and guess its delimiter from that line alone.

    A guess that looks at rows can take a ragged row for the header.
    """
    with opened(path, encoding) as file:
        header = file.readline()
        told = delimiter_told(header)
        if told:
            first, header = header, file.readline()
            _check_ends(path, first, header)
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
    tabs = ending in (".tsv", ".txt") and "\t" in outside
    delimiter = told or ("\t" if tabs else max(",;\t|", key=outside.count))
    if delimiter not in outside and _has_more(below):
        message = f"{str(path)!r} has one name in its first line and more values below. {_TITLE}"
        raise DataError(message)
    if delimiter not in outside and ending == ".txt":
        message = f"{str(path)!r} has one name in its first line. If that is all, let its name end in .csv."
        raise DataError(message)
    names = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
    if len(names) > 1 and all(names[:-1]) and not names[-1]:
        message = (
            f"{str(path)!r}: the header ends in {_spoken(delimiter)}, so that column {len(names)} has no "
            "name. Take that sign away from the end of the first line, or name the column."
        )
        raise DataError(message)
    check_names(names)
    return TextFile(path, encoding, tuple(names), delimiter, _ends(header), above=int(bool(told)))


def sign_of(path: Path) -> str | None:
    """Return the sign that parts a file's values, whatever its encoding; None where that cannot be told."""
    marked = [encoding for encoding in MARKS if begins_as(path, encoding)]
    for encoding in marked or (UTF_8, "cp1252"):
        with suppress(DataError, UnicodeDecodeError):
            return read_header(path, path.suffix.lower(), encoding).delimiter
    return None
