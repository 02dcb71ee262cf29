"""A tree over sets of cuts by order, which proves the least loss.

A set of cuts is a head. A head and a tail of undecided cuts stand for all sets in between: a node of the
set-enumeration tree (Bayardo and Agrawal 2005). Classes of fewer than k records are suppressed.

Lemma (suppression): records that a head suppresses are suppressed by every larger set, because its classes
are parts.

Lemma (bound): any other record costs at least what its class costs under head and tail together, and at least
k.

Lemma (useless cuts): let a cut divide each class of the head into two sides, one of which has fewer than k
records: the smaller b and the larger a with 2a + b <= N (or both fewer than k). Then no set between head and
tail is better with the cut than without it. The part that is cut off is suppressed, which costs N for each of
at most b records, while keeping it costs at most 2a + b for each (DM). If a record outside the majority of
its class costs 1 (CM), keeping it costs at most 1. This holds class by class: the least cost of one class is
reached with cuts that have k records on both sides.

Lemma (target): a search that drops every node whose bound is not below a target still visits all sets that
cost less. If it ends, no set costs less than the target, or than the best set. The lower the target, the more
cuts are forced, and the shorter the search. Searches with rising targets therefore prove a bound sooner than
one search that always expands the node of least bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, log
from typing import TYPE_CHECKING

from shoal.algorithms.order_cuts.greedy import Check
from shoal.algorithms.order_cuts.problem_cuts import Head, ProblemCuts
from shoal.core.evaluation import below

if TYPE_CHECKING:
    from shoal.algorithms.order_cuts.tables import ClassTable, StateArray

_FIRST = 1 / 16  # half of the first step of the target, as a share of the gap at the root
_GROWTH = 3.0  # how many times as many nodes a search should have as the one before
_LAST = 1.1, 6.0  # growth of a search that is made as long as the time allows, because no other would fit
_SAFE = 0.8  # share of the time left that such a search is expected to take
_FEW = 50  # numbers of nodes below this say little about the growth


@dataclass(frozen=True)
class _Open:
    """An undecided node of the tree."""

    bound: float
    cut: int  # to decide next
    state: StateArray
    table: ClassTable = field(repr=False)
    gone: int


@dataclass
class CutTree:
    """Searches the tree depth first for sets below a target, which rises until it is the best cost."""

    problem_cuts: ProblemCuts
    best: Head
    nodes: int = 0  # the number of evaluated nodes
    proven: float = 0.0  # no set of cuts costs less than this, or than the best
    target: float = 0.0
    stack: list[_Open] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = self.best.cost
        self.start()
        self.proven = self.target = self.bound
        self.stack.clear()
        self._step = _FIRST * (self.best.cost - self.proven)
        self._begin, self._last, self._left = 0, 1, inf

    @property
    def bound(self) -> float:
        """A lower bound of the cost of every acceptable set of cuts."""
        least_open = min([self.target, *(node.bound for node in self.stack)])
        return min(self.best.cost, max(self.proven, least_open))

    @property
    def closed(self) -> bool:
        """Whether no set of cuts could cost less than the best."""
        return not below(self.bound, self.best.cost)

    def search(self, check: Check, seconds_left: Callable[[], float] = lambda: inf) -> None:
        """Continue until the best set is proven to be optimal, or the time is up."""
        while not self.closed:
            check()
            if self.stack:
                self.expand()
            else:
                self._raise_target(seconds_left())

    def _raise_target(self, left: float) -> None:
        """Start again from the root, with a target that lets the search grow as wanted, and end in time."""
        self.proven = self.bound
        took, self._left = self._left - left, left
        possible = _SAFE * left / took if took > 0 else inf
        wanted = possible if _LAST[0] < possible < _LAST[1] else _GROWTH
        before, self._last = self._last, self.nodes - self._begin
        self._begin = self.nodes
        growth = (self._last + _FEW) / (before + _FEW)
        self._step *= min(2.0, log(wanted) / log(max(growth, 1.01)))
        most = self.best.cost
        self.target = most if most - self.proven < 2 * self._step else self.proven + self._step
        self.start()

    def start(self) -> None:
        """Begin a search below the target, at the root."""
        self._decide(_Open(0.0, -1, self.problem_cuts.state(), self.problem_cuts.table(), 0), take=False)

    def expand(self) -> None:
        """Decide the next cut of the last open node."""
        node = self.stack.pop()
        for take in (False, True):  # the node with the cut is expanded first
            self._decide(node, take=take)

    def _decide(self, node: _Open, *, take: bool) -> None:
        """Add the next cut of a node, or leave it out; nodes that cannot beat the target are dropped."""
        from shoal.algorithms.order_cuts.nodes import decide
        from shoal.algorithms.order_cuts.tables import HEAD

        problem_cuts = self.problem_cuts
        state = node.state.copy()
        codes, sizes, labels, begins, gone, bound, following, cost, head = decide(
            *node.table, state, problem_cuts.begins, node.cut, take,
            problem_cuts.k, problem_cuts.records, problem_cuts.limit, node.gone,
            min(self.target, self.best.cost), problem_cuts.minority,
        )  # fmt: skip
        self.nodes += 1
        if below(cost, self.best.cost):
            self.best = problem_cuts.head(head == HEAD)
        if below(bound, min(self.target, self.best.cost)):
            table = codes, sizes, labels, begins
            self.stack.append(_Open(max(bound, node.bound), following, state, table, gone))
