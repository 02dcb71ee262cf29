"""Choose the best nodes of a profile for a request, in one pass over the nodes."""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled


@compiled
def choose(
    levels: IntArray,  # (nodes, axes)
    rank: IntArray,  # (nodes,): the lowest rank is best; the next three arrays break ties
    suppressed: IntArray,  # (nodes,)
    merged: IntArray,  # (nodes,): a smaller number means more classes
    numbers: IntArray,  # (nodes,): positions in the lattice
    low: IntArray,  # (axes,): least levels
    high: IntArray,  # (axes,): greatest levels
    limit: int,  # most records that an acceptable node suppresses
) -> IntArray:
    """Return 3 + axes nodes; -1 if there is no such node.

    0: the best acceptable node within the levels. 1: the node within the levels that suppresses least. 2: the
    best acceptable node at any levels. 3 + axis: of the acceptable nodes at which only this axis is above its
    greatest level, the one with the lowest level of this axis.
    """
    axes = levels.shape[1]
    chosen = np.full(3 + axes, -1, np.int64)  # none
    for node in range(levels.shape[0]):
        acceptable = suppressed[node] <= limit
        above = 0
        last = 0
        for axis in range(axes):
            level = levels[node, axis]
            if level < low[axis]:
                above = axes + 1
                break
            if level > high[axis]:
                above += 1
                last = axis
                if not acceptable:
                    break
        if above > axes or (above > 0 and not acceptable):
            continue
        last_level, best = np.int64(levels[node, last]), chosen[3 + last]
        order = (rank, suppressed, merged, numbers, node)
        if above == 0:
            if acceptable and _precedes(rank[node], rank[chosen[0]], *order, chosen[0]):
                chosen[0] = node
            if _precedes(suppressed[node], suppressed[chosen[1]], *order, chosen[1]):
                chosen[1] = node
        if acceptable and _precedes(rank[node], rank[chosen[2]], *order, chosen[2]):
            chosen[2] = node
        if above == 1 and _precedes(last_level, np.int64(levels[best, last]), *order, best):
            chosen[3 + last] = node
    return chosen


@compiled
def _precedes(
    value: int,  # of `node`; lower is better; rank, suppressed, merged and numbers break ties
    other_value: int,
    rank: IntArray,
    suppressed: IntArray,
    merged: IntArray,
    numbers: IntArray,
    node: int,
    other: int,
) -> bool:
    """Return whether `node` is better than `other`; any node is better than none (-1)."""
    if other < 0:
        return True
    if value != other_value:
        return bool(value < other_value)
    if rank[node] != rank[other]:
        return bool(rank[node] < rank[other])
    if suppressed[node] != suppressed[other]:
        return bool(suppressed[node] < suppressed[other])
    if merged[node] != merged[other]:
        return bool(merged[node] < merged[other])
    return bool(numbers[node] < numbers[other])


@compiled
def choose_dropped(
    levels: IntArray,  # (nodes, axes)
    rank: IntArray,
    suppressed: IntArray,
    merged: IntArray,
    numbers: IntArray,
    low: IntArray,  # (axes,)
    high: IntArray,  # (axes,)
    top: IntArray,  # (axes,)
    sets: IntArray,  # (sets, 2): the axes at their top; a set of one axis contains it twice
    limit: int,
) -> IntArray:
    """For each set, return the best acceptable node and the node that suppresses least, (sets, 2).

    The axes of the set are at their top, and all other axes within their levels; -1: there is no such node.
    """
    chosen = np.full((sets.shape[0], 2), -1, np.int64)
    for node in range(levels.shape[0]):
        outside = 0
        first = -1
        second = -1
        for axis in range(levels.shape[1]):
            if levels[node, axis] < low[axis]:
                outside = 3
            elif levels[node, axis] > high[axis]:
                outside += 1
                first = second
                second = axis
            if outside > 2:
                break
        if outside > 2:
            continue
        for number in range(sets.shape[0]):
            first_axis = sets[number, 0]
            other = sets[number, 1]
            if levels[node, first_axis] != top[first_axis] or levels[node, other] != top[other]:
                continue
            if second >= 0 and second != first_axis and second != other:
                continue
            if first >= 0 and first != first_axis and first != other:
                continue
            order = (rank, suppressed, merged, numbers, node)
            best = chosen[number, 0]
            if suppressed[node] <= limit and _precedes(rank[node], rank[best], *order, best):
                chosen[number, 0] = node
            best = chosen[number, 1]
            if _precedes(suppressed[node], suppressed[best], *order, best):
                chosen[number, 1] = node
    return chosen
