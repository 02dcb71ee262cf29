"""Builders that list every value: a tree, an order, a CSV file."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from shoal.core.arrays import FloatArray
from shoal.core.builder import Builder, Labels, floats_of, not_nested
from shoal.core.counts import Domain
from shoal.core.delimiters import delimiter_told
from shoal.core.encodings import UTF_8, read_as, read_text
from shoal.core.hierarchy import Hierarchy
from shoal.errors import DataError, HierarchyError, Note, so_many

_HEADING = re.compile(
    r"\s*(?:values?|wert|valeur|valore?|waarde|group|gruppe|groupe|gruppo|grupo|groep|level|ebene|stufe|niveau|"
    r"livello|n[ií]vel|code|label)[ _]?\d*\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Listed(Builder):
    """A rule that lists its values."""

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Look each text up among the values listed."""
        listed = self.listed()
        return [listed.get(text) for text in texts]

    def covers(self, label: str) -> str:
        """Name the values listed under a label."""
        values = [value for value, labels in self.listed().items() if label in labels]
        return "; ".join(values) if values else super().covers(label)


@dataclass(frozen=True)
class Tree(Listed):
    """A tree written out: groups as keys, values as lists; a short branch climbs later."""

    tree: Any = field(default=None, metadata={"takes": "mapping of groups"})
    """The groups, with the groups or values below each."""

    keyword: ClassVar[str] = "tree"

    def listed(self) -> Mapping[str, Labels]:
        """Return every leaf with the groups above it."""
        paths = dict(_paths(self.tree, ()))  # bind refuses a leaf that stands twice
        depth = max((len(path) for path in paths.values()), default=0)
        return {leaf: (leaf,) * (depth - len(path)) + path for leaf, path in paths.items()}

    def bind(self, domain: Domain) -> Hierarchy:
        """Refuse a value that stands in two groups, then apply the tree."""
        seen: dict[str, Labels] = {}
        for leaf, path in _paths(self.tree, ()):
            if seen.setdefault(leaf, path) != path:
                message = (
                    f"Hierarchy of {domain.name!r}: a value of the tree stands in two groups. Leave one out."
                )
                raise HierarchyError(message, [leaf])
        return super().bind(domain)


@dataclass(frozen=True)
class Csv(Listed):
    """A file with one row per value, from the value (left) to the top (right), taken as it is."""

    csv: str = ""
    """The file, relative to the policy's folder."""
    rows: tuple[Labels, ...] = ()  # the file's rows, once read
    top: bool = False
    """Add a last level with the one group `*`."""

    keyword: ClassVar[str] = "csv"

    def read(self, folder: Path, column: str) -> Csv:
        """Read the file, relative to the policy's folder."""
        if self.rows:
            return self
        rows, note = csv_rows(folder / self.csv, column)
        if note is not None:
            warnings.warn(note, Note, stacklevel=2)
        return replace(self, rows=rows)

    def listed(self) -> Mapping[str, Labels]:
        """Return every value of the file with its labels."""
        return {row[0]: row[1:] for row in self.rows}

    def note(self, texts: Sequence[str]) -> str | None:
        """Note a first row that seems to be a header: no value of the table, and no group of another row."""
        first, *others = self.rows
        if len(first) < 2 or len(others) < 2 or not first[0] or first[0] in texts:
            return None
        lowest = {row[1] for row in others}
        apart = {label for row in others for label in row[1:]}.isdisjoint(first[1:])
        headed = first[1] not in lowest and any(map(_HEADING.fullmatch, first))
        if not headed and (not apart or len(lowest) == len(others)):  # where no row shares a group
            return None
        return (
            "the first row of the file seems to be a header, which is taken as a value: the table lacks it, "
            "and no other row has its groups. If so, take it out of the file."
        )

    def _miss(self, values: Sequence[str]) -> str:
        return "not in the file. Add a row for each, or name codes under 'unknown'."


