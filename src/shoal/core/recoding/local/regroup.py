"""Regrouping: replace a class and its two nearest classes by new classes of their combinations, if cheaper.

The cost of a class is its number of records times the weighted shares of values that its cells cover. A cell
has one or more labels of one level.

Agglomeration starts with one cluster per combination. As long as some clusters have too few records or
sensitive values, one of them is joined to its nearest cluster. The chosen cluster has the least added cost,
divided by the square of its number of records.
"""

from __future__ import annotations

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.recoding.local.split import enough
from shoal.core.recoding.local.tables import ClassLabels, Needs, common_label

MAX_ROWS = 60  # maximum number of combinations that are regrouped together
_NEIGHBOURS = 32  # the nearest classes are searched among this number of classes before and after a class
_IMPROVED = 1 - 1e-12  # a new cost above this share of the old one may differ by a rounding error only


@compiled
def joined_weights(
    cells: IntArray,  # (clusters, axes, labels)
    cluster: int,
    other_cells: IntArray,
    others: IntArray,  # the clusters in `other_cells` to join with
    number: int,  # the number of others
    labels: ClassLabels,
    out: IntArray,  # (axes, 2 * labels): the labels of the last union; -1 follows the last label
    weights: FloatArray,  # (others,): filled in
) -> None:
    """Compute the weight of a record in the union of a cluster with each of some others."""
    if cells.shape[2] > 1:
        for n in range(number):
            other, total = others[n], 0.0
            for axis in range(cells.shape[1]):
                x, y = cells[cluster, axis, 0], other_cells[other, axis, 0]
                single = cells[cluster, axis, 1] < 0 and other_cells[other, axis, 1] < 0
                if single and labels.level[x] == labels.level[y]:  # the usual case
                    total += labels.weight[x] - labels.constant[axis]
                    if x != y:
                        total += labels.weight[y]
                else:
                    total += _join(cells, cluster, other_cells, other, axis, labels, out)
            weights[n] = total
        return
    for n in range(number):
        other, total = others[n], 0.0
        for axis in range(cells.shape[1]):
            x, y = cells[cluster, axis, 0], other_cells[other, axis, 0]
            size = labels.pairs[axis, 1]
            if size:
                total += labels.joined_weight[labels.pairs[axis, 0] + x * size + y]
            else:
                label = common_label(x, y, labels.level, labels.parent)
                total += np.inf if label < 0 else labels.weight[label] - labels.constant[axis]
        weights[n] = total


@compiled
def merge(
    cells: IntArray, cluster: int, other_cells: IntArray, other: int, labels: ClassLabels, out: IntArray
) -> float:
    """Extend the cells of a cluster so that they also cover another one; return the weight of the cells."""
    total = 0.0
    for axis in range(cells.shape[1]):
        if cells.shape[2] > 1:
            total += _join(cells, cluster, other_cells, other, axis, labels, out)
            for n in range(cells.shape[2]):
                cells[cluster, axis, n] = out[axis, n]
        else:
            label = common_label(
                cells[cluster, axis, 0], other_cells[other, axis, 0], labels.level, labels.parent
            )
            cells[cluster, axis, 0] = label
            total += labels.weight[label] - labels.constant[axis]
    return total


@compiled
def _join(
    cells: IntArray,
    cluster: int,
    other_cells: IntArray,
    other: int,
    axis: int,
    labels: ClassLabels,
    out: IntArray,
) -> float:
    """Write the lowest labels of one level that cover two cells; return their weight, or infinity."""
    level, parent = labels.level, labels.parent
    number, most = np.int64(0), cells.shape[2]  # with a literal 0, callees would be compiled twice
    common = max(level[cells[cluster, axis, 0]], level[other_cells[other, axis, 0]])
    for n in range(2 * most):
        label = cells[cluster, axis, n] if n < most else other_cells[other, axis, n - most]
        if label >= 0:
            while level[label] < common:
                label = parent[label]
            number = _insert(out, axis, number, label)
    while number > most:
        lifted = np.int64(0)
        for n in range(number):
            parent_label = parent[out[axis, n]]
            if parent_label < 0:
                return np.inf
            lifted = _insert(out, axis, lifted, parent_label)
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
    join_costs: FloatArray,  # (rows, rows): the cost that joining two rows adds
    cells: IntArray,  # (rows, axes, labels): filled in for the clusters
    cluster: IntArray,  # (rows,): filled in
    out: IntArray,
) -> float:
    """Cluster combinations until all clusters have enough records and values; return the cost."""
    number = len(rows)
    records, weights = np.empty(number, np.int64), np.empty(number)
    bits = np.empty((number, needs.bits.shape[1]), np.int64)
    lacking, open_clusters = np.empty(number, np.bool_), np.arange(number)
    nearest, joined = np.full(number, -1), np.empty(number)
    added_costs = join_costs[:number, :number].copy()
    for n in range(number):
        weights[n] = start_cell(rows[n], lowest, labels, cells, n)
        records[n], cluster[n] = sizes[rows[n]], n
        bits[n] = needs.bits[rows[n]]
        lacking[n] = not enough(records[n], bits[n], needs)
    while True:
        first = _cheapest(open_clusters, number, added_costs, records, lacking, nearest)
        if first < 0:
            break
        first, second = min(first, nearest[first]), max(first, nearest[first])
        weights[first] = merge(cells, first, cells, second, labels, out)
        records[first] += records[second]
        bits[first] |= bits[second]
        lacking[first], lacking[second] = not enough(records[first], bits[first], needs), False
        number = _forget(open_clusters, number, nearest, first, second)
        joined_weights(cells, first, cells, open_clusters, number, labels, out, joined)
        for n in range(number):
            other = open_clusters[n]
            size = records[first] + records[other]
            added = size * joined[n] - records[first] * weights[first] - records[other] * weights[other]
            added_costs[first, other] = added_costs[other, first] = added
            if nearest[other] >= 0 and added < added_costs[other, nearest[other]]:
                nearest[other] = first
        for n in range(len(rows)):
            if cluster[n] == second:
                cluster[n] = first
    cost = 0.0
    for n in range(number):
        cost += np.inf if lacking[open_clusters[n]] else records[open_clusters[n]] * weights[open_clusters[n]]
    return cost


