"""Refine a node: recode or blank suppressed records, and lower levels class by class.

A blank is a separate value: records are in the same class if their visible values are equal and their blanks
are in the same columns. If few classes are refused, a dynamic program over sets of these classes finds the
blanks of least cost. Otherwise, sets of columns are tried, small sets first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.classes import Classes
from shoal.core.contracts import Guarantee
from shoal.core.counts.counts import Counts, SensitiveCounts, numbered, packed
from shoal.core.counts.in_memory import gathered, of_sizes, selected
from shoal.core.evaluation import Evaluation, below
from shoal.core.evaluator import Evaluator
from shoal.core.hierarchy.hierarchy import TOP
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.recoding.groups import of_levels
from shoal.core.recoding.lowering import keys_at, lower_levels
from shoal.core.recoding.recoding import Recoding, regions_of
from shoal.errors import CannotHonour
from shoal.wording import Change

_FEW = 12  # maximum number of refused classes for which all sets are evaluated
_CELLS = 4_000_000  # maximum number of sets of classes times sensitive values in memory for that
_SETS = 500  # maximum number of sets of columns that are tried for each size
_EQUAL = 1e-12  # costs with at most this relative difference are a tie


def blanked(problem: Problem, node: Node, *, check: Callable[[], None]) -> tuple[BoolArray, BoolArray]:
    """Return blanks (columns, combinations) and the combinations that stay suppressed, (combinations,).

    `check` is called regularly and may raise. With a population, nothing is blanked.
    """
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    of = numbered(keys_at(problem, levels))  # both number classes in order of appearance
    counts = problem.classes(node).counts
    refused = problem.violations(Classes(counts, problem.sensitive_info))
    blanks = np.zeros((len(node), len(counts)), np.bool_)
    if not refused.any() or counts.population is not None:
        return blanks[:, of], refused[of]
    flagged = np.flatnonzero(refused)
    flagged = flagged[np.lexsort(counts.keys[:, flagged])]  # independent of the order of the combinations
    part = selected(counts, flagged)
    blanks[:, flagged] = _least(problem, part, check) if _small(part) else _greedy(problem, part, check)
    suppressed = _settled(problem, counts, blanks, refused)
    return blanks[:, of], suppressed[of]


def blanked_any(problem: Problem, node: Node, *, check: Callable[[], None]) -> tuple[BoolArray, BoolArray]:
    """Return what `blanked` returns, for blanks that match every value: see `shoal.core.recoding.wildcards`.

    A record is hidden by its blanks if at least k released records have its visible values before any
    blanking. These records still match it after blanking. Blanks of other records are not needed for this.
    """
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    of = numbered(keys_at(problem, levels))  # both number classes in order of appearance
    counts = problem.classes(node).counts
    refused = problem.violations(Classes(counts, problem.sensitive_info))
    kept = np.ones(len(counts), np.bool_)
    while True:  # until no remaining record depends on suppressed ones
        here = np.flatnonzero(kept)
        blanks = np.zeros((len(node), len(counts)), np.bool_)
        blanks[:, here] = _cheapest(problem, selected(counts, here), refused[here], check)
        bare = refused & kept & ~blanks.any(axis=0)
        if not bare.any():
            return blanks[:, of], ~kept[of]
        if counts.sizes[bare].sum() >= problem.least_size:  # enough to be hidden with every cell blanked
            blanks[:, bare] = True
            return blanks[:, of], ~kept[of]
        kept &= ~bare


def _cheapest(problem: Problem, counts: Counts, refused: BoolArray, check: Callable[[], None]) -> BoolArray:
    """Find the cheapest blanks (columns, classes) of each refused class; never all of its columns."""
    columns, weights = len(counts.fields), np.array(problem.weights)
    blanks = np.zeros((columns, len(counts)), np.bool_)
    cost = np.where(refused, np.inf, 0.0)
    ranked: list[tuple[int, ...]] = [()]
    for size in range(1, columns):
        if not (cost > np.sort(weights)[:size].sum()).any():  # no set of this size is cheaper
            break
        judged = []
        for chosen in _sets(columns, size, ranked):
            check()
            weight = float(weights[list(chosen)].sum())
            of = numbered(_without(counts, chosen))
            enough = np.bincount(of, counts.sizes)[of] >= problem.least_size
            judged.append((int(counts.sizes[refused & enough].sum()), chosen))
            better = enough & (cost > weight)
            cost[better] = weight
            blanks[:, better] = False
            blanks[np.array(chosen)[:, None], better] = True
        ranked = [chosen for _, chosen in sorted(judged, key=lambda trial: (-trial[0], trial[1]))]
    return blanks


def _settled(problem: Problem, counts: Counts, blanks: BoolArray, refused: BoolArray) -> BoolArray:
    """Suppress classes that blanks do not hide, and remove their blanks in place."""
    suppressed = refused & ~blanks.any(axis=0)
    while True:
        of = numbered(_shown(counts, blanks, suppressed))
        classes = Classes(gathered(counts, of), problem.sensitive_info)
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
    """Pack the visible groups of each class and the positions of its blanks."""
    groups = [np.where(blank, 0, counts.codes(column)) for column, blank in enumerate(blanks)]
    return packed([*groups, *blanks, suppressed])


def _small(part: Counts) -> bool:
    """Return whether all sets of these classes can be evaluated."""
    sets = 1 << min(len(part), _FEW + 1)
    values = max([len(np.unique(entries.codes)) for entries in part.sensitive.values()], default=1)
    return len(part) <= _FEW and sets * values <= _CELLS


def _least(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find the blanks (columns, classes) of least cost; a class without blanks is suppressed.

    Classes that are hidden together blank the columns in which they differ. A set that passes costs its
    records times the weights of these columns; suppressing a class costs its records times all weights.
    """
    weights = np.array(problem.weights)
    number = len(part)
    members = (np.arange(1 << number)[1:, None] >> np.arange(number)) & 1 == 1  # (sets, classes)
    codes = [part.codes(column) for column in range(len(weights))]
    differ = np.stack([_differ(members, column) for column in codes])  # (columns, sets)
    together = _together(part, members)
    cost = np.where(
        problem.violations(Classes(together, problem.sensitive_info)),
        np.inf,
        together.sizes * (weights @ differ),
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
        values, inverse = np.unique(entries.codes, return_inverse=True)
        table = np.zeros((len(part), len(values)))
        table[entries.rows, inverse] = entries.counts
        sums = (bits @ table).astype(np.int64)
        rows, columns = np.nonzero(sums)
        sensitive[name] = SensitiveCounts(
            (rows << entries.bits) | values[columns], sums[rows, columns], entries.bits
        )
    sizes = (bits @ part.sizes).astype(np.int64)
    return of_sizes(sizes, sensitive)


def _partition(cost: FloatArray, lost: IntArray, number: int, check: Callable[[], None]) -> list[int]:
    """Partition classes into sets of least total cost; among ties, of fewest suppressed records.

    Index `s` of the arrays is the set whose classes are the bits of s + 1.
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
        ties = inside[costs <= costs.min() * (1 + _EQUAL)]
        best = int(ties[np.argmin(lost[ties - 1] + gone[whole ^ ties])])
        choice[whole] = best
        total[whole] = cost[best - 1] + total[whole ^ best]
        gone[whole] = lost[best - 1] + gone[whole ^ best]
    sets_chosen, left = [], (1 << number) - 1
    while left:
        sets_chosen.append(int(choice[left]) - 1)
        left ^= int(choice[left])
    return sets_chosen


def _greedy(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find blanks (columns, classes) that hide many records at low cost; small sets come first."""
    columns = len(part.fields)
    blanks = np.zeros((columns, len(part)), np.bool_)
    left, rows = part, np.arange(len(part))  # the classes not hidden yet, and their positions in the part
    ranked: list[tuple[int, ...]] = [()]
    for size in range(1, columns + 1):
        judged = []
        for chosen in _sets(columns, size, ranked):
            check()
            classes, hides = _hidden(problem, left, chosen)
            judged.append((int(left.sizes[hides].sum()), classes, chosen))
        ranked = [chosen for _, _, chosen in sorted(judged, key=lambda trial: (-trial[0], *trial[1:]))]
        queue = [
            (-_worth(problem, hidden, chosen), chosen, len(rows)) for hidden, _, chosen in judged if hidden
        ]
        heapify(queue)
        while queue:
            worth, chosen, known = heappop(queue)
            _, hides = _hidden(problem, left, chosen)
            if known != len(rows):  # other classes were hidden since, so the worth may be lower
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
    """Return the number of hidden records per weight of the blanked columns."""
    return hidden / max(sum(problem.weights[column] for column in chosen), _EQUAL)


def _sets(columns: int, size: int, ranked: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all sets of `size` columns, or the best smaller sets extended by a column."""
    if comb(columns, size) <= _SETS:
        return list(combinations(range(columns), size))
    extended: dict[tuple[int, ...], None] = {}
    for smaller in ranked:
        for column in range(columns):
            if column not in smaller:
                extended[tuple(sorted((*smaller, column)))] = None
        if len(extended) >= _SETS:
            break
    return list(extended)


def _hidden(problem: Problem, left: Counts, chosen: Sequence[int]) -> tuple[int, BoolArray]:
    """Return the number of classes after blanking some columns, and the rows whose class then passes."""
    of = numbered(_without(left, chosen))
    fails = problem.violations(Classes(gathered(left, of), problem.sensitive_info))
    return len(fails), ~fails[of]


def _without(counts: Counts, columns: Sequence[int]) -> IntArray:
    """Return the keys of combinations without some columns."""
    clear = np.full((len(counts.keys), 1), -1)
    for column in columns:
        field = counts.fields[column]
        clear[field.word] &= ~(field.mask << field.shift)
    keys: IntArray = counts.keys & clear
    return keys


def refined(evaluate: Evaluator, at_node: Evaluation) -> Evaluation:
    """Recode suppressed records and lower levels class by class; never worse than the node.

    If recoding the suppressed records would cost more, they stay suppressed.
    """
    for recode_suppressed in (True, False):
        levels, gone = lower_levels(
            evaluate.problem, at_node.node, recode_suppressed=recode_suppressed, check=evaluate.check_time
        )
        node = _one_node(evaluate.problem, levels, gone)
        if node == at_node.node:
            return at_node
        if node is not None:
            judged = evaluate(node)
        else:
            judged = evaluate.recoding(recoding_of(evaluate.problem, levels, gone), at_node.node)
        if judged.acceptable and not below(at_node.loss, judged.loss):
            return _instead(at_node, judged)
    return at_node


def _one_node(
    problem: Problem,
    levels: IntArray,  # (columns, combinations)
    gone: BoolArray,  # (combinations,)
) -> Node | None:
    """Return the node that has the same release, or None."""
    kept = levels[:, ~gone]
    if not kept.size or (kept != kept[:, :1]).any():
        return None
    node = tuple(int(level) for level in kept[:, 0])
    if node not in problem.lattice:
        return None
    of = numbered(keys_at(problem, np.repeat(kept[:, :1], levels.shape[1], axis=1)))
    refused = problem.violations(problem.classes(node))  # both number classes in order of appearance
    return node if np.array_equal(refused[of], gone) else None


def hidden(evaluate: Evaluator, at_node: Evaluation, *, wildcards: bool = False) -> Evaluation:
    """Blank a few cells of suppressed records instead of suppressing them, if that hides them.

    With `wildcards`, a blank matches every value.
    """
    problem = evaluate.problem
    if wildcards:
        _refuse_stars(problem, at_node.node)
    search = blanked_any if wildcards else blanked
    blanks, gone = search(problem, at_node.node, check=evaluate.check_time)
    levels = np.repeat(np.array(at_node.node)[:, None], len(problem.counts), axis=1)
    recoding = recoding_of(problem, levels, gone, blanks, wildcards=wildcards)
    judged = evaluate.recoding(recoding, at_node.node)
    return _instead(at_node, judged) if judged.acceptable and blanks.any() else at_node


def _refuse_stars(problem: Problem, node: Node) -> None:
    """Raise CannotHonour if a label of some records has the text of a blank that matches every value."""
    for hierarchy, level in zip(problem.hierarchies, node, strict=True):
        if TOP in hierarchy.labels[level] and len(hierarchy.labels[level]) > 1:
            raise CannotHonour(
                f"cells: any writes a blank as {TOP}, and column {hierarchy.name!r} has this label for some "
                f"records at level {level}.",
                advice=[Change(action="Rename the label"), Change(action="Use cells: true")],
            )


def _instead(at_node: Evaluation, judged: Evaluation) -> Evaluation:
    """Replace the result but keep the work of the search; only acceptability is proven."""
    return replace(
        judged,
        proven=Guarantee.ACCEPTABLE,
        candidates=at_node.candidates,
        evaluated_candidates=at_node.evaluated_candidates,
        work=at_node.work,
    )


def recoding_of(
    problem: Problem,
    levels: IntArray,  # (columns, combinations)
    suppressed: BoolArray,  # (combinations,)
    blanks: BoolArray | None = None,  # (columns, combinations)
    *,
    wildcards: bool = False,
) -> Recoding:
    """Recode every combination to the levels that are given for it, and blank some cells."""
    column_groups, codes = [], []
    for column, hierarchy in enumerate(problem.hierarchies):
        blank = None if blanks is None else blanks[column]
        groups, maps = of_levels(
            hierarchy,
            problem.value_counts[column],
            np.unique(levels[column]).tolist(),
            bounds=hierarchy.name in problem.as_bounds,
            blanks=blank is not None and bool(blank.any()),
            star=wildcards,
        )
        values = problem.counts.codes(column)
        groups_of_rows = np.empty(len(values), np.int64)
        for level, map_ in maps.items():
            here = levels[column] == level
            groups_of_rows[here] = map_[values[here]]
        if blank is not None and groups.blank is not None:
            groups_of_rows[blank] = groups.blank
        column_groups.append(groups)
        codes.append(groups_of_rows)
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    regions = regions_of(problem.counts, codes, suppressed)
    return replace(Recoding.from_regions(names, column_groups, regions), wildcards=wildcards)
