"""Partitions over two columns: the classes that cuts of single columns and mondrian form.

The plots are like the figures of the Mondrian paper (LeFevre, DeWitt and Ramakrishnan 2006). They show
values of the table, so only the custodian may see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.algorithms import ALGORITHMS
from shoal.columns.header import check_asked
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.contracts import Engine
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.core.recoding.ranges import arranged
from shoal.core.recoding.recoding import Recoding
from shoal.document.figures import COLOURS, empty_figure
from shoal.errors import InternalError, UsageError
from shoal.policy.policy import Policy
from shoal.wording import plural
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.release.recovery import load_policy
from shoal.workflow.search import search
from shoal.workflow.session import AUTO, session

_SEARCHES = {"one-dimensional": "greedy-cuts", "multidimensional": "mondrian"}
_TICKS = 6
_LARGEST = 60.0  # the area of the point with the most records


@dataclass(frozen=True)
class PictureAxis:
    """The positions of a column's values in a picture."""

    name: str
    places: FloatArray  # (values,): nan if a value has no position on the scale
    pad: float  # the margin between a box and the values in it
    ticks: dict[float, str]


@dataclass(frozen=True)
class DrawnPartition:
    """The classes of one search as boxes."""

    heading: str
    boxes: FloatArray  # (classes, 4): from and to on the first axis, from and to on the second


@dataclass(frozen=True)
class PartitionPlot:
    """The records of two columns, and the classes that each search forms from them."""

    name: str
    title: str
    axes: tuple[PictureAxis, PictureAxis]
    points: FloatArray  # (combinations, 3): the positions on both axes, and the number of records
    partitions: tuple[DrawnPartition, ...]


def partition_plot(
    table: Any,
    policy: Any,
    columns: Sequence[str],
    *,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = 20.0,
    progress: Progress | None = None,
) -> PartitionPlot:
    """Partition a table by only two of its quasi-identifiers, for the policy's k and without suppression."""
    policy = load_policy(policy, engine)
    check_pair(policy, columns)
    k = max(model.least_size for model in policy.privacy_models)
    others = [name for name in policy.columns if name not in columns]
    narrow = policy.model_copy(update={"label": None, "same_level": [], "local": False}).with_(
        columns={name: _free(column) for name, column in policy.written()["columns"].items()},
        models=[{"k-anonymity": {"k": k}}],
        metric="discernibility",
        algorithm="mondrian",
        suppression_limit=0,
        suppressed="drop",
    )
    with session(table, engine, memory_limit, progress) as s:
        counts, domains = counted(s.table, narrow.dropping(others))
        problem = problem_of(narrow.dropping(others), counts, domains, None, s.engine.memory)
        partitions = []
        for kind, name in _SEARCHES.items():
            _, result = search(problem, ALGORITHMS.create(name), seconds=seconds, progress=s.progress)
            if result.recoding is None:
                raise InternalError(f"{name} made no regions.")
            boxes = _boxes(problem, result.recoding)
            heading = f"{kind} ({name}): {plural(len(boxes), 'class')}, DM {result.loss:,.0f}"
            partitions.append(DrawnPartition(heading, boxes))
    axes = _axes(problem)
    sizes = problem.counts.in_memory().sizes
    points = np.stack([*_places(problem, axes), sizes.astype(np.float64)], axis=1)
    first, second = (axis.name for axis in axes)
    title = f"Partitions over {first} and {second}, k = {k:,}"
    return PartitionPlot("partitions", title, axes, points, tuple(partitions))


def check_pair(policy: Policy, columns: Sequence[str]) -> None:
    """Raise unless the columns are two quasi-identifiers and a model needs classes of 2 or more records."""
    if len(columns) != 2 or len(set(columns)) != 2:
        raise UsageError("Partitions are drawn over two different columns, as age,zip.", field="partitions")
    check_asked(columns, policy.roles.quasi_identifiers, kind="quasi-identifier", where="policy")
    if max(model.least_size for model in policy.privacy_models) < 2:
        raise UsageError("Partitions need a model that asks for classes of at least 2 records.")


