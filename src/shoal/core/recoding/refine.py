"""Refine a node: recode or blank suppressed records, and lower levels class by class.

A blank counts as a value: records are in the same class if their visible values are equal and their blanks
are in the same columns. If few classes are refused, dynamic programming over sets of these classes finds the
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
from shoal.core.recoding.groups import groups_of_levels
from shoal.core.recoding.lowering import keys_at, lower_levels
from shoal.core.recoding.recoding import Recoding, regions_of
from shoal.errors import CannotHonour
from shoal.wording import Change

_MAX_EXACT_CLASSES = 12  # maximum number of refused classes for which all sets of them are evaluated
_MAX_CELLS = 4_000_000  # maximum number of sets times sensitive values in memory during this evaluation
_MAX_SETS = 500  # maximum number of sets of columns that are tried for each size
_EQUAL = 1e-12  # costs with at most this relative difference are a tie


def blanked(problem: Problem, node: Node, *, check: Callable[[], None]) -> tuple[BoolArray, BoolArray]:
    """Choose cells to blank so that suppressed records can be released.

    Return the blanks, (columns, combinations), and the combinations that stay suppressed, (combinations,).
    `check` is called regularly and may raise. With a population, nothing is blanked.
    """
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    class_of = numbered(keys_at(problem, levels))  # `numbered` and `classes` use the same order
    counts = problem.classes(node).counts
    refused = problem.violations(Classes(counts, problem.sensitive_info))
    blanks = np.zeros((len(node), len(counts)), np.bool_)
    if not refused.any() or counts.population is not None:
        return blanks[:, class_of], refused[class_of]
    flagged = np.flatnonzero(refused)
    flagged = flagged[np.lexsort(counts.keys[:, flagged])]  # independent of the order of the combinations
    part = selected(counts, flagged)
    blanks[:, flagged] = (
        _optimal_blanks(problem, part, check) if _is_small(part) else _greedy_blanks(problem, part, check)
    )
    suppressed = _suppress_unhidden(problem, counts, blanks, refused)
    return blanks[:, class_of], suppressed[class_of]


def blanked_any(problem: Problem, node: Node, *, check: Callable[[], None]) -> tuple[BoolArray, BoolArray]:
    """Choose cells like `blanked`, for blanks that match every value: see `shoal.core.recoding.wildcards`.

    A record is hidden by its blanks if at least k released records have its visible values before any cell is
    blanked. These records still match it afterwards. Blanks of other records are not needed for this.
    """
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    class_of = numbered(keys_at(problem, levels))  # `numbered` and `classes` use the same order
    counts = problem.classes(node).counts
    refused = problem.violations(Classes(counts, problem.sensitive_info))
    kept = np.ones(len(counts), np.bool_)
    while True:  # until no remaining record depends on suppressed ones
        kept_indices = np.flatnonzero(kept)
        blanks = np.zeros((len(node), len(counts)), np.bool_)
        blanks[:, kept_indices] = _cheapest_blanks(
            problem, selected(counts, kept_indices), refused[kept_indices], check
        )
        unhidden = refused & kept & ~blanks.any(axis=0)
        if not unhidden.any():
            return blanks[:, class_of], ~kept[class_of]
        if counts.sizes[unhidden].sum() >= problem.least_size:  # enough to hide each other by blanks alone
            blanks[:, unhidden] = True
            return blanks[:, class_of], ~kept[class_of]
        kept &= ~unhidden


def _cheapest_blanks(
    problem: Problem, counts: Counts, refused: BoolArray, check: Callable[[], None]
) -> BoolArray:
    """Find the cheapest blanks (columns, classes) of each refused class, with at least one column visible."""
    columns, weights = len(counts.fields), np.array(problem.weights)
    blanks = np.zeros((columns, len(counts)), np.bool_)
    cost = np.where(refused, np.inf, 0.0)
    ranked: list[tuple[int, ...]] = [()]
    for size in range(1, columns):
        if not (cost > np.sort(weights)[:size].sum()).any():  # no set of this size is cheaper
            break
        results = []
        for chosen in _candidate_sets(columns, size, ranked):
            check()
            weight = float(weights[list(chosen)].sum())
            class_of = numbered(_without(counts, chosen))
            passes = np.bincount(class_of, counts.sizes)[class_of] >= problem.least_size
            results.append((int(counts.sizes[refused & passes].sum()), chosen))
            better = passes & (cost > weight)
            cost[better] = weight
            blanks[:, better] = False
            blanks[np.array(chosen)[:, None], better] = True
        ranked = [chosen for _, chosen in sorted(results, key=lambda trial: (-trial[0], trial[1]))]
    return blanks


def _suppress_unhidden(problem: Problem, counts: Counts, blanks: BoolArray, refused: BoolArray) -> BoolArray:
    """Suppress classes that blanks do not hide, and remove their blanks in place."""
    suppressed = refused & ~blanks.any(axis=0)
    while True:
        class_of = numbered(_visible_keys(counts, blanks, suppressed))
        classes = Classes(gathered(counts, class_of), problem.sensitive_info)
        suppressed_classes = classes.nothing()
        suppressed_classes[class_of[suppressed]] = True
        failing = (problem.violations(classes) & ~suppressed_classes)[class_of] & blanks.any(axis=0)
        if not failing.any():
            break
        suppressed |= failing
        blanks[:, failing] = False
    if not all(model.holds(classes, suppressed_classes) for model in problem.models):
        blanks[:] = False
        return refused
    return suppressed


def _visible_keys(counts: Counts, blanks: BoolArray, suppressed: BoolArray) -> IntArray:
    """Pack the visible groups of each class and the positions of its blanks."""
    groups = [np.where(blank, 0, counts.codes(column)) for column, blank in enumerate(blanks)]
    return packed([*groups, *blanks, suppressed])


def _is_small(part: Counts) -> bool:
    """Return whether all sets of these classes can be evaluated."""
    sets = 1 << min(len(part), _MAX_EXACT_CLASSES + 1)
    values = max([len(np.unique(entries.codes)) for entries in part.sensitive.values()], default=1)
    return len(part) <= _MAX_EXACT_CLASSES and sets * values <= _MAX_CELLS


def _optimal_blanks(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find the blanks (columns, classes) of least cost; a class without blanks is suppressed.

    The classes of a set are merged by blanking the columns in which they differ. If the merged class passes,
    the cost of the set is its number of records times the weights of these columns. Suppressing a class costs
    its number of records times all weights.
    """
    weights = np.array(problem.weights)
    count = len(part)
    members = (np.arange(1 << count)[1:, None] >> np.arange(count)) & 1 == 1  # (sets, classes)
    codes = [part.codes(column) for column in range(len(weights))]
    differ = np.stack([_has_differences(members, column) for column in codes])  # (columns, sets)
    merged = _merge_members(part, members)
    cost = np.where(
        problem.violations(Classes(merged, problem.sensitive_info)),
        np.inf,
        merged.sizes * (weights @ differ),
    )
    suppressed_records = np.zeros(len(cost), np.int64)
    single_classes = (1 << np.arange(count)) - 1
    cost[single_classes], suppressed_records[single_classes] = part.sizes * weights.sum(), part.sizes
    blanks = np.zeros((len(weights), count), np.bool_)
    for chosen in _partition(cost, suppressed_records, count, check):
        if not suppressed_records[chosen]:
            blanks[:, members[chosen]] = differ[:, [chosen]]
    return blanks


