"""Height: the sum of the levels (Samarati 2001)."""

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
class Height(Metric):
    """Count generalization steps, regardless of what they merge."""

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    by_level: ClassVar[bool] = True

    @property
    def over_columns(self) -> ColumnTotal:
        return ColumnTotal.SUM

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        return mean_of_levels(problem, recoding, classes, self.table(problem))

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        return tuple(np.arange(hierarchy.height + 1.0) for hierarchy in problem.hierarchies)
