"""Discernibility DM: how many records each record is indistinguishable from (Bayardo and Agrawal 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, RecordCost, SizeTerms, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class Discernibility(Metric):
    """A kept record costs the size of its class, and a suppressed record the size of the table."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    by_size: ClassVar[bool] = True

    @property
    def record_cost(self) -> RecordCost:
        return RecordCost.SIZE

    def size_terms(self, problem: Problem) -> SizeTerms:
        return SizeTerms(squares=1, suppressed_squares=-1, suppressed=problem.records)

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Sum the squared sizes of kept classes and the penalty for suppressed records."""
        kept = np.square(classes.sizes[~suppressed], dtype=np.float64).sum()
        return float(kept) + float(classes.records) * float(classes.sizes[suppressed].sum())
