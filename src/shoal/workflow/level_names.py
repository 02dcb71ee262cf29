"""Names of levels in words, such as "age in 5-year bands" instead of "age 1"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from shoal.columns.names import is_named_as
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.calendar import Dates, Times
from shoal.core.hierarchy.classifications import Classified
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.hierarchy.lists import Order
from shoal.core.hierarchy.numbers import Cuts, Intervals
from shoal.core.hierarchy.prefixes import Prefix
from shoal.core.hierarchy.rare import RareValues
from shoal.policy.policy import Policy
from shoal.wording import percent, plural

AS_IS = "as it is"
REMOVED = "removed"
_UNITS = {"month": "month", "mon": "month", "week": "week", "day": "day"}  # units in names of age columns


@dataclass(frozen=True)
class LevelNames:
    """The names of the levels of each quasi-identifier, from level 0 up."""

    by_column: Mapping[str, Sequence[str]]

    def name(self, column: str, level: int) -> str:
        """Return the name of a level, such as "in 5-year bands"."""
        names = self.by_column.get(column, ())
        return names[level] if 0 <= level < len(names) else f"level {level}"

    def phrase(self, column: str, level: int) -> str:
        """Return a column with the name of a level, such as "age in 5-year bands"."""
        return f"{column} {self.name(column, level)}"

    def describe(self, node: Mapping[str, int], *, unchanged: bool = True) -> str:
        """Return the levels of a node in words; unchanged columns can be left out."""
        phrases = [self.phrase(name, level) for name, level in node.items() if level or unchanged]
        return ", ".join(phrases) or "every column as it is"


def level_names(policy: Policy, hierarchies: Iterable[Hierarchy]) -> LevelNames:
    """Name the levels of bound hierarchies by the rules of a policy."""
    specs = {name: column.hierarchy for name, column in policy.columns.items()}
    return LevelNames({bound.name: names_of_levels(specs.get(bound.name), bound) for bound in hierarchies})


def names_of_levels(spec: object, hierarchy: Hierarchy) -> tuple[str, ...]:
    """Name each level of a hierarchy that was bound from a rule, written as in a policy."""
    builder = None if spec is None else parse(hierarchy.name, spec)
    names = [_name(builder, hierarchy, level) for level in range(hierarchy.height + 1)]
    for level, name in enumerate(names):  # two levels may have the same description
        if names.count(name) > 1:
            names[level] = f"{name} (level {level})"
    return tuple(names)


def _name(builder: Builder | None, hierarchy: Hierarchy, level: int) -> str:
    if level == 0:
        return AS_IS
    if level == hierarchy.height and len(hierarchy.labels[level]) == 1:
        return REMOVED
    name = _by_rule(builder, hierarchy.name, level) if builder is not None else ""
    return name or f"in {plural(len(hierarchy.labels[level]), 'group')}"


def _by_rule(builder: Builder, column: str, level: int) -> str:
    """Name a level by its hierarchy rule; "" if the rule gives it no name."""
    if isinstance(builder, Intervals):
        return _band(builder, column, level)
    if isinstance(builder, Cuts) and level <= len(builder.cuts):
        return f"in {plural(len(builder.cuts[level - 1]) + 1, 'band')}"
    if isinstance(builder, Prefix) and level <= len(builder.prefix):
        length = builder.prefix[level - 1]
        return "by the first character" if length == 1 else f"by the first {length} characters"
    if isinstance(builder, Dates | Times | Classified) and level <= builder.depth():
        unit = _units(builder)[level - 1].replace("_", " ")
        return "in 5-year periods" if unit == "five years" else f"by {unit}"
    if isinstance(builder, Order) and level <= len(builder.sizes):
        return f"in groups of {builder.sizes[level - 1]} neighbours"
    if isinstance(builder, RareValues) and level <= len(builder.rare):
        return f"with values below {_threshold(builder.rare[level - 1])} together"
    return ""


def _units(builder: Dates | Times | Classified) -> tuple[str, ...]:
    if isinstance(builder, Dates):
        return builder.dates
    return builder.times if isinstance(builder, Times) else builder.levels()


def _band(builder: Intervals, column: str, level: int) -> str:
    if level > len(builder.intervals):
        points = builder.split[level - len(builder.intervals) - 1] if level <= builder.depth() else ()
        if len(points) == 1:
            return f"below {points[0].normalize():f}, or {points[0].normalize():f} and above"
        return f"in {plural(len(points) + 1, 'band')}" if points else ""
    width = f"{builder.intervals[level - 1].normalize():f}"
    if not is_named_as(column, "age"):
        return f"in bands of {width}"
    words = re.split(r"[^a-z]+", column.lower())
    unit = next((unit for word, unit in _UNITS.items() if word in words or f"{word}s" in words), "year")
    return f"in {width}-{unit} bands"


def _threshold(threshold: int | Decimal) -> str:
    return percent(float(threshold)) if isinstance(threshold, Decimal) else plural(threshold, "record")
