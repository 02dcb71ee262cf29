"""Pitman's sampling formula as a model of class sizes, fitted by maximum likelihood.

N. Hoshino 2001, "Applying Pitman's sampling formula to microdata disclosure risk assessment". With
parameters 0 <= alpha < 1 and theta > -alpha the likelihood of a sample of n records in u classes is, but
for a constant,

    prod i=1..u-1 of (theta + i alpha)  x  prod over classes, j=1..size-1 of (j - alpha)
    ------------------------------------------------------------------------------------
                         prod i=1..n-1 of (theta + i)

A record is unique among N with probability prod i=1..N-1 of (theta + alpha + i - 1) / (theta + i); N
times that are expected, which for large N is Hoshino's Gamma(theta+1) / Gamma(theta+alpha) N^alpha.

The maximum is found by Newton-Raphson, theta within alpha: for each alpha there is one best theta, and on
that curve one alpha is sought. Both searches keep a bracket, so that they end whatever the sample. Where
the likelihood falls from alpha = 0 on, this end of the range is the maximum: the formula of Ewens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.uniqueness_sample import Found, Sample, root, sum_points

HEAD = 32  # factors of a class that are added one by one; those beyond by Stirling's series
MOST = 32.0  # of -log(1 - alpha): alpha from 0 to nearly 1
AT_THE_END = "Pitman's likelihood is greatest at alpha = 0, the end of its range: the truth may be lower."


@dataclass(frozen=True)
class Fit:
    """The parameters of greatest likelihood, as theta + alpha and 1 - alpha, which are never too near 0."""

    total: float
    rest: float

    @property
    def alpha(self) -> float:
        """Return alpha."""
        return 1 - self.rest

    @property
    def theta(self) -> float:
        """Return theta."""
        return self.total - self.alpha

    def log_unique(self, records: int) -> float:
        """Return the logarithm of the probability that a record is unique among so many."""
        points, weights = sum_points(records - 1)
        return -float(weights @ np.log1p(self.rest / (self.total + points - 1)))


def pitman(sample: Sample) -> Found:
    """Estimate by Pitman's model; where alpha is at the end of its range, say so."""
    if sample.of_size(1) == sample.records:  # the likelihood grows to 1 as alpha does
        return Found(float(sample.population), float(sample.records))
    fitted = fit(sample)
    whole = fitted.log_unique(sample.population)
    beyond = whole - fitted.log_unique(sample.records)  # given that it is unique in the sample
    in_sample = sample.of_size(1) * math.exp(min(beyond, 0.0))
    return Found(sample.population * math.exp(whole), in_sample, "" if fitted.rest < 1 else AT_THE_END)


def fit(sample: Sample) -> Fit:
    """Return the parameters of greatest likelihood of a sample in which not all are unique."""
    likelihood = _Likelihood(sample)
    if likelihood.along_alpha(0.0)[0] <= 0:
        at = 0.0
    elif likelihood.along_alpha(MOST)[0] >= 0:
        at = MOST
    else:
        at = root(likelihood.along_alpha, 0.0, MOST)
    return Fit(likelihood.best(math.exp(-at)), math.exp(-at))


class _Likelihood:
    """The likelihood's derivatives for one sample, in theta + alpha and 1 - alpha: so nothing cancels."""

    def __init__(self, sample: Sample) -> None:
        """Lay out the points at which its sums are taken."""
        self.sample = sample
        self.classes = sum_points(sample.count - 1)
        self.records = sum_points(sample.records - 1)

    def best(self, rest: float) -> float:
        """Return the theta + alpha that is best for 1 - alpha."""
        return math.exp(root(lambda at: self._along_total(at, rest), -60.0, 100.0))

    def _factors(self, total: float, rest: float) -> tuple[FloatArray, FloatArray]:
        """Return theta + i alpha and theta + i."""
        return total + (1 - rest) * (self.classes[0] - 1), total + rest + self.records[0] - 1

    def _along_total(self, at: float, rest: float) -> tuple[float, float]:
        """Return slope and curvature along the logarithm of theta + alpha."""
        total = math.exp(at)
        classes, records = self._factors(total, rest)
        up, down = total / classes, total / records
        slope = float(self.classes[1] @ up - self.records[1] @ down)
        return slope, slope + float(self.records[1] @ (down * down) - self.classes[1] @ (up * up))

    def along_alpha(self, at: float) -> tuple[float, float]:
        """Return slope and curvature along -log(1 - alpha), theta the best for each alpha."""
        rest = math.exp(-at)
        classes, records = self._factors(self.best(rest), rest)
        points, weights = self.classes
        firsts, seconds = class_sums(self.sample.sizes, rest)
        slope = float(weights @ (points / classes) - self.sample.classes @ firsts)
        bend = -float(weights @ (points / classes) ** 2 + self.sample.classes @ seconds)
        cross = -float(weights @ (points / classes**2))
        theta = float(self.records[1] @ records**-2 - weights @ classes**-2)
        along = bend - cross * cross / theta if theta < 0 else bend
        return slope * rest, (along * rest - slope) * rest


def class_sums(sizes: FloatArray, rest: float) -> tuple[FloatArray, FloatArray]:
    """Sum 1/(j - alpha) and 1/(j - alpha)^2 over j = 1 .. size-1, for each size."""
    head = 1 / (rest + np.arange(HEAD))
    firsts = np.concatenate(([0.0], np.cumsum(head)))
    seconds = np.concatenate(([0.0], np.cumsum(head * head)))
    short = np.minimum(sizes - 1, HEAD).astype(np.int64)
    first, second = _series(rest + np.maximum(sizes - 1, HEAD))
    from_first, from_second = _series(np.array([rest + HEAD]))
    return firsts[short] + first - from_first, seconds[short] + from_second - second


def _series(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return digamma and trigamma from 32 on, by Stirling's series."""
    one = 1 / x
    two = one * one
    digamma = np.log(x) - one / 2 - two * (1 / 12 - two * (1 / 120 - two / 252))
    trigamma = one * (1 + one / 2 + two * (1 / 6 - two * (1 / 30 - two / 42)))
    return digamma, trigamma
