"""Groups: the released values of one column, for recodings that are not nodes.

Groups of one column may overlap: one class may show decades, another years. Groups with the same label in
the release are one group, even if they come from different levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.hierarchy import MISSING, TOP, Hierarchy
from shoal.errors import PolicyError

CellValue = str | float | None
ReleasedLabels = Mapping[str, Sequence[CellValue]]  # released column -> its content for each group
# What a group covers, in one of these forms:
#   {"level", "label"}: a group of the hierarchy; {"level", "labels"}: several of them
#   {"from", "to", "ends"}: a range on the column's scale; "missing" adds the values that are not on the scale
#   {"values"}: some values
#   {"blank"}: all values
# With both a level and values, the values count: at level 0, null and the text "missing" differ.
Cover = Mapping[str, Any]


@dataclass(frozen=True)
class Groups:
    """The groups of one column."""

    labels: ReleasedLabels | None  # None: values are released unchanged; each is a group
    leaves: IntArray  # (groups,): the number of the column's values that a group covers
    records: IntArray  # (groups,): the number of records of the table with one of its values
    cover: Callable[[int], Cover] = field(compare=False, repr=False)  # what a group covers
    levels: IntArray | None = None  # (groups,): None if some group has no level
    blank: int | None = None  # the group of cells that are blanked

    def shares(self, hierarchy: Hierarchy) -> FloatArray:
        """Return the share of the column's values that each group covers, from 0 (one value) to 1 (all)."""
        return shares(self.leaves, hierarchy.size)


def shares(leaves: IntArray, size: int) -> FloatArray:
    """Return the share of a column's values that groups cover, from 0 (one value) to 1 (all)."""
    result: FloatArray = (leaves - 1) / max(1, size - 1)
    return result


def released_columns(name: str, *, bounds: bool) -> tuple[str, ...]:
    """Return the names of a column in the release."""
    return (f"{name}_lower", f"{name}_upper") if bounds else (name,)


def group_column(name: str) -> str:
    """Return the name of the released column with the group of a sensitive value."""
    return f"{name}_group"


def level_labels(hierarchy: Hierarchy, level: int, *, bounds: bool) -> ReleasedLabels | None:
    """Return the released labels of a level's groups; None if values are released unchanged."""
    names = released_columns(hierarchy.name, bounds=bounds)
    if not bounds:
        return {names[0]: hierarchy.labels[level]} if level else None
    if hierarchy.bounds is None:
        raise PolicyError(
            f"Column {hierarchy.name!r}: only intervals and cuts have bounds. Use release_as: text."
        )
    ends = hierarchy.bounds[level]
    return {name: [cell_number(end[side]) for end in ends] for side, name in enumerate(names)}


def cell_number(number: Decimal | None) -> float | None:
    """Return a number as it is written to a release."""
    if number is None:
        return None
    return int(number) if number == number.to_integral_value() else float(number)


def groups_of_levels(
    hierarchy: Hierarchy,
    counts: IntArray,
    levels: Sequence[int],
    *,
    bounds: bool,
    blanks: bool,
    star: bool = False,
) -> tuple[Groups, dict[int, IntArray]]:
    """Return the groups of some levels, and the group of each value at each of these levels.

    `counts` has the number of records of each value. With `blanks`, one more group covers all values. It is
    shown as an empty cell, or as a star if `star` is set or the column itself has empty cells.
    """
    if list(levels) == [0] and not bounds:
        as_text = blanks and (star or hierarchy.null is not None)
        groups = _groups_of_values(hierarchy, counts, as_text=as_text)
        maps = {0: np.arange(len(counts))}
    else:
        groups, maps = _groups_of_labels(hierarchy, counts, levels, bounds=bounds)
    return (with_blank(groups, hierarchy, int(counts.sum()), star=star) if blanks else groups), maps


def _groups_of_values(hierarchy: Hierarchy, counts: IntArray, *, as_text: bool) -> Groups:
    """Make every value a group, released unchanged or as text."""
    values = values_of(hierarchy)
    levels = np.zeros(len(values), np.int64)
    labels = {hierarchy.name: values} if as_text else None
    return Groups(labels, hierarchy.leaves[0], counts, lambda code: {"values": [values[code]]}, levels)


def values_of(hierarchy: Hierarchy) -> list[str | None]:
    """Return the values of a column at level 0; a null is None."""
    return [None if code == hierarchy.null else text for code, text in enumerate(hierarchy.labels[0])]


