"""Random small problems, both as the oracle sees them and as shoal does, and the policy of a small table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import oracle
from plugin_examples import example
from shoal.algorithms import ALGORITHMS
from shoal.core.classes import LABEL, UNIT, Sensitive
from shoal.core.contracts import NodeSearch
from shoal.core.counts.counts import Counts, Domain, layout
from shoal.core.counts.in_memory import from_joint
from shoal.core.hierarchy.hierarchy import nest
from shoal.core.lattice.lattice import build
from shoal.core.problem import Problem
from shoal.metrics import METRICS
from shoal.models import MODELS

VARIANTS = ("coverage-geometric", "non-uniform-entropy-normalized", *oracle.COMPOSITES)
METRIC_NAMES = tuple(sorted({*METRICS, *VARIANTS} - {"composite"}))

NODE_SEARCHES = [name for name in ALGORITHMS if issubclass(ALGORITHMS.load(name), NodeSearch)]

ROWS = (1, 2, 4, 6, 8, 10, 12, 15, 20, 25)
SHARES = (0.1, 0.2, 0.25, 1 / 3, 0.5, 0.75, 1.0)
COLUMN = st.sampled_from([None, "s", "z"])
# How to make one of each model small enough to matter on tiny tables.
OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    name: st.fixed_dictionaries(options)
    for name, options in {
        "alpha-k-anonymity": {
            "alpha": st.sampled_from(SHARES),
            "k": st.integers(1, 4),
            "rarer_than": st.sampled_from([None, None, 0.3, 0.5, 1.0]),
            "column": COLUMN,
        },
        "average-risk": {"risk": st.sampled_from(SHARES)},
        "basic-beta-likeness": {"beta": st.sampled_from([0.1, 0.5, 1, 2, 4]), "column": COLUMN},
        "delta-disclosure": {
            "delta": st.sampled_from([0.2, 0.5, np.log(2).item(), 1, 2]),
            "present_only": st.booleans(),
            "column": COLUMN,
        },
        "delta-presence": {
            "maximum": st.sampled_from(SHARES),
            "minimum": st.sampled_from([0.0, 0.0, 0.05, 0.1]),
            "population": st.just("population.csv"),
        },
        "distinct-l-diversity": {"l": st.integers(1, 4), "column": COLUMN},
        "enhanced-beta-likeness": {"beta": st.sampled_from([0.1, 0.5, 1, 2, 4]), "column": COLUMN},
        "entropy-l-diversity": {"l": st.sampled_from([1, 1.5, 1.8, 2, 2.5, 3, 4]), "column": COLUMN},
        "k-anonymity": {"k": st.integers(1, 6), "unit": st.sampled_from([None, "u"])},
        "k-map": {"k": st.integers(1, 9), "population": st.just("population.csv")},
        "p-sensitive": {"p": st.integers(1, 3), "k": st.integers(3, 6), "column": COLUMN},
        "recursive-cl-diversity": {
            "c": st.sampled_from([0.5, 1, 1.5, 2, 3]),
            "l": st.integers(1, 4),
            "column": COLUMN,
        },
        "sample-uniqueness": {"share": st.sampled_from([0.0, *SHARES])},
        "t-closeness": {
            "t": st.sampled_from([0.0, *SHARES]),
            "distance": st.sampled_from(["equal", "ordered", "hierarchical"]),
            "column": COLUMN,
        },
    }.items()
}
OPTIONS |= {
    name: st.fixed_dictionaries(found.OPTIONS)
    for name in MODELS
    if name not in OPTIONS and (found := example(name))
}
POPULATION = ("k-map", "delta-presence")  # models that look classes up in one
WITHOUT_POPULATION = tuple(name for name in OPTIONS if name not in POPULATION)


def metric_of(name: str) -> Any:
    ((metric, options),) = written_metric(name).items()
    return METRICS.create(metric, options)


def written_metric(name: str) -> dict[str, dict[str, Any]]:
    """Return a metric of the oracle as a policy writes it."""
    if name == "coverage-geometric":
        return {"coverage": {"aggregate": "geometric"}}
    if name == "non-uniform-entropy-normalized":
        return {"non-uniform-entropy": {"normalized": True}}
    if name in oracle.COMPOSITES:
        return {"composite": {"parts": composite_parts(name)}}
    return {name: {}}


def composite_parts(name: str) -> list[dict[str, Any]]:
    """Return the parts of a composite of the oracle as a policy writes them."""
    parts = []
    for metric, weight, stated in oracle.COMPOSITES[name]:
        options = {"aggregate": "geometric"} if metric == "coverage-geometric" else {}
        stated_range = {"range": list(stated)} if stated else {}
        written = {**options, **stated_range, "weight": weight} if options or stated else weight
        parts.append({metric.removesuffix("-geometric"): written})
    return parts


class Dice:
    """Numbers out of one draw: a draw of its own for each of them would take most of a test's time."""

    def __init__(self, draw: Any, most: int) -> None:
        self.bytes = iter(draw(st.binary(min_size=most, max_size=most)))

    def below(self, number: int) -> int:
        """A number from 0; 0 too when more are asked for than were thrown."""
        return next(self.bytes, 0) % number

    def some(self, count: int, number: int) -> list[int]:
        return [self.below(number) for _ in range(count)]

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.below(len(choices))]


