"""Many nodes counted at once: how many records are in small classes, on all cores, in compiled code.

Nodes are sorted so that those that begin alike share their roll-ups; each core walks its own part of
that prefix tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice

CORES = os.cpu_count() or 1
# A part begins at the bottom again, so parts are few; they do not depend on the machine, nor does the work.
_FEWEST_PARTS, _MOST_PARTS, _NODES_PER_PART = 2, 16, 100
_TALLY = 4096  # values counted in a table of their own; larger ones are few
_ROOM = 1 << 20  # values written before they are copied away


@dataclass(frozen=True)
class Batch:
    """What was counted, node by node."""

    short: IntArray  # (nodes,): records in classes below the size asked for
    classes: IntArray  # (nodes,)
    rows_scanned: int
    cost: int  # columns generalized times combinations read


@dataclass(frozen=True)
class Spread:
    """How the records of each node spread over its classes."""

    begins: IntArray  # (nodes + 1,): where each node's values begin
    values: IntArray  # what tells classes apart (size, distinct codes), ascending within a node
    records: IntArray  # the records in classes of that value
    classes: IntArray  # (nodes,)
    rows_scanned: int


def joined(parts: Iterable[Spread]) -> Spread:
    """Put spreads of consecutive nodes one after the other."""
    parts = list(parts)
    shifts = np.cumsum([0, *[part.begins[-1] for part in parts]])
    begins = [part.begins[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    return Spread(
        np.concatenate([*begins, shifts[-1:]]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.records for part in parts]),
        np.concatenate([part.classes for part in parts]),
        sum(part.rows_scanned for part in parts),
    )


def room_for(counts: Counts, lattice: Lattice) -> int:
    """Return the bytes that counting many nodes at once takes, on all cores."""
    return CORES * len(counts) * (8 * (4 * len(lattice.axes) + 4) + 4 * 8)


class BatchCounter:
    """Counts nodes of one lattice; keys must fit one word."""

    def __init__(
        self, counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, order: Sequence[int]
    ) -> None:
        """Take the axes in the order in which they are rolled up."""
        self.order = list(order)
        self.base = _at_bottom(counts, hierarchies, lattice)
        self.tables = _tables(counts, hierarchies, lattice, self.order)
        self._pool = ThreadPoolExecutor(CORES)
        self._spaces: SimpleQueue[tuple[IntArray, IntArray, IntArray]] = SimpleQueue()
        for _ in range(CORES):
            self._spaces.put(self._space())

    def _space(self) -> tuple[IntArray, IntArray, IntArray]:
        rows = len(self.base)
        buffers = 2 * len(self.order) + 1
        size = 16
        while size < 3 * rows:
            size *= 2
        return (
            np.empty((buffers + 1, rows), np.int64),
            np.empty((buffers, rows), np.int64),
            np.empty(size, np.int32),
        )

    def count(self, indices: IntArray, least_size: int) -> Batch:
        """Count nodes given by their indices in the lattice, (nodes, axes)."""
        turned = np.ascontiguousarray(indices[:, self.order])
        sort = np.lexsort(turned.T[::-1])
        parts = self._parts(turned[sort])
        found = self._pool.map(self._walk, parts, [least_size] * len(parts))
        shorts, classes, rows, costs = zip(*found, strict=True)
        back = np.argsort(sort)
        return Batch(np.concatenate(shorts)[back], np.concatenate(classes)[back], sum(rows), sum(costs))

    @staticmethod
    def _parts(nodes: IntArray) -> list[IntArray]:
        parts = min(_MOST_PARTS, max(_FEWEST_PARTS, len(nodes) // _NODES_PER_PART))
        return [part for part in np.array_split(nodes, parts) if len(part)]

    def _walk(self, nodes: IntArray, least_size: int) -> tuple[IntArray, IntArray, int, int]:
        from shoal.core import walks

        with self._working_space() as space:
            found: tuple[IntArray, IntArray, int, int] = walks.count_nodes(
                self.base.keys[0], self.base.sizes, nodes, *self.tables, least_size, *space
            )
        return found

    def spread(self, nodes: IntArray, kept: int, most: int) -> Spread:
        """Tell how records spread over classes, node by node; nodes are sorted, in the order of the walk.

        `kept` is the mask of a key's bits that tell classes apart, -1 for all: then classes are told by
        their size, else by how many distinct codes lie in the bits it drops. `most` bounds the values
        of a node.
        """
        parts = self._parts(nodes)
        return joined(self._pool.map(self._spread, parts, [kept] * len(parts), [most] * len(parts)))

    def _spread(self, nodes: IntArray, kept: int, most: int) -> Spread:
        from shoal.core import walks

        found = []
        tally = np.zeros(min(_TALLY, most + 1), np.int64)
        with self._working_space() as space:
            while len(nodes):
                room = min(len(nodes) * most, max(_ROOM, most))
                values, records = np.empty((2, room), np.int64)
                begins, classes, rows = walks.spread_nodes(
                    self.base.keys[0], self.base.sizes, nodes, *self.tables, kept, *space,
                    tally, values, records,
                )  # fmt: skip
                used = begins[-1]
                found.append(Spread(begins, values[:used].copy(), records[:used].copy(), classes, rows))
                nodes = nodes[len(classes) :]
        return joined(found)

    @contextmanager
    def _working_space(self) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        space = self._spaces.get()
        try:
            yield space
        finally:
            self._spaces.put(space)


def _at_bottom(counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice) -> Counts:
    """Roll every column up to its lowest level."""
    for axis, members in enumerate(lattice.axes):
        for column in members:
            if lattice.low[axis]:
                counts = counts.roll_up({column: hierarchies[column].groups(lattice.low[axis])})
    return counts


def _tables(
    counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, order: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Write the fields that each axis moves, and the maps between its levels, as the kernel reads them."""
    most = max(lattice.shape)
    fields, starts, maps = [], [], [np.zeros(1, np.int64)]
    used = 1
    for place, axis in enumerate(order):
        for column in lattice.axes[axis]:
            field = counts.fields[column]
            fields.append((place, field.shift, field.mask))
            begin = np.zeros((most, most), np.int64)
            for low in range(lattice.shape[axis]):
                for high in range(low + 1, lattice.shape[axis]):
                    step = hierarchies[column].between(lattice.low[axis] + low, lattice.low[axis] + high)
                    begin[low, high] = used
                    maps.append(step)
                    used += len(step)
            starts.append(begin)
    return np.array(fields), np.array(starts), np.concatenate(maps)
