"""Sides: a table and its release, each counted once, with the values that each label covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.errors import HierarchyError
from shoal.policy.policy import Policy
from shoal.workflow.release.spreadsheet import plain_cells
from shoal.workflow.session import OpenTable
from shoal.workflow.utility.covers import ColumnValues, Covers, covers_of
from shoal.workflow.utility.labels import NOTHING, CellText, blank_of, label_of_ends, placed
from shoal.workflow.utility.spread import LabelSpread


@dataclass(frozen=True)
class Tally:
    """The counted combinations of some columns. A band may be released as two columns, its ends."""

    counts: Counts = field(repr=False)
    places: Mapping[str, tuple[int, ...]]  # for each column, its fields in `counts`
    labels: Mapping[str, tuple[CellText, ...]]  # for each column, the text of each code
    joined: Mapping[str, IntArray]  # for a column released as two ends, the code of each pair of ends
    blanks: Mapping[str, int]  # for some columns, the code of the cells that suppression has emptied

    @property
    def records(self) -> int:
        """The number of records."""
        return self.counts.records

    def without_blanks(self, blanks: Mapping[str, int]) -> Tally:
        """Return a copy in which `blanks`, the codes of empty cells, do not count as labels."""
        return replace(self, blanks=blanks)

    def read(self, names: Sequence[str], most: int | None = None) -> tuple[list[IntArray], IntArray]:
        """Return the codes of some columns and the number of records of each combination, without blanks.

        If an engine holds the combinations and `most` is given, at most that many are sampled.
        """
        if not self.counts.remote:
            codes, sizes = [self._column_codes[name] for name in names], self.counts.sizes
        else:
            fields = [index for name in names for index in self.places[name]]
            counts = self.counts.project(fields)
            counts = counts.in_memory() if not counts.remote or most is None else counts.sample(most)
            sizes, codes, offset = counts.sizes, [], 0
            for name in names:
                codes.append(self._codes(counts, name, range(offset, offset + len(self.places[name]))))
                offset += len(self.places[name])
        kept_rows: BoolArray | None = None
        for name, column_codes in zip(names, codes, strict=True):
            if name in self.blanks:
                not_blank = column_codes != self.blanks[name]
                kept_rows = not_blank if kept_rows is None else kept_rows & not_blank
        if kept_rows is None or kept_rows.all():
            return codes, sizes
        return [column_codes[kept_rows] for column_codes in codes], sizes[kept_rows]

    def totals(self, name: str) -> IntArray:
        """Count the records of each label of a column, without blanks."""
        (codes,), sizes = self.read([name])
        return np.bincount(codes, sizes, len(self.labels[name])).astype(np.int64)

    @cached_property
    def _column_codes(self) -> dict[str, IntArray]:
        return {name: self._codes(self.counts, name, fields) for name, fields in self.places.items()}

    def _codes(self, counts: Counts, name: str, fields: Sequence[int]) -> IntArray:
        if name not in self.joined:
            return counts.codes(fields[0])
        width = self.joined[name].shape[1]
        codes: IntArray = self.joined[name].reshape(-1)[
            counts.codes(fields[0]) * width + counts.codes(fields[1])
        ]
        return codes


def tallied(table: OpenTable, columns: Mapping[str, Sequence[str]], before: Tally | None = None) -> Tally:
    """Count columns of an open table; a column may be read from two columns of the table, its ends.

    `before` is the tally of the input when a release is counted. The release's escaping for spreadsheets is
    undone, except for values that the input contains in the escaped form.
    """
    parts_to_count = list(dict.fromkeys(name for parts in columns.values() for name in parts))
    counts, domains = table.count(parts_to_count)
    fields = {name: tuple(map(parts_to_count.index, parts)) for name, parts in columns.items()}
    labels, joined = {}, {}
    for name, parts in columns.items():
        original_labels = None if before is None else before.labels[name]
        texts = [
            domains[part].texts
            if original_labels is None
            else tuple(plain_cells(domains[part].texts, original_labels))
            for part in parts
        ]
        if len(parts) == 1:
            labels[name] = texts[0]
        else:
            labels[name], joined[name] = _bands(counts, fields[name], texts)
    return Tally(counts, fields, labels, joined, {})


def _bands(
    counts: Counts, fields: Sequence[int], ends: Sequence[tuple[CellText, ...]]
) -> tuple[tuple[CellText, ...], IntArray]:
    """Assign a code and a label to each pair of ends that occurs."""
    low, high = ends
    pairs = counts.project(fields).in_memory()
    code = np.full((len(low), len(high)), -1, np.int64)
    known: dict[CellText, int] = {}
    for a, b in zip(pairs.codes(0).tolist(), pairs.codes(1).tolist(), strict=True):
        code[a, b] = known.setdefault(label_of_ends(low[a], high[b]), len(known))
    return tuple(known), code


@dataclass(frozen=True)
class Sides:
    """The counts of the same columns in a table and in its release."""

    before: Tally
    after: Tally
    spreads: Mapping[str, LabelSpread]  # for each column, the values that each label covers
    totals: Mapping[str, tuple[IntArray, IntArray]]  # the records of each value, and of each label
    unknown: Mapping[str, frozenset[CellText]]  # texts for missing values, and codes for unknown

    @property
    def both(self) -> tuple[Tally, Tally]:
        """The input, then the release."""
        return self.before, self.after


def sides_of(table: OpenTable, release: OpenTable, policy: Policy, names: Sequence[str]) -> Sides:
    """Count some columns of two open tables, and find the values that each label covers."""
    before = tallied(table, {name: (name,) for name in names})
    after = tallied(release, {name: policy.released(name) for name in names}, before)
    return sides_between(before, after, policy, {name: _rule(policy, name, before) for name in names})


def sides_between(
    before: Tally, after: Tally, policy: Policy, rules: Mapping[str, Hierarchy | None]
) -> Sides:
    """Find the values that each label covers; `rules` has each column's hierarchy, or None."""
    names = list(rules)
    blanks = {name: blank_of(before.labels[name], after.labels[name], rules[name]) for name in names}
    after = after.without_blanks(
        {name: code for name, code in blanks.items() if code is not None and len(after.labels[name]) > 1}
    )
    unknown = {name: _unknown(policy, name, before, after) for name in names}
    totals = {name: (before.totals(name), after.totals(name)) for name in names}
    spreads = {}
    for name in names:
        labels = list(after.labels[name])
        if name in after.blanks:
            labels[after.blanks[name]] = _NO_LABEL
        column = ColumnValues(
            before.labels[name],
            unknown[name],
            rules[name],
            policy.builder(name) if rules[name] else None,
            bounds=len(policy.released(name)) > 1,
        )
        spreads[name] = LabelSpread(_covers(column, labels, *totals[name]), *totals[name])
    return Sides(before, after, spreads, totals, unknown)


