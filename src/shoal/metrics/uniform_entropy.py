"""Uniform entropy: the bits lost if all values of a group are equally likely (Gionis and Tassa 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import ColumnTotal, Metric, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class UniformEntropy(Metric):
    """Sum, over all records and columns, log2 of the number of values that the group covers."""

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    weighted: ClassVar[bool] = True

    @property
    def over_columns(self) -> ColumnTotal:
        return ColumnTotal.SUM

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Sum the bits of the columns; suppression is ignored."""
        if recoding.node is not None:
            parts = zip(self.table(problem), recoding.node, strict=True)
            return float(sum(part[level] for part, level in parts))
        # A sensitive column that is released in a separate table comes last and is not measured.
        columns = zip(problem.weights, recoding.column_groups, strict=False)
        return float(
            sum(
                weight * bits(classes.sizes, groups.leaves[classes.counts.codes(column)])
                for column, (weight, groups) in enumerate(columns)
            )
        )

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        columns = zip(problem.value_counts, problem.hierarchies, problem.weights, strict=True)
        return tuple(
            weight * np.array([bits(counts, h.leaves[at][h.groups(at)]) for at in range(h.height + 1)])
            for counts, h, weight in columns
        )


def bits(records: IntArray, leaves: IntArray) -> float:
    """Return the bits lost by records whose groups cover these numbers of values.

    >>> bits(np.array([50, 950]), np.array([2, 2]))
    1000.0
    """
    return float((records * np.log2(np.maximum(leaves, 1))).sum())
