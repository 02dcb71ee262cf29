"""Tests of single values: is this written as a telephone number, a date, a person's name?

Values are only ever tested, never told.
"""

from __future__ import annotations

import ipaddress
import re

from shoal.identifiers import checksums

_SSN = re.compile(r"(\d{3})-(\d\d)-(\d{4})")
_SSN_SPACED = re.compile(r"(\d{3}) (\d\d) (\d{4})")
_BARE_SSN = re.compile(r"(\d{3})(\d\d)(\d{4})")
_PHONE = re.compile(r"(?:\+|00)?[\d\s().\-/]{7,22}(?:\s?(?:x|ext\.?)\s?\d{1,6})?", re.IGNORECASE)
_DRUG_CODES = ([4, 4, 2], [5, 3, 2], [5, 4, 1], [5, 4, 2])  # groups of digits of a National Drug Code


def is_ssn(text: str) -> bool:
    """Match a written social security number."""
    found = _SSN.fullmatch(text) or _SSN_SPACED.fullmatch(text)
    return found is not None and checksums.ssn(*found.groups())


def is_bare_ssn(text: str) -> bool:
    """Match nine digits that can be a social security number; many others can, so a name must say so."""
    found = _BARE_SSN.fullmatch(text)
    return found is not None and checksums.ssn(*found.groups())


def is_address(text: str) -> bool:
    """Match an IP address of either version; four numbers with points, not a version number of fewer."""
    if text.count(".") != 3 and ":" not in text:
        return False
    try:
        found = ipaddress.ip_address(text.partition("/")[0])
    except ValueError:
        return False
    # 10:30:: is no time of a day, but 10:30 is; an address of version 6 has at least two colons.
    return found.version == 4 or text.count(":") >= 2


def is_phone(text: str) -> bool:
    """Match a telephone number that is written as one: a plus, brackets, or groups of digits."""
    if not 7 <= len(text) <= 30 or not _PHONE.fullmatch(text) or is_ssn(text):
        return False
    digits = re.sub(r"\D", "", text)
    if not 7 <= len(digits) <= 15:
        return False
    if text[0] == "+":
        return len(digits) >= 8
    groups = re.findall(r"\d+", text)
    sizes = [len(group) for group in groups]
    if sizes in _DRUG_CODES or text.count(".") == 1:
        return False
    if "(" in text or sizes[-3:] == [3, 3, 4]:
        return len(digits) >= 9
    return len(groups) > 1 and groups[0][0] == "0" and len(digits) >= 9 and (sizes[0] > 2 or len(groups) > 3)


def is_bare_phone(text: str) -> bool:
    """Match digits alone of a telephone number's length; a name must say that they are one."""
    return is_phone(text) or re.fullmatch(r"\+?\d{7,15}", text) is not None


def is_zip(text: str) -> bool:
    """Match a ZIP code: five digits, nine, or both with a dash; fewer where zeros before them were lost."""
    return re.fullmatch(r"\d{3,5}|\d{5}-?\d{4}|\d{7,8}", text) is not None


def is_year(text: str) -> bool:
    """Match a year alone, also one that was read as a number with a fraction."""
    return re.fullmatch(r"(?:1[89]|20)\d\d(?:\.0+)?", text) is not None


