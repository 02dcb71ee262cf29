"""Problem: what a search is given, and what follows from it whatever the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes, Sensitive
from shoal.core.contracts import Metric, Model, When
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice, Node
from shoal.core.memory import limit_of
from shoal.core.recoding import Recoding


@dataclass(frozen=True)
class Problem:
    """What a search is given: counts, hierarchies, lattice and wishes; never the data."""

    counts: Counts
    hierarchies: tuple[Hierarchy, ...]
    lattice: Lattice
    models: tuple[Model, ...]
    metric: Metric
    limit: int  # records that may be suppressed
    weights: tuple[float, ...]
    about: Mapping[str, Sensitive] = field(default_factory=dict)
    as_bounds: tuple[str, ...] = ()  # columns released as the ends of their bands
    whole: Lattice | None = None  # where the lattice was narrowed to a wish: what it was before
    identifying: tuple[int, ...] = ()  # how identifying each column is, from 1 to 3; none: all alike
    memory: int = field(default_factory=lambda: limit_of(None))  # bytes that a search may take

    @property
    def records(self) -> int:
        """The number of records."""
        return self.counts.records

    @cached_property
    def most_suppressed(self) -> int:
        """The records that may be suppressed: within the limit, and not all."""
        return min(self.limit, self.records - 1)

    @property
    def free(self) -> Lattice:
        """The levels that single classes may have, whatever the search was narrowed to."""
        return self.whole or self.lattice

    @cached_property
    def monotone_models(self) -> bool:
        """Whether everything above an acceptable node is acceptable."""
        return all(model.is_monotone(suppression=self.limit > 0) for model in self.models)

    @cached_property
    def monotone_metric(self) -> bool:
        """Whether the loss never falls going up."""
        return self.metric.monotone.given(self.limit > 0)

    @cached_property
    def least_size(self) -> int:
        """The records that every acceptable class has at least."""
        return max((model.least_size for model in self.models), default=1)

    @cached_property
    def sizes_settle(self) -> bool:
        """Whether the sizes of classes settle everything."""
        enough = self.metric.by_size or self.metric.separable.given(self.limit > 0)
        return enough and all(model.sizes_suffice for model in self.models)

    @cached_property
    def sizes_bound(self) -> bool:
        """Whether the sizes of classes settle the bound of a refused node."""
        return self.metric.by_size or self.metric.separable is not When.NEVER

    @cached_property
    def value_counts(self) -> tuple[IntArray, ...]:
        """How many records have each value, per column."""
        return tuple(
            self.counts.totals(column, len(hierarchy.labels[0]))
            for column, hierarchy in enumerate(self.hierarchies)
        )

    def recoding(self, node: Node) -> Recoding:
        """Return the recoding of a node."""
        return Recoding.from_node(self.hierarchies, node, self.as_bounds)

    def classes(self, node: Node) -> Classes:
        """Return the classes at one node, rolled up in one pass; an Evaluator serves many nodes."""
        pairs = enumerate(zip(self.hierarchies, node, strict=True))
        groups = {column: hierarchy.groups(level) for column, (hierarchy, level) in pairs if level}
        counts = self.counts.roll_up(groups) if groups else self.counts
        return Classes(counts.near(), self.about)

    def classes_of(self, recoding: Recoding) -> Classes:
        """Return the classes that a recoding makes."""
        if recoding.regions is not None:
            return Classes(recoding.regions.counts(self.counts), self.about)
        return Classes(self.counts.roll_up(dict(enumerate(recoding.groups))).near(), self.about)

    def acceptable(self, suppressed: int) -> bool:
        """Tell whether so many records may be suppressed."""
        return suppressed <= self.most_suppressed

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that some model refuses."""
        first, *others = self.models
        mask = first.violations(classes)
        for model in others:
            mask |= model.violations(classes)
        return mask

    def losses(self) -> FloatArray:
        """Return the separable metric's loss of every node, in the lattice's shape."""
        losses: FloatArray = self.metric.total(self.lattice.sums(self.metric.table(self)))
        return losses

    def loss_of(self, node: Node) -> float:
        """Return the separable metric's loss of one node."""
        parts = sum([column[level] for column, level in zip(self._table, node, strict=True)])
        return float(self.metric.total(parts))

    @cached_property
    def _table(self) -> tuple[list[float], ...]:
        return tuple(column.tolist() for column in self.metric.table(self))
