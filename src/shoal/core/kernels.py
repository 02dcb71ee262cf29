"""The compiled loops: arrays in, arrays out, no Python objects.

Loaded only when something is counted. Each kernel has a plain NumPy twin in the tests. Keys are first
rewritten field by field (simple loops that the compiler vectorizes); equal ones are then found with an
open-addressing table whose slots hold row numbers of the result.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads packed keys over the table


@compiled
def roll_up_word(
    keys: IntArray,  # (rows,)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word (0), shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Rewrite fields of one-word keys through their maps and add up the rows that became equal."""
    rows = keys.shape[0]
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten, fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    slots = np.empty(table_size(rows), np.int32)
    out_keys = np.empty(rows, np.int64)
    out_counts = np.empty(rows, np.int64)
    found = group(rewritten, counts, slots, out_keys, out_counts, inverse)
    return out_keys[:found].copy(), out_counts[:found].copy()


@compiled
def roll_up_words(
    keys: IntArray,  # (words, rows)
    counts: IntArray,  # (rows,)
    fields: IntArray,  # (fields, 4): word, shift, mask, where the field's map begins
    maps: IntArray,  # group of each code, one field's map after the other
    inverse: IntArray,  # (rows,) to be told each row's new row, or (0,) when nobody asks
) -> tuple[IntArray, IntArray]:
    """Do the same for keys of several words; a field lies in one of them."""
    words, rows = keys.shape
    rewritten = keys.copy()
    for field in range(fields.shape[0]):
        rewrite(rewritten[fields[field, 0]], fields[field, 1], fields[field, 2], maps[fields[field, 3] :])
    size = table_size(rows)
    slots = np.full(size, -1, np.int32)
    out_keys = np.empty((words, rows), np.int64)
    out_counts = np.empty(rows, np.int64)
    found = 0
    for row in range(rows):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = (mixed ^ np.uint64(rewritten[w, row])) * _GOLDEN
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed) & (size - 1)
        while True:
            at = slots[slot]
            if at < 0:
                at = found
                slots[slot] = found
                for w in range(words):
                    out_keys[w, found] = rewritten[w, row]
                out_counts[found] = counts[row]
                found += 1
                break
            same = True
            for w in range(words):
                same &= out_keys[w, at] == rewritten[w, row]
            if same:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & (size - 1)
        if inverse.shape[0] > 0:
            inverse[row] = at
    return out_keys[:, :found].copy(), out_counts[:found].copy()


@compiled
def rewrite(keys: IntArray, shift: int, mask: int, groups: IntArray) -> None:
    """Replace one field of every key by its group."""
    clear = ~(mask << shift)
    for row in range(keys.shape[0]):
        key = keys[row]
        keys[row] = (key & clear) | (groups[(key >> shift) & mask] << shift)


@compiled
def table_size(rows: int) -> int:
    """Return a power of two that leaves the table two thirds empty."""
    size = 16
    while size < 3 * rows:
        size *= 2
    return size


@compiled
def group(
    keys: IntArray,
    counts: IntArray,
    slots: IntArray,  # as many as table_size says
    out_keys: IntArray,
    out_counts: IntArray,
    inverse: IntArray,
) -> int:
    """Add up the counts of equal keys, in the order of first appearance; return how many differ."""
    bits = 4
    while (1 << bits) < slots.shape[0]:
        bits += 1
    spread = np.uint64(64 - bits)
    last = slots.shape[0] - 1
    want_inverse = inverse.shape[0] > 0
    slots[:] = -1
    found = 0
    for row in range(keys.shape[0]):
        key = keys[row]
        slot = np.int64((np.uint64(key) * _GOLDEN) >> spread)
        while True:
            at = slots[slot]
            if at < 0:
                at = found
                slots[slot] = found
                out_keys[found] = key
                out_counts[found] = counts[row]
                found += 1
                break
            if out_keys[at] == key:
                out_counts[at] += counts[row]
                break
            slot = (slot + 1) & last
        if want_inverse:
            inverse[row] = at
    return found


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
def first_at_least(begins: IntArray, values: IntArray, least: int) -> IntArray:
    """Find, in each stretch of values that grow from 0 or more, the first not below the least, or its end."""
    found = np.empty(begins.shape[0] - 1, np.int64)
    for stretch in range(found.shape[0]):
        low = begins[stretch]
        high = min(begins[stretch + 1], low + least)  # the value at a place is no less than the place
        while low < high:
            middle = (low + high) // 2
            if values[middle] < least:
                low = middle + 1
            else:
                high = middle
        found[stretch] = low
    return found


