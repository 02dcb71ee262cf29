"""Hubs: counts already rolled up, kept within a memory budget, from which further nodes roll up.

A node is reached column by column, the columns that shrink the counts most first. Nodes that begin alike
share their beginning: once one has been asked for again, every step of it is kept. The other columns are
rolled up in one pass, for what lies between is seldom asked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from shoal.core.arrays import IntArray
from shoal.core.books import Books
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice, Node

_SHARE = 16  # of the memory: what is held beside the counts themselves
_SAMPLE = 200_000  # combinations that are enough to order the columns by


class Hubs:
    """Rolls up to any node from the nearest counts it holds."""

    def __init__(self, counts: Counts, hierarchies: Sequence[Hierarchy], books: Books, memory: int) -> None:
        """Begin with the counts as they are (every column at level 0)."""
        self.base = counts
        self.hierarchies = tuple(hierarchies)
        self.books = books
        self.sampled = counts.sample(_SAMPLE)  # once: an engine may have to be asked
        self.order = self._shrinking_first()
        self._room = memory // _SHARE // 8  # numbers held
        self._held: OrderedDict[Node, Counts] = OrderedDict()
        self._bottom = (0,) * len(self.order)
        self._shared = len(self.order) // 2
        self._begun = len(self.order) // 3
        self._asked: set[Node] = set()

    def _shrinking_first(self) -> tuple[int, ...]:
        """Order the columns by how few combinations remain when one alone is at its top."""
        remaining = []
        for column, hierarchy in enumerate(self.hierarchies):
            top = self.sampled.roll_up({column: hierarchy.groups(hierarchy.height)})
            self.books.rows_scanned += len(self.sampled)
            self.books.subset_evaluations += 1
            remaining.append((len(top), column))
        return tuple(column for _, column in sorted(remaining))

    def walk(self, lattice: Lattice) -> tuple[int, ...]:
        """Return the lattice's axes in the order in which nodes share most of their roll-ups."""
        rank = {column: place for place, column in enumerate(self.order)}
        first = [min(rank[column] for column in axis) for axis in lattice.axes]
        return tuple(sorted(range(len(first)), key=first.__getitem__))

    def counts(self, node: Node) -> Counts:
        """Return the counts at a node, rolled up from the nearest that are held."""
        return self._reach(tuple([node[column] for column in self.order]))

    def below(self, node: Node) -> tuple[Node, Counts]:
        """Return a node below, of which the first columns are generalized (when asked again), and counts."""
        wanted = [node[column] for column in self.order[: self._begun]]
        target = (*wanted, *self._bottom[self._begun :])
        if self._first_time(target):
            _, target = self._nearest(target)
        counts = self._reach(target)
        lower = [0] * len(node)
        for column, level in zip(self.order, target, strict=True):
            lower[column] = level
        return tuple(lower), counts

    def _first_time(self, beginning: Node) -> bool:
        """Tell whether a beginning is asked for the first time: what is used once is not worth holding."""
        fresh = beginning not in self._asked
        self._asked.add(beginning)
        return fresh

    def _reach(self, target: Node) -> Counts:
        share = 0 if self._first_time(target[: self._shared]) else self._shared
        place, source = self._nearest(target)
        at = list(source)
        counts = self._held[source] if source != self._bottom else self.base
        waiting: dict[int, IntArray] = {}
        for position in range(place, len(target)):
            low, high = at[position], target[position]
            if low < high:
                column = self.order[position]
                waiting[column] = self.hierarchies[column].between(low, high)
                at[position] = high
                if position < share:
                    counts = self._rolled(counts, waiting, tuple(at))
                    waiting = {}
        return self._rolled(counts, waiting, target) if waiting else counts

    def _rolled(self, counts: Counts, groups: dict[int, IntArray], node: Node) -> Counts:
        self.books.read(len(counts), len(groups))
        rolled = counts.roll_up(groups)
        self._hold(node, rolled)
        return rolled

    def _nearest(self, target: Node) -> tuple[int, Node]:
        """Find held counts that agree with the target up to a position and are below it there."""
        held = self._held
        if target in held:
            held.move_to_end(target)
            return len(target), target
        for position in range(len(target) - 1, -1, -1):
            for level in range(target[position] - 1, -1, -1):
                source = (*target[:position], level, *self._bottom[position + 1 :])
                if source in held:
                    held.move_to_end(source)
                    return position, source
        return 0, self._bottom

    def _hold(self, node: Node, counts: Counts) -> None:
        self._held[node] = counts
        self._room -= counts.numbers
        while self._room < 0 and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._room += dropped.numbers
