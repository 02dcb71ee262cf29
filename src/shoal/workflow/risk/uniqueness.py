"""The number of records that are unique in the population, estimated from a sample by several models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.errors import UnknownName, UsageError, invalid
from shoal.policy.limits import share_of

if TYPE_CHECKING:
    from shoal.policy.policy import Policy

EXACT = 64  # terms of a sum that are added one by one
POINTS = 16  # number of quadrature points of each longer interval


@dataclass(frozen=True)
class Sample:
    """The numbers of classes of a sample by size, and the size of its population."""

    sizes: FloatArray  # (sizes,) ascending, from 1
    classes: FloatArray  # (sizes,) classes of each size
    population: int

    @property
    def records(self) -> int:
        """The number of records of the sample."""
        return int(self.sizes @ self.classes)

    @property
    def count(self) -> int:
        """The number of classes of the sample."""
        return int(self.classes.sum())

    @property
    def share(self) -> float:
        """The sampling share: records of the sample per person of the population."""
        return self.records / self.population

    def of_size(self, size: int) -> int:
        """Count the classes of a size."""
        return int(self.classes[self.sizes == size].sum())


@dataclass(frozen=True)
class ModelResult:
    """The result of one model: uniques in the population and in the sample, or why there is no result."""

    uniques: float | None
    in_sample: float | None
    note: str = ""


def sum_points(count: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights that sum a smooth function over 1, 2, ... count.

    The first terms are added one by one. The other terms form intervals, each twice as long as the one
    before, which are summed by Gaussian quadrature for equally weighted integers (Gram polynomials). If the
    function has no singularity above 1, the error is smaller than rounding errors.

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
    off_diagonal = k * np.sqrt((1 - (k / length) ** 2) / (4 * (4 * k * k - 1)))
    values, vectors = np.linalg.eigh(np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return (length - 1) / 2 + length * values, length * vectors[0] ** 2


def root(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Find the root of a decreasing function by bounded Newton steps; it returns its value and slope.

    The function must be positive at `low` and negative at `high`. A step out of bounds becomes a bisection.

    >>> round(root(lambda x: (2 - x * x, -2 * x), 0.0, 9.0), 12)
    1.414213562373
    """
    x = (low + high) / 2
    for _ in range(200):
        value, slope = function(x)
        if value > 0:
            low = x
        else:
            high = x
        step = x - value / slope if slope < 0 else low
        next_x = step if low < step < high else (low + high) / 2
        if abs(next_x - x) <= 1e-14 * max(1.0, abs(x)):
            return next_x
        x = next_x
    return x


HEAD = 32  # terms of a class that are added one by one; Stirling's series gives the sum of the rest
MOST = 32.0  # maximum of -log(1 - alpha), where alpha is nearly 1
AT_THE_END = "Pitman's likelihood is greatest at alpha = 0, the end of its range: the truth may be lower."


@dataclass(frozen=True)
class Fit:
    """Maximum-likelihood parameters: `total` is theta + alpha, `rest` is 1 - alpha, to avoid cancellation."""

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
        """Return the logarithm of the probability that a record is unique among `records` records."""
        points, weights = sum_points(records - 1)
        return -float(weights @ np.log1p(self.rest / (self.total + points - 1)))


def pitman(sample: Sample) -> ModelResult:
    """Estimate by Pitman's model; add a note if alpha is 0, the end of its range."""
    if sample.of_size(1) == sample.records:  # the likelihood tends to 1 as alpha tends to 1
        return ModelResult(float(sample.population), float(sample.records))
    fitted = fit(sample)
    log_unique = fitted.log_unique(sample.population)
    # The share of the sample's unique records that are unique in the population, too.
    log_share = log_unique - fitted.log_unique(sample.records)
    in_sample = sample.of_size(1) * math.exp(min(log_share, 0.0))
    return ModelResult(
        sample.population * math.exp(log_unique), in_sample, "" if fitted.rest < 1 else AT_THE_END
    )


