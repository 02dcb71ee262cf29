"""Recursive (c,l)-diversity: the most frequent value does not outweigh the rest (Machanavajjhala 2007)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Distribution
from shoal.core.contracts import When
from shoal.models.sensitive_model import SensitiveModel
from shoal.models.thresholds import above_zero, at_least_one, least_bound, rounded_up


@dataclass(frozen=True, kw_only=True)
class RecursiveClDiversity(SensitiveModel):
    """Refuse classes whose most frequent value has at least c times the records of the l-th and rarer values.

    In formulas, f_i is the number of records of the i-th most frequent value of a class.
    """

    c: float
    """The factor, above 0. The most frequent value must have fewer than c times the records of the rest."""
    l: int
    """The rank, by frequency, of the first value that counts as the rest, 1 or more."""

    plain_summary: ClassVar[str] = (
        "The most frequent sensitive value does not outweigh the others in any group."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """In a merged class, f_1 is at most the sum of its parts' f_1. The rest is at least the sum of theirs."""
    ignores_size = True

    def __post_init__(self) -> None:
        above_zero(c=self.c)
        at_least_one(l=self.l)

    @property
    def least_size(self) -> int:
        return self.l

    def least_values(self, available: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(self.sensitive(available), self.l)

    def violating(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes in which f_1 < c (f_l + ... + f_m) does not hold."""
        first, tail = heads_and_tails(classes, column, self.l)
        return ~(first < self.c * tail)

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Return a lower bound on the failing records: f_1 - c (f_l + ... + f_m), or all if f_l is 0.

        Lemma: a class of n records passes if f(v) < c (n - f(S)) for every value v and every set S of l - 1
        values. Take the most frequent value v and the l - 1 most frequent values S of the class. Then
        f(v) - c (n - f(S)) is the sum of this number over the parts of the class. The number is below 0 in a
        part that passes. In any other part it is at most the number of records of the part.
        """
        first, tail = heads_and_tails(classes, column, self.l)
        return np.where(tail == 0, classes.sizes, np.maximum(first - self.c * tail, 0))

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest c that these classes reach, or the largest l if there is no l-th value."""
        for l in range(self.l, 1, -1):
            c = least_bound(classes, self._bounds(classes, l), limit)
            if c is not None and (l == self.l or c < self.c):
                return replace(self, c=rounded_up(c, strictly=True)) if l == self.l else replace(self, l=l)
        return None

    def _bounds(self, classes: Classes, l: int) -> FloatArray:
        columns = self.sensitive(classes.sensitive)
        bounds: FloatArray = np.max([least_c(classes, column, l) for column in columns], axis=0)
        return bounds


def least_c(classes: Classes, column: str, l: int) -> FloatArray:
    """Return the value that c must exceed for each class to pass; infinite if there is no l-th value."""
    first, tail = heads_and_tails(classes, column, l)
    return np.where(tail > 0, first / np.maximum(tail, 1), np.inf)


def heads_and_tails(classes: Classes, column: str, l: int) -> tuple[IntArray, IntArray]:
    """Return, per class, the records of the most frequent value, and those of the l-th and rarer values."""
    distribution = classes.distribution(column)
    return distribution.cached((heads_and_tails, l), lambda: _heads_and_tails(distribution, l))


def _heads_and_tails(distribution: Distribution, l: int) -> tuple[IntArray, IntArray]:
    order = np.lexsort((-distribution.counts, distribution.rows))
    counts = distribution.counts[order]
    ends = np.cumsum(distribution.distinct)
    starts = ends - distribution.distinct
    before = np.concatenate(([0], np.cumsum(counts)))  # records in the preceding entries
    tail = before[ends] - before[np.minimum(starts + min(l - 1, len(counts)), ends)]
    return counts[starts], tail
