"""Rounds of a partition: in each round, every open region is divided if possible.

The rows of a region are consecutive, so that later rounds find them in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.memory import CORES

if TYPE_CHECKING:
    from shoal.algorithms.mondrian.tables import RankArray, Tables

Choose = Literal["width", "entropy", "loss"]
_CHOICES: tuple[Choose, ...] = ("width", "entropy", "loss")  # in the order of the kernels' numbers
_ROWS_PER_TASK = 5_000  # fewer rows are not worth a thread
_TASKS_PER_CORE = 4  # more than one, because regions take different times
_PRECOMPUTED_COSTS = 4096  # counts below this have precomputed costs


@dataclass(frozen=True)
class Open:
    """The regions that may still be cut."""

    ranks: RankArray  # (columns, rows)
    sizes: IntArray  # (rows,)
    rows: IntArray  # (rows,): the combination
    begins: IntArray  # (regions + 1,): each region's rows
    records: IntArray  # (regions,)
    firsts: IntArray  # (regions,): the number of records in regions to the left
    # (regions, columns): the last refused cut, or -1; (0, columns) if no cut can be refused
    refused: IntArray

    def __len__(self) -> int:
        return len(self.records)

    def slices(self) -> list[tuple[int, int]]:
        """Return ranges of regions with about the same number of rows."""
        tasks = min(CORES * _TASKS_PER_CORE, len(self.rows) // _ROWS_PER_TASK, len(self))
        edges = np.searchsorted(self.begins, np.linspace(0, len(self.rows), max(tasks, 1) + 1))
        edges = np.unique(edges)
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


@dataclass(frozen=True)
class RoundCuts:
    """The cuts of the open regions."""

    columns: IntArray  # (regions,)
    ats: IntArray  # (regions,): the rank after which to cut, or the level of the groups to cut into
    parts: IntArray  # (regions,): 0 for a final region, 1 for one that is kept undivided
    children: RankArray  # (rows,): the child of its region that each row goes to
    splits: IntArray  # (regions, 2): the row that is divided, or -1, and its records on the left

    @property
    def firsts(self) -> IntArray:
        """The number of the first child of each region."""
        firsts: IntArray = np.cumsum(self.parts) - self.parts
        return firsts


@dataclass(frozen=True)
class Final:
    """Regions that are no longer cut."""

    rows: IntArray  # (rows,)
    sizes: IntArray  # (rows,)
    lengths: IntArray  # (regions,)
    firsts: IntArray  # (regions,)


class Threads:
    """Runs kernels on ranges of regions."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def run(self, kernel: Callable[..., None], regions: Open, *arguments: object) -> None:
        """Run a kernel over all regions."""
        slices = regions.slices()
        if len(slices) == 1:
            kernel(*slices[0], *arguments)
            return
        for task in [self._pool.submit(kernel, *part, *arguments) for part in slices]:
            task.result()


def proposed(
    regions: Open, tables: Tables, least: int, choose: Choose, relaxed: bool, threads: Threads
) -> RoundCuts:
    """Choose a column and a cut for each region."""
    from shoal.algorithms.mondrian.cuts import propose

    cuts = RoundCuts(
        np.empty(len(regions), np.int64),
        np.empty(len(regions), np.int64),
        np.empty(len(regions), np.int64),
        np.empty(len(regions.rows), np.int32),
        np.empty((len(regions), 2), np.int64),
    )
    threads.run(
        propose, regions,
        regions.ranks, regions.sizes, regions.begins, regions.records, regions.refused,
        tables, _costs(), least, _CHOICES.index(choose), relaxed,
        cuts.columns, cuts.ats, cuts.parts, cuts.children, cuts.splits,
    )  # fmt: skip
    return cuts


def measured(regions: Open, cuts: RoundCuts, threads: Threads) -> tuple[IntArray, IntArray]:
    """Return the rows and the records of each child."""
    from shoal.algorithms.mondrian.moves import measure

    rows, records = np.zeros((2, int(cuts.parts.sum())), np.int64)
    threads.run(
        measure, regions,
        regions.sizes, regions.begins, cuts.parts, cuts.firsts, cuts.children, cuts.splits, rows, records,
    )  # fmt: skip
    return rows, records


def divided(regions: Open, cuts: RoundCuts, threads: Threads) -> tuple[Open, Final]:
    """Return the regions that are open after the cuts, and the final ones."""
    from shoal.algorithms.mondrian.moves import divide
    from shoal.algorithms.mondrian.tables import FINAL, KEPT

    rows, records = measured(regions, cuts, threads)
    lengths = np.diff(regions.begins)
    is_final = cuts.parts == FINAL
    leaving = np.where(is_final, lengths, 0)
    parents = np.repeat(np.arange(len(regions)), cuts.parts)
    before = np.cumsum(records) - records
    firsts = regions.firsts[parents] + before - before[cuts.firsts[parents]]
    refused = regions.refused
    if len(refused):
        refused = np.where((cuts.parts[parents] == KEPT).reshape(-1, 1), refused[parents], -1)
    begins = np.concatenate(([0], np.cumsum(rows)))
    total, final_rows = int(begins[-1]), int(leaving.sum())
    open_regions = Open(
        np.empty((len(regions.ranks), total), np.int32),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        begins,
        records,
        firsts,
        refused,
    )
    final = Final(
        np.empty(final_rows, np.int64),
        np.empty(final_rows, np.int64),
        lengths[is_final],
        regions.firsts[is_final],
    )
    threads.run(
        divide, regions,
        regions.ranks, regions.sizes, regions.rows, regions.begins,
        cuts.parts, cuts.firsts, cuts.children, cuts.splits, begins, np.cumsum(leaving) - leaving,
        open_regions.ranks, open_regions.sizes, open_regions.rows, final.sizes, final.rows,
    )  # fmt: skip
    return open_regions, final


def _costs() -> FloatArray:
    """Return the costs of small counts, computed by the kernel `cost`."""
    counts = np.arange(_PRECOMPUTED_COSTS)
    costs: FloatArray = np.rint(counts * np.log2(np.maximum(counts, 1)) * 2.0**20)
    return costs
