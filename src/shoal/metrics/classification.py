"""Classification CM: records that are not like most of their class (Iyengar 2002).

Lemma: merging classes never lowers it. Of all that two classes hold together, no label is more frequent
than the most frequent of each taken together. Suppressing a class never lowers it either: then all of its
records count, and not only those that differ from most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Charge, Metric, When
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding


@dataclass(frozen=True)
class Classification(Metric):
    """Share of records that are suppressed or do not have the most frequent label of their class."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION

    @property
    def needs_label(self) -> bool:
        """Labels are all that it looks at."""
        return True

    @property
    def charge(self) -> Charge:
        """A record costs 1 where its class does not tell its label."""
        return Charge.MINORITY

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Count the records that are suppressed or differ from most, and divide by all."""
        labels = classes.labels
        most = labels.greatest(labels.counts.astype(np.float64))
        return float(np.where(suppressed, classes.sizes, classes.sizes - most).sum()) / classes.records
