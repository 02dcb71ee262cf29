"""Groups: what the values of one column are released as, where a recoding is no node.

Groups of one column may overlap: one class may be told by decades, another by years. Two that look alike
in the release are one group, whatever levels they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy import Hierarchy
from shoal.errors import PolicyError

Shown = str | float | None
Labels = Mapping[str, Sequence[Shown]]  # released column -> what it holds for each group
# What a group stands for: {"level", "label"} of the hierarchy, {"from", "to", "ends"} on the column's scale,
# {"values"}, or {"blank"}: anything. "missing" in a range adds the values that have no place on the scale.
Cover = Mapping[str, Any]


@dataclass(frozen=True)
class Groups:
    """The groups of one column."""

    labels: Labels | None  # None: as is, and a group is a value
    leaves: IntArray  # (groups,): how many of the column's values each covers
    records: IntArray  # (groups,): how many records of the table have one of these values
    cover: Callable[[int], Cover] = field(compare=False, repr=False)  # what a group stands for
    levels: IntArray | None = None  # (groups,): None where some group is of no level
    blank: int | None = None  # the group of cells that are blanked

    def shares(self, hierarchy: Hierarchy) -> FloatArray:
        """Return which share of the column's values each group covers, from 0 for one to 1 for all."""
        return shares(self.leaves, hierarchy.size)


def shares(leaves: IntArray, size: int) -> FloatArray:
    """Return which share of a column's values groups of so many cover, from 0 for one to 1 for all."""
    found: FloatArray = (leaves - 1) / max(1, size - 1)
    return found


def released_columns(name: str, *, bounds: bool) -> tuple[str, ...]:
    """Name the columns that stand for a column in a release."""
    return (f"{name}_lower", f"{name}_upper") if bounds else (name,)


def group_column(name: str) -> str:
    """Name the column of a release that tells which group holds a record's sensitive value."""
    return f"{name}_group"


def level_labels(hierarchy: Hierarchy, level: int, *, bounds: bool) -> Labels | None:
    """Return what a level's groups are released as; None: as is."""
    names = released_columns(hierarchy.name, bounds=bounds)
    if not bounds:
        return {names[0]: hierarchy.labels[level]} if level else None
    if hierarchy.bounds is None:
        message = f"Column {hierarchy.name!r}: only intervals and cuts have bounds to release."
        raise PolicyError(message)
    ends = hierarchy.bounds[level]
    return {name: [plain(end[side]) for end in ends] for side, name in enumerate(names)}


def plain(number: Decimal | None) -> float | None:
    """Return a number as it is written to a release."""
    if number is None:
        return None
    return int(number) if number == number.to_integral_value() else float(number)


def of_levels(
    hierarchy: Hierarchy, counts: IntArray, levels: Sequence[int], *, bounds: bool, blanks: bool
) -> tuple[Groups, dict[int, IntArray]]:
    """Return the groups of some levels, and at each of these levels the group of each value.

    `counts` tells how many records have each value. With `blanks` one more group covers everything; it is
    that of nulls where a null is released as it is, for the two look alike.
    """
    if list(levels) == [0] and not bounds:
        found = _of_values(hierarchy, counts)
        maps = {0: np.arange(len(counts))}
    else:
        found, maps = _of_labels(hierarchy, counts, levels, bounds=bounds)
    if not blanks:
        return found, maps
    null = hierarchy.null if found.labels is None else None
    return _with_blank(found, hierarchy, int(counts.sum()), null), maps


def _of_values(hierarchy: Hierarchy, counts: IntArray) -> Groups:
    values = hierarchy.labels[0]
    levels = np.zeros(len(values), np.int64)

    def cover(code: int) -> Cover:
        return {"values": [None if code == hierarchy.null else values[code]]}

    return Groups(None, hierarchy.leaves[0], counts, cover, levels)


def _of_labels(
    hierarchy: Hierarchy, counts: IntArray, levels: Sequence[int], *, bounds: bool
) -> tuple[Groups, dict[int, IntArray]]:
    names = released_columns(hierarchy.name, bounds=bounds)
    known: dict[tuple[Shown, ...], int] = {}
    first: list[tuple[int, int]] = []  # of each group: the lowest level that has it, and which it is there
    codes = {}
    for level in levels:
        shown = level_labels(hierarchy, level, bounds=bounds) or {names[0]: hierarchy.labels[level]}
        here = np.empty(len(hierarchy.labels[level]), np.int64)
        for group, look in enumerate(zip(*shown.values(), strict=True)):
            here[group] = known.setdefault(look, len(known))
            if here[group] == len(first):
                first.append((level, group))
        codes[level] = here
    leaves, records = np.zeros((2, len(known)), np.int64)
    for level, here in codes.items():
        np.maximum.at(leaves, here, hierarchy.leaves[level])
        sums = np.bincount(hierarchy.groups(level), counts, len(here)).astype(np.int64)
        np.maximum.at(records, here, sums)
    labels = {name: [look[n] for look in known] for n, name in enumerate(names)}

    def cover(code: int) -> Cover:
        level, group = first[code]
        return {"level": level, "label": hierarchy.labels[level][group]}

    found = Groups(labels, leaves, records, cover, np.array([level for level, _ in first]))
    return found, {level: here[hierarchy.groups(level)] for level, here in codes.items()}


def _with_blank(groups: Groups, hierarchy: Hierarchy, records: int, null: int | None) -> Groups:
    """Add a group that covers everything, or let it be that of nulls."""
    blank = len(groups.leaves) if null is None else null
    more = 1 if null is None else 0
    leaves, counts, levels = (
        np.concatenate((numbers, np.zeros(more, np.int64)))
        for numbers in (groups.leaves, groups.records, groups.levels)
        if numbers is not None
    )
    leaves[blank], counts[blank], levels[blank] = hierarchy.size, records, hierarchy.height
    labels = groups.labels and {name: [*shown, None] for name, shown in groups.labels.items()}
    cover = groups.cover

    def of(code: int) -> Cover:
        return {"blank": True} if code == blank else cover(code)

    return Groups(labels, leaves, counts, of, levels, blank)
