"""What the values of a column may be: flags, keys, dates, places, or codes of states or diseases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from shoal.columns.date_units import DateFormat, date_format
from shoal.columns.names import is_month_or_weekday, is_named_as, is_postcode
from shoal.columns.values import is_date, is_year, mostly, spread
from shoal.core.arrays import FloatArray
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import POINT, decimal_of, has_commas, number_of, plain_numbers
from shoal.core.hierarchy.calendar import minute_of
from shoal.errors import DataError

_FEW_TEXTS = 5  # if there are more distinct values, digits of one length are codes or dates
CODES = 50  # maximum number of distinct numbers of a list of codes, if the column is named as codes
_CODE_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:codes?|cd|kode|c[oó]digo|typ|types?|categor(?:y|ie)|category)(?:$|[^a-z])"
)
_SOME = 0.2  # a smaller share of the values is no evidence
_FEW_CODES = 25  # maximum number of distinct numbers of a list of codes that begins with 0 or 1
_MOST_CODES = 10  # maximum number of distinct whole numbers that may be codes of categories
_FEW_AGES = 8  # fewer distinct numbers may be doses or grades instead of ages
_OLDEST = 120
_FLAGS = frozenset("yes no y n true false t f 0 1 ja nein oui non si sì sí nee sim não unknown u".split())  # noqa: SIM905
_DATE_INSIDE = re.compile(
    r"(?<!\d)(?:(?:19|20)\d\d([-/.])[01]?\d\1[0-3]?\d|[0-3]?\d([-/.])[0-3]?\d\2(?:19|20)\d\d)(?!\d)"
)
_HALF_YEAR = re.compile(r"(?i)(?:19|20)\d\d[-/ ]?[HS][12]|[HS][12][-/ ]?(?:19|20)\d\d")
_POSTCODE = re.compile(  # British and Canadian
    r"(?i)[A-Z]{1,2}\d{1,2}[A-Z]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d"
)
_AGE_BAND = re.compile(r"(\d{1,3}) ?[-\u2013] ?(\d{1,3})")
_AGE_END = re.compile(r"[<>≤≥]=? ?\d{1,3}|\d{1,3} ?\+")
_AGE_UNIT = re.compile(
    r"(?i)\d{1,3}(?: ?[-\u2013] ?\d{1,3})? ?(?:y|yrs?|years?|months?|jahre?|ans?|años?|anni|jaar|anos)"
    r"\.?(?:[ -]old)?"
)
_SHORT_YEAR = re.compile(r"\d\d")
_WEEK = re.compile(r"(?:19|20)\d\d(?:0[1-9]|[1-4]\d|5[0-3])")
_PREFIXED = re.compile(r"([A-Za-z]{1,4})[-_/]?\d{3,}")
_CURRENCIES = frozenset("eur usd gbp chf cad aud jpy inr rs kr dkk sek nok pln huf czk brl mxn zar".split())  # noqa: SIM905
_PLACE_INSIDE = re.compile(
    r"(?i)\b(?:hospitals?|clinics?|\w*klinik(?:um)?|\w*krankenhaus|h[oô]pital|clinique|cl[ií]nica|ospedale|"
    r"\w*ziekenhuis|kliniek|medical cent(?:er|re)|university|universit[yäéà]\w*|praxis|"
    r"(?:dra?|drs|dott|prof)(?:\. ?| )\w+)\b"
)
_CODE = re.compile(r"[A-Z]\d\d(?:\.?[0-9A-Z]{0,4})?(?:\.[0-9A-Z-]{1,2})?[*+!]?")  # ICD-10

_NUMBERED = re.compile(r"(\D*)(\d{4,18})")
_KEY = re.compile(r"[\w/-]*\d[\w/-]*")
_MOST_DIGITS = 18
_WHOLE = re.compile(rf"-?[0-9]{{1,{_MOST_DIGITS}}}")
_FEWEST_CODES = 20  # fewer texts of one length may be words
_CAPITALS = re.compile(r"[A-Z0-9]{6,}")
_BASE_64 = re.compile(r"[\w+/-]{16,}={0,2}", re.ASCII)
_OPAQUE = re.compile(r"[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def are_flags(texts: Sequence[str]) -> bool:
    """Return whether values only mean yes or no."""
    return 0 < len(texts) <= 5 and all(text.strip().lower() in _FLAGS for text in texts)


def written_as_key(texts: Sequence[str]) -> bool:
    """Return whether values are whole numbers, or codes of letters and digits.

    >>> written_as_key(["P-001", "P-002"]), written_as_key(["1.5", "2"]), written_as_key(["north", "south"])
    (True, False, False)
    """
    values = spread(texts)
    return mostly(values, lambda text: _KEY.fullmatch(text) is not None, 0.98) or _are_random_codes(values)


def _are_random_codes(texts: Sequence[str]) -> bool:
    """Return whether values are capital letters and digits of one length; some may have no digit."""
    if len(texts) < _FEWEST_CODES or len({len(text) for text in texts}) > 1:
        return False
    return all(map(_CAPITALS.fullmatch, texts))


def written_as_opaque_key(texts: Sequence[str]) -> bool:
    """Return whether values are UUIDs, or hashes in hexadecimal digits or in base 64.

    >>> written_as_opaque_key(["0b9e1d2c4f5a6b7c8d9e0f1a2b3c4d5e"]), written_as_opaque_key(["P-001", "17"])
    (True, False)
    """
    values = spread(texts)
    if mostly(values, lambda text: _OPAQUE.fullmatch(text) is not None, 0.98):
        return True
    return len({len(text) for text in values}) == 1 and mostly(values, _is_base_64, 0.9)


def _is_base_64(text: str) -> bool:
    """Return whether a text is long, has no spaces, and has capital letters, small letters and digits."""
    return _BASE_64.fullmatch(text) is not None and all(
        any(map(test, text)) for test in (str.isupper, str.islower, str.isdigit)
    )


def written_as_numbered_key(texts: Sequence[str]) -> bool:
    """Return whether values are a common prefix followed by nearly consecutive numbers of one length.

    >>> written_as_numbered_key([f"S{n:04}" for n in range(30)]), written_as_numbered_key(["C5091", "C3410"])
    (True, False)
    """
    same = len(texts) >= _FEW_AGES and all(len(text) == len(texts[0]) for text in texts)
    return same and not texts[0][0].isdigit() and are_numbered_codes(texts)


def written_as_amounts(texts: Sequence[str]) -> bool:
    """Return whether values are whole numbers of different lengths with many gaps between them.

    >>> written_as_amounts(["7", "120", "96"]), written_as_amounts(["1", "2", "3"])
    (True, False)
    """
    numbers = _whole_numbers(texts)
    if numbers is None or max(numbers) - min(numbers) < 2 * len(numbers):
        return False
    return len({len(str(number)) for number in numbers}) > 1


def number_records(texts: Sequence[str], records: int) -> bool:
    """Return whether values are nearly consecutive whole numbers that differ in every record.

    >>> number_records([str(n) for n in range(7, 107)], 100), number_records(["3", "1", "900"], 3)
    (True, False)
    """
    numbers = _whole_numbers(texts)
    return numbers is not None and len(numbers) == records and max(numbers) - min(numbers) < 2 * records


def are_counts(texts: Sequence[str], *, named: bool = False) -> bool:
    """Return whether values are non-negative whole numbers; unless `named`, they must include 0, 1 and 2.

    >>> are_counts(["0", "1", "2", "7"]), are_counts(["0", "1"]), are_counts(["1", "2", "3"], named=True)
    (True, False, True)
    """
    numbers = _whole_numbers(texts)
    return numbers is not None and min(numbers) >= 0 and (named or {0, 1, 2} <= numbers)


def are_few_codes(texts: Sequence[str]) -> bool:
    """Return whether values are whole numbers, and few enough to be codes.

    >>> are_few_codes(["1", "2", "9"]), are_few_codes(["1.5", "2"])
    (True, False)
    """
    return len(texts) <= _MOST_CODES and _whole_numbers(texts) is not None


def _whole_numbers(texts: Sequence[str]) -> set[int] | None:
    """Return whole numbers, also such as 2.0; None if any value is not a whole number."""
    joined = "".join(texts)
    if joined.isascii() and joined.isdigit() and all(texts) and max(map(len, texts)) <= _MOST_DIGITS:
        return set(map(int, texts))
    digits = []
    for text in texts:
        digits.append(text.strip().removesuffix(".0"))
        if not _WHOLE.fullmatch(digits[-1]):
            return None
    return set(map(int, digits)) or None


def hold_dates(texts: Sequence[str]) -> bool:
    """Return whether many values are or contain a date, a year, a month or a time."""
    values = spread(texts)
    return mostly(values, _holds_date, _SOME) or mostly(values, is_year) or _are_short_years(values)


def _are_short_years(texts: Sequence[str]) -> bool:
    """Return whether values are two-digit years. One must begin with 0, because numbers do not."""
    all_short = len(texts) >= _FEW_AGES and all(_SHORT_YEAR.fullmatch(text) for text in texts)
    return all_short and any(text.startswith("0") for text in texts)


def hold_ages(texts: Sequence[str]) -> bool:
    """Return whether values are age bands, or ages with a unit.

    >>> hold_ages(["20-29", "30-39", "80+"]), hold_ages(["45 years", "7 months"]), hold_ages(["5-4", "mild"])
    (True, True, False)
    """
    values = [text.strip() for text in spread(texts)]
    return len(values) > 1 and mostly(values, _is_age)


def _is_age(text: str) -> bool:
    if match := _AGE_BAND.fullmatch(text):
        low, high = map(int, match.groups())
        return low < high <= _OLDEST
    return _AGE_END.fullmatch(text) is not None or _AGE_UNIT.fullmatch(text) is not None


def are_prefixed_keys(texts: Sequence[str]) -> bool:
    """Return whether values are letters and digits of one length, like keys, but not amounts of money.

    >>> are_prefixed_keys(["X00012", "X00345"]), are_prefixed_keys(["EUR1200", "EUR3400"])
    (True, False)
    """
    matches = [_PREFIXED.fullmatch(text.strip()) for text in spread(texts)]
    prefixes = [match[1].lower() for match in matches if match]
    equal = len({len(text.strip()) for text in texts}) == 1
    return (
        equal and bool(matches) and len(prefixes) == len(matches) and not _CURRENCIES.intersection(prefixes)
    )


def _holds_date(text: str) -> bool:
    if is_date(text) or is_month_or_weekday(text) or (":" in text and minute_of(text) is not None):
        return True
    return _DATE_INSIDE.search(text) is not None or _HALF_YEAR.fullmatch(text.strip()) is not None


def hold_places(texts: Sequence[str]) -> bool:
    """Return whether values are postcodes, or many contain a place of treatment or a doctor's title."""
    values = spread(texts)
    if mostly(values, lambda text: _POSTCODE.fullmatch(text.strip()) is not None):
        return True
    return mostly(values, lambda text: _PLACE_INSIDE.search(text) is not None, _SOME)


