"""Roll up counts to any node, starting from the nearest cached counts.

Columns are rolled up in a fixed order; those that reduce the counts most come first. Nodes that have the same
levels in the first half of the columns (a prefix) can share these roll-ups. When a prefix is requested a
second time, the counts after each of its columns are cached. The other columns are rolled up in one pass,
because the counts in between are seldom needed again.
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

_MEMORY_DIVISOR = 16  # the cache may use 1/16 of the memory
_ORDER_SAMPLE = 200_000  # number of combinations in the sample that determines the order of the columns


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
        """Start with counts at level 0; the order of the columns is computed if it is not given."""
        self.base = counts
        self.hierarchies = tuple(hierarchies)
        self.cost = cost
        self.sampled = counts.sample(_ORDER_SAMPLE)  # stored, because an engine may run a query for it
        self.order = order or self._shrinking_first()
        self._free_numbers = memory // _MEMORY_DIVISOR // 8  # the number of integers that may still be cached
        self._cached: OrderedDict[Node, Counts] = OrderedDict()
        self._bottom = (0,) * len(self.order)
        self._prefix_length = len(self.order) // 2
        self._requested: set[Node] = set()

    def _shrinking_first(self) -> tuple[int, ...]:
        """Order the columns by the number of combinations that remain if only this column is at its top."""
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
        return self._roll_up_to(tuple([node[column] for column in self.order]))

    def _is_first_request(self, prefix: Node) -> bool:
        """Return whether a prefix is requested for the first time."""
        is_first = prefix not in self._requested
        self._requested.add(prefix)
        return is_first

    def _roll_up_to(self, target: Node) -> Counts:
        cached_steps = 0 if self._is_first_request(target[: self._prefix_length]) else self._prefix_length
        start, source = self._nearest(target)
        levels = list(source)
        counts = self._cached[source] if source != self._bottom else self.base
        pending: dict[int, IntArray] = {}
        for position in range(start, len(target)):
            low, high = levels[position], target[position]
            if low < high:
                column = self.order[position]
                pending[column] = self.hierarchies[column].between(low, high)
                levels[position] = high
                if position < cached_steps:
                    counts = self._rolled(counts, pending, tuple(levels))
                    pending = {}
        return self._rolled(counts, pending, target) if pending else counts

    def _rolled(self, counts: Counts, groups: dict[int, IntArray], node: Node) -> Counts:
        self.cost.add_read(len(counts), len(groups))
        rolled = counts.roll_up(groups)
        self._cache(node, rolled)
        return rolled

    def _nearest(self, target: Node) -> tuple[int, Node]:
        """Find a cached node that has the target's levels, then one lower level, then only lowest levels."""
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
        self._free_numbers -= counts.numbers
        while self._free_numbers < 0 and len(self._cached) > 1:
            _, dropped = self._cached.popitem(last=False)
            self._free_numbers += dropped.numbers


_MIN_CORRECTION = 1.05  # minimum factor by which later estimates grow after an estimate that was too low
_REMOTE_SAMPLE = 100_000  # number of combinations in the sample that is used for estimates


class RemoteRollupCache(RollupCache):
    """Rolls up counts in an engine. Few roll-ups are fetched; nodes above are rolled up from these."""

    def __init__(
        self, counts: Counts, hierarchies: Sequence[Hierarchy], cost: SearchCost, memory: int
    ) -> None:
        super().__init__(counts, hierarchies, cost, memory)
        order = np.random.default_rng(0).permutation(len(self.sampled))
        sample_size = min(len(order), _REMOTE_SAMPLE)
        self._samples = self.sampled.only(order < sample_size / 2), self.sampled.only(order < sample_size)
        self._combinations_per_sample = len(counts) / max(1, sample_size)
        self._memory = memory
        self._correction = 1.0
        self._nodes = np.empty((0, len(hierarchies)), np.int64)  # nodes whose counts were fetched
        self._fetched: list[Counts] = []

    def counts(self, node: Node) -> Counts:
        """Return the counts at a node, from the smallest fetched counts below it, or else from the engine."""
        below = np.flatnonzero((self._nodes <= node).all(axis=1))
        if not len(below):
            fetched = self._fetch_below(node)
            if fetched is None:
                self.cost.add_read(self.base.rows_read, sum(level > 0 for level in node))
                return self.base.roll_up(self._steps((0,) * len(node), node))
            below = np.array([fetched])
        index = min(below.tolist(), key=lambda number: len(self._fetched[number]))
        counts = self._fetched[index]
        groups = self._steps(self._nodes[index].tolist(), node)
        self.cost.add_read(len(counts), len(groups))
        return counts.roll_up(groups) if groups else counts

    def _steps(self, low: Sequence[int], high: Sequence[int]) -> dict[int, IntArray]:
        pairs = zip(self.hierarchies, low, high, strict=True)
        return {c: h.between(a, b) for c, (h, a, b) in enumerate(pairs) if a < b}

    def _fetch_below(self, node: Node) -> int | None:
        """Fetch the counts of the lowest node below whose counts are estimated to fit; return their index.

        Return None if no counts fit. After an estimate that was too low, later estimates are increased.
        """
        while (low := self._lowest(node)) is not None:
            self.cost.add_read(self.base.rows_read, sum(level > 0 for level in low))
            counts = self.base.roll_up(self._steps((0,) * len(low), low))
            if not counts.remote:
                self._keep(low, counts)
                return len(self._fetched) - 1
            self._correction *= max(_MIN_CORRECTION, len(counts) / self._estimate(low))
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
        """Lower the columns, the last one in the order first, as far as the classes are estimated to fit."""
        if not self._estimate(node):
            return None
        levels = list(node)
        for column in reversed(self.order):
            for level in range(node[column]):
                levels[column] = level
                if self._estimate(tuple(levels)):
                    break
                levels[column] = node[column]
        return tuple(levels)

    def _estimate(self, node: Node) -> int:
        """Estimate the number of classes of a node from a sample and half of it; return 0 if they do not fit.

        The number of classes is assumed to grow with a power of the number of combinations. In fact the
        exponent decreases, so the estimate tends to be too large.
        """
        groups = self._steps((0,) * len(node), node)
        half, full = (len(sample.roll_up(groups)) if groups else len(sample) for sample in self._samples)
        growth = min(1.0, log2(max(1, full) / max(1, half)))
        number = int(full * self._combinations_per_sample**growth * self._correction)
        return number if self.base.fits(number, self._memory) else 0


def rollup_cache(
    counts: Counts, hierarchies: Sequence[Hierarchy], cost: SearchCost, memory: int
) -> RollupCache:
    """Return the cache for counts in memory or in an engine."""
    return (RemoteRollupCache if counts.remote else RollupCache)(counts, hierarchies, cost, memory)
