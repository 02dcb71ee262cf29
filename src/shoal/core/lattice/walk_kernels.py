"""The inner part of the walk, compiled or with NumPy.

The axes have an order. A *prefix* fixes the levels of the first axes, so the nodes form a tree of prefixes.
Each prefix is rolled up once. Its table contains the classes of its *low* node, which has level 0 on all
other axes. Its *top* node has the highest level on them. All nodes of a prefix lie between these two. A node
is a number: its levels in the order of the axes, the first axis most significant. The nodes of a prefix are a
range of numbers.

If the suppressed records are those in small classes, three facts allow the walk to skip a prefix:

1. Generalizing merges classes, so a node has at least as many records in small classes as any node above it.
   `short` of a node is the largest such number that is known for the node or for a node above.
2. The loss without suppression never decreases upwards, and each suppressed record adds at least `penalty`.
   The loss of the low node and `short` of the top node therefore bound the loss of all nodes of the prefix.
   Low levels are visited first, because their losses are smaller.
3. If all losses are known, only *open* nodes matter: those that are not refused, not counted, and not worse
   than the best. The *join* of nodes is the lowest node above all of them. If the join of the open nodes is
   refused, all of them are refused. High levels are visited first, because a refused node refuses all nodes
   below it.
"""

from __future__ import annotations

from functools import partial
from math import log2
from typing import NamedTuple

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled, inlined, inner
from shoal.core.counts.kernels import Output, group, rewrite, spread_classes, table_size
from shoal.core.counts.partitions import RollUpBuffers, roll_up_many, sums_of_many

BY_SIZE, BY_LOSS, EVERY, LIST = range(4)  # facts that skip a prefix: 1 and 2; 1 and 3; none; none
DEPTH, NODES, ACCEPTED, ROWS, COST, BEST, SUPPRESSED, NEEDED, USED = range(9)  # positions in `State.numbers`
LOSS, SCORE = range(2)  # positions in `State.values`
OUTPUT, NODE = -1, -2  # values of NEEDED that are not a size: the output is full, or a node is reached
_EQUAL = 1e-12  # losses with at most this relative difference are a tie


class PrefixTree(NamedTuple):
    """The data that a walk does not change."""

    levels: IntArray  # (axes,): in the order of the walk
    strides: IntArray  # (axes + 1,): the number of nodes below a prefix, by its length
    fields: IntArray  # (fields, 3): axis, shift, mask
    groups: IntArray  # (fields, levels): the number of groups at each level
    starts: IntArray  # (fields, levels, levels): where the map from a level to a higher one begins
    maps: IntArray  # all maps, one after the other
    raises: IntArray  # (axes, 2): by how much a level raises the height, and the lexicographic rank
    digits: IntArray  # (nodes,): the levels packed into a number, with a free bit above each
    free: int  # the mask of these free bits
    other_values: int  # the number of distinct values of the bits of a key that belong to no axis


class Objective(NamedTuple):
    """Which nodes are acceptable, and their loss."""

    least_size: int
    most: int  # the number of records that may be suppressed
    losses: FloatArray  # (nodes,): the known part of the loss of each node, or empty
    terms: FloatArray  # (4,), what the sizes of classes add: see shoal.core.contracts.SizeTerms
    penalty: float  # the minimum that each suppressed record adds to the loss
    skips: int  # BY_SIZE, BY_LOSS, EVERY or LIST


class State(NamedTuple):
    """The state of a walk, and its working space."""

    keys: IntArray  # (room,): the tables of prefixes, one after the other
    counts: IntArray
    slots: IntArray  # the hash table for grouping
    moved: IntArray  # (rows,): keys before they are grouped
    scattered: IntArray  # (2, rows), of large tables: keys and counts by partition
    spare_keys: IntArray  # (2, rows): temporary tables
    spare_counts: IntArray
    begin: IntArray  # (axes, levels + 1): where the table of each level begins; last, the table of the prefix
    length: IntArray  # (axes, levels + 1): 0 if there is no table
    bounds: FloatArray  # (axes, levels + 1): the loss of the low node without suppression
    at: IntArray  # (axes,): the levels of the prefix, then 0
    goal: IntArray  # (2, axes): levels to reach, or to start from
    next: IntArray  # (axes,): one more than the next level; -1 if a depth is not open
    mark: IntArray  # (axes,): the space that was used when a depth was opened
    short: IntArray  # (nodes,): see fact 1
    counted: IntArray  # (nodes,): 1 if a node was counted
    selected: IntArray  # (nodes + 1,): the number of selected nodes before a node; for EVERY and LIST
    numbers: IntArray
    values: FloatArray


