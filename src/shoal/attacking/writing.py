"""Writing: dates and numbers of a column that are written otherwise than its rule, or another table, does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from shoal.attacking.spans import ISO_DATE
from shoal.core.builder import COMMA, POINT, Builder, decimal_of, number_of
from shoal.core.builders import Flat
from shoal.core.calendar import Dates
from shoal.core.numbers import Banded
from shoal.policies.value_kinds import unknown_codes

_TIME = r"(?:(?:T|,? )([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?(?: ?([AaPp])[Mm])?)?"
_YEAR_LAST = re.compile(rf"([0-9]{{1,2}})([-/.])([0-9]{{1,2}})\2([0-9]{{4}}){_TIME}")
_YEAR_FIRST = re.compile(rf"([0-9]{{4}})([-/.]?)([0-9]{{1,2}})\2([0-9]{{1,2}}){_TIME}")
_TIME_PART = re.compile(r"[\sT,]*%[HIMSpfXzZ].*")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]{3})*(?:,[0-9]+)?|[-+]?[0-9]+\.[0-9]+")
_COMPACT = re.compile(r"[0-9]{8}")


def otherwise(
    texts: Iterable[str | None], rule: Builder | None, *, months_first: bool = False
) -> Mapping[str, str]:
    """Write dates as 2024-03-05, and numbers with the rule's decimal sign; what is read as it is is left out.

    >>> otherwise(["05.03.2024", "6.3.2024 14:15", "2024-03-07"], None)
    {'05.03.2024': '2024-03-05', '6.3.2024 14:15': '2024-03-06 14:15:00'}
    >>> otherwise(["36,6", "37"], None), otherwise(["1,234", "999"], None)
    ({'36,6': '36.6'}, {})
    """
    given = [text for text in texts if text is not None and not (rule and rule.is_unknown(text))]
    found: dict[str, str] = {}
    if rule is None or isinstance(rule, Dates | Flat):
        found |= _dates(given, rule, months_first)
    if rule is None or isinstance(rule, Banded | Flat):
        found |= _numbers(given, rule)
    return found


def begins_with_month(texts: Iterable[str | None], rule: Builder | None) -> bool | None:
    """Tell whether dates such as 05/03/2024 begin with the month; None where they may, and the day is taken.

    The rule's own order counts; else what all texts can be, the day before the month.
    """
    style = (rule.format or "") if isinstance(rule, Dates) else ""
    if "%d" in style and "%m" in style and not style.startswith("%Y"):
        return style.index("%m") < style.index("%d")
    found = [parts for text in texts if text and (parts := _YEAR_LAST.fullmatch(text.strip()))]
    slashed = [parts for parts in found if parts[2] == "/"]
    if any(int(parts[1]) > 12 for parts in slashed):
        return False
    return True if any(int(parts[3]) > 12 for parts in slashed) else None if slashed else False


def _numbers(texts: Sequence[str], rule: Builder | None) -> dict[str, str]:
    """Rewrite numbers with the other decimal sign, where all that are numbers say that it is one."""
    sign = rule.decimal if isinstance(rule, Banded) else POINT
    codes = set(unknown_codes(texts))
    shown = [text for text in texts if text not in codes and _NUMBER.fullmatch(text.strip())]
    decimal = decimal_of(shown)
    if decimal is None or decimal == sign:
        return {}
    found = {}
    for text in shown:
        number = number_of(text, decimal)
        if number is not None and number_of(text, sign) is None:
            found[text] = str(number).replace(POINT, COMMA) if sign == COMMA else str(number)
    return found


def _dates(texts: Sequence[str], rule: Builder | None, months_first: bool) -> dict[str, str]:
    own = rule if isinstance(rule, Dates) else Dates()
    short = _TIME_PART.sub("", own.format) if own.format else None
    compact = isinstance(rule, Dates) or all(_COMPACT.fullmatch(text) for text in texts)
    found = {}
    for text in texts:
        if _COMPACT.fullmatch(text) and not compact:
            continue  # some number
        if own.position(text) is not None and (rule is own or ISO_DATE.match(text)):
            continue
        moment = _by(text, short) or _usual(text.strip(), months_first)
        if moment is not None:
            day = moment.date().isoformat()
            found[text] = day if moment == datetime(*moment.timetuple()[:3]) else moment.isoformat(" ")
    return found


def _by(text: str, style: str | None) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), style) if style else None
    except ValueError:
        return None


def _usual(text: str, months_first: bool) -> datetime | None:
    """Read a date in one of the usual ways."""
    if parts := _YEAR_FIRST.fullmatch(text):
        year, month, day = parts[1], parts[3], parts[4]
        if not parts[2] and (len(month), len(day)) != (2, 2):
            return None
    elif parts := _YEAR_LAST.fullmatch(text):
        day, month, year = parts[1], parts[3], parts[4]
        if months_first and parts[2] != ".":
            day, month = month, day
    else:
        return None
    hour, minute, second = (int(part or 0) for part in parts.groups()[4:7])
    half = (parts[8] or "").lower()
    if half:
        hour = hour % 12 + 12 * (half == "p")
    try:
        return datetime(int(year), int(month), int(day), hour, minute, second)
    except ValueError:
        return None
