"""Hubs over far counts: few roll-ups come from the engine, as low as they fit, and serve all nodes above."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.books import Books
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.hubs import Hubs
from shoal.core.lattice import Node

_MORE = 1.05  # times as many, at least, where an estimate was too low
_SAMPLE = 100_000  # combinations that are enough to tell how many a node has


class FarHubs(Hubs):
    """Rolls up from counts that came here once, else asks the engine."""

    def __init__(self, counts: Counts, hierarchies: Sequence[Hierarchy], books: Books, memory: int) -> None:
        """Begin with nothing here but a sample."""
        super().__init__(counts, hierarchies, books, memory)
        lots = np.random.default_rng(0).permutation(len(self.sampled))
        some = min(len(lots), _SAMPLE)
        self._samples = self.sampled.only(lots < some / 2), self.sampled.only(lots < some)
        self._share = len(counts) / max(1, some)
        self._memory = memory
        self._caution = 1.0
        self._nodes = np.empty((0, len(hierarchies)), np.int64)  # those held
        self._here: list[Counts] = []

    def counts(self, node: Node) -> Counts:
        """Return the counts at a node: from the smallest here that lie below it, else from the engine."""
        below = np.flatnonzero((self._nodes <= node).all(axis=1))
        if not len(below):
            came = self._come(node)
            if came is None:
                self.books.read(self.base.rows_read, sum(level > 0 for level in node))
                return self.base.roll_up(self._steps((0,) * len(node), node))
            below = np.array([came])
        place = min(below.tolist(), key=lambda held: len(self._here[held]))
        here = self._here[place]
        groups = self._steps(self._nodes[place].tolist(), node)
        self.books.read(len(here), len(groups))
        return here.roll_up(groups) if groups else here

    def _steps(self, low: Sequence[int], high: Sequence[int]) -> dict[int, IntArray]:
        pairs = zip(self.hierarchies, low, high, strict=True)
        return {c: h.between(a, b) for c, (h, a, b) in enumerate(pairs) if a < b}

    def _come(self, node: Node) -> int | None:
        """Bring a node below here, as low as it seems to fit; tell where it is held, if it does.

        Where it does not after all, estimates are made with more caution from then on.
        """
        while (low := self._lowest(node)) is not None:
            self.books.read(self.base.rows_read, sum(level > 0 for level in low))
            counts = self.base.roll_up(self._steps((0,) * len(low), low))
            if counts.held:
                self._keep(low, counts)
                return len(self._here) - 1
            self._caution *= max(_MORE, len(counts) / self._estimate(low))
        return None

    def _keep(self, node: Node, counts: Counts) -> None:
        """Hold counts, and let go of those that came first where there is no room for all."""
        self._nodes = np.vstack([self._nodes, node])
        self._here.append(counts)
        while sum(held.numbers for held in self._here) * 8 > self._memory // 4 and len(self._here) > 1:
            self._nodes = self._nodes[1:]
            self._here.pop(0)

    def _lowest(self, node: Node) -> Node | None:
        """Take each column down as far as classes seem to fit, those that add the fewest first."""
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
        """Estimate a node's classes by those of a sample and of its half; 0 where they do not fit.

        They grow by a power of the combinations, and ever slower: so the estimate is rather too large.
        """
        groups = self._steps((0,) * len(node), node)
        half, seen = (len(own.roll_up(groups)) if groups else len(own) for own in self._samples)
        growth = min(1.0, log2(max(1, seen) / max(1, half)))
        number = int(seen * self._share**growth * self._caution)
        return number if self.base.fits(number, self._memory) else 0


def hubs_over(counts: Counts, hierarchies: Sequence[Hierarchy], books: Books, memory: int) -> Hubs:
    """Return what rolls counts up, wherever they are."""
    return (Hubs if counts.held else FarHubs)(counts, hierarchies, books, memory)