@partial(compiled, makes_arrays=False)
def walk(tree: PrefixTree, objective: Objective, state: State, rows: int, steps: int) -> bool:
    """Continue a walk until it is complete, needs space, or reaches `rows` or `steps`.

    Return whether it is complete. With LIST, also stop at each node; `goal[0]` then contains its levels.
    """
    numbers = state.numbers
    row_limit = numbers[ROWS] + rows
    last = tree.levels.shape[0] - 1
    while numbers[DEPTH] >= 0:
        depth = numbers[DEPTH]
        state.at[depth] = 0
        steps -= 1
        if steps < 0 or numbers[ROWS] > row_limit:
            return False
        if state.next[depth] < 0:
            needed = numbers[USED] + state.length[depth, -1] * tree.levels[depth]
            if depth < last and needed > state.keys.shape[0]:
                numbers[NEEDED] = needed
                return False
            state.mark[depth] = numbers[USED]
            state.next[depth] = tree.levels[depth]
            if objective.skips != BY_LOSS:
                _open(tree, objective, state, depth)
        level = state.next[depth] - 1
        state.next[depth] = level
        if level < 0:
            numbers[USED] = state.mark[depth]
            numbers[DEPTH] -= 1
            continue
        if objective.skips == BY_SIZE:
            level = tree.levels[depth] - 1 - level
        if _enter(tree, objective, state, depth, level) and depth < last:
            state.at[depth] = level
            state.begin[depth + 1, -1] = state.begin[depth, level]
            state.length[depth + 1, -1] = state.length[depth, level]
            state.bounds[depth + 1, -1] = state.bounds[depth, level]
            numbers[DEPTH] += 1
        if numbers[NEEDED] == NODE:
            return False
    return True


@compiled
def spread(
    tree: PrefixTree, objective: Objective, state: State, output: Output, rows: int, steps: int
) -> bool:
    """Continue a walk that writes how the records of each node are distributed over its classes."""
    last = tree.levels.shape[0] - 1
    while not walk(tree, objective, state, rows, steps):
        if state.numbers[NEEDED] != NODE:
            return False
        begin, length = state.begin[last, -1], state.length[last, -1]
        keys, counts = state.keys[begin : begin + length], state.counts[begin : begin + length]
        if state.goal[0, last] > 0:
            out_keys, out_counts = state.spare_keys[1], state.spare_counts[1]
            length = _roll(tree, state, keys, counts, state.at, state.goal[0], out_keys, out_counts)
            keys, counts = out_keys[:length], out_counts[:length]
        if not spread_classes(
            keys, counts, state.slots, state.moved, state.spare_keys[0], state.spare_counts[0], output
        ):
            state.numbers[NEEDED] = OUTPUT
            state.next[last] += 1  # this node is visited again
            return False
        state.numbers[NEEDED] = 0
        state.numbers[NODES] += 1
    return True


def _copy_with_numpy(source: IntArray, target: IntArray) -> None:
    target[:] = source


@partial(inner, numpy=_copy_with_numpy)
def _copy(source: IntArray, target: IntArray) -> None:
    for axis in range(source.shape[0]):
        target[axis] = source[axis]


def _clear_with_numpy(keys: IntArray, kept: int, rows: IntArray) -> None:
    np.bitwise_and(keys, kept, out=rows)


@partial(inner, numpy=_clear_with_numpy)
def _clear(keys: IntArray, kept: int, rows: IntArray) -> None:
    """Copy keys without some of their bits."""
    for row in range(keys.shape[0]):
        rows[row] = keys[row] & kept


