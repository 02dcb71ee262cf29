"""Matching: a recoding by regions that was found before, put on new data.

A combination goes to the class that covers all its values; of several the narrowest. What no class covers
is suppressed, and so is a class that the models now refuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Guarantee
from shoal.core.cuts import arrangements
from shoal.core.evaluate import Evaluator
from shoal.core.evaluation import Evaluation
from shoal.core.groups import Cover, Groups, Labels, with_blank
from shoal.core.problem import Problem
from shoal.core.ranges import Arrangement
from shoal.core.recoding import Recoding
from shoal.core.regions import regions_of
from shoal.errors import Infeasible, so_many


@dataclass(frozen=True)
class Saved:
    """The groups of every column that some class has, and the classes."""

    labels: Mapping[str, Labels | None]  # column -> released column -> what it holds for each group
    covers: Mapping[str, Sequence[Cover]]
    classes: IntArray | None  # (columns, classes): the group of each column; None: all that there are


def saved(recoding: Recoding) -> Saved:
    """Keep what is needed to put a recoding by regions on new data."""
    regions = recoding.regions
    if regions is None:
        raise TypeError
    labels: dict[str, Labels | None] = {}
    covers = {}
    classes = []
    kept = regions.groups if recoding.uniform else regions.groups[:, ~regions.suppressed]
    for name, about, codes in zip(recoding.columns, recoding.about, kept, strict=True):
        used, own = np.unique(codes, return_inverse=True)
        shown = about.labels
        labels[name] = shown and {column: [values[code] for code in used] for column, values in shown.items()}
        covers[name] = [about.cover(code) for code in used.tolist()]
        classes.append(own)
    return Saved(labels, covers, None if recoding.uniform else np.stack(classes))


def matched(evaluate: Evaluator, before: Saved) -> Evaluation:
    """Recode a problem's combinations as they were before; raise Infeasible where too many fall short."""
    problem = evaluate.problem
    columns = [_Covered.of(one, before.covers[one.hierarchy.name]) for one in arrangements(problem)]
    about = [column.groups(before.labels[column.name], before.covers[column.name]) for column in columns]
    if before.classes is None:
        codes = [column.of_each()[problem.counts.codes(place)] for place, column in enumerate(columns)]
        lost = np.min(codes, axis=0) < 0
        codes = [np.maximum(own, 0) for own in codes]
    else:
        each = zip(about, problem.hierarchies, before.classes, strict=True)
        shares = [groups.shares(hierarchy)[codes] for groups, hierarchy, codes in each]
        classes = before.classes[:, np.argsort(np.sum(shares, axis=0), kind="stable")]  # the narrowest first
        chosen = _assigned(problem, columns, classes)
        lost = chosen < 0
        codes = list(classes[:, np.where(lost, 0, chosen)])
    if lost.any():  # it could be anything
        codes = [np.where(lost, len(groups.leaves), own) for groups, own in zip(about, codes, strict=True)]
        wider = zip(about, problem.hierarchies, strict=True)
        about = [with_blank(groups, hierarchy, problem.records) for groups, hierarchy in wider]
    regions = regions_of(problem.counts, codes, lost)
    recoding = Recoding.from_regions([column.name for column in columns], about, regions)
    recoding = replace(recoding, uniform=before.classes is None)
    gone = problem.violations(problem.classes_of(recoding)) | regions.suppressed
    found = evaluate.recoded(replace(recoding, regions=replace(regions, suppressed=gone)))
    if not found.acceptable:
        raise _falls_short(problem, found, int(problem.counts.sizes[lost].sum()))
    return evaluate.finish(found, Guarantee.ACCEPTABLE)


