"""Builders: hierarchies made from a rule, without seeing the data, then bound to a column's values.

A rule gives each value its labels from level 1 up. Binding adds level 0 (the value as it is), the top
group, nulls, and the codes that mean "unknown"; both of these join the others only at the top.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, ClassVar

from shoal.core.counts import Domain
from shoal.core.hierarchy import MISSING, TOP, Hierarchy, nest
from shoal.errors import HierarchyError, UnknownName

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Builder(ABC):
    """A rule that gives each value its labels."""

    top: bool = True  # end in one group of all values
    unknown: tuple[str, ...] = ()  # codes such as 99 or U that join the others only at the top

    keyword: ClassVar[str]

    @abstractmethod
    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each text its labels from level 1 up, or None where the rule does not cover it."""

    def listed(self) -> Mapping[str, Labels]:
        """Return the values the rule lists, with their labels; empty for a rule about any value."""
        return {}

    def bind(self, domain: Domain) -> Hierarchy:
        """Apply the rule to a column's distinct values."""
        known = [text for text in domain.texts if text is not None and text not in self.unknown]
        found = dict(zip(known, self.labels(known), strict=True))
        uncovered = [text for text, labels in found.items() if labels is None]
        if uncovered:
            raise self._uncovered(domain.name, uncovered)
        given = {text: labels for text, labels in found.items() if labels is not None}
        listed = self.listed()
        depth = len(next(iter((*listed.values(), *given.values())), ()))
        top = self._top(listed, given)
        rows = []
        for text in domain.texts:
            if text is not None and text in given:
                middle = given[text]
            elif text is None and "" in listed:
                middle = listed[""]
            else:
                middle = (MISSING if text is None else text,) * depth
                if top is not None:
                    middle = (*middle[:-1], top)
            rows.append((MISSING if text is None else text, *middle, *((TOP,) if self.top else ())))
        present = set(domain.texts)
        others = [(text, *labels) for text, labels in listed.items() if text and text not in present]
        if self.top:
            others = [(*row, TOP) for row in others]
        return nest(domain.name, rows, others)

    def _top(self, listed: Mapping[str, Labels], given: Mapping[str, Labels]) -> str | None:
        """Return the label all values share at the rule's own last level, where there is one."""
        if self.top:
            return None
        last = {labels[-1] for labels in (*listed.values(), *given.values()) if labels}
        return last.pop() if len(last) == 1 else None

    def _uncovered(self, name: str, values: Sequence[str]) -> HierarchyError:
        are = "value is" if len(values) == 1 else "values are"
        message = f"Hierarchy of {name!r} ({self.keyword}): {len(values)} {are} {self._miss()}"
        return HierarchyError(message, values)

    def _miss(self) -> str:
        return "not covered. Add them, or name codes under 'unknown'. --reveal lists them."


@dataclass(frozen=True)
class Flat(Builder):
    """As is, or everything in one group."""

    keyword: ClassVar[str] = "flat"

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give no labels below the top."""
        return [()] * len(texts)


@dataclass(frozen=True)
class Intervals(Builder):
    """Numbers in bands of equal width, each width a multiple of the one before."""

    intervals: tuple[Decimal, ...] = ()
    origin: Decimal = Decimal(0)
    bottom_coding: Decimal | None = None  # everything below is one group
    top_coding: Decimal | None = None  # this and everything above is one group

    keyword: ClassVar[str] = "intervals"

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each number the bands it falls into."""
        numbers = [_number(text) for text in texts]
        points = [*self.intervals, self.origin, self.bottom_coding, self.top_coding, *numbers]
        whole = all(point is None or point == point.to_integral_value() for point in points)
        return [
            None if number is None else tuple(self._band(number, width, whole) for width in self.intervals)
            for number in numbers
        ]

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the widths nest for any value, then apply them."""
        for level, (low, high) in enumerate(zip(self.intervals, self.intervals[1:], strict=False), 2):
            if high % low:
                message = (
                    f"Hierarchy of {domain.name!r}: level {level} splits a group of level {level - 1}. "
                    f"Each width must be a multiple of the one before: {high} is not one of {low}."
                )
                raise HierarchyError(message)
        return super().bind(domain)

    def _band(self, number: Decimal, width: Decimal, whole: bool) -> str:
        if self.bottom_coding is not None and number < self.bottom_coding:
            return f"<{_plain(self.bottom_coding)}"
        if self.top_coding is not None and number >= self.top_coding:
            return f"{_plain(self.top_coding)}+"
        low = self.origin + (number - self.origin) // width * width
        if low > number:  # Decimal's // cuts toward zero
            low -= width
        high = low + width
        if self.bottom_coding is not None:
            low = max(low, self.bottom_coding)
        if self.top_coding is not None:
            high = min(high, self.top_coding)
        if not whole:
            return f"[{_plain(low)}, {_plain(high)})"
        return _plain(low) if high - low == 1 else f"{_plain(low)}-{_plain(high - 1)}"

    def _miss(self) -> str:
        return "not a number. Name codes under 'unknown', or use another builder. --reveal lists them."


@dataclass(frozen=True)
class Prefix(Builder):
    """The first characters of a code, fewer at each level."""

    prefix: tuple[int, ...] = ()

    keyword: ClassVar[str] = "prefix"

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Keep the first characters of each text."""
        return [tuple(text[:length] + TOP for length in self.prefix) for text in texts]

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the lengths nest for any value, then apply them."""
        for level, (low, high) in enumerate(zip(self.prefix, self.prefix[1:], strict=False), 2):
            if high > low:
                message = (
                    f"Hierarchy of {domain.name!r}: level {level} splits a group of level {level - 1}. "
                    f"Each prefix must be shorter than the one before: {high} is longer than {low}."
                )
                raise HierarchyError(message)
        return super().bind(domain)


@dataclass(frozen=True)
class Tree(Builder):
    """A tree written out: groups as keys, values as lists; a short branch climbs later."""

    tree: Any = None

    keyword: ClassVar[str] = "tree"

    def listed(self) -> Mapping[str, Labels]:
        """Return every leaf with the groups above it."""
        paths = dict(_paths(self.tree, ()))
        depth = max((len(path) for path in paths.values()), default=0)
        return {leaf: (leaf,) * (depth - len(path)) + path for leaf, path in paths.items()}

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Look each text up among the leaves."""
        listed = self.listed()
        return [listed.get(text) for text in texts]


