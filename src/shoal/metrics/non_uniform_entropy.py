"""Non-uniform entropy: the bits needed to recover values from their groups (de Waal and Willenborg 1999)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import ColumnTotal, Metric, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class NonUniformEntropy(Metric):
    """Sum, over all records and columns, -log2 of the value's share of the records in its group."""

    normalized: bool = False
    """Divide the loss of each column by its loss with all values in one group. Columns with many values then
    count no more than others. The result is the weighted mean over the columns, from 0 to 1.
    """

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    weighted: ClassVar[bool] = True

    @property
    def over_columns(self) -> ColumnTotal:
        return ColumnTotal.MEAN if self.normalized else ColumnTotal.SUM

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Sum the bits of the columns; suppression is ignored."""
        if recoding.node is None:
            return self._by_class(problem, recoding, classes)
        pairs = zip(problem.value_counts, recoding.groups, self._factors(problem), strict=True)
        return float(sum(factor * bits(counts, groups) for counts, groups, factor in pairs))

    def _factors(self, problem: Problem) -> list[float]:
        """Return the number by which the bits of each column are multiplied."""
        if not self.normalized:
            return list(problem.weights)
        maximum_bits = [bits(counts, np.zeros(len(counts), np.int64)) for counts in problem.value_counts]
        total_weight = sum(problem.weights)
        return [
            w / total_weight / maximum if maximum else 0.0
            for w, maximum in zip(problem.weights, maximum_bits, strict=True)
        ]

    def _by_class(self, problem: Problem, recoding: Recoding, classes: Classes) -> float:
        total = 0.0
        # A sensitive column that is released in a separate table comes last and is not measured.
        columns = zip(problem.value_counts, self._factors(problem), recoding.column_groups, strict=False)
        for column, (counts, factor, groups) in enumerate(columns):
            if groups.labels is None and groups.blank is None:
                continue  # every value is kept
            values = counts[counts > 0]
            merged = groups.records[classes.counts.codes(column)]
            column_bits = (classes.sizes * np.log2(merged)).sum() - (values * np.log2(values)).sum()
            total += factor * max(0.0, float(column_bits))
        return total

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        columns = zip(problem.value_counts, problem.hierarchies, self._factors(problem), strict=True)
        return tuple(
            np.array([factor * bits(counts, h.groups(level)) for level in range(h.height + 1)])
            for counts, h, factor in columns
        )


def bits(counts: np.ndarray, groups: np.ndarray) -> float:
    """Return the bits that are lost when values with these counts are merged into groups.

    >>> round(bits(np.array([50, 950]), np.array([0, 0])), 1), bits(np.array([500, 500]), np.array([0, 0]))
    (286.4, 1000.0)
    """
    merged = np.bincount(groups, counts)[groups]
    present = counts > 0
    return float(-(counts[present] * np.log2(counts[present] / merged[present])).sum()) + 0.0
