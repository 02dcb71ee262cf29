"""Guesses: what a column seems to be, from its name and the counts of its values.

What is not recognized is a quasi-identifier, for that is the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.assessing.empty_rows import empty_rows, has_blanks
from shoal.assessing.nearly_unique import NEARLY_UNIQUE, nearly_unique
from shoal.core.builder import COMMA
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain, missing_records
from shoal.core.dates import begins_with_month, has_short_year
from shoal.core.schema import AS_IS, Role
from shoal.errors import DataError
from shoal.identifiers.looks import looks_like, may_be
from shoal.identifiers.names import is_address, is_person, is_postcode, name_persons, roles_of, words_of
from shoal.identifiers.patterns import mostly
from shoal.identifiers.rule import IDENTIFIERS, Finding, unique_code
from shoal.identifiers.values import is_date
from shoal.identifiers.within import found_within
from shoal.policies.value_kinds import (
    alike,
    bands,
    kind_of,
    postcodes,
    short_postcodes,
    unclear_commas,
    unknown_codes,
    unknown_postcodes,
)


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
    perhaps: Finding | None = None  # which of them its name may mean, where no more tells it
    chosen: bool = False  # the role is the user's own
    notes: tuple[str, ...] = ()  # what else to know of it
    nearly_unique: bool = False  # nearly every value occurs once

    def with_role(self, role: Role) -> Guess:
        """Return the guess with the user's own role."""
        if role is self.role:
            return self
        reason = f"your choice; {NEARLY_UNIQUE}" if self.nearly_unique and role in AS_IS else "your choice"
        return replace(self, role=role, reason=reason, chosen=True)


def guess_columns(
    engine: Engine, table: Any, known: Mapping[str, tuple[Counts, Domain]] | None = None
) -> Iterator[tuple[Guess, Counts, Domain]]:
    """Guess what every column of an open table is; those whose counts are known are not counted again."""
    names = engine.columns(table)
    known = known or {}
    persons = name_persons(names)
    fresh = engine.count_each(table, [name for name in names if name not in known])
    blank = True  # every column so far is empty in some row
    for name in names:
        counts, domain = known[name] if name in known else next(fresh)
        if not counts.records:
            message = "The table has no rows. Give one that has records."
            raise DataError(message)
        found = guess_column(name, counts, domain, persons=persons)
        blank = blank and has_blanks(domain)
        if blank and name == names[-1]:
            found = replace(found, notes=(*found.notes, *empty_rows(engine, table)))
        yield found, counts, domain


def guess_column(name: str, counts: Counts, domain: Domain, *, persons: bool = False) -> Guess:
    """Guess what a column is from the counts of its values; `persons`: another is surely a person's name."""
    texts = [text for text in domain.texts if text is not None]
    unknown = unknown_codes(texts)
    if is_postcode(name):
        unknown = unknown_postcodes(texts, unknown)
    known = [text for text in texts if text not in unknown]
    kind, hierarchy = kind_of(known, unknown)
    codes = postcodes(known, unknown) if is_postcode(name) else None
    if codes:
        kind, hierarchy = "code", codes
    null = missing_records(counts, domain)
    lone = int((counts.sizes == 1).sum())
    alone = nearly_unique(lone, counts.records)
    finding = looks_like(name, known, records=counts.records, persons=persons)
    role, reason = _role(name, finding, len(texts), counts.records)
    if not any(map(str.strip, texts)):
        role, reason = _role_of_nothing(name, role)
    if role is None and alone and kind in ("code", "category"):
        finding = finding or unique_code()
        role, reason = Role.IDENTIFIER, "nearly every value occurs once"
    elif alone and role in AS_IS:
        reason += f"; {NEARLY_UNIQUE}"
    perhaps = None if finding else may_be(name, known)
    return Guess(
        column=name,
        kind=kind,
        distinct=len(texts),
        distinct_share=len(texts) / counts.records,
        missing=null,
        unique_share=lone / counts.records,
        nearly_unique=alone,
        separation=_separation(counts),
        role=role or Role.QUASI_IDENTIFIER,
        reason=reason,
        hierarchy=hierarchy,
        identifier=finding,
        perhaps=perhaps,
        notes=(*_free_text(name, perhaps), *_notes(name, kind, known, role is Role.IDENTIFIER)),
    )


