"""Builders for dates and for times of the day."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.builder import Builder, Labels, floats_of, not_nested, number_of
from shoal.core.counts import Domain
from shoal.core.dates import (
    as_iso,
    day_numbers,
    day_or_time,
    has_short_year,
    moments,
    month_comes_first,
    styles_of,
    usual,
    without_time,
    written_out,
)
from shoal.core.hierarchy import TOP, Hierarchy
from shoal.errors import HierarchyError, UnknownName

# Every unit is made of whole units before it.
DATE_UNITS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "week_of_month": lambda day: f"{day:%Y-%m} week {(day.day - 1) // 7 + 1}",
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day:%Y}-Q{(day.month - 1) // 3 + 1}",
    "half_year": lambda day: f"{day:%Y}-H{(day.month - 1) // 6 + 1}",
    "year": lambda day: f"{day:%Y}",
    "decade": lambda day: f"{day.year // 10 * 10}s",
}
TIME_UNITS: dict[str, Callable[[int], str]] = {
    "minute": lambda minute: _clock(minute),
    "quarter_hour": lambda minute: _span(minute, 15),
    "half_hour": lambda minute: _span(minute, 30),
    "hour": lambda minute: _span(minute, 60),
    "part_of_day": lambda minute: ("night", "morning", "afternoon", "evening")[minute // 360],
    "half_day": lambda minute: ("before noon", "after noon")[minute // 720],
}
_PROBE = date(2001, 11, 23)
_CENTURIES = "two-digit years can be of two centuries. Write years with four digits in the table."
_FEW = 20  # codes at most, as people use them for unknown
_PARTS = (("y", "%Y"), ("j", "%Y"), ("a", "%Y"), ("m", "%m"), ("d", "%d"), ("t", "%d"), ("g", "%d"))
_ACROSS = {"week": "A week can lie in two months; use week_of_month."}


@dataclass(frozen=True)
class Dates(Builder):
    """Dates by calendar units, from finer to coarser."""

    dates: tuple[str, ...] = ()
    """The unit at each level from 1 up, as `[month, year]`."""
    format: str | None = None
    """How dates are written, as `%d.%m.%Y`; without it as `2025-01-31`. A time such as `14:05` may follow."""
    bottom_coding: Decimal | None = None
    """A year: every date before it is one group."""

    keyword: ClassVar[str] = "dates"
    scale: ClassVar[str | None] = "day"

    def depth(self) -> int:
        """Return the number of units."""
        return len(self.dates)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each date its units."""
        days = day_or_time(texts, self.format).astype("datetime64[D]")
        known, of = np.unique(days, return_inverse=True)
        units = [None if day is None else self._units(day) for day in known.astype(object)]
        return [units[place] for place in of.tolist()]

    def _units(self, day: date) -> Labels:
        if self.bottom_coding is not None and day.year < self.bottom_coding:
            return (f"<{int(self.bottom_coding)}",) * len(self.dates)
        return tuple(DATE_UNITS[unit](day) for unit in self.dates)

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return the number of each day, with the time as its fraction."""
        return day_numbers(day_or_time(texts, self.format))

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Read dates by the format, or as 2024-03-05."""
        own = self.positions(texts)
        return {"day": np.where(np.isnan(own), day_numbers(written_out(texts)), own) if self.format else own}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write dates as ISO dates that the format does not read, but its days or a usual way do."""
        own = np.isnan(self.positions(texts)).tolist()
        odd = [text for text, unread in zip(texts, own, strict=True) if unread]
        found = usual(odd, months_first=months_first)
        if self.format:
            days = moments(odd, without_time(self.format))
            found = np.where(np.isnat(days), found, days)
        return as_iso(odd, found)

    def months_first(self) -> bool | None:
        """Tell whether the format begins with the month."""
        return month_comes_first(self.format)

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the units nest, then apply them."""
        _check_units(domain.name, self.dates, DATE_UNITS)
        if self.bottom_coding is not None and not _is_year(self.bottom_coding):
            message = (
                f"Hierarchy of {domain.name!r}: bottom_coding of dates is a year, got {self.bottom_coding}."
            )
            raise HierarchyError(message)
        if self.format and "%y" in self.format:
            message = f"Hierarchy of {domain.name!r}: {_CENTURIES}"
            raise HierarchyError(message)
        if self.format and "%" not in self.format:
            message = (
                f"Hierarchy of {domain.name!r}: the format {self.format!r} is not written with % signs: "
                f"write {_with_signs(self.format)}."
            )
            raise HierarchyError(message)
        # A format that leaves something out reads as of 1900, January, the 1st.
        try:
            text = _PROBE.strftime(self.format) if self.format else _PROBE.isoformat()
            (read,) = day_or_time([text], self.format).astype("datetime64[D]").tolist()
        except (re.error, UnicodeError):
            read = None
        for unit in self.dates:
            if read is None or DATE_UNITS[unit](read) != DATE_UNITS[unit](_PROBE):
                message = (
                    f"Hierarchy of {domain.name!r}: the format {self.format!r} does not tell the {unit}."
                )
                raise HierarchyError(message)
        return super().bind(domain)

    def covers(self, label: str) -> str:
        """Say that it is a span of days."""
        if label.startswith("<"):
            return f"days before {label[1:]}"
        return super().covers(label) if label == TOP else f"days in {label}"

    def _miss(self, values: Sequence[str]) -> str:
        how = f"a date as {self.format}" if self.format else "an ISO date such as 2025-01-31; give 'format'"
        return f"not {how}. {_advice(values)}"


