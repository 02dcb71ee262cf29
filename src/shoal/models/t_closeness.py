"""t-closeness: each class's sensitive values are spread nearly as in the whole table (Li et al. 2007)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Distribution, Sensitive
from shoal.core.contracts import When
from shoal.errors import PolicyError
from shoal.models.sensitive_model import SensitiveModel, above_caps
from shoal.models.thresholds import CLOSE, rounded_up, within

_DENSE = 1 << 22  # numbers held at once, where a distance needs every group in every class


@dataclass(frozen=True, kw_only=True)
class TCloseness(SensitiveModel):
    """Refuse classes whose distribution of a sensitive column is farther than t from the whole input's."""

    t: float
    """The greatest distance of a class, from 0 to 1."""
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    """How far apart two values are."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class is no farther than the mean of its parts."""
    values_alone = True

    def __post_init__(self) -> None:
        """Refuse a t that means nothing."""
        if not 0 <= self.t <= 1:
            message = f"t must be from 0 to 1, got {self.t}."
            raise PolicyError(message)

    def about_values(self) -> str:
        """Say how near."""
        whole = "In every group sensitive values are spread as in the whole table"
        return f"{whole}, to a distance of {self.t:g}"

    @property
    def needs_reference(self) -> bool:
        """Classes are compared with the whole input."""
        return True

    @property
    def needs_hierarchy(self) -> bool:
        """The distance may be that along a hierarchy."""
        return self.distance == "hierarchical"

    def falls_short(self, classes: Classes, column: str) -> BoolArray:
        """Mark the classes that are too far."""
        near: BoolArray = distances(classes, column, self.distance) <= self.t + CLOSE
        return ~near  # also what is no number: without a reference nothing is near

    def stuck(self, classes: Classes, column: str) -> FloatArray:
        """Bound what fails below: the distance is at most the mean of the parts', which have a bound."""
        about, reach = classes.column(column), self.t + CLOSE
        if self.distance == "equal":  # of any set of values a part that passes has at most t more
            spread = classes.distribution(column)
            return above_caps(spread, about.shares[spread.codes], reach)
        room = farthest(about, self.distance) - reach
        if room <= CLOSE:
            return np.zeros(len(classes))
        over = (distances(classes, column, self.distance) - reach - CLOSE) / room
        return np.multiply(classes.sizes, np.clip(over, 0, 1), dtype=np.float64)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest t that these classes reach."""
        columns = self.sensitive(classes.sensitive)
        worst = np.max([distances(classes, column, self.distance) for column in columns], axis=0)
        t = within(classes, worst, limit)
        return None if t is None or rounded_up(t) >= 1 else replace(self, t=rounded_up(t))


def distances(classes: Classes, column: str, kind: str) -> FloatArray:
    """Return each class's earth mover's distance from the whole input."""
    spread, about = classes.distribution(column), classes.column(column)
    return spread.once((distances, kind), lambda: _distances(spread, about, kind))


def _distances(spread: Distribution, about: Sensitive, kind: str) -> FloatArray:
    if kind == "ordered":
        return _ordered(spread, about)
    levels = _levels(about) if kind == "hierarchical" else [np.arange(len(about.shares))]
    found: FloatArray = np.mean([_equal(spread, about.shares, groups) for groups in levels], axis=0)
    return found


def farthest(about: Sensitive, kind: str) -> float:
    """Return the greatest distance that a class can have; no mixture is farther than all its values."""
    if kind == "ordered":
        below = np.cumsum(about.shares[about.ordered])[:-1]
        return float(max(below.mean(), 1 - below.mean())) if len(below) else 0.0
    levels = _levels(about) if kind == "hierarchical" else [np.arange(len(about.shares))]
    alone = [1 - np.bincount(groups, about.shares)[groups] for groups in levels]
    return float(np.mean(alone, axis=0).max())


def _levels(about: Sensitive) -> list[IntArray]:
    """Return the group of each value at every level below the root, which is one group of all values.

    Lemma: in a tree whose leaves are all equally deep, moving costs the height of the lowest group that
    holds both ends. Half of it is paid on the way up, a level at a time, so the distance is the mean over
    these levels of the distance between groups that are all equally far.
    """
    assert about.hierarchy is not None  # a policy without one is refused
    height, tops = about.hierarchy.height, len(about.hierarchy.labels[-1])
    return [about.hierarchy.groups(level) for level in range(height + (tops > 1 or height == 0))]


def _equal(spread: Distribution, whole: FloatArray, groups: IntArray) -> FloatArray:
    """Return half the sum of differences between the shares of groups, which are those above the whole's."""
    count = int(groups.max()) + 1
    expected = np.bincount(groups, whole, count)
    if count == len(whole):  # each value is a group of its own
        return spread.sums(np.maximum(spread.shares - whole[spread.codes], 0))
    found = np.empty(len(spread.sizes))
    for some, shares in _dense(spread, groups, count):
        found[some] = np.maximum(shares - expected, 0).sum(axis=1)
    return found


def _ordered(spread: Distribution, about: Sensitive) -> FloatArray:
    """Move what is too much to the neighbour in order, step by step."""
    values = len(about.ordered)
    found = np.zeros(len(spread.sizes))
    if values == 1:
        return found
    place = np.zeros(len(about.shares), np.int64)
    place[about.ordered] = np.arange(values)
    whole = about.shares[about.ordered]
    for some, shares in _dense(spread, place, values):
        found[some] = np.abs(np.cumsum(shares - whole, axis=1)).sum(axis=1) / (values - 1)
    return found


def _dense(spread: Distribution, groups: IntArray, count: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the shares of all groups in some classes at a time, (classes, groups)."""
    classes = len(spread.sizes)
    cells = spread.rows * count + groups[spread.codes]
    step = max(1, _DENSE // count)
    for start in range(0, classes, step):
        stop = min(start + step, classes)
        inside = slice(None) if step >= classes else (spread.rows >= start) & (spread.rows < stop)
        here = cells[inside] - start * count
        shares = np.bincount(here, spread.shares[inside], (stop - start) * count).astype(np.float64)
        yield slice(start, stop), shares.reshape(-1, count)