@dataclass(frozen=True)
class Csv(Builder):
    """A file with one row per value, from the value (left) to the top (right), taken as it is."""

    csv: str = ""
    rows: tuple[Labels, ...] = ()  # the file's rows, once read
    top: bool = False

    keyword: ClassVar[str] = "csv"

    def read(self, folder: Path, column: str) -> Csv:
        """Read the file, relative to the policy's folder."""
        rows = self.rows or _csv_rows(folder / self.csv, column)
        return Csv(csv=self.csv, rows=rows, top=self.top, unknown=self.unknown)

    def listed(self) -> Mapping[str, Labels]:
        """Return every value of the file with its labels."""
        return {row[0]: row[1:] for row in self.rows}

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Look each text up in the file."""
        listed = self.listed()
        return [listed.get(text) for text in texts]

    def _miss(self) -> str:
        return "not in the file. Add a row for each, or name codes under 'unknown'. --reveal lists them."


BUILDERS: dict[str, type[Builder]] = {kind.keyword: kind for kind in (Csv, Flat, Intervals, Prefix, Tree)}


def parse(column: str, spec: object) -> Builder:
    """Read a hierarchy as a policy writes it: a name, or a mapping that begins with one."""
    if isinstance(spec, str):
        spec = {spec: None}
    if not isinstance(spec, Mapping) or not spec:
        message = f"Hierarchy of {column!r}: expected a builder such as 'flat' or {{intervals: [5, 10]}}."
        raise HierarchyError(message)
    named = [key for key in spec if key in BUILDERS]
    if len(named) > 1:
        message = f"Hierarchy of {column!r}: one builder per column, got {' and '.join(named)}."
        raise HierarchyError(message)
    if not named:
        unknown = next((str(key) for key in spec if key not in BUILDERS), "")
        raise UnknownName(unknown, f"hierarchy builder for column {column!r}:", BUILDERS)
    kind = BUILDERS[named[0]]
    known = {field.name for field in fields(kind)} - {"rows"} | {kind.keyword}
    for key in spec:
        if key not in known:
            raise UnknownName(str(key), f"option of {kind.keyword} for column {column!r}:", known)
    options = {key: _option(column, key, value) for key, value in spec.items() if value is not None}
    if kind.keyword != "flat" and not options.get(kind.keyword):
        message = f"Hierarchy of {column!r}: {kind.keyword} needs at least one entry."
        raise HierarchyError(message)
    options.pop("flat", None)
    return kind(**options)


def _option(column: str, key: str, value: object) -> Any:
    many = value if isinstance(value, list | tuple) else [value]
    if key == "unknown":
        return tuple(str(code) for code in many)
    if key in ("intervals", "prefix"):
        numbers = [_positive(column, key, entry) for entry in many]
        return tuple(int(n) for n in numbers) if key == "prefix" else tuple(numbers)
    if key in ("origin", "bottom_coding", "top_coding"):
        number = _number(str(value))
        if number is None:
            message = f"Hierarchy of {column!r}: {key} must be a number, got {value!r}."
            raise HierarchyError(message)
        return number
    if key == "top" and not isinstance(value, bool):
        message = f"Hierarchy of {column!r}: top must be true or false, got {value!r}."
        raise HierarchyError(message)
    return value


def _positive(column: str, key: str, value: object) -> Decimal:
    number = None if isinstance(value, bool) else _number(str(value))
    whole = key == "intervals" or (number is not None and number == number.to_integral_value())
    if number is None or number <= 0 or not whole:
        kind = "numbers above 0" if key == "intervals" else "whole numbers of at least 1"
        message = f"Hierarchy of {column!r}: {key} takes {kind}, got {value!r}."
        raise HierarchyError(message)
    return number


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


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


def _csv_rows(path: Path, column: str) -> tuple[Labels, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"Hierarchy of {column!r}: cannot read {str(path)!r}: {reason}."
        raise HierarchyError(message) from None
    lines = text.splitlines()
    delimiter = ";" if lines and ";" in lines[0] else ","
    rows: dict[str, Labels] = {}
    for number, row in enumerate(csv.reader(lines, delimiter=delimiter), 1):
        if not row:
            continue
        first = next(iter(rows.values()), tuple(row))
        if len(row) != len(first):
            message = (
                f"Hierarchy of {column!r}: line {number} has {len(row)} levels, line 1 has {len(first)}."
            )
            raise HierarchyError(message)
        if rows.setdefault(row[0], tuple(row)) != tuple(row):
            message = f"Hierarchy of {column!r}: line {number} repeats a value with other groups."
            raise HierarchyError(message, [row[0]])
    if not rows:
        message = f"Hierarchy of {column!r}: the file {str(path)!r} is empty."
        raise HierarchyError(message)
    return tuple(rows.values())