def _sums_with_numpy(counts: IntArray, least_size: int) -> tuple[int, int, int]:
    short = counts[counts < least_size]
    return int(counts @ counts), int(short.sum()), int(short @ short)


@partial(inner, numpy=_sums_with_numpy, parallel=sums_of_many)
def _sums(counts: IntArray, least_size: int) -> tuple[int, int, int]:
    """Return the sum of squares of all sizes, then the sum and the sum of squares of the small sizes."""
    squares = 0
    short = 0
    short_squares = 0
    for row in range(counts.shape[0]):
        size = counts[row]
        squares += size * size
        if size < least_size:
            short += size
            short_squares += size * size
    return squares, short, short_squares


def _inherit_with_numpy(short: IntArray, begin: int, end: int, stride: int) -> None:
    np.maximum(short[begin:end], short[begin + stride : end + stride], out=short[begin:end])


@partial(inner, numpy=_inherit_with_numpy)
def _inherit(short: IntArray, begin: int, end: int, stride: int) -> None:
    """Raise `short` of nodes to at least that of the nodes one level above."""
    for node in range(begin, end):
        short[node] = max(short[node], short[node + stride])


def _refuse_below_with_numpy(tree: PrefixTree, state: State, begin: int, join: int) -> None:
    above = tree.digits[join] | tree.free
    below = (above - tree.digits[begin:join]) & tree.free == tree.free
    short = state.short[begin:join]
    short[below] = np.maximum(short[below], state.short[join])


@partial(inner, numpy=_refuse_below_with_numpy)
def _refuse_below(tree: PrefixTree, state: State, begin: int, join: int) -> None:
    """Raise `short` of all nodes below a refused node to at least that of this node."""
    above = tree.digits[join] | tree.free
    for node in range(begin, join):
        if (above - tree.digits[node]) & tree.free == tree.free:
            state.short[node] = max(state.short[node], state.short[join])


def _first_with_numpy(strides: IntArray, at: IntArray, depth: int) -> int:
    return int(at[:depth] @ strides[1 : depth + 1])


@partial(inner, numpy=_first_with_numpy)
def _first(strides: IntArray, at: IntArray, depth: int) -> int:
    """Return the lowest node of the current prefix."""
    node = 0
    for axis in range(depth):
        node += at[axis] * strides[axis + 1]
    return node


@inlined
def _open(tree: PrefixTree, objective: Objective, state: State, depth: int) -> None:
    """Count the top node of each level if needed, then build the tables of the remaining levels."""
    first = _first(tree.strides, state.at, depth)
    lowest = 0
    if objective.skips == BY_SIZE:
        lowest = _probe(tree, objective, state, depth, first)
    if depth < tree.levels.shape[0] - 1:
        _build(tree, objective, state, depth, first, lowest)


@inner
def _probe(tree: PrefixTree, objective: Objective, state: State, depth: int, first: int) -> int:
    """Count the top node of each level from the highest; return the lowest level that may have a better node.

    By fact 1, `short` of the top node never decreases downwards. So no level below a skipped one is counted.
    """
    stride = tree.strides[depth + 1]
    high = tree.levels[depth] - 1
    projected = -1  # the number of rows
    for level in range(high, -1, -1):
        top = first + (level + 1) * stride - 1
        if level < high:
            state.short[top] = max(state.short[top], state.short[top + stride])
        if _skips(objective, state, state.short[top], state.bounds[depth, -1]):
            return level + 1
        if state.counted[top] == 0:
            if projected < 0:
                projected = _project(tree, state, depth)
            state.goal[1, depth] = level
            keys, counts = state.spare_keys[0, :projected], state.spare_counts[0, :projected]
            _count(tree, objective, state, keys, counts, state.goal[0], state.goal[1], top)
            if _skips(objective, state, state.short[top], state.bounds[depth, -1]):
                return level + 1
    return 0


