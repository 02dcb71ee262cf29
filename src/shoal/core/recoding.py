"""Recoding: what each combination becomes in the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node


@dataclass(frozen=True)
class Recoding:
    """A group for every value of every column, and the classes that are suppressed."""

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]  # per column: the group of each value's code
    labels: tuple[tuple[str, ...] | None, ...]  # per column: the label of each group; None: as is
    node: Node | None = None
    suppressed: IntArray | None = None  # (words, classes): the packed groups of what is suppressed

    @classmethod
    def from_node(cls, hierarchies: Sequence[Hierarchy], node: Node) -> Recoding:
        """Recode every column to one level of its hierarchy."""
        pairs = list(zip(hierarchies, node, strict=True))
        return cls(
            columns=tuple(h.name for h in hierarchies),
            groups=tuple(h.groups(level) for h, level in pairs),
            labels=tuple(h.labels[level] if level else None for h, level in pairs),
            node=node,
        )

    def suppressing(self, keys: IntArray) -> Recoding:
        """Return the same recoding with some classes suppressed, in a canonical order."""
        return replace(self, suppressed=keys[:, np.lexsort(keys)] if keys.size else None)

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column, where the recoding is a node."""
        return None if self.node is None else dict(zip(self.columns, self.node, strict=True))
