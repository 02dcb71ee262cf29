"""Blanking: few cells are blanked that hide what a node would suppress.

A blank is a value of its own: records are alike when what they show is equal and their blanks are in the
same columns. Where few classes are refused the least costly blanks are found, by a dynamic program over
sets of these classes; else sets of columns are tried, the small ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.counts import Counts, Entries, numbered, packed
from shoal.core.held import gathered, of_sizes, selected
from shoal.core.lattice import Node
from shoal.core.lowering import keys_at
from shoal.core.problem import Problem

_FEW = 12  # refused classes of which all sets are judged
_CELLS = 4_000_000  # sets of classes times sensitive values that are held for that
_SETS = 500  # sets of columns that are tried of each size
_EQUAL = 1e-12  # costs this close, relatively, are a tie


def blanked(problem: Problem, node: Node, *, check: Callable[[], None]) -> tuple[BoolArray, BoolArray]:
    """Return blanks (columns, combinations) and what is suppressed after all, (combinations,).

    `check` is called now and then and may raise. A population is not followed: with one, nothing is blanked.
    """
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    of = numbered(keys_at(problem, levels))  # both number classes as they first appear
    counts = problem.classes(node).counts
    refused = problem.violations(Classes(counts, problem.about))
    blanks = np.zeros((len(node), len(counts)), np.bool_)
    if not refused.any() or counts.population is not None:
        return blanks[:, of], refused[of]
    flagged = np.flatnonzero(refused)
    flagged = flagged[np.lexsort(counts.keys[:, flagged])]  # whatever the order of the combinations
    part = selected(counts, flagged)
    blanks[:, flagged] = _least(problem, part, check) if _small(part) else _greedy(problem, part, check)
    suppressed = _settled(problem, counts, blanks, refused)
    return blanks[:, of], suppressed[of]


def _settled(problem: Problem, counts: Counts, blanks: BoolArray, refused: BoolArray) -> BoolArray:
    """Suppress what is not hidden in what the release shows; blanks are taken away in place."""
    suppressed = refused & ~blanks.any(axis=0)
    while True:
        of = numbered(_shown(counts, blanks, suppressed))
        classes = Classes(gathered(counts, of), problem.about)
        gone = classes.nothing()
        gone[of[suppressed]] = True
        fails = (problem.violations(classes) & ~gone)[of] & blanks.any(axis=0)
        if not fails.any():
            break
        suppressed |= fails
        blanks[:, fails] = False
    if not all(model.holds(classes, gone) for model in problem.models):
        blanks[:] = False
        return refused
    return suppressed


def _shown(counts: Counts, blanks: BoolArray, suppressed: BoolArray) -> IntArray:
    """Pack what the release shows of each class: its groups, and which cells are blanks of their own."""
    groups = [np.where(blank, 0, counts.codes(column)) for column, blank in enumerate(blanks)]
    return packed([*groups, *blanks, suppressed])


def _small(part: Counts) -> bool:
    """Tell whether all sets of these classes can be judged."""
    sets = 1 << min(len(part), _FEW + 1)
    values = max([len(np.unique(entries.codes)) for entries in part.sensitive.values()], default=1)
    return len(part) <= _FEW and sets * values <= _CELLS


def _least(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find the blanks (columns, classes) that cost least; a class without any is suppressed.

    Classes hidden together blank the columns in which they differ. A set that passes costs its records
    times these columns' weights; suppressing a class costs its records times all weights.
    """
    weights = np.array(problem.weights)
    number = len(part)
    members = (np.arange(1 << number)[1:, None] >> np.arange(number)) & 1 == 1  # (sets, classes)
    codes = [part.codes(column) for column in range(len(weights))]
    differ = np.stack([_differ(members, column) for column in codes])  # (columns, sets)
    together = _together(part, members)
    cost = np.where(
        problem.violations(Classes(together, problem.about)), np.inf, together.sizes * (weights @ differ)
    )
    lost = np.zeros(len(cost), np.int64)
    alone = (1 << np.arange(number)) - 1
    cost[alone], lost[alone] = part.sizes * weights.sum(), part.sizes
    blanks = np.zeros((len(weights), number), np.bool_)
    for chosen in _partition(cost, lost, number, check):
        if not lost[chosen]:
            blanks[:, members[chosen]] = differ[:, [chosen]]
    return blanks


def _differ(members: BoolArray, codes: IntArray) -> BoolArray:
    """Mark the sets whose members have different codes."""
    least = np.where(members, codes, codes.max()).min(axis=1)
    differ: BoolArray = least != np.where(members, codes, codes.min()).max(axis=1)
    return differ


