"""Views of a profile: the lattice as points, by height, what each column loses, and example records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import UnknownName
from shoal.profile import Profile
from shoal.web.refusals import NotReady, Refused

MOST_POINTS = 3_000


@dataclass(frozen=True)
class Point:
    """A node, or one of several that lie together: of one height, and suppressing about as much."""

    node: tuple[int, ...]  # the level of each column
    height: int
    suppressed: int
    share: float
    nodes: int  # that it stands for


@dataclass(frozen=True)
class LatticeView:
    """The lattice as points to draw."""

    columns: tuple[str, ...]
    heights: tuple[int, ...]  # of each column's hierarchy
    nodes: int  # tabulated
    size: int  # of the whole lattice
    binned: bool  # points stand for several nodes each
    points: tuple[Point, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class HeightRow:
    """What nodes of one height suppress."""

    height: int
    nodes: int
    least: int
    mean: float
    least_share: float
    mean_share: float


@dataclass(frozen=True)
class Example:
    """A record's quasi-identifiers before and after; values are the custodian's own."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    alike: int  # records of its class; for l: distinct sensitive values in it
    suppressed: bool


def lattice_view(
    profile: Profile,
    least: int,
    sensitive: str | None = None,
    most: int = MOST_POINTS,
    keep: Iterable[int] = (),
) -> LatticeView:
    """Return every node with what it suppresses; where they are too many, runs of nodes of one height.

    A run is shown by the node that suppresses least, or by one whose place in the tables is to be kept.
    """
    suppressed = profile.by_node(least, sensitive)
    lattice, heights = profile.lattice, profile.heights
    order = np.lexsort((profile.numbers, suppressed, heights))
    binned = len(order) > most
    standing = np.ones(len(order), np.int64)
    if binned:
        firsts = _runs(np.bincount(heights), most)
        standing = np.diff(np.append(firsts, len(order)))
        shown = order[firsts]
        for place in keep:
            own = np.searchsorted(firsts, int(np.flatnonzero(order == place)[0]), "right") - 1
            shown[own] = place
        order = shown
    points = tuple(
        Point(
            node=lattice.node(profile.levels[place].tolist()),
            height=int(heights[place]),
            suppressed=int(suppressed[place]),
            share=int(suppressed[place]) / profile.records,
            nodes=int(number),
        )
        for place, number in zip(order.tolist(), standing.tolist(), strict=True)
    )
    return LatticeView(lattice.columns, lattice.heights, len(profile.numbers), lattice.size, binned, points)


def _runs(sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Cut each height's nodes into equal runs, at most `most` in all, and return where they begin.

    A height has runs by the root of its nodes, so that the drawing keeps the lattice's shape.

    >>> _runs(np.array([1, 9, 1]), 8).tolist()
    [0, 1, 4, 7, 10]
    """
    roots = np.sqrt(sizes)
    own = np.clip((max(most - len(sizes), 1) * roots / roots.sum()).astype(np.int64), 1, sizes)
    begins = np.cumsum(sizes) - sizes
    parts = [
        begin + np.arange(runs) * size // runs
        for begin, size, runs in zip(begins.tolist(), sizes.tolist(), own.tolist(), strict=True)
        if size
    ]
    found: NDArray[np.int64] = np.concatenate(parts)
    return found


def by_height(profile: Profile, least: int, sensitive: str | None = None) -> list[HeightRow]:
    """Return the least and the mean that nodes of each height suppress."""
    suppressed, heights, records = profile.by_node(least, sensitive), profile.heights, profile.records
    rows = []
    for height in np.unique(heights).tolist():
        own = suppressed[heights == height]
        low, mean = int(own.min()), float(own.mean())
        rows.append(HeightRow(height, len(own), low, mean, low / records, mean / records))
    return rows


def levels_of(profile: Profile, node: Mapping[str, int]) -> tuple[int, ...]:
    """Check that a node names a level of every column, and return the levels in their order."""
    lattice = profile.lattice
    for name in node:
        if name not in lattice.columns:
            error = UnknownName(str(name)[:80], "quasi-identifier", lattice.columns)
            error.field = "node"  # type: ignore[attr-defined]
            raise error
    levels = []
    for name, height in zip(lattice.columns, lattice.heights, strict=True):
        level = node.get(name)
        if type(level) is not int or not 0 <= level <= height:
            message = f"The node needs a level of {name!r} from 0 to {height}."
            raise Refused(message, "node")
        levels.append(level)
    if tuple(levels) not in lattice:
        message = "Columns that share their level must have the same one."
        raise Refused(message, "node")
    return tuple(levels)


def loss_by_column(profile: Profile, node: Mapping[str, int], metric: str | None = None) -> dict[str, Any]:
    """Return each column's part of the loss at a node, and that part's share of what it could lose."""
    levels = levels_of(profile, node)
    usual = profile.wish.metric if profile.wish.metric in profile.losses else "non-uniform-entropy"
    name = metric or usual or "non-uniform-entropy"
    if name not in profile.losses:
        error = UnknownName(name[:80], "separable metric", profile.losses)
        error.field = "metric"  # type: ignore[attr-defined]
        raise error
    columns = []
    for column, level, parts in zip(profile.lattice.columns, levels, profile.losses[name], strict=True):
        loss, most = float(parts[level]), float(parts[-1])
        share = loss / most if most else 0.0
        columns.append({"column": column, "level": level, "loss": loss, "most": most, "share": share})
    return {"metric": name, "columns": columns}


def examples(
    profile: Profile,
    node: Mapping[str, int],
    least: int,
    sensitive: str | None = None,
    number: int = 10,
) -> list[Example]:
    """Return records, spread evenly over the table, as they are and as they would be at a node."""
    if profile.problem is None:
        message = "The table is not at hand. Tabulate again."
        raise NotReady(message)
    levels = levels_of(profile, node)
    problem = profile.problem
    counts = problem.counts.near()
    classes = problem.classes(levels)
    measures = classes.sizes if sensitive is None else classes.distinct(sensitive)
    ends = np.cumsum(counts.sizes)
    number = max(1, min(number, int(ends[-1])))
    rows = np.searchsorted(ends, (np.arange(number) + 0.5) * int(ends[-1]) / number)
    found = []
    for row in rows.tolist():
        before, after = [], []
        own = np.ones(len(classes), np.bool_)
        for column, (hierarchy, level) in enumerate(zip(problem.hierarchies, levels, strict=True)):
            code = int(counts.codes(column)[row])
            group = int(hierarchy.groups(level)[code])
            before.append(hierarchy.labels[0][code])
            after.append(hierarchy.labels[level][group])
            own &= classes.counts.codes(column) == group
        alike = int(measures[np.flatnonzero(own)[0]])
        found.append(Example(tuple(before), tuple(after), alike, alike < least))
    return found


def plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return dataclasses as plain values."""
    return [asdict(row) for row in rows]
