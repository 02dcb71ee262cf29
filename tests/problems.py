"""Random small problems, both as the oracle sees them and as shoal does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shoal.core.counts import Counts, Domain, from_joint, layout
from shoal.core.evaluate import Problem
from shoal.core.hierarchy import nest
from shoal.core.lattice import build
from shoal.metrics import METRICS
from shoal.models import MODELS

METRIC_NAMES = (
    "class-size", "coverage", "coverage-geometric", "discernibility", "discernibility-star", "height",
    "non-uniform-entropy", "precision",
)  # fmt: skip


def metric_of(name: str) -> Any:
    if name == "coverage-geometric":
        return METRICS.create("coverage", {"aggregate": "geometric"})
    return METRICS.create(name)


@st.composite
def hierarchies(draw: Any, values: int) -> dict[int, list[str]]:
    """A nested hierarchy of values 0..n-1: each level merges whole groups of the one below."""
    levels = draw(st.integers(0, 3))
    labels = {value: [str(value)] for value in range(values)}
    group = {value: value for value in range(values)}
    for level in range(1, levels + 1):
        present = sorted(set(group.values()))
        top = level == levels and draw(st.booleans())
        merged = {g: 0 if top else draw(st.integers(0, max(0, len(present) - 1))) for g in present}
        group = {value: merged[g] for value, g in group.items()}
        for value in range(values):
            labels[value].append("*" if top else f"L{level}-{group[value]}")
    return labels


@dataclass
class Case:
    """One random problem."""

    rows: list[tuple[int, ...]]
    hierarchies: list[dict[int, list[str]]]
    sensitive: list[int]
    k: int
    l: int
    limit: int
    metric: str
    weights: list[float]
    low: list[int]
    high: list[int]
    same_level: list[tuple[int, ...]]

    def wishes(self) -> dict[str, Any]:
        found = {"k": self.k, "l": self.l, "sensitive": self.sensitive}
        return found | {"weights": self.weights, "least_size": max(self.k, self.l)}

    def problem(self, order: list[int] | None = None) -> Problem:
        rows = [self.rows[i] for i in order] if order else self.rows
        sensitive = [self.sensitive[i] for i in order] if order else self.sensitive
        counts, values = counts_of(rows, sensitive if self.l > 1 else None)
        bound = []
        for column, hierarchy in enumerate(self.hierarchies):
            name = f"c{column}"
            bound.append(nest(name, [hierarchy[v] for v in values[column]]))
        names = [h.name for h in bound]
        heights = {h.name: h.height for h in bound}
        lattice = build(
            heights,
            max_level=dict(zip(names, self.high, strict=True)),
            min_level=dict(zip(names, self.low, strict=True)),
            same_level=[[names[c] for c in group] for group in self.same_level],
        )
        models = [MODELS.create("k-anonymity", {"k": self.k})]
        if self.l > 1:
            models.append(MODELS.create("distinct-l-diversity", {"l": self.l}))
        return Problem(
            counts,
            tuple(bound),
            lattice,
            tuple(models),
            metric_of(self.metric),
            self.limit,
            tuple(self.weights),
        )


def counts_of(
    rows: list[tuple[int, ...]], sensitive: list[int] | None = None
) -> tuple[Counts, list[list[int]]]:
    """Count rows without an engine."""
    columns = [sorted({row[c] for row in rows}) for c in range(len(rows[0]))]
    extra = [sorted(set(sensitive))] if sensitive else []
    domains = [
        Domain(f"c{c}", values, tuple(map(str, values))) for c, values in enumerate([*columns, *extra])
    ]
    fields = layout([d.bits for d in domains])
    keys = np.zeros((fields[-1].word + 1, len(rows)), np.int64)
    for c, field in enumerate(fields):
        codes = {value: code for code, value in enumerate(domains[c].values)}
        data = sensitive if c == len(columns) else [row[c] for row in rows]
        keys[field.word] |= np.array([codes[v] for v in data or []], np.int64) << field.shift
    unique, sizes = np.unique(keys, axis=1, return_counts=True)
    bits = [d.bits for d in domains[: len(columns)]]
    wanted = {"s": domains[-1].bits} if sensitive else {}
    return from_joint(bits, wanted, unique, sizes), columns


@st.composite
def cases(draw: Any, metrics: tuple[str, ...] = METRIC_NAMES) -> Case:
    """A random table with hierarchies, constraints, models, limit and metric."""
    columns = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 5)) for _ in range(columns)]
    rows = draw(st.lists(st.tuples(*[st.integers(0, size - 1) for size in sizes]), min_size=1, max_size=25))
    trees = [draw(hierarchies(size)) for size in sizes]
    heights = [len(tree[0]) - 1 for tree in trees]
    low = [draw(st.integers(0, h)) if draw(st.booleans()) else 0 for h in heights]
    high = [draw(st.integers(a, h)) if draw(st.booleans()) else h for a, h in zip(low, heights, strict=True)]
    same = []
    if columns > 1 and heights[0] == heights[1] and draw(st.booleans()):
        same = [(0, 1)]
        low[:2] = [max(low[:2])] * 2
        high[:2] = [max(low[0], min(high[:2]))] * 2
    return Case(
        rows=rows,
        hierarchies=trees,
        sensitive=[draw(st.integers(0, 3)) for _ in rows],
        k=draw(st.integers(1, 6)),
        l=draw(st.integers(1, 3)),
        limit=draw(st.integers(0, len(rows))),
        metric=draw(st.sampled_from(metrics)),
        weights=[draw(st.sampled_from([0.5, 1.0, 2.0])) for _ in range(columns)],
        low=low,
        high=high,
        same_level=same,
    )


def larger(seed: int, metric: str) -> Case:
    """A problem of hundreds of rows and thousands of nodes, the same for a seed: too slow for the oracle."""
    random = np.random.default_rng(seed)
    columns = int(random.integers(4, 7))
    trees, data = [], []
    rows = int(random.integers(150, 700))
    for _ in range(columns):
        values = int(random.integers(2, 13))
        levels = int(random.integers(1, 5))
        group = np.arange(values)
        labels: dict[int, list[str]] = {value: [str(value)] for value in range(values)}
        for level in range(1, levels + 1):
            merged = random.integers(0, max(1, values >> level), values) * (level < levels)
            group = merged[group]
            for value in range(values):
                labels[value].append(f"L{level}-{group[value]}")
        trees.append(labels)
        weights = random.dirichlet(np.full(values, 0.7))
        data.append(random.choice(values, rows, p=weights))
    heights = [len(tree[0]) - 1 for tree in trees]
    return Case(
        rows=list(map(tuple, np.stack(data, axis=1).tolist())),
        hierarchies=trees,
        sensitive=random.integers(0, 5, rows).tolist(),
        k=int(random.integers(2, 12)),
        l=int(random.choice([1, 1, 1, 2, 3])),
        limit=int(random.choice([0, rows // 50, rows // 15, rows // 6])),
        metric=metric,
        weights=[float(w) for w in random.choice([0.5, 1.0, 2.0], columns)],
        low=[0] * columns,
        high=heights,
        same_level=[],
    )
