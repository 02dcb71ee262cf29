"""Classification metric CM: the share of records that differ from the majority of their class (Iyengar 2002).

Lemma: merging two classes never lowers CM. No label of the merged class has more records than the most
frequent labels of the two classes together. Suppressing a class never lowers CM, because all records
of the class then count, not only those that differ from the majority.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, RecordCost, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class ClassificationMetric(Metric):
    """Share of records that are suppressed or do not have the most frequent label of their class."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION

    @property
    def needs_label(self) -> bool:
        return True

    @property
    def record_cost(self) -> RecordCost:
        return RecordCost.MINORITY

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Return the share of records that are suppressed or differ from the majority."""
        labels = classes.labels
        majority = labels.greatest(labels.counts.astype(np.float64))
        return float(np.where(suppressed, classes.sizes, classes.sizes - majority).sum()) / classes.records
