"""Losses: what a recoding took from each column."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding
from shoal.metrics.coverage import Coverage


@dataclass(frozen=True)
class ColumnLoss:
    """What was lost of one quasi-identifier."""

    values: int  # distinct ones before
    coverage: float  # from 0, every value is told, to 1, nothing is; a suppressed record counts 1
    share: float | None  # of the policy's loss, where that is a sum over columns


def losses_of(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
) -> dict[str, ColumnLoss]:
    """Measure each column's loss by coverage, and its share of the policy's metric where that has shares."""
    coverage = Coverage().by_column(problem, recoding, classes, suppressed)
    shares = _shares(problem, recoding, lossy=bool(suppressed.any()))
    columns = zip(problem.hierarchies, problem.value_counts, coverage, shares, strict=True)
    return {
        hierarchy.name: ColumnLoss(int((counts > 0).sum()), lost, share)
        for hierarchy, counts, lost, share in columns
    }


def _shares(problem: Problem, recoding: Recoding, *, lossy: bool) -> list[float | None]:
    node = recoding.node
    if node is None or not problem.metric.separable.given(lossy):
        return [None] * len(problem.hierarchies)
    pairs = zip(problem.metric.table(problem), node, strict=True)
    parts = [float(part[level]) for part, level in pairs]
    whole = sum(parts)
    return [part / whole if whole else 0.0 for part in parts]
