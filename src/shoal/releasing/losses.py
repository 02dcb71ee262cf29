"""Losses: what a recoding took from each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
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


def vanished_in(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray
) -> dict[str, int]:
    """Count, by column, the values of which nothing is left: all their records were suppressed.

    Of quasi-identifiers and of the sensitive columns that were counted; only columns that lost some are told.
    Where all records of a column climb alike, a value is left as long as a record has its label.
    """
    if recoding.apart or not suppressed.any():
        return {}
    found = {
        name: _of_values(problem, recoding, classes, suppressed, column)
        for column, name in enumerate(recoding.columns)
    }
    for name in classes.sensitive:
        spread = classes.distribution(name)
        found[name] = _lost(spread.codes, ~suppressed[spread.rows]).size
    return {name: number for name, number in found.items() if number}


def _of_values(
    problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray, column: int
) -> int:
    """Count the values of a quasi-identifier of which nothing is left."""
    if recoding.regions is not None:
        regions, field = recoding.regions, problem.counts.fields[column]
        codes = (regions.keys[field.word] >> field.shift) & field.mask
        return _lost(codes[regions.rows], ~regions.suppressed[regions.classes]).size
    lost = _lost(classes.counts.codes(column), ~suppressed)
    present = problem.value_counts[column] > 0
    return int((present & np.isin(recoding.groups[column], lost)).sum())


def _lost(codes: IntArray, kept: BoolArray) -> IntArray:
    """Return the codes that occur, but in nothing that is kept."""
    lost = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
    lost[codes] = True
    lost[codes[kept]] = False
    return np.flatnonzero(lost)


def _shares(problem: Problem, recoding: Recoding, *, lossy: bool) -> list[float | None]:
    node = recoding.node
    if node is None or not problem.metric.separable.given(lossy):
        return [None] * len(problem.hierarchies)
    pairs = zip(problem.metric.table(problem), node, strict=True)
    parts = [float(part[level]) for part, level in pairs]
    whole = sum(parts)
    return [part / whole if whole else 0.0 for part in parts]
