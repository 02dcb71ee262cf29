"""Problem: the input of a search, and facts that every search needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Sensitive
from shoal.core.contracts import Metric, Model, When
from shoal.core.counts.counts import Counts
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.lattice.lattice import Lattice, Node
from shoal.core.memory import limit_of
from shoal.core.recoding.recoding import Recoding


@dataclass(frozen=True)
class Problem:
    """The input of a search: counts, hierarchies, lattice and settings; never the data."""

    counts: Counts
    hierarchies: tuple[Hierarchy, ...]
    lattice: Lattice
    models: tuple[Model, ...]
    metric: Metric
    limit: int  # the number of records that may be suppressed
    weights: tuple[float, ...]
    sensitive_info: Mapping[str, Sensitive] = field(default_factory=dict)
    as_bounds: tuple[str, ...] = ()  # columns that are released as the ends of their bands
    whole: Lattice | None = None  # the lattice before levels were fixed; None if no level was fixed
    identifying: tuple[int, ...] = ()  # how identifying each column is, from 1 to 3; empty: all are equal
    memory: int = field(default_factory=lambda: limit_of(None))  # number of bytes that a search may use

    @property
    def records(self) -> int:
        return self.counts.records

    @cached_property
    def most_suppressed(self) -> int:
        """The number of records that may be suppressed: the limit, but never all records."""
        return min(self.limit, self.records - 1)

    @property
    def free(self) -> Lattice:
        """The lattice of levels that single classes may have, even if the node has fixed levels."""
        return self.whole or self.lattice

    @cached_property
    def monotone_models(self) -> bool:
        """Whether every node above an acceptable node is acceptable."""
        return all(model.is_monotone(suppression=self.limit > 0) for model in self.models)

    @cached_property
    def monotone_metric(self) -> bool:
        """Whether generalizing never lowers the loss."""
        return self.metric.monotone.given(self.limit > 0)

    @cached_property
    def least_size(self) -> int:
        """The smallest possible size of an acceptable class."""
        return max((model.least_size for model in self.models), default=1)

    @cached_property
    def sizes_decide(self) -> bool:
        """Whether the sizes of classes determine both acceptance and loss."""
        if not all(model.sizes_suffice for model in self.models):
            return False
        metric = self.metric
        return metric.by_size or metric.separable.given(self.limit > 0) or metric.size_terms(self) is not None

    @cached_property
    def sizes_bound(self) -> bool:
        """Whether the sizes of classes are enough to compute the bound of a refused node."""
        return self.metric.by_size or self.metric.separable is not When.NEVER

    @cached_property
    def cache(self) -> dict[object, Any]:
        """A cache for results that a metric computes once per problem."""
        return {}

    @cached_property
    def value_counts(self) -> tuple[IntArray, ...]:
        """The number of records of each value, per column."""
        return tuple(
            self.counts.totals(column, len(hierarchy.labels[0]))
            for column, hierarchy in enumerate(self.hierarchies)
        )

    def recoding(self, node: Node) -> Recoding:
        return Recoding.from_node(self.hierarchies, node, self.as_bounds)

    def classes(self, node: Node) -> Classes:
        """Return the classes at one node, in order of first appearance. For many nodes, use an Evaluator."""
        pairs = enumerate(zip(self.hierarchies, node, strict=True))
        groups = {column: hierarchy.groups(level) for column, (hierarchy, level) in pairs if level}
        counts = self.counts.roll_up(groups, in_order=True) if groups else self.counts
        return Classes(counts.in_memory(), self.sensitive_info)

    def classes_of(self, recoding: Recoding) -> Classes:
        if recoding.regions is not None:
            return Classes(recoding.regions.counts(self.counts), self.sensitive_info)
        return Classes(self.counts.roll_up(dict(enumerate(recoding.groups))).in_memory(), self.sensitive_info)

    def projected(self, axes: Sequence[int], models: tuple[Model, ...]) -> Problem:
        """Return the problem restricted to the columns of some axes of the lattice, with other models."""
        return replace(self.onto(self.lattice.projected(axes)), models=models)

    def onto(self, lattice: Lattice) -> Problem:
        """Return the problem restricted to the columns of a lattice."""
        columns = [self.lattice.columns.index(name) for name in lattice.columns]
        return replace(
            self,
            counts=self.counts.project(columns),
            hierarchies=tuple(self.hierarchies[column] for column in columns),
            lattice=lattice,
            weights=tuple(self.weights[column] for column in columns),
            whole=None,
            identifying=tuple(self.identifying[column] for column in columns) if self.identifying else (),
        )

    def acceptable(self, suppressed: int) -> bool:
        """Return whether this number of records may be suppressed.

        The compiled walk (`shoal.core.lattice.walk_kernels`) applies the same limit, `most_suppressed`.
        """
        return suppressed <= self.most_suppressed

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that some model refuses."""
        first, *others = self.models
        mask = first.violations(classes)
        for model in others:
            mask |= model.violations(classes)
        return mask

    def losses(self) -> FloatArray:
        """Return the loss of every node under a separable metric, in the shape of the lattice."""
        losses: FloatArray = self.metric.total(self.lattice.sums(self.metric.table(self)))
        return losses

    def loss_of(self, node: Node) -> float:
        """Return the loss of one node under a separable metric."""
        parts = sum([column[level] for column, level in zip(self._table, node, strict=True)])
        return float(self.metric.total(parts))

    @cached_property
    def _table(self) -> tuple[list[float], ...]:
        return tuple(column.tolist() for column in self.metric.table(self))
