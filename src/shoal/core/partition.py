"""A partition into regions: boxes of values, each cut where that helps most, until no cut is allowed.

The greedy multidimensional partitioning of Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), over distinct
combinations with their counts. A round looks at every region that is still open and divides those that can
be; a region's rows are kept together, so that late rounds find them in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.batch import CORES
from shoal.core.counts import Counts, Entries, layout

if TYPE_CHECKING:
    from shoal.core.partition_kernels import PlaceArray, Tables

Choose = Literal["width", "entropy", "loss"]
_CHOICES: tuple[Choose, ...] = ("width", "entropy", "loss")  # in the order of the kernels' numbers
_ROWS_PER_TASK = 5_000  # what is worth a thread
_TASKS_PER_CORE = 4  # regions are not equally laborious
_COSTS = 4096  # counts whose part of an entropy is looked up


@dataclass(frozen=True)
class Axis:
    """How one column may be cut: by the order of its values, or by a hierarchy."""

    places: IntArray  # (codes,): each value's place in the column's order, a permutation
    positions: FloatArray  # (values,): where each place lies, ascending; what width is measured by
    levels: tuple[IntArray, ...] = ()  # the group of each place, level by level; a group's places adjoin


@dataclass(frozen=True)
class Parts:
    """Which records are in which region, region by region; strict, a region's combinations ascend."""

    rows: IntArray  # (parts,): the combination
    sizes: IntArray  # (parts,): its records in the region
    regions: IntArray  # (parts,): from 0, left to right as they were cut


