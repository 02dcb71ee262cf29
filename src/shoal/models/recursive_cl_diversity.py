"""Recursive (c,l)-diversity: the most frequent value does not outweigh the rest (Machanavajjhala 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Distribution
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.settings import above_zero, at_least_one
from shoal.models.thresholds import rounded_up, within


@dataclass(frozen=True, kw_only=True)
class RecursiveClDiversity(SensitiveModel):
    """Refuse classes whose most frequent value is not below c times those from the l-th on."""

    c: float
    """How many times the rest the most frequent value must stay below, above 0."""
    l: int
    """The value, by frequency, from which on the rest is counted, 1 or more."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """Merged, the most frequent value has at most the sum over the parts, and the rest at least."""
    values_alone = True

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        above_zero(c=self.c)
        at_least_one(l=self.l)

    @property
    def least_size(self) -> int:
        """There must be an l-th value."""
        return self.l

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes in which f1 < c (f_l + ... + f_m) does not hold."""
        first, tail = heads_and_tails(classes, column, self.l)
        return ~(first < self.c * tail)

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: f1 - c (f_l + ... + f_m), and everything where there is no l-th value.

        Lemma: a class passes if f(v) < c (n - f(S)) for every value v and every set S of l - 1 values. For
        the v and S of this class that is a sum over its parts: below 0 in parts that pass, and at most
        their records in others.
        """
        first, tail = heads_and_tails(classes, column, self.l)
        return np.where(tail == 0, classes.sizes, np.maximum(first - self.c * tail, 0))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest c that these classes reach, or the largest l where there is no l-th value."""
        for l in range(self.l, 1, -1):
            c = within(classes, self._bounds(classes, l), limit)
            if c is not None and (l == self.l or c < self.c):
                return replace(self, c=rounded_up(c, beyond=True)) if l == self.l else replace(self, l=l)
        return None

    def _bounds(self, classes: Classes, l: int) -> FloatArray:
        columns = self.sensitive(classes.sensitive)
        bounds: FloatArray = np.max([least_c(classes, column, l) for column in columns], axis=0)
        return bounds


def least_c(classes: Classes, column: str, l: int) -> FloatArray:
    """Return the bound above which c lets each class pass; infinite where there is no l-th value."""
    first, tail = heads_and_tails(classes, column, l)
    return np.where(tail > 0, first / np.maximum(tail, 1), np.inf)


def heads_and_tails(classes: Classes, column: str, l: int) -> tuple[IntArray, IntArray]:
    """Return, of each class, the records of the most frequent value and those from the l-th on."""
    spread = classes.distribution(column)
    return spread.once((heads_and_tails, l), lambda: _heads_and_tails(spread, l))


def _heads_and_tails(spread: Distribution, l: int) -> tuple[IntArray, IntArray]:
    order = np.lexsort((-spread.counts, spread.rows))
    counts = spread.counts[order]
    ends = np.cumsum(spread.distinct)
    starts = ends - spread.distinct
    before = np.concatenate(([0], np.cumsum(counts)))  # records in the entries before, most frequent first
    tail = before[ends] - before[np.minimum(starts + min(l - 1, len(counts)), ends)]
    return counts[starts], tail
