"""Covers: the values of the input that each label of a column covers.

A label is looked up in all levels of the column's hierarchy first. If it is not found, it is parsed as a
set, a range or a band, or as several labels joined by " or ". Any other label may cover every value.

The values of a column are put in an order, and their indexes in it are called slots. A run is a sequence of
neighbouring slots.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.builder import Builder, number_of
from shoal.core.hierarchy.hierarchy import MISSING, Hierarchy
from shoal.workflow.attack.labels import Reader
from shoal.workflow.utility.labels import CellText, Ends, ends_of, with_point

ValueRun = tuple[int, int]  # the first slot of a run, and the slot after its last
_OR = " or "
_CLOSED = re.compile(r"\[(.+)\]")
_SEPARATORS = (" to ", "-")


@dataclass(frozen=True)
class Covers:
    """The values of each label, as runs of slots; the order of the values is chosen to need few runs."""

    order: IntArray  # (values,): the value in each slot
    labels: int
    label: IntArray  # (runs,): the label of each run, ascending; runs of one label do not overlap
    low: IntArray  # (runs,): the first slot of the run
    high: IntArray  # (runs,): the slot after the last of the run
    unread: int = 0  # number of labels that could not be parsed

    @classmethod
    def of_codes(cls, codes: IntArray, labels: int) -> Covers:
        """Create covers of labels that do not overlap; `codes` has the label of each value, or -1."""
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(labels + 1))
        occurring = np.flatnonzero(np.diff(ends))
        return cls(order, labels, occurring, ends[occurring], ends[occurring + 1])

    @classmethod
    def of_runs(cls, order: IntArray, runs: Sequence[Sequence[ValueRun]], unread: int) -> Covers:
        """Create covers from the runs of each label."""
        rows = [(label, *run) for label, label_runs in enumerate(runs) for run in merged(label_runs)]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return cls(order, len(runs), table[:, 0], table[:, 1], table[:, 2], unread)


def merged(runs: Iterable[ValueRun]) -> list[ValueRun]:
    """Return runs in ascending order; runs that touch or overlap are merged.

    >>> merged([(4, 6), (0, 2), (1, 3), (6, 7)])
    [(0, 3), (4, 7)]
    """
    result: list[ValueRun] = []
    for low, high in sorted(runs):
        if result and low <= result[-1][1]:
            result[-1] = result[-1][0], max(high, result[-1][1])
        else:
            result.append((low, high))
    return result


@dataclass(frozen=True)
class ColumnValues:
    """The values of one column, the codes that mean unknown, and the column's hierarchy."""

    texts: Sequence[CellText]
    unknown: Collection[CellText]
    hierarchy: Hierarchy | None = None
    builder: Builder | None = None
    bounds: bool = False  # bands are released as two columns

    @cached_property
    def pointed(self) -> Sequence[CellText]:
        """The values with decimal points; unchanged if a hierarchy defines how numbers are written."""
        return self.texts if self.builder else with_point(self.texts, self.unknown)

    @cached_property
    def positions(self) -> FloatArray | None:
        """The position of each value on the column's scale, or nan; None if the column has no scale."""
        if self.hierarchy is not None:
            return self.hierarchy.positions
        numbers = [
            None if text is None or original in self.unknown else number_of(text)
            for original, text in zip(self.texts, self.pointed, strict=True)
        ]
        known = sum(text not in self.unknown for text in self.texts)
        if not known or sum(number is not None for number in numbers) < known:
            return None
        return np.array([np.nan if number is None else float(number) for number in numbers])

    @cached_property
    def order(self) -> IntArray:
        """The value in each slot."""
        if self.positions is not None:
            return np.argsort(self.positions, kind="stable")  # nan comes last
        if self.hierarchy is None:
            return np.arange(len(self.texts))
        levels = [self.hierarchy.groups(level) for level in range(self.hierarchy.height + 1)]
        return np.lexsort(levels)

    @cached_property
    def scale(self) -> list[float]:
        """The positions of the values that have one, ascending; these values are in the first slots."""
        if self.positions is None:
            return []
        ordered = self.positions[self.order]
        return ordered[np.isfinite(ordered)].tolist()  # type: ignore[no-any-return]

    @cached_property
    def slots(self) -> dict[CellText, int]:
        """The slot of each value."""
        return {self.texts[value]: slot for slot, value in enumerate(self.order.tolist())}

    @cached_property
    def everything(self) -> list[ValueRun]:
        """The run of all values."""
        return [(0, len(self.texts))]

    @cached_property
    def off_scale(self) -> list[ValueRun]:
        """The runs of missing values and of codes that mean unknown; no range covers them."""
        return [(slot, slot + 1) for text, slot in self.slots.items() if text in self.unknown]

    @cached_property
    def groups(self) -> dict[CellText, list[ValueRun]]:
        """The runs of each value and of each label of the hierarchy."""
        groups: dict[CellText, list[ValueRun]] = {
            text: [(slot, slot + 1)] for text, slot in self.slots.items()
        }
        for level, low, high, group in self._stretches():
            groups.setdefault(level[group], []).append((low, high))
        return groups

    @cached_property
    def numbers(self) -> dict[object, list[ValueRun]]:
        """The runs of each value that is a number."""
        numbers: dict[object, list[ValueRun]] = {}
        for text, pointed in zip(self.texts, self.pointed, strict=True):
            if pointed is not None and (number := self._number(pointed)) is not None:
                numbers.setdefault(number, []).append((self.slots[text], self.slots[text] + 1))
        return numbers

    @cached_property
    def bands(self) -> dict[Ends, list[ValueRun]]:
        """The runs of the hierarchy's groups by their two ends, if ends are released as two columns."""
        bands: dict[Ends, list[ValueRun]] = {}
        if self.bounds and self.hierarchy is not None and self.hierarchy.bounds is not None:
            ends_of_labels = [
                [(-np.inf if low is None else float(low), np.inf if high is None else float(high))
                 for low, high in level]
                for level in self.hierarchy.bounds
            ]  # fmt: skip
            for ends, low, high, group in self._stretches(ends_of_labels):
                bands.setdefault(ends[group], []).append((low, high))
        return bands

    def _stretches(self, names: Sequence[Sequence[object]] | None = None) -> Iterable[tuple]:  # type: ignore[type-arg]
        """For each run of each level, yield the names of the level, first slot, end slot and group."""
        if self.hierarchy is None:
            return
        for level in range(self.hierarchy.height + 1):
            groups = self.hierarchy.groups(level)[self.order]
            ends = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
            level_names = (self.hierarchy.labels if names is None else names)[level]
            for low, high in pairwise(ends):
                if low < high:
                    yield level_names, low, high, int(groups[low])

    def _number(self, text: str) -> object | None:
        return self.builder.number(text) if self.builder else number_of(text)

    def cover(self, text: str) -> list[ValueRun] | None:
        """Return the runs of a label, or None if it cannot be parsed; the last " or " is tried first."""
        runs = self._single(text)
        if runs is not None:
            return runs
        parts = text.split(_OR)
        for cut in range(len(parts) - 1, 0, -1):
            first = self._single(_OR.join(parts[:cut]))
            others = None if first is None else self._alternative(_OR.join(parts[cut:]))
            if first is not None and others is not None:
                return first + others
        return None

    def _alternative(self, text: str) -> list[ValueRun] | None:
        """Parse the text after " or ". There, "missing" also covers the codes that mean unknown."""
        return self.off_scale if text == MISSING else self.cover(text)

    def _single(self, text: str) -> list[ValueRun] | None:
        if self.bounds and (ends := ends_of(text)):
            return self.bands.get(ends) or self._between(*ends)
        if text in self.groups:
            return self.groups[text]
        if (number := self._number(text)) is not None and number in self.numbers:
            return self.numbers[number]
        if text == MISSING:
            return self.off_scale
        if len(text) > 2 and text[0] == text[-1] == '"' and text[1:-1] in self.groups:
            return self.groups[text[1:-1]]
        if text[:1] == "{" and text[-1:] == "}":
            return self._set(text)
        return self._range(text) or self._spans(text)

    def _set(self, text: str) -> list[ValueRun] | None:
        members = [member for member in Reader(as_is=True).label(text).texts if member != text]
        runs = [run for member in members for run in self._single(member) or ()]
        return runs or None

    def _range(self, text: str) -> list[ValueRun] | None:
        """Parse a range such as [25-28] or [-3 to 5] whose ends are values of the column."""
        match = _CLOSED.fullmatch(text) if self.scale else None
        for separator in _SEPARATORS if match else ():
            parts = match[1].split(separator) if match else []
            for cut in range(1, len(parts)):
                ends = [self._position(separator.join(part)) for part in (parts[:cut], parts[cut:])]
                if ends[0] is not None and ends[1] is not None and ends[0] <= ends[1]:
                    return self._between(ends[0], ends[1])
        return None

    def _position(self, text: str) -> float | None:
        slot = self.slots.get(text)
        return None if slot is None or slot >= len(self.scale) else self.scale[slot]

    def _between(self, low: float, high: float) -> list[ValueRun] | None:
        first, last = bisect_left(self.scale, low), bisect_right(self.scale, high)
        return [(first, last)] if first < last else None

    def _spans(self, text: str) -> list[ValueRun] | None:
        """Parse a band or a unit of time."""
        scale = self.builder.scale if self.builder else "number"
        meaning = Reader(self.builder).label(text) if self.scale else None
        spans = [span for span in meaning.spans if span.scale == scale] if meaning else []
        return [run for span in spans for run in self._between(span.low, span.high) or ()] or None


