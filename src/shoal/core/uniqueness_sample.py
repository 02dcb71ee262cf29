"""What the models of population uniqueness share: a sample by class sizes, their answer, sums and roots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import FloatArray

EXACT = 64  # so many terms of a sum are added one by one
POINTS = 16  # and each longer stretch is summed from so many points


@dataclass(frozen=True)
class Sample:
    """Classes of a sample by their size, and how many persons it was drawn from."""

    sizes: FloatArray  # (sizes,) ascending, from 1
    classes: FloatArray  # (sizes,) classes of each size
    population: int

    @property
    def records(self) -> int:
        """Count the records of the sample."""
        return int(self.sizes @ self.classes)

    @property
    def count(self) -> int:
        """Count the classes of the sample."""
        return int(self.classes.sum())

    @property
    def share(self) -> float:
        """Return the sampling share: records of the sample per person of the population."""
        return self.records / self.population

    def of_size(self, size: int) -> int:
        """Count the classes of a size."""
        return int(self.classes[self.sizes == size].sum())


@dataclass(frozen=True)
class Found:
    """What one model says: uniques in the population and in the sample, or none and a note why."""

    uniques: float | None
    in_sample: float | None
    note: str = ""


def sum_points(count: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights that sum a smooth function over 1, 2, ... count.

    The first terms are taken as they are; then stretches that double in length are summed by Gauss's rule
    for equally weighted integers, whose orthogonal polynomials are those of Gram. The error is below
    rounding for functions without a singularity above 1.

    >>> points, weights = sum_points(1_000_000)
    >>> len(points), round(float(weights @ (1 / points)), 9)  # the harmonic number of a million
    (288, 14.392726723)
    """
    points = [np.arange(1.0, min(count, EXACT) + 1)]
    weights = [np.ones(len(points[0]))]
    start = EXACT + 1
    while start <= count:
        length = min(start - 1, count - start + 1)
        inner, weight = _gauss(length)
        points.append(start + inner)
        weights.append(weight)
        start += length
    return np.concatenate(points), np.concatenate(weights)


def _gauss(length: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights that sum polynomials up to degree 31 over 0, 1, ... length - 1."""
    if length <= POINTS:
        return np.arange(float(length)), np.ones(length)
    k = np.arange(1.0, POINTS)
    beside = k * np.sqrt((1 - (k / length) ** 2) / (4 * (4 * k * k - 1)))
    values, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (length - 1) / 2 + length * values, length * vectors[0] ** 2


def root(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Find where a function (value and slope) falls through 0, by Newton's steps kept between the bounds.

    It must be above 0 at `low` and below at `high`; a step that leaves what is known is a bisection.

    >>> round(root(lambda x: (2 - x * x, -2 * x), 0.0, 9.0), 12)
    1.414213562373
    """
    at = (low + high) / 2
    for _ in range(200):
        value, slope = function(at)
        if value > 0:
            low = at
        else:
            high = at
        step = at - value / slope if slope < 0 else low
        to = step if low < step < high else (low + high) / 2
        if abs(to - at) <= 1e-14 * max(1.0, abs(at)):
            return to
        at = to
    return at
