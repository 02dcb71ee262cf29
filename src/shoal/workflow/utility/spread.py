"""Spread: distribute the records of each label over the values that it covers.

Labels of one column may overlap, because each class may have its own ranges or levels. A label's records
are spread over the values that it covers, in proportion to the records of these values in the input. If
labels do not overlap, all results are the same as without spreading. For slots and runs, see `covers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.workflow.utility.covers import Covers

MOST_GROUPS = 128  # maximum number of groups of neighbouring values that associations use


@dataclass(frozen=True)
class LabelSpread:
    """The labels of one column, with the values that they cover."""

    covers: Covers = field(repr=False)
    before: IntArray = field(repr=False)  # (values,): the number of records of each value
    after: IntArray = field(repr=False)  # (labels,): the number of records of each label

    @cached_property
    def slots(self) -> IntArray:
        """The number of the input's records in each slot (slots,)."""
        return self.before[self.covers.order]

    def sums(self, weights: FloatArray | IntArray) -> FloatArray:
        """Sum the weights of the slots that each label covers: (slots,) to (labels,)."""
        totals = np.append(0.0, np.cumsum(weights, dtype=np.float64))
        runs = totals[self.covers.high] - totals[self.covers.low]
        return np.bincount(self.covers.label, runs, self.covers.labels).astype(np.float64)

    def _steps(self, weights: FloatArray | IntArray) -> FloatArray:
        """Sum the weights of the runs that contain each slot: (runs,) to (slots,)."""
        number = len(self.slots) + 1
        steps = np.bincount(self.covers.low, weights, number) - np.bincount(self.covers.high, weights, number)
        result: FloatArray = np.cumsum(steps)[:-1]
        return result

    @cached_property
    def _coverage(self) -> IntArray:
        """The number of labels of the release that cover each slot."""
        occurring = (self.after > 0).astype(np.int64)
        return np.rint(self._steps(occurring[self.covers.label])).astype(np.int64)

    @cached_property
    def overlaps(self) -> bool:
        """Whether some value is covered by several labels of the release."""
        return bool((self._coverage[self.slots > 0] > 1).any())

    @cached_property
    def label_codes(self) -> IntArray | None:
        """The label that covers each value, or -1; None if labels overlap."""
        if self.overlaps:
            return None
        codes = np.full(len(self.slots), -1, np.int64)
        labels, low, high = self.covers.label, self.covers.low, self.covers.high
        slots = np.repeat(low - np.append(0, np.cumsum(high - low)[:-1]), high - low) + np.arange(
            int((high - low).sum())
        )
        codes[self.covers.order[slots]] = np.repeat(labels, high - low)
        return np.where((codes >= 0) & (self.after[codes] > 0), codes, -1)

    @cached_property
    def masses(self) -> FloatArray:
        """The number of the input's records that each label covers (labels,)."""
        return self.sums(self.slots)

    @cached_property
    def _rates(self) -> FloatArray:
        """The released records of a label, divided by the input's records that it covers (labels,)."""
        return np.divide(self.after, self.masses, out=np.zeros(len(self.after)), where=self.masses > 0)

    @cached_property
    def _density(self) -> FloatArray:
        """The expected number of released records for each record of the input (slots,)."""
        rates = self._steps(self._rates[self.covers.label])
        return np.where(self._coverage > 0, rates, 0.0)

    def kept_information(self) -> float:
        """Return the share of the column's entropy that the released cells retain.

        A label loses the entropy of the values that it covers. An empty cell and a suppressed record
        lose all of it.
        """
        shares = self.slots / max(1, self.slots.sum())
        total = float(-(shares * np.log2(np.where(shares > 0, shares, 1))).sum())
        if total <= 0:
            return 1.0
        lost = float((self.after * self._entropies).sum())
        records = max(int(self.before.sum()), int(self.after.sum()))
        lost += (records - int(self.after.sum())) * total
        return round(min(1.0, max(0.0, 1 - lost / (records * total))), 12)

    @cached_property
    def _entropies(self) -> FloatArray:
        """The entropy of the values that each label covers, in bits (labels,)."""
        bits = self.sums(self.slots * np.log2(np.maximum(self.slots, 1)))
        masses = np.maximum(self.masses, 1)
        return np.maximum(0.0, np.log2(masses) - bits / masses)

    def bits_within(self) -> float:
        """Return the mean entropy within a label, over the released records."""
        return float((self.after * self._entropies).sum()) / max(1, int(self.after.sum()))

    def shift(self) -> float:
        """Return the total variation distance between the values before and the spread values after."""
        before, after = max(1, int(self.before.sum())), max(1, int(self.after.sum()))
        difference = self.slots / before - self.slots * self._density / after
        return round(min(1.0, float(np.abs(difference).sum() / 2)), 12)

    def expected_before(self) -> FloatArray:
        """Return the expected number of the input's records for each label (labels,).

        If several labels cover a value, they share its records in proportion to the released records that
        each of them spreads to the value.
        """
        density = np.where(self._density > 0, self._density, 1.0)
        return self._rates * self.sums(np.where(self._coverage > 0, self.slots / density, 0.0))

    def mean_of(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return for each label the mean of its numbers, and the share of its records that have a number.

        The last array says which labels cover several numbers. In `numbers`, nan is a value without a number.
        """
        ordered = numbers[self.covers.order]
        known = np.isfinite(ordered)
        masses = self.sums(self.slots * known)
        safe = np.where(masses > 0, masses, 1.0)
        middle = float(ordered[known].mean()) if known.any() else 0.0  # small sums are more exact
        means = self.sums(self.slots * np.where(known, ordered - middle, 0.0)) / safe + middle
        shares = np.divide(masses, self.masses, out=np.zeros(len(masses)), where=self.masses > 0)
        has_several = self.sums((known & (self.slots > 0)).astype(np.int64)) > 1
        return np.where(masses > 0, means, np.nan), shares, has_several

    @cached_property
    def groups(self) -> IntArray:
        """The first slot of each group of neighbouring values, and the end slot of the last group.

        Groups begin and end where a label does. If there are too many groups, neighbours are merged.
        """
        edges = np.unique(np.concatenate([[0, len(self.slots)], self.covers.low, self.covers.high]))
        if len(edges) > MOST_GROUPS + 1:
            totals = np.append(0, np.cumsum(self.slots))[edges]
            targets = np.linspace(0, totals[-1], MOST_GROUPS + 1)
            edges = edges[np.unique(np.searchsorted(totals, targets).clip(0, len(edges) - 1))]
            edges[0], edges[-1] = 0, len(self.slots)
        return edges.astype(np.int64)

    @cached_property
    def weights(self) -> FloatArray:
        """The share of each label's records that is in each group of values (labels, groups)."""
        totals = np.append(0, np.cumsum(self.slots))
        ends = self.covers.low, self.covers.high
        low, high = (end[:, None].clip(self.groups[:-1], self.groups[1:]) for end in ends)
        parts = (totals[high] - totals[low]).astype(np.float64)
        weights = np.zeros((self.covers.labels, len(self.groups) - 1))
        starts = np.flatnonzero(np.diff(self.covers.label, prepend=-1))
        if len(starts):
            weights[self.covers.label[starts]] = np.add.reduceat(parts, starts)
        shares: FloatArray = weights / np.maximum(self.masses, 1)[:, None]
        return shares

    def group_positions(self, positions: FloatArray) -> FloatArray:
        """Return the mean position of each group's values, nan if they have none."""
        ordered = positions[self.covers.order]
        known = np.isfinite(ordered)
        number = len(self.groups) - 1
        group_of = np.repeat(np.arange(number), np.diff(self.groups))
        masses = np.bincount(group_of, self.slots * known, number)
        sums = np.bincount(group_of, self.slots * np.where(known, ordered, 0.0), number)
        means: FloatArray = np.divide(sums, masses, out=np.full(number, np.nan), where=masses > 0)
        return means

    def label_shares(self, labels: Sequence[int]) -> FloatArray:
        """Return the share of each value's records in each given label, and in all other labels together."""
        shares = np.zeros((len(self.slots), len(labels) + 1))
        density = np.where(self._density > 0, self._density, 1.0)
        index = {label: column for column, label in enumerate(labels)}
        runs = zip(
            self.covers.label.tolist(), self.covers.low.tolist(), self.covers.high.tolist(), strict=True
        )
        for label, low, high in runs:
            if label in index:
                shares[low:high, index[label]] = self._rates[label] / density[low:high]
        shares[:, -1] = np.maximum(0, 1 - shares.sum(axis=1))
        result = np.empty_like(shares)
        result[self.covers.order] = shares
        return result


def rounded(records: FloatArray, total: int) -> IntArray:
    """Round each number down or up so that their sum is `total`.

    >>> rounded(np.array([1.5, 0.25, 2.25]), 4).tolist()
    [2, 0, 2]
    """
    flat = records.reshape(-1)
    result = np.floor(flat + 1e-9).astype(np.int64)
    missing = max(0, min(total - int(result.sum()), len(flat)))
    rounded_up = np.argsort(-(flat - result), kind="stable")[:missing]
    result[rounded_up] += 1
    return result.reshape(records.shape)
