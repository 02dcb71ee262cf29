"""The columns of a problem as arrays, for the kernels of local recoding.

Columns that always have the same level form one *axis*. The values of an axis are the combinations of its
columns' values that occur. A *label* is the number of a group of an axis at one level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.classes import is_sensitive_name
from shoal.core.compilation import compiled
from shoal.core.counts.counts import Counts
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem

_PAIRS = 4_000_000  # maximum number of pairs of labels that are tabulated
_WORDS = 8  # maximum number of 64-bit words per sensitive column; if it has more values, some share a bit


@dataclass(frozen=True)
class LabelAxis:
    """One column, or several that share their level."""

    columns: tuple[int, ...]
    low: int
    high: int
    codes: IntArray  # (combinations,)
    groups: tuple[IntArray, ...]  # for each level from low to high: the group of each code
    weights: tuple[FloatArray, ...]  # for each level: the weighted share of values that each group covers
    constant: float  # subtracted from a cell's sum of weights, so that the loss of a single value is 0


class ClassLabels(NamedTuple):
    """The labels of all axes, numbered consecutively: the arrays that kernels read."""

    codes: IntArray  # (axes, combinations)
    label_of: IntArray  # the label of a code is at offsets[axis, level - low] + code
    offsets: IntArray  # (axes, levels)
    heights: IntArray  # (axes,): the number of levels above the lowest
    parent: IntArray  # (labels,): the label one level up, or -1
    level: IntArray  # (labels,): the number of levels above the lowest allowed one
    weight: FloatArray  # (labels,): the cost that a label adds per record
    constant: FloatArray  # (axes,)
    rank: IntArray  # (labels,): their order in a depth-first walk from the top
    # `pairs[axis]` is (base, size). The entry of the next two arrays for labels x and y of the axis is at
    # base + size * x + y. If size is 0, there are no entries for the axis.
    pairs: IntArray  # (axes, 2)
    common: IntArray  # the lowest label that covers both, or -1
    joined_weight: FloatArray  # the weight of that label minus the constant of the axis, or infinity


def axes_of(problem: Problem, counts: Counts) -> list[LabelAxis]:
    """Describe the axes of a problem over some of its combinations."""
    lattice = problem.free
    return [
        _axis(problem, counts, members, low, high)
        for members, low, high in zip(lattice.axes, lattice.low, lattice.high, strict=True)
    ]


def _axis(problem: Problem, counts: Counts, members: Sequence[int], low: int, high: int) -> LabelAxis:
    hierarchies = [problem.hierarchies[column] for column in members]
    tuples = np.stack([counts.codes(column) for column in members])
    if len(members) == 1:
        values, codes = np.arange(len(hierarchies[0].labels[0])).reshape(1, -1), tuples[0]
    else:
        values, codes = np.unique(tuples, axis=1, return_inverse=True)
    units = [problem.weights[c] / max(1, h.size - 1) for c, h in zip(members, hierarchies, strict=True)]
    groups, weights = [], []
    for level in range(low, high + 1):
        tuples_at_level = np.stack([h.groups(level)[v] for h, v in zip(hierarchies, values, strict=True)])
        distinct, number = _distinct_tuples(tuples_at_level)
        groups.append(number)
        weights.append(_weights(hierarchies, units, level, distinct))
    return LabelAxis(tuple(members), low, high, codes.reshape(-1), tuple(groups), tuple(weights), sum(units))


def _distinct_tuples(tuples: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct tuples (columns, tuples), and the index of each tuple among them."""
    if len(tuples) == 1:
        return np.arange(int(tuples.max()) + 1).reshape(1, -1), tuples[0]
    distinct, number = np.unique(tuples, axis=1, return_inverse=True)
    return distinct, number.reshape(-1)


def _weights(
    hierarchies: Sequence[Hierarchy], units: Sequence[float], level: int, groups: IntArray
) -> FloatArray:
    parts = [
        unit * hierarchy.leaves[level][column]
        for hierarchy, unit, column in zip(hierarchies, units, groups, strict=True)
    ]
    total: FloatArray = np.sum(parts, axis=0)
    return total