def fit(sample: Sample) -> Fit:
    """Return the maximum-likelihood parameters of a sample whose records are not all unique."""
    likelihood = _Likelihood(sample)
    if likelihood.along_alpha(0.0)[0] <= 0:
        at = 0.0
    elif likelihood.along_alpha(MOST)[0] >= 0:
        at = MOST
    else:
        at = root(likelihood.along_alpha, 0.0, MOST)
    return Fit(likelihood.best(math.exp(-at)), math.exp(-at))


class _Likelihood:
    """The likelihood's derivatives for one sample, in theta + alpha and 1 - alpha to avoid cancellation."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.classes = sum_points(sample.count - 1)
        self.records = sum_points(sample.records - 1)

    def best(self, rest: float) -> float:
        """Return the theta + alpha of greatest likelihood for a given 1 - alpha."""
        return math.exp(root(lambda at: self._along_total(at, rest), -60.0, 100.0))

    def _factors(self, total: float, rest: float) -> tuple[FloatArray, FloatArray]:
        return total + (1 - rest) * (self.classes[0] - 1), total + rest + self.records[0] - 1

    def _along_total(self, at: float, rest: float) -> tuple[float, float]:
        """Return slope and curvature along the logarithm of theta + alpha."""
        total = math.exp(at)
        classes, records = self._factors(total, rest)
        up, down = total / classes, total / records
        slope = float(self.classes[1] @ up - self.records[1] @ down)
        return slope, slope + float(self.records[1] @ (down * down) - self.classes[1] @ (up * up))

    def along_alpha(self, at: float) -> tuple[float, float]:
        """Return slope and curvature along -log(1 - alpha), with the best theta for each alpha."""
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
    small = np.minimum(sizes - 1, HEAD).astype(np.int64)
    first, second = _series(rest + np.maximum(sizes - 1, HEAD))
    from_first, from_second = _series(np.array([rest + HEAD]))
    return firsts[small] + first - from_first, seconds[small] + from_second - second


def _series(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return digamma and trigamma for arguments of 32 or more, by Stirling's series."""
    inverse = 1 / x
    two = inverse * inverse
    digamma = np.log(x) - inverse / 2 - two * (1 / 12 - two * (1 / 120 - two / 252))
    trigamma = inverse * (1 + inverse / 2 + two * (1 / 6 - two * (1 / 30 - two / 42)))
    return digamma, trigamma


LEAST, _MOST, STEPS = -30.0, 40.0, 4001  # grid over log(b / (1-b))
NO_PAIRS = "SNB has no solution: the sample has no class of two records."
NO_ROOT = "SNB has no solution: no slide negative binomial fits the classes of one and of two records."


def snb(sample: Sample) -> ModelResult:
    """Estimate by the slide negative binomial model, or report that its equations have no solution."""
    ones, twos = sample.of_size(1), sample.of_size(2)
    if ones == sample.records:  # a = 0: every class of the population is unique
        return ModelResult(float(sample.population), float(ones))
    if not twos:
        return ModelResult(None, None, NO_PAIRS)
    classes = classes_in_population(sample)
    at = _crossing(classes, sample.share, ones, twos)
    if at is None:
        return ModelResult(None, None, NO_ROOT)
    a = _exponent(np.array([at]), sample.share, twos / ones)
    uniques = min(classes * float(np.exp(-a * np.logaddexp(0, -at))[0]), ones / sample.share)
    return ModelResult(uniques, uniques * sample.share)


