"""Edit a hierarchy: groups of values as a tree, bands of numbers by their limits. Levels are always nested.

Each function returns a new grouping or new limits and changes nothing in place. The result is written as a
hierarchy of a policy: `tree` for groups, `cuts` for bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor, log10
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy
from shoal.web.errors import Refused

MAX_VALUES = 2_000  # largest number of values that are shown for dragging
_KEPT = ("decimal", "unknown", "fractions")  # options that `cuts` shares with the other builders for numbers


@dataclass(frozen=True)
class ValueLevel:
    """The groups of a level, and the group of each item of the level below."""

    labels: tuple[str, ...]
    parents: tuple[int, ...]


@dataclass(frozen=True)
class ValueGrouping:
    """The values of a column, and levels of groups. Each level merges groups of the level below."""

    values: tuple[str, ...]
    levels: tuple[ValueLevel, ...]

    def items(self, level: int) -> tuple[str, ...]:
        """Return the items that a level groups: the values, or the groups of the level below."""
        return self.values if level == 1 else self.levels[level - 2].labels

    def groups(self, level: int) -> list[tuple[str, list[int]]]:
        """Return the label and the items of each group of a level."""
        chosen = self.levels[level - 1]
        members: list[list[int]] = [[] for _ in chosen.labels]
        for item, group in enumerate(chosen.parents):
            members[group].append(item)
        return list(zip(chosen.labels, members, strict=True))

    def spec(self) -> dict[str, Any]:
        """Return the hierarchy as a policy writes it."""

        def branch(level: int, item: int) -> Any:
            members = [n for n, group in enumerate(self.levels[level - 1].parents) if group == item]
            if level == 1:
                return [self.values[member] for member in members]
            return {self.levels[level - 2].labels[member]: branch(level - 1, member) for member in members}

        top = len(self.levels)
        return {"tree": {label: branch(top, n) for n, label in enumerate(self.levels[-1].labels)}}


def grouping_of(hierarchy: Hierarchy) -> ValueGrouping:
    """Return the levels of a hierarchy without its top. If no level is left, add one of single values."""
    values = [n for n in range(len(hierarchy.labels[0])) if n != hierarchy.null]
    codes, levels = values, []
    for level in range(1, hierarchy.height + 1):
        above = hierarchy.steps[level - 1][np.array(codes, np.int64)].tolist()
        groups = list(dict.fromkeys(above))
        number = {group: n for n, group in enumerate(groups)}
        labels = tuple(hierarchy.labels[level][group] for group in groups)
        levels.append(ValueLevel(labels, tuple(number[group] for group in above)))
        codes = groups
    while levels and len(levels[-1].labels) == 1:
        levels.pop()
    texts = tuple(hierarchy.labels[0][n] for n in values)
    first = ValueLevel(texts, tuple(range(len(texts))))
    return ValueGrouping(texts, tuple(levels) or (first,))


def move(
    grouping: ValueGrouping, level: int, items: Sequence[int], group: int | None, label: str = ""
) -> ValueGrouping:
    """Move items of a level into a group. If `group` is None, move them into a new group with this label."""
    chosen = grouping.levels[level - 1]
    _check_numbers(items, len(chosen.parents))
    if not items:
        raise Refused("Select the items to move.", "items")
    levels = list(grouping.levels)
    labels = chosen.labels
    if group is None:
        group, labels = len(labels), (*labels, _checked(label))
        if level < len(levels):
            above = levels[level]
            levels[level] = replace(above, parents=(*above.parents, above.parents[chosen.parents[items[0]]]))
    _check_numbers([group], len(labels))
    moved = set(items)
    parents = tuple(group if item in moved else old for item, old in enumerate(chosen.parents))
    levels[level - 1] = ValueLevel(labels, parents)
    return _normalized(replace(grouping, levels=tuple(levels)))


def rename(grouping: ValueGrouping, level: int, group: int, label: str) -> ValueGrouping:
    """Change the label of a group."""
    chosen = grouping.levels[level - 1]
    _check_numbers([group], len(chosen.labels))
    labels = [*chosen.labels]
    labels[group] = _checked(label)
    return _with_level(grouping, level, replace(chosen, labels=tuple(labels)))


def merge(grouping: ValueGrouping, level: int, groups: Sequence[int]) -> ValueGrouping:
    """Merge groups into one group, which has the label of the first group."""
    chosen = grouping.levels[level - 1]
    _check_numbers(groups, len(chosen.labels))
    if len(set(groups)) < 2:
        raise Refused("Select items of at least two groups.", "groups")
    merged = set(groups)
    parents = tuple(groups[0] if group in merged else group for group in chosen.parents)
    return _with_level(grouping, level, replace(chosen, parents=parents))


def split(grouping: ValueGrouping, level: int, group: int) -> ValueGrouping:
    """Split a group: each of its items becomes a separate group with the label of the item."""
    _, members = grouping.groups(level)[group]
    items = grouping.items(level)
    for item in members[1:]:
        grouping = move(grouping, level, [item], None, items[item])
    chosen = grouping.levels[level - 1]
    return rename(grouping, level, chosen.parents[members[0]], items[members[0]])


def add_level(grouping: ValueGrouping) -> ValueGrouping:
    """Add a level on top that has one group for each group of the level below."""
    labels = grouping.levels[-1].labels
    level = ValueLevel(labels, tuple(range(len(labels))))
    return replace(grouping, levels=(*grouping.levels, level))


def remove_level(grouping: ValueGrouping, level: int) -> ValueGrouping:
    """Remove a level. The level above then groups the items of the removed level."""
    if len(grouping.levels) == 1:
        raise Refused("This is the only level. Choose the builder 'flat' to have none.", "level")
    levels = list(grouping.levels)
    removed = levels.pop(level - 1)
    if level <= len(levels):
        above = levels[level - 1]
        parents = tuple(above.parents[group] for group in removed.parents)
        levels[level - 1] = replace(above, parents=parents)
    return _normalized(replace(grouping, levels=tuple(levels)))


def free_label(grouping: ValueGrouping, level: int) -> str:
    """Return a label for a new group that no group of the level has."""
    existing = {*grouping.levels[level - 1].labels, *grouping.values}
    return next(label for n in range(1, len(existing) + 2) if (label := f"group {n}") not in existing)


def _with_level(grouping: ValueGrouping, level: int, changed: ValueLevel) -> ValueGrouping:
    levels = list(grouping.levels)
    levels[level - 1] = changed
    return _normalized(replace(grouping, levels=tuple(levels)))


def _normalized(grouping: ValueGrouping) -> ValueGrouping:
    """Remove empty groups, and reject a label that two groups of a level have."""
    levels: list[ValueLevel] = []
    items = list(range(len(grouping.values)))
    for level in grouping.levels:
        parents = [level.parents[item] for item in items]
        used = sorted(set(parents))
        number = {group: n for n, group in enumerate(used)}
        labels = tuple(level.labels[group] for group in used)
        if len(set(labels)) < len(labels):
            raise Refused("Another group of this level has that label. Choose another one.", "label")
        levels.append(ValueLevel(labels, tuple(number[group] for group in parents)))
        items = used
    return replace(grouping, levels=tuple(levels))


def _checked(label: str) -> str:
    label = label.strip()
    if not label or label == TOP or len(label) > 200:
        raise Refused(f"A group needs a label of at most 200 characters, other than {TOP}.", "label")
    return label


def _check_numbers(numbers: Sequence[int], size: int) -> None:
    if any(not 0 <= number < size for number in numbers):
        raise Refused("There is no such group any more. Reload the page.", "groups")


# Bands of numbers: for each level from 1 upward, its limits in ascending order. Every limit of a level is
# also a limit of the level below.

BandLimits = tuple[tuple[Decimal, ...], ...]


def limits_of(hierarchy: Hierarchy) -> BandLimits:
    """Return where bands begin at each level below the top. Return () if the groups are not bands."""
    bounds = hierarchy.bounds or ()
    levels = [{low for low, _ in level if low is not None} for level in bounds[1:]]
    while levels and not levels[-1]:
        levels.pop()
    for level in range(len(levels) - 2, -1, -1):
        levels[level] |= levels[level + 1]
    return tuple(tuple(sorted(level)) for level in levels)


def move_limit(limits: BandLimits, old: Decimal, new: Decimal) -> BandLimits:
    """Move a limit at all levels that contain it."""
    return tuple(tuple(sorted({new if limit == old else limit for limit in level})) for level in limits)


def add_limit(limits: BandLimits, level: int, new: Decimal) -> BandLimits:
    """Add a limit to a level and to all levels below."""
    return tuple(
        tuple(sorted({*known, new})) if number <= level else known for number, known in enumerate(limits, 1)
    )


def remove_limit(limits: BandLimits, level: int, old: Decimal) -> BandLimits:
    """Remove a limit from a level and from all levels above. A level without limits is removed."""
    changed = (
        tuple(limit for limit in known if limit != old) if number >= level else known
        for number, known in enumerate(limits, 1)
    )
    return tuple(known for known in changed if known)


def add_limit_level(limits: BandLimits, positions: FloatArray) -> BandLimits:
    """Add a level with every second limit of the level below. If there is no level, add three limits."""
    if limits:
        return (*limits, limits[-1][1::2]) if len(limits[-1]) > 1 else limits
    low, high = float(np.nanmin(positions)), float(np.nanmax(positions))
    points = {rounded(low + (high - low) * part / 4, positions) for part in (1, 2, 3)}
    return (tuple(sorted(points)),)


def rounded(number: float, positions: FloatArray) -> Decimal:
    """Round a number to a precision that suits the column's numbers: to an integer if all are integers.

    >>> rounded(17.6, np.array([1.0, 90.0])), rounded(0.123456, np.array([0.5, 1.25]))
    (Decimal('18'), Decimal('0.123'))
    """
    known = positions[~np.isnan(positions)]
    span = float(known.max() - known.min()) if len(known) else 0.0
    if bool((known == np.floor(known)).all()):
        return Decimal(round(number))
    digits = max(0, 3 - ceil(log10(span))) if span > 0 else 3
    return Decimal(f"{number:.{digits}f}")


def cuts_spec(limits: BandLimits, old: Any) -> dict[str, Any]:
    """Return the hierarchy as a policy writes it. Options of the old hierarchy that `cuts` has are kept."""
    shared_options = {name: old[name] for name in _KEPT if isinstance(old, Mapping) and name in old}
    return {"cuts": [[_number(limit) for limit in level] for level in limits], **shared_options}


def _number(limit: Decimal) -> int | float:
    return int(limit) if limit == limit.to_integral_value() else float(limit)


def histogram(positions: FloatArray, counts: IntArray, bins: int = 48) -> tuple[list[int], float, float]:
    """Return the records per bin and the ends of the scale. If there are few integers, each gets a bin."""
    known = ~np.isnan(positions)
    numbers, weights = positions[known], counts[known]
    low, high = floor(float(numbers.min())), float(numbers.max())
    if bool((numbers == np.floor(numbers)).all()):
        high += 1
        bins = min(bins, max(1, int(high - low)))
    if high <= low:
        high = low + 1
    heights, _ = np.histogram(numbers, bins=bins, range=(low, high), weights=weights)
    return heights.astype(int).tolist(), float(low), float(high)
