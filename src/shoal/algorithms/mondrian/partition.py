"""Partition combinations into regions: boxes of values that are cut until no cut is allowed.

This is the greedy multidimensional partitioning of Mondrian (LeFevre, DeWitt, Ramakrishnan 2006), over
distinct combinations with their counts, round by round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms.mondrian.rounds import (
    Choose,
    Final,
    Open,
    RoundCuts,
    Threads,
    divided,
    measured,
    proposed,
)
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.counts.counts import Counts, SensitiveCounts, layout
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.memory import CORES

if TYPE_CHECKING:
    from shoal.algorithms.mondrian.tables import RankArray, Tables


@dataclass(frozen=True)
class Axis:
    """How one column may be cut: by the order of its values, or by a hierarchy."""

    ranks: IntArray  # (codes,): each value's rank in the column's order, a permutation
    positions: FloatArray  # (values,): the position of each rank, ascending; widths are measured in it
    levels: tuple[IntArray, ...] = ()  # the group of each rank per level; groups are contiguous
    weight: float = 1.0  # factor for the score of this column's cuts


@dataclass(frozen=True)
class Partition:
    """Parts of combinations with their regions, sorted by region and, unless relaxed, then by combination."""

    rows: IntArray  # (parts,): the combination
    sizes: IntArray  # (parts,): its records in the region
    regions: IntArray  # (parts,): from 0, from left to right


def partition(
    counts: Counts,
    axes: Sequence[Axis],
    accepts: Callable[[Counts], BoolArray] | None,
    least: int,
    *,
    choose: Choose,
    relaxed: bool,
    begin: IntArray | None = None,
    check: Callable[[], None] = lambda: None,
) -> Partition:
    """Divide combinations into regions of at least `least` records that all pass `accepts`.

    `choose` selects the column to cut. All criteria are multiplied by the weight of the column:

    - `width`: the range of its values in the region, relative to that in the whole table;
    - `entropy`: the entropy of its values in the region;
    - `loss`: how much its best cut saves, in records times ranks.

    Of equal columns, the one with the fewest distinct values is cut, and of these the first one. A cut by
    order is as close to the median as allowed; for `loss`, it is where it saves most. A cut by hierarchy
    creates a region for each group of the highest level that has several groups. If a cut is not allowed, the
    next best cut of the column is tried, then the next column.

    `accepts` marks the proposed regions that pass; all of them have at least `least` records. Unless
    `relaxed`, a combination is in one region. If `relaxed`, a cut by order halves the records, a combination
    may be in several regions, and models may use sizes only. `begin` has the first region of each
    combination, or -1 for a combination that is left out; regions are never merged. `check` is called once
    per round.

    >>> one_column = InMemoryCounts(tuple(layout([3])), np.arange(6).reshape(1, -1), np.ones(6, np.int64), {})
    >>> axis = Axis(np.arange(6), np.array([25.0, 26, 27, 28, 40, 41]))
    >>> partition(one_column, [axis], None, 2, choose="width", relaxed=False).regions.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if counts.records < least or not len(counts):
        raise ValueError(f"{counts.records:,} records cannot make a region of at least {least:,}.")
    if relaxed and accepts:
        raise ValueError("Only the sizes of the regions of a relaxed partition can be checked.")
    tables = _tables(axes)
    begin = np.zeros(len(counts), np.int64) if begin is None else begin
    regions = _first(counts, axes, begin, relaxed=relaxed, refusable=accepts is not None)
    checker = _CutChecker(accepts, counts) if accepts else None
    final: list[Final] = []
    with ThreadPoolExecutor(CORES) as pool:
        threads = Threads(pool)
        while len(regions):
            check()
            cuts = proposed(regions, tables, max(least, 1), choose, relaxed, threads)
            if checker:
                checker.refuse(regions, cuts, threads)
            regions, done = divided(regions, cuts, threads)
            final.append(done)
    return _parts(final)


def _tables(axes: Sequence[Axis]) -> Tables:
    """Return the axes in the layout of the kernels."""
    from shoal.algorithms.mondrian.tables import Tables

    groups, covers, roots, heights = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [], []
    used = 0
    for axis in axes:
        levels = [np.cumsum(np.diff(level, prepend=level[:1]) != 0) for level in axis.levels]
        if levels and levels[-1][-1] > 0:  # above the hierarchy's top level, all ranks share a group
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
        np.array([axis.weight for axis in axes], np.float64),
    )


