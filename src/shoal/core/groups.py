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
from shoal.core.hierarchy import MISSING, TOP, Hierarchy
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
        message = f"Column {hierarchy.name!r}: only intervals and cuts have bounds. Use release_as: text."
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

    `counts` tells how many records have each value. With `blanks` one more group covers everything: an
    empty cell, or a star where the column has empty cells of its own.
    """
    if list(levels) == [0] and not bounds:
        found = _of_values(hierarchy, counts, told=blanks and hierarchy.null is not None)
        maps = {0: np.arange(len(counts))}
    else:
        found, maps = _of_labels(hierarchy, counts, levels, bounds=bounds)
    return (with_blank(found, hierarchy, int(counts.sum())) if blanks else found), maps


def _of_values(hierarchy: Hierarchy, counts: IntArray, *, told: bool) -> Groups:
    """Let every value be a group, released as it is, or as text where that is to be told."""
    values = [None if code == hierarchy.null else text for code, text in enumerate(hierarchy.labels[0])]
    levels = np.zeros(len(values), np.int64)
    labels = {hierarchy.name: values} if told else None
    return Groups(labels, hierarchy.leaves[0], counts, lambda code: {"values": [values[code]]}, levels)


def _of_labels(
    hierarchy: Hierarchy, counts: IntArray, levels: Sequence[int], *, bounds: bool
) -> tuple[Groups, dict[int, IntArray]]:
    names = released_columns(hierarchy.name, bounds=bounds)
    known: dict[tuple[Shown, ...], int] = {}
    widest: list[tuple[int, int]] = []  # of each look: the level and the group that cover most, lowest first
    codes = {}
    for level in levels:
        shown = level_labels(hierarchy, level, bounds=bounds) or {names[0]: hierarchy.labels[level]}
        here = np.empty(len(hierarchy.labels[level]), np.int64)
        for group, look in enumerate(zip(*shown.values(), strict=True)):
            code = known.setdefault(look, len(known))
            here[group] = code
            if code == len(widest):
                widest.append((level, group))
            elif hierarchy.leaves[level][group] > hierarchy.leaves[widest[code][0]][widest[code][1]]:
                widest[code] = (level, group)
        codes[level] = here
    leaves, records = np.zeros((2, len(known)), np.int64)
    for level, here in codes.items():
        np.maximum.at(leaves, here, hierarchy.leaves[level])
        sums = np.bincount(hierarchy.groups(level), counts, len(here)).astype(np.int64)
        np.maximum.at(records, here, sums)
    labels = {name: [look[n] for look in known] for n, name in enumerate(names)}

    def cover(code: int) -> Cover:
        level, group = widest[code]
        return {"level": level, "label": hierarchy.labels[level][group]}

    found = Groups(labels, leaves, records, cover, np.array([level for level, _ in widest]))
    return found, {level: here[hierarchy.groups(level)] for level, here in codes.items()}


def in_order(hierarchy: Hierarchy, groups: Groups, codes: Sequence[int]) -> list[int]:
    """Return groups level by level, each from low to high where the column has a scale; else as they come."""
    if hierarchy.positions is None or groups.levels is None:
        return list(codes)
    covers = {code: _named(groups.cover(code)) for code in codes}
    places: dict[tuple[int, str], int] = {}
    for level in {cover[0] for cover in covers.values() if cover}:
        labels = hierarchy.labels[level]
        ordered = hierarchy.ordered(level, np.arange(len(labels)))
        places |= {(level, labels[group]): place for place, group in enumerate(ordered)}
    last = hierarchy.height + 1
    ranks = {code: (cover[0], places[cover]) if cover else (last, 0) for code, cover in covers.items()}
    return sorted(codes, key=ranks.__getitem__)


def _named(cover: Cover) -> tuple[int, str] | None:
    """Name a group by its level and its label; None where it is blank."""
    if "blank" in cover:
        return None
    if "level" in cover:
        return cover["level"], cover["label"]
    (value,) = cover["values"]
    return 0, MISSING if value is None else value


def with_blank(groups: Groups, hierarchy: Hierarchy, records: int) -> Groups:
    """Add a group that covers everything."""
    blank = len(groups.leaves)
    leaves, counts = np.append(groups.leaves, hierarchy.size), np.append(groups.records, records)
    levels = None if groups.levels is None else np.append(groups.levels, hierarchy.height)
    labels = groups.labels and {name: [*shown, _blank(shown)] for name, shown in groups.labels.items()}
    cover = groups.cover

    def of(code: int) -> Cover:
        return {"blank": True} if code == blank else cover(code)

    return Groups(labels, leaves, counts, of, levels, blank)


def _blank(shown: Sequence[Shown]) -> Shown:
    """Return what a blanked cell looks like: nothing, or a star where nothing means something else."""
    return next(look for look in (None, TOP, TOP * 2, TOP * 3) if look not in shown)
