"""Roll-ups of many combinations on several cores, in partitions that fit in the processor's cache.

A hash table of millions of keys misses the cache at nearly every row. So rows are first moved to partitions
by a hash of their key, and the table of each partition fits in the cache. If a sample of the keys shows that
most rows merge, one table is small enough, and rows are not moved.

The method and the order of the result depend only on the keys, not on the number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled
from shoal.core.counts.counts import NO_INVERSE
from shoal.core.counts.kernels import group, rewrite, table_size

MANY = 400_000  # with fewer rows, a roll-up in one table on one core is as fast
_PARTS = 256
_SAMPLE = 4096
_DISTINCT_SHARE = 0.5  # minimum share of distinct keys in the sample for rows to be moved
_MOST_CORES = 8
_MIXER = np.uint64(0xD6E8FEB86659FD93)  # odd; hash tables have another factor, to use all their slots


def cores() -> int:
    """Return the number of cores that a roll-up uses."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _MOST_CORES)


@dataclass(frozen=True)
class RollUpBuffers:
    """Arrays that roll-ups reuse, because allocating memory takes as long as grouping."""

    moved: IntArray  # (rows,): keys before they are grouped
    scattered: IntArray  # (2, rows): keys and counts by partition
    slots: IntArray  # the hash tables

    @classmethod
    def of(cls, rows: int) -> RollUpBuffers:
        """Return working space for this number of rows."""
        return cls(np.empty(rows, np.int64), np.empty((2, rows), np.int64), np.empty(_slots(rows), np.int32))


def _slots(rows: int) -> int:
    return 1 << max(4, (3 * rows - 1).bit_length())


def roll_up_many(
    keys: IntArray,  # (rows,)
    counts: IntArray,
    kept: int,  # the bits of a key that are kept; all other bits are cleared first
    fields: IntArray,  # (fields, 3): shift, mask, where the field's map begins
    maps: IntArray,  # concatenated: the group of each code of each field
    cells: int,  # upper bound on the number of distinct keys afterwards
    out_keys: IntArray,
    out_counts: IntArray,
    space: RollUpBuffers,
) -> int:
    """Map fields of one-word keys to groups and sum the counts of equal keys; return how many keys remain."""
    rows = keys.shape[0]
    chunks = _chunks(rows)
    moved = space.moved[:rows]
    sizes = np.zeros((len(chunks), _PARTS), np.int64)
    partitioned = rows >= MANY and _mostly_distinct(keys, kept, fields, maps)
    counted = sizes if partitioned else sizes[:, :0]
    _on_cores(
        [
            _job(_move, keys[chunk], kept, fields, maps, moved[chunk], counted[number])
            for number, chunk in enumerate(chunks)
        ]
    )
    if partitioned:
        return _in_partitions(moved, counts, chunks, sizes, out_keys, out_counts, space)
    if len(chunks) == 1:
        slots = _table(space.slots, min(cells, rows))
        return int(group.machine(moved, counts, slots, out_keys, out_counts, NO_INVERSE))
    return _merged(moved, counts, chunks, cells, out_keys, out_counts, space)


def rolled_up(
    keys: IntArray, counts: IntArray, fields: IntArray, maps: IntArray
) -> tuple[IntArray, IntArray]:
    """Map fields (word, shift, mask, start) of one-word keys to groups; return distinct keys and counts."""
    rows = len(keys)
    out_keys, out_counts = np.empty((2, rows), np.int64)
    length = roll_up_many(
        keys, counts, -1, fields[:, 1:], maps, rows, out_keys, out_counts, RollUpBuffers.of(rows)
    )
    return out_keys[:length].copy(), out_counts[:length].copy()


