"""Notes: what a release lets through as it is, and its custodian should look at again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.assessing.empty_rows import empty_rows, has_blanks
from shoal.assessing.nearly_unique import NEARLY_UNIQUE, nearly_unique
from shoal.core.classes import own_name
from shoal.core.contracts import Engine, Look
from shoal.core.counts import Counts, Domain
from shoal.core.schema import AS_IS
from shoal.errors import DataError
from shoal.identifiers.within import FEW, WITHIN
from shoal.policy import Policy
from shoal.sensitive_table import separated
from shoal.spreadsheet import FORMULA, is_formula

SAFER = "--spreadsheet-safe (spreadsheet_safe=True) keeps it from that."


@dataclass(frozen=True)
class Seen:
    """What is seen of the columns of a table that are released as they are."""

    policy: Policy
    records: int
    alone: Mapping[str, int]  # by column: the values that occur once
    looks: Mapping[str, Look]
    empty: Sequence[str] = ()  # what is said of rows that hold nothing

    def notes(self) -> tuple[str, ...]:
        """Say which columns can identify by themselves, and that rows hold nothing."""
        told = (
            f"{name!r} is released as it is: {what}."
            for name in self.policy.roles.roles
            for what in (*self._unique(name), *self._identifiers(name))
        )
        return (*self.empty, *told)

    def formulas(self, labels: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Say in which columns cells begin like formulas; of those that are recoded, by their labels."""
        begin = [name for name in self.policy.columns if self._begins(name, labels)]
        if not begin:
            return ()
        return (
            f"Cells of {', '.join(map(repr, begin))} begin like formulas, which a spreadsheet runs. {SAFER}",
        )

    def _unique(self, name: str) -> list[str]:
        return [NEARLY_UNIQUE] if nearly_unique(self.alone.get(name, 0), self.records) else []

    def _identifiers(self, name: str) -> list[str]:
        found = self.looks[name].found if name in self.looks else ()
        told = [
            f"{number:,} seem to hold {words}"
            for words, number in zip(WITHIN, found, strict=False)
            if number >= FEW
        ]
        advice = "make it an identifier, or take them out of it"
        return [f"of its different values in the input, {' and '.join(told)}: {advice}"] if told else []

    def _begins(self, name: str, labels: Mapping[str, Sequence[str]]) -> bool:
        if name in self.looks:
            return any(self.looks[name].found[len(WITHIN) :])
        bounds = len(self.policy.released(name)) > 1  # two numbers
        return not bounds and any(map(is_formula, labels.get(name, ())))


def see(
    policy: Policy, engine: Engine, table: Any, counts: Counts, domains: Iterable[Domain], *, formulas: bool
) -> Seen:
    """Look at the columns of an open table that are released as they are, for formulas where these may run.

    What the search needs is counted already; of other columns the engine counts the values that occur once.
    """
    apart = separated(policy)  # is released in groups: no record has a value of its own
    names = [name for name, role in policy.roles.roles.items() if role in AS_IS]
    looks = _looks(engine, table, names, (*WITHIN.values(), *([FORMULA] if formulas else [])))
    alone = {name: look.alone for name, look in looks.items()}
    alone |= {
        name: int((np.bincount(entries.codes, entries.counts) == 1).sum())
        for name, entries in counts.sensitive.items()
        if own_name(name)
    }
    empty = empty_rows(engine, table) if all(map(has_blanks, domains)) else ()
    return Seen(policy, counts.records, {**alone, **({apart: 0} if apart else {})}, looks, empty)


def _looks(engine: Engine, table: Any, names: Sequence[str], patterns: Sequence[str]) -> dict[str, Look]:
    """Look at columns at once; where that fails, at each by itself: no release fails because of a note."""
    with suppress(DataError):
        return engine.look(table, names, patterns)
    looks: dict[str, Look] = {}
    for name in names:
        with suppress(DataError):
            looks |= engine.look(table, [name], patterns)
    return looks
