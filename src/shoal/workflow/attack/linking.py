"""Linking: find the released records that match what is known about a person.

A released combination is compatible with a known one if, in every column, its label covers the known value.
Equal combinations are joined once. Values that are compatible with the same labels are merged before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.counts.counts import numbered, packed

NONE, SEVERAL = -1, -2  # sensitive codes: no code yet; several codes or an unknown one


class CombinationTree(NamedTuple):
    """The released combinations as a prefix tree over columns; nodes are stored by depth."""

    base: IntArray  # (columns + 1,): where the nodes of each depth begin
    labels: IntArray  # (nodes,): the label of each node; labels that cover everything come first
    first: IntArray  # (nodes + 1,): a node's first child


class Lists(NamedTuple):
    """The labels that each value is compatible with, concatenated over columns."""

    wild: IntArray  # (columns,): labels with a lower number cover everything
    offset: IntArray  # (columns,): where the values of a column begin
    starts: IntArray  # (values + columns,): where a value's labels begin
    labels: IntArray  # ascending within a value
    free: BoolArray  # (values + columns,): the value matches every label
    bits: IntArray  # the labels as bits, 32 in a word, which is much faster for long lists
    width: IntArray  # (columns,): number of words per value; 0 if bits would take too much memory
    begin: IntArray  # (columns,): where the words of a column begin


@compiled
def _lower(numbers: IntArray, low: int, high: int, target: int) -> int:
    """Return the first index in [low, high) whose number is at least `target`, or `high`."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _children(
    begin: int,
    end: int,
    depth: int,
    value: int,
    tree: CombinationTree,
    lists: Lists,
    active: IntArray,
    size: int,
) -> int:
    """Append the compatible nodes in [begin, end) to `active`, and return the new size of `active`."""
    value_index = lists.offset[depth] + value
    if lists.free[value_index]:
        for node in range(begin, end):
            active[size] = node
            size += 1
        return size
    wild = lists.wild[depth]
    while begin < end and tree.labels[begin] < wild:
        active[size] = begin
        size += 1
        begin += 1
    low, high = lists.starts[value_index], lists.starts[value_index + 1]
    if high - low < end - begin:
        for child in range(low, high):
            begin = _lower(tree.labels, begin, end, lists.labels[child])
            if begin == end:
                break
            if tree.labels[begin] == lists.labels[child]:
                active[size] = begin
                size += 1
    elif lists.width[depth]:
        word = lists.begin[depth] + value * lists.width[depth]
        for node in range(begin, end):
            label = tree.labels[node]
            if (lists.bits[word + (label >> 5)] >> (label & 31)) & 1:
                active[size] = node
                size += 1
    else:
        for node in range(begin, end):
            low = _lower(lists.labels, low, high, tree.labels[node])
            if low == high:
                break
            if lists.labels[low] == tree.labels[node]:
                active[size] = node
                size += 1
    return size


@compiled
def _descend(
    known: IntArray,
    row: int,
    from_depth: int,
    tree: CombinationTree,
    lists: Lists,
    active: IntArray,
    ends: IntArray,
) -> None:
    """Find the nodes that are compatible with a row; keep those of the row before up to `from_depth`."""
    for depth in range(from_depth, len(known)):
        size = tree.base[depth]
        value = known[depth, row]
        if depth == 0:
            size = _children(tree.base[0], tree.base[1], 0, value, tree, lists, active, size)
        else:
            for above in range(tree.base[depth - 1], ends[depth - 1]):
                node = active[above]
                size = _children(
                    tree.first[node], tree.first[node + 1], depth, value, tree, lists, active, size
                )
        ends[depth] = size


@compiled
def walk(
    known: IntArray,  # (columns, rows), sorted
    fresh: IntArray,  # (rows,): the first column in which a row differs from the one before
    tree: CombinationTree,
    lists: Lists,
    sizes: IntArray,  # (combinations,)
    only: IntArray,  # (sensitive, combinations): the only code, or SEVERAL
    matches: IntArray,  # (rows,), output: the number of compatible records
    learnt: IntArray,  # (sensitive, rows), output: the only code of these records, or NONE, or SEVERAL
) -> None:
    """Count the records that are compatible with each row."""
    last = len(known) - 1
    active = np.empty(len(tree.labels), np.int64)
    ends = tree.base[:-1].copy()
    for row in range(known.shape[1]):
        _descend(known, row, fresh[row], tree, lists, active, ends)
        total = 0
        for position in range(tree.base[last], ends[last]):
            total += sizes[active[position] - tree.base[last]]
        matches[row] = total
        for column in range(len(only)):
            code = NONE
            for position in range(tree.base[last], ends[last]):
                other = only[column, active[position] - tree.base[last]]
                if code == NONE:
                    code = other
                elif code != other:
                    code = SEVERAL
                if code == SEVERAL:
                    break
            learnt[column, row] = code


