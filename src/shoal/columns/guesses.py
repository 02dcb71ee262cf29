"""Guesses: what a column seems to contain, from its name and the counts of its values.

A column that is not recognized is treated as a quasi-identifier to be safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.columns.evidence import (
    NEARLY_UNIQUE,
    differ_by_case_or_spaces,
    empty_rows,
    form_of,
    has_blanks,
    nearly_unique,
    unclear_commas,
    unknown_codes,
    written_as_amounts,
    written_as_key,
    written_as_numbered_key,
    written_as_opaque_key,
)
from shoal.columns.identifiers import Finding, found_within, looks_like, possible_identifier, unique_code
from shoal.columns.kinds import ColumnFacts, Kind, classify
from shoal.columns.names import is_postcode, name_persons
from shoal.columns.natural import (
    natural_hierarchy,
    number_hierarchy,
    short_postcodes,
    uncovered_note,
    unknown_postcodes,
)
from shoal.columns.person_key import (
    NOT_KEYS,
    Evidence,
    PersonKey,
    evidence_for,
    find_person_key,
    is_lifelong,
    may_be_key,
    may_be_shaped,
)
from shoal.core.contracts import AS_IS, Engine, Role
from shoal.core.counts.counts import Counts, Domain, missing_records
from shoal.core.hierarchy.builder import COMMA
from shoal.core.hierarchy.dates import begins_with_month
from shoal.errors import EmptyTable


@dataclass(frozen=True)
class Guess:
    """What a column seems to be."""

    column: str
    kind: str  # how the values are written: number, date, time, code, category, empty
    distinct: int
    distinct_share: float  # of the records
    missing: int
    unique_share: float  # share of the records whose value no other record has
    separation: float  # share of the pairs of records that differ in the column
    role: Role
    reason: str
    hierarchy: Any
    column_kind: Kind = Kind.CATEGORY  # what the column is about
    recognized: bool = True  # its role follows from its name or its values
    identifier: Finding | None = None  # the Safe Harbor identifier that it looks like
    possible_identifier: Finding | None = None  # what its name may mean; there is no other evidence
    chosen: bool = False  # the user chose the role
    needed: bool = False  # known to outsiders and needed by the analyst
    max_level: int | None = None  # the highest level at which two labels remain
    duplicate: bool = False  # removed, because another column has the same information
    column_notes: tuple[str, ...] = ()  # other notes on the column
    hierarchy_note: str | None = None  # how the hierarchy reads dates or countries
    nearly_unique: bool = False  # nearly every value occurs once
    written_as_key: bool = False  # the values are whole numbers, or codes that contain digits
    written_as_amounts: bool = False  # the values are whole numbers with many gaps between them
    written_as_opaque_key: bool = False  # the values are UUIDs or hashes
    written_as_numbered_key: bool = False  # the values are a common prefix and numbers of one length
    person_key: PersonKey | None = None  # set if the column distinguishes persons who have several rows

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the column, with the note on its hierarchy only if it is a quasi-identifier."""
        if self.hierarchy_note is None or self.role is not Role.QUASI_IDENTIFIER:
            return self.column_notes
        return (*self.column_notes, self.hierarchy_note)

    @property
    def values(self) -> int:
        """The number of distinct values; null counts as a value."""
        return self.distinct + bool(self.missing)

    def agreement(self, records: int) -> float:
        """Return the probability that two records, drawn with replacement, have the same value."""
        return 1 - self.separation * (records - 1) / records

    def with_role(self, role: Role) -> Guess:
        """Return the guess with a role that the user chose."""
        if role is self.role:
            return self
        reason = f"your choice; {NEARLY_UNIQUE}" if self.nearly_unique and role in AS_IS else "your choice"
        return replace(self, role=role, reason=reason, chosen=True)