def _has_differences(members: BoolArray, codes: IntArray) -> BoolArray:
    """Mark the sets whose members have different codes."""
    least = np.where(members, codes, codes.max()).min(axis=1)
    differ: BoolArray = least != np.where(members, codes, codes.min()).max(axis=1)
    return differ


def _merge_members(part: Counts, members: BoolArray) -> Counts:
    """Merge the members of each set into one class."""
    memberships = members.astype(np.float64)  # sums of counts are exact
    sensitive = {}
    for name, entries in part.sensitive.items():
        values, inverse = np.unique(entries.codes, return_inverse=True)
        table = np.zeros((len(part), len(values)))
        table[entries.rows, inverse] = entries.counts
        sums = (memberships @ table).astype(np.int64)
        rows, columns = np.nonzero(sums)
        sensitive[name] = SensitiveCounts(
            (rows << entries.bits) | values[columns], sums[rows, columns], entries.bits
        )
    sizes = (memberships @ part.sizes).astype(np.int64)
    return of_sizes(sizes, sensitive)


def _partition(
    cost: FloatArray, suppressed_records: IntArray, number: int, check: Callable[[], None]
) -> list[int]:
    """Partition classes into sets of least total cost; among ties, with the fewest suppressed records.

    Index `s` of the arrays stands for the set whose classes are the bits of s + 1.
    """
    sets = np.arange(1, 1 << number)
    lowest = sets & -sets
    options = {1 << n: sets[(lowest == 1 << n) & np.isfinite(cost)] for n in range(number)}
    total, total_suppressed = np.zeros(1 << number), np.zeros(1 << number, np.int64)
    choice = np.zeros(1 << number, np.int64)
    for target in range(1, 1 << number):
        if target % 256 == 0:
            check()
        candidates = options[target & -target]
        candidates = candidates[candidates & ~target == 0]
        costs = cost[candidates - 1] + total[target ^ candidates]
        ties = candidates[costs <= costs.min() * (1 + _EQUAL)]
        best = int(ties[np.argmin(suppressed_records[ties - 1] + total_suppressed[target ^ ties])])
        choice[target] = best
        total[target] = cost[best - 1] + total[target ^ best]
        total_suppressed[target] = suppressed_records[best - 1] + total_suppressed[target ^ best]
    sets_chosen, remaining = [], (1 << number) - 1
    while remaining:
        sets_chosen.append(int(choice[remaining]) - 1)
        remaining ^= int(choice[remaining])
    return sets_chosen


