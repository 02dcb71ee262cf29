"""The compiled loops of cells: the sizes of the classes at a node, each added up in a cell of its own."""

from __future__ import annotations

from shoal.core.arrays import IntArray
from shoal.core.compilation import compiled


@compiled
def class_sizes(
    keys: IntArray,  # (rows,): one-word keys
    counts: IntArray,  # (rows,)
    at: IntArray,  # (columns,): the levels that the keys have
    node: IntArray,  # (columns,): the levels to reach
    fields: IntArray,  # (columns, 2): shift and mask of each column
    groups: IntArray,  # (columns, levels): how many groups a level has
    starts: IntArray,  # (columns, levels, levels): where the map from a level to another begins
    maps: IntArray,  # all maps, one after the other
    chunks: IntArray,  # (a multiple of 4, 4): columns looked up together: first, end, mask, where in lookup
    least_size: int,
    lookup: IntArray,  # working space for the chunks' tables
    cells: IntArray,  # a zero for every class that could be
    places: IntArray,  # (rows,): working space
    sizes: IntArray,  # (rows,): the classes' sizes are written here
) -> tuple[int, int]:
    """Add up the counts of each class in a cell of its own; return classes and records in small ones."""
    rows = keys.shape[0]
    _fill(at, node, fields, groups, starts, maps, chunks, lookup)
    for four in range(0, chunks.shape[0], 4):  # looked up in one pass
        shift0, mask0, lookup0 = _chunk(chunks[four], fields, lookup)
        shift1, mask1, lookup1 = _chunk(chunks[four + 1], fields, lookup)
        shift2, mask2, lookup2 = _chunk(chunks[four + 2], fields, lookup)
        shift3, mask3, lookup3 = _chunk(chunks[four + 3], fields, lookup)
        for row in range(rows):
            key = keys[row]
            place = lookup0[(key >> shift0) & mask0] + lookup1[(key >> shift1) & mask1]
            place += lookup2[(key >> shift2) & mask2] + lookup3[(key >> shift3) & mask3]
            places[row] = place if four == 0 else places[row] + place
    for row in range(rows):
        cells[places[row]] += counts[row]
    found = 0
    short = 0
    for row in range(rows):
        size = cells[places[row]]
        if size > 0:  # a cell is read once and left as it was
            cells[places[row]] = 0
            sizes[found] = size
            found += 1
            if size < least_size:
                short += size
    return found, short


@compiled
def _fill(
    at: IntArray,
    node: IntArray,
    fields: IntArray,
    groups: IntArray,
    starts: IntArray,
    maps: IntArray,
    chunks: IntArray,
    lookup: IntArray,
) -> None:
    """Write, for each chunk of columns and each of its codes, its part of a class's place."""
    stride = 1
    for chunk in range(chunks.shape[0]):
        table = lookup[chunks[chunk, 3] :]
        table[0] = 0
        for column in range(chunks[chunk, 0], chunks[chunk, 1]):
            start = starts[column, at[column], node[column]]
            local = fields[column, 0] - fields[chunks[chunk, 0], 0]
            for code in range(groups[column, at[column]] - 1, -1, -1):  # what it reads is written last
                part = maps[start + code] * stride
                for lower in range(1 << local):
                    table[(code << local) + lower] = table[lower] + part
            stride *= groups[column, node[column]]


@compiled
def _chunk(chunk: IntArray, fields: IntArray, lookup: IntArray) -> tuple[int, int, IntArray]:
    """Return a chunk's shift, mask and table."""
    return fields[chunk[0], 0], chunk[2], lookup[chunk[3] :]
