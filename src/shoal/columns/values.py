"""Patterns of values: telephone numbers, dates, names of persons, and numbers with check digits.

Plain numbers and codes of diseases, drugs and procedures match none of the patterns. At most one in ten
random numbers has a correct check digit, so nearly all values of a column do not have one by chance.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.columns.names import MONTH

_VIN_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def luhn(digits: str) -> bool:
    """Check the last digit of payment cards and device numbers (Luhn; ISO/IEC 7812-1).

    >>> luhn("79927398713"), luhn("79927398710")
    (True, False)
    """
    total = 0
    for index, digit in enumerate(map(int, reversed(digits))):
        total += digit if index % 2 == 0 else (2 * digit - 9 if digit > 4 else 2 * digit)
    return total % 10 == 0


def nhs(digits: str) -> bool:
    """Check the tenth digit of an NHS number: weights 10 to 2, modulus 11.

    >>> nhs("9434765919"), nhs("9434765918")
    (True, False)
    """
    check = -sum(weight * int(digit) for weight, digit in zip(range(10, 1, -1), digits, strict=False)) % 11
    return check != 10 and check == int(digits[9])


def vin(text: str) -> bool:
    """Check the ninth character of a vehicle identification number (49 CFR 565.15).

    >>> vin("1M8GDM9AXKP042788"), vin("1M8GDM9A1KP042788")
    (True, False)
    """
    values = [int(_VIN_VALUES.get(letter, letter)) for letter in text]
    check = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return text[8] == ("X" if check == 10 else str(check))


def iban(text: str) -> bool:
    """Check the two digits of an account number (ISO 13616, modulus 97).

    >>> iban("GB82WEST12345698765432"), iban("GB83WEST12345698765432")
    (True, False)
    """
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def ssn(area: str, group: str, serial: str) -> bool:
    """Return whether a social security number is possible: no area 000, 666 or 9xx, and no part all zeros."""
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def nir(text: str) -> bool:
    """Check the key of a French social security number (modulus 97; Corsica counts as 19 and 18)."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(text[13:])


def bsn(digits: str) -> bool:
    """Check a Dutch citizen service number: weights 9 to 2 and -1, modulus 11."""
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    total = sum(weight * int(digit) for weight, digit in zip(weights, digits.zfill(9), strict=True))
    return int(digits) > 0 and total % 11 == 0


def dni(text: str) -> bool:
    """Check the letter of a Spanish identity number (modulus 23; X, Y and Z count as 0, 1 and 2)."""
    number = re.sub("^[XYZ]", lambda letter: str("XYZ".index(letter.group())), text[:-1])
    return text[-1] == _DNI_LETTERS[int(number) % 23]


def kvnr(text: str) -> bool:
    """Check the last digit of a German health insurance number: the letter as two digits, weights 1 and 2."""
    digits = f"{ord(text[0]) - 64:02}{text[1:9]}"
    total = sum(sum(map(int, str(int(digit) * (1 + index % 2)))) for index, digit in enumerate(digits))
    return total % 10 == int(text[9])


_SSN = re.compile(r"(\d{3})-(\d\d)-(\d{4})")
_SSN_SPACED = re.compile(r"(\d{3}) (\d\d) (\d{4})")
_BARE_SSN = re.compile(r"(\d{3})(\d\d)(\d{4})")
_PHONE = re.compile(r"(?:\+|00)?[\d\s().\-/]{7,22}(?:\s?(?:x|ext\.?)\s?\d{1,6})?", re.IGNORECASE)
_DRUG_CODES = ([4, 4, 2], [5, 3, 2], [5, 4, 1], [5, 4, 2])  # groups of digits of a National Drug Code


def is_ssn(text: str) -> bool:
    """Match a written social security number."""
    match = _SSN.fullmatch(text) or _SSN_SPACED.fullmatch(text)
    return match is not None and ssn(*match.groups())


def is_bare_ssn(text: str) -> bool:
    """Match nine digits that may be a social security number; only the column's name can confirm this."""
    match = _BARE_SSN.fullmatch(text)
    return match is not None and ssn(*match.groups())


