"""Nodes of the tree over cuts (see `tree`): bounds with and without each cut, and forced decisions."""

from __future__ import annotations

import numpy as np

from shoal.algorithms.order_cuts.bounds import (
    ClassBounds,
    CutEntries,
    class_bounds,
    entries_of,
    joined_floors,
    least_squares,
)
from shoal.algorithms.order_cuts.tables import (
    HEAD,
    OUT,
    TAIL,
    CodeArray,
    StateArray,
    boundaries,
    divide,
    merge,
    most_of,
)
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.compilation import compiled

_ROUNDING = 1 - 1e-12  # costs with a larger ratio count as equal
_GAP_SHARE = 0.2  # share of the remaining gap that is added to increases, so that small ones can rank high


@compiled
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
    suppressed: int,  # records in classes below k, which are not in the table
    incumbent: float,
    minority: bool,  # True: a record costs 1 outside its class's majority. False: its class's size
) -> tuple[float, float, FloatArray, FloatArray, IntArray, BoolArray, FloatArray]:
    """Bound the cost of all sets between head and tail, also with and without each cut of the tail.

    Return the bound and the cost of the head, and per cut: the increase of the bound with it and without it,
    the records that it suppresses, whether it is useful, and the pairs of records that it separates where it
    is useful. If the incumbent already decides the node or a cut, the more expensive bounds are left out.
    """
    cuts = state.shape[0]
    remaining_limit = limit - suppressed
    below = boundaries(state, column_begins)
    totals, wholes = _undivided(sizes, labels, begins, minority)
    entries = entries_of(codes, sizes, begins, totals, below, cuts, k, records, minority)
    measured = class_bounds(
        codes,
        sizes,
        labels,
        begins,
        totals,
        wholes,
        entries,
        below.shape[1],
        k,
        records,
        remaining_limit,
        minority,
    )
    bounds, cells = measured[1], measured[5]
    base = float(suppressed) if minority else float(records) * suppressed
    exact = base + wholes.sum()
    bound = base + bounds.sum()
    increase_with, increase_without, suppressed_by, useful, pairs = _bounds_of_cuts(
        cuts, totals, entries, measured, k, records, remaining_limit, minority
    )
    if minority or _is_decided(
        bound, increase_with, suppressed_by, useful, state, remaining_limit, incumbent
    ):
        return bound, exact, increase_with, increase_without, suppressed_by, useful, pairs
    floor_increases = joined_floors(codes, begins, entries, cells, below.shape[1], k)
    increase_without = _increases_without(cuts, entries, measured, floor_increases)
    return bound, exact, increase_with, increase_without, suppressed_by, useful, pairs


@compiled
def _is_decided(
    bound: float,
    increase_with: FloatArray,
    suppressed_by: IntArray,
    useful: BoolArray,
    state: StateArray,
    remaining_limit: int,
    incumbent: float,
) -> bool:
    """Return whether no set is better than the incumbent, or some cut can be left out.

    With an infinite incumbent, return False, so that all bounds are computed.
    """
    if np.isinf(incumbent):
        return False
    if bound >= incumbent * _ROUNDING:
        return True
    for cut in range(state.shape[0]):
        if state[cut] == TAIL and _is_useless(
            cut, bound, increase_with, suppressed_by, useful, remaining_limit, incumbent
        ):
            return True
    return False


@compiled
def _is_useless(
    cut: int,
    bound: float,
    increase_with: FloatArray,
    suppressed_by: IntArray,
    useful: BoolArray,
    remaining_limit: int,
    incumbent: float,
) -> bool:
    """Return whether no acceptable set with this cut is better than the incumbent."""
    return bool(
        not useful[cut]
        or suppressed_by[cut] > remaining_limit
        or bound + increase_with[cut] >= incumbent * _ROUNDING
    )


@compiled
def _increases_without(
    cuts: int,
    entries: CutEntries,
    measured: ClassBounds,
    floor_increases: FloatArray,  # (entries,): the increase of the floor
) -> FloatArray:
    """Return how much the bounds of classes rise without each cut."""
    first_entries, _, cut_of, _, _ = entries
    floors, bounds, seconds, _, best_entry, _ = measured
    increase_without = np.zeros(cuts)
    for group in range(bounds.shape[0]):
        for entry in range(first_entries[group, 0], first_entries[group, -1]):
            least = floors[group] + floor_increases[entry]
            if entry == best_entry[group]:
                least = max(least, seconds[group])
            increase_without[cut_of[entry]] += max(least - bounds[group], 0.0)
    return increase_without


@compiled
def _undivided(
    sizes: IntArray, labels: IntArray, begins: IntArray, minority: bool
) -> tuple[IntArray, FloatArray]:
    """Return the records of each class and its cost if it is not divided."""
    classes = begins.shape[0] - 1
    totals = np.zeros(classes, np.int64)
    wholes = np.empty(classes)
    of_labels = np.empty(labels.shape[1], np.int64)
    for group in range(classes):
        of_labels[:] = 0
        for row in range(begins[group], begins[group + 1]):
            totals[group] += sizes[row]
            for label in range(labels.shape[1]):
                of_labels[label] += labels[row, label]
        size = totals[group]
        wholes[group] = float(size - most_of(of_labels)) if minority else float(size) * size
    return totals, wholes