@compiled
def _forget(open_clusters: IntArray, number: int, nearest: IntArray, first: int, second: int) -> int:
    """Remove the second cluster, and reset all nearest clusters that are the first or the second."""
    kept = 0
    nearest[first] = -1
    for n in range(number):
        other = open_clusters[n]
        if other != second:
            open_clusters[kept] = other
            kept += 1
        if nearest[other] == first or nearest[other] == second:
            nearest[other] = -1
    return kept


@compiled
def _cheapest(
    open_clusters: IntArray,
    number: int,
    added_costs: FloatArray,
    records: IntArray,
    lacking: BoolArray,
    nearest: IntArray,  # the nearest of each cluster, or -1 if it must be searched; changed in place
) -> int:
    """Return the `lacking` cluster with the least relative cost of joining its nearest cluster, or -1."""
    best, chosen = np.inf, -1
    for n in range(number):
        cluster = open_clusters[n]
        if not lacking[cluster]:
            continue
        if nearest[cluster] < 0:
            least = np.inf
            for m in range(number):
                if m != n and added_costs[cluster, open_clusters[m]] < least:
                    least, nearest[cluster] = added_costs[cluster, open_clusters[m]], open_clusters[m]
        if nearest[cluster] >= 0:
            cost = added_costs[cluster, nearest[cluster]] / (records[cluster] * records[cluster])
            if cost < best:
                best, chosen = cost, cluster
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
    join_costs: FloatArray,  # filled in
    out: IntArray,
) -> None:
    """Compute the cost that joining two rows adds, for each pair."""
    weights, joined, others = np.empty(len(rows)), np.empty(len(rows)), np.arange(len(rows))
    for n in range(len(rows)):
        weights[n] = start_cell(rows[n], lowest, labels, cells, n)
        joined_weights(cells, n, cells, others, n, labels, out, joined)
        size = sizes[rows[n]]
        for m in range(n):
            other_size = sizes[rows[m]]
            join_costs[n, m] = (size + other_size) * joined[m] - size * weights[n] - other_size * weights[m]
            join_costs[m, n] = join_costs[n, m]


