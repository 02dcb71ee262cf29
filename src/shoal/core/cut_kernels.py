"""The compiled loops of searches over cuts: classes as runs of rows, split by a cut or merged without one.

A table holds rows that some set of cuts tells apart, class after class: a class is what the cuts taken so
far (the head) tell apart, its rows are what those that may still be taken (the tail) would. A row has a
code in each column: how many cuts of head and tail lie below it. Classes below k are not in the table.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.core.arrays import BoolArray, FloatArray, IntArray

CodeArray = NDArray[np.int32]
StateArray = NDArray[np.uint8]  # (cuts,): OUT, TAIL or HEAD
Table = tuple[CodeArray, IntArray, IntArray, IntArray]  # codes (columns, rows), sizes, labels, begins

OUT, TAIL, HEAD = 0, 1, 2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDING = 1 - 1e-12  # losses this close are a tie


@njit(cache=True, nogil=True)
def boundaries(state: StateArray, begins: IntArray) -> IntArray:
    """Return which cut lies below each code of each column, (columns, most cuts + 1)."""
    columns = begins.shape[0] - 1
    widest = 0
    for column in range(columns):
        widest = max(widest, begins[column + 1] - begins[column])
    found = np.full((columns, widest + 1), -1, np.int64)
    for column in range(columns):
        code = 0
        for cut in range(begins[column], begins[column + 1]):
            if state[cut] != OUT:
                code += 1
                found[column, code] = cut
    return found


@njit(cache=True, nogil=True)
def divide(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,  # (rows, labels): records of each label; (rows, 0) where nobody asks
    begins: IntArray,  # (classes + 1,)
    state: StateArray,
    column_begins: IntArray,  # (columns + 1,): each column's cuts
    cut: int,
    k: int,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int]:
    """Split every class at a cut and leave out what is below k; return how many records that is."""
    column = 0
    while column_begins[column + 1] <= cut:
        column += 1
    edge = 0
    for other in range(column_begins[column], cut + 1):
        edge += state[other] != OUT
    columns, rows = codes.shape
    order = np.empty(rows, np.int64)
    new_begins = np.empty(2 * begins.shape[0], np.int64)
    new_begins[0] = 0
    made = 0
    found = 0
    gone = 0
    own = codes[column]
    for group in range(begins.shape[0] - 1):
        for side in range(2):
            start = found
            size = 0
            for row in range(begins[group], begins[group + 1]):
                if (own[row] >= edge) == (side == 1):
                    order[found] = row
                    found += 1
                    size += sizes[row]
            if size < k:
                gone += size
                found = start
            else:
                made += 1
                new_begins[made] = found
    new_codes = np.empty((columns, found), np.int32)
    for c in range(columns):
        for row in range(found):
            new_codes[c, row] = codes[c, order[row]]
    new_labels = np.empty((found, labels.shape[1]), np.int64)
    for row in range(found):
        for label in range(labels.shape[1]):
            new_labels[row, label] = labels[order[row], label]
    return new_codes, sizes[order[:found]], new_labels, new_begins[: made + 1].copy(), gone


@njit(cache=True, nogil=True)
def merge(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    kept: BoolArray,  # (cuts,): what stays of head and tail
    column_begins: IntArray,
) -> tuple[CodeArray, IntArray, IntArray, IntArray]:
    """Add up the rows of a class that differ no more without some cuts."""
    columns, rows = codes.shape
    classes = begins.shape[0] - 1
    widest = 0
    for column in range(columns):
        widest = max(widest, column_begins[column + 1] - column_begins[column])
    maps = np.zeros((columns, widest + 1), np.int32)
    for column in range(columns):
        old = 0
        new = 0
        for cut in range(column_begins[column], column_begins[column + 1]):
            if state[cut] != OUT:
                old += 1
                new += kept[cut]
                maps[column, old] = new
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    slots = np.full(last + 1, -1, np.int64)
    moved = np.empty((columns, rows), np.int32)
    mixed = np.zeros(rows, np.uint64)
    for column in range(columns):
        own = maps[column]
        for row in range(rows):
            code = own[codes[column, row]]
            moved[column, row] = code
            mixed[row] = (mixed[row] ^ np.uint64(code + 1)) * _GOLDEN
            mixed[row] ^= mixed[row] >> np.uint64(29)
    first = np.empty(rows, np.int64)  # of each new row: the first old one
    new_sizes = np.empty(rows, np.int64)
    new_labels = np.empty((rows, labels.shape[1]), np.int64)
    new_begins = np.empty(classes + 1, np.int64)
    new_begins[0] = 0
    found = 0
    for group in range(classes):
        start = found
        for row in range(begins[group], begins[group + 1]):
            slot = np.int64(((mixed[row] + np.uint64(group)) * _GOLDEN) >> spread)
            while True:
                at = slots[slot]
                if at < 0:
                    slots[slot] = found
                    first[found] = row
                    new_sizes[found] = sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[found, label] = labels[row, label]
                    found += 1
                    break
                same = at >= start
                if same:
                    other = first[at]
                    for column in range(columns):
                        if moved[column, other] != moved[column, row]:
                            same = False
                            break
                if same:
                    new_sizes[at] += sizes[row]
                    for label in range(labels.shape[1]):
                        new_labels[at, label] += labels[row, label]
                    break
                slot = (slot + 1) & last
        new_begins[group + 1] = found
    new_codes = np.empty((columns, found), np.int32)
    for column in range(columns):
        for row in range(found):
            new_codes[column, row] = moved[column, first[row]]
    return new_codes, new_sizes[:found].copy(), new_labels[:found].copy(), new_begins


@njit(cache=True, nogil=True)
def _most(labels: IntArray) -> int:
    found = 0
    for label in range(labels.shape[0]):
        found = max(found, labels[label])
    return found


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _side(size: int, weight: float, k: int, records: int, spare: int, minority: bool) -> float:
    """Return the least cost of one side of a cut: suppressed below k, else what its rows cost at least."""
    if size == 0:
        return 0.0
    if size < k:
        if size > spare:
            return np.inf
        return float(size) if minority else float(records) * size
    return weight if minority else max(weight, least_squares(size, k, records, spare))


@njit(cache=True, nogil=True)
def _cells(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    start: int,
    stop: int,
    maps: IntArray,  # (columns, codes): how many cuts that count lie below
    radix: IntArray,  # (columns,): one more than how many count
    weights: FloatArray,  # (rows,): of a cell at its first row; 0 at others
    space: IntArray,  # (3, rows and more): keys, sizes, first rows
    cell_labels: IntArray,  # (rows, labels)
    k: int,
    minority: bool,
) -> float:
    """Weigh the cells into which the cuts that count divide a class; return the sum."""
    bits = 3
    while (1 << bits) < 2 * (stop - start):
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    keys, cell_sizes, firsts = space[0], space[1], space[2]
    keys[: last + 1] = -1
    for row in range(start, stop):
        key = np.int64(0)
        for column in range(codes.shape[0]):
            if radix[column] > 1:
                key = key * radix[column] + maps[column, codes[column, row]]
        slot = np.int64((np.uint64(key) * _GOLDEN) >> spread)
        while keys[slot] >= 0 and keys[slot] != key:
            slot = (slot + 1) & last
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
    for taken in np.flatnonzero(keys[: last + 1] >= 0):
        size = cell_sizes[taken]
        first = firsts[taken]
        if minority:
            weights[first] = size - _most(cell_labels[first])
        else:
            weights[first] = float(size) * max(k, size)
        total += weights[first]
    return total


@njit(cache=True, nogil=True)
def measure(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    column_begins: IntArray,
    k: int,
    records: int,
    limit: int,
    gone: int,  # records in classes below k, which are not in the table
    minority: bool,  # a record costs 1 when it is not of its class's majority; else its class's size
) -> tuple[float, float, FloatArray, FloatArray, IntArray, BoolArray, FloatArray]:
    """Bound what the head and any of the tail cost; and likewise with each cut of the tail, and without it.

    Returns the bound, the cost of the head alone, by how much the bound grows where a cut is taken, and
    where it is not, how many records it suppresses, which cuts are of use, and by how much a cut lowers
    the cost of the head.
    """
    cuts = state.shape[0]
    columns = codes.shape[0]
    spare = limit - gone
    below = boundaries(state, column_begins)
    taken = np.zeros(cuts)
    left = np.zeros(cuts)
    gains = np.zeros(cuts)
    lost = np.zeros(cuts, np.int64)
    useful = np.zeros(cuts, np.bool_)
    width = below.shape[1]
    in_size = np.zeros(width, np.int64)
    in_weight = np.zeros(width)
    of_labels = np.zeros(labels.shape[1], np.int64)
    here = np.empty(cuts, np.int64)  # the cuts inside a class, and what lies on the left
    lefts = np.empty(cuts, np.int64)
    counted = np.empty(cuts, np.bool_)
    costs = np.empty(cuts)
    maps = np.zeros((columns, width), np.int64)
    radix = np.ones(columns, np.int64)
    weights = np.zeros(sizes.shape[0])
    space = np.empty((3, 4 * sizes.shape[0] + 8), np.int64)
    cell_labels = np.empty((sizes.shape[0], labels.shape[1]), np.int64)
    bound = float(gone) if minority else float(records) * gone
    exact = bound
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        size = 0
        of_labels[:] = 0
        for row in range(start, stop):
            size += sizes[row]
            for label in range(labels.shape[1]):
                of_labels[label] += labels[row, label]
        whole = float(size - _most(of_labels)) if minority else float(size) * size
        exact += whole
        if stop - start == 1:
            bound += whole
            continue
        found = 0
        some = False  # whether a cut counts: one that has k records on both sides
        product = 1.0
        for column in range(columns):
            own = codes[column]
            low = own[start]
            high = low
            for row in range(start, stop):
                code = own[row]
                low = min(low, code)
                high = max(high, code)
                in_size[code] += sizes[row]
            left_size = 0
            radix[column] = 1
            maps[column, low] = 0
            for code in range(low, high):
                left_size += in_size[code]
                cut = below[column, code + 1]
                right_size = size - left_size
                small, large = min(left_size, right_size), max(left_size, right_size)
                if small < k:
                    lost[cut] += size if large < k else small
                # Lemma: else it never lowers the cost of this class, whatever other cuts are taken.
                counts = small >= k or (not minority and 2 * large + small > records and large >= k)
                if counts:
                    useful[cut] = True
                    some = True
                    radix[column] += 1
                maps[column, code + 1] = radix[column] - 1
                here[found] = cut
                lefts[found] = left_size
                counted[found] = counts
                found += 1
            for code in range(low, high + 1):
                in_size[code] = 0
            product *= radix[column]
        best = whole
        second = whole
        which = -1
        floor = whole
        if some:
            if product > 4e18:
                for column in range(columns):
                    radix[column] = 1
                floor = 0.0
                for row in range(start, stop):
                    if minority:
                        weights[row] = sizes[row] - _most(labels[row])
                    else:
                        weights[row] = float(sizes[row]) * max(k, sizes[row])
                    floor += weights[row]
            else:
                floor = _cells(
                    codes, sizes, labels, start, stop, maps, radix, weights, space, cell_labels, k, minority
                )
            at = 0
            for column in range(columns):
                first = at
                own = codes[column]
                low = own[start]
                high = low
                for row in range(start, stop):
                    code = own[row]
                    low = min(low, code)
                    high = max(high, code)
                at += high - low
                for place in range(first, at):
                    if counted[place]:
                        break
                else:
                    continue
                for row in range(start, stop):
                    in_weight[own[row]] += weights[row]
                left_weight = 0.0
                for code in range(low, high):
                    left_weight += in_weight[code]
                    place = first + code - low
                    if not counted[place]:
                        continue
                    left_size = lefts[place]
                    cost = _side(left_size, left_weight, k, records, spare, minority)
                    cost += _side(size - left_size, floor - left_weight, k, records, spare, minority)
                    costs[place] = cost
                    if cost < best:
                        second = best
                        best = cost
                        which = here[place]
                    elif cost < second:
                        second = cost
                for code in range(low, high + 1):
                    in_weight[code] = 0.0
        least = floor if minority else max(floor, least_squares(size, k, records, spare))
        own_bound = max(least, best)
        bound += own_bound
        if which >= 0:
            left[which] += max(least, second) - own_bound
        for place in range(found):
            cut = here[place]
            left_size = lefts[place]
            small, large = min(left_size, size - left_size), max(left_size, size - left_size)
            if small >= k:
                cost = costs[place]
                gains[cut] += 2.0 * small * large
            elif (size if large < k else small) > spare:
                cost = np.inf
            elif large < k:
                cost = float(size) * (1 if minority else records)
                gains[cut] -= cost - whole
            elif minority:
                cost = own_bound
                gains[cut] -= small
            else:  # the cells of the larger side weigh no less than all do without the smaller one
                joined = float(small) * (2 * large + small)
                cost = max(least_squares(large, k, records, spare), floor - joined)
                cost += float(small) * records
                gains[cut] -= float(small) * records - joined
                if counted[place]:
                    cost = max(cost, costs[place])
            if cost > own_bound:
                taken[cut] += cost - own_bound
    return bound, exact, taken, left, lost, useful, gains


@njit(cache=True, nogil=True)
def settle(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,  # is written to
    column_begins: IntArray,
    cut: int,  # the cut that is decided; -1: none
    take: bool,
    k: int,
    records: int,
    limit: int,
    gone: int,
    incumbent: float,
    minority: bool,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int, float, int, float, StateArray]:
    """Take a cut or leave it out, then all others of which that leaves no choice.

    Returns the table, what is gone, the bound (infinite where nothing beats the incumbent), the cut to
    decide next, and the best cost of a head on the way, with that head.
    """
    best = np.inf
    head = state.copy()
    kept = np.ones(state.shape[0], np.bool_)
    following = -1
    while True:
        if cut >= 0 and take:
            codes, sizes, labels, begins, more = divide(
                codes, sizes, labels, begins, state, column_begins, cut, k
            )
            gone += more
            state[cut] = HEAD
        elif cut >= 0:
            kept[cut] = False
            codes, sizes, labels, begins = merge(codes, sizes, labels, begins, state, kept, column_begins)
            state[cut] = OUT
            kept[cut] = True
        if gone > limit or begins.shape[0] == 1:
            return codes, sizes, labels, begins, gone, np.inf, -1, best, head
        bound, exact, taken, left, lost, useful, gains = measure(
            codes, sizes, labels, begins, state, column_begins, k, records, limit, gone, minority
        )
        if exact < best:
            best = exact
            head = state.copy()
        incumbent = min(incumbent, best)
        if bound >= incumbent * _ROUNDING:
            return codes, sizes, labels, begins, gone, np.inf, -1, best, head
        dropped = 0
        cut = -1
        following = -1
        score = -np.inf
        next_bound = exact
        for other in range(state.shape[0]):
            if state[other] != TAIL:
                continue
            if (
                not useful[other]
                or gone + lost[other] > limit
                or bound + taken[other] >= incumbent * _ROUNDING
            ):
                kept[other] = False
                dropped += 1
            elif bound + left[other] >= incumbent * _ROUNDING:
                cut = other
            else:
                if gains[other] > score:
                    score = gains[other]
                    following = other
                next_bound = min(next_bound, bound + taken[other])
        if dropped:
            codes, sizes, labels, begins = merge(codes, sizes, labels, begins, state, kept, column_begins)
            for other in range(state.shape[0]):
                if not kept[other]:
                    state[other] = OUT
                    kept[other] = True
            cut = -1
        elif cut >= 0:
            take = True
        else:
            bound = max(bound, next_bound)  # some cut is taken, or none
            return codes, sizes, labels, begins, gone, bound, following, best, head


@njit(cache=True, nogil=True)
def _cost(size: int, most: int, k: int, records: int, minority: bool) -> float:
    """Return what a class costs whose most frequent label has so many records."""
    if minority:
        return float(size) if size < k else float(size - most)
    return float(size) * (records if size < k else size)


@njit(cache=True, nogil=True)
def added(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,
    column_begins: IntArray,
    k: int,
    records: int,
    minority: bool,
) -> tuple[FloatArray, IntArray]:
    """Return by how much the cost, and the suppressed records, grow where one more cut is taken."""
    cuts = state.shape[0]
    below = boundaries(state, column_begins)
    costs = np.zeros(cuts)
    lost = np.zeros(cuts, np.int64)
    in_size = np.zeros(below.shape[1], np.int64)
    in_label = np.zeros((below.shape[1], labels.shape[1]), np.int64)
    whole = np.zeros(labels.shape[1], np.int64)
    left = np.zeros(labels.shape[1], np.int64)
    for group in range(begins.shape[0] - 1):
        start, stop = begins[group], begins[group + 1]
        size = 0
        whole[:] = 0
        for row in range(start, stop):
            size += sizes[row]
            for label in range(labels.shape[1]):
                whole[label] += labels[row, label]
        together = _cost(size, _most(whole), k, records, minority)
        for column in range(codes.shape[0] if stop - start > 1 else 0):
            own = codes[column]
            low = own[start]
            high = low
            for row in range(start, stop):
                code = own[row]
                low = min(low, code)
                high = max(high, code)
                in_size[code] += sizes[row]
                for label in range(labels.shape[1]):
                    in_label[code, label] += labels[row, label]
            left_size = 0
            left[:] = 0
            for code in range(low, high):
                left_size += in_size[code]
                most = 0
                other = 0
                for label in range(labels.shape[1]):
                    left[label] += in_label[code, label]
                    most = max(most, left[label])
                    other = max(other, whole[label] - left[label])
                cut = below[column, code + 1]
                right_size = size - left_size
                costs[cut] += _cost(left_size, most, k, records, minority)
                costs[cut] += _cost(right_size, other, k, records, minority) - together
                if left_size < k:
                    lost[cut] += left_size
                if right_size < k:
                    lost[cut] += right_size
            for code in range(low, high + 1):
                in_size[code] = 0
                in_label[code, :] = 0
    return costs, lost


@njit(cache=True, nogil=True)
def removed(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    state: StateArray,
    column_begins: IntArray,
    k: int,
    records: int,
    minority: bool,
) -> tuple[FloatArray, IntArray]:
    """Return by how much the cost, and the suppressed records, change where one cut is left out.

    Here every class is a row, those below k too, and every cut is of the head.
    """
    columns, rows = codes.shape
    below = boundaries(state, column_begins)
    costs = np.zeros(state.shape[0])
    found = np.zeros(state.shape[0], np.int64)
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    last = (1 << bits) - 1
    spread = np.uint64(64 - bits)
    factors = np.empty(columns, np.uint64)
    factor = _GOLDEN
    for column in range(columns):
        factors[column] = factor
        factor = factor * _GOLDEN + np.uint64(2)
    keys = np.zeros(rows, np.uint64)  # a sum over columns, so that a neighbour's is near at hand
    for column in range(columns):
        for row in range(rows):
            keys[row] += np.uint64(codes[column, row]) * factors[column]
    slots = np.full(last + 1, -1, np.int64)
    for row in range(rows):
        slot = np.int64((keys[row] * _GOLDEN) >> spread)
        while slots[slot] >= 0:
            slot = (slot + 1) & last
        slots[slot] = row
    own = np.zeros(rows)
    for row in range(rows):
        own[row] = _cost(sizes[row], _most(labels[row]), k, records, minority)
    for column in range(columns):
        for row in range(rows):
            code = codes[column, row]
            if code == 0:
                continue
            key = keys[row] - factors[column]
            slot = np.int64((key * _GOLDEN) >> spread)
            while slots[slot] >= 0:
                other = slots[slot]
                same = keys[other] == key
                if same:
                    for c in range(columns):
                        wanted = code - 1 if c == column else codes[c, row]
                        if codes[c, other] != wanted:
                            same = False
                            break
                if same:
                    size = sizes[row] + sizes[other]
                    most = 0
                    for label in range(labels.shape[1]):
                        most = max(most, labels[row, label] + labels[other, label])
                    cut = below[column, code]
                    costs[cut] += _cost(size, most, k, records, minority) - own[row] - own[other]
                    if size >= k:
                        if sizes[row] < k:
                            found[cut] -= sizes[row]
                        if sizes[other] < k:
                            found[cut] -= sizes[other]
                    break
                slot = (slot + 1) & last
    return costs, found