@dataclass(frozen=True)
class _Covered:
    """Which slots of a column's arrangement each group covers: from one to another, or those of a set."""

    arrangement: Arrangement
    low: IntArray  # (groups,)
    high: IntArray  # (groups,): below `low` where it covers none so
    missing: BoolArray  # (groups,): also what is not on the scale
    sets: IntArray  # (groups,): the row of `held`, -1 where it is no set
    held: BoolArray  # (sets, slots)

    @classmethod
    def of(cls, arrangement: Arrangement, covers: Sequence[Cover]) -> _Covered:
        hierarchy = arrangement.hierarchy
        labels = enumerate(hierarchy.labels[0])
        codes = {None if code == hierarchy.null else text: code for code, text in labels}
        slots = arrangement.slots
        ends, sets = [], []
        held: list[BoolArray] = []
        for cover in covers:
            found = [int(slots[codes[value]]) for value in cover.get("values", ()) if value in codes]
            sets.append(len(held) if len(found) > 1 else -1)
            if len(found) > 1:
                held.append(np.isin(np.arange(len(slots)), found))
            ends.append((found[0], found[0]) if len(found) == 1 else arrangement.stretch(cover))
        low, high = np.array(ends).T
        missing = np.array([bool(cover.get("missing")) for cover in covers])
        rows = np.stack(held) if held else np.zeros((0, len(slots)), np.bool_)
        return cls(arrangement, low, high, missing, np.array(sets), rows)

    @property
    def name(self) -> str:
        """The column."""
        return self.arrangement.hierarchy.name

    @property
    def many(self) -> IntArray:
        """How many values each group covers."""
        off = len(self.arrangement.values) - self.arrangement.scaled
        between = np.maximum(0, self.high - self.low + 1) + np.where(self.missing, off, 0)
        return np.where(self.sets >= 0, self._of_sets(self.held.sum(axis=1)), between)

    def _of_sets(self, numbers: IntArray) -> IntArray:
        """Return, of one number per set, that of each group; 0 where it is no set."""
        return np.append(numbers, 0)[self.sets]  # -1 is the last

    def of_each(self) -> IntArray:
        """Return the first group that covers each value, -1 where none does."""
        found = np.full(len(self.arrangement.values), -1)
        for group in reversed(range(len(self.low))):
            if self.sets[group] >= 0:
                found[self.held[self.sets[group]]] = group
            else:
                found[self.low[group] : self.high[group] + 1] = group
                if self.missing[group]:
                    found[self.arrangement.scaled :] = group
        return found[self.arrangement.slots]

    def groups(self, labels: Labels | None, covers: Sequence[Cover]) -> Groups:
        """Describe the groups for metrics."""
        counts = self.arrangement.counts[self.arrangement.values]
        before = np.concatenate(([0], np.cumsum(counts)))
        records = np.where(self.high >= self.low, before[self.high + 1] - before[self.low], 0)
        records += np.where(self.missing, before[-1] - before[self.arrangement.scaled], 0)
        records = np.where(self.sets >= 0, self._of_sets((self.held * counts).sum(axis=1)), records)
        return Groups(labels, np.maximum(1, self.many), records, covers.__getitem__)


def _assigned(problem: Problem, columns: Sequence[_Covered], classes: IntArray) -> IntArray:
    """Return the first class that covers each combination, -1 where none does."""
    from shoal.core.matching_kernels import classes_at, first_cover

    by = int(np.argmin([column.many[codes].sum() for column, codes in zip(columns, classes, strict=True)]))
    slots = np.stack([c.arrangement.slots[problem.counts.codes(n)] for n, c in enumerate(columns)])
    first = np.cumsum([0, *[len(column.low) for column in columns]])
    ends = np.concatenate([np.stack((c.low, c.high, c.missing, c.sets)) for c in columns], axis=1)
    scaled = np.array([column.arrangement.scaled for column in columns])
    held = np.zeros((sum(len(c.held) for c in columns), max(c.held.shape[1] for c in columns)), np.bool_)
    before = 0
    for place, column in enumerate(columns):
        held[before : before + len(column.held), : column.held.shape[1]] = column.held
        ends[3, first[place] : first[place + 1]] += np.where(column.sets >= 0, before, 0)
        before += len(column.held)
    groups = classes + first[:-1, None]
    tables = (ends, scaled, held)
    starts, at = classes_at(by, len(columns[by].arrangement.values), groups, *tables)
    found: IntArray = first_cover(slots, groups, by, starts, at, *tables)
    return found


def _falls_short(problem: Problem, found: Evaluation, lost: int) -> Infeasible:
    nearest: dict[str, object] = {}
    if found.suppressed < problem.records:
        nearest["suppression_limit"] = found.suppressed
    nearby = f"; a suppression limit of {so_many(found.suppressed, 'record')} would do" if nearest else ""
    message = (
        f"The recipe no longer holds: {found.suppressed:,} of {problem.records:,} records would have to be "
        f"suppressed ({lost:,} of them have values that none of its classes covers), and the limit is "
        f"{problem.limit:,}. Anonymize this table anew{nearby}."
    )
    return Infeasible(message, nearest)
