"""What the kernels of a partition read: how columns may be cut, and how wide parts of them are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

PlaceArray = NDArray[np.int32]

FINAL, KEPT = 0, 1  # in how many parts a region goes that is not cut: none, or itself


class Tables(NamedTuple):
    """How columns may be cut, as the kernels read it; what differs in length lies end to end."""

    values: IntArray  # (columns,): how many places there are
    scales: FloatArray  # (columns,): the width of the whole column
    starts: IntArray  # (columns,): where its positions begin
    positions: FloatArray
    heights: IntArray  # (columns,): levels of its hierarchy, the last with one group; 0: cut by order
    roots: IntArray  # (columns,): where its groups begin, place by place, level by level
    groups: PlaceArray  # numbered in the order of places within a level
    covers: PlaceArray  # how many places that group has


@compiled
def longest(begins: IntArray, start: int, stop: int) -> int:
    """Return the rows of the longest region."""
    most = 0
    for region in range(start, stop):
        most = max(most, begins[region + 1] - begins[region])
    return most


@compiled
def level_of(tables: Tables, column: int, level: int) -> PlaceArray:
    """Return the groups of one level."""
    begin = tables.roots[column] + level * tables.values[column]
    return tables.groups[begin : begin + tables.values[column]]


@compiled
def common(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the lowest level at which places share a group; what lies between then shares it too."""
    level = 0
    at = tables.roots[column]
    while tables.groups[at + low] != tables.groups[at + high]:
        level += 1
        at += tables.values[column]
    return level


@compiled
def varies(tables: Tables, column: int, low: int, high: int) -> bool:
    """Tell whether a column could be cut, were there records enough."""
    if low == high or tables.heights[column] == 0:
        return bool(low < high)
    return bool(common(tables, column, low, high) > 0)


@compiled
def span(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the places that a part covers, minus one."""
    if tables.heights[column] == 0:
        return high - low
    at = tables.roots[column] + common(tables, column, low, high) * tables.values[column]
    return int(tables.covers[at + low]) - 1


@compiled
def width(tables: Tables, column: int, low: int, high: int) -> float:
    """Return the share of the whole column's width that a part has."""
    if tables.heights[column] > 0:
        return float(span(tables, column, low, high) / (tables.values[column] - 1))
    start = tables.starts[column]
    return float((tables.positions[start + high] - tables.positions[start + low]) / tables.scales[column])
