"""Coverage loss: the share of a column's values that a record's group covers (LM of Iyengar 2002; NCP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import ColumnTotal, Metric, When
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.recoding.groups import shares
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class Coverage(Metric):
    """Average (values in the group - 1) / (values in the column - 1); a suppressed record counts as 1."""

    aggregate: Literal["mean", "geometric"] = "mean"
    """How the losses of the columns are combined. `geometric` is the product of (1 + loss) over the columns,
    each to the power of the column's share of the weights, minus 1.
    """

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    separable: ClassVar[When] = When.WITHOUT_SUPPRESSION
    weighted: ClassVar[bool] = True

    @property
    def over_columns(self) -> ColumnTotal | None:
        return ColumnTotal.MEAN if self.aggregate == "mean" else None

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Combine the losses of the columns; a suppressed record counts as 1."""
        columns = self.by_column(problem, recoding, classes, suppressed)
        parts = self._parts(np.array(columns), np.array(problem.weights))
        return float(self.total(parts.sum()))

    def by_column(
        self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
    ) -> list[float]:
        """Return the unweighted loss of each column."""
        if recoding.node is None:
            return self._by_class(problem, recoding, classes, suppressed)
        return self._by_value(problem, recoding.node, classes, suppressed)

    def _by_class(
        self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
    ) -> list[float]:
        columns = []
        # A sensitive column that is released in a separate table comes last and is not measured.
        for column, (hierarchy, groups) in enumerate(
            zip(problem.hierarchies, recoding.column_groups, strict=False)
        ):
            share = np.where(suppressed, 1.0, groups.shares(hierarchy)[classes.counts.codes(column)])
            columns.append(float((classes.sizes * share).sum()) / problem.records)
        return columns

    def _by_value(self, problem: Problem, node: Node, classes: Classes, suppressed: BoolArray) -> list[float]:
        suppressed_counts = classes.counts.in_memory().only(suppressed) if suppressed.any() else None
        columns = []
        for column, level in enumerate(node):
            hierarchy = problem.hierarchies[column]
            share = _shares(hierarchy, level)
            total = float((problem.value_counts[column] * share[hierarchy.groups(level)]).sum())
            if suppressed_counts is not None:
                total += suppressed_counts.records - float(
                    (suppressed_counts.sizes * share[suppressed_counts.codes(column)]).sum()
                )
            columns.append(total / problem.records)
        return columns

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        total_weight = sum(problem.weights)
        parts = []
        for hierarchy, counts, weight in zip(
            problem.hierarchies, problem.value_counts, problem.weights, strict=True
        ):
            levels = range(hierarchy.height + 1)
            losses = [(counts * _shares(hierarchy, level)[hierarchy.groups(level)]).sum() for level in levels]
            parts.append(self._scaled(np.array(losses) / problem.records) * weight / total_weight)
        return tuple(parts)

    def total(self, parts: Any) -> Any:
        """Undo the logarithm of the geometric mean."""
        return np.expm1(parts) if self.aggregate == "geometric" else parts

    def _scaled(self, losses: FloatArray) -> FloatArray:
        return np.log1p(losses) if self.aggregate == "geometric" else losses

    def _parts(self, losses: FloatArray, weights: FloatArray) -> FloatArray:
        parts: FloatArray = self._scaled(losses) * weights / weights.sum()
        return parts


def _shares(hierarchy: Hierarchy, level: int) -> FloatArray:
    return shares(hierarchy.leaves[level], hierarchy.size)
