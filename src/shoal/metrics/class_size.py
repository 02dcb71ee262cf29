"""Class size C_AVG: the average class in multiples of k (LeFevre et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, SizeTerms, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class ClassSize(Metric):
    """Divide the number of records by the number of classes (before suppression) and by k."""

    monotone: ClassVar[When] = When.ALWAYS
    by_size: ClassVar[bool] = True

    def size_terms(self, problem: Problem) -> SizeTerms:
        return SizeTerms(per_class=problem.records / problem.least_size)

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Return the average class size in multiples of the smallest size that the models allow."""
        return classes.records / len(classes) / problem.least_size
