"""Shares of records and of persons, in several notations: 5%, 0.05, 1/20."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

from shoal.errors import PolicyError, UsageError, invalid
from shoal.wording import plural, quote


def limit_in_records(limit: float | str, records: int) -> int:
    """Convert a suppression limit to a number of records. Decimal arithmetic rounds a share down exactly.

    >>> limit_in_records("29%", 100), limit_in_records(0.05, 30162), limit_in_records(7, 100)
    (29, 1508, 7)
    """
    number, share = read_limit(limit)
    count = int(number * records) if share else int(number)
    if count > records:
        raise _invalid_limit(f"must not be above the table's {plural(records, 'record')}", limit)
    return count


def share_in(limit: float | str) -> float | str | None:
    """Return the limit as written if it is a share of the records above 0, else None.

    >>> share_in("10%"), share_in(0.05), share_in(300), share_in("0%")
    ('10%', 0.05, None, None)
    """
    number, share = read_limit(limit)
    return limit if share and number else None


def read_limit(limit: object) -> tuple[Decimal, bool]:
    """Return a limit as a number, and whether it is a share of the records.

    >>> read_limit("5,5%") == read_limit("5.5%"), read_limit("0,05") == read_limit(0.05)
    (True, True)
    """
    text = decimal_point(str(limit).strip())
    percent = text.endswith("%")
    try:
        number = Decimal(text.removesuffix("%")) / (100 if percent else 1)
        if isinstance(limit, bool) or not number.is_finite():
            raise ArithmeticError
    except ArithmeticError:
        rule = "must be a share such as 5% or 0.05, or a number of records"
        raise _invalid_limit(rule, limit, _without_comma(text)) from None
    share = percent or "." in text or "e" in text.lower()
    if number < 0:
        raise _invalid_limit("must not be below 0", limit)
    if share and number > 1:
        raise _invalid_limit("must not be above 100%", limit, "" if percent else _as_share(text))
    return number, share


def _invalid_limit(rule: str, limit: object, hint: str = "") -> PolicyError:
    return PolicyError(f"suppression_limit {rule}, got {quote(limit)}.{hint}", field="suppression_limit")


def check_whole(name: str, value: object, least: int = 1) -> int:
    """Return an int, also for a whole number of NumPy; else raise an error about the field `name`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise invalid(name, "a whole number", value)
    if value < least:
        raise invalid(name, f"at least {least}", value)
    return int(value)


def check_seconds(seconds: object) -> float | None:
    """Return a time limit in seconds, or None if there is no limit; raise an error if it is invalid."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not float(seconds) > 0:
        raise invalid("seconds", "a number above 0", seconds)
    return float(seconds)


def decimal_point(text: str) -> str:
    """Replace a decimal comma by a point. A comma that may separate thousands, as in 1,500, stays.

    >>> decimal_point("5,5%"), decimal_point("0,05"), decimal_point("1,500")
    ('5.5%', '0.05', '1,500')
    """
    return text.replace(",", ".") if re.fullmatch(r"[0-9]+,[0-9]+\s*%|0,[0-9]+", text) else text


def _as_share(text: str) -> str:
    """Return a hint to add a percent sign to a number that looks like a percentage.

    >>> print(_as_share("5,5"), _as_share("150.5"))
     Write 5.5% for a share, or a whole number of records.  Write a whole number of records.
    """
    number = Decimal(text.replace(",", ".")).normalize()
    return f" Write {f'{number:f}% for a share, or ' if number <= 100 else ''}a whole number of records."


def _without_comma(text: str) -> str:
    """Return a hint to write a number of records, or a percentage, without commas."""
    if re.fullmatch(r"[0-9]+,[0-9]+", text) and not re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", text):
        return _as_share(text)
    plain = text.replace(",", "")
    return f" Write {plain} for that number of records." if plain != text and plain.isdecimal() else ""


def share_of(share: float | str, what: str) -> float:
    """Read a share above 0 and at most 1.

    >>> share_of("1/11", "threshold") == 1 / 11, share_of("5%", "threshold"), share_of(0.2, "threshold")
    (True, 0.05, 0.2)
    """
    text = decimal_point(str(share).strip())
    percent = text.endswith("%")
    try:
        number = Fraction(text.removesuffix("%").strip()) / (100 if percent else 1)
        if isinstance(share, bool) or not 0 < number <= 1:
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"{what} must be a share above 0 and at most 1, such as 0.05, 5% or 1/20, got {text[:40]!r}.",
            field=what,
        ) from None
    return float(number)