@inlined
def _project(tree: PrefixTree, state: State, depth: int) -> int:
    """Move all later axes of the prefix to their top, and return the number of classes."""
    for axis in range(tree.levels.shape[0]):
        level = state.at[axis] if axis <= depth else tree.levels[axis] - 1
        state.goal[0, axis] = level
        state.goal[1, axis] = level
    begin, length = state.begin[depth, -1], state.length[depth, -1]
    keys, counts = state.keys[begin : begin + length], state.counts[begin : begin + length]
    out_keys, out_counts = state.spare_keys[0], state.spare_counts[0]
    return int(_roll(tree, state, keys, counts, state.at, state.goal[0], out_keys, out_counts))


@inner
def _build(tree: PrefixTree, objective: Objective, state: State, depth: int, first: int, lowest: int) -> None:
    """Build the table of each level of a depth from the level below, and evaluate its low node."""
    begin, length = state.begin[depth, -1], state.length[depth, -1]
    for level in range(tree.levels[depth]):
        state.length[depth, level] = 0
    _copy(state.at, state.goal[0])
    _copy(state.at, state.goal[1])
    stride = tree.strides[depth + 1]
    for level in range(lowest, tree.levels[depth]):
        low = first + level * stride
        if objective.skips >= EVERY and state.selected[low] == state.selected[low + stride]:
            continue
        if level > 0:
            state.goal[1, depth] = level
            begin, length = _table(tree, state, begin, length)
            state.goal[0, depth] = level
        state.begin[depth, level] = begin
        state.length[depth, level] = length
        if objective.skips == BY_SIZE:
            bound = state.bounds[depth, -1]
            if level > 0:
                bound = _evaluate(objective, tree, state, state.counts[begin : begin + length], low)
            state.bounds[depth, level] = bound
            if _skips(objective, state, 0, bound):  # by fact 2, every higher level is skipped, too
                state.length[depth, level] = 0
                return


@inlined
def _table(tree: PrefixTree, state: State, begin: int, length: int) -> tuple[int, int]:
    """Append a table that is rolled up from the levels in `goal[0]` to those in `goal[1]`."""
    keys, counts = state.keys[begin : begin + length], state.counts[begin : begin + length]
    used = state.numbers[USED]
    out_keys, out_counts = state.keys[used:], state.counts[used:]
    rows = _roll(tree, state, keys, counts, state.goal[0], state.goal[1], out_keys, out_counts)
    state.numbers[USED] = used + rows
    return used, rows


@inlined
def _enter(tree: PrefixTree, objective: Objective, state: State, depth: int, level: int) -> bool:
    """Return whether a level must be visited; on the last axis, evaluate its node if needed."""
    stride = tree.strides[depth + 1]
    begin = _first(tree.strides, state.at, depth) + level * stride
    end = begin + stride
    if objective.skips >= EVERY:
        if state.selected[begin] == state.selected[end]:
            return False
        if depth == tree.levels.shape[0] - 1:
            _leaf(tree, objective, state, depth, level, begin)
        return True
    if objective.skips == BY_SIZE:
        short, bound = state.short[end - 1], state.bounds[depth, level]
        return state.length[depth, level] > 0 and not _skips(objective, state, short, bound)
    if level < tree.levels[depth] - 1:  # each node is below the node that is one level higher on this axis
        _inherit(state.short, begin, end, stride)
    return bool(_enter_by_loss(tree, objective, state, depth, level, begin, end))


@inlined
def _leaf(tree: PrefixTree, objective: Objective, state: State, depth: int, level: int, node: int) -> None:
    """Evaluate a node of the last axis, or stop so that it can be listed."""
    _copy(state.at, state.goal[0])
    state.goal[0, depth] = level
    if objective.skips == LIST:
        state.numbers[NEEDED] = NODE
        return
    begin, length = state.begin[depth, -1], state.length[depth, -1]
    keys, counts = state.keys[begin : begin + length], state.counts[begin : begin + length]
    _count(tree, objective, state, keys, counts, state.at, state.goal[0], node)