@compiled
def choose(
    levels: IntArray,  # (nodes, axes)
    rank: IntArray,  # (nodes,): what is least in the node that is chosen; then these three
    suppressed: IntArray,  # (nodes,)
    merged: IntArray,  # (nodes,): the fewer, the more classes
    numbers: IntArray,  # (nodes,): places in the lattice
    low: IntArray,  # (axes,): least levels
    high: IntArray,  # (axes,): greatest levels
    limit: int,  # what an acceptable node suppresses at most
) -> IntArray:
    """Choose nodes: acceptable within the levels; suppressing least there; acceptable anywhere.

    Then, for each axis, the one that is acceptable where this axis alone goes higher, as little as will do.
    """
    axes = levels.shape[1]
    chosen = np.full(3 + axes, -1, np.int64)  # none
    for node in range(levels.shape[0]):
        good = suppressed[node] <= limit
        above = 0
        last = 0
        for axis in range(axes):
            level = levels[node, axis]
            if level < low[axis]:
                above = axes + 1
                break
            if level > high[axis]:
                above += 1
                last = axis
                if not good:
                    break
        if above > axes or (above > 0 and not good):
            continue
        if above == 0:
            if good and _precedes(rank, suppressed, merged, numbers, node, chosen[0]):
                chosen[0] = node
            known = chosen[1]
            if (
                known < 0
                or suppressed[node] < suppressed[known]
                or (
                    suppressed[node] == suppressed[known]
                    and _precedes(rank, suppressed, merged, numbers, node, known)
                )
            ):
                chosen[1] = node
        if good and _precedes(rank, suppressed, merged, numbers, node, chosen[2]):
            chosen[2] = node
        if above == 1:
            known = chosen[3 + last]
            if (
                known < 0
                or levels[node, last] < levels[known, last]
                or (
                    levels[node, last] == levels[known, last]
                    and _precedes(rank, suppressed, merged, numbers, node, known)
                )
            ):
                chosen[3 + last] = node
    return chosen


@compiled
def _precedes(
    rank: IntArray, suppressed: IntArray, merged: IntArray, numbers: IntArray, node: int, other: int
) -> bool:
    """Tell whether a node is chosen over another, or over none."""
    if other < 0:
        return True
    if rank[node] != rank[other]:
        return bool(rank[node] < rank[other])
    if suppressed[node] != suppressed[other]:
        return bool(suppressed[node] < suppressed[other])
    if merged[node] != merged[other]:
        return bool(merged[node] < merged[other])
    return bool(numbers[node] < numbers[other])


@compiled
def pack(keys: IntArray, fields: IntArray, words: int) -> IntArray:
    """Move fields (word, shift, mask, new word, new shift) of keys (words, rows) to keys of their own."""
    rows = keys.shape[1]
    packed = np.zeros((words, rows), np.int64)
    for field in range(fields.shape[0]):
        word, shift, mask, new_word, new_shift = fields[field]
        for row in range(rows):
            packed[new_word, row] |= ((keys[word, row] >> shift) & mask) << new_shift
    return packed


@compiled
def add_up_cells(keys: IntArray, counts: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Add up the counts of equal keys below a size, each in a cell of its own; return them in order."""
    cells = np.zeros(size, np.int64)
    for row in range(keys.shape[0]):
        cells[keys[row]] += counts[row]
    found = 0
    for cell in range(size):
        found += cells[cell] > 0
    out_keys = np.empty(found, np.int64)
    out_counts = np.empty(found, np.int64)
    at = 0
    for cell in range(size):
        if cells[cell] > 0:
            out_keys[at] = cell
            out_counts[at] = cells[cell]
            at += 1
    return out_keys, out_counts


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
