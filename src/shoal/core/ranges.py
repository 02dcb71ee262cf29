"""Ranges and sets: groups of one column that regions have, instead of the levels of a hierarchy.

A column with a scale of its own (numbers, dates, times, an order) is cut by it. Other columns are cut by
the order of their hierarchy's tree, in which the values of every group stand together, so that neighbours
are alike. What has no place on the scale, because it is missing or unknown, comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.groups import Cover, Groups, Labels, Shown, of_levels, plain, released_columns
from shoal.core.hierarchy import MISSING, TOP, Hierarchy


@dataclass(frozen=True)
class Arrangement:
    """The order in which one column's values are cut."""

    hierarchy: Hierarchy
    counts: IntArray  # (codes,): how many records have each value
    values: IntArray  # (places,): the value at each place
    scaled: int  # how many places are on the scale; 0: the column has none

    @cached_property
    def places(self) -> IntArray:
        """Each value's place, (codes,)."""
        found = np.empty(len(self.values), np.int64)
        found[self.values] = np.arange(len(self.values))
        return found

    @cached_property
    def positions(self) -> FloatArray:
        """Where each place lies, ascending; what is not on the scale is one average step behind."""
        if not self.scaled or self.hierarchy.positions is None:
            return np.arange(float(len(self.values)))
        on = self.hierarchy.positions[self.values[: self.scaled]]
        step = (on[-1] - on[0]) / (self.scaled - 1) if on[-1] > on[0] else 1.0
        return np.concatenate((on, on[-1] + step * np.arange(1, len(self.values) - self.scaled + 1)))

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The group of each place, level by level; the last has one group."""
        levels = [self.hierarchy.groups(level)[self.values] for level in range(self.hierarchy.height + 1)]
        return (*levels, np.zeros_like(self.values)) if levels[-1].any() else tuple(levels)

    def stretch(self, cover: Cover) -> tuple[int, int]:
        """Return the first and the last place that a cover stands for; (0, -1) where it has none."""
        inside = np.zeros(len(self.values), np.bool_)
        if "blank" in cover:
            inside[:] = True
        elif "level" in cover and cover["level"] <= self.hierarchy.height:
            labels = self.hierarchy.labels[cover["level"]]
            if cover["label"] in labels:
                inside = self.levels[cover["level"]] == labels.index(cover["label"])
        elif "ends" in cover and self.scaled:
            low, high = cover["ends"]
            inside[: self.scaled] = (self.positions[: self.scaled] >= low) & (
                self.positions[: self.scaled] <= high
            )
        found = np.flatnonzero(inside)
        return (int(found[0]), int(found[-1])) if len(found) else (0, -1)

    def groups(
        self, codes: IntArray, regions: IntArray, *, tree: bool, bounds: bool
    ) -> tuple[Groups, IntArray]:
        """Return the groups of regions, and each region's.

        `codes` are values and `regions` whose they are, ascending; every region has some.
        """
        places = self.places[codes]
        start = np.flatnonzero(np.diff(regions, prepend=-1))
        ends = np.minimum.reduceat(places, start), np.maximum.reduceat(places, start)
        if (ends[0] == ends[1]).all() and not bounds:
            found, _ = of_levels(self.hierarchy, self.counts, [0], bounds=False, blanks=False)
            return found, self.values[ends[0]]
        if self.scaled:
            return self._ranges(places, start, bounds=bounds)
        return self._common(*ends) if tree else self._sets(places, regions)

    def _common(self, low: IntArray, high: IntArray) -> tuple[Groups, IntArray]:
        """Return the lowest group of the hierarchy that covers a region; its places adjoin."""
        levels = np.zeros(len(low), np.int64)
        for level, groups in enumerate(self.levels):
            levels[groups[low] != groups[high]] = level + 1
        top = self.hierarchy.height
        used = np.unique(levels[levels <= top]).tolist()
        found, maps = of_levels(self.hierarchy, self.counts, used, bounds=False, blanks=False)
        own = np.full(len(low), len(found.leaves))  # a hierarchy without one top has none that covers all
        for level in used:
            here = levels == level
            own[here] = maps[level][self.values[low[here]]]
        return (_with_top(found, self.hierarchy, self.counts) if levels.max() > top else found), own

    def _ranges(self, places: IntArray, start: IntArray, *, bounds: bool) -> tuple[Groups, IntArray]:
        """Return from where to where a region goes, and whether it has what is not on the scale."""
        off = places >= self.scaled
        low = np.minimum.reduceat(np.where(off, len(self.values), places), start)
        high = np.maximum.reduceat(np.where(off, -1, places), start)
        more = np.logical_or.reduceat(off, start)
        wide = len(self.values) + 1
        both, own = np.unique((low * wide + high + 1) * 2 + more, return_inverse=True)
        low, high, more = both // 2 // wide, both // 2 % wide - 1, both % 2
        found = self._told(low, high, more, bounds=bounds)
        if found.labels is None:
            raise TypeError
        looks = list(zip(*found.labels.values(), strict=True))
        known: dict[tuple[Shown, ...], int] = {}
        same = np.array([known.setdefault(look, len(known)) for look in looks])
        if len(known) == len(looks):
            return found, own
        return _merged(found, same), same[own]  # ends of bands can look alike, when nothing is known

    def _told(self, low: IntArray, high: IntArray, more: IntArray, *, bounds: bool) -> Groups:
        texts = self.hierarchy.labels[0]
        some = low <= high
        lower, upper = (np.where(some, ends, 0) for ends in (low, high))
        before = np.concatenate(([0], np.cumsum(self.counts[self.values])))
        missing = len(self.values) - self.scaled
        leaves = np.where(some, upper - lower + 1, 0) + np.where(more, missing, 0)
        records = np.where(some, before[upper + 1] - before[lower], 0)
        records += np.where(more, before[-1] - before[self.scaled], 0)
        pairs = [
            (texts[self.values[a]], texts[self.values[b]]) if s else None
            for a, b, s in zip(lower.tolist(), upper.tolist(), some.tolist(), strict=True)
        ]
        names = released_columns(self.hierarchy.name, bounds=bounds)
        labels: Labels
        if bounds:
            labels = self._ends(names, lower, upper, some & (more == 0))
        else:
            told = zip(pairs, more.tolist(), strict=True)
            labels = {names[0]: [_label(pair, missing=bool(also)) for pair, also in told]}

        def cover(code: int) -> Cover:
            pair = pairs[code]
            ends = [float(self.positions[lower[code]]), float(self.positions[upper[code]])]
            told = {} if pair is None else {"from": pair[0], "to": pair[1], "ends": ends}
            return {**told, "missing": bool(more[code])}

        return Groups(labels, leaves, records, cover)

    def _ends(self, names: tuple[str, ...], low: IntArray, high: IntArray, known: BoolArray) -> Labels:
        """Return the ends of ranges as numbers; unknown where something has no place."""
        bounds = self.hierarchy.bounds
        if bounds is None:
            raise TypeError(self.hierarchy.name)
        numbers = [plain(number) for number, _ in bounds[0]]
        ends = (low.tolist(), high.tolist())
        return {
            name: [
                numbers[self.values[place]] if sure else None
                for place, sure in zip(places, known.tolist(), strict=True)
            ]
            for name, places in zip(names, ends, strict=True)
        }

    def _sets(self, places: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        """Return the values that a region has, in the order of the tree."""
        count = int(regions[-1]) + 1
        words = np.zeros((-(-len(self.values) // 63), count), np.int64)
        for number, word in enumerate(words):
            here = places // 63 == number
            np.bitwise_or.at(word, regions[here], np.int64(1) << (places[here] % 63))
        if len(words) == 1:  # the usual case, and many times as fast
            one, own = np.unique(words[0], return_inverse=True)
            both = one.reshape(1, -1)
        else:
            both, own = np.unique(words, axis=1, return_inverse=True)
        texts = [self.hierarchy.labels[0][value] for value in self.values.tolist()]
        null = self.hierarchy.null
        held = np.zeros((len(self.values), both.shape[1]), np.bool_)
        for place in range(len(self.values)):
            held[place] = (both[place // 63] >> (place % 63)) & 1
        members = [np.flatnonzero(held[:, group]).tolist() for group in range(both.shape[1])]
        labels = {self.hierarchy.name: [_set([texts[p] for p in inside]) for inside in members]}
        leaves = held.sum(axis=0)
        records = self.counts[self.values] @ held

        def cover(code: int) -> Cover:
            values = [(texts[p], self.values[p] == null) for p in members[code]]
            return {"values": [None if missing else text for text, missing in values]}

        return Groups(labels, leaves, records, cover), own.reshape(-1)


def arranged(hierarchy: Hierarchy, counts: IntArray) -> Arrangement:
    """Put a column's values into the order in which they are cut."""
    codes = np.arange(len(counts))
    positions = hierarchy.positions
    if positions is None:
        levels = [hierarchy.groups(level) for level in range(hierarchy.height + 1)]
        return Arrangement(hierarchy, counts, np.lexsort(levels), 0)
    order = np.lexsort((codes, positions))  # nan comes last
    return Arrangement(hierarchy, counts, order, int(np.isfinite(positions).sum()))


