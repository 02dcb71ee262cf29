"""Guesses: what a column seems to be, from its name and the counts of its values.

What is not recognized is a quasi-identifier, for that is the safe side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain, missing_records
from shoal.core.schema import Role
from shoal.errors import DataError
from shoal.identifiers.looks import looks_like
from shoal.identifiers.names import roles_of, words_of
from shoal.identifiers.rule import IDENTIFIERS, Finding, unique_code
from shoal.policies.value_kinds import kind_of, unknown_codes


@dataclass(frozen=True)
class Guess:
    """What a column seems to be."""

    column: str
    kind: str  # number, date, time, code, category, empty
    distinct: int
    distinct_share: float  # of the records
    missing: int
    unique_share: float  # records whose value nobody else has
    separation: float  # pairs of records that differ in the column
    role: Role
    reason: str
    hierarchy: Any
    identifier: Finding | None = None  # which of the 18 identifiers of Safe Harbor it looks like
    chosen: bool = False  # the role is the user's own

    def with_role(self, role: Role) -> Guess:
        """Return the guess with the user's own role."""
        changed = role is not self.role
        return replace(self, role=role, reason="your choice", chosen=True) if changed else self


def check_header(columns: Sequence[str]) -> None:
    """Refuse a table whose first line is a record; its values are not shown."""
    if any(re.fullmatch(r"[\d.,:/ -]*\d[\d.,:/ -]*", name) for name in columns):
        message = (
            "The first line holds numbers or dates, so it seems to be a record. Add a line of column names."
        )
        raise DataError(message)


def guess_columns(
    engine: Engine, table: Any, known: Mapping[str, tuple[Counts, Domain]] | None = None
) -> Iterator[tuple[Guess, Counts, Domain]]:
    """Guess what every column of an open table is; those whose counts are known are not counted again."""
    names = engine.columns(table)
    known = known or {}
    fresh = engine.count_each(table, [name for name in names if name not in known])
    for name in names:
        counts, domain = known[name] if name in known else next(fresh)
        if not counts.records:
            message = "The table has no rows."
            raise DataError(message)
        yield guess_column(name, counts, domain), counts, domain


def guess_column(name: str, counts: Counts, domain: Domain) -> Guess:
    """Guess what a column is from the counts of its values."""
    texts = [text for text in domain.texts if text is not None]
    unknown = unknown_codes(texts)
    known = [text for text in texts if text not in unknown]
    kind, hierarchy = kind_of(known, unknown)
    null = missing_records(counts, domain)
    unique = int((counts.sizes == 1).sum()) / counts.records
    finding = looks_like(name, known, records=counts.records)
    role, reason = _role(name, finding, len(texts), counts.records)
    if not any(map(str.strip, texts)):
        role, reason = _role_of_nothing(name, role)
    if role is None and unique > 0.9 and counts.records > 20 and kind in ("code", "category"):
        finding = finding or unique_code()
        role, reason = Role.IDENTIFIER, "nearly every value occurs once"
    elif role is Role.SENSITIVE and unique > 0.9 and counts.records > 20:
        reason += "; nearly every value occurs once, and whoever knows it finds the record: make it coarser"
    return Guess(
        column=name,
        kind=kind,
        distinct=len(texts),
        distinct_share=len(texts) / counts.records,
        missing=null,
        unique_share=unique,
        separation=_separation(counts),
        role=role or Role.QUASI_IDENTIFIER,
        reason=reason,
        hierarchy=hierarchy,
        identifier=finding,
    )


def _separation(counts: Counts) -> float:
    records = counts.records
    pairs = records * (records - 1)
    return 1 - int((counts.sizes * (counts.sizes - 1)).sum()) / pairs if pairs else 0.0


def _role(name: str, finding: Finding | None, distinct: int, records: int) -> tuple[Role | None, str]:
    """Return a role with the reason, or none where nothing tells it."""
    if finding and finding.direct and finding.by != "name":
        return Role.IDENTIFIER, finding.reason
    for role, what in roles_of(name):
        if role is not Role.IDENTIFIER or distinct >= records / 4:  # an identifier tells persons apart
            return role, f"named as {what}"
    if finding and finding.direct and finding.sure:
        return Role.IDENTIFIER, finding.reason
    return None, "not recognized; this is the safe side"


def _role_of_nothing(name: str, role: Role | None) -> tuple[Role | None, str]:
    """Return the role of a column that is empty in every record: that of its name, for it may be filled."""
    word = words_of(name, weak=False)
    if word is not None and IDENTIFIERS[word.letter].direct:
        return Role.IDENTIFIER, "empty in every record, but named as an identifier"
    for own, what in roles_of(name):
        if own is role:
            return role, f"empty in every record, but named as {what}"
    return None, "empty in every record: it costs nothing here, and is safe once it is filled"