def _greedy_blanks(problem: Problem, part: Counts, check: Callable[[], None]) -> BoolArray:
    """Find blanks (columns, classes) that hide many records at low cost; small sets come first."""
    columns = len(part.fields)
    blanks = np.zeros((columns, len(part)), np.bool_)
    unhidden, rows = part, np.arange(len(part))  # the classes not hidden yet, and their positions in the part
    ranked: list[tuple[int, ...]] = [()]
    for size in range(1, columns + 1):
        results = []
        for chosen in _candidate_sets(columns, size, ranked):
            check()
            classes, is_hidden = _try_blanks(problem, unhidden, chosen)
            results.append((int(unhidden.sizes[is_hidden].sum()), classes, chosen))
        ranked = [chosen for _, _, chosen in sorted(results, key=lambda trial: (-trial[0], *trial[1:]))]
        queue = [
            (-_hidden_per_weight(problem, hidden, chosen), chosen, len(rows))
            for hidden, _, chosen in results
            if hidden
        ]
        heapify(queue)
        while queue:
            worth, chosen, unhidden_then = heappop(queue)
            _, is_hidden = _try_blanks(problem, unhidden, chosen)
            if unhidden_then != len(rows):  # classes were hidden after `worth` was computed
                worth = -_hidden_per_weight(problem, int(unhidden.sizes[is_hidden].sum()), chosen)
                if worth:
                    heappush(queue, (worth, chosen, len(rows)))
                continue
            check()
            blanks[np.array(chosen)[:, None], rows[is_hidden]] = True
            unhidden, rows = selected(unhidden, np.flatnonzero(~is_hidden)), rows[~is_hidden]
        if unhidden.records < problem.least_size:
            break
    return blanks


def _hidden_per_weight(problem: Problem, hidden: int, chosen: Sequence[int]) -> float:
    """Return the number of hidden records per weight of the blanked columns."""
    return hidden / max(sum(problem.weights[column] for column in chosen), _EQUAL)