@inner
def _enter_by_loss(
    tree: PrefixTree, objective: Objective, state: State, depth: int, level: int, begin: int, end: int
) -> bool:
    """Count the join of the open nodes repeatedly, until no node is open or the join is accepted."""
    source, rows = state.begin[depth, -1], state.length[depth, -1]
    keys, counts = state.keys[source : source + rows], state.counts[source : source + rows]
    state.numbers[USED] = state.mark[depth]
    while True:
        join = _join(tree, objective, state, begin, end)
        if join < 0:
            return False
        if state.counted[join] == 1:
            break
        _count(tree, objective, state, keys, counts, state.at, state.goal[0], join)
        if state.short[join] > objective.most:  # then all open nodes are refused, because they are below it
            _refuse_below(tree, state, begin, join)
            return False
    state.begin[depth, level], state.length[depth, level] = source, rows
    if level > 0 and end - begin > 1:
        _copy(state.at, state.goal[0])
        _copy(state.at, state.goal[1])
        state.goal[1, depth] = level
        state.begin[depth, level], state.length[depth, level] = _table(tree, state, source, rows)
    return True


def _join_with_numpy(tree: PrefixTree, objective: Objective, state: State, begin: int, end: int) -> int:
    limit = state.values[LOSS] + _EQUAL * abs(state.values[LOSS])
    part = slice(begin, end)
    is_open = (state.counted[part] == 0) & (state.short[part] <= objective.most)
    is_open &= objective.losses[part] <= limit
    nodes = begin + np.flatnonzero(is_open)
    if not len(nodes):
        return -1
    levels = nodes[:, None] // tree.strides[1:] % tree.levels
    state.goal[0] = levels.max(axis=0)
    return int(state.goal[0] @ tree.strides[1:])


@partial(inner, numpy=_join_with_numpy)
def _join(tree: PrefixTree, objective: Objective, state: State, begin: int, end: int) -> int:
    """Return the lowest node above all open nodes of a range, or -1; write its levels to `goal[0]`."""
    most = objective.most
    limit = state.values[LOSS] + _EQUAL * abs(state.values[LOSS])
    above = tree.free
    join = -1
    for node in range(begin, end):
        if state.counted[node] == 0 and state.short[node] <= most and objective.losses[node] <= limit:
            if join < 0:
                for axis in range(tree.levels.shape[0]):
                    state.goal[0, axis] = 0
            elif (above - tree.digits[node]) & tree.free == tree.free:
                continue
            join = 0
            for axis in range(tree.levels.shape[0]):
                level = node // tree.strides[axis + 1] % tree.levels[axis]
                state.goal[0, axis] = max(state.goal[0, axis], level)
                join += state.goal[0, axis] * tree.strides[axis + 1]
            above = tree.digits[join] | tree.free
    return join


@inner
def _skips(objective: Objective, state: State, short: int, bound: float) -> bool:
    """Return whether no node of a prefix is both acceptable and at least as good as the best."""
    best = state.values[LOSS]
    return short > objective.most or bound + objective.penalty * short > best + _EQUAL * abs(best)


@inner
def _count(
    tree: PrefixTree,
    objective: Objective,
    state: State,
    keys: IntArray,
    counts: IntArray,
    source: IntArray,
    goal: IntArray,
    node: int,
) -> None:
    """Count a node from a table, and evaluate it."""
    for axis in range(goal.shape[0]):
        if goal[axis] > source[axis]:
            length = _roll(
                tree, state, keys, counts, source, goal, state.spare_keys[1], state.spare_counts[1]
            )
            counts = state.spare_counts[1, :length]
            break
    _evaluate(objective, tree, state, counts, node)


@inner
def _changes(tree: PrefixTree, source: IntArray, goal: IntArray, rows: int) -> tuple[int, int, int]:
    """Return the mask of the bits to keep, a bound on the number of classes, and how many columns change."""
    kept = -1
    cells = tree.other_values
    moved = 0
    for field in range(tree.fields.shape[0]):
        axis = tree.fields[field, 0]
        groups = tree.groups[field, goal[axis]]
        cells = min(cells * groups, rows)
        if goal[axis] > source[axis]:
            moved += 1
            if groups == 1:
                kept &= ~(tree.fields[field, 2] << tree.fields[field, 1])
    return kept, cells, moved


