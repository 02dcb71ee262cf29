"""Which of the 18 identifiers a column looks like, by its name and by its distinct values.

What is said of a column never holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from shoal.core.builder import number_of
from shoal.identifiers import values as values_
from shoal.identifiers.names import Word, is_person, plain, weak_word_of, words_of
from shoal.identifiers.patterns import Pattern, mostly, pattern_of, spread
from shoal.identifiers.rule import IDENTIFIERS, Finding

_FLAGS = frozenset("yes no y n true false t f 0 1 2 ja nein oui non si nee unknown u na n/a none x -".split())  # noqa: SIM905
_GENERIC = ("person", "phone", "uuid")  # patterns that a name knows better


def looks_like(
    name: str, texts: Sequence[str | None], *, records: int | None = None, persons: bool = False
) -> Finding | None:
    """Tell which of the 18 identifiers a column looks like, by its name and its distinct values.

    `records` tells how many records there are: a weak name such as `id` counts only where the values differ;
    that of a person, such as `name`, also where they are written in letters, or where `persons` tells that
    another column is surely a person's name.

    >>> looks_like("contact", ["a@example.org", "b@example.org"]).reason
    'the values are written as e-mail addresses'
    >>> looks_like("diagnosis", ["E11.9", "I10"]) is None
    True
    """
    values = spread(texts)
    if not values:
        return None
    differ = records is None or len(texts) >= records / 4
    person = is_person(name) and (persons or mostly(values, values_.is_lettered))
    word = words_of(name, weak=differ or person)
    if _are_flags(values):
        word = None  # says whether there is one
    pattern = pattern_of(values)
    if word and (pattern is None or pattern.kind in _GENERIC or pattern.letter == word.letter):
        return _by_name(name, word, values, pattern)
    return None if pattern is None else _by_values(pattern)


def may_be(name: str, texts: Sequence[str | None]) -> Finding | None:
    """Tell which identifier a weak name may mean, however few values differ; none where they say yes or no.

    >>> may_be("Name", ["Xy 1", "Xy 2"]).mark, may_be("mobile", ["yes", "no"])
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
    """Hold the name against the values: a year is no date, and an age below 90 may stay."""
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
_ALONE = {  # values that say little, but fit the name
    "zip": (values_.is_zip, "ZIP codes"),
    "ssn": (values_.is_bare_ssn, "numbers of nine digits"),
    "phone": (values_.is_bare_phone, "numbers of a telephone's length"),
    "fax": (values_.is_bare_phone, "numbers of a telephone's length"),
}


def _confirmed(word: Word, values: Sequence[str], pattern: Pattern | None) -> str | None:
    """Say what the values are, where they fit the name."""
    if pattern and (pattern.letter == word.letter or pattern.kind == "uuid"):
        return pattern.words
    test, words = _ALONE.get(word.kind, (None, ""))
    return words if test and mostly(values, test) else None


def _date(name: str, word: Word, values: Sequence[str], pattern: Pattern | None) -> Finding | None:
    """Judge a column whose name is about dates or ages."""
    identifier = IDENTIFIERS["C"]
    if pattern and pattern.letter == "C":
        kind = "birth" if word.kind == "birth" else "date"
        return Finding(identifier, kind, "name and values", f"name fits; values are {pattern.words}")
    if word.kind == "age":
        reason = "named as an age; some are over 89"
        return Finding(identifier, "age", "name and values", reason) if _old(values, oldest(name)) else None
    if mostly(values, values_.is_year):
        last = date.today().year - 90
        old = word.kind == "birth" and any(_number(value) <= last for value in values if _is_number(value))
        reason = "named as a birth; some ages are over 89"
        return Finding(identifier, "birth year", "name and values", reason) if old else None
    told = word.kind == "part" or mostly(values, lambda text: any(map(str.isdigit, text)))
    reason = f"named as {_WORDS.get(word.kind, 'a date')}"
    return Finding(identifier, word.kind, "name", reason) if told else None


def _old(values: Sequence[str], least: int) -> bool:
    """Tell whether ages over 89 are told apart: a number of that size, or more than one group from there."""
    above = [value for value in values if (found := re.search(r"\d+", value)) and int(found.group()) >= least]
    return len(above) > 1 or any(map(_is_number, above))


def is_age(name: str) -> bool:
    """Tell whether a name is that of an age."""
    word = words_of(name)
    return word is not None and word.kind == "age"


def is_birth(name: str) -> bool:
    """Tell whether a name is that of a date or year of birth."""
    word = words_of(name)
    return word is not None and word.kind == "birth"


def oldest(name: str) -> int:
    """Return 90 years in the unit that the name of an age tells, on the safe side.

    >>> oldest("age"), oldest("age_in_months"), oldest("AgeDays")
    (90, 1080, 32850)
    """
    units = {"months?": 90 * 12, "weeks?": 90 * 52, "days?": 90 * 365, "monate": 90 * 12, "tage": 90 * 365}
    name = plain(name)
    return next((years for unit, years in units.items() if re.search(rf"(?:^|_){unit}(?:_|$)", name)), 90)


def _number(text: str) -> float:
    number = number_of(text)
    return float("nan") if number is None else float(number)


def _is_number(text: str) -> bool:
    return number_of(text) is not None
