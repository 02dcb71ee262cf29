"""Column kinds: what a column is about, by its name and its values, and the role that follows from this.

`classify` tries the rules in order; the first rule that applies decides. The order follows two principles:

- Values that identify a person (an address, a telephone number) decide, regardless of the name.
- A name alone never causes a column to be released unchanged. A sensitive column is released unchanged only
  if neither another word of its name nor its values suggest a date, an age, a place, a key or free text.

A column that no rule recognizes is treated as a quasi-identifier to be safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shoal.columns import evidence as value_evidence
from shoal.columns.identifiers import IDENTIFIERS, Finding
from shoal.columns.names import (
    is_address,
    is_income,
    is_named_as,
    is_person,
    is_sensitive,
    roles_of,
    words_of,
)
from shoal.columns.values import mostly
from shoal.core.contracts import Role


class Kind(StrEnum):
    """What a column is about."""

    KEY = "key"
    NAME = "name"
    CONTACT = "contact"
    TEXT = "free text"
    DATE = "date"
    AGE = "age"
    PLACE = "place"
    PERSONAL = "personal"  # sex, nationality, education, ...
    HEALTH = "health"  # illness or treatment, and also belief
    INCOME = "income"
    OUTCOME = "outcome"
    CATEGORY = "category"
    COUNT = "count"
    MEASUREMENT = "measurement"
    EMPTY = "empty"


@dataclass(frozen=True)
class ColumnFacts:
    """Properties of a column that determine its classification."""

    name: str
    texts: Sequence[str]  # the distinct values, without nulls and codes for "unknown"
    written: str  # how the values are written: number, date, time, code, category, empty
    records: int  # the number of records that have a value
    nearly_unique: bool
    finding: Finding | None  # which of the 18 identifiers of Safe Harbor it looks like

    @property
    def tells_apart(self) -> bool:
        """Whether the values differ enough to identify persons."""
        return len(self.texts) >= self.records / 4


@dataclass(frozen=True)
class Classification:
    """The kind of a column, its role and the reason. Role None: not recognized, so a quasi-identifier."""

    kind: Kind
    role: Role | None
    reason: str


def classify(facts: ColumnFacts) -> Classification:
    """Return the kind and the role of a column by the first rule that applies."""
    rules = (_empty, _identified, _outranked, _named, _unique)
    return next((classification for rule in rules for classification in rule(facts)), _unrecognized(facts))


def _empty(facts: ColumnFacts) -> Iterator[Classification]:
    """Decide by the name if all records are empty, because the column may be filled later."""
    if any(map(str.strip, facts.texts)):
        return
    word = words_of(facts.name, weak=False)
    if is_address(facts.name) or is_person(facts.name) or (word and IDENTIFIERS[word.letter].direct):
        yield Classification(Kind.EMPTY, Role.IDENTIFIER, "empty in every record, but named as an identifier")
    elif not is_sensitive(facts.name) or any(_is_named(facts.name, kind) for kind in _OUTRANKING):
        reason = "empty in every record: it costs nothing here, and is safe once it is filled"
        named = [what for role, what in roles_of(facts.name) if role is Role.QUASI_IDENTIFIER]
        if named:
            reason = f"empty in every record, but named as {named[0]}"
        yield Classification(Kind.EMPTY, Role.QUASI_IDENTIFIER if named else None, reason)
    else:
        reason = "empty in every record, but named as something that must not be learnt"
        yield Classification(Kind.EMPTY, Role.SENSITIVE, reason)


def _identified(facts: ColumnFacts) -> Iterator[Classification]:
    """Recognize columns that identify a person: by the values, or by a clear name if the values differ."""
    finding = facts.finding
    if finding and finding.direct and finding.by != "name":
        yield Classification(
            _IDENTIFIED.get(finding.identifier.letter, Kind.KEY), Role.IDENTIFIER, finding.reason
        )
    if finding and is_address(facts.name):
        yield Classification(Kind.CONTACT, Role.IDENTIFIER, "named as a person's address")
    if value_evidence.written_as_opaque_key(facts.texts):
        yield Classification(
            Kind.KEY, Role.IDENTIFIER, "the values are UUIDs or hashes, which point at a record"
        )
    if facts.tells_apart:
        for role, what in roles_of(facts.name):
            if role is Role.IDENTIFIER:
                kind = Kind.NAME if "name" in what else Kind.KEY if "number" in what else Kind.CONTACT
                yield Classification(kind, role, f"named as {what}")


_IDENTIFIED = {"A": Kind.NAME, "D": Kind.CONTACT, "E": Kind.CONTACT, "F": Kind.CONTACT, "N": Kind.CONTACT}


def _outranked(facts: ColumnFacts) -> Iterator[Classification]:
    """Recognize dates, ages, places, keys and texts in columns with a sensitive name.

    By their name alone, these would be released unchanged.
    """
    name, texts = facts.name, facts.texts
    if not is_sensitive(name):
        return
    if _is_named(name, "quasi-identifier") and not (is_income(name) and facts.written == "number"):
        kind = _known_kind(facts)
        yield Classification(kind, Role.QUASI_IDENTIFIER, "named as something known from outside")
    if value_evidence.are_flags(texts):
        return
    if facts.tells_apart and _is_named(name, "text"):
        yield Classification(Kind.TEXT, Role.IDENTIFIER, "named as free text, which can hold any identifier")
    quasi = Role.QUASI_IDENTIFIER
    if _is_named(name, "age"):
        yield Classification(Kind.AGE, quasi, "named as an age, which others can know")
    if not is_income(name) and value_evidence.hold_ages(texts):
        yield Classification(Kind.AGE, quasi, "the values are ages, which others can know")
    if _are_dates(facts) or value_evidence.hold_dates(texts):
        yield Classification(Kind.DATE, quasi, "the values are dates or times, which others can know")
    if _is_named(name, "time") and value_evidence.can_be_times(texts):
        yield Classification(Kind.DATE, quasi, "named as a date or a time, which others can know")
    if _is_named(name, "place") or value_evidence.hold_places(texts):
        yield Classification(
            Kind.PLACE, quasi, "named as a place, or as who works there, which others can know"
        )
    if _is_named(name, "state") and value_evidence.are_codes_of_states(texts):
        yield Classification(Kind.PLACE, quasi, "named as a state, which others can know")
    yield from _key_or_code(facts)
    if not is_income(name) and not is_named_as(name, "count"):
        unexpected = value_evidence.unexpected_numbers(texts, facts.records)
        if unexpected:
            kind = Kind.AGE if "ages" in unexpected else Kind.DATE
            yield Classification(kind, quasi, f"{unexpected}, whatever the name says")


def _key_or_code(facts: ColumnFacts) -> Iterator[Classification]:
    """Recognize keys with a sensitive name: also named as keys, or written as keys and nearly unique."""
    if _is_named(facts.name, "key"):
        role = Role.IDENTIFIER if facts.tells_apart else Role.QUASI_IDENTIFIER
        yield Classification(Kind.KEY, role, "named as a key, which points at a record")
    textual = facts.written in ("code", "category")
    if is_income(facts.name):  # amounts also differ in nearly every record
        textual = textual and value_evidence.are_prefixed_keys(facts.texts)
    illness = value_evidence.are_codes_of_illness(facts.texts)
    if facts.nearly_unique and textual and (not illness or value_evidence.are_numbered_codes(facts.texts)):
        yield Classification(Kind.KEY, Role.IDENTIFIER, "nearly every value occurs once")


_OUTRANKING = ("text", "age", "time", "place", "key", "quasi-identifier")


def _is_named(name: str, kind: str) -> bool:
    """Return whether a name contains a word of a kind, or means a Safe Harbor identifier of this kind."""
    if is_named_as(name, kind):
        return True
    word = words_of(name, weak=False)
    return word is not None and (word.letter, word.kind) in _LETTERS.get(kind, ())


_LETTERS = {
    "age": (("C", "age"),),
    "time": (("C", "birth"), ("C", "date"), ("C", "part")),
    "place": (("B", "zip"), ("B", "place")),
}


def _named(facts: ColumnFacts) -> Iterator[Classification]:
    """Classify by a name that is sensitive, known to outsiders, or a weak name of an identifier."""
    for role, what in roles_of(facts.name):
        if role is Role.SENSITIVE:
            kind = Kind.INCOME if is_income(facts.name) else Kind.HEALTH
            yield Classification(kind, role, f"named as {what}")
        if role is Role.QUASI_IDENTIFIER:
            yield Classification(_known_kind(facts), role, f"named as {what}")
    finding = facts.finding
    if finding and finding.direct:
        kind = Kind.TEXT if finding.kind == "text" else _IDENTIFIED.get(finding.identifier.letter, Kind.KEY)
        yield Classification(kind, Role.IDENTIFIER, finding.reason)


def _are_amounts(facts: ColumnFacts) -> bool:
    """Return whether values are numbers, including open-ended numbers such as 5+."""
    return facts.written == "number" or (
        len(facts.texts) > 1 and mostly(facts.texts, lambda text: text.strip("<>=+ ").isdigit())
    )


def _known_kind(facts: ColumnFacts) -> Kind:
    named = (("age", Kind.AGE), ("time", Kind.DATE), ("place", Kind.PLACE), ("state", Kind.PLACE))
    if _are_dates(facts):
        return Kind.DATE
    if is_named_as(facts.name, "outcome") and not is_named_as(facts.name, "quasi-identifier"):
        return Kind.OUTCOME
    kind = next((kind for word, kind in named if _is_named(facts.name, word)), Kind.PERSONAL)
    is_weight = kind is Kind.DATE and is_named_as(facts.name, "weight")  # such as "birth weight"
    return Kind.MEASUREMENT if is_weight and facts.written == "number" else kind


def _are_dates(facts: ColumnFacts) -> bool:
    """Return whether the values are dates or times, even in a format that no hierarchy reads."""
    return facts.written in ("date", "time") or (
        facts.written == "category" and value_evidence.hold_dates(facts.texts)
    )


def _unique(facts: ColumnFacts) -> Iterator[Classification]:
    """Recognize a key only by its values."""
    if facts.nearly_unique and facts.written in ("code", "category"):
        kind = Kind.DATE if _are_dates(facts) else Kind.KEY  # such as 1887.05.12 - 1893.10.30
        yield Classification(kind, Role.IDENTIFIER, "nearly every value occurs once")
    if facts.nearly_unique and value_evidence.number_records(facts.texts, facts.records):
        yield Classification(Kind.KEY, Role.IDENTIFIER, "the values number the records")


def _unrecognized(facts: ColumnFacts) -> Classification:
    kind = Kind.CATEGORY
    if _are_dates(facts):
        kind = Kind.DATE
    elif is_named_as(facts.name, "outcome"):
        kind = Kind.OUTCOME
    elif value_evidence.are_counts(facts.texts, named=is_named_as(facts.name, "count")):
        kind = Kind.COUNT
    elif facts.written == "number" and not value_evidence.are_few_codes(facts.texts):
        kind = Kind.MEASUREMENT
    named_kinds = [("lifelong", Kind.PERSONAL), ("age", Kind.AGE)]
    if not (is_named_as(facts.name, "time") and _are_amounts(facts)):  # such as "time in hospital"
        named_kinds.append(("place", Kind.PLACE))
    for word, named in named_kinds:
        kind = named if is_named_as(facts.name, word) else kind
    return Classification(kind, None, "not recognized; treated as a quasi-identifier to be safe")
