"""Matching: apply a saved recoding by regions to new data.

A combination is assigned to the narrowest class that covers all its values. Combinations that no class covers
are suppressed, and so are classes that a model refuses in the new data. The *slot* of a value is its position
among the sorted values of its column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.compilation import compiled
from shoal.core.contracts import Guarantee
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.core.problem import Problem
from shoal.core.recoding.groups import Cover, Groups, ReleasedLabels, groups_of_levels, with_blank
from shoal.core.recoding.ranges import Arrangement, arranged, arrangements
from shoal.core.recoding.recoding import Recoding, regions_of
from shoal.errors import Infeasible
from shoal.wording import Change, plural


@compiled
def first_cover(
    slots: IntArray,  # (columns, rows)
    groups: IntArray,  # (columns, classes)
    column: int,  # the column of the lookup tables `starts` and `candidates`
    starts: IntArray,  # as `classes_at` returns them
    candidates: IntArray,
    extents: IntArray,  # this and the next two are the last parameters of `covers`
    scaled: IntArray,
    members: BoolArray,
) -> IntArray:
    """Return the first class whose groups cover all slots of a row, or -1."""
    columns, rows = slots.shape
    result = np.full(rows, -1, np.int64)
    for row in range(rows):
        slot = slots[column, row]
        for n in range(starts[slot], starts[slot + 1]):
            candidate = candidates[n]
            covered = True
            for other in range(columns):
                if not covers(other, slots[other, row], groups[other, candidate], extents, scaled, members):
                    covered = False
                    break
            if covered:
                result[row] = candidate
                break
    return result


@compiled
def classes_at(
    column: int, slots: int, groups: IntArray, extents: IntArray, scaled: IntArray, members: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return the classes that cover each slot of a column, slot by slot, and where those of each slot start.

    `groups` has the shape (columns, classes).
    """
    starts = np.zeros(slots + 1, np.int64)
    for candidate in range(groups.shape[1]):
        for slot in range(slots):
            if covers(column, slot, groups[column, candidate], extents, scaled, members):
                starts[slot + 1] += 1
    starts = np.cumsum(starts)
    classes = np.empty(starts[-1], np.int64)
    filled = starts.copy()
    for candidate in range(groups.shape[1]):
        for slot in range(slots):
            if covers(column, slot, groups[column, candidate], extents, scaled, members):
                classes[filled[slot]] = candidate
                filled[slot] += 1
    return starts, classes


@compiled
def covers(
    column: int,
    slot: int,
    group: int,
    extents: IntArray,  # (4, groups): first slot, last slot, 1 if slots off the scale are covered, set or -1
    scaled: IntArray,  # (columns,): the number of slots on the scale
    members: BoolArray,  # (sets, slots)
) -> bool:
    """Return whether a group of a column covers a slot."""
    if extents[3, group] >= 0:
        return bool(members[extents[3, group], slot])
    if extents[0, group] <= slot <= extents[1, group]:
        return True
    return bool(extents[2, group] != 0 and slot >= scaled[column])


@dataclass(frozen=True)
class Saved:
    """A recoding by regions as a recipe stores it: the groups of every column, and the classes."""

    labels: Mapping[str, ReleasedLabels | None]  # column -> released column -> its content for each group
    covers: Mapping[str, Sequence[Cover]]
    classes: IntArray | None  # (columns, classes): the group of each column; None: all combinations of groups


def saved(recoding: Recoding) -> Saved:
    """Return a recoding by regions in the form in which it can be applied to new data."""
    regions = recoding.regions
    if regions is None:
        raise TypeError
    labels: dict[str, ReleasedLabels | None] = {}
    covers = {}
    classes = []
    kept = regions.groups if recoding.uniform else regions.groups[:, ~regions.suppressed]
    for name, column_groups, codes in zip(recoding.columns, recoding.column_groups, kept, strict=True):
        used, renumbered = np.unique(codes, return_inverse=True)
        shown = column_groups.labels
        labels[name] = shown and {column: [values[code] for code in used] for column, values in shown.items()}
        covers[name] = [column_groups.cover(code) for code in used.tolist()]
        classes.append(renumbered)
    return Saved(labels, covers, None if recoding.uniform else np.stack(classes))