def _label(pair: tuple[str, str] | None, *, missing: bool) -> str:
    """Write a range: 25, [25-28], [-3 to 5], [25-28] or missing.

    >>> _label(("25", "28"), missing=False), _label(("2020-01-31", "2020-02-03"), missing=True)
    ('[25-28]', '[2020-01-31 to 2020-02-03] or missing')
    """
    if pair is None:
        return MISSING
    low, high = pair
    between = " to " if "-" in low or "-" in high else "-"
    told = low if low == high else f"[{low}{between}{high}]"
    return f"{told} or {MISSING}" if missing else told


def _set(values: list[str]) -> str:
    return values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"


def _with_top(groups: Groups, hierarchy: Hierarchy, counts: IntArray) -> Groups:
    """Add a group of all values, which the hierarchy does not have."""
    code = len(groups.leaves)
    shown = hierarchy.labels[0] if groups.labels is None else groups.labels[hierarchy.name]
    everything: list[str | None] = list(hierarchy.labels[0])
    if hierarchy.null is not None:
        everything[hierarchy.null] = None
    return Groups(
        {hierarchy.name: [*shown, TOP]},
        np.append(groups.leaves, hierarchy.size),
        np.append(groups.records, counts.sum()),
        lambda group: {"values": everything} if group == code else groups.cover(group),
    )


def _merged(groups: Groups, same: IntArray) -> Groups:
    """Let groups that look alike be one."""
    first = np.unique(same, return_index=True)[1]
    leaves, records = np.zeros((2, len(first)), np.int64)
    np.maximum.at(leaves, same, groups.leaves)
    np.maximum.at(records, same, groups.records)
    labels = {name: [shown[at] for at in first] for name, shown in (groups.labels or {}).items()}
    return Groups(labels, leaves, records, lambda code: groups.cover(int(first[code])))