@dataclass(frozen=True)
class _Open:
    """The regions that may still be cut."""

    places: PlaceArray  # (columns, rows)
    sizes: IntArray  # (rows,)
    rows: IntArray  # (rows,): the combination
    begins: IntArray  # (regions + 1,): each region's rows
    records: IntArray  # (regions,)
    firsts: IntArray  # (regions,): how many records lie in regions to the left
    # (regions, columns): the last cut that was refused, or -1; (0, columns) where none can be
    refused: IntArray

    def __len__(self) -> int:
        return len(self.records)

    def slices(self) -> list[tuple[int, int]]:
        """Return stretches of regions with about as many rows each."""
        tasks = min(CORES * _TASKS_PER_CORE, len(self.rows) // _ROWS_PER_TASK, len(self))
        edges = np.searchsorted(self.begins, np.linspace(0, len(self.rows), max(tasks, 1) + 1))
        edges = np.unique(edges)
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


@dataclass(frozen=True)
class _Cuts:
    """How the open regions are to be cut."""

    columns: IntArray  # (regions,)
    ats: IntArray  # (regions,): behind which place, or at which level
    parts: IntArray  # (regions,): 0 of a final region, 1 of one that stays as it is
    children: PlaceArray  # (rows,): to which child of its region a row goes
    splits: IntArray  # (regions, 2): the row that goes to both sides or -1, its records on the left

    @property
    def firsts(self) -> IntArray:
        """The number of each region's first child."""
        firsts: IntArray = np.cumsum(self.parts) - self.parts
        return firsts


@dataclass(frozen=True)
class _Final:
    """Regions that are not cut any more."""

    rows: IntArray  # (rows,)
    sizes: IntArray  # (rows,)
    lengths: IntArray  # (regions,)
    firsts: IntArray  # (regions,)


class _Threads:
    """Runs kernels on stretches of regions."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def run(self, kernel: Callable[..., None], regions: _Open, *arguments: object) -> None:
        """Run a kernel over all regions."""
        slices = regions.slices()
        if len(slices) == 1:
            kernel(*slices[0], *arguments)
            return
        for done in [self._pool.submit(kernel, *stretch, *arguments) for stretch in slices]:
            done.result()


def partition(
    counts: Counts,
    axes: Sequence[Axis],
    accepts: Callable[[Counts], BoolArray] | None,
    least: int,
    *,
    choose: Choose,
    relaxed: bool,
    check: Callable[[], None] = lambda: None,
) -> Parts:
    """Divide combinations into regions of at least so many records, all of which pass where asked.

    `choose` says which column is cut: the widest, by its share of the whole column's width; the one with the
    greatest entropy; or the one whose best cut spares most, in records times places covered. Equals are told
    apart by their distinct values, the fewer first, then by their number. By order a cut lies as near to the
    median as it may (for `loss`, wherever it spares most); by hierarchy it makes a region of each group of
    the next lower level at which there are several. If a cut is not allowed, the column's next best is tried,
    and when it has none left the next column.

    `accepts` marks those of some proposed regions that may be; it never sees a region below the least size.
    Strict, a combination is in one region; relaxed, a cut by order halves the records, a combination may be
    in several regions, and nothing but sizes may be asked. `check` is called once a round.

    >>> one_column = Counts(tuple(layout([3])), np.arange(6).reshape(1, -1), np.ones(6, np.int64), {})
    >>> axis = Axis(np.arange(6), np.array([25.0, 26, 27, 28, 40, 41]))
    >>> partition(one_column, [axis], None, 2, choose="width", relaxed=False).regions.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if counts.records < least or not len(counts):
        message = f"{counts.records} records cannot make a region of at least {least}."
        raise ValueError(message)
    if relaxed and accepts:
        message = "A relaxed partition knows the sizes of its regions alone: ask nothing else of them."
        raise ValueError(message)
    tables = _tables(axes)
    regions = _whole(counts, axes, relaxed=relaxed, refusable=accepts is not None)
    judge = _Judge(accepts, counts) if accepts else None
    final: list[_Final] = []
    with ThreadPoolExecutor(CORES) as pool:
        threads = _Threads(pool)
        while len(regions):
            check()
            cuts = _propose(regions, tables, max(least, 1), choose, relaxed, threads)
            if judge:
                judge.refuse(regions, cuts, threads)
            regions, done = _divide(regions, cuts, threads)
            final.append(done)
    return _parts(final)


def _tables(axes: Sequence[Axis]) -> Tables:
    """Write the axes as the kernels read them."""
    from shoal.core.partition_kernels import Tables

    groups, covers, roots, heights = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [], []
    used = 0
    for axis in axes:
        levels = [np.cumsum(np.diff(level, prepend=level[:1]) != 0) for level in axis.levels]
        if levels and levels[-1][-1] > 0:  # whatever the top: in the end all share a group
            levels.append(np.zeros_like(levels[-1]))
        roots.append(used)
        heights.append(len(levels))
        for level in levels:
            groups.append(level.astype(np.int32))
            covers.append(np.bincount(level)[level].astype(np.int32))
            used += len(level)
    values = np.array([len(axis.positions) for axis in axes], np.int64)
    scales = [float(axis.positions[-1] - axis.positions[0]) or 1.0 for axis in axes]
    return Tables(
        values,
        np.array(scales),
        np.cumsum(values) - values,
        np.concatenate([axis.positions for axis in axes]).astype(np.float64),
        np.array(heights, np.int64),
        np.array(roots, np.int64),
        np.concatenate(groups),
        np.concatenate(covers),
    )


def _whole(counts: Counts, axes: Sequence[Axis], *, relaxed: bool, refusable: bool) -> _Open:
    """Return the one region of all combinations."""
    places = np.empty((len(axes), len(counts)), np.int32)
    for column, axis in enumerate(axes):
        places[column] = axis.places.astype(np.int32)[counts.codes(column)]
    rows = np.arange(len(counts))
    sizes = counts.sizes
    if relaxed:  # who goes left of those alike is told by values, so that the order of rows does not matter
        rows = _in_order(places, [len(axis.positions) for axis in axes])
        places, sizes = np.ascontiguousarray(places[:, rows]), sizes[rows]
    return _Open(
        places,
        np.ascontiguousarray(sizes),
        rows,
        np.array([0, len(counts)]),
        np.array([counts.records]),
        np.zeros(1, np.int64),
        np.full((int(refusable), len(axes)), -1),
    )


def _in_order(places: PlaceArray, values: Sequence[int]) -> IntArray:
    """Return the rows in the order of their places, column by column."""
    fields = layout([max(1, (count - 1).bit_length()) for count in values][::-1])[::-1]  # the first on top
    words = np.zeros((fields[0].word + 1, places.shape[1]), np.int64)
    for field, column in zip(fields, places, strict=True):
        words[field.word] |= column.astype(np.int64) << field.shift
    order: IntArray = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words)
    return order


def _propose(
    regions: _Open, tables: Tables, least: int, choose: Choose, relaxed: bool, threads: _Threads
) -> _Cuts:
    """Choose a column and a cut for each region."""
    from shoal.core.partition_kernels import propose

    cuts = _Cuts(
        np.empty(len(regions), np.int64),
        np.empty(len(regions), np.int64),
        np.empty(len(regions), np.int64),
        np.empty(len(regions.rows), np.int32),
        np.empty((len(regions), 2), np.int64),
    )
    threads.run(
        propose, regions,
        regions.places, regions.sizes, regions.begins, regions.records, regions.refused,
        tables, _costs(), least, _CHOICES.index(choose), relaxed,
        cuts.columns, cuts.ats, cuts.parts, cuts.children, cuts.splits,
    )  # fmt: skip
    return cuts


