"""t-closeness: the distribution of sensitive values in a class is close to the table's (Li et al. 2007)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Distribution, Sensitive
from shoal.core.contracts import When
from shoal.errors import PolicyError, invalid
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.thresholds import TOLERANCE, least_bound, rounded_up

_MAX_DENSE = 1 << 22  # maximum size of an array with the share of every group in every class


@dataclass(frozen=True, kw_only=True)
class TCloseness(SensitiveModel):
    """Refuse classes whose distribution of a sensitive column is farther than t from that of the table."""

    t: float
    """The greatest distance of a class's distribution from that of the table, from 0 to 1."""
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    """How the distance of two values is measured: all equal, by their order, or by the hierarchy."""

    plain_summary: ClassVar[str] = (
        "The sensitive values of every group are spread nearly as in the whole table."
    )
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """The distance of a merged class is at most the mean distance of its parts."""
    ignores_size = True

    def __post_init__(self) -> None:
        if not 0 <= self.t <= 1:
            raise invalid("t", "from 0 to 1", self.t, PolicyError)

    def values_sentence(self) -> str:
        whole = "In every group sensitive values are spread as in the whole table"
        return f"{whole}, to a distance of {self.t:g}"

    @property
    def needs_reference(self) -> bool:
        return True

    @property
    def needs_hierarchy(self) -> bool:
        return self.distance == "hierarchical"

    def violating(self, classes: Classes, column: str) -> BoolArray:
        close: BoolArray = distances(classes, column, self.distance) <= self.t + TOLERANCE
        return ~close  # NaN also counts as violating: there is no distance without a reference

    def unavoidable_in(self, classes: Classes, column: str) -> FloatArray:
        """Bound the failing records from below: a class's distance is at most its parts' mean distance."""
        info, bound = classes.column(column), self.t + TOLERANCE
        if self.distance == "equal":  # a set of values may exceed its caps by t in total
            distribution = classes.distribution(column)
            return above_caps(distribution, info.shares[distribution.codes], bound)
        largest_excess = farthest(info, self.distance) - bound
        if largest_excess <= TOLERANCE:
            return np.zeros(len(classes))
        share_failing = (distances(classes, column, self.distance) - bound - TOLERANCE) / largest_excess
        return np.multiply(classes.sizes, np.clip(share_failing, 0, 1), dtype=np.float64)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        columns = self.sensitive(classes.sensitive)
        worst = np.max([distances(classes, column, self.distance) for column in columns], axis=0)
        t = least_bound(classes, worst, limit)
        return None if t is None or rounded_up(t) >= 1 else replace(self, t=rounded_up(t))


def distances(classes: Classes, column: str, kind: str) -> FloatArray:
    """Return the earth mover's distance of each class from the input."""
    distribution, info = classes.distribution(column), classes.column(column)
    return distribution.cached((distances, kind), lambda: _distances(distribution, info, kind))


def _distances(distribution: Distribution, info: Sensitive, kind: str) -> FloatArray:
    if kind == "ordered":
        return _ordered(distribution, info)
    levels = _levels(info) if kind == "hierarchical" else [np.arange(len(info.shares))]
    mean: FloatArray = np.mean([_equal(distribution, info.shares, groups) for groups in levels], axis=0)
    return mean


def farthest(info: Sensitive, kind: str) -> float:
    """Return the greatest possible distance of a class. A class with a single value reaches it."""
    if kind == "ordered":
        cumulative = np.cumsum(info.shares[info.ordered])[:-1]
        return float(max(cumulative.mean(), 1 - cumulative.mean())) if len(cumulative) else 0.0
    levels = _levels(info) if kind == "hierarchical" else [np.arange(len(info.shares))]
    single_value = [1 - np.bincount(groups, info.shares)[groups] for groups in levels]
    return float(np.mean(single_value, axis=0).max())


def _levels(info: Sensitive) -> list[IntArray]:
    """Return the group of each value at every level below the root.

    Lemma: in a tree whose leaves are equally deep, moving a record costs the height of the lowest group that
    contains both values. Each level below that group contributes the same amount. The distance is therefore
    the mean over the levels, where the groups of one level count as equally far apart.
    """
    assert info.hierarchy is not None  # a policy without a hierarchy is refused
    height, top_groups = info.hierarchy.height, len(info.hierarchy.labels[-1])
    return [info.hierarchy.groups(level) for level in range(height + (top_groups > 1 or height == 0))]


def _equal(distribution: Distribution, input_shares: FloatArray, groups: IntArray) -> FloatArray:
    """Return half the sum of absolute differences between the shares of groups."""
    count = int(groups.max()) + 1
    expected = np.bincount(groups, input_shares, count)
    if count == len(input_shares):  # every group has one value
        return distribution.sums(np.maximum(distribution.shares - input_shares[distribution.codes], 0))
    result = np.empty(len(distribution.sizes))
    for part, shares in _dense(distribution, groups, count):
        result[part] = np.maximum(shares - expected, 0).sum(axis=1)
    return result


def _ordered(distribution: Distribution, info: Sensitive) -> FloatArray:
    """Return the distance if records move to the next value in order, one step at a time."""
    values = len(info.ordered)
    result = np.zeros(len(distribution.sizes))
    if values == 1:
        return result
    rank = np.zeros(len(info.shares), np.int64)
    rank[info.ordered] = np.arange(values)
    input_shares = info.shares[info.ordered]
    for part, shares in _dense(distribution, rank, values):
        result[part] = np.abs(np.cumsum(shares - input_shares, axis=1)).sum(axis=1) / (values - 1)
    return result


def _dense(distribution: Distribution, groups: IntArray, count: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the shares of all groups for some classes at a time, (classes, groups)."""
    classes = len(distribution.sizes)
    cells = distribution.rows * count + groups[distribution.codes]
    step = max(1, _MAX_DENSE // count)
    for start in range(0, classes, step):
        stop = min(start + step, classes)
        inside = slice(None) if step >= classes else (distribution.rows >= start) & (distribution.rows < stop)
        cells_inside = cells[inside] - start * count
        shares = np.bincount(cells_inside, distribution.shares[inside], (stop - start) * count).astype(
            np.float64
        )
        yield slice(start, stop), shares.reshape(-1, count)