def are_codes_of_states(texts: Sequence[str]) -> bool:
    """Return whether values are two or three capital letters, like many codes of states."""
    return mostly(spread(texts), lambda text: 2 <= len(text) <= 3 and text.isalpha() and text.isupper())


def are_codes_of_illness(texts: Sequence[str]) -> bool:
    """Return whether values have the form of codes of the International Classification of Diseases."""
    return mostly(spread(texts), lambda text: _CODE.fullmatch(text) is not None)


def are_numbered_codes(texts: Sequence[str]) -> bool:
    """Return whether values are a common prefix and nearly consecutive numbers of four digits or more.

    >>> are_numbered_codes([f"T{n:05}" for n in range(80)]), are_numbered_codes(["C5091", "C3410"])
    (True, False)
    """
    parts = [match.groups() for text in texts if (match := _NUMBERED.fullmatch(text))]
    numbers = [int(number) for _, number in parts]
    one_sign = len(parts) == len(texts) and len({sign for sign, _ in parts}) == 1
    return one_sign and max(numbers) - min(numbers) < 2 * len(numbers)


def can_be_times(texts: Sequence[str]) -> bool:
    """Return whether values fit a name about time: dates, or texts with digits that are no disease codes."""
    values = spread(texts)
    if hold_dates(values):
        return True
    return mostly(values, lambda text: any(map(str.isdigit, text))) and not are_codes_of_illness(values)


