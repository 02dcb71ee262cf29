"""The cuts of a problem, the rows that they separate, and the cost of a set of cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import RecordCost
from shoal.core.problem import Problem
from shoal.core.recoding.ranges import Arrangement, arrangements, by_order
from shoal.core.recoding.recoding import Recoding

if TYPE_CHECKING:
    from shoal.algorithms.order_cuts.tables import ClassTable, CodeArray, StateArray


@dataclass(frozen=True)
class Head:
    """A set of cuts (the head of a node in the search tree), its cost and its suppressed records."""

    cuts: BoolArray  # (cuts,)
    cost: float
    suppressed: int


@dataclass(frozen=True)
class ProblemCuts:
    """The cuts of a problem, and the rows that all cuts together separate."""

    columns: tuple[Arrangement, ...]
    begins: IntArray  # (columns + 1,): where the cuts of each column begin
    ranks: IntArray  # (cuts,): the rank that follows each cut
    codes: CodeArray  # (columns, rows): the number of cuts at or below the value
    sizes: IntArray  # (rows,)
    labels: IntArray  # (rows, labels): the records of each label; (rows, 0) unless `minority`
    k: int
    limit: int  # records that may be suppressed; never all
    minority: bool  # True: a record costs 1 outside its class's majority. False: its class's size

    @cached_property
    def records(self) -> int:
        return int(self.sizes.sum())

    def __len__(self) -> int:
        return len(self.ranks)

    def loss(self, cost: float) -> float:
        """Return the metric's loss for a cost."""
        return cost / self.records if self.minority else cost

    def table(self) -> ClassTable:
        """Return the table as one class."""
        return self.codes, self.sizes, self.labels, np.array([0, len(self.sizes)])

    def state(self) -> StateArray:
        """Return the state in which no cut is decided."""
        return np.ones(len(self), np.uint8)

    def recoding(self, problem: Problem, cuts: BoolArray) -> Recoding:
        ranks_by_column = [
            self.ranks[a:b][cuts[a:b]] for a, b in zip(self.begins[:-1], self.begins[1:], strict=True)
        ]
        return by_order(problem, ranks_by_column)

    def head(self, cuts: BoolArray) -> Head:
        """Compute the cost of a set of cuts."""
        _, sizes, labels, _ = self.classes(cuts)
        small = sizes < self.k
        suppressed = int(sizes[small].sum())
        kept = sizes[~small].astype(np.float64)
        if self.minority:
            return Head(cuts, float(kept.sum() - labels[~small].max(axis=1).sum()) + suppressed, suppressed)
        return Head(cuts, float(np.square(kept).sum()) + float(self.records) * suppressed, suppressed)

    def classes(self, cuts: BoolArray) -> ClassTable:
        """Return the classes of a set of cuts as rows, including classes below k."""
        from shoal.algorithms.order_cuts.tables import merge

        table: ClassTable = merge(*self.table(), self.state(), cuts, self.begins)
        return table


def cuts_of(problem: Problem) -> ProblemCuts:
    """Collect the cuts of a problem."""
    columns = tuple(arrangements(problem))
    ranks, codes = [], []
    for number, column in enumerate(columns):
        cuts_of_column = np.arange(1, len(column.positions))
        ranks.append(cuts_of_column)
        ranks_of_rows = column.ranks[problem.counts.codes(number)]
        codes.append(np.searchsorted(cuts_of_column, ranks_of_rows, side="right"))
    begins = np.concatenate(([0], np.cumsum([len(cuts_of_column) for cuts_of_column in ranks])))
    labels = np.zeros((len(problem.counts), 0), np.int64)
    minority = problem.metric.record_cost is RecordCost.MINORITY
    if minority:
        labels_by_class = Classes(problem.counts).labels
        labels = np.zeros((len(problem.counts), int(labels_by_class.codes.max()) + 1), np.int64)
        np.add.at(labels, (labels_by_class.rows, labels_by_class.codes), labels_by_class.counts)
    problem_cuts = ProblemCuts(
        columns,
        begins,
        np.concatenate(ranks),
        np.stack(codes).astype(np.int32),
        problem.counts.sizes,
        labels,
        problem.least_size,
        problem.most_suppressed,
        minority,
    )
    merged_codes, sizes, labels, _ = problem_cuts.classes(np.ones(len(problem_cuts), np.bool_))
    return replace(problem_cuts, codes=merged_codes, sizes=sizes, labels=labels)
