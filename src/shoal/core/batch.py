"""Many nodes counted at once: how many records are in small classes, on all cores, in compiled code.

Nodes are sorted so that those that begin alike share their roll-ups; each core walks its own part of
that prefix tree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice

_CORES = os.cpu_count() or 1
# A part begins at the bottom again, so parts are few; they do not depend on the machine, nor does the work.
_FEWEST_PARTS, _MOST_PARTS, _NODES_PER_PART = 2, 16, 100


@dataclass(frozen=True)
class Batch:
    """What was counted, node by node."""

    short: IntArray  # (nodes,): records in classes below the size asked for
    classes: IntArray  # (nodes,)
    rows_scanned: int
    cost: int  # columns generalized times combinations read


class BatchCounter:
    """Counts nodes of one lattice; keys must fit one word."""

    def __init__(
        self, counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, order: Sequence[int]
    ) -> None:
        """Take the axes in the order in which they are rolled up."""
        self.order = list(order)
        self.base = _at_bottom(counts, hierarchies, lattice)
        self.tables = _tables(counts, hierarchies, lattice, self.order)
        self._pool = ThreadPoolExecutor(_CORES)
        self._spaces: SimpleQueue[tuple[IntArray, IntArray, IntArray]] = SimpleQueue()
        for _ in range(_CORES):
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
        from shoal.core import kernels

        space = self._spaces.get()
        try:
            found: tuple[IntArray, IntArray, int, int] = kernels.count_nodes(
                self.base.keys[0], self.base.sizes, nodes, *self.tables, least_size, *space
            )
        finally:
            self._spaces.put(space)
        return found


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
