"""The compiled loops of matching: which of some classes covers a row."""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled


@compiled
def first_cover(
    places: IntArray,  # (columns, rows)
    groups: IntArray,  # (columns, classes)
    column: int,  # by whose places classes are looked up
    starts: IntArray,
    at: IntArray,
    ends: IntArray,
    scaled: IntArray,
    held: BoolArray,
) -> IntArray:
    """Return, for each row, the first class whose groups cover all its places, -1 where none does."""
    columns, rows = places.shape
    found = np.full(rows, -1, np.int64)
    for row in range(rows):
        place = places[column, row]
        for n in range(starts[place], starts[place + 1]):
            chosen = at[n]
            covered = True
            for other in range(columns):
                if not covers(other, places[other, row], groups[other, chosen], ends, scaled, held):
                    covered = False
                    break
            if covered:
                found[row] = chosen
                break
    return found


@compiled
def classes_at(
    column: int, places: int, groups: IntArray, ends: IntArray, scaled: IntArray, held: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return, place by place of a column, the classes (columns, classes) that cover it: starts, classes."""
    starts = np.zeros(places + 1, np.int64)
    for chosen in range(groups.shape[1]):
        for place in range(places):
            if covers(column, place, groups[column, chosen], ends, scaled, held):
                starts[place + 1] += 1
    starts = np.cumsum(starts)
    at = np.empty(starts[-1], np.int64)
    filled = starts.copy()
    for chosen in range(groups.shape[1]):
        for place in range(places):
            if covers(column, place, groups[column, chosen], ends, scaled, held):
                at[filled[place]] = chosen
                filled[place] += 1
    return starts, at


@compiled
def covers(
    column: int,
    place: int,
    group: int,
    ends: IntArray,  # (4, groups): first place, last place, whether also what is behind the scale, set or -1
    scaled: IntArray,  # (columns,): how many places are on the scale
    held: BoolArray,  # (sets, places)
) -> bool:
    """Tell whether a group of a column covers a place."""
    if ends[3, group] >= 0:
        return bool(held[ends[3, group], place])
    if ends[0, group] <= place <= ends[1, group]:
        return True
    return bool(ends[2, group] != 0 and place >= scaled[column])
