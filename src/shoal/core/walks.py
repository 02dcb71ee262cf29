"""Compiled walks over many nodes: what begins alike is rolled up once, as a prefix tree of levels.

Nodes come in lexicographic order of the axes as they are walked; each differs from the one before at some
depth, and only what lies deeper is rolled up again.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled
from shoal.core.kernels import group, rewrite, table_size


@compiled
def count_nodes(
    keys: IntArray,  # (rows,): one-word keys, every axis at its lowest level
    counts: IntArray,  # (rows,)
    nodes: IntArray,  # (nodes, axes): levels above the lowest, in lexicographic order
    fields: IntArray,  # (fields, 3): axis, shift, mask of each field that an axis moves, by axis
    starts: IntArray,  # (fields, levels, levels): where the map from a level to a higher one begins
    maps: IntArray,  # all maps, one after the other
    least_size: int,
    held_keys: IntArray,  # (2 * axes + 2, rows): working space
    held_counts: IntArray,  # (2 * axes + 1, rows)
    slots: IntArray,  # the table that groups
) -> tuple[IntArray, IntArray, int, int]:
    """Count nodes as a prefix tree: records in small classes and classes of each; rows read; its cost."""
    where, length, at = _begin(keys, counts, nodes.shape[1], held_keys, held_counts)
    short = np.empty(nodes.shape[0], np.int64)
    classes = np.empty(nodes.shape[0], np.int64)
    scanned = 0
    cost = 0
    for node in range(nodes.shape[0]):
        read, moved = _advance(
            nodes[node], at, where, length, fields, starts, maps, held_keys, held_counts, slots
        )
        scanned += read
        cost += moved
        total = 0
        leaf = held_counts[where[-1]]
        for row in range(length[-1]):
            if leaf[row] < least_size:
                total += leaf[row]
        short[node] = total
        classes[node] = length[-1]
    return short, classes, scanned, cost


@compiled
def spread_nodes(
    keys: IntArray,  # (rows,): one-word keys, every axis at its lowest level
    counts: IntArray,  # (rows,)
    nodes: IntArray,  # (nodes, axes): levels above the lowest, in lexicographic order
    fields: IntArray,  # these three as count_nodes takes them
    starts: IntArray,
    maps: IntArray,
    kept: int,  # mask of a key's bits that tell classes apart; what it drops is a sensitive code
    held_keys: IntArray,  # (2 * axes + 2, rows): working space
    held_counts: IntArray,  # (2 * axes + 1, rows)
    slots: IntArray,  # the table that groups
    tally: IntArray,  # zeros, one for each value that is counted without being sorted
    values: IntArray,  # (room,): the values of a node's classes, ascending, node after node
    records: IntArray,  # (room,): the records in classes of that value
) -> tuple[IntArray, IntArray, int]:
    """Tell how records spread over classes of each size, or of each number of distinct sensitive codes.

    Return where each node's values begin, and end; its classes; and the combinations read. Stops where
    the room is used up: nodes not reached have no end.
    """
    where, length, at = _begin(keys, counts, nodes.shape[1], held_keys, held_counts)
    rows = keys.shape[0]
    begins = np.zeros(nodes.shape[0] + 1, np.int64)
    classes = np.zeros(nodes.shape[0], np.int64)
    sizes, distinct, inverse = np.empty((3, rows if kept != -1 else 0), np.int64)
    scanned = 0
    for node in range(nodes.shape[0]):
        read, _ = _advance(
            nodes[node], at, where, length, fields, starts, maps, held_keys, held_counts, slots
        )
        scanned += read
        found = length[-1]
        leaf = held_counts[where[-1]][:found]
        if kept == -1:
            used = _spread(leaf, leaf, tally, values[begins[node] :], records[begins[node] :])
        else:
            joint = held_keys[-1][:found]
            for row in range(found):
                joint[row] = held_keys[where[-1], row] & kept
            whole = group(joint, leaf, slots[: table_size(found)], held_keys[-1], sizes, inverse)
            distinct[:whole] = 0
            for row in range(found):
                distinct[inverse[row]] += 1
            found = whole
            used = _spread(
                distinct[:found], sizes[:found], tally, values[begins[node] :], records[begins[node] :]
            )
        if used < 0:
            return begins[: node + 1], classes[:node], scanned
        classes[node] = found
        begins[node + 1] = begins[node] + used
    return begins, classes, scanned


@compiled
def _begin(
    keys: IntArray, counts: IntArray, axes: int, held_keys: IntArray, held_counts: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Start a walk at the lowest node.

    Depth d of the walk holds the counts with the first d axes at their present levels; each depth has two
    buffers, so that one level rolls up from a lower one. At level 0 a depth is the one before it.
    """
    held_keys[0] = keys
    held_counts[0] = counts
    return np.zeros(axes + 1, np.int64), np.full(axes + 1, keys.shape[0], np.int64), np.zeros(axes, np.int64)