def guess_columns(
    engine: Engine,
    table: Any,
    known: Mapping[str, tuple[Counts, Domain]] | None = None,
    *,
    with_hierarchy: bool = True,
) -> Iterator[tuple[Guess, Counts, Domain]]:
    """Guess the kind and role of every column of an open table; columns in `known` are not counted again."""
    names = engine.columns(table)
    known = known or {}
    persons = name_persons(names)
    fresh = engine.count_each(table, [name for name in names if name not in known])
    blank = True  # whether every column so far has empty cells
    for name in names:
        counts, domain = known[name] if name in known else next(fresh)
        if not counts.records:
            raise EmptyTable
        guess = guess_column(name, counts, domain, persons=persons, with_hierarchy=with_hierarchy)
        blank = blank and has_blanks(domain)
        if blank and name == names[-1]:
            guess = replace(guess, column_notes=(*guess.column_notes, *empty_rows(engine, table)))
        yield guess, counts, domain


def guess_column(
    name: str, counts: Counts, domain: Domain, *, persons: bool = False, with_hierarchy: bool = True
) -> Guess:
    """Guess the kind and role of a column; `persons`: another column certainly has names of persons."""
    texts = [text for text in domain.texts if text is not None]
    unknown = unknown_codes(texts)
    if is_postcode(name):
        unknown = unknown_postcodes(texts, unknown)
    known, records_of_known = _known(domain, counts.totals(0, len(domain)).tolist(), unknown)
    form = form_of(name, known, records_of_known)
    null = missing_records(counts, domain)
    unique = int((counts.sizes == 1).sum())
    filled = counts.records - null
    is_nearly_unique = nearly_unique(unique, filled)
    finding = looks_like(name, known, records=counts.records, persons=persons)
    classification = classify(ColumnFacts(name, known, form.written, filled, is_nearly_unique, finding))
    facts = name, classification.kind, known, records_of_known, unknown
    hierarchy: Any = natural_hierarchy(*facts, form=form)[1] if with_hierarchy else None
    role, reason = classification.role, classification.reason
    if is_nearly_unique and classification.kind is Kind.KEY and role is Role.IDENTIFIER:
        finding = finding or unique_code()
    elif is_nearly_unique and role in AS_IS:
        reason += f"; {NEARLY_UNIQUE}"
    possible = None if finding else possible_identifier(name, known)
    return Guess(
        column=name,
        kind=form.written,
        distinct=len(texts),
        distinct_share=len(texts) / counts.records,
        missing=null,
        unique_share=unique / counts.records,
        nearly_unique=is_nearly_unique,
        written_as_key=written_as_key(known),
        written_as_amounts=written_as_amounts(known),
        written_as_opaque_key=written_as_opaque_key(known),
        written_as_numbered_key=written_as_numbered_key(known),
        separation=_separation(counts),
        role=role or Role.QUASI_IDENTIFIER,
        reason=reason,
        recognized=role is not None,
        hierarchy=hierarchy,
        column_kind=classification.kind,
        identifier=finding,
        possible_identifier=possible,
        column_notes=(
            *_free_text(name, possible),
            *_notes(name, form.written, known, role is Role.IDENTIFIER),
        ),
        hierarchy_note=uncovered_note(name, hierarchy, known, records_of_known),
    )


