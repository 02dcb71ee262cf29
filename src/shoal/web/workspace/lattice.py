"""Views of a tabulated lattice: points, heights, losses by column, and example records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.classes import Classes
from shoal.core.problem import Problem
from shoal.errors import UnknownName
from shoal.metrics.coverage import Coverage
from shoal.web.errors import NotReady, Refused
from shoal.workflow.profile.offer import PrivacyLevel
from shoal.workflow.profile.profile import Profile
from shoal.workflow.search import Recoded

MAX_POINTS = 1_500  # a browser redraws all points at every move of a dial


@dataclass(frozen=True)
class Point:
    """A node, or several nodes of the same height that suppress about the same number of records."""

    node: tuple[int, ...]  # the level of each column
    height: int
    suppressed: int
    share: float
    nodes: int  # number of nodes that the point represents


@dataclass(frozen=True)
class LatticeView:
    """The lattice as points to draw."""

    columns: tuple[str, ...]
    heights: tuple[int, ...]  # height of each column's hierarchy
    nodes: int  # number of tabulated nodes
    size: int  # number of nodes of the whole lattice
    binned: bool  # points represent several nodes each
    points: tuple[Point, ...]


@dataclass(frozen=True)
class HeightRow:
    """The numbers of records that nodes of one height suppress."""

    height: int
    nodes: int
    least: int
    mean: float
    least_share: float
    mean_share: float


@dataclass(frozen=True)
class Example:
    """The quasi-identifiers of a record before and after recoding. They are values of the table."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    alike: float  # size of the record's class, or the class's l if only l is required
    suppressed: bool


def lattice_view(
    profile: Profile,
    privacy: PrivacyLevel,
    most: int = MAX_POINTS,
    keep: Iterable[int] = (),
) -> LatticeView:
    """Return each node with the number of records that it suppresses.

    More than `most` nodes are grouped into runs of nodes of the same height. A run is represented by its node
    whose index is in `keep`, or else by the node that suppresses the fewest records.
    """
    suppressed = profile.by_privacy(privacy)
    lattice, heights = profile.lattice, profile.heights
    order = np.lexsort((profile.numbers, suppressed, heights))
    binned = len(order) > most
    run_sizes = np.ones(len(order), np.int64)
    if binned:
        run_starts = _runs(np.bincount(heights), most)
        run_sizes = np.diff(np.append(run_starts, len(order)))
        representatives = order[run_starts]
        for index in keep:
            run = np.searchsorted(run_starts, int(np.flatnonzero(order == index)[0]), "right") - 1
            representatives[run] = index
        order = representatives
    points = tuple(
        Point(
            node=lattice.node(profile.levels[index].tolist()),
            height=int(heights[index]),
            suppressed=int(suppressed[index]),
            share=int(suppressed[index]) / profile.records,
            nodes=int(size),
        )
        for index, size in zip(order.tolist(), run_sizes.tolist(), strict=True)
    )
    return LatticeView(lattice.columns, lattice.heights, len(profile.numbers), lattice.size, binned, points)


