"""Sides: a table and its release, each counted once, and the label that each value falls into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.analysing.labels import NOTHING, Text, blank_of, placed
from shoal.analysing.tally import Tally, tallied
from shoal.core.arrays import IntArray
from shoal.core.builders import parse
from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.core.hierarchy import Hierarchy
from shoal.core.schema import Role
from shoal.errors import DataError, HierarchyError
from shoal.policy import Policy


@dataclass(frozen=True)
class Sides:
    """The same columns before and after."""

    before: Tally
    after: Tally
    places: Mapping[str, IntArray | None]  # the label of each value, -1: not released; None: cannot be told
    totals: Mapping[str, tuple[IntArray, IntArray]]  # the records of each value, and of each label
    unknown: Mapping[str, frozenset[Text]]  # what stands for a missing value, and the policy's codes for it

    @property
    def both(self) -> tuple[Tally, Tally]:
        """The input, then the release."""
        return self.before, self.after


def sides_of(engine: Engine, table: Any, release: Any, policy: Policy, names: Sequence[str]) -> Sides:
    """Count some columns of two open tables, and find which values fall into which label."""
    before = tallied(engine, table, {name: (name,) for name in names})
    after = tallied(engine, release, {name: policy.released(name) for name in names}, before)
    for side, tally in (("table", before), ("release", after)):
        if not tally.records:
            message = f"The {side} has no rows. Give one that has records."
            raise DataError(message)
    rules = {name: _rule(policy, name, before) for name in names}
    blanks = {name: blank_of(before.labels[name], after.labels[name], rules[name]) for name in names}
    after = after.without_blanks({name: code for name, code in blanks.items() if code is not None})
    unknown = {name: _unknown(policy, name, before, after) for name in names}
    totals = {name: (before.totals(name), after.totals(name)) for name in names}
    places: dict[str, IntArray | None] = {}
    for name in names:
        labels = list(after.labels[name])
        if name in after.blanks:
            labels[after.blanks[name]] = _NO_LABEL
        places[name] = placed(
            before.labels[name], totals[name][0], labels, totals[name][1], rules[name], unknown[name]
        )
    return Sides(before, after, places, totals, unknown)


def _unknown(policy: Policy, name: str, *tallies: Tally) -> frozenset[Text]:
    """Return what stands for a missing value, and the values that are codes named under `unknown`."""
    written = policy.columns[name].hierarchy
    if written is None:
        return NOTHING
    is_unknown = parse(name, written).is_unknown
    texts = {text for tally in tallies for text in tally.labels[name] if text is not None}
    return NOTHING | {text for text in texts if is_unknown(text)}


def _rule(policy: Policy, name: str, tally: Tally) -> Hierarchy | None:
    """Bind a quasi-identifier's hierarchy to its values; None where there is none, or it does not fit."""
    column = policy.columns[name]
    if column.role is not Role.QUASI_IDENTIFIER or column.hierarchy is None:
        return None
    texts = tally.labels[name]
    try:
        return policy.builder(name).bind(Domain(name, texts, texts))
    except HierarchyError:
        return None


_NO_LABEL = "\0"  # stands for empty cells that are no label: no value is like it
