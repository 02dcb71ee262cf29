"""Cells: the class sizes at a node, added up in a table that has a cell for every possible class.

Where the columns' groups at a node, multiplied, are not too many, this needs no comparison of keys: each
combination's place is the sum of a few looked-up numbers. Neighbouring columns are looked up together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from queue import Empty, SimpleQueue

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts, Field
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Node

_FEWEST, _PER_COMBINATION = 1 << 22, 8  # cells that may be held, at least, and for each combination
_CHUNK_BITS = 11  # columns looked up together: small enough to fill the table anew for every node


class Cells:
    """Counts class sizes of one-word keys."""

    def __init__(self, counts: Counts, hierarchies: Sequence[Hierarchy]) -> None:
        """Lay out the columns' fields and the maps between all of their levels."""
        self._groups_of = [[len(labels) for labels in hierarchy.labels] for hierarchy in hierarchies]
        most = max(len(groups) for groups in self._groups_of)
        self._fields = np.array([(field.shift, field.mask) for field in counts.fields])
        self._groups = np.ones((len(hierarchies), most), np.int64)
        self._starts = np.zeros((len(hierarchies), most, most), np.int64)
        maps, used = [], 0
        for column, hierarchy in enumerate(hierarchies):
            self._groups[column, : hierarchy.height + 1] = self._groups_of[column]
            for low in range(hierarchy.height + 1):
                for high in range(low, hierarchy.height + 1):
                    self._starts[column, low, high] = used
                    maps.append(hierarchy.between(low, high))
                    used += len(maps[-1])
        self._maps = np.concatenate(maps)
        self._chunks = _chunks(counts.fields)
        self._room = max(_FEWEST, _PER_COMBINATION * len(counts))
        self._rows = len(counts)
        self._spaces: SimpleQueue[tuple[IntArray, ...]] = SimpleQueue()  # as many as are used at once

    def fits(self, node: Node) -> bool:
        """Tell whether there are cells enough for a node."""
        return (
            prod([groups[level] for groups, level in zip(self._groups_of, node, strict=True)]) <= self._room
        )

    def count(self, counts: Counts, at: Node, node: Node, least_size: int) -> tuple[IntArray, int]:
        """Return the class sizes at a node, read from counts below it, and the records in small classes."""
        from shoal.core.cell_kernels import class_sizes

        space = self._space()
        levels = np.array(at), np.array(node)
        tables = self._fields, self._groups, self._starts, self._maps, self._chunks
        found, short = class_sizes(counts.keys[0], counts.sizes, *levels, *tables, least_size, *space)
        sizes = space[-1][:found].copy()
        self._spaces.put(space)
        return sizes, short

    def _space(self) -> tuple[IntArray, ...]:
        """Take working space: the chunks' tables, the cells, each row's place, the sizes."""
        try:
            return self._spaces.get_nowait()
        except Empty:
            lookup = np.empty(int((self._chunks[:, 2] + 1).sum()), np.int64)
            rows = np.empty((2, self._rows), np.int64)
            return lookup, np.zeros(self._room, np.int64), rows[0], rows[1]


def _chunks(fields: Sequence[Field]) -> IntArray:
    """Put neighbouring columns together as long as they fit: first, end, mask, where their table begins.

    There are a multiple of four; those that fill up have no column and a table of one zero.
    """
    found: list[tuple[int, int, int]] = []
    for column, field in enumerate(fields):
        bits = field.mask.bit_length()
        if found and (width := found[-1][2].bit_length() + bits) <= _CHUNK_BITS:
            found[-1] = (found[-1][0], column + 1, (1 << width) - 1)
        else:
            found.append((column, column + 1, field.mask))
    found += [(0, 0, 0)] * (-len(found) % 4)
    begins = np.cumsum([0, *[mask + 1 for _, _, mask in found]])
    return np.array([(*chunk, begin) for chunk, begin in zip(found, begins[:-1], strict=True)])
