"""What the values of a column are: numbers, dates, times, codes or categories, with a hierarchy for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from shoal.core.builder import number_of
from shoal.core.calendar import minute_of
from shoal.identifiers.values import is_date

_UNKNOWN = {
    "unknown", "Unknown", "UNKNOWN", "U", "u", "?", "NA", "N/A", "n/a", "na", "-", "none", "-1", "99", "999",
    "9999", "99999", "999999",
}  # fmt: skip
_DATE_FORMATS = (None, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")


def unknown_codes(texts: Sequence[str]) -> list[str]:
    """Return the codes that mean "unknown": among numbers, only one that lies far from all others."""
    found = [text for text in texts if text in _UNKNOWN]
    if not any(number_of(text) is not None for text in found):
        return found
    if any(len(text) > 1 and text.startswith("0") for text in texts):  # digits, but codes
        return found
    numbers = sorted({number for text in texts if (number := number_of(text)) is not None})
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
    if days and all(_is_date(text, "%Y%m%d") for text in texts):
        return "date", {"dates": ["month", "quarter", "year"], "format": "%Y%m%d", **extra}
    length = len(texts[0])
    numbers = _numbers(texts)
    if numbers and not _are_codes(texts):
        return "number", {"intervals": _widths(numbers), **extra} if len(texts) > 5 else "flat"
    for style in _DATE_FORMATS:
        if all(_is_date(text, style) for text in texts):
            form = {"format": style} if style else {}
            return "date", {"dates": ["month", "quarter", "year"], **form, **extra}
    if all(":" in text and minute_of(text) is not None for text in texts):
        return "time", {"times": ["hour", "part_of_day"], **extra}
    if len(texts) > 5 and 3 <= length <= 12 and all(len(t) == length and _is_code(t) for t in texts):
        return "code", {"prefix": list(range(length - 2, 0, -1))[:4], **extra}
    return "category", "flat"


def _numbers(texts: Sequence[str]) -> list[Decimal]:
    """Return the numbers that the texts are; none where one is no number, which is mostly soon seen."""
    found = []
    for text in texts:
        number = number_of(text)
        if number is None:
            return []
        found.append(number)
    return found


def _are_codes(texts: Sequence[str]) -> bool:
    """Tell digits of one length, some with a zero before them, from numbers."""
    length = len(texts[0])
    return (
        len(texts) > 5
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length for text in texts)
    )


def _is_date(text: str, style: str | None) -> bool:
    try:
        _ = datetime.strptime(text, style) if style else datetime.fromisoformat(text)
    except ValueError:
        return False
    return style is not None or "-" in text


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