def unexpected_numbers(texts: Sequence[str], records: int) -> str | None:
    """Return why the numbers in a column that is named as an illness are not disease codes, or None.

    Such a column may contain ages, days since a date, or keys. Expected are short lists of codes that begin
    with 0 or 1, and numbers with large gaps, like the codes of a classification.
    """
    decimal = decimal_of(list(texts))
    numbers = [number for text in texts if (number := number_of(text, decimal or ".")) is not None]
    if decimal is None or len(numbers) < _FEW_AGES:
        return None
    low, high, are_whole = min(numbers), max(numbers), all(number == int(number) for number in numbers)
    if are_whole and low in (0, 1) and len(numbers) <= _FEW_CODES:
        return None
    if low >= 0 and high <= _OLDEST:
        return "the values are numbers like ages"
    if are_whole and (len(numbers) >= records / 4 or 2 * len(numbers) > high - low):
        return "the values are numbers like days, dates or keys"
    return None


# The only values of a table that a first policy may contain, in lowercase.
_UNKNOWN = frozenset((
    "unknown", "u", "?", "na", "n/a", "-", "none", "-1", "99", "999", "9999", "99999", "999999", "unbekannt",
    "k.a.", "k. a.", "keine angabe", "inconnu", "desconocido", "sconosciuto", "onbekend", "desconhecido",
))  # fmt: skip