def classes_in_population(sample: Sample) -> float:
    """Estimate the number of classes in the population by the modified estimator of Shlosser.

    The result is at most the number of classes in the sample plus the number of persons outside the sample.
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
    """Return the a > 0 with this ratio of classes seen twice to classes seen once; `at` is log(b / (1-b)).

    With c = (1-b) / (1-d) and e = (1-p) c, the ratio is p/2 a c (2 + e + a e) / (1 + a e). It grows with a
    from 0 without bound, so a is the only positive root of a quadratic equation.
    """
    c = 1 / (share + np.exp(at))
    e = (1 - share) * c
    right = 2 * ratio / (share * c)
    half = (2 + e - right * e) / 2
    root_distance = np.hypot(half, np.sqrt(e * right))
    a: FloatArray = np.where(half > 0, right / (half + root_distance), (root_distance - half) / e)
    return a


def _seen_once(at: FloatArray, classes: float, share: float, ratio: float) -> FloatArray:
    """Return the expected number of classes seen once for each b, with the a that fits the ratio."""
    a = _exponent(at, share, ratio)
    e = (1 - share) / (share + np.exp(at))
    share_seen: FloatArray = classes * share * np.exp(-a * np.logaddexp(0, np.log(share) - at)) * (1 + a * e)
    return share_seen


def _crossing(classes: float, share: float, ones: int, twos: int) -> float | None:
    """Find the greatest log(b / (1-b)) at which the expected number seen once equals the observed number."""
    grid = np.linspace(LEAST, _MOST, STEPS)
    for _ in range(4):  # each round replaces the grid by a finer grid over one of its steps
        above = _seen_once(grid, classes, share, twos / ones) >= ones
        changes = np.flatnonzero(above[1:] != above[:-1])
        if not len(changes):
            return None
        grid = np.linspace(grid[changes[-1]], grid[changes[-1] + 1], STEPS)
    return float(grid[STEPS // 2])


TERMS = 1 << 16  # maximum number of factors multiplied one by one; the rest is integrated


def zayatz(sample: Sample) -> ModelResult:
    """Estimate by Zayatz's model, which always has a solution."""
    weights = sample.classes * seen_once(sample.sizes, sample.records, sample.population)
    in_sample = sample.of_size(1) * float(weights[sample.sizes == 1].sum() / weights.sum())
    return ModelResult(in_sample / sample.share, in_sample)


def seen_once(sizes: FloatArray, records: int, population: int) -> FloatArray:
    """Return the probability that exactly one record of a class is sampled, by its size in the population.

    >>> seen_once(np.array([1.0, 2.0, 9.0]), 5, 10).round(6).tolist()
    [0.5, 0.555556, 0.0]
    """
    outside = float(population - records)
    # The first of `size` persons is in the sample; all others, drawn after it, are not.
    terms = int(min(sizes.max() - 1, TERMS, outside))
    factors = np.log1p(-(records - 1) / (population - 1.0 - np.arange(terms)))
    logs = np.concatenate(([0.0], np.cumsum(factors)))
    others = np.minimum(sizes - 1, terms).astype(np.int64)
    total = logs[others] + _log_tail(sizes, terms, records, population)
    chance: FloatArray = np.where(sizes - 1 <= outside, sizes * records / population * np.exp(total), 0.0)
    return chance


def _log_tail(sizes: FloatArray, terms: int, records: int, population: int) -> FloatArray:
    """Sum the logarithms of the factors after the first `terms`; they are smooth or negligible."""
    more: FloatArray = np.maximum(np.minimum(sizes - 1, population - records) - terms, 0.0)
    if not more.any():
        return more
    points, weights = np.polynomial.legendre.leggauss(12)
    at = terms - 0.5 + more[:, None] * (points + 1) / 2
    ratio = np.minimum((records - 1) / (population - 1.0 - at), 0.999)
    total: FloatArray = np.log1p(-ratio) @ weights * more / 2
    return total


ESTIMATORS = {"pitman": pitman, "snb": snb, "zayatz": zayatz}
RULE = "dankar"
UNIQUENESS_MODELS = (RULE, *ESTIMATORS)
COUNTED = "sample"  # no model was needed: the sample itself gives the number
LARGEST = 10**15  # persons; larger numbers are not exact


@dataclass(frozen=True)
class Estimate:
    """The number of uniques in the population, and the model that estimates it."""

    model: str  # the model that was requested
    by: str  # the model that gave the number; "sample" if no model was needed
    uniques: float | None  # expected in the population; None if the model has no solution
    share: float | None  # of the population
    in_sample: float | None  # the sample's records that are expected to be unique in the population too
    note: str = ""  # which model had no solution and why, or a warning


