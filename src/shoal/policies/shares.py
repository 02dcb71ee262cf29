"""Shares: of records and of persons, as people write them: 5%, 0.05, 1/20."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from shoal.errors import PolicyError, UsageError, so_many


def limit_in_records(limit: float | str, records: int) -> int:
    """Turn a suppression limit into records: a share is rounded down, in decimals.

    >>> limit_in_records("29%", 100), limit_in_records(0.05, 30162), limit_in_records(7, 100)
    (29, 1508, 7)
    """
    number, share = read_limit(limit)
    found = int(number * records) if share else int(number)
    if found > records:
        message = (
            f"suppression_limit must not be above the table's {so_many(records, 'record')}, got {limit!r}."
        )
        raise PolicyError(message)
    return found


def share_in(limit: float | str) -> float | str | None:
    """Return a limit as it is written where it is a share of the records, and not of none; else None.

    >>> share_in("10%"), share_in(0.05), share_in(300), share_in("0%")
    ('10%', 0.05, None, None)
    """
    number, share = read_limit(limit)
    return limit if share and number else None


def read_limit(limit: object) -> tuple[Decimal, bool]:
    """Read a limit as a number and whether it is a share of the records.

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
        message = (
            f"suppression_limit must be a share such as 5% or 0.05, or a number of records, got {limit!r}."
            f"{_without_comma(text)}"
        )
        raise PolicyError(message) from None
    share = percent or "." in text or "e" in text.lower()
    if number < 0:
        message = f"suppression_limit must not be below 0, got {limit!r}."
        raise PolicyError(message)
    if share and number > 1:
        message = (
            f"suppression_limit must not be above 100%, got {limit!r}.{'' if percent else _as_share(text)}"
        )
        raise PolicyError(message)
    return number, share


def decimal_point(text: str) -> str:
    """Write a decimal comma as a point, where it can be nothing else: 1,500 may be records.

    >>> decimal_point("5,5%"), decimal_point("0,05"), decimal_point("1,500")
    ('5.5%', '0.05', '1,500')
    """
    return text.replace(",", ".") if re.fullmatch(r"[0-9]+,[0-9]+\s*%|0,[0-9]+", text) else text


def _as_share(text: str) -> str:
    """Ask for a percent sign after what looks like a number of percent.

    >>> print(_as_share("5,5"), _as_share("150.5"))
     Write 5.5% for a share, or a whole number of records.  Write a whole number of records.
    """
    number = Decimal(text.replace(",", ".")).normalize()
    return f" Write {f'{number:f}% for a share, or ' if number <= 100 else ''}a whole number of records."


def _without_comma(text: str) -> str:
    """Ask for a number without commas: of records where commas part thousands, else of percent."""
    if re.fullmatch(r"[0-9]+,[0-9]+", text) and not re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", text):
        return _as_share(text)
    plain = text.replace(",", "")
    return f" Write {plain} for so many records." if plain != text and plain.isdecimal() else ""


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
        message = f"{what} is a share above 0 and at most 1, as 0.05, 5% or 1/20, got {text[:40]!r}."
        raise UsageError(message) from None
    return float(number)