def is_address(text: str) -> bool:
    """Match an IP address of version 4 or 6. A number such as 1.2.3 has too few parts."""
    if text.count(".") != 3 and ":" not in text:
        return False
    try:
        address = ipaddress.ip_address(text.partition("/")[0])
    except ValueError:
        return False
    # 10:30 is a time of day, but 10:30:: is not: an address of version 6 has at least two colons.
    return address.version == 4 or text.count(":") >= 2


def is_phone(text: str) -> bool:
    """Match a telephone number with a plus, brackets or groups of digits."""
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
    """Match a telephone number, or digits of the same length; only the column's name can confirm these."""
    return is_phone(text) or re.fullmatch(r"\+?\d{7,15}", text) is not None


def is_zip(text: str) -> bool:
    """Match a ZIP code: five or nine digits, also as 12345-6789, or fewer if leading zeros were lost."""
    return re.fullmatch(r"\d{3,5}|\d{5}-?\d{4}|\d{7,8}", text) is not None


def is_year(text: str) -> bool:
    """Match a year without month and day, such as 2024, or 2024.0 if it was read as a float."""
    return re.fullmatch(r"(?:1[89]|20)\d\d(?:\.0+)?", text) is not None


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
            rf"{_YEAR}[-/]?(?:0[1-9]|1[0-2])",
            rf"(?:0?[1-9]|1[0-2])[-/]{_YEAR}",
            rf"{_YEAR}[- ]?(?:W[0-5]\d(?:-[1-7])?|Q[1-4])",
            rf"{_DAY}(?:st|nd|rd|th|\.)?(?:[- ]| de ){MONTH}(?:[-, ]+| de )(?:{_YEAR}|\d\d){_TIME}",
            rf"{MONTH} {_DAY}(?:st|nd|rd|th)?,? {_YEAR}{_TIME}",
            rf"{MONTH}(?:[-, ]+|\.? de ){_YEAR}",
            rf"{_YEAR}[- ]{MONTH}",
        )
    ),
    re.IGNORECASE,
)


def is_date(text: str) -> bool:
    """Match a date that is more precise than a year."""
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
_NOT_IN_NAMES = frozenset(_PLACES.split())
_PERSON = re.compile(r"(?:[^\W\d_]|['.-])+(?:,? (?:[^\W\d_]|['.-])+){1,3}")
_NAME_PARTICLES = ("de", "van", "von", "der", "den", "la", "del", "da", "y")


def is_person(text: str) -> bool:
    """Match two to four words that all begin with a capital letter, like the names of persons."""
    if len(text) > 60 or not _PERSON.fullmatch(text):
        return False
    are_name_parts = all(word[0].isupper() or word in _NAME_PARTICLES for word in text.split())
    return are_name_parts and _NOT_IN_NAMES.isdisjoint(_words(text))


def is_lettered(text: str) -> bool:
    """Match one or more words of letters, like a name, but not a single letter or a code.

    >>> is_lettered("Müller-Lüdenscheidt"), is_lettered("O'Neill, J."), is_lettered("A"), is_lettered("X17")
    (True, True, False, False)
    """
    return len(text) > 1 and re.fullmatch(r"(?:[^\W\d_]|['\u2019`.,() -])+", text) is not None


def has_given_name(text: str) -> bool:
    """Return whether a common given name is one of the words."""
    return not _GIVEN.isdisjoint(_words(text))


def _words(text: str) -> list[str]:
    return re.split(r"[ ,.-]+", text.lower())


Test = Callable[[str], bool]
MOST = 2000  # maximum number of values examined, spread evenly over all values
SHARE = 0.8  # minimum share of the examined values that must match


@dataclass(frozen=True)
class Pattern:
    """How the values of one kind of identifier are written."""

    letter: str  # of the HIPAA identifier
    kind: str
    words: str  # what the values are
    test: Test
    least: int = 1  # minimum number of distinct values; fewer may match by chance