def _roll_parallel(
    tree: PrefixTree,
    state: State,
    keys: IntArray,
    counts: IntArray,
    source: IntArray,
    goal: IntArray,
    out_keys: IntArray,
    out_counts: IntArray,
) -> int:
    kept, cells, moved = _changes.large(tree, source, goal, len(keys))
    axes = tree.fields[:, 0]
    changed = np.flatnonzero(
        (goal[axes] > source[axes]) & (tree.groups[np.arange(len(axes)), goal[axes]] > 1)
    )
    starts = tree.starts[changed, source[axes[changed]], goal[axes[changed]]]
    fields = np.column_stack((tree.fields[changed, 1:], starts))
    state.numbers[ROWS] += len(keys)
    state.numbers[COST] += moved * len(keys)
    space = RollUpBuffers(state.moved, state.scattered, state.slots)
    return roll_up_many(keys, counts, int(kept), fields, tree.maps, int(cells), out_keys, out_counts, space)


@partial(inner, parallel=_roll_parallel)
def _roll(
    tree: PrefixTree,
    state: State,
    keys: IntArray,
    counts: IntArray,
    source: IntArray,  # (axes,): the levels of the keys
    goal: IntArray,  # (axes,): the levels to reach
    out_keys: IntArray,
    out_counts: IntArray,
) -> int:
    """Roll a table up, and return its number of classes."""
    kept, cells, moved = _changes(tree, source, goal, keys.shape[0])
    rows = state.moved[: keys.shape[0]]
    _clear(keys, kept, rows)
    for field in range(tree.fields.shape[0]):
        axis = tree.fields[field, 0]
        if goal[axis] > source[axis] and tree.groups[field, goal[axis]] > 1:
            maps = tree.maps[tree.starts[field, source[axis], goal[axis]] :]
            rewrite(rows, tree.fields[field, 1], tree.fields[field, 2], maps)
    state.numbers[ROWS] += keys.shape[0]
    state.numbers[COST] += moved * keys.shape[0]
    slots = state.slots[: table_size(cells)]
    return int(group(rows, counts, slots, out_keys, out_counts, state.selected[:0]))


@inner
def _evaluate(objective: Objective, tree: PrefixTree, state: State, counts: IntArray, node: int) -> float:
    """Evaluate a node from the sizes of its classes; return its loss without suppression."""
    squares, short, short_squares = _sums(counts, objective.least_size)
    terms = objective.terms
    bound = float(terms[0] * squares + terms[3] / counts.shape[0])
    if objective.losses.shape[0] > 0:
        bound += objective.losses[node]
    if state.counted[node] == 1:
        return bound
    state.counted[node] = 1
    state.short[node] = short
    state.numbers[NODES] += 1
    state.values[SCORE] += counts.shape[0] * log2(counts.shape[0])
    if short <= objective.most:
        state.numbers[ACCEPTED] += 1
        loss = bound + terms[1] * short_squares + terms[2] * short
        if _better(tree, state, node, loss, short):
            state.numbers[BEST], state.numbers[SUPPRESSED], state.values[LOSS] = node, short, loss
    return bound


@inlined
def _better(tree: PrefixTree, state: State, node: int, loss: float, short: int) -> bool:
    """Compare a node with the best: by loss, suppressed records, height and lexicographic order."""
    best, least = state.numbers[BEST], state.values[LOSS]
    if best < 0:
        return True
    if abs(loss - least) > _EQUAL * max(abs(loss), abs(least)):
        return bool(loss < least)
    if short != state.numbers[SUPPRESSED]:
        return bool(short < state.numbers[SUPPRESSED])
    higher = 0
    later = 0
    for axis in range(tree.levels.shape[0]):
        difference = node // tree.strides[axis + 1] % tree.levels[axis]
        difference -= best // tree.strides[axis + 1] % tree.levels[axis]
        higher += difference * tree.raises[axis, 0]
        later += difference * tree.raises[axis, 1]
    return higher < 0 or (higher == 0 and later < 0)
