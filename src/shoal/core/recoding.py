"""Recoding: what each combination becomes in the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.groups import Groups, Labels, Shown, level_labels
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node
from shoal.core.regions import Regions


@dataclass(frozen=True)
class Recoding:
    """A group for every value of every column, or for every column of every class; and what is suppressed."""

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]  # per column: the group of each value's code; none where there are regions
    labels: tuple[Labels | None, ...]  # per column: what is released for each group; None: as is
    node: Node | None = None
    suppressed: IntArray | None = None  # (words, classes): the packed groups of what is suppressed
    about: tuple[Groups, ...] = ()  # per column, where the recoding is no node
    regions: Regions | None = None
    uniform: bool = False  # the regions' groups are the same in every class: cuts

    @classmethod
    def from_node(
        cls, hierarchies: Sequence[Hierarchy], node: Node, as_bounds: Collection[str] = ()
    ) -> Recoding:
        """Recode every column to one level of its hierarchy; some as the ends of their bands."""
        pairs = list(zip(hierarchies, node, strict=True))
        return cls(
            columns=tuple(h.name for h in hierarchies),
            groups=tuple(h.groups(level) for h, level in pairs),
            labels=tuple(level_labels(h, level, bounds=h.name in as_bounds) for h, level in pairs),
            node=node,
        )

    @classmethod
    def from_regions(cls, columns: Sequence[str], about: Sequence[Groups], regions: Regions) -> Recoding:
        """Recode every class by labels of its own."""
        labels = tuple(groups.labels for groups in about)
        return cls(tuple(columns), (), labels, about=tuple(about), regions=regions)

    def suppressing(self, keys: IntArray) -> Recoding:
        """Return the same recoding with some classes suppressed, in a canonical order."""
        return replace(self, suppressed=keys[:, np.lexsort(keys)] if keys.size else None)

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column, where the recoding is a node."""
        return None if self.node is None else dict(zip(self.columns, self.node, strict=True))

    @property
    def apart(self) -> str | None:
        """The sensitive column that is released in a table of its own, if one is; it is the last."""
        return next(iter(self.regions.sensitive)) if self.regions and self.regions.sensitive else None

    @property
    def cells(self) -> int:
        """How many cells of kept records are blanked."""
        if self.regions is None:
            return 0
        sizes = np.bincount(self.regions.classes, self.regions.sizes, len(self.regions.suppressed))
        kept = np.where(self.regions.suppressed, 0, sizes).astype(np.int64)
        pairs = zip(self.about, self.regions.groups, strict=True)
        return sum(int(kept[codes == about.blank].sum()) for about, codes in pairs if about.blank is not None)

    def look_of_blanks(self, name: str) -> Shown:
        """Return what a blanked cell of a column looks like."""
        place = self.columns.index(name)
        labels = self.labels[place]
        blank = self.about[place].blank if self.about else None
        return None if labels is None or blank is None else labels[name][blank]

    def as_is(self) -> tuple[str, ...]:
        """Name the columns whose values stay as they are."""
        return tuple(n for n, labels in zip(self.columns, self.labels, strict=True) if labels is None)
