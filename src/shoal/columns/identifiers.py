"""The 18 identifiers of HIPAA's Safe Harbor: which of them a column looks like, by its name and its values.

`looks_like` classifies a whole column. `WITHIN` has regular expressions for identifiers inside longer texts.
Every engine searches its rows for these, so they use only syntax that all dialects share. They are narrow:
codes of diseases and drugs, account numbers, dates and plain numbers do not match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from shoal.columns.names import Word, is_person, normalized_name, weak_word_of, words_of
from shoal.columns.values import (
    Pattern,
    is_bare_phone,
    is_bare_ssn,
    is_lettered,
    is_year,
    is_zip,
    mostly,
    pattern_of,
    spread,
)
from shoal.core.hierarchy.builder import number_of

if TYPE_CHECKING:
    from shoal.columns.guesses import Guess


By = Literal["name", "values", "name and values"]


@dataclass(frozen=True)
class Identifier:
    """One of the 18 identifiers: its letter in the rule and its title."""

    letter: str
    title: str
    direct: bool = True  # identifies a person alone; False: a part, such as the year, may remain


IDENTIFIERS = {
    identifier.letter: identifier
    for identifier in (
        Identifier("A", "Names"),
        Identifier("B", "Geographic subdivisions smaller than a state", direct=False),
        Identifier("C", "Dates finer than a year, and ages over 89", direct=False),
        Identifier("D", "Telephone numbers"),
        Identifier("E", "Fax numbers"),
        Identifier("F", "E-mail addresses"),
        Identifier("G", "Social security numbers"),
        Identifier("H", "Medical record numbers"),
        Identifier("I", "Health plan beneficiary numbers"),
        Identifier("J", "Account numbers"),
        Identifier("K", "Certificate and license numbers"),
        Identifier("L", "Vehicle identifiers and license plates"),
        Identifier("M", "Device identifiers and serial numbers"),
        Identifier("N", "Web addresses (URLs)"),
        Identifier("O", "IP addresses"),
        Identifier("P", "Biometric identifiers"),
        Identifier("Q", "Full-face photographs and comparable images"),
        Identifier("R", "Any other unique identifying number, characteristic or code"),
    )
}


@dataclass(frozen=True)
class Finding:
    """Which identifier a column looks like, and why."""

    identifier: Identifier
    kind: str  # a finer category: zip, place, date, birth, age, ...
    by: By
    reason: str

    @property
    def direct(self) -> bool:
        """Whether such a column identifies a person without other columns."""
        return self.identifier.direct

    @property
    def mark(self) -> str:
        """The identifier in short: its letter and its title."""
        return f"({self.identifier.letter}) {self.identifier.title}"

    def to_dict(self) -> dict[str, str]:
        """Return the finding as plain values."""
        return {
            "letter": self.identifier.letter,
            "title": self.identifier.title,
            "by": self.by,
            "reason": self.reason,
        }


def unique_code() -> Finding:
    """Return the finding for a column where nearly every record has a unique value."""
    return Finding(IDENTIFIERS["R"], "unique", "values", "nearly every value occurs once")


def identifiers_in(guesses: Iterable[Guess]) -> dict[str, Finding]:
    """Return the columns that look like one of the 18 identifiers, in the table's order."""
    return {guess.column: guess.identifier for guess in guesses if guess.identifier is not None}


_FLAGS = frozenset("yes no y n true false t f 0 1 2 ja nein oui non si nee unknown u na n/a none x -".split())  # noqa: SIM905
_GENERIC = ("person", "phone", "uuid")  # patterns that are less specific than a name


def looks_like(
    name: str, texts: Sequence[str | None], *, records: int | None = None, persons: bool = False
) -> Finding | None:
    """Return which of the 18 identifiers a column looks like, by its name and its distinct values.

    A weak name such as `id` counts only if many of the `records` have different values. A weak name of a
    person, such as `name`, also counts if the values consist of letters, or if `persons` is true because
    another column certainly has names of persons.

    >>> looks_like("contact", ["a@example.org", "b@example.org"]).reason
    'the values are written as e-mail addresses'
    >>> looks_like("diagnosis", ["E11.9", "I10"]) is None
    True
    """
    values = spread(texts)
    if not values:
        return None
    differ = records is None or len(texts) >= records / 4
    person = is_person(name) and (persons or mostly(values, is_lettered))
    word = words_of(name, weak=differ or person)
    if _are_flags(values):
        word = None  # yes and no only state whether there is an identifier
    pattern = pattern_of(values)
    if word and (pattern is None or pattern.kind in _GENERIC or pattern.letter == word.letter):
        return _by_name(name, word, values, pattern)
    return None if pattern is None else _by_values(pattern)


