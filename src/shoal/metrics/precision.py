"""Precision loss: the mean height that columns reach in their hierarchies (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import ColumnTotal, Metric, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding
from shoal.metrics.by_level import mean_of_levels


@dataclass(frozen=True)
class Precision(Metric):
    """Average level / height over the columns by weight. If records differ in level, average over records."""

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    by_level: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    @property
    def over_columns(self) -> ColumnTotal:
        return ColumnTotal.MEAN

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        return mean_of_levels(problem, recoding, classes, self.table(problem))

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        total_weight = sum(problem.weights)
        return tuple(
            weight / total_weight * np.arange(hierarchy.height + 1.0) / max(1, hierarchy.height)
            for hierarchy, weight in zip(problem.hierarchies, problem.weights, strict=True)
        )
