"""Precision loss: how far up its hierarchy each column was taken, on average (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, When
from shoal.core.evaluate import Problem
from shoal.core.recoding import Recoding


@dataclass(frozen=True)
class Precision(Metric):
    """Average level / height over the columns, by their weights."""

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    weighted: ClassVar[bool] = True

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Average the columns' shares of their heights."""
        levels = recoding.node or ()
        return float(sum(part[level] for part, level in zip(self.table(problem), levels, strict=True)))

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        """Return each level's share of the height, by weight."""
        whole = sum(problem.weights)
        return tuple(
            weight / whole * np.arange(hierarchy.height + 1.0) / max(1, hierarchy.height)
            for hierarchy, weight in zip(problem.hierarchies, problem.weights, strict=True)
        )
