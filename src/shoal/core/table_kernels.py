"""The compiled loops over tables of a lattice: what a strength suppresses, and which nodes are chosen."""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled


@compiled
def first_at_least(begins: IntArray, values: IntArray, least: int) -> IntArray:
    """Find, in each stretch of values that grow from 0 or more, the first not below the least, or its end."""
    found = np.empty(begins.shape[0] - 1, np.int64)
    for stretch in range(found.shape[0]):
        low = begins[stretch]
        high = min(begins[stretch + 1], low + least)  # the value at a place is no less than the place
        while low < high:
            middle = (low + high) // 2
            if values[middle] < least:
                low = middle + 1
            else:
                high = middle
        found[stretch] = low
    return found


@compiled
def choose(
    levels: IntArray,  # (nodes, axes)
    rank: IntArray,  # (nodes,): what is least in the node that is chosen; then these three
    suppressed: IntArray,  # (nodes,)
    merged: IntArray,  # (nodes,): the fewer, the more classes
    numbers: IntArray,  # (nodes,): places in the lattice
    low: IntArray,  # (axes,): least levels
    high: IntArray,  # (axes,): greatest levels
    limit: int,  # what an acceptable node suppresses at most
) -> IntArray:
    """Choose nodes: acceptable within the levels; suppressing least there; acceptable anywhere.

    Then, for each axis, the one that is acceptable where this axis alone goes higher, as little as will do.
    """
    axes = levels.shape[1]
    chosen = np.full(3 + axes, -1, np.int64)  # none
    for node in range(levels.shape[0]):
        good = suppressed[node] <= limit
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
                if not good:
                    break
        if above > axes or (above > 0 and not good):
            continue
        if above == 0:
            if good and _precedes(rank, suppressed, merged, numbers, node, chosen[0]):
                chosen[0] = node
            known = chosen[1]
            if (
                known < 0
                or suppressed[node] < suppressed[known]
                or (
                    suppressed[node] == suppressed[known]
                    and _precedes(rank, suppressed, merged, numbers, node, known)
                )
            ):
                chosen[1] = node
        if good and _precedes(rank, suppressed, merged, numbers, node, chosen[2]):
            chosen[2] = node
        if above == 1:
            known = chosen[3 + last]
            if (
                known < 0
                or levels[node, last] < levels[known, last]
                or (
                    levels[node, last] == levels[known, last]
                    and _precedes(rank, suppressed, merged, numbers, node, known)
                )
            ):
                chosen[3 + last] = node
    return chosen


@compiled
def _precedes(
    rank: IntArray, suppressed: IntArray, merged: IntArray, numbers: IntArray, node: int, other: int
) -> bool:
    """Tell whether a node is chosen over another, or over none."""
    if other < 0:
        return True
    if rank[node] != rank[other]:
        return bool(rank[node] < rank[other])
    if suppressed[node] != suppressed[other]:
        return bool(suppressed[node] < suppressed[other])
    if merged[node] != merged[other]:
        return bool(merged[node] < merged[other])
    return bool(numbers[node] < numbers[other])
