"""Reading ARX projects: a ZIP file of small XML files, hierarchies as CSV, and Java objects.

The names of entries are those that ARX 3.9 writes (WorkerSave, Vocabulary_V1 and Vocabulary_V2 of its GUI).
The file is not trusted. Its members are never extracted to paths, and are read only up to a maximum size. XML
with a document type is refused, because a document type may declare entities.
"""

from __future__ import annotations

import csv
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from shoal.errors import DataError
from shoal.wording import quote

DATA = "data/input.csv"
_MEMBERS = 20_000
_XML_BYTES = 16 << 20
_CSV_BYTES = 256 << 20  # maximum size of all hierarchies together
_DEPTH = 64
_PART = 1 << 20
# Exceptions raised when a damaged ZIP file is read.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError)


@dataclass(frozen=True)
class Attribute:
    """One column as ARX describes it."""

    name: str
    type: str
    datatype: str = "String"
    format: bool = False  # whether a format is set; the format of an ordered string lists its values
    locale: bool = False
    response: bool = False
    minimum: str = "All"
    maximum: str = "All"
    microaggregation: str | None = None
    hierarchy: str | None = None  # the name of its file within the project
    unknown: tuple[str, ...] = ()  # entries that ARX 3.9 does not write


@dataclass(frozen=True)
class Settings:
    """The content of config.xml."""

    entries: dict[str, str] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    weights: tuple[tuple[str, str], ...] = ()
    suppressed_types: tuple[str, ...] | None = None


class Project:
    """A project opened for reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._zip = zipfile.ZipFile(self.path)
        except OSError as error:
            raise DataError(
                f"Cannot read the project {quote(self.path)}: {error.strerror or 'it is damaged'}."
            ) from None
        except (*_DAMAGE, NotImplementedError):
            self._refuse("it is not a ZIP file, or is damaged")
        try:
            self._check_members()
        except DataError:
            self._zip.close()
            raise
        self._read = 0

    def __enter__(self) -> Project:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def _refuse(self, what: str) -> NoReturn:
        raise DataError(
            f"{quote(self.path)} is not an ARX project: {what}. Save it again from ARX."
        ) from None

    def _refuse_member(self, member: str, what: str) -> NoReturn:
        self._refuse(f"its member {printable(member)!r} {what}")

    def _check_members(self) -> None:
        """Refuse a project with too many members, or with two members of the same name."""
        names = self._zip.namelist()
        if len(names) > _MEMBERS:
            self._refuse(f"it has {len(names):,} members, and no project has that many")
        if len(set(names)) < len(names):
            self._refuse("two of its members have the same name")

    @property
    def members(self) -> tuple[str, ...]:
        """The names of all members as they are; they are not safe as paths."""
        return tuple(self._zip.namelist())

    def has(self, member: str) -> bool:
        return member in self._zip.NameToInfo

    def parts(self, member: str) -> Iterator[bytes]:
        """Yield a member's bytes in chunks; raise DataError if the member is damaged."""
        try:
            file = self._zip.open(member)
        except (RuntimeError, NotImplementedError):
            self._refuse_member(member, "is encrypted or compressed with an unsupported method")
        except _DAMAGE:
            self._refuse_member(member, "is damaged")
        with file:
            while True:
                try:
                    part = file.read(_PART)
                except _DAMAGE:
                    self._refuse_member(member, "is damaged")
                if not part:
                    return
                yield part

    def _bytes(self, member: str, bound: int) -> bytes:
        content = bytearray()
        for part in self.parts(member):
            content += part
            if len(content) > bound:
                self._refuse_member(member, f"is above {bound >> 20} MB")
        return bytes(content)

    def xml(self, member: str) -> Element | None:
        if not self.has(member):
            return None
        try:
            return _tree(self._bytes(member, _XML_BYTES))
        except expat.ExpatError:
            self._refuse_member(member, "is not XML")
        except _Refused as refused:
            self._refuse_member(member, f"{refused}")

    def rows(self, member: str, separator: str) -> list[list[str]]:
        content = self._bytes(member, _CSV_BYTES - self._read)
        self._read += len(content)
        reader = csv.reader(io.StringIO(_text(content), newline=""), delimiter=separator)
        try:
            return [row for row in reader if row]
        except csv.Error:
            self._refuse_member(member, "is not CSV")

    def settings(self, prefix: str) -> Settings | None:
        """Read config.xml in the folder `prefix`."""
        root = self.xml(f"{prefix}config.xml")
        if root is None:
            return None
        weights = tuple(
            (_of(node, "attribute"), _of(node, "weight")) for node in root.iter("attributeWeight")
        )
        types = root.find("suppressedAttributeTypes")
        return Settings(
            {child.tag: _value(child) for child in root if not len(child) and child.tag not in _GROUPS},
            tuple(_value(element) for element in root.iter("criterion")),
            weights,
            None if types is None else tuple(_value(element) for element in types),
        )

    def attributes(self, prefix: str) -> list[Attribute] | None:
        """Read definition.xml in the folder `prefix`."""
        root = self.xml(f"{prefix}definition.xml")
        # ARX spells the name of the element in this way.
        return None if root is None else [self._attribute(node, prefix) for node in root.iter("assigment")]

    def _attribute(self, entry: Element, prefix: str) -> Attribute:
        name = _of(entry, "name")
        if not name:
            self._refuse("a column of its definition has no name")
        ref = _of(entry, "ref") or f"hierarchies/{name}.csv"
        return Attribute(
            name=name,
            type=_of(entry, "type") or "IDENTIFYING_ATTRIBUTE",  # the default of ARX
            datatype=_of(entry, "datatype") or "String",
            format=entry.find("format") is not None,
            locale=entry.find("locale") is not None,
            response=_of(entry, "response") == "true",
            minimum=_of(entry, "min") or "All",
            maximum=_of(entry, "max") or "All",
            microaggregation=_of(entry, "microaggregationFunction") or None,
            hierarchy=f"{prefix}{ref}" if self.has(f"{prefix}{ref}") else None,
            unknown=tuple(sorted({child.tag for child in entry} - _KNOWN)),
        )


_GROUPS = {"suppressedAttributeTypes", "attributeWeights", "criteria"}
_KNOWN = {
    "name", "type", "datatype", "format", "locale", "response", "ref", "min", "max",
    "microaggregationFunction", "microaggregationIgnoreMissingData",
}  # fmt: skip


class _Refused(Exception):
    """Raised for XML that is not accepted; the message is the reason."""


def _tree(data: bytes) -> Element:
    """Build a tree of elements and texts; refuse document types, because they may declare entities."""
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEPTH:
            raise _Refused("is nested too deeply")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> None:
        raise _Refused("declares a document type, which may hide anything and which ARX never writes")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.Parse(_text(data).encode("utf-8"), True)
    return builder.close()


def _text(data: bytes) -> str:
    """Decode UTF-8 or, if that fails, cp1252, which older versions of Java wrote on Windows."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _of(entry: Element, tag: str) -> str:
    child = entry.find(tag)
    return "" if child is None else _value(child)


def _value(entry: Element) -> str:
    return (entry.text or "").strip()


def printable(text: str, most: int = 120) -> str:
    r"""Replace unprintable characters by spaces, and shorten the text to `most` characters.

    >>> printable("5-anonymity\x1b[2J\n")
    '5-anonymity [2J '
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
