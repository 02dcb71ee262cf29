"""Builders that list every value: a tree, an order, a CSV file."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import Builder, Labels, floats_of, not_nested
from shoal.core.hierarchy.hierarchy import MAX_LEVELS, Hierarchy
from shoal.errors import DataError, HierarchyError, Note
from shoal.files.text import UTF_8, declared_delimiter, encoding_note, open_file, read_text
from shoal.wording import plural

_LARGE = 1 << 16  # size in bytes above which a file is read through Arrow
_HEADING = re.compile(
    r"\s*(?:values?|wert|valeur|valore?|waarde|group|gruppe|groupe|gruppo|grupo|groep|level|ebene|stufe|niveau|"
    r"livello|n[ií]vel|code|label)[ _]?\d*\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Listed(Builder):
    """A rule that lists its values."""

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        listed = self.listed()
        return [listed.get(text) for text in texts]

    def covers(self, label: str) -> str:
        values = self._values_by_label.get(label)
        return "; ".join(values) if values else super().covers(label)

    @cached_property
    def _values_by_label(self) -> dict[str, list[str]]:
        values_by_label: dict[str, list[str]] = {}
        for value, labels in self.listed().items():
            for label in dict.fromkeys(labels):
                values_by_label.setdefault(label, []).append(value)
        return values_by_label


@dataclass(frozen=True)
class Tree(Listed):
    """A tree of groups with lists of values; a value with few groups above it changes only at high levels."""

    tree: Any = field(default=None, metadata={"takes": "mapping of groups"})
    """The groups, with the groups or values below each."""

    keyword: ClassVar[str] = "tree"

    def listed(self) -> Mapping[str, Labels]:
        return self._listed

    @cached_property
    def _listed(self) -> dict[str, Labels]:
        paths = dict(_paths(self.tree, ()))  # bind refuses a leaf that appears twice
        depth = max((len(path) for path in paths.values()), default=0)
        return {leaf: (leaf,) * (depth - len(path)) + path for leaf, path in paths.items()}

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        paths: dict[str, Labels] = {}
        for leaf, path in _paths(self.tree, ()):
            if paths.setdefault(leaf, path) != path:
                raise HierarchyError(
                    f"Hierarchy of {domain.name!r}: a value of the tree is in two groups. Leave one out.",
                    [leaf],
                )
        return super().bind(domain, counts)


@dataclass(frozen=True)
class Csv(Listed):
    """A file with one row per value: the value, then its label at each level up to the top."""

    csv: str = ""
    """The file, relative to the policy's folder."""
    rows: Sequence[Labels] = ()  # the file's rows, once read
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
        return self._listed

    @cached_property
    def _listed(self) -> dict[str, Labels]:
        return {row[0]: row[1:] for row in self.rows}

    def depth(self) -> int:
        return len(self.rows[0]) - 1 if self.rows else 0

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        """Build the hierarchy level by level, which is fast; if that fails, build it row by row."""
        from shoal.core.hierarchy.rows import bind_rows

        is_plain = None not in domain.texts and not self.unknown and self.uncovered is None
        levels = bind_rows(domain, self.rows, top=self.top) if is_plain else None
        if levels is None:
            return super().bind(domain, counts)
        positions = self._positions(domain.texts)
        return replace(levels, positions=positions, measures=self.scale is not None)

    def note(self, texts: Sequence[str]) -> str | None:
        """Return a note if the first row is probably a header, not a value."""
        first, *others = self.rows
        if len(first) < 2 or len(others) < 2 or not first[0] or first[0] in texts:
            return None
        lowest = {row[1] for row in others}
        unrelated = {label for row in others for label in row[1:]}.isdisjoint(first[1:])
        has_heading = first[1] not in lowest and any(map(_HEADING.fullmatch, first))
        if not has_heading and (
            not unrelated or len(lowest) == len(others)
        ):  # every row has a different group
            return None
        return (
            "the first row of the file seems to be a header, which is taken as a value: the table lacks it, "
            "and no other row has its groups. If so, take it out of the file."
        )

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        return "not in the file. Add a row for each, or name codes under 'unknown'."