def _candidate_sets(columns: int, size: int, ranked: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return all sets of `size` columns; if there are too many, the best smaller sets plus one column."""
    if comb(columns, size) <= _MAX_SETS:
        return list(combinations(range(columns), size))
    extended: dict[tuple[int, ...], None] = {}
    for smaller in ranked:
        for column in range(columns):
            if column not in smaller:
                extended[tuple(sorted((*smaller, column)))] = None
        if len(extended) >= _MAX_SETS:
            break
    return list(extended)


def _try_blanks(problem: Problem, unhidden: Counts, chosen: Sequence[int]) -> tuple[int, BoolArray]:
    """Return the number of classes after blanking some columns, and the rows whose class then passes."""
    class_of = numbered(_without(unhidden, chosen))
    failing = problem.violations(Classes(gathered(unhidden, class_of), problem.sensitive_info))
    return len(failing), ~failing[class_of]


def _without(counts: Counts, columns: Sequence[int]) -> IntArray:
    """Return the keys of combinations without some columns."""
    clear = np.full((len(counts.keys), 1), -1)
    for column in columns:
        field = counts.fields[column]
        clear[field.word] &= ~(field.mask << field.shift)
    keys: IntArray = counts.keys & clear
    return keys


def refined(evaluate: Evaluator, at_node: Evaluation) -> Evaluation:
    """Recode suppressed records, and lower levels class by class; the result is never worse than the node.

    If recoding the suppressed records increases the loss, they stay suppressed.
    """
    for recode_suppressed in (True, False):
        levels, suppressed = lower_levels(
            evaluate.problem, at_node.node, recode_suppressed=recode_suppressed, check=evaluate.check_time
        )
        node = _equivalent_node(evaluate.problem, levels, suppressed)
        if node == at_node.node:
            return at_node
        if node is not None:
            evaluation = evaluate(node)
        else:
            evaluation = evaluate.recoding(recoding_of(evaluate.problem, levels, suppressed), at_node.node)
        if evaluation.acceptable and not below(at_node.loss, evaluation.loss):
            return _replace_result(at_node, evaluation)
    return at_node


def _equivalent_node(
    problem: Problem,
    levels: IntArray,  # (columns, combinations)
    suppressed: BoolArray,  # (combinations,)
) -> Node | None:
    """Return the node whose release is the same, or None."""
    kept = levels[:, ~suppressed]
    if not kept.size or (kept != kept[:, :1]).any():
        return None
    node = tuple(int(level) for level in kept[:, 0])
    if node not in problem.lattice:
        return None
    class_of = numbered(keys_at(problem, np.repeat(kept[:, :1], levels.shape[1], axis=1)))
    refused = problem.violations(problem.classes(node))  # `numbered` and `classes` use the same order
    return node if np.array_equal(refused[class_of], suppressed) else None


def hidden(evaluate: Evaluator, at_node: Evaluation, *, wildcards: bool = False) -> Evaluation:
    """Blank a few cells of suppressed records, and release those that are hidden by this.

    With `wildcards`, a blank matches every value.
    """
    problem = evaluate.problem
    if wildcards:
        _refuse_stars(problem, at_node.node)
    search = blanked_any if wildcards else blanked
    blanks, suppressed = search(problem, at_node.node, check=evaluate.check_time)
    levels = np.repeat(np.array(at_node.node)[:, None], len(problem.counts), axis=1)
    recoding = recoding_of(problem, levels, suppressed, blanks, wildcards=wildcards)
    evaluation = evaluate.recoding(recoding, at_node.node)
    return _replace_result(at_node, evaluation) if evaluation.acceptable and blanks.any() else at_node


def _refuse_stars(problem: Problem, node: Node) -> None:
    """Raise CannotHonour if a label of some records has the text of a blank that matches every value."""
    for hierarchy, level in zip(problem.hierarchies, node, strict=True):
        if TOP in hierarchy.labels[level] and len(hierarchy.labels[level]) > 1:
            raise CannotHonour(
                f"cells: any writes a blank as {TOP}, and column {hierarchy.name!r} has this label for some "
                f"records at level {level}.",
                advice=[Change(action="Rename the label"), Change(action="Use cells: true")],
            )


def _replace_result(at_node: Evaluation, evaluation: Evaluation) -> Evaluation:
    """Return the new evaluation with the candidates and the work of the search; it proves no optimality."""
    return replace(
        evaluation,
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
    """Return the recoding of every combination to its levels, with some cells blanked."""
    column_groups, codes = [], []
    for column, hierarchy in enumerate(problem.hierarchies):
        blank = None if blanks is None else blanks[column]
        groups, maps = groups_of_levels(
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
            at_level = levels[column] == level
            groups_of_rows[at_level] = map_[values[at_level]]
        if blank is not None and groups.blank is not None:
            groups_of_rows[blank] = groups.blank
        column_groups.append(groups)
        codes.append(groups_of_rows)
    names = [hierarchy.name for hierarchy in problem.hierarchies]
    regions = regions_of(problem.counts, codes, suppressed)
    return replace(Recoding.from_regions(names, column_groups, regions), wildcards=wildcards)