def rows_of(dice: Dice, sizes: Sequence[int], counts: Sequence[int]) -> list[tuple[int, ...]]:
    """So many rows as one of the counts, whose columns have so many values, the first ones more often."""
    return [tuple(dice.below(1 + dice.below(size)) for size in sizes) for _ in range(dice.one_of(counts))]


@st.composite
def hierarchies(draw: Any, values: int) -> dict[int, list[str]]:
    """A nested hierarchy of values 0..n-1: each level merges whole groups of the one below."""
    dice = Dice(draw, 2 + 3 * values)
    levels = dice.below(4)
    labels = {value: [str(value)] for value in range(values)}
    group = {value: value for value in range(values)}
    for level in range(1, levels + 1):
        present = sorted(set(group.values()))
        top = level == levels and dice.one_of((True, True, False))
        merged = {g: 0 if top else dice.below(len(present)) for g in present}
        group = {value: merged[g] for value, g in group.items()}
        for value in range(values):
            labels[value].append("*" if top else f"L{level}-{group[value]}")
    return labels


@st.composite
def nullable(draw: Any, values: int) -> dict[int | None, list[str]]:
    """A hierarchy of values 0..n-1 and a null."""
    found: dict[int | None, list[str]] = dict(draw(hierarchies(values + 1)))
    found[None] = found.pop(values)
    return found


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
    models: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # beside k and l
    columns: dict[str, list[int | None]] = field(default_factory=dict)  # s and z, for these models
    trees: dict[str, dict[int | None, list[str]]] = field(default_factory=dict)  # of s and z
    units: list[int] = field(default_factory=list)
    population: list[tuple[int, ...]] | None = None
    labels: list[int] = field(default_factory=list)  # what a classifier is to predict; none: not counted

    def asked(self) -> dict[str, Any]:
        """What must hold, as the oracle takes it."""
        return {"k": self.k, "l": self.l, "sensitive": self.sensitive, "extra": self.extra()}

    def extra(self) -> dict[str, Any]:
        held = {"columns": self.columns, "trees": self.trees, "units": {"u": self.units}}
        return {"models": self.models, "population": self.population, **held}

    def wishes(self) -> dict[str, Any]:
        least = max([self.k, self.l, *[model.least_size for model in self.built()]])
        ends = tuple(self.low), tuple(self.high)
        return self.asked() | {
            "weights": self.weights, "least_size": least, "labels": self.labels, "ends": ends,
        }  # fmt: skip

    def built(self) -> list[Any]:
        return [MODELS.create(name, options) for name, options in self.models]

    def problem(self, order: list[int] | None = None) -> Problem:
        order = list(range(len(self.rows))) if order is None else order
        counted = {name: [values[i] for i in order] for name, values in self.columns.items()}
        if self.l > 1:
            counted["l"] = [self.sensitive[i] for i in order]
        if self.units:
            counted[UNIT + "u"] = [self.units[i] for i in order]
        if self.labels:
            counted[LABEL + "y"] = [self.labels[i] for i in order]
        counts, values = counts_of([self.rows[i] for i in order], counted, self.population)
        bound = []
        for column, hierarchy in enumerate(self.hierarchies):
            name = f"c{column}"
            own = {row[column] for row in self.rows}
            here = values[column]
            bound.append(nest(name, [hierarchy[v] for v in here], counted=[v in own for v in here]))
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
            models.append(MODELS.create("distinct-l-diversity", {"l": self.l, "column": "l"}))
        return Problem(
            counts,
            tuple(bound),
            lattice,
            (*models, *self.built()),
            metric_of(self.metric),
            self.limit,
            tuple(self.weights),
            {name: about(name, values, self.trees.get(name)) for name, values in self.columns.items()},
        )