_LONGEST = max(map(len, _UNKNOWN))
_NINES = re.compile("99+")
_BELOW_NINES = (1, 2)  # if 99 means "unknown", 98 often means "refused" and 97 "not asked"


def unknown_codes(texts: Sequence[str]) -> list[str]:
    """Return the well-known codes for "unknown". A number counts only if it is far from all other numbers."""
    codes = [text for text in texts if len(text) <= _LONGEST and text.lower() in _UNKNOWN]
    if not any(number_of(text) is not None for text in codes):
        return codes
    adjacent = {str(int(code) - step) for code in codes if _NINES.fullmatch(code) for step in _BELOW_NINES}
    if adjacent:
        codes = [text for text in texts if text in adjacent or text in codes]
    if any(len(text) > 1 and text.startswith("0") for text in texts):  # these are codes, not numbers
        return codes
    code_set = set(codes)
    others = [text for text in texts if text not in code_set]
    decimal, ends = POINT, _ends(others)
    if ends is None:
        decimal, ends = decimal_of(others) or POINT, others
    numbers = sorted({n for text in (*ends, *codes) if (n := number_of(text, decimal)) is not None})
    blocks = {text: {number_of(code) for code in codes if code[:-1] == text[:-1]} for text in codes}
    return [
        text
        for text in codes
        if _is_outlying_code(number_of(text), [n for n in numbers if n not in blocks[text]])
    ]


def _ends(texts: Sequence[str]) -> list[str] | None:
    """Return the texts of the two least and two greatest numbers; None if a text is not a plain number."""
    numbers = plain_numbers(texts)
    if numbers is None or len(numbers) < 3:
        return None
    least = np.unique(np.partition(numbers, 2)[:3])[:2]  # distinct texts may mean the same number
    greatest = np.unique(-np.partition(-numbers, 2)[:3])[-2:]
    if len(least) < 2 or len(greatest) < 2:
        return list(texts)
    return [texts[i] for i in np.flatnonzero((numbers <= least[-1]) | (numbers >= greatest[0])).tolist()]


def _is_outlying_code(code: Decimal | None, numbers: Sequence[Decimal]) -> bool:
    """Return whether a code is far from all other numbers (sorted), or is not a number."""
    if code is None or not numbers:
        return True
    return numbers[-1] < code / 2 if code > 0 else numbers[0] >= 0


def unclear_commas(texts: Sequence[str]) -> bool:
    """Return whether texts are numbers whose commas may be decimal signs or thousands separators."""
    return decimal_of(texts) is None and bool(texts) and has_commas(texts)


def differ_by_case_or_spaces(texts: Sequence[str]) -> bool:
    """Return whether some texts differ only by case or by spaces around them."""
    return len({text.strip().casefold() for text in texts}) < len(texts)


def written_as(name: str, texts: Sequence[str], counts: Sequence[int]) -> str:
    """Return how values are written: number, date, time, code, category or empty."""
    return form_of(name, texts, counts).written


class WrittenForm(NamedTuple):
    """How values are written, with the format of dates or the decimal sign of numbers."""

    written: str
    read: DateFormat | str | None


def form_of(name: str, texts: Sequence[str], counts: Sequence[int]) -> WrittenForm:
    """Return how distinct values are written, with their format or decimal sign."""
    return (
        written_form(name, texts, np.array(counts, np.float64), None) if texts else WrittenForm("empty", None)
    )