def _covers(column: ColumnValues, labels: Sequence[CellText], before: IntArray, after: IntArray) -> Covers:
    """Find the label of each value. If labels overlap, find the values that each label covers instead."""
    codes = placed(column.texts, before, labels, after, column.hierarchy, column.unknown)
    if codes is not None:
        return Covers.of_codes(codes, len(labels))
    return covers_of(column, labels, before, after)


def _unknown(policy: Policy, name: str, *tallies: Tally) -> frozenset[CellText]:
    """Return the texts that stand for a missing value, and the codes that the policy lists as `unknown`."""
    written = policy.columns[name].hierarchy
    if written is None:
        return NOTHING
    is_unknown = parse(name, written).is_unknown
    texts = {text for tally in tallies for text in tally.labels[name] if text is not None}
    return NOTHING | {text for text in texts if is_unknown(text)}


def _rule(policy: Policy, name: str, tally: Tally) -> Hierarchy | None:
    """Return a quasi-identifier's hierarchy; None if it has none or its hierarchy does not fit the values."""
    column = policy.columns[name]
    if column.role is not Role.QUASI_IDENTIFIER or column.hierarchy is None:
        return None
    texts = tally.labels[name]
    try:
        return policy.builder(name).bind(Domain(name, texts, texts), tally.totals(name))
    except HierarchyError:
        return None


_NO_LABEL = "\0"  # replaces empty cells that are not a label; no value equals it