def spread(texts: Sequence[str | None], limit: int = MOST) -> list[str]:
    """Return evenly spaced values from the first to the last, without nulls and empty texts.

    >>> spread(["a", None, "b", "c", "d"], 3)
    ['a', 'b', 'd']
    """
    size = len(texts)
    indices = range(size) if size <= limit else (index * (size - 1) // (limit - 1) for index in range(limit))
    return [text.strip() for index in indices if (text := texts[index]) is not None and text.strip()]


def mostly(values: Sequence[str], test: Test, share: float = SHARE) -> bool:
    """Return whether at least a share of the values passes the test."""
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
    for pattern in PATTERNS:
        if len(values) >= pattern.least and mostly(values, pattern.test):
            return pattern
    return PERSONS if len(values) >= PERSONS.least and _are_persons(values) else None


def _are_persons(values: Sequence[str]) -> bool:
    return mostly(values, is_person) and mostly(values, has_given_name, 0.15)


def _full(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _checked(pattern: str, check: Callable[[str], bool]) -> Test:
    """Return a test that removes spaces and dashes, matches the pattern, and then calls `check`."""
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
_COORDINATES = r"[-+]?\d{1,2}\.\d{3,}°?[NS]?[,; ]\s*[-+]?\d{1,3}\.\d{3,}°?[EW]?"
_IBAN = r"[A-Z]{2}\d\d[A-Z0-9]{11,30}"
_VIN = r"[A-HJ-NPR-Z0-9]{17}"
_CARD = r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}"
_IMEI = r"(?:01|35|86|99|44|45|49|5\d)\d{13}"
_NIR = r"[12]\d{2}(?:0[1-9]|1[0-2]|[2-9]\d)(?:\d\d|2[AB])\d{6}"
_ALPHA = "[AC-HJKMNP-RT-Y]"  # Medicare leaves out S, L, O, I, B and Z
_ALNUM = "[AC-HJKMNP-RT-Y0-9]"
_MBI = rf"[1-9]{_ALPHA}{_ALNUM}\d{_ALPHA}{_ALNUM}\d{_ALPHA}{{2}}\d\d"
_VALID = "with correct check digits"

# The patterns are tried in this order. Patterns that cannot be confused with others come first.
PATTERNS = (
    Pattern("F", "e-mail", "written as e-mail addresses", _full(_EMAIL)),
    Pattern("Q", "photo", "names of image files, or images", _full(f"{_IMAGE_FILE}|{_IMAGE_DATA}")),
    Pattern("N", "url", "written as web addresses", _full(_URL)),
    Pattern("R", "uuid", "universally unique codes", _full(_UUID)),
    Pattern("M", "mac", "hardware addresses of devices", _full(_MAC)),
    Pattern("O", "ip", "written as IP addresses", is_address),
    Pattern("C", "date", "dates finer than a year", is_date),
    Pattern("G", "ssn", "written as social security numbers", is_ssn),
    Pattern("B", "zip", "ZIP codes of nine digits", _full(_ZIP_4)),
    Pattern("B", "place", "coordinates of places", _full(_COORDINATES)),
    Pattern("J", "iban", f"bank account numbers {_VALID}", _checked(_IBAN, iban), 2),
    Pattern("L", "vin", f"vehicle numbers {_VALID}", _checked(_VIN, vin), 4),
    Pattern("J", "card", f"payment card numbers {_VALID}", _checked(_CARD, luhn), 4),
    Pattern("M", "imei", f"device numbers {_VALID}", _checked(_IMEI, luhn), 4),
    Pattern("G", "nir", f"French social security numbers {_VALID}", _checked(_NIR + r"\d\d", nir), 3),
    Pattern("I", "mbi", "written as Medicare beneficiary numbers", _checked(_MBI, bool), 3),
    Pattern("I", "kvnr", f"German insurance numbers {_VALID}", _checked(r"[A-Z]\d{9}", kvnr), 5),
    Pattern("R", "dni", "Spanish identity numbers", _checked(r"[XYZ\d]\d{7}[A-Z]", dni), 4),
    Pattern("H", "nhs", f"NHS numbers {_VALID}", _checked(r"\d{10}", nhs), 5),
    Pattern("G", "bsn", f"Dutch citizen numbers {_VALID}", _checked(r"\d{9}", bsn), 5),
    Pattern("D", "phone", "written as telephone numbers", is_phone),
)
PERSONS = Pattern("A", "person", "written as names of persons", is_person, 5)
