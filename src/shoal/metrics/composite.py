"""Composite: the weighted mean of several metrics, each scaled by its range over the lattice.

The range of a part reaches from its loss at the lowest node of the lattice to its loss at the highest node,
both without suppression. A policy can state another range. A range depends on no model, limit or search, so
losses for different k, limits and algorithms can be compared.

Lemma: if no part has a larger loss at node x than at node y, neither has the composite, because weights are
positive and ranges are constant. The composite is therefore monotone if all parts are monotone. Suppressing
records lowers the composite only if it lowers the loss of a part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import ColumnTotal, Metric, SizeTerms, When
from shoal.core.problem import Problem
from shoal.core.recoding.recoding import Recoding
from shoal.errors import CannotHonour, DataError, PolicyError
from shoal.metrics import METRICS
from shoal.wording import Change, quote

NAME = "composite"
_WEAKEST_LAST = (When.ALWAYS, When.WITHOUT_SUPPRESSION, When.NEVER)


@dataclass(frozen=True)
class Part:
    """One metric of a composite."""

    metric: Metric
    weight: float  # divided by the sum of all weights
    stated: tuple[float, float] | None  # the range that the policy states

    @property
    def additive(self) -> When:
        """The condition under which the loss is the sum of the values of `Metric.table`."""
        return self.metric.separable if self.metric.over_columns is not None else When.NEVER

    def range(self, problem: Problem) -> tuple[float, float]:
        """Return the smallest and the largest loss of the lattice, or the range that the policy states."""
        if self.stated is not None:
            return self.stated
        lattice = problem.free
        try:
            lowest, highest = (
                self._without_suppression(problem, node) for node in (lattice.bottom, lattice.top)
            )
        except DataError as error:
            if error.code != "out-of-memory":
                raise
            name = METRICS.name_of(self.metric)
            raise CannotHonour(
                f"The smallest loss of {name} cannot be counted for composite: the combinations do not fit "
                "in memory.",
                advice=[
                    Change(action=f"State its range, such as {{{name}: {{weight: 2, range: [0, 100]}}}}"),
                    Change("memory_limit", action="Raise {}"),
                ],
            ) from None
        return lowest, highest

    def _without_suppression(self, problem: Problem, node: tuple[int, ...]) -> float:
        if self.additive is not When.NEVER:
            parts = zip(self.metric.table(problem), node, strict=True)
            return float(sum(part[level] for part, level in parts))
        classes = problem.classes(node)
        return self.metric.loss(problem, problem.recoding(node), classes, classes.nothing())


@dataclass(frozen=True)
class Composite(Metric):
    """Average several metrics by weight, each scaled to 0..1 by its range over the lattice."""

    parts: tuple[str | Mapping[str, Any], ...] = field(
        metadata={"takes": "a list of metrics and weights, such as [{precision: 1}, {discernibility: 2}]"}
    )
    """The metrics with their weights, or with a mapping of `weight` (default 1), `range` (replaces the range
    over the lattice, such as `[0, 1]`) and the metric's own options.
    """

    monotone: ClassVar[When] = When.NEVER
    """The weakest promise of the parts. A loss is monotone if generalizing never lowers it."""
    separable: ClassVar[When] = When.NEVER
    """The weakest promise of the parts. Never if a part is no sum, such as `aggregate: geometric`."""
    by_size: ClassVar[bool] = False
    """Whether the loss of every part depends on the classes only through their sizes."""
    weighted: ClassVar[bool] = True
    """The `weight` of a column counts in each part whose metric uses column weights."""
    by_level: ClassVar[bool] = False
    """Whether the loss of some part needs the level of every group."""

    by_parts: ClassVar[tuple[str, ...]] = ("monotone", "separable", "by_size", "weighted", "by_level")

    def __post_init__(self) -> None:
        """Set the promises, which depend on the parts."""
        metrics = [part.metric for part in self.members]
        promises = {
            "monotone": max((metric.monotone for metric in metrics), key=_WEAKEST_LAST.index),
            "separable": max((part.additive for part in self.members), key=_WEAKEST_LAST.index),
            "by_size": all(metric.by_size for metric in metrics),
            "weighted": any(metric.weighted for metric in metrics),
            "by_level": any(metric.by_level for metric in metrics),
        }
        for name, value in promises.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        """Hash the weights only: parts may be mappings, which are not hashable."""
        return hash(tuple(part.weight for part in self.members))

    @cached_property
    def members(self) -> tuple[Part, ...]:
        """The parts, created by the registry."""
        if not self.parts:
            raise PolicyError("Metric composite needs parts, such as [{precision: 1}, {discernibility: 2}].")
        parsed = [_parse_part(part) for part in self.parts]
        total_weight = sum(weight for _, weight, _ in parsed)
        if not math.isfinite(total_weight):
            raise PolicyError("The weights of composite are too large. Give smaller ones.")
        return tuple(Part(metric, weight / total_weight, stated) for metric, weight, stated in parsed)

    @property
    def needs_label(self) -> bool:
        return any(part.metric.needs_label for part in self.members)

    @property
    def over_columns(self) -> ColumnTotal | None:
        return None if any(part.additive is When.NEVER for part in self.members) else ColumnTotal.SUM

    def onto(self, problem: Problem, part: Problem) -> tuple[Metric, float]:
        """Return the composite for the columns of `part`, with the ranges of all columns, and a factor."""
        parts: list[Mapping[str, Any]] = []
        for member, (_, factor) in zip(self.members, self._scales(problem), strict=True):
            metric, share = member.metric.onto(problem, part)
            if factor:
                options = {field.name: getattr(metric, field.name) for field in fields(metric)}  # type: ignore[arg-type]
                scale = {"weight": member.weight, "range": [0.0, member.weight / (factor * share)]}
                parts.append({METRICS.name_of(metric): options | scale})
        if not parts:
            return self, 0.0
        scaled = zip(self.members, self._scales(problem), strict=True)
        total_weight = sum(member.weight for member, (_, factor) in scaled if factor)
        return replace(self, parts=tuple(parts)), total_weight

    def constant(self, problem: Problem) -> float:
        return -sum(low * factor for low, factor in self._scales(problem))

    def loss(self, problem: Problem, recoding: Recoding, classes: Classes, suppressed: BoolArray) -> float:
        total = 0.0
        for part, (low, factor) in zip(self.members, self._scales(problem), strict=True):
            total += factor * (part.metric.loss(problem, recoding, classes, suppressed) - low)
        return total

    def table(self, problem: Problem) -> tuple[FloatArray, ...]:
        if self.separable is When.NEVER:
            return super().table(problem)
        return self._table_sum(problem, self.members)

    def size_terms(self, problem: Problem) -> SizeTerms | None:
        """Return the sum of the parts: terms for parts that depend on class sizes, and a table for the rest.

        Return None if a part of the rest is not additive, or if no part depends on class sizes.
        """
        tabulated, squares, suppressed_squares, suppressed, per_class = [], 0.0, 0.0, 0.0, 0.0
        for part, (_, factor) in zip(self.members, self._scales(problem), strict=True):
            terms = part.metric.size_terms(problem)
            if terms is None:
                if not part.additive.given(problem.limit > 0):
                    return None
                tabulated.append(part)
                continue
            squares += factor * terms.squares
            suppressed_squares += factor * terms.suppressed_squares
            suppressed += factor * terms.suppressed
            per_class += factor * terms.per_class
        if len(tabulated) == len(self.members):
            return None  # no part depends on class sizes
        table = self._table_sum(problem, tabulated)
        return SizeTerms(squares, suppressed_squares, suppressed, per_class, table)

    def _table_sum(
        self, problem: Problem, tabulated: list[Part] | tuple[Part, ...]
    ) -> tuple[FloatArray, ...]:
        """Add up the scaled tables of `tabulated`, and subtract the scaled smallest losses of all parts."""
        total = [np.zeros(hierarchy.height + 1) for hierarchy in problem.hierarchies]
        bottom = problem.free.bottom
        for part, (low, factor) in zip(self.members, self._scales(problem), strict=True):
            offset = -low * factor
            if part in tabulated:
                pairs = zip(part.metric.table(problem), bottom, strict=True)
                for column, (value, level) in enumerate(pairs):
                    total[column] += factor * (value - value[level])
                    offset += factor * float(value[level])
            if part.stated is not None or part not in tabulated:  # otherwise the offset is 0 up to rounding
                total = [values + offset / len(total) for values in total]
        return tuple(total)

    def _scales(self, problem: Problem) -> list[tuple[float, float]]:
        """Return, for each part, its smallest loss and the factor for the difference from it."""
        if self not in problem.cache:
            ranges = [(part.weight, *part.range(problem)) for part in self.members]
            problem.cache[self] = [
                (low, weight / (high - low) if high > low else 0.0) for weight, low, high in ranges
            ]
        scales: list[tuple[float, float]] = problem.cache[self]
        return scales


def _parse_part(entry: str | Mapping[str, Any]) -> tuple[Metric, float, tuple[float, float] | None]:
    """Parse a part: a metric, a metric with its weight, or a metric with its weight, range and options."""
    if isinstance(entry, str):
        entry = {entry: 1}
    if len(entry) != 1:
        raise PolicyError(
            f"A part of composite is one metric with its weight, such as {{precision: 1}}; got "
            f"{', '.join(map(quote, entry)) or 'none'}. Write each metric as a part of its own."
        )
    ((name, value),) = entry.items()
    if name == NAME:
        raise PolicyError("A part of composite cannot be composite. List its parts instead.")
    METRICS.load(name)  # refuses an unknown metric before checking its weight
    options = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight, stated = options.pop("weight", 1), options.pop("range", None)
    if not _is_number(weight) or weight <= 0:
        raise PolicyError(f"The weight of {name} in composite must be a number above 0, got {quote(weight)}.")
    if stated is not None:
        stated = _read_range(name, stated)
    return METRICS.create(name, options), float(weight), stated


def _read_range(name: str, stated: object) -> tuple[float, float]:
    if isinstance(stated, list | tuple) and len(stated) == 2 and all(map(_is_number, stated)):
        low, high = map(float, stated)
        if low < high:
            return low, high
    raise PolicyError(
        f"The range of {name} in composite must be two numbers, the smaller one first, such as [0, 1]; got "
        f"{quote(stated)}."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
