"""Non-uniform entropy: the bits it takes to tell a value from its group (de Waal and Willenborg 1999)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import Metric, When
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding


@dataclass(frozen=True)
class NonUniformEntropy(Metric):
    """Add up, over all records and columns, -log2 of a value's share of its group."""

    monotone: ClassVar[When] = When.ALWAYS
    separable: ClassVar[When] = When.ALWAYS
    weighted: ClassVar[bool] = True

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        """Add up the columns' bits; suppression is ignored."""
        if recoding.node is None:
            return self._by_class(problem, recoding, classes)
        pairs = zip(problem.value_counts, recoding.groups, problem.weights, strict=True)
        return float(sum(weight * bits(counts, groups) for counts, groups, weight in pairs))

    def _by_class(self, problem: Problem, recoding: Recoding, classes: Classes) -> float:
        """Tell each value from the group that its class has."""
        total = 0.0
        # A sensitive column that is released apart comes last and is not measured.
        columns = zip(problem.value_counts, problem.weights, recoding.about, strict=False)
        for column, (counts, weight, groups) in enumerate(columns):
            if groups.labels is None and groups.blank is None:
                continue  # every value is told
            values = counts[counts > 0]
            merged = groups.records[classes.counts.codes(column)]
            bits_ = (classes.sizes * np.log2(merged)).sum() - (values * np.log2(values)).sum()
            total += weight * max(0.0, float(bits_))
        return total

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        """Return each column's bits at each level."""
        columns = zip(problem.value_counts, problem.hierarchies, problem.weights, strict=True)
        return tuple(
            np.array([weight * bits(counts, h.groups(level)) for level in range(h.height + 1)])
            for counts, h, weight in columns
        )


def bits(counts: np.ndarray, groups: np.ndarray) -> float:
    """Return the bits lost when values that occur so often are merged into groups.

    >>> round(bits(np.array([50, 950]), np.array([0, 0])), 1), bits(np.array([500, 500]), np.array([0, 0]))
    (286.4, 1000.0)
    """
    merged = np.bincount(groups, counts)[groups]
    present = counts > 0
    return float(-(counts[present] * np.log2(counts[present] / merged[present])).sum()) + 0.0
