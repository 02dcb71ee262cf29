"""Greedy search over sets of cuts: add or remove one cut at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.algorithms.order_cuts.problem_cuts import Head, ProblemCuts
from shoal.core.arrays import BoolArray
from shoal.core.evaluation import below
from shoal.errors import OutOfTime

Check = Callable[[], None]  # raises OutOfTime
_PATIENCE = 200  # the search ends after this many failed changes of the best set, or
_PER_CUT = 4  # after this many per cut, if that is fewer
_FURTHER = 10  # after this many failures, changes may be one cut larger


class Greedy:
    """Improves sets of cuts step by step and remembers the best."""

    def __init__(self, problem_cuts: ProblemCuts, check: Check) -> None:
        self.problem_cuts = problem_cuts
        self.check = check
        self.best = problem_cuts.head(np.zeros(len(problem_cuts), np.bool_))

    def from_starts(self, starts: int, seed: int) -> None:
        """Start from the empty set and from random sets of any density."""
        lots = np.random.default_rng(seed)
        self.descend(self.best.cuts)
        for _ in range(starts):
            self.descend(lots.random(len(self.problem_cuts)) < lots.random() ** 2)

    def from_best(self, seed: int) -> None:
        """Change the best set randomly and improve it again, until that no longer helps."""
        lots = np.random.default_rng([seed, 1])
        tried, most = 0, min(_PATIENCE, _PER_CUT * len(self.problem_cuts))
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
        """Remove and add cuts, the best first, as long as the cost decreases."""
        node = self.problem_cuts.head(cuts)
        while True:
            node = self._generalized(node)
            cost = node.cost
            node = self._specialized(node)
            if node.cost >= cost:
                break
        self._remember(node)

    def _remember(self, head: Head) -> None:
        """Keep a set of cuts that is acceptable and better than the best."""
        if head.gone <= self.problem_cuts.limit and below(head.cost, self.best.cost):
            self.best = head

    def _pause(self, head: Head) -> None:
        """Check the time limit; when the time is up, the current set may be the best."""
        try:
            self.check()
        except OutOfTime:
            self._remember(head)
            raise

    def _generalized(self, head: Head) -> Head:
        """Remove cuts: first the one after which the fewest records exceed the limit, at the least cost."""
        from shoal.algorithms.order_cuts.steps import removed
        from shoal.algorithms.order_cuts.tables import HEAD, merge

        problem_cuts = self.problem_cuts
        classes = problem_cuts.classes(head.cuts)
        while head.cuts.any():
            self._pause(head)
            state = np.where(head.cuts, HEAD, 0).astype(np.uint8)
            costs, gone = removed(
                *classes[:3],
                state,
                problem_cuts.begins,
                problem_cuts.k,
                problem_cuts.records,
                problem_cuts.minority,
            )
            taken = np.flatnonzero(head.cuts)
            costs, gone = head.cost + costs[taken], head.gone + gone[taken]
            over = np.maximum(gone - problem_cuts.limit, 0)
            first = np.lexsort((costs, over))[0]
            if head.gone <= problem_cuts.limit and not (over[first] == 0 and below(costs[first], head.cost)):
                break
            kept = head.cuts.copy()
            kept[taken[first]] = False
            classes = merge(*classes, state, kept, problem_cuts.begins)
            head = Head(kept, float(costs[first]), int(gone[first]))
        return problem_cuts.head(head.cuts)

    def _specialized(self, head: Head) -> Head:
        """Add cuts within the limit: first the one that lowers the cost most."""
        from shoal.algorithms.order_cuts.steps import added
        from shoal.algorithms.order_cuts.tables import divide

        problem_cuts = self.problem_cuts
        state, table = problem_cuts.state(), problem_cuts.table()
        for cut in np.flatnonzero(head.cuts):
            self._pause(head)
            *table, _ = divide(*table, state, problem_cuts.begins, cut, problem_cuts.k)
        while True:
            self._pause(head)
            costs, lost = added(
                *table,
                state,
                problem_cuts.begins,
                problem_cuts.k,
                problem_cuts.records,
                problem_cuts.minority,
            )
            costs[head.cuts | (head.gone + lost > problem_cuts.limit)] = np.inf
            if not len(costs):
                return head
            following = int(costs.argmin())
            if not below(head.cost + costs[following], head.cost):
                return head
            *table, gone = divide(*table, state, problem_cuts.begins, following, problem_cuts.k)
            cuts = head.cuts.copy()
            cuts[following] = True
            head = Head(cuts, float(head.cost + costs[following]), head.gone + gone)
