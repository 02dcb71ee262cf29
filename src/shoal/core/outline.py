"""Outline: what a notebook shows of a hierarchy; its levels, and how a few values climb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.block import block, cut, first, quiet
from shoal.core.markup import joined, own, table, tag
from shoal.errors import so_many

if TYPE_CHECKING:
    from shoal.core.hierarchy import Hierarchy

_CLIMBING = 5  # values
_LEVELS = 8  # levels that they are shown at
_EXAMPLES = 3  # labels of a level
_LONGEST = 32  # characters of a label


def outline(hierarchy: Hierarchy) -> str:
    """Return the levels with their groups, and a few values from level 0 to the top, as HTML."""
    levels, values = hierarchy.height + 1, len(hierarchy.labels[0])
    told = f": {so_many(values, 'value')}, {so_many(levels, 'level')}"
    parts: list[object] = [
        table(
            "Level 0 is the value as it is; each level merges whole groups of the one below",
            ("Level", "Groups", "Values in the largest", "For example"),
            first([_level(hierarchy, level) for level in range(levels)]),
            numbers=(1, 2),
        )
    ]
    if hierarchy.height and values:
        parts.append(_climbing(hierarchy))
    parts.append(quiet("The groups as a tree: ", tag("code", "plot()"), "."))
    return block(joined(("Hierarchy of ", own(hierarchy.name), told)), *parts)


def _level(hierarchy: Hierarchy, level: int) -> tuple[object, ...]:
    labels, covered = hierarchy.labels[level], hierarchy.leaves[level]
    groups = hierarchy.ordered(level, np.arange(len(labels)))
    some = [cut(labels[group], _LONGEST) for group in _spread(groups, _EXAMPLES)]
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(labels) > len(some) else ""
    largest = f"{int(covered.max()):,}" if len(covered) else ""
    return str(level), f"{len(labels):,}", largest, own(", ".join(some) + more)


def _spread(found: Sequence[int], few: int) -> Sequence[int]:
    """Return at most a few, from the first to the last."""
    if len(found) <= few:
        return found
    return [found[place * (len(found) - 1) // (few - 1)] for place in range(few)]


def _climbing(hierarchy: Hierarchy) -> object:
    codes = _spread(hierarchy.ordered(0, np.arange(len(hierarchy.labels[0]))), _CLIMBING)
    levels = list(range(hierarchy.height + 1))
    if len(levels) > _LEVELS:
        levels = [*levels[: _LEVELS - 1], levels[-1]]
    rows = [
        [own(cut(hierarchy.labels[level][hierarchy.groups(level)[code]], _LONGEST)) for level in levels]
        for code in codes
    ]
    return table("How a few values climb", [f"Level {level}" for level in levels], rows)
