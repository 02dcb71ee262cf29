"""Shared code of metrics that assign a number to each level of a column."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding


def mean_of_levels(
    problem: Problem, recoding: Recoding, classes: Classes, parts: Sequence[FloatArray]
) -> float:
    """Add up the numbers that columns have at their levels; return the mean of this sum over all records.

    `parts` contains, for each column, the number of each level.
    """
    if recoding.node is not None:
        return float(sum(part[level] for part, level in zip(parts, recoding.node, strict=True)))
    total = 0.0
    for column, (part, groups) in enumerate(zip(parts, recoding.column_groups, strict=True)):
        if groups.levels is None:
            raise TypeError(f"A group of {recoding.columns[column]!r} has no level.")
        total += float((classes.sizes * part[groups.levels[classes.counts.codes(column)]]).sum())
    return total / problem.records
