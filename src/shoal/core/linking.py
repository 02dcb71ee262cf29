"""Linking: which released records could be of a person of whom something is known.

A released combination is compatible with a known one when the label of every column covers the value. Both
sides are distinct combinations; values that are compatible with the same labels are one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts import numbered, packed

if TYPE_CHECKING:
    from shoal.core.linking_kernels import Lists, Tree

_WORDS = 4_000_000  # bits of a column that are held, 32 to a word


@dataclass(frozen=True)
class Compatible:
    """Which labels of a column cover which values."""

    wild: BoolArray  # (labels,): covers everything
    free: BoolArray  # (values,): may be anything
    starts: IntArray  # (values + 1,): where the labels of a value begin; without those that cover everything
    labels: IntArray  # ascending within a value

    def alike(self) -> tuple[IntArray, Compatible]:
        """Return a number for each value, one for those with the same labels, and the same by number."""
        known: dict[object, int] = {}
        first: list[int] = []
        codes = np.empty(len(self.free), np.int64)
        starts, free = self.starts.tolist(), self.free.tolist()
        for value in range(len(codes)):
            look = None if free[value] else self.labels[starts[value] : starts[value + 1]].tobytes()
            codes[value] = number = known.setdefault(look, len(known))
            if number == len(first):
                first.append(value)
        pieces = [self.labels[starts[value] : starts[value + 1]] for value in first]
        lengths = np.cumsum([0, *map(len, pieces)])
        labels = np.concatenate(pieces) if pieces else self.labels
        return codes, Compatible(self.wild, self.free[first], lengths, labels)

    def share(self, labels: IntArray, sizes: IntArray, values: IntArray) -> float:
        """Estimate which share of the records is compatible with a known combination."""
        weights = np.bincount(labels, sizes, len(self.wild)) / max(1, sizes.sum())
        inside = np.append(0, np.cumsum(weights[self.labels]))
        each = inside[self.starts[1:]] - inside[self.starts[:-1]] + weights[self.wild].sum()
        return float(np.where(self.free, 1.0, each)[values].mean())


def link(
    released: IntArray,  # (columns, combinations): the label of each column
    sizes: IntArray,  # (combinations,)
    only: IntArray,  # (sensitive, combinations): the one code of a combination, or SEVERAL
    known: IntArray,  # (columns, persons): the value of each column
    columns: Sequence[Compatible],
) -> tuple[IntArray, IntArray]:
    """Return how many records each known combination matches, and of each sensitive column their one code."""
    from shoal.core.linking_kernels import walk

    pairs = [column.alike() for column in columns]
    values = [codes[own] for (codes, _), own in zip(pairs, known, strict=True)]
    of = numbered(packed(values))
    rows = np.unique(of, return_index=True)[1]
    values = [own[rows] for own in values]
    joined = _joined(released, values, [column for _, column in pairs], sizes)
    found, learnt = np.empty(len(rows), np.int64), np.empty((len(only), len(rows)), np.int64)
    walk(
        joined.known,
        joined.fresh,
        joined.tree,
        joined.lists,
        sizes[joined.released],
        only[:, joined.released],
        found,
        learnt,
    )
    place = np.empty(len(rows), np.int64)
    place[joined.rows] = np.arange(len(rows))
    return found[place][of], learnt[:, place][:, of]


@dataclass(frozen=True)
class Joined:
    """Both sides, sorted by the same order of columns."""

    tree: Tree
    lists: Lists
    released: IntArray  # (combinations,): the order of what is released
    known: IntArray  # (columns, rows): sorted
    fresh: IntArray  # (rows,): the first column in which a row differs from the one before
    rows: IntArray  # (rows,): the order of what is known


def _joined(
    released: Sequence[IntArray] | IntArray,
    known: Sequence[IntArray],
    columns: Sequence[Compatible],
    sizes: IntArray,
) -> Joined:
    """Sort both sides by columns, first those after which least is to be looked at."""
    shares = [
        column.share(own, sizes, values) for column, own, values in zip(columns, released, known, strict=True)
    ]
    # A column multiplies what is known by its values, and what is left of the release by its share.
    growth = [share * len(column.free) for share, column in zip(shares, columns, strict=True)]
    order = np.lexsort((shares, growth)).tolist()
    columns = [columns[place] for place in order]
    ranks = [_wild_first(column.wild) for column in columns]
    labels = np.stack([rank[released[place]] for rank, place in zip(ranks, order, strict=True)])
    own = np.lexsort(labels[::-1])
    values = np.stack([known[place] for place in order])
    rows = np.lexsort(values[::-1])
    values = np.ascontiguousarray(values[:, rows])
    return Joined(_tree(labels[:, own]), _lists(columns, ranks), own, values, _first_difference(values), rows)


def joined(released: IntArray, known: IntArray, columns: Sequence[Compatible], sizes: IntArray) -> Joined:
    """Sort classes of two releases so that pairs of them can be walked."""
    return _joined(released, list(known), columns, sizes)


def _wild_first(wild: BoolArray) -> IntArray:
    """Return new numbers of labels: those that cover everything come first."""
    found = np.empty(len(wild), np.int64)
    found[np.argsort(~wild, kind="stable")] = np.arange(len(wild))
    return found


def _first_difference(rows: IntArray) -> IntArray:
    """Return the first column in which each row differs from the one before; the last where it does not."""
    differs = np.ones(rows.shape, np.bool_)
    differs[:, 1:] = rows[:, 1:] != rows[:, :-1]
    differs[-1] = True
    found: IntArray = differs.argmax(axis=0)
    return found


def _tree(labels: IntArray) -> Tree:
    """Build the tree of sorted combinations (columns, rows)."""
    from shoal.core.linking_kernels import Tree

    depth = len(labels)
    fresh = _first_difference(labels)
    begins = [np.flatnonzero(fresh <= column) for column in range(depth)]  # a node's first row
    base = np.cumsum([0, *map(len, begins)])
    first = np.full(base[-1] + 1, base[-1], np.int64)
    for column in range(depth - 1):
        first[base[column] : base[column + 1]] = base[column + 1] + np.searchsorted(
            begins[column + 1], begins[column]
        )
    first[base[depth - 1] : base[depth]] = base[depth]  # the end of the last children of the depth above
    own = np.concatenate([labels[column][begin] for column, begin in enumerate(begins)])
    return Tree(base, own, first)


def _lists(columns: Sequence[Compatible], ranks: Sequence[IntArray]) -> Lists:
    """Lay the columns' lists end to end, by the new numbers of labels."""
    from shoal.core.linking_kernels import Lists

    offset, starts, labels, free = [], [], [], []
    values = before = 0
    for column, rank in zip(columns, ranks, strict=True):
        offset.append(values)
        starts.append(column.starts + before)
        of = np.repeat(np.arange(len(column.free)), np.diff(column.starts))
        new = rank[column.labels]
        labels.append(new[np.lexsort((new, of))])
        free.append(np.append(column.free, False))
        values += len(column.starts)
        before += len(new)
    wild = np.array([int(column.wild.sum()) for column in columns])
    bits, width = zip(*map(_bits, columns, labels), strict=True)
    begin = np.cumsum([0, *map(len, bits[:-1])])
    return Lists(
        wild,
        np.array(offset),
        np.concatenate(starts),
        np.concatenate(labels),
        np.concatenate(free),
        np.concatenate(bits),
        np.array(width),
        begin,
    )


def _bits(column: Compatible, labels: IntArray) -> tuple[IntArray, int]:
    """Return a column's lists as bits, and the words of a value; none where they would be too many."""
    width = -(-len(column.wild) // 32)
    if width * len(column.free) > _WORDS:
        return np.empty(0, np.int64), 0
    words = np.zeros(width * len(column.free), np.int64)
    of = np.repeat(np.arange(len(column.free)), np.diff(column.starts))
    np.bitwise_or.at(words, of * width + (labels >> 5), np.int64(1) << (labels & 31))
    return words, width
