"""The whole lattice counted at once: how many records are in small classes at every node.

The slowest axes are rolled up first and their parts walked in compiled code, on all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts
from shoal.core.hierarchy import Hierarchy
from shoal.core.lattice import Lattice


@dataclass(frozen=True)
class Tabulation:
    """What was counted at every node, in the lattice's shape."""

    short: IntArray  # records in classes below the size asked for
    classes: IntArray
    rows_scanned: int


def tabulate(
    counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, order: Sequence[int], least_size: int
) -> Tabulation:
    """Count every node; `order` names the axes, slowest first. Keys must fit one word."""
    from shoal.core import kernels

    outer, inner = list(order[:2]), list(order[2:]) or list(order[:1])
    outer = [axis for axis in outer if axis not in inner]
    tables = _tables(counts, hierarchies, lattice, inner)
    starts = [_at_bottom(counts, hierarchies, lattice)]
    scanned = len(counts)
    for axis in outer:
        # Each level of an outer axis rolls up from the level below it.
        grown = []
        for start in starts:
            for level in range(lattice.shape[axis]):
                if level:
                    scanned += len(start)
                    start = _step(start, hierarchies, lattice, axis, level)
                grown.append(start)
        starts = grown

    def walk(start: Counts) -> tuple[IntArray, IntArray, int]:
        found: tuple[IntArray, IntArray, int] = kernels.tabulate(
            start.keys[0], start.sizes, *tables, least_size
        )
        return found

    with ThreadPoolExecutor(cpu_count()) as pool:
        parts = list(pool.map(walk, starts))
    shape = [lattice.shape[axis] for axis in (*outer, *inner)]
    back = np.argsort([*outer, *inner])
    short = np.concatenate([part[0] for part in parts]).reshape(shape).transpose(back)
    classes = np.concatenate([part[1] for part in parts]).reshape(shape).transpose(back)
    return Tabulation(short, classes, scanned + sum(part[2] for part in parts))


def _at_bottom(counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice) -> Counts:
    """Roll every column up to its lowest level."""
    for axis, members in enumerate(lattice.axes):
        for column in members:
            if lattice.low[axis]:
                counts = counts.roll_up(column, hierarchies[column].groups(lattice.low[axis]))
    return counts


def _step(
    counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, axis: int, level: int
) -> Counts:
    """Roll one axis up to a level from the one below."""
    low = lattice.low[axis]
    for column in lattice.axes[axis]:
        counts = counts.roll_up(column, hierarchies[column].between(low + level - 1, low + level))
    return counts


def _tables(
    counts: Counts, hierarchies: Sequence[Hierarchy], lattice: Lattice, axes: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Write the axes' levels, fields and step maps as the kernel reads them."""
    levels = np.array([lattice.shape[axis] for axis in axes])
    members, starts, maps = [], [], [np.zeros(1, np.int64)]
    used = 1
    for place, axis in enumerate(axes):
        for column in lattice.axes[axis]:
            field = counts.fields[column]
            members.append((place, field.shift, field.mask))
            begin = [0] * int(levels.max())
            for level in range(1, lattice.shape[axis]):
                low = lattice.low[axis] + level
                step = hierarchies[column].between(low - 1, low)
                begin[level] = used
                maps.append(step)
                used += len(step)
            starts.append(begin)
    return levels, np.array(members), np.array(starts), np.concatenate(maps)
