"""Recodings in which a column has the same groups in all classes, but not the groups of one level.

By order: the values are sorted and cut into ranges. By hierarchy: every value has a level, and all values of
a released group have the same level (an antichain of the hierarchy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.hierarchy.hierarchy import MISSING, TOP, Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import (
    CellValue,
    Cover,
    Groups,
    ReleasedLabels,
    cell_number,
    groups_of_levels,
    released_columns,
    unused,
    values_of,
)
from shoal.core.recoding.recoding import Recoding, regions_of

_AMBIGUOUS = set(',{}"')


@dataclass(frozen=True)
class Arrangement:
    """The sorted values of one column.

    The *slot* of a value is its position. The *rank* is the same for values that are equal on the scale.
    """

    hierarchy: Hierarchy
    counts: IntArray  # (codes,): the number of records of each value
    values: IntArray  # (slots,): the value in each slot
    scaled: int  # the number of slots on the scale; 0: the column has no scale

    @cached_property
    def slots(self) -> IntArray:
        """The slot of each value, (codes,)."""
        slots = np.empty(len(self.values), np.int64)
        slots[self.values] = np.arange(len(self.values))
        return slots

    @cached_property
    def _slot_ranks(self) -> IntArray:
        """The rank of each slot, (slots,)."""
        if not self.scaled or self.hierarchy.positions is None:
            return np.arange(len(self.values))
        on_scale = self.hierarchy.positions[self.values[: self.scaled]]
        steps = np.cumsum(np.diff(on_scale, prepend=on_scale[:1]) > 0)
        return np.append(steps, np.full(len(self.values) - self.scaled, steps[-1] + 1))

    @cached_property
    def ranks(self) -> IntArray:
        """The rank of each value, (codes,).

        Values that are equal on the scale are never separated, because their labels would be equal. Values
        that are not on the scale all have the same rank.
        """
        return self._slot_ranks[self.slots]

    @cached_property
    def positions(self) -> FloatArray:
        """The position of each rank, ascending; values that are not on the scale come one step later."""
        if not self.scaled or self.hierarchy.positions is None:
            return np.arange(float(len(self.values)))
        on_scale = np.unique(self.hierarchy.positions[self.values[: self.scaled]])
        step = (on_scale[-1] - on_scale[0]) / (len(on_scale) - 1) if len(on_scale) > 1 else 1.0
        return np.append(on_scale, on_scale[-1] + step) if self.scaled < len(self.values) else on_scale

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The group of each rank, level by level; the last level has one group."""
        levels = [self.hierarchy.groups(level)[self.values] for level in range(self.hierarchy.height + 1)]
        return (*levels, np.zeros_like(self.values)) if levels[-1].any() else tuple(levels)

    def inside(self, cover: Cover) -> BoolArray:
        """Mark the slots of the values that a cover describes."""
        inside = np.zeros(len(self.values), np.bool_)
        if "blank" in cover:
            inside[:] = True
        elif "level" in cover and "values" not in cover and cover["level"] <= self.hierarchy.height:
            names = cover["labels"] if "labels" in cover else [cover["label"]]
            labels = self.hierarchy.labels[cover["level"]]
            inside = np.isin(self.levels[cover["level"]], [labels.index(n) for n in names if n in labels])
        elif "ends" in cover and self.scaled:
            low, high = cover["ends"]
            on_scale = self.positions[self._slot_ranks[: self.scaled]]
            inside[: self.scaled] = (on_scale >= low) & (on_scale <= high)
        return inside

    def stretch(self, cover: Cover) -> tuple[int, int]:
        """Return the first and last slot that a cover describes; (0, -1) if there is none."""
        slots = np.flatnonzero(self.inside(cover))
        return (int(slots[0]), int(slots[-1])) if len(slots) else (0, -1)

    def groups(
        self, codes: IntArray, regions: IntArray, *, tree: bool, bounds: bool
    ) -> tuple[Groups, IntArray]:
        """Return the groups of regions, and the group of each region.

        `codes` are values and `regions` their regions, ascending; every region has a value.
        """
        slots = self.slots[codes]
        start = np.flatnonzero(np.diff(regions, prepend=-1))
        ends = np.minimum.reduceat(slots, start), np.maximum.reduceat(slots, start)
        if bounds:
            return self._ranges(slots, start, bounds=True)
        if (ends[0] == ends[1]).all():
            groups, _ = groups_of_levels(self.hierarchy, self.counts, [0], bounds=False, blanks=False)
            return groups, self.values[ends[0]]
        if self.scaled:
            return self._ranges(slots, start, bounds=False)
        return self._common(*ends) if tree else self._sets(slots, regions)

    def _common(self, low: IntArray, high: IntArray) -> tuple[Groups, IntArray]:
        """Return the lowest group of the hierarchy that covers the slots from `low` to `high`, per region."""
        levels = np.zeros(len(low), np.int64)
        for level, group_of in enumerate(self.levels):
            levels[group_of[low] != group_of[high]] = level + 1
        top = self.hierarchy.height
        used = np.unique(levels[levels <= top]).tolist()
        groups, maps = groups_of_levels(self.hierarchy, self.counts, used, bounds=False, blanks=False)
        codes = np.full(len(low), len(groups.leaves))  # code of the group that `_with_top` adds
        for level in used:
            at_level = levels == level
            codes[at_level] = maps[level][self.values[low[at_level]]]
        return (_with_top(groups, self.hierarchy, self.counts) if levels.max() > top else groups), codes

    def _ranges(self, slots: IntArray, start: IntArray, *, bounds: bool) -> tuple[Groups, IntArray]:
        """Return the range of each region, and whether it includes values that are not on the scale."""
        off_scale = slots >= self.scaled
        first, last = self._ends_of_ranks
        low = np.minimum.reduceat(np.where(off_scale, len(self.values), first[slots]), start)
        high = np.maximum.reduceat(np.where(off_scale, -1, last[slots]), start)
        with_missing = np.logical_or.reduceat(off_scale, start)
        width = len(self.values) + 1
        distinct, codes = np.unique((low * width + high + 1) * 2 + with_missing, return_inverse=True)
        low, high, with_missing = distinct // 2 // width, distinct // 2 % width - 1, distinct % 2
        groups = self._described(low, high, with_missing, bounds=bounds)
        return (
            merge_equal_ends(groups, codes, self.hierarchy, int(self.counts.sum()))
            if bounds
            else (groups, codes)
        )

    @cached_property
    def _ends_of_ranks(self) -> tuple[IntArray, IntArray]:
        """The first and last slot with the rank of each slot."""
        steps = self._slot_ranks
        return np.searchsorted(steps, steps, "left"), np.searchsorted(steps, steps, "right") - 1

    def _described(self, low: IntArray, high: IntArray, with_missing: IntArray, *, bounds: bool) -> Groups:
        texts = self.hierarchy.labels[0]
        has_values = low <= high
        lower, upper = (np.where(has_values, ends, 0) for ends in (low, high))
        before = np.concatenate(([0], np.cumsum(self.counts[self.values])))
        missing = len(self.values) - self.scaled
        leaves = np.where(has_values, upper - lower + 1, 0) + np.where(with_missing, missing, 0)
        records = np.where(has_values, before[upper + 1] - before[lower], 0)
        records += np.where(with_missing, before[-1] - before[self.scaled], 0)
        first_of_rank, _ = self._ends_of_ranks  # values that are equal on the scale get the same text
        pairs = [
            (texts[self.values[a]], texts[self.values[first_of_rank[b]]]) if s else None
            for a, b, s in zip(lower.tolist(), upper.tolist(), has_values.tolist(), strict=True)
        ]
        names = released_columns(self.hierarchy.name, bounds=bounds)
        labels: ReleasedLabels
        if bounds:
            labels = self._ends(names, lower, upper, has_values & (with_missing == 0))
        else:
            flags = zip(pairs, with_missing.tolist(), strict=True)
            single_rank = (
                has_values & (with_missing == 0) & (self._slot_ranks[lower] == self._slot_ranks[upper])
            )
            range_labels = [range_label(pair, missing=bool(flag)) for pair, flag in flags]
            labels = {names[0]: _distinct_labels(range_labels, single_rank.tolist())}

        def cover(code: int) -> Cover:
            pair = pairs[code]
            ends = [float(self.positions[self._slot_ranks[end[code]]]) for end in (lower, upper)]
            flags = {} if pair is None else {"from": pair[0], "to": pair[1], "ends": ends}
            return {**flags, "missing": bool(with_missing[code])}

        return Groups(labels, leaves, records, cover)

    def _ends(
        self, names: tuple[str, ...], low: IntArray, high: IntArray, on_scale: BoolArray
    ) -> ReleasedLabels:
        """Return the ends of ranges as numbers; None if a value is not on the scale."""
        bounds = self.hierarchy.bounds
        if bounds is None:
            raise TypeError(self.hierarchy.name)
        numbers = [cell_number(number) for number, _ in bounds[0]]
        ends = (low.tolist(), high.tolist())
        return {
            name: [
                numbers[self.values[slot]] if is_known else None
                for slot, is_known in zip(slots, on_scale.tolist(), strict=True)
            ]
            for name, slots in zip(names, ends, strict=True)
        }

    def _sets(self, slots: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        """Return the set of values of each region, in the order of the tree."""
        count = int(regions[-1]) + 1
        words = np.zeros((-(-len(self.values) // 63), count), np.int64)
        for number, word in enumerate(words):
            in_word = slots // 63 == number
            np.bitwise_or.at(word, regions[in_word], np.int64(1) << (slots[in_word] % 63))
        if len(words) == 1:  # the usual case, which is much faster this way
            distinct, codes = np.unique(words[0], return_inverse=True)
            sets = distinct.reshape(1, -1)
        else:
            sets, codes = np.unique(words, axis=1, return_inverse=True)
        texts = [self.hierarchy.labels[0][value] for value in self.values.tolist()]
        null = self.hierarchy.null
        members_of = np.zeros((len(self.values), sets.shape[1]), np.bool_)
        for slot in range(len(self.values)):
            members_of[slot] = (sets[slot // 63] >> (slot % 63)) & 1
        members = [np.flatnonzero(members_of[:, group]).tolist() for group in range(sets.shape[1])]
        single_values = [len(inside) == 1 and self.values[inside[0]] != null for inside in members]
        set_labels = [_set([texts[slot] for slot in inside]) for inside in members]
        labels = {self.hierarchy.name: _distinct_labels(set_labels, single_values)}
        records = (self.counts[self.values][:, None] * members_of).sum(axis=0)

        def cover(code: int) -> Cover:
            values = [(texts[slot], self.values[slot] == null) for slot in members[code]]
            return {"values": [None if missing else text for text, missing in values]}

        return Groups(labels, members_of.sum(axis=0), records, cover), codes.reshape(-1)


def arranged(hierarchy: Hierarchy, counts: IntArray, *, ties: bool = False) -> Arrangement:
    """Sort the values of a column so that they can be cut into ranges.

    Codes such as 0, -0 and 00 are equal as numbers but different as texts. A column with such codes is
    treated as if it had no scale, unless `ties` is set.
    """
    codes = np.arange(len(counts))
    positions = hierarchy.positions
    if positions is not None and not (hierarchy.measures or ties) and _tied(positions):
        positions = None
    if positions is None:
        return by_hierarchy(hierarchy, counts)
    order = np.lexsort((codes, positions))  # nan comes last
    return Arrangement(hierarchy, counts, order, int(np.isfinite(positions).sum()))


def by_hierarchy(hierarchy: Hierarchy, counts: IntArray) -> Arrangement:
    """Sort a column's values by the groups of its hierarchy, whether or not they have a scale."""
    levels = [hierarchy.groups(level) for level in range(hierarchy.height + 1)]
    return Arrangement(hierarchy, counts, np.lexsort(levels), 0)


def _tied(positions: FloatArray) -> bool:
    """Return whether several values share a position."""
    on_scale = positions[np.isfinite(positions)]
    return len(np.unique(on_scale)) < len(on_scale)


def range_label(pair: tuple[str, str] | None, *, missing: bool) -> str:
    """Format a range: 25, [25-28], [-3 to 5], [25-28] or missing.

    >>> range_label(("25", "28"), missing=False), range_label(("2020-01-31", "2020-02-03"), missing=True)
    ('[25-28]', '[2020-01-31 to 2020-02-03] or missing')
    """
    if pair is None:
        return MISSING
    low, high = pair
    between = " to " if "-" in low or "-" in high else "-"
    text = low if low == high else f"[{low}{between}{high}]"
    return f"{text} or {MISSING}" if missing else text


def _set(values: list[str]) -> str:
    """Format a set; ambiguous members are quoted.

    >>> _set(["b", "c"]), _set(["a", "b, c"])
    ('{b, c}', '{a, "b, c"}')
    """
    if len(values) == 1:
        return values[0]
    return "{" + ", ".join(f'"{value}"' if _AMBIGUOUS & set(value) else value for value in values) + "}"


def _distinct_labels(labels: Sequence[str], is_single: Sequence[bool]) -> list[str]:
    """Make labels unique by quoting some, preferably those of single values.

    >>> _distinct_labels(["{a, b}", "missing", "{a, b}", "missing"], [True, True, False, False])
    ['"{a, b}"', '"missing"', '{a, b}', 'missing']
    """
    unique = list(labels)
    used = set()
    for index in sorted(range(len(unique)), key=is_single.__getitem__):
        while unique[index] in used:
            unique[index] = f'"{unique[index]}"'
        used.add(unique[index])
    return unique


def _with_top(groups: Groups, hierarchy: Hierarchy, counts: IntArray) -> Groups:
    """Add a group of all values if the hierarchy has no such group."""
    code = len(groups.leaves)
    all_values = values_of(hierarchy)
    labels = all_values if groups.labels is None else groups.labels[hierarchy.name]
    return Groups(
        {hierarchy.name: [*labels, unused(labels, (TOP, TOP * 2, TOP * 3))]},
        np.append(groups.leaves, hierarchy.size),
        np.append(groups.records, counts.sum()),
        lambda group: {"values": all_values} if group == code else groups.cover(group),
    )


def merge_equal_ends(
    groups: Groups, codes: IntArray, hierarchy: Hierarchy, total: int
) -> tuple[Groups, IntArray]:
    """Merge groups whose released ends are equal; a merged group counts as covering all values."""
    if groups.labels is None:
        raise TypeError
    code_of_ends: dict[tuple[CellValue, ...], int] = {}
    rows = zip(*groups.labels.values(), strict=True)
    new_codes = np.array([code_of_ends.setdefault(ends, len(code_of_ends)) for ends in rows])
    if len(code_of_ends) == len(new_codes):
        return groups, codes
    first = np.unique(new_codes, return_index=True)[1]
    is_merged = np.bincount(new_codes) > 1
    leaves = np.where(is_merged, hierarchy.size, groups.leaves[first])
    records = np.where(is_merged, total, groups.records[first])
    labels = {name: [ends[at] for at in first] for name, ends in groups.labels.items()}

    def cover(code: int) -> Cover:
        return {"blank": True} if is_merged[code] else groups.cover(int(first[code]))

    return Groups(labels, leaves, records, cover), new_codes[codes]


def arrangements(problem: Problem, *, ties: bool = False) -> list[Arrangement]:
    """Sort the values of every column for cutting; see `arranged`."""
    pairs = zip(problem.hierarchies, problem.value_counts, strict=True)
    return [arranged(hierarchy, counts, ties=ties) for hierarchy, counts in pairs]


def by_order(problem: Problem, starts: Sequence[IntArray]) -> Recoding:
    """Cut each column's sorted values before the given ranks."""
    column_groups, maps = [], []
    for column, begins_at in zip(arrangements(problem), starts, strict=True):
        begins = np.zeros(len(column.positions), np.int64)
        begins[begins_at] = 1
        begins[:1] = 0
        range_of_value = np.cumsum(begins)[column.ranks]  # of each value
        bounds = column.hierarchy.name in problem.as_bounds
        groups, codes = column.groups(column.values, range_of_value[column.values], tree=False, bounds=bounds)
        column_groups.append(groups)
        maps.append(codes[range_of_value])
    return _recoding(problem, column_groups, maps)


def by_levels(problem: Problem, levels: Sequence[IntArray]) -> Recoding:
    """Generalize every value of each column to the level that is given for it."""
    column_groups, maps = [], []
    for hierarchy, counts, value_levels in zip(
        problem.hierarchies, problem.value_counts, levels, strict=True
    ):
        bounds = hierarchy.name in problem.as_bounds
        groups, groups_by_level = groups_of_levels(
            hierarchy, counts, np.unique(value_levels).tolist(), bounds=bounds, blanks=False
        )
        codes = np.empty(len(value_levels), np.int64)
        for level, group in groups_by_level.items():
            codes[value_levels == level] = group[value_levels == level]
        column_groups.append(groups)
        maps.append(codes)
    return _recoding(problem, column_groups, maps)


def _recoding(problem: Problem, column_groups: Sequence[Groups], maps: Sequence[IntArray]) -> Recoding:
    """Combine the groups of all columns; classes that a model refuses are suppressed."""
    codes = [groups[problem.counts.codes(column)] for column, groups in enumerate(maps)]
    regions = regions_of(problem.counts, codes, np.zeros(len(problem.counts), np.bool_))
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    recoding = replace(Recoding.from_regions(names, column_groups, regions), uniform=True)
    suppressed = problem.violations(problem.classes_of(recoding))
    return replace(recoding, regions=replace(regions, suppressed=suppressed))