def written_form(name: str, texts: Sequence[str], records: FloatArray, today: date | None) -> WrittenForm:
    """Return how values are written, with their format or decimal sign; at least one value is required."""
    if is_postcode(name) and postcodes(texts):
        return WrittenForm("code", None)
    decimal = decimal_of(texts)
    if decimal and not _are_days(name, texts) and not _are_codes(texts):
        return WrittenForm("category", None) if _is_code_list(name, texts) else WrittenForm("number", decimal)
    if dated := date_format(texts, records, today):
        return WrittenForm("date", dated)
    if all(":" in text and minute_of(text) is not None for text in texts):
        return WrittenForm("time", None)
    length = len(texts[0])
    same = len(texts) > _FEW_TEXTS and 3 <= length <= 12
    same = same and all(len(text) == length and _is_code(text) for text in texts)
    return WrittenForm("code" if same else "category", None)


def _are_days(name: str, texts: Sequence[str]) -> bool:
    """Return whether digits are dates such as 20240305, months such as 202403, or weeks such as 202453."""
    if len(texts) > _FEW_TEXTS and is_named_as(name, "time") and all(map(_WEEK.fullmatch, texts)):
        return True
    days = len(texts) > _FEW_TEXTS and all(
        len(text) == 8 and text.isdigit() and is_date(text) for text in texts
    )
    return days or (
        len(texts) > 2 and all(len(text) == 6 and text.isdigit() and is_date(text) for text in texts)
    )


def _are_codes(texts: Sequence[str]) -> bool:
    """Return whether values are codes, not numbers: digits of one length, of which some begin with 0."""
    length = len(texts[0])
    return (
        len(texts) > _FEW_TEXTS
        and length > 1
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length and text.isdigit() for text in texts)
    )


def _is_code_list(name: str, texts: Sequence[str]) -> bool:
    """Return whether numbers are codes of categories: the name says so, and they are few and whole."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    most = CODES if _CODE_NAME.search(name) else _FEW_CODES if is_named_as(name, "nominal") else 0
    return len(texts) <= most and _whole_numbers(texts) is not None


def _is_code(text: str) -> bool:
    return text.isascii() and text.isalnum() and not text.isalpha()


def postcodes(texts: Sequence[str]) -> dict[str, Any] | None:
    """Return a prefix hierarchy that restores lost leading zeros of postcodes; None for other texts.

    >>> postcodes(["1067", "80331"])
    {'prefix': [3, 2, 1], 'pad': [5]}
    """
    lengths = {len(text) for text in texts}
    if not texts or not 3 <= max(lengths) <= 9 or not all(t.isascii() and t.isdigit() for t in texts):
        return None
    pad = [5, 9] if min(lengths) <= 5 and max(lengths) > 7 else [max(lengths)]  # ZIP codes have 5 or 9 digits
    hierarchy: dict[str, Any] = {"prefix": list(range(pad[0] - 2, 0, -1))[:4]}
    return hierarchy | {"pad": pad} if len(lengths) > 1 else hierarchy


def has_blanks(domain: Domain) -> bool:
    """Return whether a column is empty in some row. Only then can a row be empty in all columns."""
    return any(text is None or not text.strip() for text in domain.texts)


def empty_rows(engine: Engine, table: Any) -> list[str]:
    """Return a note on the number of empty rows of an open table, or an empty list if there are none."""
    count = 0
    with suppress(DataError):  # a note must not cause a failure
        count = engine.empty(table)
    if not count:
        return []
    rows_are = "1 row is" if count == 1 else f"{count:,} rows are"
    return [f"{rows_are} entirely empty, and counted as records: take them out of the table."]


NEARLY_UNIQUE = "nearly every value occurs once, so anyone who knows it finds the record: make it coarser"
_SHARE = 0.9  # values are nearly unique if more than this share of the records has a unique value
_FEW = 20  # if there are not more records, all values may differ by chance


def nearly_unique(unique: int, records: int) -> bool:
    """Return whether nearly every record has a unique value; `unique` is the number of such records.

    >>> nearly_unique(95, 100), nearly_unique(90, 100), nearly_unique(20, 20)
    (True, False, False)
    """
    return records > _FEW and unique / records > _SHARE
