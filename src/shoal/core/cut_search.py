"""Searches over sets of cuts by order: greedy ones, and a tree that proves how little can be lost.

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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import label_of
from shoal.core.contracts import Charge
from shoal.core.cuts import arrangements, by_order
from shoal.core.evaluate import Problem, below
from shoal.core.ranges import Arrangement
from shoal.core.recoding import Recoding
from shoal.errors import InternalError, OutOfTime

if TYPE_CHECKING:
    from shoal.core.cut_tables import CodeArray, StateArray, Table

Check = Callable[[], None]  # raises OutOfTime
_PATIENCE = 200  # sets near the best one that are tried in vain before it is believed, or
_PER_CUT = 4  # so many for each cut, where those are fewer
_FURTHER = 10  # of them in vain, and the next may be one cut further away
_MOST_ASIDE = 500_000  # open nodes, of some 300 bytes each
_SHARE = 0.03  # of the way from the least bound to the incumbent that a branch is followed before others are


@dataclass(frozen=True)
class Head:
    """A set of cuts, what it costs and how many records it suppresses."""

    cuts: BoolArray  # (cuts,)
    cost: float
    gone: int


@dataclass(frozen=True)
class Ground:
    """The cuts of a problem, and the rows that all of them together tell apart."""

    columns: tuple[Arrangement, ...]
    begins: IntArray  # (columns + 1,): each column's cuts
    places: IntArray  # (cuts,): the place before which each lies
    codes: CodeArray  # (columns, rows): how many cuts lie below
    sizes: IntArray  # (rows,)
    labels: IntArray  # (rows, labels); (rows, 0) where a record costs its class's size
    k: int
    limit: int  # records that may be suppressed; never all
    minority: bool  # a record costs 1 when it is not of its class's majority

    @cached_property
    def records(self) -> int:
        """All records."""
        return int(self.sizes.sum())

    def __len__(self) -> int:
        """Return the number of cuts."""
        return len(self.places)

    def loss(self, cost: float) -> float:
        """Return the metric's loss of a cost."""
        return cost / self.records if self.minority else cost

    def table(self) -> Table:
        """Return everything as one class."""
        return self.codes, self.sizes, self.labels, np.array([0, len(self.sizes)])

    def state(self) -> StateArray:
        """Return the state in which every cut may be taken."""
        return np.ones(len(self), np.uint8)

    def recoding(self, problem: Problem, cuts: BoolArray) -> Recoding:
        """Return the recoding of a set of cuts."""
        taken = [self.places[a:b][cuts[a:b]] for a, b in zip(self.begins[:-1], self.begins[1:], strict=True)]
        return by_order(problem, taken)

    def head(self, cuts: BoolArray) -> Head:
        """Weigh a set of cuts."""
        _, sizes, labels, _ = self.classes(cuts)
        small = sizes < self.k
        gone = int(sizes[small].sum())
        kept = sizes[~small].astype(np.float64)
        if self.minority:
            return Head(cuts, float(kept.sum() - labels[~small].max(axis=1).sum()) + gone, gone)
        return Head(cuts, float(np.square(kept).sum()) + float(self.records) * gone, gone)

    def classes(self, cuts: BoolArray) -> Table:
        """Return the classes of a set of cuts, those below k too, as rows."""
        from shoal.core.cut_tables import merge

        found: Table = merge(*self.table(), self.state(), cuts, self.begins)
        return found


def ground_of(problem: Problem) -> Ground:
    """Lay out the cuts of a problem."""
    columns = tuple(arrangements(problem))
    places, codes = [], []
    for number, column in enumerate(columns):
        own = np.arange(1, len(column.positions))
        places.append(own)
        at = column.places[problem.counts.codes(number)]
        codes.append(np.searchsorted(own, at, side="right"))
    begins = np.concatenate(([0], np.cumsum([len(own) for own in places])))
    labels = np.zeros((len(problem.counts), 0), np.int64)
    minority = problem.metric.charge is Charge.MINORITY
    if minority:
        name = label_of(problem.counts)
        if name is None:
            message = "Labels were asked for and not counted."
            raise InternalError(message)
        entries = problem.counts.sensitive[name]
        labels = np.zeros((len(problem.counts), int(entries.codes.max()) + 1), np.int64)
        np.add.at(labels, (entries.rows, entries.codes), entries.counts)
    ground = Ground(
        columns,
        begins,
        np.concatenate(places),
        np.stack(codes).astype(np.int32),
        problem.counts.sizes,
        labels,
        problem.least_size,
        min(problem.limit, problem.records - 1),
        minority,
    )
    alike, sizes, labels, _ = ground.classes(np.ones(len(ground), np.bool_))
    return replace(ground, codes=alike, sizes=sizes, labels=labels)