@dataclass(frozen=True)
class Order(Listed):
    """Values in a given order, in groups of neighbours; each group size is a multiple of the one before."""

    order: tuple[str, ...] = ()
    """Every value, in its order."""
    sizes: tuple[int, ...] = ()
    """The number of values of a group at each level from 1 up, each 1 or more."""

    keyword: ClassVar[str] = "order"
    scale: ClassVar[str | None] = "place"

    def listed(self) -> Mapping[str, Labels]:
        """Return every value with the labels of its groups, which name their first and last value."""
        return self._listed

    @cached_property
    def _listed(self) -> dict[str, Labels]:
        runs = [self._runs(size) for size in self.sizes]
        return {
            value: tuple(named[index // size] for size, named in zip(self.sizes, runs, strict=True))
            for index, value in enumerate(self.order)
        }

    def positions(self, texts: Sequence[str]) -> FloatArray:
        return floats_of(map(self._positions_in_order.get, texts))

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        return {"place": self.positions(texts)}

    @cached_property
    def _positions_in_order(self) -> dict[str, int]:
        return {value: index for index, value in enumerate(self.order)}

    def _runs(self, size: int) -> list[str]:
        """Return the labels of groups of `size` consecutive values, in order."""
        runs = (self.order[start : start + size] for start in range(0, len(self.order), size))
        return [run[0] if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs]

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        if repeated := _duplicates(self.order):
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: a value appears twice in the order. Leave one out.", repeated
            )
        for level, (low, high) in enumerate(zip(self.sizes, self.sizes[1:], strict=False), 2):
            if high % low:
                reason = f"Each size must be a multiple of the one before: {high} is not one of {low}."
                raise not_nested(domain.name, level, reason)
        for size in self.sizes:
            if repeated := _duplicates(self._runs(size)):
                raise HierarchyError(
                    f"Hierarchy of {domain.name!r}: two groups of {size} share a label; rename a value.",
                    repeated,
                )
        return super().bind(domain, counts)


def _duplicates(texts: Sequence[str]) -> list[str]:
    """Return all occurrences of the texts that occur more than once."""
    counts = Counter(texts)
    return [text for text in texts if counts[text] > 1]


def _paths(tree: object, above: Labels) -> list[tuple[str, Labels]]:
    """Return each leaf with the groups above it, nearest first."""
    if isinstance(tree, Mapping):
        paths = []
        for group, below in tree.items():
            paths += _paths(below, (str(group), *above)) if below else [(str(group), above)]
        return paths
    leaves = tree if isinstance(tree, list | tuple) else [tree]
    paths = []
    for leaf in leaves:
        paths += _paths(leaf, above) if isinstance(leaf, Mapping) else [(str(leaf), above)]
    return paths


def csv_rows(path: Path, column: str, name: str | None = None) -> tuple[Sequence[Labels], str | None]:
    """Read the file of a hierarchy; also return a note if it is not UTF-8.

    Messages contain `name` or, by default, the path of the file.
    """
    from shoal.core.hierarchy.rows import parse_rows

    name = name or str(path)
    try:
        with open_file(path) as file:
            data = file.read()
        if len(data) > _LARGE and (parsed := parse_rows(data)) is not None:
            return parsed, None
        try:
            text, encoding = data.decode(UTF_8), UTF_8
        except UnicodeDecodeError:
            text, encoding = read_text(path, name)
        lines = io.StringIO(text, newline="")
        declared = declared_delimiter(lines.readline())
        start = lines.tell() if declared else 0
        lines.seek(start)
        first = re.sub(r'"[^"]*"', "", lines.readline())
        lines.seek(start)
        parsed_rows = list(csv.reader(lines, delimiter=declared or (";" if ";" in first else ",")))
    except DataError as error:
        raise HierarchyError(f"Hierarchy of {column!r}: {error}") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or not a CSV file"
        raise HierarchyError(f"Hierarchy of {column!r}: cannot read {name!r}: {reason}.") from None
    rows: dict[str, Labels] = {}
    for number, row in enumerate(parsed_rows, 2 if declared else 1):
        if not row:
            continue
        if len(row) > MAX_LEVELS + 1:
            raise HierarchyError(
                f"Hierarchy of {column!r}: row {number} has {len(row):,} entries, and a "
                "hierarchy has at most "
                f"{MAX_LEVELS} levels. Are the delimiters right?"
            )
        first_row = next(iter(rows.values()), tuple(row))
        if len(row) != len(first_row):
            reason = f"row {number} has {plural(len(row), 'level')}, the first {len(first_row)}"
            raise HierarchyError(f"Hierarchy of {column!r}: {reason}.")
        if rows.setdefault(row[0], tuple(row)) != tuple(row):
            raise HierarchyError(
                f"Hierarchy of {column!r}: row {number} repeats a value with other groups.", [row[0]]
            )
    if not rows:
        raise HierarchyError(f"Hierarchy of {column!r}: the file {name!r} is empty.")
    return tuple(rows.values()), None if encoding == UTF_8 else f"{name!r} {encoding_note(encoding)}"
