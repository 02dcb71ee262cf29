"""The compiled loops that find the best cut of one column of a region, once its places are tallied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.partition_tables import Tables, common, level_of, span
from shoal.core.partition_tally import Space

WIDTH, ENTROPY, LOSS = 0, 1, 2


class Cut(NamedTuple):
    """A cut of one column: what it is worth, and where it lies."""

    parts: int  # 0 when none is allowable
    score: float  # greater is better
    at: int  # the last place on the left; of a hierarchy the level
    need: int  # how many records of that place go left where they may go to both sides, else all


@compiled
def best_cut(
    tables: Tables,
    column: int,
    space: Space,
    distinct: int,
    total: int,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
) -> Cut:
    """Return the cut of one column whose values were tallied."""
    values = space.values[:distinct]
    records = space.records[:distinct]
    if tables.heights[column] > 0:
        cut = _cut_by_level(tables, column, values, records, total, least)
    elif relaxed:
        cut = _cut_in_two(values, records, total)
    else:
        cut = _cut_by_order(values, records, total, least, choose, space.refused[column])
    if cut.parts == 0 or choose == WIDTH:
        return Cut(cut.parts, 0.0, cut.at, cut.need)
    if choose == LOSS:
        return Cut(cut.parts, cut.score / (tables.values[column] - 1), cut.at, cut.need)
    score = 0.0  # of the entropy what differs between columns; whole numbers, whose order does not matter
    for count in records:
        score -= costs[count] if count < costs.shape[0] else cost(count)
    return Cut(cut.parts, score, cut.at, cut.need)


@compiled
def cost(count: int) -> float:
    """Return count log2 count in 2^-20 bits, so that columns of equal entropy tie."""
    return float(np.rint(count * np.log2(count) * 1048576.0))


@compiled
def _cut_by_order(
    values: IntArray, records: IntArray, total: int, least: int, choose: int, refused: int
) -> Cut:
    """Take the allowable cut nearest to the median; or, of those that gain most, the nearest.

    Where a cut was refused, the next best: those before it were refused too.
    """
    gain, distance, at = _worth(values, records, total, choose, refused) if refused >= 0 else (-1, 0, -1)
    last = values.shape[0] - 1
    found = Cut(0, 0.0, 0, 0)
    nearest = 0
    left = 0
    for here in range(last):
        left += records[here]
        if total - left < least:
            break
        if left < least:
            continue
        own = _gain(values, here, left, total) if choose == LOSS else 0
        away = abs(2 * left - total)
        tried = own > gain or (own == gain and (away < distance or (away == distance and here <= at)))
        if refused >= 0 and tried:
            continue
        if found.parts == 0 or own > found.score or (own == found.score and away < nearest):
            found = Cut(2, float(own), values[here], 0)
            nearest = away
    return found


@compiled
def _gain(values: IntArray, at: int, left: int, total: int) -> int:
    """Return what a cut behind a value spares, in records times places."""
    last = values.shape[0] - 1
    whole = total * (values[last] - values[0])
    return int(whole - left * (values[at] - values[0]) - (total - left) * (values[last] - values[at + 1]))


@compiled
def _worth(values: IntArray, records: IntArray, total: int, choose: int, place: int) -> tuple[int, int, int]:
    """Return what the cut behind a place spares, how far it is from the median, and where it is."""
    left = 0
    at = 0
    while values[at] <= place:
        left += records[at]
        at += 1
    gain = _gain(values, at - 1, left, total) if choose == LOSS else 0
    return gain, abs(2 * left - total), at - 1


@compiled
def _cut_in_two(values: IntArray, records: IntArray, total: int) -> Cut:
    """Send half of the records to the left, of the median value as many as are needed."""
    need = total // 2
    at = 0
    while records[at] < need:
        need -= records[at]
        at += 1
    first = values[0]
    last = values[-1]
    right = values[at] if need < records[at] else values[at + 1]
    half = total // 2
    gain = total * (last - first) - half * (values[at] - first) - (total - half) * (last - right)
    return Cut(2, float(gain), values[at], need)


@compiled
def _cut_by_level(
    tables: Tables, column: int, values: IntArray, records: IntArray, total: int, least: int
) -> Cut:
    """Take the groups one level below the one at which all share a group."""
    last = values.shape[0] - 1
    level = common(tables, column, values[0], values[last]) - 1
    groups = level_of(tables, column, level)
    gain = total * span(tables, column, values[0], values[last])
    parts = 0
    first = 0
    inside = 0
    for at in range(last + 1):
        inside += records[at]
        if at == last or groups[values[at]] != groups[values[at + 1]]:
            if inside < least:
                return Cut(0, 0.0, 0, 0)
            gain -= inside * span(tables, column, values[first], values[at])
            parts += 1
            first = at + 1
            inside = 0
    return Cut(parts, float(gain), level, 0)
