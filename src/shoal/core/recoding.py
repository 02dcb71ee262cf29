"""Recoding: what each combination becomes in the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node
from shoal.errors import PolicyError

Labels = Mapping[
    str, Sequence[str] | Sequence[float | None]
]  # released column -> what it holds for each group


@dataclass(frozen=True)
class Recoding:
    """A group for every value of every column, and the classes that are suppressed."""

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]  # per column: the group of each value's code
    labels: tuple[Labels | None, ...]  # per column: what is released for each group; None: as is
    node: Node | None = None
    suppressed: IntArray | None = None  # (words, classes): the packed groups of what is suppressed

    @classmethod
    def from_node(
        cls, hierarchies: Sequence[Hierarchy], node: Node, as_bounds: Collection[str] = ()
    ) -> Recoding:
        """Recode every column to one level of its hierarchy; some as the ends of their bands."""
        pairs = list(zip(hierarchies, node, strict=True))
        return cls(
            columns=tuple(h.name for h in hierarchies),
            groups=tuple(h.groups(level) for h, level in pairs),
            labels=tuple(_labels(h, level, bounds=h.name in as_bounds) for h, level in pairs),
            node=node,
        )

    def suppressing(self, keys: IntArray) -> Recoding:
        """Return the same recoding with some classes suppressed, in a canonical order."""
        return replace(self, suppressed=keys[:, np.lexsort(keys)] if keys.size else None)

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column, where the recoding is a node."""
        return None if self.node is None else dict(zip(self.columns, self.node, strict=True))


def released_columns(name: str, *, bounds: bool) -> tuple[str, ...]:
    """Name the columns that stand for a column in a release."""
    return (f"{name}_lower", f"{name}_upper") if bounds else (name,)


def _labels(hierarchy: Hierarchy, level: int, *, bounds: bool) -> Labels | None:
    names = released_columns(hierarchy.name, bounds=bounds)
    if not bounds:
        return {names[0]: hierarchy.labels[level]} if level else None
    if hierarchy.bounds is None:
        message = f"Column {hierarchy.name!r}: only intervals and cuts have bounds to release."
        raise PolicyError(message)
    ends = hierarchy.bounds[level]
    return {name: [_plain(end[side]) for end in ends] for side, name in enumerate(names)}


def _plain(number: Decimal | None) -> float | None:
    if number is None:
        return None
    return int(number) if number == number.to_integral_value() else float(number)
