"""Regions: which class each combination goes to, where columns need not be uniform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts import Counts, Entries, layout
from shoal.core.held import HeldCounts


@dataclass(frozen=True)
class Regions:
    """Parts of combinations, each with the class it goes to; a class has a group in every column.

    A combination is one part, unless a search tells equal records apart: then which of its records go
    to which part is left to chance. Where a sensitive column is released apart, its value is the last
    field of the keys, its group the last of the columns, and `sensitive` tells the values of each class.
    """

    keys: IntArray  # (words, combinations): as they were counted
    rows: IntArray  # (parts,): the combination that each is of
    sizes: IntArray  # (parts,): its records
    classes: IntArray  # (parts,): the class it goes to
    groups: IntArray  # (columns, classes)
    suppressed: BoolArray  # (classes,)
    sensitive: Mapping[str, Entries] | None = None  # of a column that is released apart

    @cached_property
    def split(self) -> bool:
        """Whether some combination has several parts."""
        return bool(len(self.rows) > self.keys.shape[1])

    @cached_property
    def before(self) -> IntArray:
        """How many records of its combination are in parts before each part, (parts,)."""
        order = np.argsort(self.rows, kind="stable")
        rows, sizes = self.rows[order], self.sizes[order]
        ahead = np.cumsum(sizes) - sizes
        fresh = np.diff(rows, prepend=-1) > 0
        found = np.empty(len(order), np.int64)
        found[order] = ahead - ahead[fresh][np.cumsum(fresh) - 1]
        return found

    def counts(self, base: Counts) -> HeldCounts:
        """Return the classes as counts: of each column the code of its group."""
        fields = layout([max(1, int(codes.max()).bit_length()) for codes in self.groups])
        keys = np.zeros((fields[-1].word + 1, self.groups.shape[1]), np.int64)
        for field, codes in zip(fields, self.groups, strict=True):
            keys[field.word] |= codes << field.shift
        sizes = np.bincount(self.classes, self.sizes, self.groups.shape[1]).astype(np.int64)
        if self.sensitive is not None:
            return HeldCounts(fields, keys, sizes, self.sensitive)
        moved = {} if self.split else {name: e.moved(self.classes) for name, e in base.sensitive.items()}
        return HeldCounts(fields, keys, sizes, moved)


def regions_of(
    counts: Counts,
    groups: Sequence[IntArray],  # per column: (parts,)
    suppressed: BoolArray,  # (parts,)
    rows: IntArray | None = None,  # (parts,): where combinations are split
    sizes: IntArray | None = None,
) -> Regions:
    """Put parts that look alike in every column into one class; the suppressed are classes apart."""
    words = [suppressed.astype(np.int64)]
    used = 1
    for codes in reversed(groups):  # the first column weighs most
        bits = max(1, int(codes.max()).bit_length())
        if used + bits > 63:
            words.append(np.zeros(len(codes), np.int64))
            used = 0
        words[-1] |= codes << used
        used += bits
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words)
    fresh = np.zeros(len(order), np.bool_)
    fresh[:1] = True
    for word in words:
        inside = word[order]
        fresh[1:] |= inside[1:] != inside[:-1]
    classes = np.empty(len(order), np.int64)
    classes[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    return Regions(
        keys=counts.keys,
        rows=np.arange(len(counts)) if rows is None else rows,
        sizes=counts.sizes if sizes is None else sizes,
        classes=classes,
        groups=np.stack([codes[first] for codes in groups]),
        suppressed=suppressed[first],
    )