def labels_of(axes: Sequence[LabelAxis]) -> ClassLabels:
    """Return the labels of all axes, numbered."""
    offsets = np.zeros((len(axes), max(axis.high - axis.low for axis in axes) + 1), np.int64)
    label_of, parent, level, weight, rank = [], [], [], [], []
    filled = first = 0
    for number, axis in enumerate(axes):
        for step, groups in enumerate(axis.groups):
            offsets[number, step] = filled
            filled += len(groups)
            label_of.append(groups + first)
            size = len(axis.weights[step])
            level.append(np.full(size, step))
            weight.append(axis.weights[step])
            parents_at_level = np.full(size, -1)
            if step < len(axis.groups) - 1:
                parents_at_level[groups] = first + size + axis.groups[step + 1]
            parent.append(parents_at_level)
            first += size
        rank.append(_ranks(axis))
    parents, levels = np.concatenate(parent), np.concatenate(level)
    weights = np.concatenate(weight)
    constants = np.array([axis.constant for axis in axes])
    sizes = np.array([sum(len(groups) for groups in axis.weights) for axis in axes])
    pairs, common, joined_weight = _pairs(sizes, levels, parents, weights, constants)
    return ClassLabels(
        codes=np.ascontiguousarray(np.stack([axis.codes for axis in axes])),
        label_of=np.concatenate(label_of),
        offsets=offsets,
        heights=np.array([len(axis.groups) - 1 for axis in axes]),
        parent=parents,
        level=levels,
        weight=weights,
        constant=constants,
        rank=np.concatenate(rank),
        pairs=pairs,
        common=common,
        joined_weight=joined_weight,
    )


def _pairs(
    sizes: IntArray, level: IntArray, parent: IntArray, weight: FloatArray, constant: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Tabulate the common labels of all pairs, for axes with few labels."""
    pairs = np.zeros((len(sizes), 2), np.int64)
    filled = first = 0
    for axis, size in enumerate(sizes.tolist()):
        if filled + size * size <= _PAIRS:
            pairs[axis] = filled - first * size - first, size
            filled += size * size
        first += size
    common, joined_weight = np.empty(filled, np.int64), np.empty(filled)
    fill_pairs(sizes, pairs, level, parent, weight, constant, common, joined_weight)
    return pairs, common, joined_weight


@compiled
def fill_pairs(
    sizes: IntArray,
    pairs: IntArray,
    level: IntArray,
    parent: IntArray,
    weight: FloatArray,
    constant: FloatArray,
    common: IntArray,
    joined_weight: FloatArray,
) -> None:
    """Write the common label of each pair, and its weight."""
    first = 0
    for axis in range(len(sizes)):
        if pairs[axis, 1]:
            for x in range(first, first + sizes[axis]):
                for y in range(first, first + sizes[axis]):
                    position = pairs[axis, 0] + x * pairs[axis, 1] + y
                    label = common_label(x, y, level, parent)
                    common[position] = label
                    joined_weight[position] = np.inf if label < 0 else weight[label] - constant[axis]
        first += sizes[axis]


@compiled
def common_label(x: int, y: int, level: IntArray, parent: IntArray) -> int:
    """Return the lowest label that covers two labels, or -1."""
    while x != y:
        low, high = level[x], level[y]
        if low <= high:
            x = parent[x]
        if high <= low:
            y = parent[y]
        if x < 0 or y < 0:
            return -1
    return x


def _ranks(axis: LabelAxis) -> IntArray:
    """Rank the labels of an axis by their order in a depth-first walk from the top."""
    order = np.lexsort(axis.groups)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    ranks = []
    for groups, weights in zip(axis.groups, axis.weights, strict=True):
        first = np.full(len(weights), len(order))
        np.minimum.at(first, groups, position)
        ranks.append(first)
    return np.concatenate(ranks)


class Needs(NamedTuple):
    """The minimum number of records of a class, and of distinct values of sensitive columns.

    If a column has many values, some share a bit, so a class may have more values than are counted. Kernels
    check only these minimums. Models that require more are checked in addition.
    """

    size: int
    values: IntArray  # (columns,)
    ends: IntArray  # (columns,): where the words of each column end
    bits: IntArray  # (combinations, words): the values of each combination


def needs_of(problem: Problem, counts: Counts) -> Needs:
    """Return the minimums that the models require of every class."""
    required: dict[str, int] = {}
    available = tuple(name for name in counts.sensitive if is_sensitive_name(name))
    for model in problem.models:
        for name, number in model.least_values(available).items():
            required[name] = max(number, required.get(name, 0))
    required = {name: number for name, number in required.items() if number > 1}
    parts, ends = [np.zeros((len(counts), 0), np.int64)], []
    for name in required:
        entries = counts.sensitive[name]
        words = min(_WORDS, (int(entries.codes.max(initial=0)) >> 6) + 1)
        bit = entries.codes % (64 * words)
        bits = np.zeros((len(counts), words), np.int64)
        np.bitwise_or.at(bits, (entries.rows, bit >> 6), np.int64(1) << (bit & 63))
        parts.append(bits)
        ends.append(sum(part.shape[1] for part in parts))
    values = np.array([*required.values()], np.int64)
    return Needs(problem.least_size, values, np.array(ends, np.int64), np.concatenate(parts, axis=1))
