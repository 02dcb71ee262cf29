"""What metrics of levels have in common: a number for each level, and a mean where classes differ."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes
from shoal.core.problem import Problem
from shoal.core.recoding import Recoding


def mean_of_levels(
    problem: Problem, recoding: Recoding, classes: Classes, parts: Sequence[FloatArray]
) -> float:
    """Add up the columns' numbers for their levels: a node's, or the mean over the records."""
    if recoding.node is not None:
        return float(sum(part[level] for part, level in zip(parts, recoding.node, strict=True)))
    total = 0.0
    for column, (part, groups) in enumerate(zip(parts, recoding.about, strict=True)):
        if groups.levels is None:
            message = f"A group of {recoding.columns[column]!r} has no level."
            raise TypeError(message)
        total += float((classes.sizes * part[groups.levels[classes.counts.codes(column)]]).sum())
    return total / problem.records