def matched(evaluate: Evaluator, saved_recoding: Saved) -> Evaluation:
    """Apply a saved recoding to a problem; raise Infeasible if too many records would be suppressed."""
    problem = evaluate.problem
    columns = [
        _ColumnCovers.of(arrangement, saved_recoding.covers[arrangement.hierarchy.name])
        for arrangement in arrangements(problem, ties=True)
    ]
    column_groups = [
        column.groups(saved_recoding.labels[column.name], saved_recoding.covers[column.name])
        for column in columns
    ]
    if saved_recoding.classes is None:
        codes = [
            column.group_of_values()[problem.counts.codes(index)] for index, column in enumerate(columns)
        ]
        uncovered = np.min(codes, axis=0) < 0
        codes = [np.maximum(groups_of_rows, 0) for groups_of_rows in codes]
    else:
        triples = zip(column_groups, problem.hierarchies, saved_recoding.classes, strict=True)
        shares = [groups.shares(hierarchy)[codes] for groups, hierarchy, codes in triples]
        narrowest_first = np.argsort(np.sum(shares, axis=0), kind="stable")
        classes = saved_recoding.classes[:, narrowest_first]
        chosen = _class_of_combinations(problem, columns, classes)
        uncovered = chosen < 0
        codes = list(classes[:, np.where(uncovered, 0, chosen)])
    for index, column in enumerate(columns):
        if saved_recoding.labels[column.name] is None:  # released unchanged: each value is a group
            hierarchy, counts = problem.hierarchies[index], problem.value_counts[index]
            column_groups[index], _ = groups_of_levels(hierarchy, counts, [0], bounds=False, blanks=False)
            codes[index] = problem.counts.codes(index)
    if uncovered.any():  # suppressed records get the group of all values
        codes = [
            np.where(uncovered, len(groups.leaves), groups_of_rows)
            for groups, groups_of_rows in zip(column_groups, codes, strict=True)
        ]
        pairs = zip(column_groups, problem.hierarchies, strict=True)
        column_groups = [
            with_blank(groups, hierarchy, problem.records, shown=False) for groups, hierarchy in pairs
        ]
    regions = regions_of(problem.counts, codes, uncovered)
    recoding = Recoding.from_regions([column.name for column in columns], column_groups, regions)
    recoding = replace(recoding, uniform=saved_recoding.classes is None)
    suppressed = problem.violations(problem.classes_of(recoding)) | regions.suppressed
    evaluation = evaluate.recoding(replace(recoding, regions=replace(regions, suppressed=suppressed)))
    if not evaluation.acceptable:
        raise _too_many_suppressed(problem, evaluation, int(problem.counts.sizes[uncovered].sum()))
    return evaluate.finish(evaluation, Guarantee.ACCEPTABLE)


def covering(hierarchy: Hierarchy, covers: Sequence[Cover]) -> BoolArray:
    """Return which groups cover the only value of a hierarchy, (groups,)."""
    column = _ColumnCovers.of(arranged(hierarchy, np.ones(1, np.int64)), covers)
    covered: BoolArray = column.value_counts > 0
    return covered


