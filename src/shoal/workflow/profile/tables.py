"""Tables of a profile: the records of each node by class size, by l, and by both together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled
from shoal.core.counts.counts import Counts
from shoal.core.counts.diversity import Measure
from shoal.core.counts.kernels import sum_by_value
from shoal.core.counts.numpy_kernels import MEASURE_BITS
from shoal.core.lattice.walk import Spread


@compiled
def first_at_least(begins: IntArray, values: IntArray, least: int) -> IntArray:
    """Return the index of each node's first value that is at least `least`, or of the node's end."""
    positions = np.empty(begins.shape[0] - 1, np.int64)
    for node in range(positions.shape[0]):
        low = begins[node]
        high = min(begins[node + 1], low + least)  # the values are distinct integers: the i-th is at least i
        while low < high:
            middle = (low + high) // 2
            if values[middle] < least:
                low = middle + 1
            else:
                high = middle
        positions[node] = low
    return positions


class _ReadOnly:
    """Makes all arrays read-only, as in a memory-mapped file, so that functions compile for one type."""

    def __post_init__(self) -> None:
        for array in vars(self).values():
            array.flags.writeable = False


@dataclass(frozen=True)
class SizeTable(_ReadOnly):
    """The number of records that each k (or l) suppresses at each tabulated node."""

    begins: IntArray  # (nodes + 1,): where each node's values begin
    values: IntArray  # the sizes (or l) of classes, ascending within a node
    below: IntArray  # for each value, the records in classes of a smaller value
    classes: IntArray  # (nodes,): all classes, before suppression

    def suppressed(self, least: int, records: int) -> IntArray:
        """Return, for each node, the records in classes below `least`; all records if no class remains."""
        if not len(self.values):
            return np.empty(0, np.int64)
        index = first_at_least(self.begins, self.values, least)
        counts: IntArray = self.below.take(index, mode="clip").astype(np.int64)
        counts[index == self.begins[1:]] = records
        return counts

    def strongest(self, limit: int) -> tuple[IntArray, IntArray]:
        """Return each node's largest value that suppresses at most `limit` records, and their number."""
        # The first value of a node always qualifies: no record is below it.
        index = first_at_least(self.begins, self.below, limit + 1) - 1
        return self.values[index].astype(np.int64), self.below[index].astype(np.int64)

    def select(self, rows: IntArray) -> SizeTable:
        """Return the table of some of the nodes."""
        begins, indices = _entries_of(self.begins, rows)
        return SizeTable(begins, self.values[indices], self.below[indices], self.classes[rows])

    def followed_by(self, other: SizeTable) -> SizeTable:
        """Return the table of these nodes followed by those of another table."""
        return SizeTable(
            np.concatenate([self.begins, self.begins[-1] + other.begins[1:]]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.below, other.below]),
            np.concatenate([self.classes, other.classes]),
        )


