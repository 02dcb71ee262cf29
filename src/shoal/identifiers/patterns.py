"""Patterns of the values of identifiers, with check digits where they have them.

Codes of diseases, drugs and procedures and plain numbers match none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.identifiers import checksums
from shoal.identifiers import values as values_

Test = Callable[[str], bool]
MOST = 2000  # values looked at, spread over all
SHARE = 0.8  # of them that must match


@dataclass(frozen=True)
class Pattern:
    """How the values of one kind of identifier are written."""

    letter: str
    kind: str
    words: str  # what the values are
    test: Test
    least: int = 1  # distinct values below which a match may be chance


def spread(texts: Sequence[str | None], most: int = MOST) -> list[str]:
    """Choose values from the first to the last, evenly, without nulls and empty texts.

    >>> spread(["a", None, "b", "c", "d"], 3)
    ['a', 'b', 'd']
    """
    size = len(texts)
    places = range(size) if size <= most else (place * (size - 1) // (most - 1) for place in range(most))
    return [text.strip() for place in places if (text := texts[place]) is not None and text.strip()]


def mostly(values: Sequence[str], test: Test, share: float = SHARE) -> bool:
    """Tell whether at least a share of the values passes; it stops when too many have failed."""
    allowed = int(len(values) * (1 - share) + 1e-9)
    failed = 0
    for value in values:
        if not test(value):
            failed += 1
            if failed > allowed:
                return False
    return bool(values)


def pattern_of(values: Sequence[str]) -> Pattern | None:
    """Return the first pattern that most of the values match."""
    for one in PATTERNS:
        if len(values) >= one.least and mostly(values, one.test):
            return one
    return PERSONS if len(values) >= PERSONS.least and _are_persons(values) else None


def _are_persons(values: Sequence[str]) -> bool:
    """Tell whether values are written as names and some hold a common given name."""
    return mostly(values, values_.is_person) and mostly(values, values_.has_given_name, 0.15)


def _full(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _checked(pattern: str, check: Callable[[str], bool]) -> Test:
    """Match a text without spaces and dashes, then check its digits."""
    compiled, separators = re.compile(pattern), re.compile(r"[\s-]")

    def test(text: str) -> bool:
        if len(text) > 50:
            return False
        text = separators.sub("", text).upper()
        return compiled.fullmatch(text) is not None and check(text)

    return test


_EMAIL = r"(?:mailto:)?[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;.]{2,}"
_IMAGE_FILE = r"(?i:data:image/.*|[^\n]{1,200}\.(?:jpe?g|png|gif|bmp|tiff?|heic|webp))"
_IMAGE_DATA = r"(?:/9j/|iVBORw0KGgo|R0lGOD|Qk0)[A-Za-z0-9+/=\s]{40,}"
_URL = r"(?i)(?:(?:https?|ftp)://\S{3,}|www\.[\w-]+\.\S{2,})"
_UUID = r"(?i)\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?"
_MAC = r"(?i)[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}"
_ZIP_4 = r"\d{5}-\d{4}"
_PLACE = r"[-+]?\d{1,2}\.\d{3,}°?[NS]?[,; ]\s*[-+]?\d{1,3}\.\d{3,}°?[EW]?"
_IBAN = r"[A-Z]{2}\d\d[A-Z0-9]{11,30}"
_VIN = r"[A-HJ-NPR-Z0-9]{17}"
_CARD = r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}"
_IMEI = r"(?:01|35|86|99|44|45|49|5\d)\d{13}"
_NIR = r"[12]\d{2}(?:0[1-9]|1[0-2]|[2-9]\d)(?:\d\d|2[AB])\d{6}"
_LETTER = "[AC-HJKMNP-RT-Y]"  # Medicare leaves out S, L, O, I, B and Z
_EITHER = "[AC-HJKMNP-RT-Y0-9]"
_MBI = rf"[1-9]{_LETTER}{_EITHER}\d{_LETTER}{_EITHER}\d{_LETTER}{{2}}\d\d"
_RIGHT = "with right check digits"

# In the order in which they are tried: those that others cannot be mistaken for come first.
PATTERNS = (
    Pattern("F", "e-mail", "written as e-mail addresses", _full(_EMAIL)),
    Pattern("Q", "photo", "names of image files, or images", _full(f"{_IMAGE_FILE}|{_IMAGE_DATA}")),
    Pattern("N", "url", "written as web addresses", _full(_URL)),
    Pattern("R", "uuid", "universally unique codes", _full(_UUID)),
    Pattern("M", "mac", "hardware addresses of devices", _full(_MAC)),
    Pattern("O", "ip", "written as IP addresses", values_.is_address),
    Pattern("C", "date", "dates finer than a year", values_.is_date),
    Pattern("G", "ssn", "written as social security numbers", values_.is_ssn),
    Pattern("B", "zip", "ZIP codes of nine digits", _full(_ZIP_4)),
    Pattern("B", "place", "coordinates of places", _full(_PLACE)),
    Pattern("J", "iban", f"bank account numbers {_RIGHT}", _checked(_IBAN, checksums.iban), 2),
    Pattern("L", "vin", f"vehicle numbers {_RIGHT}", _checked(_VIN, checksums.vin), 4),
    Pattern("J", "card", f"payment card numbers {_RIGHT}", _checked(_CARD, checksums.luhn), 4),
    Pattern("M", "imei", f"device numbers {_RIGHT}", _checked(_IMEI, checksums.luhn), 4),
    Pattern(
        "G", "nir", f"French social security numbers {_RIGHT}", _checked(_NIR + r"\d\d", checksums.nir), 3
    ),
    Pattern("I", "mbi", "written as Medicare beneficiary numbers", _checked(_MBI, bool), 3),
    Pattern("I", "kvnr", f"German insurance numbers {_RIGHT}", _checked(r"[A-Z]\d{9}", checksums.kvnr), 5),
    Pattern("R", "dni", "Spanish identity numbers", _checked(r"[XYZ\d]\d{7}[A-Z]", checksums.dni), 4),
    Pattern("H", "nhs", f"NHS numbers {_RIGHT}", _checked(r"\d{10}", checksums.nhs), 5),
    Pattern("G", "bsn", f"Dutch citizen numbers {_RIGHT}", _checked(r"\d{9}", checksums.bsn), 5),
    Pattern("D", "phone", "written as telephone numbers", values_.is_phone),
)
PERSONS = Pattern("A", "person", "written as names of persons", values_.is_person, 5)
