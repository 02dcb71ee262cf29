"""The compiled loops of linking: known combinations walk a tree of released ones.

Both sides are sorted, so that what is known alike in the first columns is looked up once. Loaded only when
tables are linked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled

NONE, SEVERAL = -1, -2  # of sensitive codes: not met yet; more than one, or none that is told


class Tree(NamedTuple):
    """Released combinations by their columns; the nodes of a depth stand together, depth after depth."""

    base: IntArray  # (columns + 1,): where the nodes of each depth begin
    labels: IntArray  # (nodes,): of a node's column; those that cover everything come first
    first: IntArray  # (nodes + 1,): a node's first child


class Lists(NamedTuple):
    """Which labels each value is compatible with; of all columns, end to end."""

    wild: IntArray  # (columns,): labels below cover everything
    offset: IntArray  # (columns,): where the values of a column begin
    starts: IntArray  # (values + columns,): where a value's labels begin
    labels: IntArray  # ascending within a value
    free: BoolArray  # (values + columns,): may be anything
    bits: IntArray  # the same as bits, 32 labels to a word: much faster where lists are long
    width: IntArray  # (columns,): words of a value; 0 where the bits would be too many
    begin: IntArray  # (columns,): where the words of a column begin


@compiled
def _lower(numbers: IntArray, low: int, high: int, wanted: int) -> int:
    """Find the first place from low up to high whose number is not below what is wanted."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _children(
    begin: int, end: int, depth: int, value: int, tree: Tree, lists: Lists, active: IntArray, at: int
) -> int:
    """Append the compatible nodes from begin up to end; return where the next is appended."""
    place = lists.offset[depth] + value
    if lists.free[place]:
        for node in range(begin, end):
            active[at] = node
            at += 1
        return at
    wild = lists.wild[depth]
    while begin < end and tree.labels[begin] < wild:
        active[at] = begin
        at += 1
        begin += 1
    low, high = lists.starts[place], lists.starts[place + 1]
    if high - low < end - begin:
        for one in range(low, high):
            begin = _lower(tree.labels, begin, end, lists.labels[one])
            if begin == end:
                break
            if tree.labels[begin] == lists.labels[one]:
                active[at] = begin
                at += 1
    elif lists.width[depth]:
        word = lists.begin[depth] + value * lists.width[depth]
        for node in range(begin, end):
            label = tree.labels[node]
            if (lists.bits[word + (label >> 5)] >> (label & 31)) & 1:
                active[at] = node
                at += 1
    else:
        for node in range(begin, end):
            low = _lower(lists.labels, low, high, tree.labels[node])
            if low == high:
                break
            if lists.labels[low] == tree.labels[node]:
                active[at] = node
                at += 1
    return at


@compiled
def _descend(
    known: IntArray, row: int, from_depth: int, tree: Tree, lists: Lists, active: IntArray, ends: IntArray
) -> None:
    """Find the nodes that are compatible with a row, depth by depth; the first depths hold from before."""
    for depth in range(from_depth, len(known)):
        at = tree.base[depth]
        value = known[depth, row]
        if depth == 0:
            at = _children(tree.base[0], tree.base[1], 0, value, tree, lists, active, at)
        else:
            for above in range(tree.base[depth - 1], ends[depth - 1]):
                node = active[above]
                at = _children(tree.first[node], tree.first[node + 1], depth, value, tree, lists, active, at)
        ends[depth] = at


@compiled
def walk(
    known: IntArray,  # (columns, rows), sorted
    fresh: IntArray,  # (rows,): the first column in which a row differs from the one before
    tree: Tree,
    lists: Lists,
    sizes: IntArray,  # (combinations,)
    only: IntArray,  # (sensitive, combinations): the one code, or SEVERAL
    found: IntArray,  # (rows,), written: the records that are compatible
    learnt: IntArray,  # (sensitive, rows), written: the one code of all these, NONE or SEVERAL
) -> None:
    """Add up the records that are compatible with each row."""
    last = len(known) - 1
    active = np.empty(len(tree.labels), np.int64)
    ends = tree.base[:-1].copy()
    for row in range(known.shape[1]):
        _descend(known, row, fresh[row], tree, lists, active, ends)
        total = 0
        for place in range(tree.base[last], ends[last]):
            total += sizes[active[place] - tree.base[last]]
        found[row] = total
        for column in range(len(only)):
            code = NONE
            for place in range(tree.base[last], ends[last]):
                other = only[column, active[place] - tree.base[last]]
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
    tree: Tree,  # of the classes of the other
    lists: Lists,
    starts: IntArray,  # (rows + 1,): where a class's linking values begin
    codes: IntArray,  # ascending within a class
    counts: IntArray,
    other_starts: IntArray,  # (combinations + 1,): likewise of the other release
    other_codes: IntArray,
    other_counts: IntArray,
    k: int,
    seen: IntArray,  # zeros, written: the records of the other release that each linking value meets
    other_seen: IntArray,  # likewise
) -> tuple[int, int, int]:
    """Return the least records of a pair of classes, how many pairs have some, and the records below k."""
    last = len(known) - 1
    active = np.empty(len(tree.labels), np.int64)
    ends = tree.base[:-1].copy()
    least, pairs, records = 0, 0, 0
    for row in range(known.shape[1]):
        _descend(known, row, fresh[row], tree, lists, active, ends)
        for place in range(tree.base[last], ends[last]):
            other = active[place] - tree.base[last]
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
