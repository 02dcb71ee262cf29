"""Greedy searches over cuts: from a set of cuts to a better one, a cut more or less at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.cut_ground import Ground, Head
from shoal.core.evaluation import below
from shoal.errors import OutOfTime

Check = Callable[[], None]  # raises OutOfTime
_PATIENCE = 200  # sets near the best one that are tried in vain before it is believed, or
_PER_CUT = 4  # so many for each cut, where those are fewer
_FURTHER = 10  # of them in vain, and the next may be one cut further away


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