def possible_identifier(name: str, texts: Sequence[str | None]) -> Finding | None:
    """Return the identifier that a weak name may mean, even if only few values differ; None for flags.

    >>> possible_identifier("Name", ["Xy 1", "Xy 2"]).mark, possible_identifier("mobile", ["yes", "no"])
    ('(A) Names', None)
    """
    word = weak_word_of(name)
    if word is None or _are_flags(spread(texts)):
        return None
    return Finding(IDENTIFIERS[word.letter], word.kind, "name", _named_as(word.letter, word.kind))


def _are_flags(values: Sequence[str]) -> bool:
    return 0 < len(values) <= 5 and all(value.lower() in _FLAGS for value in values)


def _by_values(pattern: Pattern) -> Finding:
    return Finding(IDENTIFIERS[pattern.letter], pattern.kind, "values", f"the values are {pattern.words}")


def _by_name(name: str, word: Word, values: Sequence[str], pattern: Pattern | None) -> Finding | None:
    """Decide by the name, and check the values: a year is not a date, and ages below 90 may be kept."""
    if word.letter == "C":
        return _date(name, word, values, pattern)
    words = _confirmed(word, values, pattern)
    identifier = IDENTIFIERS[word.letter]
    if words:
        return Finding(identifier, word.kind, "name and values", f"name fits; values are {words}")
    if pattern and word.weak:
        return _by_values(pattern)
    kind = "place" if word.kind == "zip" else word.kind
    return Finding(identifier, kind, "name", _named_as(word.letter, kind))


def _named_as(letter: str, kind: str) -> str:
    title = IDENTIFIERS[letter].title
    return f"named as {_WORDS.get(kind, title[0].lower() + title[1:])}"


_WORDS = {
    "person": "a person, or a person's name",
    "code": "a number or code of a person",
    "place": "a place smaller than a state",
    "plan": "a number of a health plan",
    "text": "free text, which can hold any identifier",
    "date": "a date",
    "part": "a part of a date",
}
_ALONE = {  # values that are weak evidence without a name, but confirm a name
    "zip": (is_zip, "ZIP codes"),
    "ssn": (is_bare_ssn, "numbers of nine digits"),
    "phone": (is_bare_phone, "numbers of a telephone's length"),
    "fax": (is_bare_phone, "numbers of a telephone's length"),
}


def _confirmed(word: Word, values: Sequence[str], pattern: Pattern | None) -> str | None:
    """Return what the values are if they fit the name, else None."""
    if pattern and (pattern.letter == word.letter or pattern.kind == "uuid"):
        return pattern.words
    test, words = _ALONE.get(word.kind, (None, ""))
    return words if test and mostly(values, test) else None


def _date(name: str, word: Word, values: Sequence[str], pattern: Pattern | None) -> Finding | None:
    identifier = IDENTIFIERS["C"]
    if pattern and pattern.letter == "C":
        kind = "birth" if word.kind == "birth" else "date"
        return Finding(identifier, kind, "name and values", f"name fits; values are {pattern.words}")
    if word.kind == "age":
        reason = "named as an age; some are over 89"
        return Finding(identifier, "age", "name and values", reason) if _old(values, oldest(name)) else None
    if mostly(values, is_year):
        last = date.today().year - 90
        old = word.kind == "birth" and any(_number(value) <= last for value in values if _is_number(value))
        reason = "named as a birth; some ages are over 89"
        return Finding(identifier, "birth year", "name and values", reason) if old else None
    is_date_like = word.kind == "part" or mostly(values, lambda text: any(map(str.isdigit, text)))
    reason = f"named as {_WORDS.get(word.kind, 'a date')}"
    return Finding(identifier, word.kind, "name", reason) if is_date_like else None


def _old(values: Sequence[str], least: int) -> bool:
    """Return whether ages over 89 can be distinguished: one is a number, or two groups begin above 89."""
    above = [
        value for value in values if (number := re.search(r"\d+", value)) and int(number.group()) >= least
    ]
    return len(above) > 1 or any(map(_is_number, above))


def is_age(name: str) -> bool:
    """Return whether a column is named as an age."""
    word = words_of(name)
    return word is not None and word.kind == "age"


def is_birth(name: str) -> bool:
    """Return whether a column is named as a date or year of birth."""
    word = words_of(name)
    return word is not None and word.kind == "birth"