def _measure(regions: _Open, cuts: _Cuts, threads: _Threads) -> tuple[IntArray, IntArray]:
    """Return the rows and the records of each child."""
    from shoal.core.partition_kernels import measure

    rows, records = np.zeros((2, int(cuts.parts.sum())), np.int64)
    threads.run(
        measure, regions,
        regions.sizes, regions.begins, cuts.parts, cuts.firsts, cuts.children, cuts.splits, rows, records,
    )  # fmt: skip
    return rows, records


def _divide(regions: _Open, cuts: _Cuts, threads: _Threads) -> tuple[_Open, _Final]:
    """Return the regions that are still open after the cuts, and those that are final."""
    from shoal.core.partition_kernels import FINAL, KEPT, divide

    rows, records = _measure(regions, cuts, threads)
    lengths = np.diff(regions.begins)
    over = cuts.parts == FINAL
    leaving = np.where(over, lengths, 0)
    parents = np.repeat(np.arange(len(regions)), cuts.parts)
    before = np.cumsum(records) - records
    firsts = regions.firsts[parents] + before - before[cuts.firsts[parents]]
    refused = regions.refused
    if len(refused):
        refused = np.where((cuts.parts[parents] == KEPT).reshape(-1, 1), refused[parents], -1)
    begins = np.concatenate(([0], np.cumsum(rows)))
    total, gone = int(begins[-1]), int(leaving.sum())
    still = _Open(
        np.empty((len(regions.places), total), np.int32),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        begins,
        records,
        firsts,
        refused,
    )
    final = _Final(np.empty(gone, np.int64), np.empty(gone, np.int64), lengths[over], regions.firsts[over])
    threads.run(
        divide, regions,
        regions.places, regions.sizes, regions.rows, regions.begins,
        cuts.parts, cuts.firsts, cuts.children, cuts.splits, begins, np.cumsum(leaving) - leaving,
        still.places, still.sizes, still.rows, final.sizes, final.rows,
    )  # fmt: skip
    return still, final


class _Judge:
    """Refuses the cuts that make a region which does not pass; the next best cut is then tried."""

    def __init__(self, accepts: Callable[[Counts], BoolArray], counts: Counts) -> None:
        self._accepts = accepts
        self._combinations = len(counts)
        self._sensitive: Mapping[str, Entries] = counts.sensitive  # of the combinations still open

    def refuse(self, regions: _Open, cuts: _Cuts, threads: _Threads) -> None:
        """Let regions stay as they are of which a proposed child does not pass."""
        from shoal.core.partition_kernels import KEPT

        proposed = np.flatnonzero(cuts.parts)
        if not len(proposed):
            return
        _, records = _measure(regions, cuts, threads)
        passing = self._accepts(self._children(regions, cuts, records))
        failed = proposed[~np.logical_and.reduceat(passing, cuts.firsts[proposed])]
        regions.refused[failed, cuts.columns[failed]] = cuts.ats[failed]
        cuts.parts[failed] = KEPT

    def _children(self, regions: _Open, cuts: _Cuts, records: IntArray) -> Counts:
        """Count the proposed children; what is in none of them is in a final region and seen no more."""
        lengths = np.diff(regions.begins)
        child = np.repeat(cuts.firsts, lengths) + cuts.children
        child[np.repeat(cuts.parts, lengths) == 0] = -1
        inverse = np.full(self._combinations, -1, np.int64)
        inverse[regions.rows] = child
        held = {}
        for name, entries in self._sensitive.items():
            kept = inverse[entries.rows] >= 0
            held[name] = Entries(entries.keys[kept], entries.counts[kept], entries.bits)
        self._sensitive = held
        fields = layout([max(1, (len(records) - 1).bit_length())])
        sensitive = {name: entries.moved(inverse) for name, entries in held.items()}
        return Counts(fields, np.arange(len(records)).reshape(1, -1), records, sensitive)


def _parts(final: Sequence[_Final]) -> Parts:
    """Return the final regions, numbered from left to right."""
    lengths = np.concatenate([done.lengths for done in final])
    order = np.argsort(np.concatenate([done.firsts for done in final]))
    begins = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    sources = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    return Parts(
        np.concatenate([done.rows for done in final])[sources],
        np.concatenate([done.sizes for done in final])[sources],
        np.repeat(np.arange(len(lengths)), lengths),
    )


def _costs() -> FloatArray:
    """Return the costs of small counts, as the kernel `cost` has them."""
    counts = np.arange(_COSTS)
    costs: FloatArray = np.rint(counts * np.log2(np.maximum(counts, 1)) * 2.0**20)
    return costs