_MONTHS = (
    "jan(uary|uar|vier)? feb(ruary|ruar)? f[eé]vr?(ier)? mar(ch|s)? m(ä|ae)rz apr(il)? avr(il)? ma[iy] june? "
    "juni? juin july? juli? juil(let)? aug(ust)? ao[uû]t sep(t(ember|embre)?)? o[ck]t(ober|obre)? "
    "nov(ember|embre)? de[cz](ember)? d[eé]c(embre)?"
)
_WORD = "(?:" + "|".join(_MONTHS.replace("(", "(?:").split()) + r")\.?"
_TIME = r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:[AaPp][Mm]|Z|[+-]\d\d:?\d\d))?)?"
_YEAR, _MONTH, _DAY = r"(?:1[89]|20)\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = re.compile(
    "|".join(
        (
            rf"{_YEAR}([-/.]){_MONTH}\1{_DAY}{_TIME}",
            rf"{_DAY}([-/.]){_MONTH}\2{_YEAR}{_TIME}",
            rf"{_MONTH}([-/]){_DAY}\3{_YEAR}{_TIME}",
            rf"{_DAY}([-/]){_MONTH}\4\d\d{_TIME}",
            rf"(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.\d\d{_TIME}",
            rf"{_MONTH}(/){_DAY}\5\d\d{_TIME}",
            rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:T?\d{{4}}(?:\d\d)?)?",
            rf"{_YEAR}[-/](?:0[1-9]|1[0-2])",
            rf"(?:0?[1-9]|1[0-2])[-/]{_YEAR}",
            rf"{_YEAR}[- ]?(?:W[0-5]\d(?:-[1-7])?|Q[1-4])",
            rf"{_DAY}(?:st|nd|rd|th|\.)?[- ]{_WORD}[-, ]+(?:{_YEAR}|\d\d){_TIME}",
            rf"{_WORD} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}{_TIME}",
            rf"{_WORD}[-, ]+{_YEAR}",
        )
    ),
    re.IGNORECASE,
)


def is_date(text: str) -> bool:
    """Match a date that tells more than the year."""
    return len(text) <= 40 and _DATE.fullmatch(text) is not None


_NAMES = """
james john robert michael william david richard joseph thomas charles christopher daniel matthew anthony
mark donald steven paul andrew joshua kenneth kevin brian george edward mary patricia jennifer linda
elizabeth barbara susan jessica sarah karen nancy lisa margaret betty sandra ashley emily donna michelle
carol amanda melissa deborah anna maria jose juan carlos luis miguel antonio francisco manuel pedro
carmen ana laura marta lucia sofia isabel hans peter klaus wolfgang juergen jurgen stefan andreas martin
frank ursula monika petra sabine renate helga karin claudia jean pierre jacques philippe nicolas michel
marie nathalie isabelle sylvie catherine jan piet willem hendrik johannes cornelis johanna mohammed
muhammad ahmed ali fatima wei li olga ivan sergei emma olivia noah liam lucas leo mia ella amelia oliver
harry jack alice julia eva paula
"""
_GIVEN = frozenset(_NAMES.split())
_PLACES = (
    "hospital clinic center centre university school street road avenue ward unit care saint st mount of"
)
_NO_PERSON = frozenset(_PLACES.split())
_PERSON = re.compile(r"(?:[^\W\d_]|['.-])+(?:,? (?:[^\W\d_]|['.-])+){1,3}")
_SMALL = ("de", "van", "von", "der", "den", "la", "del", "da", "y")


def is_person(text: str) -> bool:
    """Match two to four words that each begin with a capital letter, as the names of persons do."""
    if len(text) > 60 or not _PERSON.fullmatch(text):
        return False
    words = text.split()
    return all(word[0].isupper() or word in _SMALL for word in words) and _NO_PERSON.isdisjoint(_words(text))


def is_lettered(text: str) -> bool:
    """Match a text of letters, as names are written, of one word or more; not a single letter, nor a code.

    >>> is_lettered("Müller-Lüdenscheidt"), is_lettered("O'Neill, J."), is_lettered("A"), is_lettered("X17")
    (True, True, False, False)
    """
    return len(text) > 1 and re.fullmatch(r"(?:[^\W\d_]|['\u2019`.,() -])+", text) is not None


def has_given_name(text: str) -> bool:
    """Tell whether a common given name is one of the words."""
    return not _GIVEN.isdisjoint(_words(text))


def _words(text: str) -> list[str]:
    return re.split(r"[ ,.-]+", text.lower())
