"""What each class of the head costs at least, whichever cuts of the tail divide it.

It is divided by cuts that count alone: see `shoal.core.cut_entries`.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.cut_entries import Entries
from shoal.core.cut_tables import GOLDEN, CodeArray, most_of

Cells = tuple[IntArray, IntArray, IntArray]  # (slots,): keys, sizes and first rows of hashed cells
# Of each class the floor, the bound, the bound without its best entry, of each entry what the class costs
# at least with it, of each class its best entry (-1: none), and the cells.
ClassBounds = tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray, Cells]
MOST_CELLS = 4e18  # more cannot be numbered


@compiled
def least_squares(size: int, k: int, records: int, spare: int) -> float:
    """Return the least DM of so many records, whatever their classes: even ones, or one record suppressed.

    Classes have k records or more, so there are size // k at most; squares are least when they are even.
    Where a record is suppressed it costs all records, and every other one k or more.
    """
    parts = size // k
    even = size // parts
    more = size - even * parts
    kept = float(even) * even * (parts - more) + float(even + 1) * (even + 1) * more
    return min(kept, float(records) + float(size - 1) * k) if spare > 0 else kept


@compiled
def _side(size: int, weight: float, k: int, records: int, spare: int, minority: bool) -> float:
    """Return the least cost of one side of a cut: suppressed below k, else what its rows cost at least."""
    if size == 0:
        return 0.0
    if size < k:
        if size > spare:
            return np.inf
        return float(size) if minority else float(records) * size
    return weight if minority else max(weight, least_squares(size, k, records, spare))


@compiled
def _slots(rows: int) -> int:
    """Return into how many slots the cells of so many rows go, a power of 2 that is 4 for each at most."""
    slots = 8
    while slots < 2 * rows:
        slots *= 2
    return slots


@compiled
def _slot_of(keys: IntArray, key: int) -> int:
    """Return where a key is, or where it would be."""
    last = keys.shape[0] - 1
    slot: int = np.int64((np.uint64(key) * GOLDEN) >> np.uint64(32)) & last
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & last
    return slot


@compiled
def _number_codes(
    group: int,
    at: IntArray,
    lows: IntArray,
    counts: BoolArray,
    maps: IntArray,  # (columns, codes): is written to: how many cuts that count lie below
    radix: IntArray,  # (columns,): is written to: one more than how many count
) -> float:
    """Give numbers to the parts that cuts that count make of a class; return how many cells that makes."""
    product = 1.0
    for column in range(radix.shape[0]):
        below = 0
        code = lows[group, column]
        maps[column, code] = 0
        for entry in range(at[group, column], at[group, column + 1]):
            code += 1
            below += counts[entry]
            maps[column, code] = below
        radix[column] = below + 1
        product *= radix[column]
    return product


@compiled
def _weigh_cells(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    start: int,
    stop: int,
    maps: IntArray,
    radix: IntArray,
    weights: FloatArray,  # (rows,): of a cell at its first row; 0 at others
    keys: IntArray,  # (slots,)
    cell_sizes: IntArray,
    firsts: IntArray,
    cell_labels: IntArray,  # (rows, labels)
    k: int,
    minority: bool,
) -> float:
    """Weigh the cells into which the cuts that count divide a class; return the sum."""
    keys[:] = -1
    for row in range(start, stop):
        key = np.int64(0)
        for column in range(codes.shape[0]):
            if radix[column] > 1:
                key = key * radix[column] + maps[column, codes[column, row]]
        slot = _slot_of(keys, key)
        if keys[slot] < 0:
            keys[slot] = key
            cell_sizes[slot] = 0
            firsts[slot] = row
            for label in range(labels.shape[1]):
                cell_labels[row, label] = 0
        cell_sizes[slot] += sizes[row]
        weights[row] = 0.0
        for label in range(labels.shape[1]):
            cell_labels[firsts[slot], label] += labels[row, label]
    total = 0.0
    for slot in range(keys.shape[0]):
        if keys[slot] >= 0:
            size = cell_sizes[slot]
            first = firsts[slot]
            if minority:
                weights[first] = size - most_of(cell_labels[first])
            else:
                weights[first] = float(size) * max(k, size)
            total += weights[first]
    return total


@compiled
def _weigh_rows(
    sizes: IntArray, labels: IntArray, start: int, stop: int, weights: FloatArray, k: int, minority: bool
) -> float:
    """Weigh the rows of a class, where its cells are too many to be numbered; return the sum."""
    total = 0.0
    for row in range(start, stop):
        if minority:
            weights[row] = sizes[row] - most_of(labels[row])
        else:
            weights[row] = float(sizes[row]) * max(k, sizes[row])
        total += weights[row]
    return total


@compiled
def class_bounds(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    totals: IntArray,  # (classes,)
    wholes: FloatArray,  # (classes,): what each costs undivided
    entries: Entries,
    width: int,  # codes of a column at most
    k: int,
    records: int,
    spare: int,
    minority: bool,
) -> ClassBounds:
    """Bound the cost of each class."""
    at, lows, _, lefts, counts = entries
    columns = codes.shape[0]
    classes = begins.shape[0] - 1
    floors = wholes.copy()
    bounds = wholes.copy()
    seconds = wholes.copy()
    best_entry = np.full(classes, -1, np.int64)
    costs = np.zeros(lefts.shape[0])
    in_weight = np.zeros(width)
    maps = np.zeros((columns, width), np.int64)
    radix = np.ones(columns, np.int64)
    weights = np.zeros(sizes.shape[0])
    keys = np.empty(4 * sizes.shape[0], np.int64)
    cell_sizes = np.empty(4 * sizes.shape[0], np.int64)
    firsts = np.empty(4 * sizes.shape[0], np.int64)
    cell_labels = np.empty((sizes.shape[0], labels.shape[1]), np.int64)
    for group in range(classes):
        start, stop = begins[group], begins[group + 1]
        if stop - start == 1:
            continue
        size = totals[group]
        product = _number_codes(group, at, lows, counts, maps, radix)
        floor, best, second = wholes[group], wholes[group], wholes[group]
        if product > 1:
            if product > MOST_CELLS:
                floor = _weigh_rows(sizes, labels, start, stop, weights, k, minority)
            else:
                own = slice(4 * start, 4 * start + _slots(stop - start))
                floor = _weigh_cells(
                    codes, sizes, labels, start, stop, maps, radix, weights,
                    keys[own], cell_sizes[own], firsts[own], cell_labels, k, minority,
                )  # fmt: skip
            for column in range(columns):
                if radix[column] == 1:
                    continue
                for row in range(start, stop):
                    in_weight[codes[column, row]] += weights[row]
                left_weight = 0.0
                code = lows[group, column]
                for entry in range(at[group, column], at[group, column + 1]):
                    left_weight += in_weight[code]
                    in_weight[code] = 0.0
                    code += 1
                    if not counts[entry]:
                        continue
                    cost = _side(lefts[entry], left_weight, k, records, spare, minority)
                    cost += _side(size - lefts[entry], floor - left_weight, k, records, spare, minority)
                    costs[entry] = cost
                    if cost < best:
                        second = best
                        best = cost
                        best_entry[group] = entry
                    elif cost < second:
                        second = cost
                in_weight[code] = 0.0
        least = floor if minority else max(floor, least_squares(size, k, records, spare))
        floors[group] = floor
        bounds[group] = max(least, best)
        seconds[group] = max(least, second)
    return floors, bounds, seconds, costs, best_entry, (keys, cell_sizes, firsts)


@compiled
def joined_floors(
    codes: CodeArray,
    begins: IntArray,
    entries: Entries,
    cells: Cells,
    width: int,
    k: int,
) -> FloatArray:
    """Return by how much the floor of a class (DM) is higher without each entry that counts."""
    at, lows, _, lefts, counts = entries
    all_keys, all_sizes, all_firsts = cells
    columns = codes.shape[0]
    more = np.zeros(lefts.shape[0])
    maps = np.zeros((columns, width), np.int64)
    radix = np.ones(columns, np.int64)
    joins = np.zeros((columns, width))
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        if stop - start == 1:
            continue
        product = _number_codes(group, at, lows, counts, maps, radix)
        if product == 1.0 or product > MOST_CELLS:
            continue
        own = slice(4 * start, 4 * start + _slots(stop - start))
        _join_cells(codes, maps, radix, all_keys[own], all_sizes[own], all_firsts[own], joins, k)
        for column in range(columns):
            code = lows[group, column]
            for entry in range(at[group, column], at[group, column + 1]):
                code += 1
                if counts[entry]:
                    more[entry] = joins[column, maps[column, code]]
                    joins[column, maps[column, code]] = 0.0
    return more


@compiled
def _join_cells(
    codes: CodeArray,
    maps: IntArray,
    radix: IntArray,
    keys: IntArray,
    sizes: IntArray,
    firsts: IntArray,
    joins: FloatArray,  # (columns, codes): is written to
    k: int,
) -> None:
    """Add up by how much cells cost more that are one where a cut is left out."""
    for at in range(keys.shape[0]):
        if keys[at] < 0:
            continue
        size = sizes[at]
        row = firsts[at]
        stride = np.int64(1)
        for column in range(codes.shape[0] - 1, -1, -1):
            if radix[column] == 1:
                continue
            code = maps[column, codes[column, row]]
            if code > 0:
                slot = _slot_of(keys, keys[at] - stride)
                if keys[slot] >= 0:
                    other = sizes[slot]
                    both = float(size + other) * max(k, size + other)
                    joins[column, code] += both - float(size) * max(k, size) - float(other) * max(k, other)
            stride *= radix[column]