@compiled
def overlap(
    known: IntArray,  # (columns, rows), sorted: the classes of one release
    fresh: IntArray,  # (rows,)
    tree: CombinationTree,  # of the classes of the other release
    lists: Lists,
    starts: IntArray,  # (rows + 1,): where a class's codes of unchanged values begin
    codes: IntArray,  # ascending within a class
    counts: IntArray,
    other_starts: IntArray,  # (combinations + 1,): the same for the other release
    other_codes: IntArray,
    other_counts: IntArray,
    k: int,
    seen: IntArray,  # output, zeros on entry: for each code, the matching records of the other release
    other_seen: IntArray,  # output, zeros on entry: the same for the other release
) -> tuple[int, int, int]:
    """Return the fewest records that two classes share, the number of pairs, and their records below k."""
    last = len(known) - 1
    active = np.empty(len(tree.labels), np.int64)
    ends = tree.base[:-1].copy()
    least, pairs, records = 0, 0, 0
    for row in range(known.shape[1]):
        _descend(known, row, fresh[row], tree, lists, active, ends)
        for position in range(tree.base[last], ends[last]):
            other = active[position] - tree.base[last]
            a, b = starts[row], other_starts[other]
            both = 0
            while a < starts[row + 1] and b < other_starts[other + 1]:
                if codes[a] < other_codes[b]:
                    a += 1
                elif codes[a] > other_codes[b]:
                    b += 1
                else:
                    both += min(counts[a], other_counts[b])
                    seen[a] += other_counts[b]
                    other_seen[b] += counts[a]
                    a += 1
                    b += 1
            if both:
                pairs += 1
                least = both if least == 0 else min(least, both)
                if both < k:
                    records += both
    return least, pairs, records


_WORDS = 4_000_000  # maximum number of 32-bit words of a column


@dataclass(frozen=True)
class Compatible:
    """Which labels of a column cover which values."""

    wild: BoolArray  # (labels,): covers everything
    free: BoolArray  # (values,): matches every label
    starts: IntArray  # (values + 1,): where a value's labels begin, without those that cover everything
    labels: IntArray  # ascending within a value

    def with_equal_values_merged(self) -> tuple[IntArray, Compatible]:
        """Merge values that have the same labels; return the new code of each value, and the result."""
        known: dict[object, int] = {}
        first: list[int] = []
        codes = np.empty(len(self.free), np.int64)
        starts, free = self.starts.tolist(), self.free.tolist()
        for value in range(len(codes)):
            key = None if free[value] else self.labels[starts[value] : starts[value + 1]].tobytes()
            codes[value] = number = known.setdefault(key, len(known))
            if number == len(first):
                first.append(value)
        pieces = [self.labels[starts[value] : starts[value + 1]] for value in first]
        lengths = np.cumsum([0, *map(len, pieces)])
        labels = np.concatenate(pieces) if pieces else self.labels
        return codes, Compatible(self.wild, self.free[first], lengths, labels)

    def share(self, labels: IntArray, sizes: IntArray, values: IntArray) -> float:
        """Return the mean share of released records that are compatible with a known value."""
        weights = np.bincount(labels, sizes, len(self.wild)) / max(1, sizes.sum())
        inside = np.append(0, np.cumsum(weights[self.labels]))
        each = inside[self.starts[1:]] - inside[self.starts[:-1]] + weights[self.wild].sum()
        return float(np.where(self.free, 1.0, each)[values].mean())


def link(
    released: IntArray,  # (columns, combinations): the label of each column
    sizes: IntArray,  # (combinations,)
    only: IntArray,  # (sensitive, combinations): the only code of a combination, or SEVERAL
    known: IntArray,  # (columns, persons): the value of each column
    columns: Sequence[Compatible],
) -> tuple[IntArray, IntArray]:
    """Return how many records each known combination matches, and their only code per sensitive column.

    The code is NONE if no record matches, and SEVERAL if the records have several or unknown values.
    """
    pairs = [column.with_equal_values_merged() for column in columns]
    values = [codes[column_values] for (codes, _), column_values in zip(pairs, known, strict=True)]
    class_of = numbered(packed(values))
    rows = np.unique(class_of, return_index=True)[1]
    values = [column_values[rows] for column_values in values]
    both = joined(released, values, [column for _, column in pairs], sizes)
    matches, learnt = np.empty(len(rows), np.int64), np.empty((len(only), len(rows)), np.int64)
    walk(
        both.known,
        both.fresh,
        both.tree,
        both.lists,
        sizes[both.released],
        only[:, both.released],
        matches,
        learnt,
    )
    inverse = np.empty(len(rows), np.int64)
    inverse[both.rows] = np.arange(len(rows))
    return matches[inverse][class_of], learnt[:, inverse][:, class_of]


