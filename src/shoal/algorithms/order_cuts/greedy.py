"""Greedy search over sets of cuts: add or remove one cut at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.algorithms.order_cuts.problem_cuts import Head, ProblemCuts
from shoal.core.arrays import BoolArray
from shoal.core.evaluation import below
from shoal.errors import OutOfTime

Check = Callable[[], None]  # raises OutOfTime
_MAX_FAILURES = 200  # the local search ends after this number of failed changes of the best set,
_FAILURES_PER_CUT = 4  # or after this number per cut, if that is fewer
_FAILURES_PER_STEP = 10  # after this number of failures, changes may be one cut larger


class Greedy:
    """Improves sets of cuts step by step and remembers the best."""

    def __init__(self, problem_cuts: ProblemCuts, check: Check) -> None:
        self.problem_cuts = problem_cuts
        self.check = check
        self.best = problem_cuts.head(np.zeros(len(problem_cuts), np.bool_))

    def from_starts(self, starts: int, seed: int) -> None:
        """Start from the empty set and from random sets of any density."""
        random = np.random.default_rng(seed)
        self.descend(self.best.cuts)
        for _ in range(starts):
            self.descend(random.random(len(self.problem_cuts)) < random.random() ** 2)

    def from_best(self, seed: int) -> None:
        """Change the best set randomly and improve the result, until many changes in a row failed."""
        random = np.random.default_rng([seed, 1])
        failures, max_failures = 0, min(_MAX_FAILURES, _FAILURES_PER_CUT * len(self.problem_cuts))
        while failures < max_failures:
            before = self.best
            cuts = before.cuts.copy()
            chosen = np.flatnonzero(cuts)
            extra = failures // _FAILURES_PER_STEP
            cuts[random.permutation(chosen)[: random.integers(1, 5 + extra)]] = False
            cuts[random.integers(0, len(cuts), random.integers(0, 6 + extra))] = True
            self.descend(cuts)
            failures = failures + 1 if self.best is before else 0

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
        """Store a set of cuts if it is acceptable and better than the best."""
        if head.suppressed <= self.problem_cuts.limit and below(head.cost, self.best.cost):
            self.best = head

    def _pause(self, head: Head) -> None:
        """Check the time limit; if the time is up, store the current set if it is better than the best."""
        try:
            self.check()
        except OutOfTime:
            self._remember(head)
            raise

    def _generalized(self, head: Head) -> Head:
        """Remove cuts one by one, as long as too many records are suppressed or the cost decreases.

        The best cut leaves the fewest suppressed records above the limit, and among ties has the least cost.
        """
        from shoal.algorithms.order_cuts.steps import removed
        from shoal.algorithms.order_cuts.tables import HEAD, merge

        problem_cuts = self.problem_cuts
        classes = problem_cuts.classes(head.cuts)
        while head.cuts.any():
            self._pause(head)
            state = np.where(head.cuts, HEAD, 0).astype(np.uint8)
            costs, suppressed = removed(
                *classes[:3],
                state,
                problem_cuts.begins,
                problem_cuts.k,
                problem_cuts.records,
                problem_cuts.minority,
            )
            chosen = np.flatnonzero(head.cuts)
            costs, suppressed = head.cost + costs[chosen], head.suppressed + suppressed[chosen]
            excess = np.maximum(suppressed - problem_cuts.limit, 0)
            best = np.lexsort((costs, excess))[0]
            if head.suppressed <= problem_cuts.limit and not (
                excess[best] == 0 and below(costs[best], head.cost)
            ):
                break
            kept = head.cuts.copy()
            kept[chosen[best]] = False
            classes = merge(*classes, state, kept, problem_cuts.begins)
            head = Head(kept, float(costs[best]), int(suppressed[best]))
        return problem_cuts.head(head.cuts)

    def _specialized(self, head: Head) -> Head:
        """Add cuts one by one within the suppression limit, always the one that lowers the cost most."""
        from shoal.algorithms.order_cuts.steps import added
        from shoal.algorithms.order_cuts.tables import divide

        problem_cuts = self.problem_cuts
        state, table = problem_cuts.state(), problem_cuts.table()
        for cut in np.flatnonzero(head.cuts):
            self._pause(head)
            *table, _ = divide(*table, state, problem_cuts.begins, cut, problem_cuts.k)
        while True:
            self._pause(head)
            costs, newly_suppressed = added(
                *table,
                state,
                problem_cuts.begins,
                problem_cuts.k,
                problem_cuts.records,
                problem_cuts.minority,
            )
            costs[head.cuts | (head.suppressed + newly_suppressed > problem_cuts.limit)] = np.inf
            if not len(costs):
                return head
            following = int(costs.argmin())
            if not below(head.cost + costs[following], head.cost):
                return head
            *table, removed_records = divide(*table, state, problem_cuts.begins, following, problem_cuts.k)
            cuts = head.cuts.copy()
            cuts[following] = True
            head = Head(cuts, float(head.cost + costs[following]), head.suppressed + removed_records)