def _known(domain: Domain, totals: list[int], unknown: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the values other than null and codes for unknown, and the number of records of each."""
    left_out = {None, *unknown}
    if left_out.isdisjoint(domain.texts):
        return list(domain.texts), totals  # type: ignore[arg-type]
    pairs = zip(domain.texts, totals, strict=True)
    remaining = [(text, number) for text, number in pairs if text is not None and text not in left_out]
    return [text for text, _ in remaining], [number for _, number in remaining]


def _free_text(name: str, possible: Finding | None) -> Iterator[str]:
    """Yield a note if the name means free text, but too few values differ for an identifier."""
    if possible and possible.kind == "text":
        yield (
            f"Column {name!r} is {possible.reason}: see that it holds none, or give it the role identifier, "
            "which removes it."
        )


def _notes(name: str, kind: str, texts: Sequence[str], removed: bool) -> Iterator[str]:
    """Yield notes on ambiguous values; no note contains a value."""
    if kind == "date" and begins_with_month(texts) is None:
        yield (
            f"Column {name!r} has dates that may begin with the day or with the month. The day is taken: if "
            "it is the month, write %m before %d in its format."
        )
    if kind == "category" and unclear_commas(texts):
        numbers = number_hierarchy(texts, [1] * len(texts), COMMA) or {}
        widths = numbers.get("intervals", [1, 2, 4])
        yield (
            f"Column {name!r} may hold numbers, but its commas may be decimal signs or group digits. If "
            "they are decimal signs, give it bands, as hierarchy: {intervals: "
            f"{widths}, decimal: ','}}. If they separate thousands, remove them from the table."
        )
    if is_postcode(name) and short_postcodes(texts):
        yield (
            f"Column {name!r} has codes that are at least two digits shorter than others. They get zeros "
            "before them, as postcodes that lost theirs: if they mean unknown, name them under `unknown`."
        )
    if removed or kind not in ("category", "code"):
        return
    contents = " and ".join(found_within(texts))
    if contents:
        yield (
            f"Column {name!r} has values that seem to hold {contents}: make the column an identifier, which "
            "removes it, or remove them from its values."
        )
    if differ_by_case_or_spaces(texts):
        yield (
            f"Column {name!r} has values that differ only by case or by spaces around them. They count as "
            "different, also where a model asks for different values: correct them in the table."
        )
    elif any(text != text.strip() for text in texts):
        yield f"Column {name!r} has values with spaces around them, which are part of the value: remove them."


def _separation(counts: Counts) -> float:
    records = counts.records
    pairs = records * (records - 1)
    return 1 - int((counts.sizes * (counts.sizes - 1)).sum()) / pairs if pairs else 0.0


def mark_person_key(engine: Engine, table: Any, guesses: Sequence[Guess], records: int) -> list[Guess]:
    """Mark the column that distinguishes persons; if the evidence is strong, make it an identifier.

    The table is read again only if a column with repeated values may be a key of persons.
    """
    lifelong = any(is_lifelong(guess.column) for guess in guesses)
    order = sorted(guesses, key=lambda guess: (guess.role is not Role.IDENTIFIER, -guess.distinct))
    candidates = {guess.column: _evidence(guess, records, lifelong=lifelong) for guess in order}
    agreement = {guess.column: _agreement(guess, records) for guess in guesses}
    likely = {column: evidence for column, evidence in candidates.items() if evidence is not None}
    key = find_person_key(engine, table, likely, agreement, records)
    return [_marked(guess, key) if key and guess.column == key.column else guess for guess in guesses]


def _marked(guess: Guess, key: PersonKey) -> Guess:
    if not key.certain:
        return replace(guess, person_key=key)
    return replace(
        guess, role=Role.IDENTIFIER, column_kind=Kind.KEY, reason="tells persons apart", person_key=key
    )


def _evidence(guess: Guess, records: int, *, lifelong: bool) -> Evidence | None:
    """Return what suggests that a column is a key of persons with several rows.

    `lifelong`: whether the table has a column such as sex, which never changes. Without one, the form of the
    values is no evidence.
    """
    rows = records - guess.missing
    if not 1 < guess.distinct < rows:
        return None
    identifier = guess.role is Role.IDENTIFIER and guess.column_kind not in NOT_KEYS
    identifier = identifier and not guess.written_as_amounts
    shaped = guess.written_as_key and may_be_shaped(guess.column, guess.column_kind)
    shaped = shaped and (lifelong or identifier)
    evidence = evidence_for(
        guess.column,
        identifier=identifier,
        finding=guess.identifier,
        key_shaped=shaped,
        opaque=guess.written_as_opaque_key,
        numbered=guess.written_as_numbered_key,
    )
    if evidence in (Evidence.PERSON_KEY, Evidence.ID) or may_be_key(guess.distinct, rows):
        return evidence
    return None


def _agreement(guess: Guess, records: int) -> float:
    """Return the probability that two records have the same value, if neither is empty."""
    rows = records - guess.missing
    if rows < 2:
        return 1.0
    equal_pairs = (1 - guess.separation) * records * (records - 1) - guess.missing * (guess.missing - 1)
    return min(1.0, max(0.0, equal_pairs / (rows * (rows - 1))))


def person_key_of(guesses: Sequence[Guess], roles: Mapping[str, str] | None = None) -> PersonKey | None:
    """Return the key that distinguishes persons, unless its role (guessed or in `roles`) excludes it."""
    roles = roles or {}
    for guess in guesses:
        if (
            guess.person_key
            and guess.person_key.certain
            and roles.get(guess.column, guess.role) != Role.QUASI_IDENTIFIER
        ):
            return guess.person_key
    return None
