"""Recoding: the released value of each combination."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts.counts import Counts, SensitiveCounts, layout
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Node
from shoal.core.recoding.groups import CellValue, Groups, ReleasedLabels, level_labels


@dataclass(frozen=True)
class Regions:
    """Parts of combinations, and their classes; a class has a group in every column.

    A combination is one part, unless a search divides equal records. Then the records of each part are chosen
    at random. If a sensitive column is released separately, its values are the last field of `keys`, its
    groups are the last row of `groups`, and `sensitive` contains the values of each class.
    """

    keys: IntArray  # (words, combinations): the keys of the counts
    rows: IntArray  # (parts,): the combination that each part belongs to
    sizes: IntArray  # (parts,): the number of its records
    classes: IntArray  # (parts,): the class of each part
    groups: IntArray  # (columns, classes)
    suppressed: BoolArray  # (classes,)
    sensitive: Mapping[str, SensitiveCounts] | None = None  # of a column that is released separately

    @cached_property
    def split(self) -> bool:
        """Whether some combination has several parts."""
        return bool(len(self.rows) > self.keys.shape[1])

    @cached_property
    def before(self) -> IntArray:
        """The number of records of the same combination in earlier parts, (parts,)."""
        order = np.argsort(self.rows, kind="stable")
        rows, sizes = self.rows[order], self.sizes[order]
        preceding = np.cumsum(sizes) - sizes
        is_first = np.diff(rows, prepend=-1) > 0
        result = np.empty(len(order), np.int64)
        result[order] = preceding - preceding[is_first][np.cumsum(is_first) - 1]
        return result

    def counts(self, base: Counts) -> InMemoryCounts:
        """Return the classes as counts, with the group of each column as its code."""
        fields = layout([max(1, int(codes.max()).bit_length()) for codes in self.groups])
        keys = np.zeros((fields[-1].word + 1, self.groups.shape[1]), np.int64)
        for field, codes in zip(fields, self.groups, strict=True):
            keys[field.word] |= codes << field.shift
        sizes = np.bincount(self.classes, self.sizes, self.groups.shape[1]).astype(np.int64)
        if self.sensitive is not None:
            return InMemoryCounts(fields, keys, sizes, self.sensitive)
        moved = {} if self.split else {name: e.moved(self.classes) for name, e in base.sensitive.items()}
        return InMemoryCounts(fields, keys, sizes, moved)


def regions_of(
    counts: Counts,
    groups: Sequence[IntArray],  # per column: (parts,)
    suppressed: BoolArray,  # (parts,)
    rows: IntArray | None = None,  # (parts,): given if combinations are split
    sizes: IntArray | None = None,
) -> Regions:
    """Merge parts with the same groups into classes; suppressed parts form separate classes."""
    words = [suppressed.astype(np.int64)]
    bits_used = 1
    for codes in reversed(groups):  # the first column is the most significant
        bits = max(1, int(codes.max()).bit_length())
        if bits_used + bits > 63:
            words.append(np.zeros(len(codes), np.int64))
            bits_used = 0
        words[-1] |= codes << bits_used
        bits_used += bits
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words)
    is_first = np.zeros(len(order), np.bool_)
    is_first[:1] = True
    for word in words:
        sorted_word = word[order]
        is_first[1:] |= sorted_word[1:] != sorted_word[:-1]
    classes = np.empty(len(order), np.int64)
    classes[order] = np.cumsum(is_first) - 1
    first = order[is_first]
    return Regions(
        keys=counts.keys,
        rows=np.arange(len(counts)) if rows is None else rows,
        sizes=counts.sizes if sizes is None else sizes,
        classes=classes,
        groups=np.stack([codes[first] for codes in groups]),
        suppressed=suppressed[first],
    )


@dataclass(frozen=True)
class Recoding:
    """The released group of every value, or of every class, and the suppressed classes."""

    columns: tuple[str, ...]
    groups: tuple[IntArray, ...]  # per column: the group of each value's code; empty if there are regions
    labels: tuple[ReleasedLabels | None, ...]  # per column: the released label of each group; None: unchanged
    node: Node | None = None
    suppressed: IntArray | None = None  # (words, classes): the packed groups of suppressed classes
    column_groups: tuple[Groups, ...] = ()  # per column, if the recoding is not a node
    regions: Regions | None = None
    uniform: bool = False  # whether a value has the same group in every class
    wildcards: bool = False  # whether a blanked cell matches every value

    @classmethod
    def from_node(
        cls, hierarchies: Sequence[Hierarchy], node: Node, as_bounds: Collection[str] = ()
    ) -> Recoding:
        """Generalize every column to one level; columns in `as_bounds` show the two ends of each band."""
        pairs = list(zip(hierarchies, node, strict=True))
        return cls(
            columns=tuple(h.name for h in hierarchies),
            groups=tuple(h.groups(level) for h, level in pairs),
            labels=tuple(level_labels(h, level, bounds=h.name in as_bounds) for h, level in pairs),
            node=node,
        )

    @classmethod
    def from_regions(
        cls, columns: Sequence[str], column_groups: Sequence[Groups], regions: Regions
    ) -> Recoding:
        """Build a recoding in which labels are given per class."""
        labels = tuple(groups.labels for groups in column_groups)
        return cls(tuple(columns), (), labels, column_groups=tuple(column_groups), regions=regions)

    def suppressing(self, keys: IntArray) -> Recoding:
        """Return this recoding with the classes of these keys suppressed; the keys are sorted first."""
        return replace(self, suppressed=keys[:, np.lexsort(keys)] if keys.size else None)

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The level of each column, if the recoding is a node."""
        return None if self.node is None else dict(zip(self.columns, self.node, strict=True))

    @property
    def separate_column(self) -> str | None:
        """The sensitive column that is released in a separate table, or None; it is the last column."""
        return next(iter(self.regions.sensitive)) if self.regions and self.regions.sensitive else None

    @property
    def cells(self) -> int:
        """The number of blanked cells of kept records."""
        if self.regions is None:
            return 0
        sizes = np.bincount(self.regions.classes, self.regions.sizes, len(self.regions.suppressed))
        kept = np.where(self.regions.suppressed, 0, sizes).astype(np.int64)
        pairs = zip(self.column_groups, self.regions.groups, strict=True)
        return sum(
            int(kept[codes == column_groups.blank].sum())
            for column_groups, codes in pairs
            if column_groups.blank is not None
        )

    def matches(self) -> IntArray:
        """Return how many records match each class, with blanks as wildcards; 0 for suppressed classes."""
        from shoal.core.recoding.wildcards import match_sizes

        if self.regions is None:
            raise TypeError
        regions, kept = self.regions, np.flatnonzero(~self.regions.suppressed)
        blanks = np.stack(
            [codes == groups.blank for groups, codes in zip(self.column_groups, regions.groups, strict=True)]
        )
        sizes = np.bincount(regions.classes, regions.sizes, len(regions.suppressed)).astype(np.int64)
        result = np.zeros(len(sizes), np.int64)
        result[kept] = match_sizes(list(regions.groups[:, kept]), blanks[:, kept], sizes[kept])
        return result

    def blank_label(self, name: str) -> CellValue:
        """Return the content of a blanked cell of a column."""
        column = self.columns.index(name)
        labels = self.labels[column]
        blank = self.column_groups[column].blank if self.column_groups else None
        return None if labels is None or blank is None else labels[name][blank]

    def as_is(self) -> tuple[str, ...]:
        """Return the columns whose values are unchanged."""
        return tuple(n for n, labels in zip(self.columns, self.labels, strict=True) if labels is None)