@compiled
def _bounds_of_cuts(
    cuts: int,
    totals: IntArray,
    entries: CutEntries,
    measured: ClassBounds,
    k: int,
    records: int,
    remaining_limit: int,
    minority: bool,
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray, FloatArray]:
    """Return the results of `measure` per cut, as if each class could choose its cuts independently."""
    first_entries, _, cut_of, left_records, useful_entry = entries
    floors, bounds, seconds, costs, best_entry, _ = measured
    increase_with = np.zeros(cuts)
    increase_without = np.zeros(cuts)
    suppressed_by = np.zeros(cuts, np.int64)
    useful = np.zeros(cuts, np.bool_)
    pairs = np.zeros(cuts)
    for group in range(totals.shape[0]):
        size = totals[group]
        for entry in range(first_entries[group, 0], first_entries[group, -1]):
            cut = cut_of[entry]
            if useful_entry[entry]:
                useful[cut] = True
                pairs[cut] += 2.0 * left_records[entry] * (size - left_records[entry])
            if entry == best_entry[group]:
                increase_without[cut] += seconds[group] - bounds[group]
            smaller = min(left_records[entry], size - left_records[entry])
            larger = size - smaller
            if smaller >= k:
                cost = costs[entry]
            else:
                cost = cut_off(
                    smaller, larger, floors[group], bounds[group], k, records, remaining_limit, minority
                )
                if useful_entry[entry]:
                    cost = max(cost, costs[entry])
                suppressed_by[cut] += size if larger < k else smaller
            if cost > bounds[group]:
                increase_with[cut] += cost - bounds[group]
    return increase_with, increase_without, suppressed_by, useful, pairs


@compiled
def cut_off(
    smaller: int,
    larger: int,
    floor: float,
    bound: float,
    k: int,
    records: int,
    remaining_limit: int,
    minority: bool,
) -> float:
    """Return the least cost of a class from which fewer than k records are cut off."""
    suppressed = smaller + larger if larger < k else smaller
    if suppressed > remaining_limit:
        return np.inf
    if larger < k:
        return float(suppressed) * (1 if minority else records)
    if minority:
        return bound
    # The cells of the larger side cost at least as much as all cells, minus the pairs with the smaller side.
    lost_weight = float(smaller) * (2 * larger + smaller)
    cost_of_larger: float = max(least_squares(larger, k, records, remaining_limit), floor - lost_weight)
    return cost_of_larger + float(smaller) * records


@compiled
def decide(
    codes: CodeArray,
    sizes: IntArray,
    labels: IntArray,
    begins: IntArray,
    state: StateArray,  # written
    column_begins: IntArray,
    cut: int,  # the cut that is decided; -1: none
    take: bool,
    k: int,
    records: int,
    limit: int,
    suppressed: int,
    incumbent: float,
    minority: bool,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int, float, int, float, StateArray]:
    """Add a cut or leave it out, then decide all cuts for which only one decision is possible.

    Return the table, the suppressed records, the bound (infinite if no set is better than the incumbent), the
    cut to decide next, and the least cost of all heads on the way, with that head.
    """
    best = np.inf
    head = state.copy()
    kept = np.ones(state.shape[0], np.bool_)
    following = -1
    dropped = cut >= 0 and not take
    if dropped:
        kept[cut] = False
    while True:
        if dropped:
            codes, sizes, labels, begins = merge(codes, sizes, labels, begins, state, kept, column_begins)
            for other in range(state.shape[0]):
                if not kept[other]:
                    state[other] = OUT
                    kept[other] = True
        elif cut >= 0:
            codes, sizes, labels, begins, newly_suppressed = divide(
                codes, sizes, labels, begins, state, column_begins, cut, k
            )
            suppressed += newly_suppressed
            state[cut] = HEAD
        if suppressed > limit or begins.shape[0] == 1:
            return codes, sizes, labels, begins, suppressed, np.inf, -1, best, head
        bound, exact, increase_with, increase_without, suppressed_by, useful, pairs = measure(
            codes,
            sizes,
            labels,
            begins,
            state,
            column_begins,
            k,
            records,
            limit,
            suppressed,
            min(incumbent, best),
            minority,
        )
        if exact < best:
            best = exact
            head = state.copy()
        incumbent = min(incumbent, best)
        if bound >= incumbent * _ROUNDING:
            return codes, sizes, labels, begins, suppressed, np.inf, -1, best, head
        dropped = False
        cut = -1
        following = -1
        score = -np.inf
        next_bound = exact
        for other in range(state.shape[0]):
            if state[other] != TAIL:
                continue
            if _is_useless(other, bound, increase_with, suppressed_by, useful, limit - suppressed, incumbent):
                kept[other] = False
                dropped = True
            elif bound + increase_without[other] >= incumbent * _ROUNDING:
                cut = other
            else:
                rank = pairs[other] - suppressed_by[other]
                if not minority:
                    rank = (increase_without[other] + 1.0) * (
                        increase_with[other] + _GAP_SHARE * (incumbent - bound)
                    )
                if rank > score:
                    score = rank
                    following = other
                next_bound = min(next_bound, bound + increase_with[other])
        if not dropped and cut < 0:
            bound = max(bound, next_bound)  # the best set is the head, or has one of the cuts
            return codes, sizes, labels, begins, suppressed, bound, following, best, head
