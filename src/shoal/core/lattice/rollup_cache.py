"""Roll up counts to any node, starting from the nearest cached counts.

A node is reached column by column; columns that reduce the counts most come first. Nodes with the same first
levels share these roll-ups: when a prefix is requested a second time, every step of it is cached. The other
columns are rolled up in one pass, because the counts in between are seldom needed again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import log2

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Counts
from shoal.core.evaluation import SearchCost
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Lattice, Node

_SHARE = 16  # the cache may use 1/16 of the memory, in addition to the counts themselves
_SAMPLE = 200_000  # number of combinations in the sample that is used to order the columns


class RollupCache:
    """Rolls up to any node from the nearest cached counts."""

    def __init__(
        self,
        counts: Counts,
        hierarchies: Sequence[Hierarchy],
        cost: SearchCost,
        memory: int,
        order: tuple[int, ...] | None = None,
    ) -> None:
        """Start with counts in which every column is at level 0; the order is computed if it is not given."""
        self.base = counts
        self.hierarchies = tuple(hierarchies)
        self.cost = cost
        self.sampled = counts.sample(_SAMPLE)  # only once, because an engine may run a query
        self.order = order or self._shrinking_first()
        self._room = memory // _SHARE // 8  # how many more integers may be cached
        self._cached: OrderedDict[Node, Counts] = OrderedDict()
        self._bottom = (0,) * len(self.order)
        self._shared = len(self.order) // 2
        self._asked: set[Node] = set()

    def _shrinking_first(self) -> tuple[int, ...]:
        """Order the columns by the number of combinations that remain when only that column is at its top."""
        remaining = []
        for column, hierarchy in enumerate(self.hierarchies):
            top = self.sampled.roll_up({column: hierarchy.groups(hierarchy.height)})
            self.cost.column_counts += 1
            remaining.append((len(top), column))
        return tuple(column for _, column in sorted(remaining))

    def walk(self, lattice: Lattice) -> tuple[int, ...]:
        """Return the axes of the lattice in the order in which nodes share most roll-ups."""
        rank = {column: position for position, column in enumerate(self.order)}
        first = [min(rank[column] for column in axis) for axis in lattice.axes]
        return tuple(sorted(range(len(first)), key=first.__getitem__))

    def counts(self, node: Node) -> Counts:
        """Return the counts at a node."""
        return self._reach(tuple([node[column] for column in self.order]))

    def _first_time(self, beginning: Node) -> bool:
        """Return whether a prefix is requested for the first time: it is cached when it is used again."""
        fresh = beginning not in self._asked
        self._asked.add(beginning)
        return fresh

    def _reach(self, target: Node) -> Counts:
        share = 0 if self._first_time(target[: self._shared]) else self._shared
        start, source = self._nearest(target)
        at = list(source)
        counts = self._cached[source] if source != self._bottom else self.base
        waiting: dict[int, IntArray] = {}
        for position in range(start, len(target)):
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
        self.cost.read(len(counts), len(groups))
        rolled = counts.roll_up(groups)
        self._cache(node, rolled)
        return rolled

    def _nearest(self, target: Node) -> tuple[int, Node]:
        """Find a cached node that equals the target before some position and is below it there."""
        cached = self._cached
        if target in cached:
            cached.move_to_end(target)
            return len(target), target
        for position in range(len(target) - 1, -1, -1):
            for level in range(target[position] - 1, -1, -1):
                source = (*target[:position], level, *self._bottom[position + 1 :])
                if source in cached:
                    cached.move_to_end(source)
                    return position, source
        return 0, self._bottom

    def _cache(self, node: Node, counts: Counts) -> None:
        self._cached[node] = counts
        self._room -= counts.numbers
        while self._room < 0 and len(self._cached) > 1:
            _, dropped = self._cached.popitem(last=False)
            self._room += dropped.numbers


_MORE = 1.05  # minimum factor by which later estimates grow if an estimate was too low
_REMOTE_SAMPLE = 100_000  # number of combinations in the sample that is used for estimates


class RemoteRollupCache(RollupCache):
    """Rolls up counts in an engine; the few roll-ups that are fetched are reused for all nodes above."""

    def __init__(
        self, counts: Counts, hierarchies: Sequence[Hierarchy], cost: SearchCost, memory: int
    ) -> None:
        super().__init__(counts, hierarchies, cost, memory)
        lots = np.random.default_rng(0).permutation(len(self.sampled))
        some = min(len(lots), _REMOTE_SAMPLE)
        self._samples = self.sampled.only(lots < some / 2), self.sampled.only(lots < some)
        self._share = len(counts) / max(1, some)
        self._memory = memory
        self._caution = 1.0
        self._nodes = np.empty((0, len(hierarchies)), np.int64)  # nodes whose counts were fetched
        self._fetched: list[Counts] = []

    def counts(self, node: Node) -> Counts:
        """Return the counts at a node, from the smallest fetched counts below it, else from the engine."""
        below = np.flatnonzero((self._nodes <= node).all(axis=1))
        if not len(below):
            fetched = self._fetch_below(node)
            if fetched is None:
                self.cost.read(self.base.rows_read, sum(level > 0 for level in node))
                return self.base.roll_up(self._steps((0,) * len(node), node))
            below = np.array([fetched])
        index = min(below.tolist(), key=lambda number: len(self._fetched[number]))
        counts = self._fetched[index]
        groups = self._steps(self._nodes[index].tolist(), node)
        self.cost.read(len(counts), len(groups))
        return counts.roll_up(groups) if groups else counts

    def _steps(self, low: Sequence[int], high: Sequence[int]) -> dict[int, IntArray]:
        pairs = zip(self.hierarchies, low, high, strict=True)
        return {c: h.between(a, b) for c, (h, a, b) in enumerate(pairs) if a < b}

    def _fetch_below(self, node: Node) -> int | None:
        """Fetch the counts of a low node below that is estimated to fit; return their index, or None.

        After a wrong estimate, later estimates are more cautious.
        """
        while (low := self._lowest(node)) is not None:
            self.cost.read(self.base.rows_read, sum(level > 0 for level in low))
            counts = self.base.roll_up(self._steps((0,) * len(low), low))
            if not counts.remote:
                self._keep(low, counts)
                return len(self._fetched) - 1
            self._caution *= max(_MORE, len(counts) / self._estimate(low))
        return None

    def _keep(self, node: Node, counts: Counts) -> None:
        """Cache counts, and drop the oldest if there is no room for all."""
        self._nodes = np.vstack([self._nodes, node])
        self._fetched.append(counts)
        while (
            sum(cached.numbers for cached in self._fetched) * 8 > self._memory // 4 and len(self._fetched) > 1
        ):
            self._nodes = self._nodes[1:]
            self._fetched.pop(0)

    def _lowest(self, node: Node) -> Node | None:
        """Lower each column as far as the classes are estimated to fit; columns that add few come first."""
        if not self._estimate(node):
            return None
        at = list(node)
        for column in reversed(self.order):
            for level in range(node[column]):
                at[column] = level
                if self._estimate(tuple(at)):
                    break
                at[column] = node[column]
        return tuple(at)

    def _estimate(self, node: Node) -> int:
        """Estimate the number of classes of a node from a sample and its half; return 0 if they do not fit.

        The number grows with a power of the number of combinations, whose exponent decreases, so the estimate
        tends to be too large.
        """
        groups = self._steps((0,) * len(node), node)
        half, seen = (len(sample.roll_up(groups)) if groups else len(sample) for sample in self._samples)
        growth = min(1.0, log2(max(1, seen) / max(1, half)))
        number = int(seen * self._share**growth * self._caution)
        return number if self.base.fits(number, self._memory) else 0


def rollup_cache(
    counts: Counts, hierarchies: Sequence[Hierarchy], cost: SearchCost, memory: int
) -> RollupCache:
    """Return the cache for counts in memory or in an engine."""
    return (RemoteRollupCache if counts.remote else RollupCache)(counts, hierarchies, cost, memory)