def _mostly_distinct(keys: IntArray, kept: int, fields: IntArray, maps: IntArray) -> bool:
    sample = keys[:: -(-len(keys) // _SAMPLE)].copy()
    _move.machine(sample, kept, fields, maps, sample, NO_INVERSE)
    return len(np.unique(sample)) >= _DISTINCT_SHARE * len(sample)


def _in_partitions(
    moved: IntArray,
    counts: IntArray,
    chunks: Sequence[slice],
    sizes: IntArray,  # (chunks, parts)
    out_keys: IntArray,
    out_counts: IntArray,
    space: RollUpBuffers,
) -> int:
    """Group each partition; the order of the result does not depend on the chunks."""
    totals = sizes.sum(axis=0)
    begins = np.cumsum(totals) - totals
    positions = begins + np.cumsum(sizes, axis=0) - sizes
    keys, records = space.scattered[:, : len(moved)]
    _on_cores(
        [
            _job(_scatter, moved[chunk], counts[chunk], positions[number], keys, records)
            for number, chunk in enumerate(chunks)
        ]
    )
    first_parts = np.searchsorted(begins, [chunk.start for chunk in chunks[1:]])
    parts = [slice(*ends) for ends in pairwise([0, *first_parts.tolist(), _PARTS])]
    distinct = np.zeros(_PARTS, np.int64)
    table_space = len(space.slots) // len(parts)
    tables = [space.slots[number * table_space :][:table_space] for number in range(len(parts))]
    _on_cores(
        [
            _job(
                _group_parts, keys, records, begins[part], totals[part],
                _table(table, int(totals[part].max(initial=0))), distinct[part],
            )
            for part, table in zip(parts, tables, strict=True)
        ]
    )  # fmt: skip
    targets = np.cumsum(distinct) - distinct
    _on_cores(
        [
            _job(
                _copy_parts, keys, records, begins[part], distinct[part], targets[part], out_keys, out_counts
            )
            for part in parts
        ]
    )
    return int(distinct.sum())


def _merged(
    moved: IntArray,
    counts: IntArray,
    chunks: Sequence[slice],
    cells: int,
    out_keys: IntArray,
    out_counts: IntArray,
    space: RollUpBuffers,
) -> int:
    """Group each chunk, then group the results; keys stay in order of first appearance."""
    keys, records = space.scattered[:, : len(moved)]
    table_space = len(space.slots) // len(chunks)
    distinct = [0] * len(chunks)

    def group_chunk(number: int) -> None:
        chunk = chunks[number]
        slots = space.slots[number * table_space :][:table_space]
        table = _table(slots, min(cells, chunk.stop - chunk.start))
        distinct[number] = group.machine(
            moved[chunk], counts[chunk], table, keys[chunk], records[chunk], NO_INVERSE
        )

    _on_cores([_job(group_chunk, number) for number in range(len(chunks))])
    parts = [slice(chunk.start, chunk.start + used) for chunk, used in zip(chunks, distinct, strict=True)]
    keys = np.concatenate([keys[part] for part in parts])
    records = np.concatenate([records[part] for part in parts])
    table = _table(space.slots, min(cells, len(keys)))
    return int(group.machine(keys, records, table, out_keys, out_counts, NO_INVERSE))


def sums_of_many(sizes: IntArray, least_size: int) -> tuple[int, int, int]:
    """Return the sum of squares of all sizes, then the sum and the sum of squares of the small sizes."""
    chunks = _chunks(len(sizes))
    sums = np.zeros((len(chunks), 3), np.int64)
    _on_cores([_job(_add_sums, sizes[chunk], least_size, sums[n]) for n, chunk in enumerate(chunks)])
    squares, small, small_squares = sums.sum(axis=0).tolist()
    return squares, small, small_squares


def _chunks(rows: int) -> list[slice]:
    """Divide rows among the cores."""
    used = cores() if rows >= MANY else 1
    return [slice(rows * chunk // used, rows * (chunk + 1) // used) for chunk in range(used)]


def _table(slots: IntArray, rows: int) -> IntArray:
    """Return a hash table for this number of rows, in the working space if it is large enough."""
    size = _slots(rows)
    return slots[:size] if size <= len(slots) else np.empty(size, np.int32)


def _job(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: function(*arguments)


def _on_cores(jobs: Sequence[Callable[[], object]]) -> None:
    """Run jobs at the same time, the first in this thread; raise the first error."""
    errors: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(job,), daemon=True) for job in jobs[1:]]
    for thread in threads:
        thread.start()
    try:
        jobs[0]()
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


@compiled
def _move(
    keys: IntArray, kept: int, fields: IntArray, maps: IntArray, moved: IntArray, sizes: IntArray
) -> None:
    """Map fields of keys to groups, and count the keys of each partition unless `sizes` is empty."""
    for row in range(keys.shape[0]):
        moved[row] = keys[row] & kept
    for field in range(fields.shape[0]):
        rewrite(moved, fields[field, 0], fields[field, 1], maps[fields[field, 2] :])
    if sizes.shape[0] > 0:
        for row in range(moved.shape[0]):
            sizes[(np.uint64(moved[row]) * _MIXER) >> np.uint64(56)] += 1


@compiled
def _scatter(
    keys: IntArray, counts: IntArray, positions: IntArray, out_keys: IntArray, out_counts: IntArray
) -> None:
    """Move rows to their partitions, each to the next free position."""
    for row in range(keys.shape[0]):
        part = (np.uint64(keys[row]) * _MIXER) >> np.uint64(56)
        position = positions[part]
        positions[part] = position + 1
        out_keys[position] = keys[row]
        out_counts[position] = counts[row]


@compiled
def _group_parts(
    keys: IntArray, counts: IntArray, begins: IntArray, rows: IntArray, slots: IntArray, distinct: IntArray
) -> None:
    """Sum the counts of equal keys in place: no position is overwritten before it is read."""
    for part in range(begins.shape[0]):
        inside = slice(begins[part], begins[part] + rows[part])
        table = slots[: table_size(rows[part])]
        distinct[part] = group(keys[inside], counts[inside], table, keys[inside], counts[inside], begins[:0])


@compiled
def _copy_parts(
    keys: IntArray, counts: IntArray, begins: IntArray, distinct: IntArray, targets: IntArray,
    out_keys: IntArray, out_counts: IntArray,
) -> None:  # fmt: skip
    for part in range(begins.shape[0]):
        for row in range(distinct[part]):
            out_keys[targets[part] + row] = keys[begins[part] + row]
            out_counts[targets[part] + row] = counts[begins[part] + row]


@compiled
def _add_sums(sizes: IntArray, least_size: int, sums: IntArray) -> None:
    squares = 0
    small = 0
    small_squares = 0
    for row in range(sizes.shape[0]):
        size = sizes[row]
        squares += size * size
        if size < least_size:
            small += size
            small_squares += size * size
    sums[0], sums[1], sums[2] = squares, small, small_squares
