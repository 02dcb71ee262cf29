"""Hierarchy: the group of each value of a column, level by level.

Level 0 is the value itself. Every level is a function of the level below (nested), which is checked when a
rule is bound to the values of a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.errors import HierarchyError

Bounds = tuple[Decimal | None, Decimal | None]  # the least and the greatest number of a group

TOP = "*"
MAX_LEVELS = 100  # maximum for one hierarchy, because a search combines levels
MISSING = "missing"


@dataclass(frozen=True)
class Hierarchy:
    """The groups of a column at every level, as arrays."""

    name: str
    # The repr leaves out fields that contain values of the data.
    steps: tuple[IntArray, ...] = field(repr=False)  # steps[l-1]: the group at l of each group at l-1
    labels: tuple[tuple[str, ...], ...] = field(repr=False)  # label of each group, per level
    leaves: tuple[IntArray, ...] = field(repr=False)  # number of values that each group covers, per level
    size: int  # number of values of the column: of those that the rule lists, or else of those in the table
    bounds: tuple[tuple[Bounds, ...], ...] | None = field(default=None, repr=False)  # of groups of numbers
    null: int | None = None  # the code of missing values
    # (values,): the position of each value on the scale, nan if it has none; None if the column has no scale
    positions: FloatArray | None = field(default=None, repr=False)
    measures: bool = (
        True  # whether values at one position are equal, such as 5 and 5.0, but not the codes 0 and -0
    )

    @property
    def height(self) -> int:
        return len(self.steps)

    def groups(self, level: int) -> IntArray:
        """Return the group of each value at a level."""
        return self.between(0, level)

    @cached_property
    def _between(self) -> dict[tuple[int, int], IntArray]:
        return {}

    def between(self, low: int, high: int) -> IntArray:
        """Return the group at the high level of each group at the low level."""
        groups = self._between.get((low, high))
        if groups is None:
            groups = np.arange(len(self.labels[low]))
            for step in self.steps[low:high]:
                groups = step[groups]
            self._between[low, high] = groups
        return groups

    def ordered(self, level: int, groups: IntArray) -> list[int]:
        """Sort groups of a level from low to high, if the column has a scale."""
        if self.positions is not None:
            least = np.full(len(self.labels[level]), np.inf)
            np.fmin.at(least, self.groups(level), self.positions)
            groups = groups[np.argsort(least[groups], kind="stable")]
        return [int(group) for group in groups]

    def plot(self) -> Any:
        """Draw the groups as a tree, each with its number of values; returns a matplotlib figure."""
        from shoal.core.hierarchy.outline import tree

        return tree(self)

    def _repr_html_(self) -> str:
        from shoal.core.hierarchy.outline import outline

        return outline(self)


def nest(
    name: str,
    rows: Sequence[Sequence[str]],  # per value of the data, its label at each level from 0
    absent_rows: Sequence[Sequence[str]] = (),  # listed values that do not occur in the data
    counted: Sequence[bool] | None = None,  # per value, whether it counts in the sizes of groups
) -> Hierarchy:
    """Build a hierarchy from the labels of each value; a level must not split a group of the level below.

    >>> nest("sex", [("f", "*"), ("m", "*")]).labels
    (('f', 'm'), ('*',))
    """
    levels = len(rows[0])
    steps: list[IntArray] = []
    labels: list[tuple[str, ...]] = [tuple(row[0] for row in rows)]
    sizes = np.ones(len(rows), np.int64) if counted is None else np.array(counted, np.int64)
    leaves: list[IntArray] = [sizes]
    groups_below = list(range(len(rows)))
    for level in range(1, levels):
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(row[level], len(numbers)) for row in rows]
        step = np.full(len(labels[-1]), -1, np.int64)
        for child, group, row in zip(groups_below, groups, rows, strict=True):
            if step[child] >= 0 and step[child] != group:
                raise _split(name, level, row[level - 1])
            step[child] = group
        leaf_counts = np.bincount(groups, sizes, len(numbers)).astype(np.int64)
        for row in absent_rows:
            if row[level] in numbers:
                leaf_counts[numbers[row[level]]] += 1
        steps.append(step)
        labels.append(tuple(numbers))
        leaves.append(leaf_counts)
        groups_below = groups
    _check_unused(name, rows, absent_rows)
    return Hierarchy(name, tuple(steps), tuple(labels), tuple(leaves), int(sizes.sum()) + len(absent_rows))


def _check_unused(name: str, rows: Sequence[Sequence[str]], absent_rows: Sequence[Sequence[str]]) -> None:
    """Check that a listed hierarchy is nested, including values that do not occur in the data."""
    if not absent_rows:
        return
    for level in range(2, len(rows[0])):
        parents: dict[str, str] = {}
        for row in (*rows, *absent_rows):
            if parents.setdefault(row[level - 1], row[level]) != row[level]:
                raise _split(name, level, row[level - 1])


def _split(name: str, level: int, group: str) -> HierarchyError:
    message = (
        f"Hierarchy of {name!r}: level {level} splits a group of level {level - 1}. "
        "Each level must merge whole groups of the one below."
    )
    return HierarchyError(message, [group])