@compiled
def describe(
    class_of: IntArray,
    lowest: IntArray,
    sizes: IntArray,
    labels: ClassLabels,
    heads: IntArray,  # (classes,): all -1; filled in with the first combination of each class
    following: IntArray,  # (combinations,): filled in with the next combination of the same class, or -1
    cells: IntArray,  # (classes, axes, labels): filled in
    records: IntArray,  # (classes,): all 0; filled in
    weights: FloatArray,  # (classes,): filled in
) -> None:
    """Compute the arrays that describe classes; combinations of class -1 are left out."""
    out = np.empty((lowest.shape[1], 2 * cells.shape[2]), np.int64)
    first = np.int64(0)
    single = np.empty((1, cells.shape[1], cells.shape[2]), np.int64)
    for row in range(len(class_of) - 1, -1, -1):
        chosen = class_of[row]
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
    once: bool,  # whether a class is regrouped at most once, because models are checked afterwards
    class_at: IntArray,  # (positions,): the class at each position of the order, or -1; changed in place
    class_of: IntArray,  # (combinations,): the class of each combination; changed in place
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
    row_counts: IntArray,  # (classes,): the number of combinations of each class
) -> None:
    """Regroup the classes at some positions, each with its two nearest classes."""
    axes, most = cells.shape[1], cells.shape[2]
    out = np.empty((axes, 2 * most), np.int64)
    join_costs = np.empty((MAX_ROWS, MAX_ROWS))
    work = np.empty((MAX_ROWS, axes, most), np.int64)
    cluster = np.empty(MAX_ROWS, np.int64)
    rows = np.empty(MAX_ROWS, np.int64)
    chosen, slots = np.empty(3, np.int64), np.empty(3, np.int64)
    new_numbers = np.empty(MAX_ROWS, np.int64)
    next_free = np.int64(0)
    for position in range(begin, end):
        if class_at[position] < 0:
            continue
        chosen[0], slots[0] = class_at[position], position
        neighbours = _nearest(
            position, class_at, cells, records, weights, row_counts, labels, out, chosen, slots
        )
        if neighbours == 0:
            continue
        number, before = 0, 0.0
        for n in range(neighbours + 1):
            before += records[chosen[n]] * weights[chosen[n]]
            row = heads[chosen[n]]
            while row >= 0:
                rows[number] = row
                number += 1
                row = following[row]
        rows[:number].sort()
        distances(rows[:number], lowest, sizes, labels, work, join_costs, out)
        cost = agglomerate(rows[:number], lowest, sizes, labels, needs, join_costs, work, cluster, out)
        if cost >= before * _IMPROVED:
            continue
        for n in range(neighbours + 1):
            heads[chosen[n]], records[chosen[n]], row_counts[chosen[n]] = 0, 0, 0
            class_at[slots[n]] = -1
        next_free = _assign_numbers(cluster[:number], chosen[: neighbours + 1], heads, next_free, new_numbers)
        for n in range(number - 1, -1, -1):
            row, new_class = rows[n], new_numbers[cluster[n]]
            if row_counts[new_class] == 0:
                heads[new_class] = -1
                cells[new_class] = work[cluster[n]]
                weights[new_class] = weight_of(work[cluster[n]], labels)
            class_of[row], moved[row] = new_class, position
            following[row], heads[new_class] = heads[new_class], row
            records[new_class] += sizes[row]
            row_counts[new_class] += 1
        for n in range(neighbours + 1):
            if row_counts[chosen[n]] == 0:
                heads[chosen[n]] = -1
            elif not once:
                class_at[slots[n]] = chosen[n]


@compiled
def _assign_numbers(
    cluster: IntArray, freed: IntArray, heads: IntArray, next_free: int, new_numbers: IntArray
) -> int:
    """Assign numbers of free classes to clusters; return the number at which the next search starts."""
    formed = 0
    for n in range(len(cluster)):
        if cluster[n] == n:  # the first of its cluster
            if formed < len(freed):
                new_numbers[n] = freed[formed]
            else:
                while heads[next_free] >= 0:
                    next_free = (next_free + 1) % len(heads)
                new_numbers[n], heads[next_free] = next_free, 0
            formed += 1
    return next_free


@compiled
def _nearest(
    position: int,
    class_at: IntArray,
    cells: IntArray,
    records: IntArray,
    weights: FloatArray,
    row_counts: IntArray,
    labels: ClassLabels,
    out: IntArray,
    chosen: IntArray,  # the first is given, the others are filled in
    slots: IntArray,
) -> int:
    """Find the two classes whose union with a class adds the least cost; return how many there are."""
    first, number = class_at[position], np.int64(0)
    others, positions = np.empty(2 * _NEIGHBOURS, np.int64), np.empty(2 * _NEIGHBOURS, np.int64)
    for index in range(max(0, position - _NEIGHBOURS), min(len(class_at), position + _NEIGHBOURS + 1)):
        other = class_at[index]
        if index != position and other >= 0 and row_counts[first] + row_counts[other] <= MAX_ROWS:
            others[number], positions[number] = other, index
            number += 1
    joined = np.empty(2 * _NEIGHBOURS)
    joined_weights(cells, first, cells, others, number, labels, out, joined)
    least, nearest = np.full(2, np.inf), np.full(2, -1)
    for n in range(number):
        other = others[n]
        size = records[first] + records[other]
        added = size * joined[n] - records[first] * weights[first] - records[other] * weights[other]
        if added < least[0]:
            least[1], nearest[1] = least[0], nearest[0]
            least[0], nearest[0] = added, positions[n]
        elif added < least[1]:
            least[1], nearest[1] = added, positions[n]
    total, count = row_counts[first], 0
    for n in range(2):
        if nearest[n] >= 0 and total + row_counts[class_at[nearest[n]]] <= MAX_ROWS:
            total += row_counts[class_at[nearest[n]]]
            count += 1
            chosen[count], slots[count] = class_at[nearest[n]], nearest[n]
    return count