@dataclass(frozen=True)
class Joined:
    """Both sides, sorted by the same order of columns."""

    tree: CombinationTree
    lists: Lists
    released: IntArray  # (combinations,): the order of the released combinations
    known: IntArray  # (columns, rows): sorted
    fresh: IntArray  # (rows,): the first column in which a row differs from the one before
    rows: IntArray  # (rows,): the order of the known rows


def joined(
    released: Sequence[IntArray] | IntArray,
    known: Sequence[IntArray] | IntArray,
    columns: Sequence[Compatible],
    sizes: IntArray,
) -> Joined:
    """Sort both sides by columns; columns that leave few rows to compare come first."""
    shares = [
        column.share(column_labels, sizes, values)
        for column, column_labels, values in zip(columns, released, known, strict=True)
    ]
    # Each column multiplies the known rows by its number of values, and the released rows by its share.
    growth = [share * len(column.free) for share, column in zip(shares, columns, strict=True)]
    order = np.lexsort((shares, growth)).tolist()
    columns = [columns[index] for index in order]
    ranks = [_wild_first(column.wild) for column in columns]
    labels = np.stack([rank[released[index]] for rank, index in zip(ranks, order, strict=True)])
    released_order = np.lexsort(labels[::-1])
    values = np.stack([known[index] for index in order])
    rows = np.lexsort(values[::-1])
    values = np.ascontiguousarray(values[:, rows])
    return Joined(
        _tree(labels[:, released_order]),
        _lists(columns, ranks),
        released_order,
        values,
        _first_difference(values),
        rows,
    )


def _wild_first(wild: BoolArray) -> IntArray:
    """Return new numbers for the labels; labels that cover everything come first."""
    ranks = np.empty(len(wild), np.int64)
    ranks[np.argsort(~wild, kind="stable")] = np.arange(len(wild))
    return ranks


def _first_difference(rows: IntArray) -> IntArray:
    """Return the first column in which each row differs from the one before; the last if it does not."""
    differs = np.ones(rows.shape, np.bool_)
    differs[:, 1:] = rows[:, 1:] != rows[:, :-1]
    differs[-1] = True
    first_columns: IntArray = differs.argmax(axis=0)
    return first_columns


def _tree(labels: IntArray) -> CombinationTree:
    depth = len(labels)
    fresh = _first_difference(labels)
    begins = [np.flatnonzero(fresh <= column) for column in range(depth)]  # the first row of each node
    base = np.cumsum([0, *map(len, begins)])
    first = np.full(base[-1] + 1, base[-1], np.int64)
    for column in range(depth - 1):
        first[base[column] : base[column + 1]] = base[column + 1] + np.searchsorted(
            begins[column + 1], begins[column]
        )
    first[base[depth - 1] : base[depth]] = base[depth]  # where the last children of the previous depth end
    node_labels = np.concatenate([labels[column][begin] for column, begin in enumerate(begins)])
    return CombinationTree(base, node_labels, first)


def _lists(columns: Sequence[Compatible], ranks: Sequence[IntArray]) -> Lists:
    """Concatenate the lists of all columns; `ranks` are the new numbers of the labels."""
    offset, starts, labels, free = [], [], [], []
    values = before = 0
    for column, rank in zip(columns, ranks, strict=True):
        offset.append(values)
        starts.append(column.starts + before)
        value_of = np.repeat(np.arange(len(column.free)), np.diff(column.starts))
        new = rank[column.labels]
        labels.append(new[np.lexsort((new, value_of))])
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
    """Return a column's lists as bits, and the words per value; 0 and no bits if there are too many."""
    width = -(-len(column.wild) // 32)
    if width * len(column.free) > _WORDS:
        return np.empty(0, np.int64), 0
    words = np.zeros(width * len(column.free), np.int64)
    value_of = np.repeat(np.arange(len(column.free)), np.diff(column.starts))
    np.bitwise_or.at(words, value_of * width + (labels >> 5), np.int64(1) << (labels & 31))
    return words, width
