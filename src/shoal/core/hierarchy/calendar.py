"""Builders for dates and for times of the day."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import Builder, Labels, check_units, floats_of, number_of
from shoal.core.hierarchy.dates import (
    Moments,
    as_iso,
    day_numbers,
    day_or_time,
    has_short_year,
    moments,
    month_comes_first,
    not_after,
    parse_iso,
    parse_usual,
    styles_of,
    without_time,
)
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy
from shoal.errors import HierarchyError

# Every unit is made up of whole units of each finer unit.
DATE_UNITS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "week_of_month": lambda day: f"{day:%Y-%m} week {(day.day - 1) // 7 + 1}",
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day:%Y}-Q{(day.month - 1) // 3 + 1}",
    "half_year": lambda day: f"{day:%Y}-H{(day.month - 1) // 6 + 1}",
    "year": lambda day: f"{day:%Y}",
    "five_years": lambda day: _years_text(day, 5),
    "decade": lambda day: f"{day.year // 10 * 10}s",
    "twenty_years": lambda day: _years_text(day, 20),
    "century": lambda day: _years_text(day, 100),
}
TIME_UNITS: dict[str, Callable[[int], str]] = {
    "minute": lambda minute: _time_text(minute),
    "quarter_hour": lambda minute: _time_span(minute, 15),
    "half_hour": lambda minute: _time_span(minute, 30),
    "hour": lambda minute: _time_span(minute, 60),
    "part_of_day": lambda minute: ("night", "morning", "afternoon", "evening")[minute // 360],
    "half_day": lambda minute: ("before noon", "after noon")[minute // 720],
}
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p")
_PROBE = date(2001, 11, 23)
_AMBIGUOUS_CENTURY = (
    "two-digit years can be of two centuries. Give the 'latest' day that a date can be, as "
    "latest: 2025-12-31, or write years with four digits in the table."
)
_MAX_CODES = 20  # maximum number of distinct values that can be codes for unknown
_DIRECTIVE_LETTERS = (
    ("y", "%Y"),
    ("j", "%Y"),
    ("a", "%Y"),
    ("m", "%m"),
    ("d", "%d"),
    ("t", "%d"),
    ("g", "%d"),
)
_NOT_NESTED = {"week": "A week can lie in two months; use week_of_month."}


@dataclass(frozen=True)
class Dates(Builder):
    """Dates by calendar units, from finer to coarser."""

    dates: tuple[str, ...] = ()
    """The unit at each level from 1 up, such as `[month, year]`."""
    format: str | None = None
    """The format of dates, such as `%d.%m.%Y`; by default `2025-01-31`. A time such as `14:05` may follow."""
    bottom_coding: Decimal | None = None
    """A year. All dates before it are one group."""
    latest: date | None = None
    """The last possible day of dates with a two-digit year: `05.03.61` is in the 100 years before it."""

    keyword: ClassVar[str] = "dates"
    scale: ClassVar[str | None] = "day"

    def depth(self) -> int:
        return len(self.dates)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        days = self._moments(texts).astype("datetime64[D]")
        distinct_days, day_index = np.unique(days, return_inverse=True)
        units = [None if day is None else self._units(day) for day in distinct_days.astype(object)]
        return [units[unit] for unit in day_index.tolist()]

    def _moments(self, texts: Sequence[str]) -> Moments:
        moments = day_or_time(texts, self.format)
        two_digit_year = self.latest is not None and "%y" in (self.format or "")
        return not_after(moments, self.latest) if two_digit_year and self.latest else moments

    def _units(self, day: date) -> Labels:
        if self.bottom_coding is not None and day.year < self.bottom_coding:
            return (f"<{int(self.bottom_coding)}",) * len(self.dates)
        return tuple(DATE_UNITS[unit](day) for unit in self.dates)

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return day numbers with the time of day as a fraction."""
        return day_numbers(self._moments(texts))

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Parse dates in the format of the column, or as 2024-03-05."""
        positions = self.positions(texts)
        return {
            "day": np.where(np.isnan(positions), day_numbers(parse_iso(texts)), positions)
            if self.format
            else positions
        }

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write texts as ISO dates if they do not fit the format.

        Texts that fit neither the format without its time nor a usual format are left out.
        """
        unparsed = np.isnan(self.positions(texts)).tolist()
        candidates = [text for text, is_unparsed in zip(texts, unparsed, strict=True) if is_unparsed]
        usual_moments = parse_usual(candidates, months_first=months_first)
        if self.format:
            days = moments(candidates, without_time(self.format))
            usual_moments = np.where(np.isnat(days), usual_moments, days)
        return as_iso(candidates, usual_moments)

    def months_first(self) -> bool | None:
        return month_comes_first(self.format)

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        check_units(domain.name, self.dates, list(DATE_UNITS), _NOT_NESTED)
        if self.bottom_coding is not None and not _is_year(self.bottom_coding):
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: bottom_coding of dates is a year, got {self.bottom_coding}."
            )
        if self.format and "%y" in self.format and self.latest is None:
            raise HierarchyError(f"Hierarchy of {domain.name!r}: {_AMBIGUOUS_CENTURY}")
        if self.format and "%" not in self.format:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: the format {self.format!r} is not written with % signs: "
                f"write {_with_directives(self.format)}."
            )
        # strptime reads parts that a format lacks as 1900, January and the 1st.
        try:
            style = self.format and self.format.replace("%q", str((_PROBE.month - 1) // 3 + 1))
            text = _PROBE.strftime(style) if style else _PROBE.isoformat()
            (parsed,) = day_or_time([text], self.format).astype("datetime64[D]").tolist()
        except (re.error, UnicodeError):
            parsed = None
        for unit in self.dates:
            if parsed is None or DATE_UNITS[unit](parsed) != DATE_UNITS[unit](_PROBE):
                raise HierarchyError(
                    f"Hierarchy of {domain.name!r}: the format {self.format!r} does not contain the {unit}."
                )
        return super().bind(domain, counts)

    def covers(self, label: str) -> str:
        if label.startswith("<"):
            return f"days before {label[1:]}"
        return super().covers(label) if label == TOP else f"days in {label}"

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        expected = (
            f"a date like {self.format}" if self.format else "an ISO date such as 2025-01-31; give 'format'"
        )
        return f"not {expected}. {_advice(values)}"


@dataclass(frozen=True)
class Times(Builder):
    """Times of the day (14:05, or minutes since midnight) by hours and parts of the day."""

    times: tuple[str, ...] = ()
    """The unit at each level from 1 up, such as `[hour, part_of_day]`."""

    keyword: ClassVar[str] = "times"
    scale: ClassVar[str | None] = "minute"

    def depth(self) -> int:
        return len(self.times)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        minutes = [minute_of(text) for text in texts]
        return [None if m is None else tuple(TIME_UNITS[unit](m) for unit in self.times) for m in minutes]

    def positions(self, texts: Sequence[str]) -> FloatArray:
        return floats_of(map(minute_of, texts))

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        return {"minute": self.positions(texts)}

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        check_units(domain.name, self.times, list(TIME_UNITS))
        return super().bind(domain, counts)

    def covers(self, label: str) -> str:
        return super().covers(label) if label == TOP else f"times in {label}"

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        expected = "not a time such as 14:05, nor minutes from 0 to 1439"
        return f"{expected}. Name codes under 'unknown'."


def _advice(values: Sequence[str]) -> str:
    """Advise what to do about values that are not dates; more than `_MAX_CODES` values cannot be codes."""
    if 2 * sum(map(has_short_year, values)) > len(values):
        return f"In most of them the year has two digits: {_AMBIGUOUS_CENTURY}"
    if len(values) <= _MAX_CODES:
        return "Name codes under 'unknown'."
    style = next(styles_of(values), None)
    if style:
        return f"They fit format: '{style}'. Give it, and write all dates of the table that way."
    return "They are too many to be codes. Correct them in the table, or give their 'format'."


def _with_directives(style: str) -> str:
    """Convert a format such as dd.mm.yyyy to directives of strptime.

    >>> [_with_directives(style) for style in ("dd.mm.yyyy", "YYYY-MM-DD", "TT.MM.JJJJ", "x")]
    ['%d.%m.%Y', '%Y-%m-%d', '%d.%m.%Y', 'it as %d.%m.%Y']
    """
    pattern = style.lower()
    for letter, sign in _DIRECTIVE_LETTERS:
        pattern = re.sub(rf"(?<![a-z%]){letter}+(?![a-z])", sign, pattern)
    day = re.fullmatch(r"[^a-zA-Z]*(?:%[Ymd][^a-zA-Z]*){3}", pattern)
    return (
        pattern if day and len({"%Y", "%m", "%d"} & set(re.findall("%.", pattern))) == 3 else "it as %d.%m.%Y"
    )


def _years_text(day: date, number: int) -> str:
    first = day.year // number * number
    return f"{first}-{first + number - 1}"


def _is_year(number: Decimal) -> bool:
    return number == number.to_integral_value() and date.min.year <= number <= date.max.year


def minute_of(text: str) -> int | None:
    """Parse a time of the day, or minutes since midnight, to minutes; or return None."""
    if len(text.strip()) == 4 and text.strip().startswith("0"):
        return None  # 0905 is a time of day, not 905 minutes
    number = number_of(text)
    if number is not None:
        return int(number) if number == number.to_integral_value() and 0 <= number < 1440 else None
    for style in _CLOCKS if ":" in text else ():
        try:
            time = datetime.strptime(text.strip(), style)
        except ValueError:
            continue
        return time.hour * 60 + time.minute
    return None


def _time_text(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _time_span(minute: int, width: int) -> str:
    first = minute // width * width
    return f"{_time_text(first)}-{_time_text(first + width - 1)}"