def estimate(
    sizes: Sequence[int] | IntArray, classes: Sequence[int] | IntArray, population: int, model: str = RULE
) -> Estimate:
    """Estimate the uniques of a population from a sample: it has `classes` classes of each of the `sizes`.

    Every model gives the probability that a record which is unique in the sample is unique in the
    population: `in_sample` is this probability times the number of unique records of the sample.

    >>> found = estimate([1, 2, 3], [60, 15, 5], population=1000)
    >>> found.by, round(found.uniques), round(found.in_sample, 1)
    ('snb', 267, 28.1)
    """
    if model not in UNIQUENESS_MODELS:
        raise UnknownName(str(model), "uniqueness model", UNIQUENESS_MODELS)
    sample = _sample(sizes, classes, population)
    unique = float(sample.of_size(1))
    if not unique or sample.records == sample.population:
        return _estimate(sample, model, COUNTED, ModelResult(unique, unique))
    if model != RULE:
        return _estimate(sample, model, model, ESTIMATORS[model](sample))
    return _estimate(sample, model, *_by_rule(sample))


def estimates(sizes: Sequence[int], records: Sequence[int], population: int) -> tuple[Estimate, ...]:
    """Estimate by every model, given the records in classes of each size."""
    classes = np.array(records, np.int64) // np.maximum(sizes, 1)
    return tuple(estimate(sizes, classes, population, model) for model in UNIQUENESS_MODELS)


def _by_rule(sample: Sample) -> tuple[str, ModelResult]:
    """Choose a model by the rule of Dankar et al."""
    if 10 * sample.records <= sample.population:
        return "pitman", pitman(sample)
    first, last = snb(sample), zayatz(sample)
    if first.uniques is None or last.uniques is None:
        return "zayatz", ModelResult(last.uniques, last.in_sample, f"{first.note} Zayatz's model was taken.")
    return ("zayatz", last) if last.uniques < first.uniques else ("snb", first)


def _estimate(sample: Sample, model: str, by: str, result: ModelResult) -> Estimate:
    """Return the estimate; its share is between 0 and 1."""
    share = None
    if result.uniques is not None:
        share = min(result.uniques / sample.population, 1.0) if sample.population else 0.0
    return Estimate(model, by, result.uniques, share, result.in_sample, result.note)


def population_of(
    records: int, population_size: int | None = None, sampling_share: float | None = None
) -> int:
    """Return the number of persons in the population, as given or computed from the sampling share.

    >>> population_of(100, sampling_share=0.05)
    2000
    """
    if (population_size is None) == (sampling_share is None):
        raise UsageError("Give either population_size or sampling_share, one of the two.")
    if population_size is not None:
        return _checked(population_size, records)
    if not _is_number(sampling_share) or not 0 < sampling_share <= 1:
        raise invalid("sampling_share", "above 0 and at most 1", sampling_share)
    return _checked(max(records, round(min(records / float(sampling_share), 1e300))), records)


def _checked(population: object, records: int) -> int:
    if not _is_number(population) or population != population // 1:
        raise invalid("population_size", "a whole number", population)
    if population < records:
        raise UsageError(
            f"population_size must be at least the sample's {records:,} records, got {population:,}.",
            field="population_size",
        )
    if population > LARGEST:
        raise UsageError(
            f"population_size must be at most {LARGEST:,}, got {population:.3g}.", field="population_size"
        )
    return int(population)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _sample(sizes: Sequence[int] | IntArray, classes: Sequence[int] | IntArray, population: int) -> Sample:
    size, count = np.asarray(sizes, dtype=np.float64), np.asarray(classes, dtype=np.float64)
    if size.ndim != 1 or size.shape != count.shape:
        raise UsageError(f"Give as many numbers of classes as sizes, got {count.size} for {size.size} sizes.")
    if not ((size >= 1) & (size == np.floor(size))).all() or not (np.diff(size) > 0).all():
        raise UsageError("Class sizes must be whole numbers from 1 up, ascending, each once.")
    if not ((count >= 0) & (count == np.floor(count))).all():
        raise UsageError("Numbers of classes must be whole and not negative.")
    occurring = count > 0
    return Sample(size[occurring], count[occurring], _checked(population, int(size @ count)))


def persons_of(
    policy: Policy | None, records: int, size: int | None = None, share: float | str | None = None
) -> int | None:
    """Return the number of persons in a table's population: as given, else that of the policy, else None."""
    if size is None and share is None and policy is not None:
        size, share = policy.population_size, policy.sampling_share
    if size is None and share is None:
        return None
    part = None if share is None else share_of(share, "sampling_share")
    return population_of(records, size, part)
