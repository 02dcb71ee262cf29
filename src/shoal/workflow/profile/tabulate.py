"""Tabulate how records spread over classes at many nodes, to look up the suppression for any k.

Classes are counted by their size and, for each sensitive column, by size and l together.
Nodes are counted in slices; a tabulation may stop after any slice and be continued later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import isqrt

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.classes import Classes
from shoal.core.counts.counts import Counts
from shoal.core.counts.diversity import Measure
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.evaluation import SearchCost
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Lattice
from shoal.core.lattice.rollup_cache import RollupCache, rollup_cache
from shoal.core.lattice.walk import Spread, Walk, joined, room_for
from shoal.workflow.profile.tables import (
    JointTable,
    SizeTable,
    joined_tables,
    joint_spread,
    joint_table,
    measures_of,
    table_of,
)

_SLICE = 2048  # maximum number of nodes counted between two checks of the time limit
_WORK = 100_000_000  # maximum number of combinations over all nodes of a slice


def spread_of_classes(classes: Classes, sensitive: str | None) -> Spread:
    """Return how the records of one node spread over its classes."""
    histogram = classes.counts.histogram(sensitive)
    begins, number = np.array([0, len(histogram.values)]), np.array([histogram.classes])
    return Spread(begins, histogram.values, histogram.records, number)


class Tabulation:
    """Tables under construction: the nodes counted so far, and their counts."""

    def __init__(
        self,
        counts: Counts,
        hierarchies: Sequence[Hierarchy],
        lattice: Lattice,
        sensitive: Sequence[str],
        memory: int,
        others: Sequence[Measure] = (),  # in addition to the distinct l of each sensitive column
    ) -> None:
        self.counts = counts
        self.lattice = lattice
        self.sensitive = tuple(sensitive)
        # Counts in an engine give the spread of sizes and of distinct values only separately.
        self.measures = () if counts.remote else measures_of(self.sensitive, others)
        self._hierarchies = hierarchies
        self._memory = memory
        self._counters = self._compiled(hierarchies)
        first = next(iter(self._counters.values()), None)
        self._order = list(first[0].order if first else self._rollups.walk(lattice))
        self._numbers: list[IntArray] = []  # of the nodes counted, slice by slice
        self._tables: dict[str | None, list[SizeTable]] = {name: [] for name in (None, *self.sensitive)}
        self._joints: dict[Measure, list[JointTable]] = {measure: [] for measure in self.measures}

    def _compiled(self, hierarchies: Sequence[Hierarchy]) -> dict[str | None, tuple[Walk, int]]:
        """Create the walks that count many nodes at once: for sizes (None), and values that fit 64 bits."""
        walks: dict[str | None, tuple[Walk, int]] = {}
        if self.counts.remote:
            return walks
        counts = self.counts.in_memory()
        keys: dict[str | None, tuple[InMemoryCounts, int]] = {None: (counts.bare(), -1)}
        joints = {name: counts.joint(name) for name in self.sensitive}
        keys |= {name: (joint[0], (1 << joint[1]) - 1) for name, joint in joints.items() if joint}
        memory = self._memory // 2  # for one walk at a time: each walk frees its working memory
        for name, (base, mask) in keys.items():
            if base.words == 1 and room_for(base, self.lattice) <= memory:
                walks[name] = Walk(base, hierarchies, self.lattice), mask
        return walks

    @cached_property
    def _rollups(self) -> RollupCache:
        return rollup_cache(self.counts, self._hierarchies, SearchCost(), self._memory)

    @property
    def nodes(self) -> int:
        """The number of nodes tabulated."""
        return sum(map(len, self._numbers))

    def take(
        self,
        numbers: IntArray,
        tables: Mapping[str | None, SizeTable],
        joints: Mapping[Measure, JointTable] | None = None,
    ) -> None:
        """Start with nodes that were tabulated earlier, and with their tables."""
        self._numbers.append(numbers)
        for name, parts in self._tables.items():
            parts.append(tables[name])
        known = joints or {}
        self._joints = {measure: [known[measure]] for measure in self.measures if measure in known}

    def slices(self, numbers: IntArray | None = None, size: int = _SLICE) -> Iterator[int]:
        """Count nodes, given by number (default: all). After each slice, yield the number counted so far."""
        shape = self.lattice.shape
        rows = len(self.counts) + sum(len(entries.counts) for entries in self.counts.sensitive.values())
        size = min(size, max(16, _WORK // rows))
        if numbers is None:  # in the order of the walk, so that the nodes of a slice share roll-ups
            idle = [axis for axis in range(len(shape)) if axis not in self._order]
            ordered = np.transpose(np.arange(self.lattice.size).reshape(shape), [*self._order, *idle])
            numbers = ordered.ravel()[::-1]
        for start in range(0, len(numbers), size):
            batch = numbers[start : start + size]
            indices = np.stack(np.unravel_index(batch, shape), axis=1)
            sort = np.lexsort(indices[:, self._order[::-1]].T)[::-1]
            self._count(indices[sort])
            self._numbers.append(batch[sort])
            yield self.nodes

    def _count(self, indices: IntArray) -> None:
        separate = [name for name in self._tables if name is None or Measure(name) not in self._joints]
        for name in separate:
            # Compressed immediately, so that only one slice uses wide integers.
            self._tables[name].append(table_of(self._spread(indices, name)))
        for measure, parts in self._joints.items():
            spread = self._spread(indices, measure)
            parts.append(joint_table(spread))
            if measure == Measure(measure.column):
                self._tables[measure.column].append(parts[-1].by_value(spread.classes))

    def _spread(self, indices: IntArray, what: str | Measure | None) -> Spread:
        counter = self._counters.get(what.column if isinstance(what, Measure) else what)
        if counter is None or isinstance(what, str):
            return joined(self._single_spread(index, what) for index in indices)
        walk, mask = counter
        if what is not None:
            return walk.spread(indices, mask, len(self.counts), what.diversity)
        sizes = (
            isqrt(2 * self.counts.records) + 1
        )  # this many different sizes add up to more than all records
        return walk.spread(indices, mask, sizes)

    def _single_spread(self, index: IntArray, what: str | Measure | None) -> Spread:
        """Count one node alone; used if many nodes at once exceed 64 bits or the memory."""
        counts = self._rollups.counts(self.lattice.node(index.tolist()))
        return (
            joint_spread(counts, what)
            if isinstance(what, Measure)
            else spread_of_classes(Classes(counts), what)
        )

    def tables(self) -> tuple[IntArray, dict[str | None, SizeTable]]:
        """Return the numbers of the tabulated nodes in the lattice, and the tables of each measure."""
        complete_slices = len(self._numbers)  # an interrupted slice has no entry yet
        self._numbers = [self.numbers]
        for parts in self._tables.values():
            del parts[complete_slices:]
            parts[:] = [_one_table(parts)]
        for joints in self._joints.values():
            joints[:] = [joined_tables(joints[:complete_slices])]
        return self._numbers[0], {name: parts[0] for name, parts in self._tables.items()}

    def joints(self) -> dict[Measure, JointTable]:
        """Return the joint tables of the same nodes, in the order of `tables`."""
        return {measure: parts[0] for measure, parts in self._joints.items()}

    @property
    def numbers(self) -> IntArray:
        """The numbers of the tabulated nodes in the lattice."""
        return np.concatenate([np.empty(0, np.int64), *self._numbers])


def _one_table(parts: list[SizeTable]) -> SizeTable:
    """Concatenate tables of consecutive nodes; each is freed after it is copied."""
    nodes, length = sum(len(part.classes) for part in parts), sum(len(part.values) for part in parts)
    begins = np.zeros(nodes + 1, np.int64)
    sizes = {"values": length, "below": length, "classes": nodes}
    kinds = {name: np.result_type(np.uint16, *{getattr(p, name).dtype for p in parts}) for name in sizes}
    arrays = {name: np.empty(size, kinds[name]) for name, size in sizes.items()}
    node = entry = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        begins[node + 1 : node + 1 + len(part.classes)] = part.begins[1:] + entry
        arrays["values"][entry : entry + len(part.values)] = part.values
        arrays["below"][entry : entry + len(part.values)] = part.below
        arrays["classes"][node : node + len(part.classes)] = part.classes
        node, entry = node + len(part.classes), entry + len(part.values)
    return SizeTable(begins, **arrays)