def _groups_of_labels(
    hierarchy: Hierarchy, counts: IntArray, levels: Sequence[int], *, bounds: bool
) -> tuple[Groups, dict[int, IntArray]]:
    names = released_columns(hierarchy.name, bounds=bounds)
    code_of_labels: dict[tuple[CellValue, ...], int] = {}
    widest: list[tuple[int, int]] = []  # per released label: the level and group with most values
    codes = {}
    for level in levels:
        released_labels = level_labels(hierarchy, level, bounds=bounds) or {names[0]: values_of(hierarchy)}
        code_of_group = np.empty(len(hierarchy.labels[level]), np.int64)
        for group, cells in enumerate(zip(*released_labels.values(), strict=True)):
            code = code_of_labels.setdefault(cells, len(code_of_labels))
            code_of_group[group] = code
            if code == len(widest):
                widest.append((level, group))
            elif hierarchy.leaves[level][group] > hierarchy.leaves[widest[code][0]][widest[code][1]]:
                widest[code] = (level, group)
        codes[level] = code_of_group
    leaves, records = np.zeros((2, len(code_of_labels)), np.int64)
    for level, code_of_group in codes.items():
        np.maximum.at(leaves, code_of_group, hierarchy.leaves[level])
        sums = np.bincount(hierarchy.groups(level), counts, len(code_of_group)).astype(np.int64)
        np.maximum.at(records, code_of_group, sums)
    labels = {name: [cells[n] for cells in code_of_labels] for n, name in enumerate(names)}

    def cover(code: int) -> Cover:
        level, group = widest[code]
        level_and_label = {"level": level, "label": hierarchy.labels[level][group]}
        in_group = hierarchy.groups(level) == group
        has_code = np.logical_or.reduce(
            [code_of_group[hierarchy.groups(at)] == code for at, code_of_group in codes.items()]
        )
        if level and not (has_code & ~in_group).any():
            return level_and_label
        values = values_of(hierarchy)  # needed for single values, and if several groups have the same label
        return {**level_and_label, "values": [values[value] for value in np.flatnonzero(has_code).tolist()]}

    groups = Groups(labels, leaves, records, cover, np.array([level for level, _ in widest]))
    return groups, {level: code_of_group[hierarchy.groups(level)] for level, code_of_group in codes.items()}


def in_order(hierarchy: Hierarchy, groups: Groups, codes: Sequence[int]) -> list[int]:
    """Sort groups by level and, if the column has a scale, from low to high."""
    if hierarchy.positions is None or groups.levels is None:
        return list(codes)
    covers = {code: _level_and_label(groups.cover(code)) for code in codes}
    positions: dict[tuple[int, str], int] = {}
    for level in {cover[0] for cover in covers.values() if cover}:
        labels = hierarchy.labels[level]
        ordered = hierarchy.ordered(level, np.arange(len(labels)))
        positions |= {(level, labels[group]): position for position, group in enumerate(ordered)}
    last = hierarchy.height + 1
    ranks = {code: (cover[0], positions[cover]) if cover else (last, 0) for code, cover in covers.items()}
    return sorted(codes, key=ranks.__getitem__)


def _level_and_label(cover: Cover) -> tuple[int, str] | None:
    """Return the level and label of a group; None for the blank group."""
    if "blank" in cover:
        return None
    if "level" in cover:
        return cover["level"], cover["labels"][0] if "labels" in cover else cover["label"]
    (value,) = cover["values"]
    return 0, MISSING if value is None else value


def with_blank(
    groups: Groups, hierarchy: Hierarchy, records: int, *, shown: bool = True, star: bool = False
) -> Groups:
    """Add a group that covers all values; without `shown`, it is for suppressed records only."""
    blank = len(groups.leaves)
    leaves, counts = np.append(groups.leaves, hierarchy.size), np.append(groups.records, records)
    levels = None if groups.levels is None else np.append(groups.levels, hierarchy.height)
    labels = groups.labels and {
        name: [*values, _blank(values, star=star) if shown else None]
        for name, values in groups.labels.items()
    }
    cover = groups.cover

    def cover_with_blank(code: int) -> Cover:
        return {"blank": True} if code == blank else cover(code)

    return Groups(labels, leaves, counts, cover_with_blank, levels, blank)


def _blank(labels: Sequence[CellValue], *, star: bool) -> CellValue:
    """Return the content of a blanked cell: nothing, or a star if the column has empty cells."""
    return unused(labels, (*(() if star else (None,)), TOP, TOP * 2, TOP * 3))


def unused(labels: Sequence[CellValue], candidates: Sequence[CellValue]) -> CellValue:
    """Return the first candidate that is not yet a label, because labels are unique."""
    return next(candidate for candidate in candidates if candidate not in labels)