class Greedy:
    """Descends from sets of cuts to better ones, and remembers the best of all."""

    def __init__(self, ground: Ground, check: Check) -> None:
        """Begin with no cut at all."""
        self.ground = ground
        self.check = check
        self.best = ground.head(np.zeros(len(ground), np.bool_))

    def from_starts(self, starts: int, seed: int) -> None:
        """Descend from no cut and from so many random sets, of any density."""
        lots = np.random.default_rng(seed)
        self.descend(self.best.cuts)
        for _ in range(starts):
            self.descend(lots.random(len(self.ground)) < lots.random() ** 2)

    def from_best(self, seed: int) -> None:
        """Change the best set here and there and descend again, until that helps no more."""
        lots = np.random.default_rng([seed, 1])
        tried, most = 0, min(_PATIENCE, _PER_CUT * len(self.ground))
        while tried < most:
            before = self.best
            cuts = before.cuts.copy()
            taken = np.flatnonzero(cuts)
            further = tried // _FURTHER
            cuts[lots.permutation(taken)[: lots.integers(1, 5 + further)]] = False
            cuts[lots.integers(0, len(cuts), lots.integers(0, 6 + further))] = True
            self.descend(cuts)
            tried = tried + 1 if self.best is before else 0

    def descend(self, cuts: BoolArray) -> None:
        """Leave cuts out and take others, the best first, as long as that lowers the cost."""
        found = self.ground.head(cuts)
        while True:
            found = self._generalized(found)
            cost = found.cost
            found = self._specialized(found)
            if found.cost >= cost:
                break
        self._remember(found)

    def _remember(self, head: Head) -> None:
        """Keep a set of cuts that is acceptable and better than the best."""
        if head.gone <= self.ground.limit and below(head.cost, self.best.cost):
            self.best = head

    def _pause(self, head: Head) -> None:
        """Look at the clock; when the time is up, what is at hand may be the best."""
        try:
            self.check()
        except OutOfTime:
            self._remember(head)
            raise

    def _generalized(self, head: Head) -> Head:
        """Leave out cuts, the one first that leaves the fewest records above the limit, at the least cost."""
        from shoal.core.cut_steps import removed
        from shoal.core.cut_tables import HEAD, merge

        ground = self.ground
        classes = ground.classes(head.cuts)
        while head.cuts.any():
            self._pause(head)
            state = np.where(head.cuts, HEAD, 0).astype(np.uint8)
            costs, gone = removed(
                *classes[:3], state, ground.begins, ground.k, ground.records, ground.minority
            )
            taken = np.flatnonzero(head.cuts)
            costs, gone = head.cost + costs[taken], head.gone + gone[taken]
            over = np.maximum(gone - ground.limit, 0)
            first = np.lexsort((costs, over))[0]
            if head.gone <= ground.limit and not (over[first] == 0 and below(costs[first], head.cost)):
                break
            kept = head.cuts.copy()
            kept[taken[first]] = False
            classes = merge(*classes, state, kept, ground.begins)
            head = Head(kept, float(costs[first]), int(gone[first]))
        return ground.head(head.cuts)

    def _specialized(self, head: Head) -> Head:
        """Take cuts, the one first that lowers the cost most, within the limit."""
        from shoal.core.cut_steps import added
        from shoal.core.cut_tables import divide

        ground = self.ground
        state, table = ground.state(), ground.table()
        for cut in np.flatnonzero(head.cuts):
            self._pause(head)
            *table, _ = divide(*table, state, ground.begins, cut, ground.k)
        while True:
            self._pause(head)
            costs, lost = added(*table, state, ground.begins, ground.k, ground.records, ground.minority)
            costs[head.cuts | (head.gone + lost > ground.limit)] = np.inf
            if not len(costs):
                return head
            following = int(costs.argmin())
            if not below(head.cost + costs[following], head.cost):
                return head
            *table, gone = divide(*table, state, ground.begins, following, ground.k)
            cuts = head.cuts.copy()
            cuts[following] = True
            head = Head(cuts, float(head.cost + costs[following]), head.gone + gone)


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
    aside: list[tuple[float, int, int, bytes]] = field(
        default_factory=list
    )  # a heap: bound, order, cut, state
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
