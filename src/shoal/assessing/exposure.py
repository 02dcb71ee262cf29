"""Exposure: how small the classes are that records hide in, as a histogram and the risks read off it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts

_FEW = 1 << 20  # sizes that are counted one by one


@dataclass(frozen=True)
class Exposure:
    """How many records are in classes of each size.

    >>> found = exposure_of(np.array([1, 1, 3, 5]))
    >>> found.sizes, found.records, found.classes, found.smallest, found.unique, found.below(5)
    ((1, 3, 5), (2, 3, 5), 4, 1, 2, 5)
    >>> found.highest_risk, found.average_risk
    (1.0, 0.4)
    """

    sizes: tuple[int, ...] = ()  # ascending, each once
    records: tuple[int, ...] = ()  # those in classes of that size

    @property
    def total(self) -> int:
        """All records."""
        return sum(self.records)

    @property
    def classes(self) -> int:
        """All classes."""
        return sum(records // size for size, records in zip(self.sizes, self.records, strict=True))

    @property
    def smallest(self) -> int:
        """The records of the smallest class: the k that holds; 0 where there is none."""
        return self.sizes[0] if self.sizes else 0

    @property
    def unique(self) -> int:
        """The records that are alone in their class."""
        return self.within(1, 2)

    @property
    def highest_risk(self) -> float:
        """The prosecutor's chance, one in the size of the class, of finding the record most at risk."""
        return 1 / self.smallest if self.sizes else 0.0

    @property
    def average_risk(self) -> float:
        """The prosecutor's chance of finding a record, on average over all records."""
        return self.classes / self.total if self.sizes else 0.0

    def above(self, threshold: float) -> int:
        """Return the records whose prosecutor risk, one in the size of the class, is above a threshold."""
        pairs = zip(self.sizes, self.records, strict=True)
        return sum(records for size, records in pairs if 1 / size > threshold)

    def below(self, k: int) -> int:
        """Return the records in classes of fewer than k."""
        return self.within(1, k)

    def within(self, low: int, high: int) -> int:
        """Return the records in classes of at least one size and below another."""
        pairs = zip(self.sizes, self.records, strict=True)
        return sum(records for size, records in pairs if low <= size < high)


def exposure_at(counts: Counts) -> Exposure:
    """Count the records of a table by how many share their combination, wherever that is counted."""
    found = counts.variety()
    return Exposure(tuple(found.values.tolist()), tuple(found.records.tolist()))


def exposure_of(sizes: IntArray) -> Exposure:
    """Count the records by the size of their class."""
    if len(sizes) and sizes.max() < _FEW:  # without sorting them
        classes = np.bincount(sizes)
        found = np.flatnonzero(classes)
        classes = classes[found]
    else:
        found, classes = np.unique(sizes, return_counts=True)
    pairs = [
        (size, size * number) for size, number in zip(found.tolist(), classes.tolist(), strict=True) if size
    ]
    return Exposure(tuple(size for size, _ in pairs), tuple(records for _, records in pairs))
