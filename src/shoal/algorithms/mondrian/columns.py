"""The columns of a partition: where they may be cut, given `min_level` and `max_level`, and their labels.

Groups at `min_level` are treated like values: they are never cut, and a region is released as whole groups.
Groups at `max_level` start as separate regions, which are never merged.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from shoal.algorithms.mondrian.partition import Axis
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.hierarchy import MISSING, Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import CellValue, Groups, cell_number, released_columns
from shoal.core.recoding.local.cells import Cell, groups_of_cells, text_of
from shoal.core.recoding.ranges import Arrangement, arranged, by_hierarchy, merge_equal_ends, range_label
from shoal.core.recoding.wording import joined


@dataclass(frozen=True)
class CutColumn(ABC):
    """A column with the levels that a policy allows."""

    arrangement: Arrangement
    low: int  # min_level
    high: int  # max_level
    weight: float
    by_tree: bool  # whether a column without a scale is cut into the groups of its hierarchy
    bounds: bool  # whether its ranges are released as two columns of bounds

    @property
    def hierarchy(self) -> Hierarchy:
        return self.arrangement.hierarchy

    @property
    def tree(self) -> bool:
        return self.by_tree and not self.arrangement.scaled

    @property
    @abstractmethod
    def axis(self) -> Axis: ...

    @property
    @abstractmethod
    def begin(self) -> IntArray:
        """The group at max_level of each value, (codes,)."""

    @abstractmethod
    def groups(self, codes: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        """Return the groups of regions, and the group of each region.

        `codes` are values and `regions` their regions, ascending; every region has a value.
        """


@dataclass(frozen=True)
class _Values(CutColumn):
    """A column without min_level: its values are cut."""

    @property
    def axis(self) -> Axis:
        column = self.arrangement
        return Axis(column.ranks, column.positions, column.levels if self.tree else (), self.weight)

    @property
    def begin(self) -> IntArray:
        column = self.arrangement
        if self.high == self.hierarchy.height:
            return np.zeros(len(column.values), np.int64)
        # Values with the same rank get the same label, so the first of them determines the group of all.
        first = np.unique(column.ranks[column.values], return_index=True)[1]
        return self.hierarchy.groups(self.high)[column.values[first]][column.ranks]

    def groups(self, codes: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        return self.arrangement.groups(codes, regions, tree=self.tree, bounds=self.bounds)


@dataclass(frozen=True)
class _WholeGroups(CutColumn):
    """A column with min_level: its groups at that level are cut like values."""

    @cached_property
    def _order(self) -> IntArray:
        """The group of each rank; groups on the scale come first."""
        groups = self.hierarchy.groups(self.low)[self.arrangement.values]
        order: IntArray = groups[np.sort(np.unique(groups, return_index=True)[1])]
        return order

    @cached_property
    def _scaled(self) -> int:
        """The number of ranks on the scale."""
        on_scale = self.arrangement.values[: self.arrangement.scaled]
        return len(np.unique(self.hierarchy.groups(self.low)[on_scale]))

    @cached_property
    def _ranks(self) -> IntArray:
        ranks = np.empty(len(self._order), np.int64)
        ranks[self._order] = np.arange(len(ranks))
        return ranks[self.hierarchy.groups(self.low)]

    @property
    def axis(self) -> Axis:
        levels = range(self.low, self.hierarchy.height + 1) if self.tree else ()
        groups = tuple(self.hierarchy.between(self.low, level)[self._order] for level in levels)
        return Axis(self._ranks, self._positions, groups, self.weight)

    @property
    def _positions(self) -> FloatArray:
        """The middle of each group on the scale; the other groups follow, one average step apart."""
        if not self._scaled or self.hierarchy.positions is None:
            return np.arange(float(len(self._order)))
        values = self.arrangement.values[: self.arrangement.scaled]
        on_scale, ranks = self.hierarchy.positions[values], self._ranks[values]
        start = np.flatnonzero(np.diff(ranks, prepend=-1))
        middle = (np.minimum.reduceat(on_scale, start) + np.maximum.reduceat(on_scale, start)) / 2
        step = (middle[-1] - middle[0]) / (len(middle) - 1) if len(middle) > 1 else 1.0
        return np.append(middle, middle[-1] + step * np.arange(1, len(self._order) - self._scaled + 1))

    @property
    def begin(self) -> IntArray:
        is_top = self.high == self.hierarchy.height
        return np.zeros_like(self._ranks) if is_top else self.hierarchy.groups(self.high)

    def groups(self, codes: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        number = len(self._order)
        region, ranks = np.divmod(np.unique(regions * number + self._ranks[codes]), number)
        ends = np.append(np.flatnonzero(np.diff(region, prepend=-1)), len(region)).tolist()
        listed = ranks.tolist()
        sets = [tuple(listed[start:stop]) for start, stop in pairwise(ends)]
        cell_of = {ranks: self._cell(ranks) for ranks in dict.fromkeys(sets)}
        cells = [cell_of[ranks] for ranks in sets]
        groups, shown = groups_of_cells(self.hierarchy, self.arrangement.counts, cells)
        cell_of_code = dict(zip(shown.tolist(), cells, strict=True))
        return self._labelled(groups, shown, [cell_of_code[code] for code in range(len(cell_of_code))])

    def _cell(self, ranks: tuple[int, ...]) -> Cell:
        """Return the cell for a region with some groups; on the scale, it includes all groups in between."""
        if self.tree:
            ends = self._order[[ranks[0], ranks[-1]]]
            for level in range(self.low, self.hierarchy.height + 1):
                first, last = self.hierarchy.between(self.low, level)[ends].tolist()
                if first == last:
                    return level, (first,)
        on_scale = [rank for rank in ranks if rank < self._scaled]
        between = range(on_scale[0], on_scale[-1] + 1) if on_scale else ()
        return self.low, tuple(self._order[[*between, *ranks[len(on_scale) :]]].tolist())

    def _labelled(self, groups: Groups, codes: IntArray, cells: Sequence[Cell]) -> tuple[Groups, IntArray]:
        """Set the released labels: bounds, or ranges of labels if the column has no numeric bands."""
        name = self.hierarchy.name
        if self.bounds:
            names = released_columns(name, bounds=True)
            ends = zip(names, zip(*map(self._ends, cells), strict=True), strict=True)
            released = replace(groups, labels={name: list(side) for name, side in ends}, levels=None)
            return merge_equal_ends(released, codes, self.hierarchy, int(self.arrangement.counts.sum()))
        if self._scaled and self.hierarchy.bounds is None:
            groups = replace(groups, labels={name: [self._range(cell) for cell in cells]})
        return groups, codes

    def _ends(self, cell: Cell) -> tuple[CellValue, CellValue]:
        """Return the smallest and the largest number; None if some group has none."""
        level, members = cell
        if self.hierarchy.bounds is None:
            raise TypeError(self.hierarchy.name)
        ends = [self.hierarchy.bounds[level][group] for group in members]
        return (None, None) if (None, None) in ends else (cell_number(ends[0][0]), cell_number(ends[-1][1]))

    def _range(self, cell: Cell) -> CellValue:
        """Return one label for the groups on the scale, joined with the labels of the other groups."""
        level, members = cell
        on_scale = set(self._order[: self._scaled].tolist()).intersection(members)
        if len(on_scale) < 2:
            return text_of(self.hierarchy, level, members)
        labels = [self.hierarchy.labels[level][group] for group in members]
        others = labels[len(on_scale) :]
        text = range_label((labels[0], labels[len(on_scale) - 1]), missing=False)
        return joined([text, *(o for o in others if o != MISSING)], missing=MISSING in others)


def columns_of(problem: Problem, *, by_tree: bool) -> list[CutColumn]:
    """Return the columns of a problem in which no columns share a level."""
    limits = {
        members[0]: (low, high)
        for members, low, high in zip(
            problem.lattice.axes, problem.lattice.low, problem.lattice.high, strict=True
        )
    }
    columns: list[CutColumn] = []
    for number, (hierarchy, counts) in enumerate(zip(problem.hierarchies, problem.value_counts, strict=True)):
        low, high = limits[number]
        bounds = hierarchy.name in problem.as_bounds
        arrangement = arranged(hierarchy, counts)
        if not bounds and not _keeps_groups(arrangement, low, high):
            arrangement = by_hierarchy(hierarchy, counts)
        kind = _WholeGroups if low else _Values
        columns.append(kind(arrangement, low, high, problem.weights[number], by_tree, bounds))
    return columns


def _keeps_groups(column: Arrangement, low: int, high: int) -> bool:
    """Return whether ranges on the column's scale can show the groups at `low` and `high`."""
    if not column.scaled:
        return True
    if low and not _shows_numbers(column, low):
        return False
    levels = {low, high} - {0, column.hierarchy.height}
    if not all(_adjoin(column.hierarchy.groups(level)[column.values], column.scaled) for level in levels):
        return False
    if low or high == column.hierarchy.height:
        return True
    ranks, groups = column.ranks[column.values], column.hierarchy.groups(high)[column.values]
    return len(np.unique(np.stack((ranks, groups)), axis=1).T) == len(np.unique(ranks))


def _shows_numbers(column: Arrangement, level: int) -> bool:
    """Return whether each label on the scale contains a number; a range such as [even-odd] cannot be read."""
    labels = column.hierarchy.labels[level]
    groups = np.unique(column.hierarchy.groups(level)[column.values[: column.scaled]]).tolist()
    return all(re.search(r"\d", labels[group]) for group in groups)


def _adjoin(groups: IntArray, scaled: int) -> bool:
    """Return whether each group is contiguous; only the last group on the scale may extend beyond it."""
    on_scale = groups[:scaled]
    if np.count_nonzero(np.diff(on_scale)) + 1 > len(np.unique(on_scale)):
        return False
    return not np.isin(groups[scaled:], on_scale[on_scale != on_scale[-1]]).any()
