"""Regrouping: form a class and its two nearest classes anew from their combinations, if that costs less.

The cost of a class is its number of records times the weighted shares of values that its cells cover. A cell
has one or more labels of one level. Agglomeration begins with single combinations. As long as some clusters
lack records or sensitive values, one of these is joined to its nearest cluster: the one with the least added
cost, divided by the square of its number of records.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.recoding.local.split import enough
from shoal.core.recoding.local.tables import ClassLabels, Needs, common_label

MOST = 60  # maximum number of combinations that are regrouped together
_NEAR = 32  # the nearest classes are searched among this number of classes before and after a class
_LESS = 1 - 1e-12  # above this share of the previous cost, the difference may be a rounding error


@compiled
def joined_weights(
    ones: IntArray,  # (clusters, axes, labels)
    one: int,
    twos: IntArray,
    others: IntArray,  # the clusters of `twos` to join with
    number: int,  # the number of others
    labels: ClassLabels,
    out: IntArray,  # (axes, 2 * labels): filled in for the last; -1 follows the last label
    weights: FloatArray,  # (others,): filled in
) -> None:
    """Compute the weight of a record in the union of a cluster with each of some others."""
    if ones.shape[2] > 1:
        for n in range(number):
            two, total = others[n], 0.0
            for axis in range(ones.shape[1]):
                x, y = ones[one, axis, 0], twos[two, axis, 0]
                single = ones[one, axis, 1] < 0 and twos[two, axis, 1] < 0
                if single and labels.level[x] == labels.level[y]:  # the usual case
                    total += labels.weight[x] - labels.constant[axis]
                    if x != y:
                        total += labels.weight[y]
                else:
                    total += _join(ones, one, twos, two, axis, labels, out)
            weights[n] = total
        return
    for n in range(number):
        two, total = others[n], 0.0
        for axis in range(ones.shape[1]):
            x, y = ones[one, axis, 0], twos[two, axis, 0]
            size = labels.pairs[axis, 1]
            if size:
                total += labels.together[labels.pairs[axis, 0] + x * size + y]
            else:
                label = common_label(x, y, labels.level, labels.parent)
                total += np.inf if label < 0 else labels.weight[label] - labels.constant[axis]
        weights[n] = total


@compiled
def merge(ones: IntArray, one: int, twos: IntArray, two: int, labels: ClassLabels, out: IntArray) -> float:
    """Extend the cells of a cluster so that they also cover another cluster; return their weight."""
    total = 0.0
    for axis in range(ones.shape[1]):
        if ones.shape[2] > 1:
            total += _join(ones, one, twos, two, axis, labels, out)
            for n in range(ones.shape[2]):
                ones[one, axis, n] = out[axis, n]
        else:
            label = common_label(ones[one, axis, 0], twos[two, axis, 0], labels.level, labels.parent)
            ones[one, axis, 0] = label
            total += labels.weight[label] - labels.constant[axis]
    return total


@compiled
def _join(
    ones: IntArray, one: int, twos: IntArray, two: int, axis: int, labels: ClassLabels, out: IntArray
) -> float:
    """Write the lowest labels of one level that cover two cells; return their weight, or infinity."""
    level, parent = labels.level, labels.parent
    number, most = np.int64(0), ones.shape[2]  # with a literal 0, callees would be compiled twice
    common = max(level[ones[one, axis, 0]], level[twos[two, axis, 0]])
    for n in range(2 * most):
        label = ones[one, axis, n] if n < most else twos[two, axis, n - most]
        if label >= 0:
            while level[label] < common:
                label = parent[label]
            number = _insert(out, axis, number, label)
    while number > most:
        lifted = np.int64(0)
        for n in range(number):
            above = parent[out[axis, n]]
            if above < 0:
                return np.inf
            lifted = _insert(out, axis, lifted, above)
        number = lifted
    total = -float(labels.constant[axis])
    for n in range(number):
        total += labels.weight[out[axis, n]]
    for n in range(number, most):
        out[axis, n] = -1
    return total


@compiled
def _insert(out: IntArray, axis: int, number: int, label: int) -> int:
    """Insert a label into sorted labels unless it is present; return the number of labels."""
    position = number
    while position > 0 and out[axis, position - 1] >= label:
        if out[axis, position - 1] == label:
            return number
        position -= 1
    for n in range(number, position, -1):
        out[axis, n] = out[axis, n - 1]
    out[axis, position] = label
    return number + 1


@compiled
def agglomerate(
    rows: IntArray,
    lowest: IntArray,  # (combinations, axes)
    sizes: IntArray,
    labels: ClassLabels,
    needs: Needs,
    apart: FloatArray,  # (rows, rows): the cost that joining two rows adds
    cells: IntArray,  # (rows, axes, labels): filled in for the clusters
    cluster: IntArray,  # (rows,): filled in
    out: IntArray,
) -> float:
    """Cluster some combinations until every cluster has what it needs; return the cost, or infinity."""
    number = len(rows)
    records, weights = np.empty(number, np.int64), np.empty(number)
    bits = np.empty((number, needs.bits.shape[1]), np.int64)
    lacking, there = np.empty(number, np.bool_), np.arange(number)
    near, joined = np.full(number, -1), np.empty(number)
    adds = apart[:number, :number].copy()
    for n in range(number):
        weights[n] = start_cell(rows[n], lowest, labels, cells, n)
        records[n], cluster[n] = sizes[rows[n]], n
        bits[n] = needs.bits[rows[n]]
        lacking[n] = not enough(records[n], bits[n], needs)
    while True:
        first = _cheapest(there, number, adds, records, lacking, near)
        if first < 0:
            break
        first, second = min(first, near[first]), max(first, near[first])
        weights[first] = merge(cells, first, cells, second, labels, out)
        records[first] += records[second]
        bits[first] |= bits[second]
        lacking[first], lacking[second] = not enough(records[first], bits[first], needs), False
        number = _forget(there, number, near, first, second)
        joined_weights(cells, first, cells, there, number, labels, out, joined)
        for n in range(number):
            other = there[n]
            both = records[first] + records[other]
            add = both * joined[n] - records[first] * weights[first] - records[other] * weights[other]
            adds[first, other] = adds[other, first] = add
            if near[other] >= 0 and add < adds[other, near[other]]:
                near[other] = first
        for n in range(len(rows)):
            if cluster[n] == second:
                cluster[n] = first
    cost = 0.0
    for n in range(number):
        cost += np.inf if lacking[there[n]] else records[there[n]] * weights[there[n]]
    return cost


@compiled
def _forget(there: IntArray, number: int, near: IntArray, first: int, second: int) -> int:
    """Remove the second cluster; reset each nearest cluster that was the first or the second."""
    kept = 0
    near[first] = -1
    for n in range(number):
        other = there[n]
        if other != second:
            there[kept] = other
            kept += 1
        if near[other] == first or near[other] == second:
            near[other] = -1
    return kept


@compiled
def _cheapest(
    there: IntArray,
    number: int,
    adds: FloatArray,
    records: IntArray,
    lacking: BoolArray,
    near: IntArray,  # the nearest of each cluster, or -1 if it must be searched; changed in place
) -> int:
    """Return the lacking cluster with the least relative cost of joining its nearest cluster, or -1."""
    best, chosen = np.inf, -1
    for n in range(number):
        one = there[n]
        if not lacking[one]:
            continue
        if near[one] < 0:
            least = np.inf
            for m in range(number):
                if m != n and adds[one, there[m]] < least:
                    least, near[one] = adds[one, there[m]], there[m]
        if near[one] >= 0:
            cost = adds[one, near[one]] / (records[one] * records[one])
            if cost < best:
                best, chosen = cost, one
    return chosen


@compiled
def weight_of(cells: IntArray, labels: ClassLabels) -> float:
    """Return the weight of a record with these cells."""
    weight = 0.0
    for axis in range(len(cells)):
        weight -= labels.constant[axis]
        for n in range(cells.shape[1]):
            if cells[axis, n] >= 0:
                weight += labels.weight[cells[axis, n]]
    return weight


@compiled
def start_cell(row: int, lowest: IntArray, labels: ClassLabels, cells: IntArray, cluster: int) -> float:
    """Give a cluster the cells of one combination; return their weight."""
    weight = 0.0
    for axis in range(lowest.shape[1]):
        label = lowest[row, axis]
        cells[cluster, axis, 0] = label
        for n in range(1, cells.shape[2]):
            cells[cluster, axis, n] = -1
        weight += labels.weight[label] - labels.constant[axis]
    return weight


@compiled
def distances(
    rows: IntArray,
    lowest: IntArray,
    sizes: IntArray,
    labels: ClassLabels,
    cells: IntArray,
    apart: FloatArray,  # filled in
    out: IntArray,
) -> None:
    """Compute the cost that joining two rows adds, for each pair."""
    weights, joined, others = np.empty(len(rows)), np.empty(len(rows)), np.arange(len(rows))
    for n in range(len(rows)):
        weights[n] = start_cell(rows[n], lowest, labels, cells, n)
        joined_weights(cells, n, cells, others, n, labels, out, joined)
        one = sizes[rows[n]]
        for m in range(n):
            two = sizes[rows[m]]
            apart[n, m] = (one + two) * joined[m] - one * weights[n] - two * weights[m]
            apart[m, n] = apart[n, m]


@compiled
def describe(
    of: IntArray,
    lowest: IntArray,
    sizes: IntArray,
    labels: ClassLabels,
    heads: IntArray,  # (classes,): all -1; the first combination of each, filled in
    following: IntArray,  # (combinations,): the next of the same class, or -1, filled in
    cells: IntArray,  # (classes, axes, labels): filled in
    records: IntArray,  # (classes,): all 0; filled in
    weights: FloatArray,  # (classes,): filled in
) -> None:
    """Describe classes by their combinations; those of class -1 are left out."""
    out = np.empty((lowest.shape[1], 2 * cells.shape[2]), np.int64)
    first = np.int64(0)
    single = np.empty((1, cells.shape[1], cells.shape[2]), np.int64)
    for row in range(len(of) - 1, -1, -1):
        chosen = of[row]
        if chosen < 0:
            continue
        weight = start_cell(row, lowest, labels, single, first)
        if heads[chosen] < 0:
            cells[chosen], weights[chosen] = single[0], weight
        else:
            weights[chosen] = merge(cells, chosen, single, first, labels, out)
        following[row] = heads[chosen]
        heads[chosen] = row
        records[chosen] += sizes[row]


@compiled
def regroup(
    begin: int,
    end: int,
    once: bool,  # a class is regrouped at most once, because models are checked afterwards
    places: IntArray,  # (places,): the class at each position of the order, or -1; changed in place
    of: IntArray,  # (combinations,): the class of each; changed in place
    moved: IntArray,  # (combinations,): the position whose class was regrouped; changed in place
    lowest: IntArray,
    sizes: IntArray,
    labels: ClassLabels,
    needs: Needs,
    heads: IntArray,
    following: IntArray,
    cells: IntArray,
    records: IntArray,
    weights: FloatArray,
    many: IntArray,  # (classes,): the number of combinations of each class
) -> None:
    """Regroup the classes at some positions with their two nearest."""
    axes, most = cells.shape[1], cells.shape[2]
    out = np.empty((axes, 2 * most), np.int64)
    apart = np.empty((MOST, MOST))
    work = np.empty((MOST, axes, most), np.int64)
    cluster = np.empty(MOST, np.int64)
    rows = np.empty(MOST, np.int64)
    chosen, slots = np.empty(3, np.int64), np.empty(3, np.int64)
    fresh = np.empty(MOST, np.int64)
    free = np.int64(0)
    for position in range(begin, end):
        if places[position] < 0:
            continue
        chosen[0], slots[0] = places[position], position
        near = _nearest(position, places, cells, records, weights, many, labels, out, chosen, slots)
        if near == 0:
            continue
        number, before = 0, 0.0
        for n in range(near + 1):
            before += records[chosen[n]] * weights[chosen[n]]
            row = heads[chosen[n]]
            while row >= 0:
                rows[number] = row
                number += 1
                row = following[row]
        rows[:number].sort()
        distances(rows[:number], lowest, sizes, labels, work, apart, out)
        cost = agglomerate(rows[:number], lowest, sizes, labels, needs, apart, work, cluster, out)
        if cost >= before * _LESS:
            continue
        for n in range(near + 1):
            heads[chosen[n]], records[chosen[n]], many[chosen[n]] = 0, 0, 0
            places[slots[n]] = -1
        free = _name(cluster[:number], chosen[: near + 1], heads, free, fresh)
        for n in range(number - 1, -1, -1):
            row, name = rows[n], fresh[cluster[n]]
            if many[name] == 0:
                heads[name] = -1
                cells[name] = work[cluster[n]]
                weights[name] = weight_of(work[cluster[n]], labels)
            of[row], moved[row] = name, position
            following[row], heads[name] = heads[name], row
            records[name] += sizes[row]
            many[name] += 1
        for n in range(near + 1):
            if many[chosen[n]] == 0:
                heads[chosen[n]] = -1
            elif not once:
                places[slots[n]] = chosen[n]


@compiled
def _name(cluster: IntArray, freed: IntArray, heads: IntArray, free: int, fresh: IntArray) -> int:
    """Give clusters the numbers of free classes; return the number at which the next search starts."""
    formed = 0
    for n in range(len(cluster)):
        if cluster[n] == n:  # the first of its cluster
            if formed < len(freed):
                fresh[n] = freed[formed]
            else:
                while heads[free] >= 0:
                    free = (free + 1) % len(heads)
                fresh[n], heads[free] = free, 0
            formed += 1
    return free


@compiled
def _nearest(
    position: int,
    places: IntArray,
    cells: IntArray,
    records: IntArray,
    weights: FloatArray,
    many: IntArray,
    labels: ClassLabels,
    out: IntArray,
    chosen: IntArray,  # the first is given, the others are filled in
    slots: IntArray,
) -> int:
    """Find up to two classes whose union with a class adds the least cost; return the number found."""
    one, number = places[position], np.int64(0)
    others, at = np.empty(2 * _NEAR, np.int64), np.empty(2 * _NEAR, np.int64)
    for other in range(max(0, position - _NEAR), min(len(places), position + _NEAR + 1)):
        if other != position and places[other] >= 0 and many[one] + many[places[other]] <= MOST:
            others[number], at[number] = places[other], other
            number += 1
    joined = np.empty(2 * _NEAR)
    joined_weights(cells, one, cells, others, number, labels, out, joined)
    least, near = np.full(2, np.inf), np.full(2, -1)
    for n in range(number):
        two = others[n]
        both = records[one] + records[two]
        add = both * joined[n] - records[one] * weights[one] - records[two] * weights[two]
        if add < least[0]:
            least[1], near[1] = least[0], near[0]
            least[0], near[0] = add, at[n]
        elif add < least[1]:
            least[1], near[1] = add, at[n]
    total, taken = many[one], 0
    for n in range(2):
        if near[n] >= 0 and total + many[places[near[n]]] <= MOST:
            total += many[places[near[n]]]
            taken += 1
            chosen[taken], slots[taken] = places[near[n]], near[n]
    return taken