@dataclass(frozen=True)
class Times(Builder):
    """Times of the day (14:05, or minutes since midnight) by hours and parts of the day."""

    times: tuple[str, ...] = ()
    """The unit at each level from 1 up, as `[hour, part_of_day]`."""

    keyword: ClassVar[str] = "times"
    scale: ClassVar[str | None] = "minute"

    def depth(self) -> int:
        """Return the number of units."""
        return len(self.times)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each time its units."""
        minutes = [minute_of(text) for text in texts]
        return [None if m is None else tuple(TIME_UNITS[unit](m) for unit in self.times) for m in minutes]

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return each minute of the day."""
        return floats_of(map(minute_of, texts))

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Read times of the day."""
        return {"minute": self.positions(texts)}

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the units nest, then apply them."""
        _check_units(domain.name, self.times, TIME_UNITS)
        return super().bind(domain)

    def covers(self, label: str) -> str:
        """Say that it is a span of the day."""
        return super().covers(label) if label == TOP else f"times in {label}"

    def _miss(self, values: Sequence[str]) -> str:
        how = "not a time such as 14:05, nor minutes from 0 to 1439"
        return f"{how}. Name codes under 'unknown'."


def _advice(values: Sequence[str]) -> str:
    """Say what to do about values that are not read as dates; many of them are no codes."""
    if 2 * sum(map(has_short_year, values)) > len(values):
        return f"In most of them the year has two digits: {_CENTURIES}"
    if len(values) <= _FEW:
        return "Name codes under 'unknown'."
    style = next(styles_of(values), None)
    if style:
        return f"They fit format: '{style}'. Give it, and write all dates of the table that way."
    return "So many are no codes: mend them in the table, or give the 'format' in which they are written."


def _with_signs(style: str) -> str:
    """Write a format such as dd.mm.yyyy with the signs that tell its parts.

    >>> _with_signs("dd.mm.yyyy"), _with_signs("YYYY-MM-DD"), _with_signs("TT.MM.JJJJ"), _with_signs("x")
    ('%d.%m.%Y', '%Y-%m-%d', '%d.%m.%Y', 'it as %d.%m.%Y')
    """
    found = style.lower()
    for letter, sign in _PARTS:
        found = re.sub(rf"(?<![a-z%]){letter}+(?![a-z])", sign, found)
    day = re.fullmatch(r"[^a-zA-Z]*(?:%[Ymd][^a-zA-Z]*){3}", found)
    return found if day and len({"%Y", "%m", "%d"} & set(re.findall("%.", found))) == 3 else "it as %d.%m.%Y"


def _check_units(name: str, units: Sequence[str], known: dict[str, Callable[..., str]]) -> None:
    order = list(known)
    for unit in units:
        if unit in _ACROSS and known is DATE_UNITS:
            message = f"Hierarchy of {name!r}: {unit!r} does not nest. {_ACROSS[unit]}"
            raise HierarchyError(message)
        if unit not in known:
            raise UnknownName(unit, f"unit for column {name!r}:", known)
    for level, (low, high) in enumerate(pairwise(units), 2):
        if order.index(high) <= order.index(low):
            raise not_nested(name, level, f"A {high} is not made of whole {low}s; name finer units first.")


def _is_year(number: Decimal) -> bool:
    return number == number.to_integral_value() and date.min.year <= number <= date.max.year


def minute_of(text: str) -> int | None:
    """Read a time of the day, or minutes since midnight, as minutes; or return None."""
    if len(text.strip()) == 4 and text.strip().startswith("0"):
        return None  # 0905 is a clock, not 905 minutes
    number = number_of(text)
    if number is not None:
        return int(number) if number == number.to_integral_value() and 0 <= number < 1440 else None
    for style in ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f"):
        try:
            found = datetime.strptime(text.strip(), style)
        except ValueError:
            continue
        return found.hour * 60 + found.minute
    return None


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _span(minute: int, width: int) -> str:
    first = minute // width * width
    return f"{_clock(first)}-{_clock(first + width - 1)}"
