"""Discernibility DM*: the sum of the squared sizes of all classes (El Emam et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, SizeTerms, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class DiscernibilityStar(Metric):
    """A record costs the size of its class, suppressed or not."""

    monotone: ClassVar[When] = When.ALWAYS
    by_size: ClassVar[bool] = True

    def size_terms(self, problem: Problem) -> SizeTerms:
        return SizeTerms(squares=1)

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        return float(np.square(classes.sizes, dtype=np.float64).sum())
