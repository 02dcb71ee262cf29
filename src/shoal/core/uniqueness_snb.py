"""The slide negative binomial model of class sizes in the population.

G. Chen and S. Keller-McNulty 1998, "Estimation of identification disclosure risk in microdata". A class
of the population has 1 + X persons, X negative binomial with parameters a and b, so that of K classes
K b^a are unique. Each person is in the sample with probability p, the sampling share; then

    classes seen once   K p (b / (1-d))^a (1 + a d / (1-d))                       d = (1-p)(1-b)
    classes seen twice  K p^2 a b^a (1-b) (2 - (1-a) d) / (2 (1-d)^(a+2))

and a and b are those that make both equal to what was seen. K is estimated before by Shlosser's estimator
as Haas and Stokes (1998, "Estimating the number of classes in a finite population") modified it.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.uniqueness_sample import Found, Sample

LEAST, MOST, STEPS = -30.0, 40.0, 4001  # of log(b / (1-b))
NO_PAIRS = "SNB has no solution: the sample has no class of two records."
NO_ROOT = "SNB has no solution: no slide negative binomial fits the classes of one and of two records."


def snb(sample: Sample) -> Found:
    """Estimate by the slide negative binomial model, or say that its equations have no solution."""
    ones, twos = sample.of_size(1), sample.of_size(2)
    if ones == sample.records:  # a = 0: every class of the population is unique
        return Found(float(sample.population), float(ones))
    if not twos:
        return Found(None, None, NO_PAIRS)
    classes = classes_in_population(sample)
    at = _crossing(classes, sample.share, ones, twos)
    if at is None:
        return Found(None, None, NO_ROOT)
    a = _exponent(np.array([at]), sample.share, twos / ones)
    uniques = min(classes * float(np.exp(-a * np.logaddexp(0, -at))[0]), ones / sample.share)
    return Found(uniques, uniques * sample.share)


def classes_in_population(sample: Sample) -> float:
    """Estimate how many classes the population has: the modified estimator of Shlosser.

    No more are possible than those seen and one for each person who is not in the sample.
    """
    p, sizes, classes = sample.share, sample.sizes, sample.classes
    square, missed = np.log1p(-p * p), np.log1p(-p)
    seen_again = p * p * (sizes * np.exp((sizes - 1) * square)) @ classes
    seen_in_part = (np.exp(sizes * square) * -np.expm1(-sizes * np.log1p(p))) @ classes
    unseen = np.exp(sizes * missed) @ classes
    once = p * (sizes * np.exp((sizes - 1) * missed)) @ classes
    estimate = sample.count + sample.of_size(1) * (seen_again / seen_in_part) * (unseen / once) ** 2
    return float(min(estimate, sample.count + sample.population - sample.records))


def _exponent(at: FloatArray, share: float, ratio: float) -> FloatArray:
    """Return the one a > 0 with so many classes seen twice for one seen once; `at` is log(b / (1-b)).

    With c = (1-b) / (1-d) and e = (1-p) c the ratio is p/2 a c (2 + e + a e) / (1 + a e), which grows with
    a from 0 without bound: one positive root of a quadratic.
    """
    c = 1 / (share + np.exp(at))
    e = (1 - share) * c
    right = 2 * ratio / (share * c)
    half = (2 + e - right * e) / 2
    away = np.hypot(half, np.sqrt(e * right))
    a: FloatArray = np.where(half > 0, right / (half + away), (away - half) / e)
    return a


def _seen_once(at: FloatArray, classes: float, share: float, ratio: float) -> FloatArray:
    """Return how many classes are seen once for each b, with the a that the pairs ask for."""
    a = _exponent(at, share, ratio)
    e = (1 - share) / (share + np.exp(at))
    seen: FloatArray = classes * share * np.exp(-a * np.logaddexp(0, np.log(share) - at)) * (1 + a * e)
    return seen


def _crossing(classes: float, share: float, ones: int, twos: int) -> float | None:
    """Find the greatest log(b / (1-b)) at which as many classes are seen once as were."""
    grid = np.linspace(LEAST, MOST, STEPS)
    for _ in range(4):  # each round narrows one step of the grid to a grid of its own
        above = _seen_once(grid, classes, share, twos / ones) >= ones
        changes = np.flatnonzero(above[1:] != above[:-1])
        if not len(changes):
            return None
        grid = np.linspace(grid[changes[-1]], grid[changes[-1] + 1], STEPS)
    return float(grid[STEPS // 2])
