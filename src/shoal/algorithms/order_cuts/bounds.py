"""Lower bounds of the cost of each class of the head, for every choice of cuts of the tail (see `tree`).

A cut is *useful* in a class if both sides have k records, or if it may save more than the suppression of one
side costs. The least cost of a class is reached with useful cuts alone: see the lemma of useless cuts in
`tree`.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.order_cuts.tables import GOLDEN, CodeArray, count_codes, most_of
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled

# The cuts inside each class, column by column:
#   the index of the first entry of each class and column, (classes, columns + 1)
#   the first code of each class and column, (classes, columns)
#   per entry: the cut, the number of records on its left, and whether it is useful
CutEntries = tuple[IntArray, IntArray, IntArray, IntArray, BoolArray]


@compiled
def entries_of(
    codes: CodeArray,
    sizes: IntArray,
    begins: IntArray,
    totals: IntArray,  # (classes,): records
    below: IntArray,  # (columns, codes): the cut below each code
    cuts: int,
    k: int,
    records: int,
    minority: bool,
) -> CutEntries:
    """List the cuts inside each class."""
    columns = codes.shape[0]
    classes = begins.shape[0] - 1
    first_entries = np.zeros((classes, columns + 1), np.int64)
    lows = np.zeros((classes, columns), np.int64)
    cut = np.empty(8 * cuts, np.int64)
    left_records = np.empty(8 * cuts, np.int64)
    useful = np.empty(8 * cuts, np.bool_)
    records_of_code = np.zeros(below.shape[1], np.int64)
    entries = 0
    for group in range(classes):
        start, stop = begins[group], begins[group + 1]
        first_entries[group, 0] = entries
        if entries + cuts > cut.shape[0]:
            cut = np.concatenate((cut, np.empty_like(cut)))
            left_records = np.concatenate((left_records, np.empty_like(left_records)))
            useful = np.concatenate((useful, np.empty_like(useful)))
        for column in range(columns):
            low, high = count_codes(codes[column], sizes, start, stop, records_of_code)
            lows[group, column] = low
            left_size = 0
            for code in range(low, high):
                left_size += records_of_code[code]
                records_of_code[code] = 0
                smaller = min(left_size, totals[group] - left_size)
                larger = totals[group] - smaller
                cut[entries] = below[column, code + 1]
                left_records[entries] = left_size
                useful[entries] = smaller >= k or (
                    not minority and 2 * larger + smaller > records and larger >= k
                )
                entries += 1
            records_of_code[high] = 0
            first_entries[group, column + 1] = entries
    return first_entries, lows, cut[:entries], left_records[:entries], useful[:entries]


# A cell is a part of a class between useful cuts. In a hash table, (slots,): keys, sizes and first rows
ClassCells = tuple[IntArray, IntArray, IntArray]
# Per class: the floor (the cost of its cells), the bound, and the bound without its best entry.
# Per entry: a lower bound of the cost of its class if the cut is used.
# Per class: the best entry (-1: none). Then the cells.
ClassBounds = tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray, ClassCells]
MOST_CELLS = 4e18  # the maximum number of cells that 64-bit keys can number


@compiled
def least_squares(size: int, k: int, records: int, remaining_limit: int) -> float:
    """Return the least cost (DM) of `size` records: in classes of equal size, or with one suppressed.

    Classes have at least k records, so there are at most size // k of them. The sum of squares is smallest if
    their sizes are equal. A suppressed record costs the number of all records, and every other record costs
    at least k.
    """
    parts = size // k
    class_size = size // parts
    larger_classes = size - class_size * parts
    kept = (
        float(class_size) * class_size * (parts - larger_classes)
        + float(class_size + 1) * (class_size + 1) * larger_classes
    )
    return min(kept, float(records) + float(size - 1) * k) if remaining_limit > 0 else kept


@compiled
def _cost_of_side(
    size: int, weight: float, k: int, records: int, remaining_limit: int, minority: bool
) -> float:
    """Return the least cost of one side of a cut; a side with fewer than k records is suppressed."""
    if size == 0:
        return 0.0
    if size < k:
        if size > remaining_limit:
            return np.inf
        return float(size) if minority else float(records) * size
    return weight if minority else max(weight, least_squares(size, k, records, remaining_limit))


@compiled
def _slots(rows: int) -> int:
    """Return the number of hash slots for the cells of these rows: a power of 2, at most 4 per row."""
    slots = 8
    while slots < 2 * rows:
        slots *= 2
    return slots


@compiled
def _slot_of(keys: IntArray, key: int) -> int:
    """Return the slot of a key, or the free slot for it."""
    last = keys.shape[0] - 1
    slot: int = np.int64((np.uint64(key) * GOLDEN) >> np.uint64(32)) & last
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & last
    return slot


@compiled
def _number_codes(
    group: int,
    first_entries: IntArray,
    lows: IntArray,
    useful: BoolArray,
    maps: IntArray,  # (columns, codes), written: the number of useful cuts below
    radix: IntArray,  # (columns,), written: the number of useful cuts plus one
) -> float:
    """Assign numbers to the parts of a class between useful cuts; return the number of possible cells."""
    product = 1.0
    for column in range(radix.shape[0]):
        below = 0
        code = lows[group, column]
        maps[column, code] = 0
        for entry in range(first_entries[group, column], first_entries[group, column + 1]):
            code += 1
            below += useful[entry]
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
    weights: FloatArray,  # (rows,): the weight of each cell, at its first row; 0 at others
    keys: IntArray,  # (slots,)
    cell_sizes: IntArray,
    firsts: IntArray,
    cell_labels: IntArray,  # (rows, labels)
    k: int,
    minority: bool,
) -> float:
    """Return the cost of the cells into which useful cuts divide a class."""
    keys[:] = -1
    of_rows = np.zeros(stop - start, np.int64)
    for column in range(codes.shape[0]):
        if radix[column] > 1:
            parts, in_column = maps[column], codes[column, start:stop]
            for row in range(stop - start):
                of_rows[row] = of_rows[row] * radix[column] + parts[in_column[row]]
    for row in range(start, stop):
        key = of_rows[row - start]
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
    """Return the cost of the rows of a class that has too many cells to number."""
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
    undivided_costs: FloatArray,  # (classes,): the cost of each class, undivided
    entries: CutEntries,
    width: int,  # the most codes of a column
    k: int,
    records: int,
    remaining_limit: int,
    minority: bool,
) -> ClassBounds:
    """Bound the cost of each class."""
    first_entries, lows, _, left_records, useful = entries
    columns = codes.shape[0]
    classes = begins.shape[0] - 1
    floors = undivided_costs.copy()
    bounds = undivided_costs.copy()
    seconds = undivided_costs.copy()
    best_entry = np.full(classes, -1, np.int64)
    costs = np.zeros(left_records.shape[0])
    in_weight = np.zeros((4, width))  # four sums, because adding to the same element twice in a row is slow
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
        product = _number_codes(group, first_entries, lows, useful, maps, radix)
        floor, best, second = undivided_costs[group], undivided_costs[group], undivided_costs[group]
        if product > 1:
            if product > MOST_CELLS:
                floor = _weigh_rows(sizes, labels, start, stop, weights, k, minority)
            else:
                region = slice(4 * start, 4 * start + _slots(stop - start))
                floor = _weigh_cells(
                    codes, sizes, labels, start, stop, maps, radix, weights,
                    keys[region], cell_sizes[region], firsts[region], cell_labels, k, minority,
                )  # fmt: skip
            for column in range(columns):
                if radix[column] == 1:
                    continue
                in_column = codes[column]
                for row in range(start, stop - 3, 4):
                    in_weight[0, in_column[row]] += weights[row]
                    in_weight[1, in_column[row + 1]] += weights[row + 1]
                    in_weight[2, in_column[row + 2]] += weights[row + 2]
                    in_weight[3, in_column[row + 3]] += weights[row + 3]
                for row in range(stop - (stop - start) % 4, stop):
                    in_weight[0, in_column[row]] += weights[row]
                left_weight = 0.0
                code = lows[group, column]
                for entry in range(first_entries[group, column], first_entries[group, column + 1]):
                    left_weight += in_weight[:, code].sum()
                    in_weight[:, code] = 0.0
                    code += 1
                    if not useful[entry]:
                        continue
                    cost = _cost_of_side(
                        left_records[entry], left_weight, k, records, remaining_limit, minority
                    )
                    cost += _cost_of_side(
                        size - left_records[entry], floor - left_weight, k, records, remaining_limit, minority
                    )
                    costs[entry] = cost
                    if cost < best:
                        second = best
                        best = cost
                        best_entry[group] = entry
                    elif cost < second:
                        second = cost
                in_weight[:, code] = 0.0
        least = floor if minority else max(floor, least_squares(size, k, records, remaining_limit))
        floors[group] = floor
        bounds[group] = max(least, best)
        seconds[group] = max(least, second)
    return floors, bounds, seconds, costs, best_entry, (keys, cell_sizes, firsts)


@compiled
def joined_floors(
    codes: CodeArray,
    begins: IntArray,
    entries: CutEntries,
    cells: ClassCells,
    width: int,
    k: int,
) -> FloatArray:
    """Return, for each useful cut, how much the floor of its class (by DM) increases without the cut."""
    first_entries, lows, _, left_records, useful = entries
    all_keys, all_sizes, all_firsts = cells
    columns = codes.shape[0]
    increases = np.zeros(left_records.shape[0])
    maps = np.zeros((columns, width), np.int64)
    radix = np.ones(columns, np.int64)
    joins = np.zeros((columns, width))
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        if stop - start == 1:
            continue
        product = _number_codes(group, first_entries, lows, useful, maps, radix)
        if product == 1.0 or product > MOST_CELLS:
            continue
        region = slice(4 * start, 4 * start + _slots(stop - start))
        _join_cells(codes, maps, radix, all_keys[region], all_sizes[region], all_firsts[region], joins, k)
        for column in range(columns):
            code = lows[group, column]
            for entry in range(first_entries[group, column], first_entries[group, column + 1]):
                code += 1
                if useful[entry]:
                    increases[entry] = joins[column, maps[column, code]]
                    joins[column, maps[column, code]] = 0.0
    return increases


@compiled
def _join_cells(
    codes: CodeArray,
    maps: IntArray,
    radix: IntArray,
    keys: IntArray,
    sizes: IntArray,
    firsts: IntArray,
    joins: FloatArray,  # (columns, codes), written
    k: int,
) -> None:
    """Add the extra cost of cells that are merged if a cut is left out.

    Two cells with together at most k records cost the same when they are merged. So in each pair that costs
    more, one cell has more than k / 2 records. Pairs are searched from these cells.
    """
    for at in range(keys.shape[0]):
        size = sizes[at]
        if keys[at] < 0 or 2 * size <= k:
            continue
        row = firsts[at]
        stride = np.int64(1)
        for column in range(codes.shape[0] - 1, -1, -1):
            if radix[column] == 1:
                continue
            code = maps[column, codes[column, row]]
            for side in range(2):  # the cell below; also the cell above, unless it counts the pair itself
                if code + side == 0 or code + side == radix[column]:
                    continue
                slot = _slot_of(keys, keys[at] + (2 * side - 1) * stride)
                other = sizes[slot]
                if keys[slot] < 0 or size + other <= k or (side == 1 and 2 * other > k):
                    continue
                joined_cost = float(size + other) * (size + other)
                joins[column, code + side] += (
                    joined_cost - float(size) * max(k, size) - float(other) * max(k, other)
                )
            stride *= radix[column]