def _together(part: Counts, members: BoolArray) -> Counts:
    """Merge the members of each set into one class."""
    bits = members.astype(np.float64)  # sums of counts are exact
    sensitive = {}
    for name, entries in part.sensitive.items():
        values, place = np.unique(entries.codes, return_inverse=True)
        table = np.zeros((len(part), len(values)))
        table[entries.rows, place] = entries.counts
        sums = (bits @ table).astype(np.int64)
        rows, columns = np.nonzero(sums)
        sensitive[name] = Entries((rows << entries.bits) | values[columns], sums[rows, columns], entries.bits)
    sizes = (bits @ part.sizes).astype(np.int64)
    return of_sizes(sizes, sensitive)


def _partition(cost: FloatArray, lost: IntArray, number: int, check: Callable[[], None]) -> list[int]:
    """Divide classes into sets of the least total cost, of these the ones that lose least.

    Set `s` of the arrays stands for the classes that are bits of s + 1.
    """
    sets = np.arange(1, 1 << number)
    first = sets & -sets
    options = {1 << n: sets[(first == 1 << n) & np.isfinite(cost)] for n in range(number)}
    total, gone = np.zeros(1 << number), np.zeros(1 << number, np.int64)
    choice = np.zeros(1 << number, np.int64)
    for whole in range(1, 1 << number):
        if whole % 256 == 0:
            check()
        inside = options[whole & -whole]
        inside = inside[inside & ~whole == 0]
        costs = cost[inside - 1] + total[whole ^ inside]
        near = inside[costs <= costs.min() * (1 + _EQUAL)]
        best = int(near[np.argmin(lost[near - 1] + gone[whole ^ near])])
        choice[whole] = best
        total[whole] = cost[best - 1] + total[whole ^ best]
        gone[whole] = lost[best - 1] + gone[whole ^ best]
    found, left = [], (1 << number) - 1
    while left:
        found.append(int(choice[left]) - 1)
        left ^= int(choice[left])
    return found


def _greedy(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find blanks (columns, classes) that hide many records at little cost; the small sets come first."""
    columns = len(part.fields)
    blanks = np.zeros((columns, len(part)), np.bool_)
    left, rows = part, np.arange(len(part))  # what is not hidden yet, and where it stands in the part
    ranked: list[tuple[int, ...]] = [()]
    for size in range(1, columns + 1):
        judged = []
        for chosen in _sets(columns, size, ranked):
            check()
            classes, hides = _hidden(problem, left, chosen)
            judged.append((int(left.sizes[hides].sum()), classes, chosen))
        ranked = [chosen for _, _, chosen in sorted(judged, key=lambda found: (-found[0], *found[1:]))]
        queue = [
            (-_worth(problem, hidden, chosen), chosen, len(rows)) for hidden, _, chosen in judged if hidden
        ]
        heapify(queue)
        while queue:
            worth, chosen, known = heappop(queue)
            _, hides = _hidden(problem, left, chosen)
            if known != len(rows):  # others were hidden since: it may be worth less
                worth = -_worth(problem, int(left.sizes[hides].sum()), chosen)
                if worth:
                    heappush(queue, (worth, chosen, len(rows)))
                continue
            check()
            blanks[np.array(chosen)[:, None], rows[hides]] = True
            left, rows = selected(left, np.flatnonzero(~hides)), rows[~hides]
        if left.records < problem.least_size:
            break
    return blanks


def _worth(problem: Problem, hidden: int, chosen: Sequence[int]) -> float:
    """Return the records that a set of columns hides for its weight."""
    return hidden / max(sum(problem.weights[column] for column in chosen), _EQUAL)


def _sets(columns: int, size: int, ranked: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all sets of so many columns, or those that extend the best smaller ones by a column."""
    if comb(columns, size) <= _SETS:
        return list(combinations(range(columns), size))
    found: dict[tuple[int, ...], None] = {}
    for smaller in ranked:
        for column in range(columns):
            if column not in smaller:
                found[tuple(sorted((*smaller, column)))] = None
        if len(found) >= _SETS:
            break
    return list(found)


def _hidden(problem: Problem, left: Counts, chosen: Sequence[int]) -> tuple[int, BoolArray]:
    """Return how many classes remain with some columns blanked, and what is then in one that passes."""
    clear = np.full((len(left.keys), 1), -1)
    for column in chosen:
        field = left.fields[column]
        clear[field.word] &= ~(field.mask << field.shift)
    of = numbered(left.keys & clear)
    fails = problem.violations(Classes(gathered(left, of), problem.about))
    return len(fails), ~fails[of]