@dataclass(frozen=True)
class _ColumnCovers:
    """The slots of a column that each group covers: a range or a set."""

    arrangement: Arrangement
    low: IntArray  # (groups,)
    high: IntArray  # (groups,): less than `low` if the group covers no range
    missing: BoolArray  # (groups,): whether values off the scale are covered, too
    sets: IntArray  # (groups,): the row of `members`, -1 if the group is not a set
    members: BoolArray  # (sets, slots)

    @classmethod
    def of(cls, arrangement: Arrangement, covers: Sequence[Cover]) -> _ColumnCovers:
        hierarchy = arrangement.hierarchy
        labels = enumerate(hierarchy.labels[0])
        codes = {None if code == hierarchy.null else text: code for code, text in labels}
        slots = arrangement.slots
        ends, sets = [], []
        members: list[BoolArray] = []
        for cover in covers:
            slots_of_values = [
                int(slots[codes[value]]) for value in cover.get("values", ()) if value in codes
            ]
            sets.append(len(members) if len(slots_of_values) > 1 else -1)
            if len(slots_of_values) > 1:
                members.append(np.isin(np.arange(len(slots)), slots_of_values))
            if "values" not in cover and ("labels" in cover or "label" in cover):
                inside = arrangement.inside(cover)
                first, last = arrangement.stretch(cover)
                if "labels" in cover or inside.sum() < last - first + 1:  # other groups lie in between
                    sets[-1] = len(members)
                    members.append(inside)
            ends.append(
                (slots_of_values[0], slots_of_values[0])
                if len(slots_of_values) == 1
                else arrangement.stretch(cover)
            )
        low, high = np.array(ends).T
        missing = np.array([bool(cover.get("missing")) for cover in covers])
        rows = np.stack(members) if members else np.zeros((0, len(slots)), np.bool_)
        return cls(arrangement, low, high, missing, np.array(sets), rows)

    @property
    def name(self) -> str:
        return self.arrangement.hierarchy.name

    @property
    def value_counts(self) -> IntArray:
        """The number of values that each group covers."""
        off_scale = len(self.arrangement.values) - self.arrangement.scaled
        between = np.maximum(0, self.high - self.low + 1) + np.where(self.missing, off_scale, 0)
        return np.where(self.sets >= 0, self._per_group(self.members.sum(axis=1)), between)

    def _per_group(self, numbers: IntArray) -> IntArray:
        """Map numbers per set to groups; 0 for a group that is not a set."""
        return np.append(numbers, 0)[self.sets]  # index -1 selects the appended 0

    def group_of_values(self) -> IntArray:
        """Return the first group that covers each value, or -1."""
        group_of = np.full(len(self.arrangement.values), -1)
        for group in reversed(range(len(self.low))):
            if self.sets[group] >= 0:
                group_of[self.members[self.sets[group]]] = group
            else:
                group_of[self.low[group] : self.high[group] + 1] = group
                if self.missing[group]:
                    group_of[self.arrangement.scaled :] = group
        return group_of[self.arrangement.slots]

    def groups(self, labels: ReleasedLabels | None, covers: Sequence[Cover]) -> Groups:
        """Describe the groups for metrics."""
        counts = self.arrangement.counts[self.arrangement.values]
        before = np.concatenate(([0], np.cumsum(counts)))
        records = np.where(self.high >= self.low, before[self.high + 1] - before[self.low], 0)
        records += np.where(self.missing, before[-1] - before[self.arrangement.scaled], 0)
        records = np.where(self.sets >= 0, self._per_group((self.members * counts).sum(axis=1)), records)
        return Groups(labels, np.maximum(1, self.value_counts), records, covers.__getitem__)


def _class_of_combinations(problem: Problem, columns: Sequence[_ColumnCovers], classes: IntArray) -> IntArray:
    """Return the first class that covers each combination, or -1."""
    lookup_column = int(
        np.argmin([column.value_counts[codes].sum() for column, codes in zip(columns, classes, strict=True)])
    )
    slots = np.stack([c.arrangement.slots[problem.counts.codes(n)] for n, c in enumerate(columns)])
    group_offsets = np.cumsum([0, *[len(column.low) for column in columns]])
    extents = np.concatenate([np.stack((c.low, c.high, c.missing, c.sets)) for c in columns], axis=1)
    scaled = np.array([column.arrangement.scaled for column in columns])
    members = np.zeros(
        (sum(len(c.members) for c in columns), max(c.members.shape[1] for c in columns)), np.bool_
    )
    sets_before = 0
    for index, column in enumerate(columns):
        members[sets_before : sets_before + len(column.members), : column.members.shape[1]] = column.members
        own_groups = slice(group_offsets[index], group_offsets[index + 1])
        extents[3, own_groups] += np.where(column.sets >= 0, sets_before, 0)
        sets_before += len(column.members)
    groups = classes + group_offsets[:-1, None]
    tables = (extents, scaled, members)
    starts, candidates = classes_at(
        lookup_column, len(columns[lookup_column].arrangement.values), groups, *tables
    )
    assigned: IntArray = first_cover(slots, groups, lookup_column, starts, candidates, *tables)
    return assigned


def _too_many_suppressed(problem: Problem, evaluation: Evaluation, uncovered: int) -> Infeasible:
    advice = Change(action="Anonymize this table without a recipe")
    if evaluation.suppressed < problem.records:
        records = plural(evaluation.suppressed, "record")
        action = f"Anonymize this table without a recipe; a suppression limit of {records} works"
        advice = Change("suppression_limit", evaluation.suppressed, action)
    return Infeasible(
        f"{evaluation.suppressed:,} of {problem.records:,} records would have to be suppressed "
        f"({uncovered:,} of them have values that no class of the recipe covers), and the limit is "
        f"{problem.limit:,}.",
        [advice],
        heading="The recipe no longer holds",
        code="recipe-outdated",
    )
