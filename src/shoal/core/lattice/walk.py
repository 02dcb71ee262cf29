"""A walk over the nodes of a lattice, in compiled code: see `walk_kernels`.

If class sizes determine loss and acceptability, the walk finds the node of least loss. It also computes, for
many nodes, how the records are distributed over classes of different sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import Kernel, work
from shoal.core.contracts import SizeTerms
from shoal.core.counts.counts import WORD_BITS, Counts
from shoal.core.counts.diversity import KINDS, Diversity
from shoal.core.counts.in_memory import LARGE, InMemoryCounts
from shoal.core.counts.kernels import Output
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice import walk_kernels as kernels
from shoal.core.lattice.lattice import Index, Lattice

_ROWS = 4_000_000  # number of combinations read between two checks of the time limit
_STEPS = 1 << 40
_NUMPY_ROWS, _NUMPY_STEPS = 400_000, 200  # the same limits for NumPy, whose steps are slower
_TALLY_SIZE = 4096  # values below this are counted in an array; larger values are rare
_OUTPUT_SIZE = 1 << 20  # size of the output array; its content is copied when it is full


@dataclass(frozen=True)
class WalkResult:
    """The best node that a walk has found so far, and the cost of the walk."""

    complete: bool
    best: Index | None  # the best acceptable node
    suppressed: int  # number of records, at the best node
    nodes: int  # number of nodes counted
    accepted: int
    rows_scanned: int
    score: float


@dataclass(frozen=True)
class Spread:
    """For several nodes: how many records are in classes of each measure."""

    begins: IntArray  # (nodes + 1,): where each node's values begin
    values: IntArray  # the measures that occur (size, or size and l), ascending within a node
    records: IntArray  # the number of records in classes of that measure
    classes: IntArray  # (nodes,): the number of classes


def joined(parts: Iterable[Spread]) -> Spread:
    """Concatenate the spreads of consecutive nodes."""
    parts = list(parts)
    shifts = np.cumsum([0, *[part.begins[-1] for part in parts]])
    begins = [part.begins[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    return Spread(
        np.concatenate([*begins, shifts[-1:]]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.records for part in parts]),
        np.concatenate([part.classes for part in parts]),
    )


def room_for(counts: Counts, lattice: Lattice) -> int:
    """Return the maximum memory that a walk needs, in bytes.

    A walk stores a table for each level, the tables in use, and the levels of every node.
    """
    return len(counts) * 16 * (sum(lattice.shape) - len(lattice.shape) + 7) + 8 * lattice.size


class Walk:
    """Walks one lattice; the keys must fit in one word."""

    def __init__(self, counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice) -> None:
        self.lattice = lattice
        self.base = _at_bottom(counts.in_memory(), hierarchies, lattice)
        values = [
            max(len(hierarchies[column].labels[low]) for column in axis)
            for axis, low in zip(lattice.axes, lattice.low, strict=True)
        ]
        axes = [axis for axis, levels in enumerate(lattice.shape) if levels > 1] or [0]
        # The axis with the most values comes first, so that most keys merge only once, in the largest tables.
        self.order = sorted(axes, key=lambda axis: -values[axis])
        self.shape = tuple(lattice.shape[axis] for axis in self.order)
        self.tree = self._tree(hierarchies)

    @staticmethod
    def possible(counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, memory: int) -> bool:
        """Return whether the keys fit in one word, and all tables in memory."""
        if counts.remote or room_for(counts, lattice) > memory:
            return False
        return counts.words == 1 or sum(_widths(hierarchies, lattice)) <= WORD_BITS

    def _tree(self, hierarchies: Sequence[Hierarchy]) -> kernels.PrefixTree:
        lattice, most = self.lattice, max(self.shape)
        fields, groups, starts, maps, used = [], [], [], [np.zeros(1, np.int64)], 1
        for depth, axis in enumerate(self.order):
            for column in lattice.axes[axis]:
                field = self.base.fields[column]
                fields.append((depth, field.shift, field.mask))
                labels = [
                    len(labels_of_level)
                    for labels_of_level in hierarchies[column].labels[lattice.low[axis] :][
                        : self.shape[depth]
                    ]
                ]
                groups.append(labels + [0] * (most - len(labels)))
                starts.append(np.zeros((most, most), np.int64))
                for low in range(self.shape[depth]):
                    for high in range(low + 1, self.shape[depth]):
                        step = hierarchies[column].between(lattice.low[axis] + low, lattice.low[axis] + high)
                        starts[-1][low, high] = used
                        maps.append(step)
                        used += len(step)
        strides = [prod(self.shape[depth:]) for depth in range(len(self.shape) + 1)]
        raises = [(len(lattice.axes[axis]), prod(lattice.shape[axis + 1 :])) for axis in self.order]
        digits, free = _digits(self.shape)
        arrays = [np.array(part) for part in (self.shape, strides, fields, groups, starts)]
        return kernels.PrefixTree._make(
            [*arrays, np.concatenate(maps), np.array(raises), digits, free, self._count_other_values(fields)]
        )

    def _count_other_values(self, fields: Sequence[tuple[int, int, int]]) -> int:
        """Count the distinct values of the key bits that belong to no axis.

        They are the bits of columns with one level and of a sensitive code.
        """
        axis_bits = sum(mask << shift for _, shift, mask in fields)
        other_bits = self.base.keys[0] & ~axis_bits
        return int(np.count_nonzero(np.diff(np.sort(other_bits)))) + 1 if other_bits.any() else 1

    def index(self, number: int) -> Index:
        """Return the index of a node in the lattice."""
        index = [0] * len(self.lattice.shape)
        for axis, level in zip(self.order, np.unravel_index(number, self.shape), strict=True):
            index[axis] = int(level)
        return tuple(index)

    def objective(
        self, least_size: int, most: int, terms: SizeTerms | None, losses: FloatArray | None, *, skip: bool
    ) -> kernels.Objective:
        """Describe which nodes are acceptable, and the loss: by sizes, by a number per node, or both."""
        skips = kernels.BY_LOSS if terms is None else kernels.BY_SIZE
        empty = np.empty(0)
        if losses is not None:
            single_level = [axis for axis in range(losses.ndim) if axis not in self.order]
            losses = np.ascontiguousarray(np.transpose(losses, [*self.order, *single_level])).ravel()
        terms = terms or SizeTerms()
        factors = np.array(
            [terms.squares, terms.suppressed_squares, terms.suppressed, terms.per_class], float
        )
        # The loss that a record adds in a suppressed class of the smallest and of the greatest possible size.
        penalties = [terms.suppressed + terms.suppressed_squares * size for size in (1, least_size - 1)]
        return kernels.Objective(
            least_size, most, empty if losses is None else losses, factors, max(0.0, min(penalties)),
            skips if skip else kernels.EVERY,
        )  # fmt: skip

    def search(self, objective: kernels.Objective) -> Iterator[WalkResult]:
        """Find the best node; yield the result so far at intervals, and at the end."""
        selected = np.arange(self.tree.strides[0] + 1 if objective.skips == kernels.EVERY else 0)
        state, complete = self._state(selected), False
        while not complete:
            complete = self._run(kernels.walk, objective, state)
            state = _with_space(state)
            yield self._result(state, complete)

    def _run(self, kernel: Kernel, objective: kernels.Objective, state: kernels.State, *others: Any) -> bool:
        """Continue a walk with NumPy while there is little work, else in compiled code."""
        if work.fits_numpy(len(self.base)):
            before = state.numbers[[kernels.ROWS, kernels.NODES]]
            complete = bool(
                kernel.uncompiled(self.tree, objective, state, *others, _NUMPY_ROWS, _NUMPY_STEPS)
            )
            work.add(*(state.numbers[[kernels.ROWS, kernels.NODES]] - before).tolist())
            return complete
        run = kernel.large if len(self.base) >= LARGE else kernel.machine
        return bool(run(self.tree, objective, state, *others, _ROWS, _STEPS))

    def _result(self, state: kernels.State, complete: bool) -> WalkResult:
        numbers, score = state.numbers.tolist(), float(state.values[kernels.SCORE])
        best = numbers[kernels.BEST]
        return WalkResult(
            complete,
            self.index(best) if best >= 0 else None,
            numbers[kernels.SUPPRESSED],
            numbers[kernels.NODES],
            numbers[kernels.ACCEPTED],
            numbers[kernels.ROWS],
            numbers[kernels.COST] + score,
        )

    def spread(self, indices: IntArray, kept: int, most: int, diversity: Diversity | None = None) -> Spread:
        """Return how the records of nodes are distributed over their classes.

        `indices` has the shape (nodes, axes) and is in descending order. `kept` is the mask of the key bits
        that identify a class. The other bits are a sensitive code, and the measure combines size and l. If
        `kept` is -1, classes are measured by size. `most` is the maximum number of measures per node.
        """
        selected = np.zeros(self.tree.strides[0] + 1, np.int64)
        selected[1 + np.ravel_multi_index(tuple(indices[:, self.order].T), self.shape)] = 1
        state = self._state(np.cumsum(selected))
        objective = kernels.Objective(0, 0, np.empty(0), np.zeros(4), 0.0, kernels.LIST)
        output_size = max(min(len(indices) * most, _OUTPUT_SIZE), most)
        tally = np.zeros(min(_TALLY_SIZE, most + 1), np.int64)
        values, records = np.empty((2, output_size), np.int64)
        ends, classes = np.zeros(len(indices) + 1, np.int64), np.empty(len(indices), np.int64)
        diversity = diversity or Diversity()
        kind, c = KINDS.index(diversity.kind), float(diversity.c)
        output = Output(kept, ends, classes, values, records, tally, kind, c, diversity.steps)
        spreads = []
        complete = False
        while not complete:
            complete = self._run(kernels.spread, objective, state, output)
            if complete or state.numbers[kernels.NEEDED] == kernels.OUTPUT:
                nodes, ends[0] = int(ends[0]), 0
                used = ends[nodes]
                begins = ends[: nodes + 1].copy()
                spreads.append(
                    Spread(begins, values[:used].copy(), records[:used].copy(), classes[:nodes].copy())
                )
            state = _with_space(state)
        return joined(spreads)

    def _state(self, selected: IntArray) -> kernels.State:
        rows, axes, levels, nodes = len(self.base), len(self.shape), max(self.shape), self.tree.strides[0]
        keys, counts = np.empty((2, 2 * rows), np.int64)
        keys[:rows], counts[:rows] = self.base.keys[0], self.base.sizes
        numbers = np.zeros(9, np.int64)
        numbers[[kernels.BEST, kernels.USED]] = -1, rows
        length = np.zeros((axes, levels + 1), np.int64)
        length[0, -1] = rows
        return kernels.State(
            keys, counts,
            slots=np.empty(1 << max(4, (3 * rows - 1).bit_length()), np.int32),
            moved=np.empty(rows, np.int64),
            scattered=np.empty((2, rows if rows >= LARGE else 0), np.int64),
            spare_keys=np.empty((2, rows), np.int64),
            spare_counts=np.empty((2, rows), np.int64),
            begin=np.zeros((axes, levels + 1), np.int64),
            length=length,
            bounds=np.full((axes, levels + 1), -np.inf),
            at=np.zeros(axes, np.int64),
            goal=np.zeros((2, axes), np.int64),
            next=np.full(axes, -1),
            mark=np.zeros(axes, np.int64),
            short=np.zeros(nodes, np.int64),
            counted=np.zeros(nodes, np.int64),
            selected=selected,
            numbers=numbers,
            values=np.array([np.inf, 0.0]),
        )  # fmt: skip


def _with_space(state: kernels.State) -> kernels.State:
    """Return the state with larger arrays for tables, if the walk needs them."""
    needed = int(state.numbers[kernels.NEEDED])
    state.numbers[kernels.NEEDED] = 0
    if needed <= len(state.keys):
        return state
    larger = np.empty((2, 2 * needed), np.int64)
    used = state.numbers[kernels.USED]
    larger[0, :used], larger[1, :used] = state.keys[:used], state.counts[:used]
    return state._replace(keys=larger[0], counts=larger[1])


def _digits(shape: Sequence[int]) -> tuple[IntArray, int]:
    """Pack the levels of each node into a number, with a free bit above each; also return the free bits."""
    digits, free, used = np.zeros(shape, np.int64), 0, 0
    for axis, levels in enumerate(shape):
        level = np.arange(levels).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        digits |= level << used
        used += (levels - 1).bit_length() + 1
        free |= 1 << (used - 1)
    return digits.ravel(), free


def _widths(hierarchies: Sequence[Hierarchy], lattice: Lattice) -> list[int]:
    """Return the number of bits of each column at its lowest level."""
    widths = [1] * len(hierarchies)
    for axis, low in zip(lattice.axes, lattice.low, strict=True):
        for column in axis:
            widths[column] = max(1, (len(hierarchies[column].labels[low]) - 1).bit_length())
    return widths


def _at_bottom(counts: InMemoryCounts, hierarchies: Sequence[Hierarchy], lattice: Lattice) -> InMemoryCounts:
    """Roll up every column to its lowest level, and pack keys in one word."""
    counts = counts.bare()
    groups = {
        column: hierarchies[column].groups(low)
        for axis, low in zip(lattice.axes, lattice.low, strict=True)
        for column in axis
        if low
    }
    counts = counts.roll_up(groups) if groups else counts
    return counts.widened(_widths(hierarchies, lattice)) if counts.words > 1 else counts