@compiled
def _advance(
    node: IntArray,  # (axes,)
    at: IntArray,  # (axes,): present levels
    where: IntArray,  # (axes + 1,): the buffer of each depth
    length: IntArray,  # (axes + 1,): its rows
    fields: IntArray,
    starts: IntArray,
    maps: IntArray,
    held_keys: IntArray,
    held_counts: IntArray,
    slots: IntArray,
) -> tuple[int, int]:
    """Walk on to a node, from the depth at which it differs; return the rows read and their cost."""
    axes = node.shape[0]
    nobody = np.empty(0, np.int64)
    scanned = 0
    cost = 0
    first = 0
    while first < axes and at[first] == node[first]:
        first += 1
    for axis in range(first, axes):
        if axis > first:
            at[axis] = 0
            where[axis + 1] = where[axis]
            length[axis + 1] = length[axis]
        level = node[axis]
        if level > at[axis]:
            read = length[axis + 1]
            source = where[axis + 1]
            target = 2 * axis + 1 if source != 2 * axis + 1 else 2 * axis + 2
            rewritten = held_keys[2 * axes + 1, :read]
            rewritten[:] = held_keys[source, :read]
            for field in range(fields.shape[0]):
                if fields[field, 0] == axis:
                    groups = maps[starts[field, at[axis], level] :]
                    rewrite(rewritten, fields[field, 1], fields[field, 2], groups)
                    cost += read
            length[axis + 1] = group(
                rewritten,
                held_counts[source],
                slots[: table_size(read)],
                held_keys[target],
                held_counts[target],
                nobody,
            )
            scanned += read
            where[axis + 1] = target
            at[axis] = level
    return scanned, cost


@compiled
def _spread(
    values: IntArray, weights: IntArray, tally: IntArray, out_values: IntArray, out_weights: IntArray
) -> int:
    """Add up weights by value, ascending; return how many values differ, or -1 where there is no room."""
    found = 0
    greatest = 0
    for row in range(values.shape[0]):
        value = values[row]
        if value < tally.shape[0]:
            found += tally[value] == 0
            tally[value] += weights[row]
            greatest = max(greatest, value)
    fits = found <= out_values.shape[0]
    place = 0
    for value in range(greatest + 1):
        if tally[value] > 0:
            if fits:
                out_values[place] = value
                out_weights[place] = tally[value]
                place += 1
            tally[value] = 0
    if not fits:
        return -1
    for row in range(values.shape[0]):
        if values[row] >= tally.shape[0]:
            found = _insert(values[row], weights[row], found, out_values, out_weights)
            if found < 0:
                return -1
    return found


@compiled
def _insert(value: int, weight: int, found: int, out_values: IntArray, out_weights: IntArray) -> int:
    """Add a weight at its place among ascending values; return how many there are, or -1 without room."""
    place = found
    while place > 0 and out_values[place - 1] > value:
        place -= 1
    if place > 0 and out_values[place - 1] == value:
        out_weights[place - 1] += weight
        return found
    if found == out_values.shape[0]:
        return -1
    for later in range(found, place, -1):
        out_values[later] = out_values[later - 1]
        out_weights[later] = out_weights[later - 1]
    out_values[place] = value
    out_weights[place] = weight
    return found + 1
