"""The ground of searches over cuts: all cuts of a problem, what they tell apart and what a set costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Charge
from shoal.core.cuts import arrangements, by_order
from shoal.core.problem import Problem
from shoal.core.ranges import Arrangement
from shoal.core.recoding import Recoding

if TYPE_CHECKING:
    from shoal.core.cut_tables import CodeArray, StateArray, Table


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
        spread = Classes(problem.counts).labels
        labels = np.zeros((len(problem.counts), int(spread.codes.max()) + 1), np.int64)
        np.add.at(labels, (spread.rows, spread.codes), spread.counts)
    ground = Ground(
        columns,
        begins,
        np.concatenate(places),
        np.stack(codes).astype(np.int32),
        problem.counts.sizes,
        labels,
        problem.least_size,
        problem.most_suppressed,
        minority,
    )
    alike, sizes, labels, _ = ground.classes(np.ones(len(ground), np.bool_))
    return replace(ground, codes=alike, sizes=sizes, labels=labels)