def covers_of(column: ColumnValues, labels: Sequence[CellText], before: IntArray, after: IntArray) -> Covers:
    """Return what the labels of a column cover; labels that do not occur cover nothing."""
    shown = labels if column.builder else with_point(labels, column.unknown, column.texts)
    totals = np.append(0, np.cumsum(before[column.order]))
    runs: list[list[ValueRun]] = []
    unread = 0
    for original, text, records in zip(labels, shown, after.tolist(), strict=True):
        label_runs: list[ValueRun] | None = []
        if records:
            label_runs = _empty_cell(column) if text is None else column.cover(text)
            if original in (None, MISSING) and label_runs and _records(label_runs, totals) < records:
                label_runs = column.everything if original is None else column.off_scale
        if label_runs is None or (records and not _records(label_runs, totals)):
            label_runs = column.everything
            unread += 1
        runs.append(label_runs)
    return Covers.of_runs(column.order, runs, unread)


def _empty_cell(column: ColumnValues) -> list[ValueRun]:
    """Return the runs of an empty cell. If bounds are released, it may be a band without ends."""
    return column.everything if column.bounds or None not in column.slots else column.groups[None]


def _records(runs: Iterable[ValueRun], totals: IntArray) -> int:
    return sum(int(totals[high] - totals[low]) for low, high in merged(runs))