def _entries_of(begins: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the entries of each selected node begin in the selection, and the entries' indices."""
    lengths = begins[rows + 1] - begins[rows]
    new_begins = np.concatenate([[0], np.cumsum(lengths)])
    return new_begins, np.arange(new_begins[-1]) + np.repeat(begins[rows] - new_begins[:-1], lengths)


def table_of(spread: Spread) -> SizeTable:
    """Return cumulative counts of a spread, in the smallest integer types that fit."""
    before = np.cumsum(spread.records) - spread.records
    starts = np.repeat(before[spread.begins[:-1]], np.diff(spread.begins)) if len(before) else before
    return SizeTable(spread.begins, small(spread.values), small(before - starts), small(spread.classes))


def small(numbers: IntArray) -> IntArray:
    """Return numbers in the smallest type that holds them."""
    most = int(numbers.max(initial=0))
    kind = next(kind for kind in (np.uint16, np.uint32, np.uint64) if most <= np.iinfo(kind).max)
    return numbers.astype(kind)


_TALLY_SIZE = 4096  # values below this are counted in an array, at the value's index


@compiled
def records_violating(
    begins: IntArray, sizes: IntArray, values: IntArray, records: IntArray, k: int, least: int
) -> IntArray:
    """Count, at each node, the records in classes that are smaller than k or whose l is below `least`."""
    counts = np.zeros(begins.shape[0] - 1, np.int64)
    for node in range(counts.shape[0]):
        for entry in range(begins[node], begins[node + 1]):
            if sizes[entry] < k or values[entry] < least:
                counts[node] += records[entry]
    return counts


@dataclass(frozen=True)
class JointTable(_ReadOnly):
    """The records of each node by the size and the l of their class, ascending."""

    begins: IntArray  # (nodes + 1,): where each node's entries begin
    sizes: IntArray  # (entries,)
    values: IntArray  # (entries,): l, in steps
    records: IntArray  # (entries,)

    def suppressed(self, k: int, least: int) -> IntArray:
        """Return the records in classes that violate either k or l, node by node."""
        counts: IntArray = records_violating(
            self.begins, self.sizes, self.values, self.records, k, min(least, 1 << MEASURE_BITS)
        )
        return counts

    def strongest_k(self, position: int, least: int, limit: int) -> tuple[int, int]:
        """Return a node's largest k for a given l and limit, or 0, and the number of records suppressed."""
        sizes, values, records = self._node(position)
        return _strongest(sizes, values >= least, records, limit)

    def strongest_l(self, position: int, k: int, limit: int) -> tuple[int, int]:
        """Return a node's largest l, in steps, for a given k and limit, or 0, and the records suppressed."""
        sizes, values, records = self._node(position)
        return _strongest(values, sizes >= k, records, limit)

    def _node(self, position: int) -> tuple[IntArray, IntArray, IntArray]:
        entries = slice(int(self.begins[position]), int(self.begins[position + 1]))
        return (
            self.sizes[entries].astype(np.int64),
            self.values[entries].astype(np.int64),
            self.records[entries].astype(np.int64),
        )

    def select(self, rows: IntArray) -> JointTable:
        """Return the table of some of the nodes."""
        begins, indices = _entries_of(self.begins, rows)
        return JointTable(begins, self.sizes[indices], self.values[indices], self.records[indices])

    def by_value(self, classes: IntArray) -> SizeTable:
        """Return the table of l alone."""
        begins = np.zeros(len(self.begins), np.int64)
        values, records = np.empty((2, len(self.values)), np.int64)
        tally = np.zeros(_TALLY_SIZE, np.int64)
        entries = (part.astype(np.int64) for part in (self.begins, self.values, self.records))
        used = sum_by_value(*entries, tally, begins, values, records)
        return table_of(Spread(begins, values[:used], records[:used], classes))


def joined_tables(parts: Iterable[JointTable]) -> JointTable:
    """Concatenate the tables of consecutive nodes."""
    parts = list(parts)
    if not parts:
        empty = np.empty(0, np.int64)
        return JointTable(np.zeros(1, np.int64), empty, empty, empty)
    shifts = np.cumsum([0, *(int(part.begins[-1]) for part in parts)])
    begins = [part.begins[:-1] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    columns = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("sizes", "values", "records")
    )
    return JointTable(np.concatenate([*begins, shifts[-1:]]), *columns)


def joint_table(spread: Spread) -> JointTable:
    """Split the packed values of a spread, and store them in the smallest integer types that fit."""
    sizes, values = spread.values >> MEASURE_BITS, spread.values & ((1 << MEASURE_BITS) - 1)
    return JointTable(spread.begins, small(sizes), small(values), small(spread.records))


def joint_spread(counts: Counts, measure: Measure) -> Spread:
    """Return how the records of one node spread over size and l."""
    in_memory = counts.in_memory()
    entries = in_memory.sensitive[measure.column]
    values = measure.diversity.measures(entries.rows, entries.counts, in_memory.sizes)
    keys, inverse = np.unique((in_memory.sizes << MEASURE_BITS) | values, return_inverse=True)
    records = np.bincount(inverse, in_memory.sizes).astype(np.int64)
    return Spread(np.array([0, len(keys)]), keys, records, np.array([len(in_memory)]))


def _strongest(keys: IntArray, allowed: np.ndarray, records: IntArray, limit: int) -> tuple[int, int]:
    violating = int(records[~allowed].sum())
    if violating > limit or not allowed.any():
        return 0, int(records.sum())
    order = np.argsort(keys[allowed], kind="stable")
    keys, records = keys[allowed][order], records[allowed][order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    before = violating + (np.cumsum(records) - records)[starts]
    last = int(np.searchsorted(before, limit, side="right")) - 1
    return int(keys[starts][last]), int(before[last])


def measures_of(sensitive: Sequence[str], others: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return the measure of distinct l-diversity for each sensitive column, followed by other measures."""
    return (*(Measure(name) for name in sensitive), *others)