def _first(counts: Counts, axes: Sequence[Axis], begin: IntArray, *, relaxed: bool, refusable: bool) -> Open:
    """Return the regions in which the combinations start."""
    ranks = np.empty((len(axes), len(counts)), np.int32)
    for column, axis in enumerate(axes):
        ranks[column] = axis.ranks.astype(np.int32)[counts.codes(column)]
    rows = np.arange(len(counts))
    if relaxed:  # ties are broken by values, so that the order of rows does not matter
        rows = _in_order(ranks, [len(axis.positions) for axis in axes])
    if begin.any():  # several regions, or combinations that are left out
        rows = rows[np.argsort(begin[rows], kind="stable")][np.count_nonzero(begin < 0) :]
    if relaxed or begin.any():
        ranks = np.ascontiguousarray(ranks[:, rows])
    sizes, region_of = counts.sizes[rows], begin[rows]
    records = np.bincount(region_of, sizes).astype(np.int64)
    return Open(
        ranks,
        sizes,
        rows,
        np.concatenate(([0], np.cumsum(np.bincount(region_of)))),
        records,
        np.cumsum(records) - records,
        np.full((len(records) if refusable else 0, len(axes)), -1),
    )


def _in_order(ranks: RankArray, values: Sequence[int]) -> IntArray:
    """Return the order of rows by rank, column by column; the first column gets the highest bits."""
    fields = layout([max(1, (count - 1).bit_length()) for count in values][::-1])[::-1]
    words = np.zeros((fields[0].word + 1, ranks.shape[1]), np.int64)
    for field, column in zip(fields, ranks, strict=True):
        words[field.word] |= column.astype(np.int64) << field.shift
    order: IntArray = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words)
    return order


class _CutChecker:
    """Refuses cuts with a child that does not pass, so that the next best cut is tried."""

    def __init__(self, accepts: Callable[[Counts], BoolArray], counts: Counts) -> None:
        self._accepts = accepts
        self._combinations = len(counts)
        self._sensitive: Mapping[str, SensitiveCounts] = counts.sensitive  # of combinations in open regions

    def refuse(self, regions: Open, cuts: RoundCuts, threads: Threads) -> None:
        """Keep regions undivided if a proposed child does not pass."""
        from shoal.algorithms.mondrian.tables import KEPT

        proposed = np.flatnonzero(cuts.parts)
        if not len(proposed):
            return
        _, records = measured(regions, cuts, threads)
        passing = self._accepts(self._children(regions, cuts, records))
        failed = proposed[~np.logical_and.reduceat(passing, cuts.firsts[proposed])]
        regions.refused[failed, cuts.columns[failed]] = cuts.ats[failed]
        cuts.parts[failed] = KEPT

    def _children(self, regions: Open, cuts: RoundCuts, records: IntArray) -> InMemoryCounts:
        """Count the proposed children; combinations of final regions are left out from now on."""
        lengths = np.diff(regions.begins)
        child = np.repeat(cuts.firsts, lengths) + cuts.children
        child[np.repeat(cuts.parts, lengths) == 0] = -1
        inverse = np.full(self._combinations, -1, np.int64)
        inverse[regions.rows] = child
        still_open = {}
        for name, entries in self._sensitive.items():
            kept = inverse[entries.rows] >= 0
            still_open[name] = SensitiveCounts(entries.keys[kept], entries.counts[kept], entries.bits)
        self._sensitive = still_open
        fields = layout([max(1, (len(records) - 1).bit_length())])
        sensitive = {name: entries.moved(inverse) for name, entries in still_open.items()}
        return InMemoryCounts(fields, np.arange(len(records)).reshape(1, -1), records, sensitive)


def _parts(final: Sequence[Final]) -> Partition:
    """Return the final regions, numbered from left to right."""
    lengths = np.concatenate([done.lengths for done in final])
    order = np.argsort(np.concatenate([done.firsts for done in final]))
    begins = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    sources = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    return Partition(
        np.concatenate([done.rows for done in final])[sources],
        np.concatenate([done.sizes for done in final])[sources],
        np.repeat(np.arange(len(lengths)), lengths),
    )
