"""What the values of a column are: numbers, dates, times, codes or categories, with a hierarchy for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from shoal.core.builder import POINT, decimal_of, has_commas, number_of
from shoal.core.calendar import minute_of
from shoal.core.dates import styles_of
from shoal.identifiers.values import is_date

# The only values that a first policy may hold, in small letters.
_UNKNOWN = frozenset((
    "unknown", "u", "?", "na", "n/a", "-", "none", "-1", "99", "999", "9999", "99999", "999999", "unbekannt",
    "k.a.", "k. a.", "keine angabe", "inconnu", "desconocido", "sconosciuto", "onbekend", "desconhecido",
))  # fmt: skip

_REPEATED = re.compile("0+|99+")


def unknown_codes(texts: Sequence[str]) -> list[str]:
    """Return the well-known codes for "unknown": among numbers, only one that lies far from all others."""
    found = [text for text in texts if text.lower() in _UNKNOWN]
    if not any(number_of(text) is not None for text in found):
        return found
    if any(len(text) > 1 and text.startswith("0") for text in texts):  # digits, but codes
        return found
    decimal = decimal_of([text for text in texts if text.lower() not in _UNKNOWN]) or POINT
    numbers = sorted({number for text in texts if (number := number_of(text, decimal)) is not None})
    return [text for text in found if _far(number_of(text), numbers)]


def _far(code: Decimal | None, numbers: Sequence[Decimal]) -> bool:
    """Tell whether a code lies far from all other numbers, which ascend, or is none."""
    if code is None or len(numbers) == 1:
        return True
    if code > 0:
        return max(number for number in numbers[-2:] if number != code) < code / 2
    return min(number for number in numbers[:2] if number != code) >= 0


def kind_of(texts: Sequence[str], unknown: Sequence[str]) -> tuple[str, Any]:
    """Return what the values are and a builder that fits them."""
    extra = {"unknown": list(unknown)} if unknown else {}
    if not texts:
        return "empty", "flat"
    days = len(texts) > 5 and all(len(text) == 8 and text.isdigit() and is_date(text) for text in texts)
    if days and "%Y%m%d" in styles_of(texts):
        return "date", _dates("%Y%m%d") | extra
    length = len(texts[0])
    decimal = decimal_of(texts)
    if decimal and not _are_codes(texts):
        return "number", bands(texts, decimal) | extra if len(texts) > 5 else "flat"
    for style in styles_of(texts):
        return "date", _dates(style) | extra
    if all(":" in text and minute_of(text) is not None for text in texts):
        return "time", {"times": ["hour", "part_of_day"], **extra}
    if len(texts) > 5 and 3 <= length <= 12 and all(len(t) == length and _is_code(t) for t in texts):
        return "code", {"prefix": list(range(length - 2, 0, -1))[:4], **extra}
    return "category", "flat"


def _dates(style: str | None) -> dict[str, Any]:
    return {"dates": ["month", "quarter", "year"]} | ({"format": style} if style else {})


def postcodes(texts: Sequence[str], unknown: Sequence[str]) -> dict[str, Any] | None:
    """Return prefixes for postcodes of digits, which get back zeros that were lost; none for other texts.

    >>> postcodes(["1067", "80331"], [])
    {'prefix': [3, 2, 1], 'pad': [5]}
    """
    lengths = {len(text) for text in texts}
    if not texts or not 3 <= max(lengths) <= 9 or not all(t.isascii() and t.isdigit() for t in texts):
        return None
    pad = [5, 9] if min(lengths) <= 5 and max(lengths) > 7 else [max(lengths)]  # ZIP codes may have nine
    found: dict[str, Any] = {"prefix": list(range(pad[0] - 2, 0, -1))[:4]}
    if len(lengths) > 1:
        found["pad"] = pad
    return found | ({"unknown": list(unknown)} if unknown else {})


def unknown_postcodes(texts: Sequence[str], unknown: Sequence[str]) -> list[str]:
    """Return the codes for "unknown" among postcodes: also nines or zeros alone, for no place has such.

    >>> unknown_postcodes(["1067", "80331", "999", "99999", "0"], [])
    ['999', '99999', '0']
    """
    others = [text for text in texts if text not in unknown and not _REPEATED.fullmatch(text)]
    if postcodes(others, []) is None or max(map(len, others)) < 4:
        return list(unknown)
    return [text for text in texts if text in unknown or _REPEATED.fullmatch(text)]


def short_postcodes(texts: Sequence[str]) -> bool:
    """Tell whether postcodes that get back their zeros have some that lack two digits or more."""
    found = postcodes(texts, [])
    return found is not None and "pad" in found and min(map(len, texts)) < min(5, found["pad"][0]) - 1


def unclear_commas(texts: Sequence[str]) -> bool:
    """Tell whether texts are numbers whose commas may be decimal signs or part thousands."""
    return decimal_of(texts) is None and bool(texts) and has_commas(texts)


def alike(texts: Sequence[str]) -> bool:
    """Tell whether some texts differ only by case or by spaces around them."""
    return len({text.strip().casefold() for text in texts}) < len(texts)


def bands(texts: Sequence[str], decimal: str) -> dict[str, Any]:
    """Return bands that fit numbers, with their decimal sign where it is no point."""
    numbers = [number for text in texts if (number := number_of(text, decimal)) is not None]
    sign = {} if decimal == POINT else {"decimal": decimal}
    return {"intervals": _widths(numbers), **sign}


def _are_codes(texts: Sequence[str]) -> bool:
    """Tell digits of one length, some with a zero before them, from numbers."""
    length = len(texts[0])
    return (
        len(texts) > 5
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length and text.isdigit() for text in texts)
    )


def _is_code(text: str) -> bool:
    return text.isascii() and text.isalnum() and not text.isalpha()


def _widths(numbers: Sequence[Decimal]) -> list[float | int]:
    """Return three widths, each twice the one before, the first about a twentieth of the range."""
    spread = max(numbers) - min(numbers)
    step = Decimal(1)
    while step * 100 < spread:
        step *= 10
    while spread and step > spread:
        step /= 10
    least = next((step * f for f in (1, 2, 5, 10) if step * f * 20 >= spread), step * 10)
    return [_plain(least * factor) for factor in (1, 2, 4)]


def _plain(number: Decimal) -> float | int:
    return int(number) if number == number.to_integral_value() else float(number)
