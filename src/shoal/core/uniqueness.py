"""How many are unique in the population a sample was drawn from, estimated from the sample's class sizes.

Three models and the rule by which Dankar, El Emam, Neisa and Roffey (2012, "Estimating the
re-identification risk of clinical data sets") choose among them: Pitman's up to a sampling share of 10%;
above it the smaller of the slide negative binomial's and Zayatz's, or Zayatz's where the other has no
solution. Pitman's and Zayatz's always have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeGuard

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.uniqueness_pitman import pitman
from shoal.core.uniqueness_sample import Found, Sample
from shoal.core.uniqueness_snb import snb
from shoal.core.uniqueness_zayatz import zayatz
from shoal.errors import UnknownName, UsageError

ESTIMATORS = {"pitman": pitman, "snb": snb, "zayatz": zayatz}
RULE = "dankar"
UNIQUENESS_MODELS = (RULE, *ESTIMATORS)
COUNTED = "sample"  # no model was needed: the sample itself tells
LARGEST = 10**15  # persons; beyond it numbers are not exact


@dataclass(frozen=True)
class Estimate:
    """How many are unique in the population, and by which model."""

    model: str  # asked for
    by: str  # whose number it is; "sample" where the sample itself tells
    uniques: float | None  # expected in the population; None where the model has no solution
    share: float | None  # of the population
    in_sample: float | None  # the sample's records that are expected to be unique in the population too
    note: str = ""  # which model had no solution and why, or what to bear in mind


def estimate(
    sizes: Sequence[int] | IntArray, classes: Sequence[int] | IntArray, population: int, model: str = RULE
) -> Estimate:
    """Estimate the uniques of a population from `classes` of each of the `sizes` in a sample of it.

    Every model gives the probability that a record which is unique in the sample is unique in the
    population: `in_sample` is that times the unique records of the sample.

    >>> found = estimate([1, 2, 3], [60, 15, 5], population=1000)
    >>> found.by, round(found.uniques), round(found.in_sample, 1)
    ('snb', 267, 28.1)
    """
    if model not in UNIQUENESS_MODELS:
        raise UnknownName(str(model), "uniqueness model", UNIQUENESS_MODELS)
    sample = _sample(sizes, classes, population)
    alone = float(sample.of_size(1))
    if not alone or sample.records == sample.population:
        return _told(sample, model, COUNTED, Found(alone, alone))
    if model != RULE:
        return _told(sample, model, model, ESTIMATORS[model](sample))
    return _told(sample, model, *_by_rule(sample))


def _by_rule(sample: Sample) -> tuple[str, Found]:
    """Choose as Dankar et al. do."""
    if 10 * sample.records <= sample.population:
        return "pitman", pitman(sample)
    first, last = snb(sample), zayatz(sample)
    if first.uniques is None or last.uniques is None:
        return "zayatz", Found(last.uniques, last.in_sample, f"{first.note} Zayatz's model was taken.")
    return ("zayatz", last) if last.uniques < first.uniques else ("snb", first)


def _told(sample: Sample, model: str, by: str, found: Found) -> Estimate:
    """Make the answer, its share between 0 and 1."""
    share = None
    if found.uniques is not None:
        share = min(found.uniques / sample.population, 1.0) if sample.population else 0.0
    return Estimate(model, by, found.uniques, share, found.in_sample, found.note)


def population_of(
    records: int, population_size: int | None = None, sampling_share: float | None = None
) -> int:
    """Return the persons of the population, given as such or by the share that was sampled.

    >>> population_of(100, sampling_share=0.05)
    2000
    """
    if (population_size is None) == (sampling_share is None):
        message = "Give either population_size or sampling_share, one of the two."
        raise UsageError(message)
    if population_size is not None:
        return _checked(population_size, records)
    if not _is_number(sampling_share) or not 0 < sampling_share <= 1:
        message = f"sampling_share must be above 0 and at most 1, got {sampling_share}."
        raise UsageError(message)
    return _checked(max(records, round(min(records / float(sampling_share), 1e300))), records)


def _checked(population: object, records: int) -> int:
    """Return the population's size if a sample of so many records can be of it."""
    if not _is_number(population) or population != population // 1:
        message = f"population_size must be a whole number, got {population}."
        raise UsageError(message)
    if population < records:
        message = f"population_size must be at least the sample's {records:,} records, got {population:,}."
        raise UsageError(message)
    if population > LARGEST:
        message = f"population_size must be at most {LARGEST:,}, got {population:.3g}."
        raise UsageError(message)
    return int(population)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _sample(sizes: Sequence[int] | IntArray, classes: Sequence[int] | IntArray, population: int) -> Sample:
    """Check the class sizes and put them together with the population."""
    size, count = np.asarray(sizes, dtype=np.float64), np.asarray(classes, dtype=np.float64)
    if size.ndim != 1 or size.shape != count.shape:
        message = f"Give as many numbers of classes as sizes, got {count.size} for {size.size} sizes."
        raise UsageError(message)
    if not ((size >= 1) & (size == np.floor(size))).all() or not (np.diff(size) > 0).all():
        message = "Class sizes must be whole numbers from 1 up, ascending, each once."
        raise UsageError(message)
    if not ((count >= 0) & (count == np.floor(count))).all():
        message = "Numbers of classes must be whole and not negative."
        raise UsageError(message)
    there = count > 0
    return Sample(size[there], count[there], _checked(population, int(size @ count)))