def in_order(values: Sequence[int | None]) -> list[int | None]:
    return sorted(set(values), key=lambda value: (value is None, value or 0))


def about(name: str, values: Sequence[int | None], tree: Any = None) -> Sensitive:
    """What models may know of a sensitive column, without an engine."""
    distinct = in_order(values)
    reference = np.array([list(values).count(value) for value in distinct])
    hierarchy = None if tree is None else nest(name, [tree[value] for value in distinct])
    return Sensitive(reference, np.arange(len(distinct)), hierarchy)


def counts_of(
    rows: list[tuple[int, ...]],
    sensitive: dict[str, list[Any]] | None = None,
    population: list[tuple[int, ...]] | None = None,
) -> tuple[Counts, list[list[int]]]:
    """Count rows without an engine; values that the population alone has come behind the others."""
    columns = [sorted({row[c] for row in rows}) for c in range(len(rows[0]))]
    for c, values in enumerate(columns):
        values += sorted({row[c] for row in population or ()} - set(values))
    counts = _counted(rows, columns, sensitive or {})
    if population is not None:
        counts = replace(counts, population=_counted(population, columns, {}))
    return counts, columns


def _counted(
    rows: list[tuple[int, ...]], columns: list[list[int]], sensitive: dict[str, list[Any]]
) -> Counts:
    held = [*columns, *map(in_order, sensitive.values())]
    domains = [Domain(str(c), values, tuple(map(str, values))) for c, values in enumerate(held)]
    fields = layout([d.bits for d in domains])
    data = [*[[row[c] for row in rows] for c in range(len(columns))], *sensitive.values()]
    keys = np.zeros((fields[-1].word + 1, len(rows)), np.int64)
    for at, values, here in zip(fields, held, data, strict=True):
        codes = {value: code for code, value in enumerate(values)}
        keys[at.word] |= np.array([codes[v] for v in here], np.int64) << at.shift
    unique, sizes = np.unique(keys, axis=1, return_counts=True)
    bits = [d.bits for d in domains]
    wanted = dict(zip(sensitive, bits[len(columns) :], strict=True))
    return from_joint(bits[: len(columns)], wanted, unique, sizes)


@st.composite
def cases(
    draw: Any, metrics: tuple[str, ...] = METRIC_NAMES, models: Sequence[str] | None = tuple(OPTIONS)
) -> Case:
    """A random table with hierarchies, constraints, models, limit and metric."""
    dice = Dice(draw, 300)
    columns = 1 + dice.below(4)
    sizes = [1 + number for number in dice.some(columns, 5)]
    rows = rows_of(dice, sizes, ROWS)
    trees = [draw(hierarchies(size)) for size in sizes]
    heights = [len(tree[0]) - 1 for tree in trees]
    low = [dice.below(h + 1) * dice.below(2) for h in heights]
    high = [h - dice.below(h - a + 1) * dice.below(2) for a, h in zip(low, heights, strict=True)]
    same = []
    if columns > 1 and heights[0] == heights[1] and dice.below(2):
        same = [(0, 1)]
        low[:2] = [max(low[:2])] * 2
        high[:2] = [max(low[0], min(high[:2]))] * 2
    case = Case(
        rows=rows,
        hierarchies=trees,
        sensitive=dice.some(len(rows), 4),
        k=dice.one_of((1, 1, 1, 2, 2, 3, 4, 6)),
        l=dice.one_of((1, 1, 1, 2, 3)),
        limit=dice.one_of((0, dice.below(len(rows) + 1), dice.below(len(rows) + 1), len(rows))),
        metric=dice.one_of(metrics),
        weights=[dice.one_of((1.0, 0.5, 2.0)) for _ in range(columns)],
        low=low,
        high=high,
        same_level=same,
        labels=dice.some(len(rows), 3),
    )
    return draw(with_models(case, models)) if models and dice.below(2) else case