def _runs(sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Split the nodes of each height into equal runs, at most `most` in total. Return where the runs begin.

    The number of runs of a height grows with the square root of its size, which keeps the lattice's shape.

    >>> _runs(np.array([1, 9, 1]), 8).tolist()
    [0, 1, 4, 7, 10]
    """
    roots = np.sqrt(sizes)
    counts = np.clip((max(most - len(sizes), 1) * roots / roots.sum()).astype(np.int64), 1, sizes)
    begins = np.cumsum(sizes) - sizes
    parts = [
        begin + np.arange(runs) * size // runs
        for begin, size, runs in zip(begins.tolist(), sizes.tolist(), counts.tolist(), strict=True)
        if size
    ]
    starts: NDArray[np.int64] = np.concatenate(parts)
    return starts


def by_height(profile: Profile, privacy: PrivacyLevel) -> list[HeightRow]:
    """Return the smallest and the mean number of records that nodes of each height suppress."""
    suppressed, heights, records = profile.by_privacy(privacy), profile.heights, profile.records
    rows = []
    for height in np.unique(heights).tolist():
        counts = suppressed[heights == height]
        low, mean = int(counts.min()), float(counts.mean())
        rows.append(HeightRow(height, len(counts), low, mean, low / records, mean / records))
    return rows


def levels_of(profile: Profile, node: Mapping[str, int]) -> tuple[int, ...]:
    """Check that a node names a level of each column, and return the levels in column order."""
    lattice = profile.lattice
    for name in node:
        if name not in lattice.columns:
            raise UnknownName(str(name)[:80], "quasi-identifier", lattice.columns, field="node")
    levels = []
    for name, height in zip(lattice.columns, lattice.heights, strict=True):
        level = node.get(name)
        if type(level) is not int or not 0 <= level <= height:
            raise Refused(f"The node needs a level of {name!r} from 0 to {height}.", "node")
        levels.append(level)
    if tuple(levels) not in lattice:
        raise Refused("Columns that share their level must have equal levels.", "node")
    return tuple(levels)


def loss_by_column(profile: Profile, node: Mapping[str, int], metric: str | None = None) -> dict[str, Any]:
    """Return the loss of each column at a node, as a number and as a share of the column's largest loss."""
    levels = levels_of(profile, node)
    default = profile.defaults.metric if profile.defaults.metric in profile.losses else "non-uniform-entropy"
    name = metric or default or "non-uniform-entropy"
    if name not in profile.losses:
        raise UnknownName(name[:80], "separable metric", profile.losses, field="metric")
    columns = []
    for column, level, parts in zip(profile.lattice.columns, levels, profile.losses[name], strict=True):
        loss, most = float(parts[level]), float(parts[-1])
        share = loss / most if most else 0.0
        columns.append({"column": column, "level": level, "loss": loss, "most": most, "share": share})
    return {"metric": name, "columns": columns}


def class_figures(profile: Profile, node: Mapping[str, int], privacy: PrivacyLevel) -> tuple[float, int, int]:
    """Return a node's retained share, and the smallest size and the number of its released classes."""
    classes = _problem(profile).classes(levels_of(profile, node))
    released_sizes = classes.sizes[~np.array(_measured(profile, classes, privacy)[1], np.bool_)]
    retained = retained_by_column(profile, node, privacy)
    smallest = int(released_sizes.min()) if len(released_sizes) else 0
    return sum(retained.values()) / len(retained), smallest, len(released_sizes)


def retained_by_column(profile: Profile, node: Mapping[str, int], privacy: PrivacyLevel) -> dict[str, float]:
    """Return the share of each column's information that a node retains, measured by coverage."""
    problem = _problem(profile)
    levels = levels_of(profile, node)
    classes = problem.classes(levels)
    suppressed = np.array(_measured(profile, classes, privacy)[1], np.bool_)
    lost = Coverage().by_column(problem, problem.recoding(levels), classes, suppressed)
    return dict(zip(problem.lattice.columns, (1 - loss for loss in lost), strict=True))


def recoded_at(profile: Profile, node: Mapping[str, int], privacy: PrivacyLevel) -> Recoded:
    """Recode the table at a node, and suppress the classes that violate k or l."""
    problem, levels = _problem(profile), levels_of(profile, node)
    classes = problem.classes(levels)
    suppressed = np.array(_measured(profile, classes, privacy)[1], np.bool_)
    return Recoded(problem, problem.recoding(levels), classes, suppressed)


def examples(
    profile: Profile,
    node: Mapping[str, int],
    privacy: PrivacyLevel,
    number: int = 10,
) -> list[Example]:
    """Return records, spread evenly over the table, before and after recoding at a node."""
    problem, levels = _problem(profile), levels_of(profile, node)
    counts = problem.counts.in_memory()
    classes = problem.classes(levels)
    class_values, violating = _measured(profile, classes, privacy)
    ends = np.cumsum(counts.sizes)
    number = max(1, min(number, int(ends[-1])))
    rows = np.searchsorted(ends, (np.arange(number) + 0.5) * int(ends[-1]) / number)
    records = []
    for row in rows.tolist():
        before, after = [], []
        same_class = np.ones(len(classes), np.bool_)
        for column, (hierarchy, level) in enumerate(zip(problem.hierarchies, levels, strict=True)):
            code = int(counts.codes(column)[row])
            group = int(hierarchy.groups(level)[code])
            before.append(hierarchy.labels[0][code])
            after.append(hierarchy.labels[level][group])
            same_class &= classes.counts.codes(column) == group
        number_of_class = int(np.flatnonzero(same_class)[0])
        records.append(
            Example(tuple(before), tuple(after), class_values[number_of_class], violating[number_of_class])
        )
    return records


def _problem(profile: Profile) -> Problem:
    if profile.problem is None:
        raise NotReady("The table is not available. Tabulate again.")
    return profile.problem


def _measured(
    profile: Profile, classes: Classes, privacy: PrivacyLevel
) -> tuple[list[int | float], list[bool]]:
    """Return the size of each class (its l, if no k is required), and whether the class violates k or l."""
    violating = classes.sizes < (privacy.k or 1)
    class_values: list[int | float] = classes.sizes.tolist()
    if privacy.l is not None:
        measure = profile.measure(privacy)
        diversity, spread = measure.diversity, classes.distribution(measure.column)
        measures = diversity.measures(spread.rows, spread.counts, classes.sizes)
        violating = violating | (measures < diversity.in_steps(privacy.l))
        if privacy.k is None:
            class_values = [diversity.value(steps) for steps in measures.tolist()]
    return class_values, violating.tolist()
