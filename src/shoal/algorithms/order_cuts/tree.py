"""A tree over sets of cuts by order, which proves the least loss.

A node of the set-enumeration tree (Bayardo and Agrawal 2005) has a *head*, the set of chosen cuts, and a
*tail*, the set of undecided cuts. It stands for all sets that contain the head and are contained in head and
tail together. Classes of fewer than k records are suppressed.

Lemma (suppression): records that a head suppresses are suppressed by every larger set, because the classes of
a larger set are parts of those of the head.

Lemma (bound): any record that is not suppressed costs at least as much as in its class under head and tail
together, and at least k.

Lemma (useless cuts): let a cut divide each class of the head into a smaller side of b < k records and a
larger side of a records. Let N be the number of all records, and 2a + b <= N or a < k. Then no set between
head and tail is better with the cut than without it. The smaller side is suppressed, which costs N for each
record. Keeping them costs at most 2a + b for each (DM). If a record outside the majority of its class costs 1
(CM), keeping it costs at most 1. This holds for each class separately: the least cost of a class is reached
with cuts that have k records on both sides.

Lemma (target): a search that drops every node whose bound is not below a target still visits all sets that
cost less than the target. If it ends, no set costs less than both the target and the best set. The lower the
target, the more decisions are forced, and the shorter the search. Searches with rising targets therefore
prove a bound sooner than one search that always expands the node of least bound.
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

_FIRST_STEP = 1 / 16  # half of the first step of the target, as a share of the gap at the root
_GROWTH = 3.0  # a search should have this many times as many nodes as the one before
_FINAL_GROWTH = 1.1, 6.0  # if the remaining time allows a growth in this range, one last search uses it all
_SAFE_SHARE = 0.8  # the share of the remaining time that such a search should take
_MIN_NODES = 50  # added to numbers of nodes, because small numbers say little about the growth


@dataclass(frozen=True)
class _Open:
    """An undecided node of the tree."""

    bound: float
    cut: int  # the cut to decide next
    state: StateArray
    table: ClassTable = field(repr=False)
    suppressed: int


@dataclass
class CutTree:
    """Searches the tree depth first for sets below a target, which rises until it is the best cost."""

    problem_cuts: ProblemCuts
    best: Head
    nodes: int = 0  # the number of evaluated nodes
    proven: float = 0.0  # no set of cuts costs less than both this bound and the best set
    target: float = 0.0
    stack: list[_Open] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = self.best.cost
        self.start()
        self.proven = self.target = self.bound
        self.stack.clear()
        self._step = _FIRST_STEP * (self.best.cost - self.proven)
        self._first_node, self._last_nodes, self._seconds_left = 0, 1, inf

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

    def _raise_target(self, seconds_left: float) -> None:
        """Start again from the root, with a higher target that should let the search end in time."""
        self.proven = self.bound
        seconds_taken, self._seconds_left = self._seconds_left - seconds_left, seconds_left
        possible = _SAFE_SHARE * seconds_left / seconds_taken if seconds_taken > 0 else inf
        growth_wanted = possible if _FINAL_GROWTH[0] < possible < _FINAL_GROWTH[1] else _GROWTH
        nodes_before, self._last_nodes = self._last_nodes, self.nodes - self._first_node
        self._first_node = self.nodes
        growth = (self._last_nodes + _MIN_NODES) / (nodes_before + _MIN_NODES)
        self._step *= min(2.0, log(growth_wanted) / log(max(growth, 1.01)))
        best_cost = self.best.cost
        self.target = best_cost if best_cost - self.proven < 2 * self._step else self.proven + self._step
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
        """Add the next cut of a node, or leave it out; drop the new node if it cannot beat the target."""
        from shoal.algorithms.order_cuts.nodes import decide
        from shoal.algorithms.order_cuts.tables import HEAD

        problem_cuts = self.problem_cuts
        state = node.state.copy()
        codes, sizes, labels, begins, suppressed, bound, following, cost, head = decide(
            *node.table, state, problem_cuts.begins, node.cut, take,
            problem_cuts.k, problem_cuts.records, problem_cuts.limit, node.suppressed,
            min(self.target, self.best.cost), problem_cuts.minority,
        )  # fmt: skip
        self.nodes += 1
        if below(cost, self.best.cost):
            self.best = problem_cuts.head(head == HEAD)
        if below(bound, min(self.target, self.best.cost)):
            table = codes, sizes, labels, begins
            self.stack.append(_Open(max(bound, node.bound), following, state, table, suppressed))