@st.composite
def edges(draw: Any, names: Sequence[str] = tuple(OPTIONS)) -> Case:
    """Few classes, some of which become one, and a model that some of them only just pass.

    Here promises about merging break soonest, and a refused node often lies above an acceptable one.
    """
    dice = Dice(draw, 30)
    values, other = 3 + dice.below(3), 1 + dice.below(2)
    tree = {c: [str(c), f"g{dice.below(2)}", "*"] for c in range(values)}
    numbers = dice.one_of([(0, 0, 1, 2, 3, 5), (0, 0, 0, 0, 0, 0, 1, 4), (0, 0, 0, 0, 1, 1, 6)])
    held = [((c, v % other), v) for c in range(values) for v in range(3) for _ in range(dice.one_of(numbers))]
    held = held or [((0, 0), 0)]
    rows, secret = [row for row, _ in held], [value for _, value in held]
    case = Case(
        rows=rows, hierarchies=[tree, {v: [str(v), "*"] for v in range(other)}], sensitive=[], k=1, l=1,
        limit=dice.below(len(rows) + 1), metric=dice.one_of(METRIC_NAMES),
        weights=[1.0, 1.0], low=[0, 0], high=[2, 1], same_level=[], labels=[v // 2 for v in secret],
    )  # fmt: skip
    case = draw(with_models(case, names, most=1))
    case.columns = {"s": secret, "z": secret}
    return _tightened(case, dice.below(len(rows) + 1))


@st.composite
def pairs(draw: Any, names: Sequence[str] = tuple(OPTIONS)) -> Case:
    """Few classes and two models, of any kind, that some of them, or what is left of them, only just pass."""
    first = draw(edges(names))
    second = draw(with_models(first, names, most=1))
    both = replace(
        second,
        k=1,
        models=[*first.models, *second.models],
        columns=first.columns,
        units=first.units or second.units,
        population=first.population or second.population,
    )
    return _tightened(both, draw(st.sampled_from([0, both.limit])))


def _tightened(case: Case, limit: int) -> Case:
    """The case with its last model so strong that some class at the bottom, or the rest, only just passes."""
    problem = case.problem()
    classes, tight = problem.classes(problem.lattice.bottom), problem.models[-1]
    kept = classes.sizes[~problem.violations(classes)]
    name, options = case.models[-1]
    if name == "average-risk":
        tight = replace(tight, risk=float(len(kept) / kept.sum())) if len(kept) else tight
    elif name == "sample-uniqueness":
        tight = replace(tight, share=float((kept == 1).sum() / kept.sum())) if len(kept) else tight
    else:
        tight = tight.nearest(classes, limit) or tight
    return replace(
        case, models=[*case.models[:-1], (name, {option: getattr(tight, option) for option in options})]
    )


@st.composite
def with_models(draw: Any, case: Case, names: Sequence[str], most: int = 2) -> Case:
    """The case with one or more further models, and the columns they look at."""
    dice = Dice(draw, 4 + 3 * len(case.rows) + 40 * len(case.hierarchies))
    chosen = [dice.one_of(names) for _ in range(1 + dice.below(most))]
    values = (0, 1, 2, 3, None, None, None, None)
    columns = {name: [dice.one_of(values) for _ in case.rows] for name in ("s", "z")}
    found = replace(
        case,
        k=1 + dice.below(3),
        l=1,
        models=[(name, draw(OPTIONS[name])) for name in chosen],
        columns=columns,
        trees={name: draw(nullable(4)) for name in columns},
    )
    if any(options.get("unit") for _, options in found.models):
        found.units = dice.some(len(case.rows), 5)
    if any("population" in options for _, options in found.models):
        sizes = [len(tree) for tree in case.hierarchies]
        found.population = [*case.rows, *rows_of(dice, sizes, (0, *ROWS[:-1]))]
    return found


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
        labels=random.integers(0, 2, rows).tolist() if metric == "classification" else [],
    )


QUASI = "quasi-identifier"


def policy_of_people(lands: Mapping[str, list[str]], other: str, **changes: Any) -> dict[str, Any]:
    """The policy of a table of names, ages, lands, sexes, illnesses and a column that is harmless."""
    return {
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10, 40]}},
            "land": {"role": QUASI, "hierarchy": {"tree": lands}},
            "sex": {"role": QUASI, "hierarchy": "flat"},
            "ill": {"role": "sensitive"},
            other: {"role": "other"},
        },
        "models": [{"k-anonymity": {"k": 4}}],
        "suppression_limit": "15%",
    } | changes


@st.composite
def starts(draw: Any, models: Any = WITHOUT_POPULATION) -> tuple[Case, Problem, tuple[int, ...]]:
    """A random problem and a node of its lattice."""
    case = draw(cases(models=models))
    problem = case.problem()
    return case, problem, draw(st.sampled_from(list(problem.lattice.nodes())))


def combination_of(case: Case, problem: Problem) -> list[int]:
    """The combination of each row."""
    values = [sorted({row[c] for row in case.rows}) for c in range(len(case.hierarchies))]
    codes = [problem.counts.codes(c) for c in range(len(values))]
    found = {
        tuple(column[codes[c][i]] for c, column in enumerate(values)): i for i in range(len(problem.counts))
    }
    return [found[row] for row in case.rows]