def _free_text(name: str, perhaps: Finding | None) -> Iterator[str]:
    """Say that a name means free text, where too few values differ to make it an identifier."""
    if perhaps and perhaps.kind == "text":
        yield (
            f"Column {name!r} is {perhaps.reason}: see that it holds none, or give it the role identifier, "
            "which removes it."
        )


def _notes(name: str, kind: str, texts: Sequence[str], removed: bool) -> Iterator[str]:
    """Yield what a column's values make uncertain, without one of them."""
    if kind == "date" and begins_with_month(texts) is None:
        yield (
            f"Column {name!r} has dates that may begin with the day or with the month. The day is taken: if "
            "it is the month, write %m before %d in its format."
        )
    if kind == "category" and unclear_commas(texts):
        yield (
            f"Column {name!r} may hold numbers, but its commas may be decimal signs or part thousands. If "
            "they are decimal signs, give it bands, as hierarchy: {intervals: "
            f"{bands(texts, COMMA)['intervals']}, decimal: ','}}. If they part thousands, leave them out of "
            "the table."
        )
    if kind == "category" and any(map(has_short_year, texts)) and mostly(texts, _is_day, 0.5):
        yield (
            f"Column {name!r} has dates whose years have two digits, which can be of two centuries. Write "
            "the years with four digits in the table, then give it a hierarchy of dates, as {dates: [month, "
            'year], format: "%d.%m.%Y"}.'
        )
    if is_postcode(name) and short_postcodes(texts):
        yield (
            f"Column {name!r} has codes that are at least two digits shorter than others. They get zeros "
            "before them, as postcodes that lost theirs: if they mean unknown, name them under `unknown`."
        )
    if removed or kind not in ("category", "code"):
        return
    held = " and ".join(found_within(texts))
    if held:
        yield (
            f"Column {name!r} has values that seem to hold {held}: make it an identifier, which removes "
            "it, or take them out of it."
        )
    if alike(texts):
        yield (
            f"Column {name!r} has values that differ only by case or by spaces around them. They count as "
            "different, also where a model asks for different values: mend them in the table."
        )
    elif any(text != text.strip() for text in texts):
        yield f"Column {name!r} has values with spaces around them, which are part of the value: mend them."


def _is_day(text: str) -> bool:
    return has_short_year(text) or is_date(text)


def _separation(counts: Counts) -> float:
    records = counts.records
    pairs = records * (records - 1)
    return 1 - int((counts.sizes * (counts.sizes - 1)).sum()) / pairs if pairs else 0.0


def _role(name: str, finding: Finding | None, distinct: int, records: int) -> tuple[Role | None, str]:
    """Return a role with the reason, or none where nothing tells it."""
    if finding and finding.direct and finding.by != "name":
        return Role.IDENTIFIER, finding.reason
    if finding and is_address(name):
        return Role.IDENTIFIER, "named as a person's address"
    for role, what in roles_of(name):
        if role is not Role.IDENTIFIER or distinct >= records / 4:  # an identifier tells persons apart
            return role, f"named as {what}"
    if finding and finding.direct:
        return Role.IDENTIFIER, finding.reason
    return None, "not recognized; this is the safe side"


def _role_of_nothing(name: str, role: Role | None) -> tuple[Role | None, str]:
    """Return the role of a column that is empty in every record: that of its name, for it may be filled."""
    word = words_of(name, weak=False)
    if is_address(name) or is_person(name) or (word is not None and IDENTIFIERS[word.letter].direct):
        return Role.IDENTIFIER, "empty in every record, but named as an identifier"
    for own, what in roles_of(name):
        if own is role:
            return role, f"empty in every record, but named as {what}"
    return None, "empty in every record: it costs nothing here, and is safe once it is filled"
