"""A tree over sets of cuts by order, which proves how little can be lost.

A set of cuts is a head. A head and a tail of cuts that may still be taken stand for all sets between: a
node of the set-enumeration tree (Bayardo and Agrawal 2005). Classes of fewer than k records are suppressed.

Lemma (suppression): what a head suppresses, every larger set suppresses, for its classes are parts.
Lemma (bound): any other record costs what its class costs under head and tail together at least, and k.
Lemma (prices): see `shoal.core.cut_prices`; it ties classes together.
Lemma (useless cuts): let a cut divide each class of the head that it divides into sides of which one has
fewer than k records, the smaller b and the larger a with 2a + b <= N (or both fewer than k). Then no set
between head and tail is better with it than without it: the part that is cut off is suppressed, which costs
N for each of at most b records, while keeping it costs at most 2a + b for each (DM); where a record that is
not of its class's majority costs 1 (CM), keeping them costs at most 1 for each. This holds class by class:
the least cost of one class is reached with cuts that have k records on both sides of it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.cut_greedy import Check
from shoal.core.cut_ground import Ground, Head
from shoal.core.evaluation import below
from shoal.errors import OutOfTime

if TYPE_CHECKING:
    from shoal.core.cut_tables import StateArray, Table

_MOST_ASIDE = 500_000  # open nodes, of some 300 bytes each
_SHARE = 0.03  # of the way from the least bound to the incumbent that a branch is followed before others are


@dataclass(frozen=True)
class _Open:
    """A node of the tree that is not decided."""

    bound: float
    cut: int  # to decide next
    state: StateArray
    table: Table = field(repr=False)
    gone: int


@dataclass
class Tree:
    """Enumerates sets of cuts, the most promising first, and proves how little any can cost.

    The node with the least bound is followed, cut by cut, as long as bounds below it stay near: only then
    it is laid aside, without its table. Where too many lie aside, branches are followed to their end.
    """

    ground: Ground
    best: Head
    nodes: int = 0  # that were weighed
    # A heap of the nodes laid aside: bound, order, cut, state.
    aside: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    most_aside: int = _MOST_ASIDE

    def __post_init__(self) -> None:
        """Weigh the root, and put it aside."""
        self._decide(_Open(0.0, -1, self.ground.state(), self.ground.table(), 0), take=False)
        self._put_aside()

    @property
    def bound(self) -> float:
        """No set of cuts that is acceptable costs less."""
        open_bounds = [node.bound for node in self.stack]
        return min([self.best.cost, *open_bounds, *(entry[0] for entry in self.aside[:1])])

    @property
    def closed(self) -> bool:
        """Whether nothing is left that could cost less than the best."""
        return not below(self.bound, self.best.cost)

    def search(self, check: Check) -> None:
        """Go on until the best set is proven to be the best, or the time is up."""
        try:
            while self.aside and below(self.aside[0][0], self.best.cost):
                self._follow(self._resumed(), check)
        except OutOfTime:
            self._put_aside()
            raise

    def _follow(self, node: _Open, check: Check) -> None:
        """Branch from a node on, and lay aside what leads too far from its bound, while there is room."""
        reach = node.bound + _SHARE * (self.best.cost - node.bound)
        self.stack.append(node)
        while self.stack:
            check()
            if self.stack[-1].bound > reach and len(self.aside) < self.most_aside:
                self._put_aside(1)
            else:
                following = self.stack.pop()
                for take in (False, True):  # the one that is taken is followed first
                    self._decide(following, take=take)

    def _decide(self, node: _Open, *, take: bool) -> None:
        """Take the next cut of a node, or leave it out; what cannot beat the best set is forgotten."""
        from shoal.core.cut_nodes import settle
        from shoal.core.cut_tables import HEAD

        ground = self.ground
        state = node.state.copy()
        codes, sizes, labels, begins, gone, bound, following, cost, head = settle(
            *node.table, state, ground.begins, node.cut, take,
            ground.k, ground.records, ground.limit, node.gone, self.best.cost, ground.minority,
        )  # fmt: skip
        self.nodes += 1
        if below(cost, self.best.cost):
            self.best = ground.head(head == HEAD)
        if below(bound, self.best.cost):
            table = codes, sizes, labels, begins
            self.stack.append(_Open(max(bound, node.bound), following, state, table, gone))

    def _put_aside(self, most: int | None = None) -> None:
        """Lay open nodes aside, the last ones first."""
        for _ in range(len(self.stack) if most is None else most):
            node = self.stack.pop()
            heapq.heappush(self.aside, (node.bound, -self.nodes, node.cut, node.state.tobytes()))

    def _resumed(self) -> _Open:
        """Take the node with the least bound up again."""
        from shoal.core.cut_tables import HEAD, OUT, divide, merge

        ground = self.ground
        bound, _, cut, raw = heapq.heappop(self.aside)
        state = np.frombuffer(raw, np.uint8).copy()
        table: Table = merge(*ground.table(), ground.state(), state != OUT, ground.begins)
        gone = 0
        for taken in np.flatnonzero(state == HEAD):
            *table, more = divide(*table, state, ground.begins, taken, ground.k)
            gone += more
        return _Open(bound, cut, state, table, gone)
