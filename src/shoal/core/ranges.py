"""Ranges and sets: groups of one column that regions have, instead of the levels of a hierarchy.

A column with a scale of its own (numbers, dates, times, an order) is cut by it. Other columns are cut by
the order of their hierarchy's tree, in which the values of every group stand together, so that neighbours
are alike. What has no place on the scale, because it is missing or unknown, comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.groups import Cover, Groups, Labels, Shown, of_levels, plain, released_columns
from shoal.core.hierarchy import MISSING, TOP, Hierarchy

_UNCLEAR = set(',{}"')


@dataclass(frozen=True)
class Arrangement:
    """The row in which one column's values stand and are cut: a slot each, and a place for those alike."""

    hierarchy: Hierarchy
    counts: IntArray  # (codes,): how many records have each value
    values: IntArray  # (slots,): the value in each slot
    scaled: int  # how many slots are on the scale; 0: the column has none

    @cached_property
    def slots(self) -> IntArray:
        """Where each value stands in the row, (codes,)."""
        found = np.empty(len(self.values), np.int64)
        found[self.values] = np.arange(len(self.values))
        return found

    @cached_property
    def _steps(self) -> IntArray:
        """The place of each slot, (slots,)."""
        if not self.scaled or self.hierarchy.positions is None:
            return np.arange(len(self.values))
        on = self.hierarchy.positions[self.values[: self.scaled]]
        steps = np.cumsum(np.diff(on, prepend=on[:1]) > 0)
        return np.append(steps, np.full(len(self.values) - self.scaled, steps[-1] + 1))

    @cached_property
    def places(self) -> IntArray:
        """Each value's place, (codes,).

        No cut lies between what is equal on the scale, nor between what is not on it: nobody could tell
        the sides apart.
        """
        return self._steps[self.slots]

    @cached_property
    def positions(self) -> FloatArray:
        """Where each place lies, ascending; what is not on the scale is one average step behind."""
        if not self.scaled or self.hierarchy.positions is None:
            return np.arange(float(len(self.values)))
        on = np.unique(self.hierarchy.positions[self.values[: self.scaled]])
        step = (on[-1] - on[0]) / (len(on) - 1) if len(on) > 1 else 1.0
        return np.append(on, on[-1] + step) if self.scaled < len(self.values) else on

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The group of each place, level by level; the last has one group."""
        levels = [self.hierarchy.groups(level)[self.values] for level in range(self.hierarchy.height + 1)]
        return (*levels, np.zeros_like(self.values)) if levels[-1].any() else tuple(levels)

    def stretch(self, cover: Cover) -> tuple[int, int]:
        """Return the first and the last slot that a cover stands for; (0, -1) where it has none."""
        inside = np.zeros(len(self.values), np.bool_)
        if "blank" in cover:
            inside[:] = True
        elif "level" in cover and cover["level"] <= self.hierarchy.height:
            labels = self.hierarchy.labels[cover["level"]]
            if cover["label"] in labels:
                inside = self.levels[cover["level"]] == labels.index(cover["label"])
        elif "ends" in cover and self.scaled:
            low, high = cover["ends"]
            on = self.positions[self._steps[: self.scaled]]
            inside[: self.scaled] = (on >= low) & (on <= high)
        found = np.flatnonzero(inside)
        return (int(found[0]), int(found[-1])) if len(found) else (0, -1)

    def groups(
        self, codes: IntArray, regions: IntArray, *, tree: bool, bounds: bool
    ) -> tuple[Groups, IntArray]:
        """Return the groups of regions, and each region's.

        `codes` are values and `regions` whose they are, ascending; every region has some.
        """
        slots = self.slots[codes]
        start = np.flatnonzero(np.diff(regions, prepend=-1))
        ends = np.minimum.reduceat(slots, start), np.maximum.reduceat(slots, start)
        if bounds:
            return self._ranges(slots, start, bounds=True)
        if (ends[0] == ends[1]).all():
            found, _ = of_levels(self.hierarchy, self.counts, [0], bounds=False, blanks=False)
            return found, self.values[ends[0]]
        if self.scaled:
            return self._ranges(slots, start, bounds=False)
        return self._common(*ends) if tree else self._sets(slots, regions)

    def _common(self, low: IntArray, high: IntArray) -> tuple[Groups, IntArray]:
        """Return the lowest group of the hierarchy that covers a region; its slots adjoin."""
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

    def _ranges(self, slots: IntArray, start: IntArray, *, bounds: bool) -> tuple[Groups, IntArray]:
        """Return from where to where a region goes, and whether it has what is not on the scale."""
        off = slots >= self.scaled
        first, last = self._ends_of_places
        low = np.minimum.reduceat(np.where(off, len(self.values), first[slots]), start)
        high = np.maximum.reduceat(np.where(off, -1, last[slots]), start)
        more = np.logical_or.reduceat(off, start)
        wide = len(self.values) + 1
        both, own = np.unique((low * wide + high + 1) * 2 + more, return_inverse=True)
        low, high, more = both // 2 // wide, both // 2 % wide - 1, both % 2
        found = self._told(low, high, more, bounds=bounds)
        return _united(found, own, self.hierarchy, int(self.counts.sum())) if bounds else (found, own)

    @cached_property
    def _ends_of_places(self) -> tuple[IntArray, IntArray]:
        """The first and the last slot of the place that each slot belongs to."""
        steps = self._steps
        return np.searchsorted(steps, steps, "left"), np.searchsorted(steps, steps, "right") - 1

    def _told(self, low: IntArray, high: IntArray, more: IntArray, *, bounds: bool) -> Groups:
        texts = self.hierarchy.labels[0]
        some = low <= high
        lower, upper = (np.where(some, ends, 0) for ends in (low, high))
        before = np.concatenate(([0], np.cumsum(self.counts[self.values])))
        missing = len(self.values) - self.scaled
        leaves = np.where(some, upper - lower + 1, 0) + np.where(more, missing, 0)
        records = np.where(some, before[upper + 1] - before[lower], 0)
        records += np.where(more, before[-1] - before[self.scaled], 0)
        alike, _ = self._ends_of_places  # what is equal on the scale is written in one way
        pairs = [
            (texts[self.values[a]], texts[self.values[alike[b]]]) if s else None
            for a, b, s in zip(lower.tolist(), upper.tolist(), some.tolist(), strict=True)
        ]
        names = released_columns(self.hierarchy.name, bounds=bounds)
        labels: Labels
        if bounds:
            labels = self._ends(names, lower, upper, some & (more == 0))
        else:
            told = zip(pairs, more.tolist(), strict=True)
            alone = some & (more == 0) & (self._steps[lower] == self._steps[upper])
            shown = [_label(pair, missing=bool(also)) for pair, also in told]
            labels = {names[0]: _told_apart(shown, alone.tolist())}

        def cover(code: int) -> Cover:
            pair = pairs[code]
            ends = [float(self.positions[self._steps[end[code]]]) for end in (lower, upper)]
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

    def _sets(self, slots: IntArray, regions: IntArray) -> tuple[Groups, IntArray]:
        """Return the values that a region has, in the order of the tree."""
        count = int(regions[-1]) + 1
        words = np.zeros((-(-len(self.values) // 63), count), np.int64)
        for number, word in enumerate(words):
            here = slots // 63 == number
            np.bitwise_or.at(word, regions[here], np.int64(1) << (slots[here] % 63))
        if len(words) == 1:  # the usual case, and many times as fast
            one, own = np.unique(words[0], return_inverse=True)
            both = one.reshape(1, -1)
        else:
            both, own = np.unique(words, axis=1, return_inverse=True)
        texts = [self.hierarchy.labels[0][value] for value in self.values.tolist()]
        null = self.hierarchy.null
        held = np.zeros((len(self.values), both.shape[1]), np.bool_)
        for slot in range(len(self.values)):
            held[slot] = (both[slot // 63] >> (slot % 63)) & 1
        members = [np.flatnonzero(held[:, group]).tolist() for group in range(both.shape[1])]
        alone = [len(inside) == 1 and self.values[inside[0]] != null for inside in members]
        shown = [_set([texts[slot] for slot in inside]) for inside in members]
        labels = {self.hierarchy.name: _told_apart(shown, alone)}
        records = (self.counts[self.values][:, None] * held).sum(axis=0)

        def cover(code: int) -> Cover:
            values = [(texts[slot], self.values[slot] == null) for slot in members[code]]
            return {"values": [None if missing else text for text, missing in values]}

        return Groups(labels, held.sum(axis=0), records, cover), own.reshape(-1)


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
    """Write a set; a member that could be read as several is quoted.

    >>> _set(["b", "c"]), _set(["a", "b, c"])
    ('{b, c}', '{a, "b, c"}')
    """
    if len(values) == 1:
        return values[0]
    return "{" + ", ".join(f'"{value}"' if _UNCLEAR & set(value) else value for value in values) + "}"


def _told_apart(labels: Sequence[str], alone: Sequence[bool]) -> list[str]:
    """Quote labels that look like others, rather those of a value alone: groups never look alike.

    >>> _told_apart(["{a, b}", "missing", "{a, b}", "missing"], [True, True, False, False])
    ['"{a, b}"', '"missing"', '{a, b}', 'missing']
    """
    found = list(labels)
    seen = set()
    for at in sorted(range(len(found)), key=alone.__getitem__):
        while found[at] in seen:
            found[at] = f'"{found[at]}"'
        seen.add(found[at])
    return found


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


def _united(groups: Groups, own: IntArray, hierarchy: Hierarchy, total: int) -> tuple[Groups, IntArray]:
    """Let groups whose ends look alike be one, of which nothing is known but that it covers them all."""
    if groups.labels is None:
        raise TypeError
    known: dict[tuple[Shown, ...], int] = {}
    looks = zip(*groups.labels.values(), strict=True)
    same = np.array([known.setdefault(look, len(known)) for look in looks])
    if len(known) == len(same):
        return groups, own
    first = np.unique(same, return_index=True)[1]
    several = np.bincount(same) > 1
    leaves = np.where(several, hierarchy.size, groups.leaves[first])
    records = np.where(several, total, groups.records[first])
    labels = {name: [shown[at] for at in first] for name, shown in groups.labels.items()}

    def cover(code: int) -> Cover:
        return {"blank": True} if several[code] else groups.cover(int(first[code]))

    return Groups(labels, leaves, records, cover), same[own]