def _free(column: dict[str, Any]) -> dict[str, Any]:
    """Return a column's settings without those that limit or change its levels."""
    bounds = ("min_level", "max_level", "weight", "release_as", "identifying")
    return {name: value for name, value in column.items() if name not in bounds}


def _axes(problem: Problem) -> tuple[PictureAxis, PictureAxis]:
    first, second = (
        _axis(hierarchy, counts)
        for hierarchy, counts in zip(problem.hierarchies, problem.value_counts, strict=True)
    )
    return first, second


def _axis(hierarchy: Hierarchy, counts: IntArray) -> PictureAxis:
    """Place numbers and dates on their scale, and other values in the order of their hierarchy."""
    order = arranged(hierarchy, counts, ties=True).values
    if hierarchy.positions is None:
        positions = np.empty(len(order))
        positions[order] = np.arange(len(order))
    else:
        positions = hierarchy.positions.astype(np.float64)
    shown = order[np.isfinite(positions[order])]
    steps = np.diff(np.unique(positions[shown]))
    labelled = shown[np.unique(np.linspace(0, len(shown) - 1, min(_TICKS, len(shown))).round().astype(int))]
    ticks = {float(positions[value]): hierarchy.labels[0][value] for value in labelled.tolist()}
    return PictureAxis(hierarchy.name, positions, float(steps.min()) / 2 if len(steps) else 0.5, ticks)


def _places(problem: Problem, axes: Sequence[PictureAxis]) -> list[FloatArray]:
    counts = problem.counts.in_memory()
    return [axis.places[counts.codes(column)] for column, axis in enumerate(axes)]


def _boxes(problem: Problem, recoding: Recoding) -> FloatArray:
    """Return the box of each class: around its groups if all classes have the same cuts, else its records."""
    regions = recoding.regions
    if regions is None:
        raise TypeError
    shown = np.flatnonzero(~regions.suppressed)
    sides = []
    axes = _axes(problem)
    for column, positions in enumerate(_places(problem, axes)):
        groups = regions.groups[column] if recoding.uniform else np.arange(len(regions.suppressed))
        has_place = np.isfinite(positions[regions.rows])
        group_of, position = groups[regions.classes[has_place]], positions[regions.rows[has_place]]
        low, high = np.full(int(groups.max()) + 1, np.inf), np.full(int(groups.max()) + 1, -np.inf)
        np.minimum.at(low, group_of, position)
        np.maximum.at(high, group_of, position)
        sides += [low[groups[shown]] - axes[column].pad, high[groups[shown]] + axes[column].pad]
    boxes: FloatArray = np.stack(sides, axis=1)
    return boxes[np.isfinite(boxes).all(axis=1)]


def draw_partitions(plot: PartitionPlot) -> Any:
    """Draw combinations as points, whose area shows the number of records, and classes as boxes."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    figure = empty_figure(5.2 * len(plot.partitions), 4.6)
    (panels,) = figure.subplots(1, len(plot.partitions), sharex=True, sharey=True, squeeze=False)
    x, y, records = plot.points[np.isfinite(plot.points).all(axis=1)].T
    area = np.maximum(2.0, _LARGEST * records / records.max(initial=1.0))
    first, second = plot.axes
    for panel, partition in zip(panels, plot.partitions, strict=True):
        panel.scatter(x, y, s=area, color=COLOURS[0], alpha=0.5, linewidths=0)
        boxes = [Rectangle((a, c), b - a, d - c) for a, b, c, d in partition.boxes.tolist()]
        panel.add_collection(PatchCollection(boxes, facecolor="none", edgecolor=COLOURS[1], linewidth=0.8))
        panel.set_title(partition.heading, fontsize="medium")
        panel.set_xlabel(first.name)
        panel.set_xticks(list(first.ticks), list(first.ticks.values()), rotation=30, ha="right")
        panel.grid(visible=False)
        panel.autoscale_view()
    panels[0].set_ylabel(second.name)
    panels[0].set_yticks(list(second.ticks), list(second.ticks.values()))
    figure.suptitle(plot.title, fontsize="large")
    return figure