def oldest(name: str) -> int:
    """Return 90 years in the unit that is part of an age's name, rounded down to be safe.

    >>> oldest("age"), oldest("age_in_months"), oldest("AgeDays")
    (90, 1080, 32850)
    """
    units = {"months?": 90 * 12, "weeks?": 90 * 52, "days?": 90 * 365, "monate": 90 * 12, "tage": 90 * 365}
    name = normalized_name(name)
    return next((years for unit, years in units.items() if re.search(rf"(?:^|_){unit}(?:_|$)", name)), 90)


def _number(text: str) -> float:
    number = number_of(text)
    return float("nan") if number is None else float(number)


def _is_number(text: str) -> bool:
    return number_of(text) is not None


FEW = 3
"""Minimum number of different texts: fewer addresses or telephone numbers may be those of an office."""
_MOST = 20_000  # maximum number of values of a column that are searched here

_MAIL = r"[A-Za-z0-9._%+-]@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"  # also within a text
# These match a whole value: the separators between the digits are enough evidence.
_ABROAD = r"^\+[1-9]([ ().\-/]{0,2}[0-9]){7,14}$"
_AMERICAN = r"^(1[-. ])?(\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}$"
_AT_HOME = r"^0[0-9]{2,4}([ /][0-9 /\-]{6,12}|-[0-9]{6,8})$|^0[0-9]([ .\-][0-9]{2}){4}$"
_SECURITY = r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$"
# These match within a text. No digit may precede the match. No digit may follow it either, unless the match
# ends in many digits.
_BEFORE = r"(^|(^|[^0-9])[^A-Za-z0-9])"
_END, _AFTER = r"($|[^A-Za-z0-9])", r"($|[^A-Za-z0-9]($|[^0-9]))"
_SIGN = r"( / |[ /\-])"  # separator after an area code
_COUNTRY = r"[2-9][0-9]{1,2}( ?\(0\) ?|[ \-/])"
_TELEPHONE = r"([Tt]el|TEL|[Tt]él|[Tt]ele(f|ph)one?|[Pp]hone|[Hh]andy|[Mm]obile?)[.:]{0,2} ?"
_MANY_DIGITS = (
    r"\+[1-9][0-9]{8,13}",  # +4915112345678
    rf"(\+|00){_COUNTRY}\(?[0-9]{{1,4}}\)?{_SIGN}?[0-9]{{5,9}}",  # +49 (0)151 12345678
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{5,8}}",  # 0151 12345678
    r"06-[1-9][0-9]{7}",
)
_GROUPS = (
    rf"\+{_COUNTRY}[0-9]{{1,4}}( [0-9]{{2,4}}){{2,4}}",  # +33 6 12 34 56 78
    r"(\+?1[ .\-]?)?\([0-9]{3}\) ?[0-9]{3}[ .\-][0-9]{4}",
    r"(\+?1[ .\-])?[0-9]{3}[.\-][0-9]{3}[.\-][0-9]{4}",
    r"\+1 [0-9]{3} [0-9]{3} [0-9]{4}",
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{1,2}}( [0-9]{{2,4}}){{2,3}}",  # 0151 123 45 67
    rf"0[1-9][0-9]{{1,3}}{_SIGN}[1-9][0-9]{{2}}[ \-][0-9]{{4}}",  # 0161 496 0958
    rf"(0[1-9][0-9]|01[5-7][0-9]){_SIGN}[1-9][0-9]{{3}} [0-9]{{3,4}}",  # 020 7946 0958
    r"\(0[1-9][0-9]{1,4}\) ?[1-9]([ \-]?[0-9]){5,9}",
    r"0[1-9]([ .\-][0-9]{2}){4}",  # 06 12 34 56 78
    rf"{_TELEPHONE}[0-9]( ?[0-9]){{8,13}}",  # Tel. 612345678
    r"[0-9]{3}-[0-9]{2}-[0-9]{4}",  # a social security number
)
_IN_TEXT = f"{_BEFORE}(({'|'.join(_MANY_DIGITS)}){_END}|({'|'.join(_GROUPS)}){_AFTER})"

WITHIN = MappingProxyType(
    {
        "e-mail addresses": _MAIL,
        "telephone or social security numbers": f"{_ABROAD}|{_AMERICAN}|{_AT_HOME}|{_SECURITY}|{_IN_TEXT}",
    }
)
"""The patterns, by a description of what they find."""


def found_within(texts: Sequence[str]) -> Iterator[str]:
    """Yield a description of each kind of identifier that at least three different texts contain.

    >>> list(found_within([f"Rückruf unter 0151 123456{n}" for n in range(3)]))
    ['telephone or social security numbers']
    """
    sampled = spread(texts, _MOST)
    for words, pattern in WITHIN.items():
        compiled = re.compile(pattern)
        if len(list(islice(filter(compiled.search, sampled), FEW))) == FEW:
            yield words
