"""Nodes of the tree over cuts: bounds with and without each cut, and cuts that are forced."""

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

_ROUNDING = 1 - 1e-12  # losses this close count as equal
_EVEN = 0.2  # share of the remaining gap; lets cuts that add little rank high too


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
    gone: int,  # records in classes below k, which are not in the table
    incumbent: float,
    minority: bool,  # a record costs 1 if not in its class's majority; else its class's size
) -> tuple[float, float, FloatArray, FloatArray, IntArray, BoolArray, FloatArray]:
    """Bound the cost of all sets between head and tail, also with and without each cut of the tail.

    Returns the bound, the cost of the head, the increase of the bound with each cut and without it, the
    records that each cut suppresses, the useful cuts, and the pairs of records that each separates where it
    is useful. If the incumbent already decides the node or a cut, the more expensive bounds are skipped.
    """
    cuts = state.shape[0]
    spare = limit - gone
    below = boundaries(state, column_begins)
    totals, wholes = _undivided(sizes, labels, begins, minority)
    entries = entries_of(codes, sizes, begins, totals, below, cuts, k, records, minority)
    measured = class_bounds(
        codes, sizes, labels, begins, totals, wholes, entries, below.shape[1], k, records, spare, minority
    )
    bounds, cells = measured[1], measured[5]
    base = float(gone) if minority else float(records) * gone
    exact = base + wholes.sum()
    bound = base + bounds.sum()
    taken, left, lost, useful, pairs = _bounds_of_cuts(
        cuts, totals, entries, measured, k, records, spare, minority
    )
    if minority or _settled(bound, taken, lost, useful, state, spare, incumbent):
        return bound, exact, taken, left, lost, useful, pairs
    more = joined_floors(codes, begins, entries, cells, below.shape[1], k)
    left = _left_out(cuts, entries, measured, more)
    return bound, exact, taken, left, lost, useful, pairs


@compiled
def _settled(
    bound: float,
    taken: FloatArray,
    lost: IntArray,
    useful: BoolArray,
    state: StateArray,
    spare: int,
    incumbent: float,
) -> bool:
    """Return whether nothing beats the incumbent, or some cut need not be tried.

    With an infinite incumbent, all bounds are computed.
    """
    if np.isinf(incumbent):
        return False
    if bound >= incumbent * _ROUNDING:
        return True
    for cut in range(state.shape[0]):
        if state[cut] == TAIL and _needless(cut, bound, taken, lost, useful, spare, incumbent):
            return True
    return False


@compiled
def _needless(
    cut: int,
    bound: float,
    taken: FloatArray,
    lost: IntArray,
    useful: BoolArray,
    spare: int,
    incumbent: float,
) -> bool:
    """Return whether no acceptable set with this cut beats the incumbent."""
    return bool(not useful[cut] or lost[cut] > spare or bound + taken[cut] >= incumbent * _ROUNDING)


@compiled
def _left_out(
    cuts: int,
    entries: CutEntries,
    measured: ClassBounds,
    more: FloatArray,  # (entries,): the increase of the floor
) -> FloatArray:
    """Return how much the bounds of classes rise without each cut."""
    at, _, cut_of, _, _ = entries
    floors, bounds, seconds, _, best_entry, _ = measured
    left = np.zeros(cuts)
    for group in range(bounds.shape[0]):
        for entry in range(at[group, 0], at[group, -1]):
            least = floors[group] + more[entry]
            if entry == best_entry[group]:
                least = max(least, seconds[group])
            left[cut_of[entry]] += max(least - bounds[group], 0.0)
    return left


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
    spare: int,
    minority: bool,
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray, FloatArray]:
    """Return the increase of the bounds with each cut, if each class chooses its cuts independently."""
    at, _, cut_of, lefts, useful_entry = entries
    floors, bounds, seconds, costs, best_entry, _ = measured
    taken = np.zeros(cuts)
    left = np.zeros(cuts)
    lost = np.zeros(cuts, np.int64)
    useful = np.zeros(cuts, np.bool_)
    pairs = np.zeros(cuts)
    for group in range(totals.shape[0]):
        size = totals[group]
        for entry in range(at[group, 0], at[group, -1]):
            cut = cut_of[entry]
            if useful_entry[entry]:
                useful[cut] = True
                pairs[cut] += 2.0 * lefts[entry] * (size - lefts[entry])
            if entry == best_entry[group]:
                left[cut] += seconds[group] - bounds[group]
            small = min(lefts[entry], size - lefts[entry])
            large = size - small
            if small >= k:
                cost = costs[entry]
            else:
                cost = cut_off(small, large, floors[group], bounds[group], k, records, spare, minority)
                if useful_entry[entry]:
                    cost = max(cost, costs[entry])
                lost[cut] += size if large < k else small
            if cost > bounds[group]:
                taken[cut] += cost - bounds[group]
    return taken, left, lost, useful, pairs


@compiled
def cut_off(
    small: int, large: int, floor: float, bound: float, k: int, records: int, spare: int, minority: bool
) -> float:
    """Return the least cost of a class from which fewer than k records are cut off."""
    lost = small + large if large < k else small
    if lost > spare:
        return np.inf
    if large < k:
        return float(lost) * (1 if minority else records)
    if minority:
        return bound
    # The cells of the larger side weigh at least as much as all cells minus the pairs of the smaller side.
    joined = float(small) * (2 * large + small)
    rest: float = max(least_squares(large, k, records, spare), floor - joined)
    return rest + float(small) * records


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
    gone: int,
    incumbent: float,
    minority: bool,
) -> tuple[CodeArray, IntArray, IntArray, IntArray, int, float, int, float, StateArray]:
    """Add a cut or leave it out, then decide all other cuts that are forced.

    Returns the table, the suppressed records, the bound (infinite if nothing beats the incumbent), the cut to
    decide next, and the least cost of a head on the way, with that head.
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
            codes, sizes, labels, begins, more = divide(
                codes, sizes, labels, begins, state, column_begins, cut, k
            )
            gone += more
            state[cut] = HEAD
        if gone > limit or begins.shape[0] == 1:
            return codes, sizes, labels, begins, gone, np.inf, -1, best, head
        bound, exact, taken, left, lost, useful, pairs = measure(
            codes,
            sizes,
            labels,
            begins,
            state,
            column_begins,
            k,
            records,
            limit,
            gone,
            min(incumbent, best),
            minority,
        )
        if exact < best:
            best = exact
            head = state.copy()
        incumbent = min(incumbent, best)
        if bound >= incumbent * _ROUNDING:
            return codes, sizes, labels, begins, gone, np.inf, -1, best, head
        dropped = False
        cut = -1
        following = -1
        score = -np.inf
        next_bound = exact
        for other in range(state.shape[0]):
            if state[other] != TAIL:
                continue
            if _needless(other, bound, taken, lost, useful, limit - gone, incumbent):
                kept[other] = False
                dropped = True
            elif bound + left[other] >= incumbent * _ROUNDING:
                cut = other
            else:
                rank = pairs[other] - lost[other]
                if not minority:
                    rank = (left[other] + 1.0) * (taken[other] + _EVEN * (incumbent - bound))
                if rank > score:
                    score = rank
                    following = other
                next_bound = min(next_bound, bound + taken[other])
        if not dropped and cut < 0:
            bound = max(bound, next_bound)  # either some cut is taken, or none is
            return codes, sizes, labels, begins, gone, bound, following, best, head
