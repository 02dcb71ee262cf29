"""Zayatz's estimate of population uniqueness: sample classes stand for those of the population.

L. Zayatz 1991, "Estimation of the number of unique population elements using a sample". The shares of
class sizes in the population are taken from the sample. By Bayes' rule a class seen once is unique in the
population with probability

    p(1) P(1 | 1) / sum over j of p(j) P(1 | j)

where p(j) is the share of classes of size j and P(1 | j) the hypergeometric probability that a sample
without replacement holds exactly one of j.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.uniqueness_sample import Found, Sample

TERMS = 1 << 16  # factors multiplied one by one; those beyond are integrated


def zayatz(sample: Sample) -> Found:
    """Estimate by Zayatz's model; there always is an answer."""
    weights = sample.classes * seen_once(sample.sizes, sample.records, sample.population)
    in_sample = sample.of_size(1) * float(weights[sample.sizes == 1].sum() / weights.sum())
    return Found(in_sample / sample.share, in_sample)


def seen_once(sizes: FloatArray, records: int, population: int) -> FloatArray:
    """Return for classes of each size in the population the probability that the sample holds one of them.

    >>> seen_once(np.array([1.0, 2.0, 9.0]), 5, 10).round(6).tolist()
    [0.5, 0.555556, 0.0]
    """
    rest = float(population - records)
    # The first of `size` persons is in the sample; all others, drawn after it, are not.
    terms = int(min(sizes.max() - 1, TERMS, rest))
    factors = np.log1p(-(records - 1) / (population - 1.0 - np.arange(terms)))
    logs = np.concatenate(([0.0], np.cumsum(factors)))
    others = np.minimum(sizes - 1, terms).astype(np.int64)
    total = logs[others] + _beyond(sizes, terms, records, population)
    chance: FloatArray = np.where(sizes - 1 <= rest, sizes * records / population * np.exp(total), 0.0)
    return chance


def _beyond(sizes: FloatArray, terms: int, records: int, population: int) -> FloatArray:
    """Sum the logarithms of the factors after the first ones: smooth there, or not worth a digit."""
    more: FloatArray = np.maximum(np.minimum(sizes - 1, population - records) - terms, 0.0)
    if not more.any():
        return more
    points, weights = np.polynomial.legendre.leggauss(12)
    at = terms - 0.5 + more[:, None] * (points + 1) / 2
    ratio = np.minimum((records - 1) / (population - 1.0 - at), 0.999)
    total: FloatArray = np.log1p(-ratio) @ weights * more / 2
    return total
