"""A partition into regions: boxes of values, each cut where that helps most, until no cut is allowed.

The greedy multidimensional partitioning of Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), over distinct
combinations with their counts, round by round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.batch import CORES
from shoal.core.counts import Counts, Entries, layout
from shoal.core.held import HeldCounts
from shoal.core.partition_rounds import Choose, Cuts, Final, Open, Threads, divided, measured, proposed

if TYPE_CHECKING:
    from shoal.core.partition_tables import PlaceArray, Tables


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

    >>> one_column = HeldCounts(tuple(layout([3])), np.arange(6).reshape(1, -1), np.ones(6, np.int64), {})
    >>> axis = Axis(np.arange(6), np.array([25.0, 26, 27, 28, 40, 41]))
    >>> partition(one_column, [axis], None, 2, choose="width", relaxed=False).regions.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if counts.records < least or not len(counts):
        message = f"{counts.records:,} records cannot make a region of at least {least:,}."
        raise ValueError(message)
    if relaxed and accepts:
        message = "A relaxed partition knows the sizes of its regions alone: ask nothing else of them."
        raise ValueError(message)
    tables = _tables(axes)
    regions = _whole(counts, axes, relaxed=relaxed, refusable=accepts is not None)
    judge = _Judge(accepts, counts) if accepts else None
    final: list[Final] = []
    with ThreadPoolExecutor(CORES) as pool:
        threads = Threads(pool)
        while len(regions):
            check()
            cuts = proposed(regions, tables, max(least, 1), choose, relaxed, threads)
            if judge:
                judge.refuse(regions, cuts, threads)
            regions, done = divided(regions, cuts, threads)
            final.append(done)
    return _parts(final)


def _tables(axes: Sequence[Axis]) -> Tables:
    """Write the axes as the kernels read them."""
    from shoal.core.partition_tables import Tables

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


def _whole(counts: Counts, axes: Sequence[Axis], *, relaxed: bool, refusable: bool) -> Open:
    """Return the one region of all combinations."""
    places = np.empty((len(axes), len(counts)), np.int32)
    for column, axis in enumerate(axes):
        places[column] = axis.places.astype(np.int32)[counts.codes(column)]
    rows = np.arange(len(counts))
    sizes = counts.sizes
    if relaxed:  # who goes left of those alike is told by values, so that the order of rows does not matter
        rows = _in_order(places, [len(axis.positions) for axis in axes])
        places, sizes = np.ascontiguousarray(places[:, rows]), sizes[rows]
    return Open(
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


class _Judge:
    """Refuses the cuts that make a region which does not pass; the next best cut is then tried."""

    def __init__(self, accepts: Callable[[Counts], BoolArray], counts: Counts) -> None:
        self._accepts = accepts
        self._combinations = len(counts)
        self._sensitive: Mapping[str, Entries] = counts.sensitive  # of the combinations still open

    def refuse(self, regions: Open, cuts: Cuts, threads: Threads) -> None:
        """Let regions stay as they are of which a proposed child does not pass."""
        from shoal.core.partition_tables import KEPT

        proposed = np.flatnonzero(cuts.parts)
        if not len(proposed):
            return
        _, records = measured(regions, cuts, threads)
        passing = self._accepts(self._children(regions, cuts, records))
        failed = proposed[~np.logical_and.reduceat(passing, cuts.firsts[proposed])]
        regions.refused[failed, cuts.columns[failed]] = cuts.ats[failed]
        cuts.parts[failed] = KEPT

    def _children(self, regions: Open, cuts: Cuts, records: IntArray) -> HeldCounts:
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
        return HeldCounts(fields, np.arange(len(records)).reshape(1, -1), records, sensitive)


def _parts(final: Sequence[Final]) -> Parts:
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
