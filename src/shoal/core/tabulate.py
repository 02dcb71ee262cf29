"""Tabulate: how records spread over classes at many nodes, so that what any k suppresses is a look-up.

Classes are told apart by their size and, for each sensitive column, by how many distinct values they hold.
Nodes are counted in slices, on all cores; a tabulation may end after any slice and be taken up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.batch import BatchCounter, Spread, joined, room_for
from shoal.core.books import Books
from shoal.core.classes import Classes
from shoal.core.counts import Counts
from shoal.core.far_hubs import hubs_over
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice

_SLICE = 2048  # nodes counted, at most, between two looks at the clock
_WORK = 100_000_000  # combinations that so many nodes may have together


@dataclass(frozen=True)
class Table:
    """What each strength of one model suppresses at each node tabulated."""

    begins: IntArray  # (nodes + 1,): where each node's values begin
    values: IntArray  # what tells classes apart, ascending within a node
    below: IntArray  # the records in classes of smaller values
    classes: IntArray  # (nodes,): all classes, before suppression

    def __post_init__(self) -> None:
        """Let what was counted stay as it is, as what a file maps does: compiled code knows one kind."""
        for array in (self.begins, self.values, self.below, self.classes):
            array.flags.writeable = False

    def suppressed(self, least: int, records: int) -> IntArray:
        """Return the records in classes of values below the least, node by node; all where none remains."""
        from shoal.core.table_kernels import first_at_least

        if not len(self.values):
            return np.empty(0, np.int64)
        at = first_at_least(self.begins, self.values, least)
        found: IntArray = self.below.take(at, mode="clip").astype(np.int64)
        found[at == self.begins[1:]] = records
        return found

    def strongest(self, limit: int) -> tuple[IntArray, IntArray]:
        """Return the largest value that each node reaches within a limit, and what it then suppresses."""
        from shoal.core.table_kernels import first_at_least

        at = first_at_least(self.begins, self.below, limit + 1) - 1  # below the least value lies nothing
        return self.values[at].astype(np.int64), self.below[at].astype(np.int64)

    def some(self, places: IntArray) -> Table:
        """Return the table of some of the nodes."""
        lengths = self.begins[places + 1] - self.begins[places]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(begins[-1]) + np.repeat(self.begins[places] - begins[:-1], lengths)
        return Table(begins, self.values[at], self.below[at], self.classes[places])

    def and_(self, other: Table) -> Table:
        """Return the table of these nodes and others after them."""
        return Table(
            np.concatenate([self.begins, self.begins[-1] + other.begins[1:]]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.below, other.below]),
            np.concatenate([self.classes, other.classes]),
        )


def table_of(spread: Spread) -> Table:
    """Cumulate a spread, in the smallest numbers that hold it."""
    before = np.cumsum(spread.records) - spread.records
    starts = np.repeat(before[spread.begins[:-1]], np.diff(spread.begins)) if len(before) else before
    return Table(spread.begins, _small(spread.values), _small(before - starts), _small(spread.classes))


def spread_of_classes(classes: Classes, sensitive: str | None) -> Spread:
    """Tell how the records of one node spread over its classes."""
    found = classes.counts.variety(sensitive)
    begins, number = np.array([0, len(found.values)]), np.array([found.classes])
    return Spread(begins, found.values, found.records, number, found.classes)


def _small(numbers: IntArray) -> IntArray:
    most = int(numbers.max(initial=0))
    kind = next(kind for kind in (np.uint16, np.uint32, np.uint64) if most <= np.iinfo(kind).max)
    return numbers.astype(kind)


class Tabulation:
    """Tables in the making: which nodes are in, and what was counted of them."""

    def __init__(
        self,
        counts: Counts,
        hierarchies: Sequence[Hierarchy],
        lattice: Lattice,
        sensitive: Sequence[str],
        memory: int,
    ) -> None:
        """Begin with no node; hold no more than the memory allows."""
        self.counts = counts
        self.lattice = lattice
        self.sensitive = tuple(sensitive)
        self._hubs = hubs_over(counts, hierarchies, Books(), memory)
        self._memory = memory
        self._walk = list(self._hubs.walk(lattice))
        self._counters = self._compiled(hierarchies)
        self._numbers: list[IntArray] = []  # of the nodes counted, slice by slice
        self._tables: dict[str | None, list[Table]] = {name: [] for name in (None, *self.sensitive)}

    def _compiled(self, hierarchies: Sequence[Hierarchy]) -> dict[str | None, tuple[BatchCounter, int]]:
        """Make what counts many nodes at once, for sizes (None) and sensitive columns that fit a word."""
        found: dict[str | None, tuple[BatchCounter, int]] = {}
        if not self.counts.held:
            return found
        counts = self.counts.near()
        plain = counts.bare()
        room = self._memory // 2 - room_for(plain, self.lattice)
        if plain.words == 1 and room >= 0:
            found[None] = BatchCounter(plain, hierarchies, self.lattice, self._walk), -1
        for name in self.sensitive:
            joint = counts.joint(name)
            if joint and (room := room - room_for(joint[0], self.lattice)) >= 0:
                counter = BatchCounter(joint[0], hierarchies, self.lattice, self._walk)
                found[name] = counter, (1 << joint[1]) - 1
        return found

    @property
    def nodes(self) -> int:
        """How many nodes are tabulated."""
        return sum(map(len, self._numbers))

    def take(self, numbers: IntArray, tables: Mapping[str | None, Table]) -> None:
        """Begin with nodes tabulated earlier."""
        self._numbers.append(numbers)
        for name, parts in self._tables.items():
            parts.append(tables[name])

    def slices(self, numbers: IntArray | None = None, size: int = _SLICE) -> Iterator[int]:
        """Count nodes, by their place in the lattice (all without them); tell after each slice how many."""
        shape = self.lattice.shape
        rows = len(self.counts) + sum(len(entries.counts) for entries in self.counts.sensitive.values())
        size = min(size, max(16, _WORK // rows))
        if numbers is None:  # as they are walked, so that a slice shares its roll-ups
            every = np.transpose(np.arange(self.lattice.size).reshape(shape), self._walk)
            numbers = every.ravel()
        for start in range(0, len(numbers), size):
            some = numbers[start : start + size]
            indices = np.stack(np.unravel_index(some, shape), axis=1)
            sort = np.lexsort(indices[:, self._walk[::-1]].T)
            self._count(indices[sort])
            self._numbers.append(some[sort])
            yield self.nodes

    def _count(self, indices: IntArray) -> None:
        for name, parts in self._tables.items():
            counter = self._counters.get(name)
            if counter:
                turned = np.ascontiguousarray(indices[:, self._walk])
                spread = counter[0].spread(turned, counter[1], self._most(name))
            else:
                spread = joined(self._one(index, name) for index in indices)
            parts.append(table_of(spread))  # at once in small numbers, so that one slice alone is large

    def _most(self, name: str | None) -> int:
        """Bound the values that differ at one node: so many sizes add up to more than all records."""
        sizes = isqrt(2 * self.counts.records) + 1
        return sizes if name is None else min(sizes, 1 << self.counts.sensitive[name].bits)

    def _one(self, index: IntArray, name: str | None) -> Spread:
        """Count one node by itself, where many at once do not fit a word or the memory."""
        counts = self._hubs.counts(self.lattice.node(index.tolist()))
        return spread_of_classes(Classes(counts), name)

    def tables(self) -> tuple[IntArray, dict[str | None, Table]]:
        """Return the nodes tabulated, by their place in the lattice, and the tables of each measure."""
        whole = len(self._numbers)  # a slice that was stopped halfway has no number yet
        self._numbers = [self.numbers]
        for parts in self._tables.values():
            del parts[whole:]
            parts[:] = [_one_table(parts)]
        return self._numbers[0], {name: parts[0] for name, parts in self._tables.items()}

    @property
    def numbers(self) -> IntArray:
        """The nodes tabulated, by their place in the lattice."""
        return np.concatenate([np.empty(0, np.int64), *self._numbers])


def _one_table(parts: list[Table]) -> Table:
    """Put tables of consecutive nodes one after the other, letting go of each once it is copied."""
    nodes, length = sum(len(part.classes) for part in parts), sum(len(part.values) for part in parts)
    begins = np.zeros(nodes + 1, np.int64)
    sizes = {"values": length, "below": length, "classes": nodes}
    kinds = {name: np.result_type(np.uint16, *{getattr(p, name).dtype for p in parts}) for name in sizes}
    found = {name: np.empty(size, kinds[name]) for name, size in sizes.items()}
    node = at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        begins[node + 1 : node + 1 + len(part.classes)] = part.begins[1:] + at
        found["values"][at : at + len(part.values)] = part.values
        found["below"][at : at + len(part.values)] = part.below
        found["classes"][node : node + len(part.classes)] = part.classes
        node, at = node + len(part.classes), at + len(part.values)
    return Table(begins, **found)