@dataclass(frozen=True)
class Order(Listed):
    """Values in an order of their own, grouped so many at a time, each size a multiple of the one before."""

    order: tuple[str, ...] = ()
    """Every value, in its order."""
    sizes: tuple[int, ...] = ()
    """How many values a group has at each level from 1 up, each 1 or more."""

    keyword: ClassVar[str] = "order"
    scale: ClassVar[str | None] = "place"

    def listed(self) -> Mapping[str, Labels]:
        """Return every value with the runs it belongs to, named by their ends."""
        return {
            value: tuple(self._run(place, size) for size in self.sizes)
            for place, value in enumerate(self.order)
        }

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return each place in the order."""
        return floats_of(map(self._places.get, texts))

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Read places in the order."""
        return {"place": self.positions(texts)}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.order)}

    def _run(self, place: int, size: int) -> str:
        run = self.order[place // size * size :][:size]
        return run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}"

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the sizes nest and no value stands twice, then apply them."""
        if len(set(self.order)) < len(self.order):
            message = f"Hierarchy of {domain.name!r}: a value stands twice in the order. Leave one out."
            raise HierarchyError(message, [value for value in self.order if self.order.count(value) > 1])
        for level, (low, high) in enumerate(zip(self.sizes, self.sizes[1:], strict=False), 2):
            if high % low:
                reason = f"Each size must be a multiple of the one before: {high} is not one of {low}."
                raise not_nested(domain.name, level, reason)
        for size in self.sizes:
            runs = [self._run(place, size) for place in range(0, len(self.order), size)]
            if len(set(runs)) < len(runs):
                message = f"Hierarchy of {domain.name!r}: two groups of {size} share a label; rename a value."
                raise HierarchyError(message, [run for run in runs if runs.count(run) > 1])
        return super().bind(domain)


def _paths(tree: object, above: Labels) -> list[tuple[str, Labels]]:
    """List each leaf with the groups above it, nearest first."""
    if isinstance(tree, Mapping):
        found = []
        for group, below in tree.items():
            found += _paths(below, (str(group), *above)) if below else [(str(group), above)]
        return found
    leaves = tree if isinstance(tree, list | tuple) else [tree]
    found = []
    for leaf in leaves:
        found += _paths(leaf, above) if isinstance(leaf, Mapping) else [(str(leaf), above)]
    return found


def csv_rows(path: Path, column: str) -> tuple[tuple[Labels, ...], str | None]:
    """Read the file of a hierarchy: a row per value, and a note where it is not UTF-8."""
    try:
        text, encoding = read_text(path)
        lines = io.StringIO(text, newline="")
        named = delimiter_told(lines.readline())
        begun = lines.tell() if named else 0
        lines.seek(begun)
        first = re.sub(r'"[^"]*"', "", lines.readline())
        lines.seek(begun)
        read = list(csv.reader(lines, delimiter=named or (";" if ";" in first else ",")))
    except DataError as error:
        message = f"Hierarchy of {column!r}: {error}"
        raise HierarchyError(message) from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or not a CSV file"
        message = f"Hierarchy of {column!r}: cannot read {str(path)!r}: {reason}."
        raise HierarchyError(message) from None
    rows: dict[str, Labels] = {}
    for number, row in enumerate(read, 2 if named else 1):
        if not row:
            continue
        first_row = next(iter(rows.values()), tuple(row))
        if len(row) != len(first_row):
            told = f"row {number} has {so_many(len(row), 'level')}, the first {len(first_row)}"
            message = f"Hierarchy of {column!r}: {told}."
            raise HierarchyError(message)
        if rows.setdefault(row[0], tuple(row)) != tuple(row):
            message = f"Hierarchy of {column!r}: row {number} repeats a value with other groups."
            raise HierarchyError(message, [row[0]])
    if not rows:
        message = f"Hierarchy of {column!r}: the file {str(path)!r} is empty."
        raise HierarchyError(message)
    return tuple(rows.values()), None if encoding == UTF_8 else f"{str(path)!r} {read_as(encoding)}"
