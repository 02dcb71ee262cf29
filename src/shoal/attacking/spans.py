"""Spans: stretches of a scale that labels of numbers, dates and times stand for, as anybody reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.builder import Builder
from shoal.core.builders import Flat
from shoal.core.calendar import DATE_UNITS, TIME_UNITS, Times

_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?"
_FROM_TO = re.compile(rf"\s*({_NUMBER})\s*(?:-|\u2013|\.\.| to )\s*({_NUMBER})\s*")
_ONE_END = re.compile(rf"\s*(<=|>=|<|>|\u2264|\u2265)\s*({_NUMBER})\s*")
_UPWARDS = re.compile(rf"\s*({_NUMBER})\s*\+\s*")
_UNIT = re.compile(r"([0-9]{4})(-.+)|([0-9]{3}0)s")
_YEAR = re.compile(r"[0-9]{4}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AS_IS, _TIMES = Flat(), Times()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a scale; both ends belong to it."""

    scale: str
    low: float
    high: float


def span_of(scale: str, low: Decimal | None, high: Decimal | None) -> Span:
    """Return the stretch between two ends, of which either may be missing."""
    return Span(scale, -math.inf if low is None else float(low), math.inf if high is None else float(high))


def stretches(texts: Sequence[str], rule: Builder | None) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return from where to where each text goes on every scale on which it could lie, nan where it does not.

    A column's rule tells how texts are read; without one they are read as anybody would.
    """
    places = dict((rule or _AS_IS).places(texts))
    if rule is None:
        times = [place for place, text in enumerate(texts) if ":" in text.strip()[:3]]  # no date with a time
        places["minute"] = np.full(len(texts), np.nan)
        places["minute"][times] = _TIMES.positions([texts[place] for place in times])
    found = {scale: (low, low) for scale, low in places.items()}
    if "day" in found:  # one without a time is all of it
        low = places["day"]
        found["day"] = low, np.where(low == np.floor(low), np.nextafter(low + 1, 0), low)
    return found


def spans_at(texts: Sequence[str], rule: Builder | None) -> list[tuple[Span, ...]]:
    """Return where each text lies, on every scale on which it could.

    >>> spans_at(["42", "x"], None), spans_at(["14:05"], None)
    ([(Span(scale='number', low=42.0, high=42.0),), ()], [(Span(scale='minute', low=845.0, high=845.0),)])
    """
    found: list[tuple[Span, ...]] = [()] * len(texts)
    for scale, (low, high) in stretches(texts, rule).items():
        on = np.flatnonzero(~np.isnan(low))
        for place, one, other in zip(on.tolist(), low[on].tolist(), high[on].tolist(), strict=True):
            found[place] += (Span(scale, one, other),)
    return found


def below(number: float) -> float:
    """Return the greatest number below another."""
    return math.nextafter(number, -math.inf)


def numbers_in(text: str) -> Iterator[Span]:
    """Read 45-49, <18, 90+: between whole numbers fractions belong to the lower band."""
    found = _FROM_TO.fullmatch(text)
    if found:
        low, high = float(found[1]), float(found[2])
        if low <= high:
            whole = low.is_integer() and high.is_integer()
            yield Span("number", low, below(high + 1) if whole else high)
        return
    found = _ONE_END.fullmatch(text)
    if found:
        end = float(found[2])
        if found[1] in ("<", "<=", "\u2264"):
            yield Span("number", -math.inf, below(end) if found[1] == "<" else end)
        else:
            yield Span("number", math.nextafter(end, math.inf) if found[1] == ">" else end, math.inf)
        return
    found = _UPWARDS.fullmatch(text)
    if found:
        yield Span("number", float(found[1]), math.inf)


def dates_in(text: str) -> Iterator[Span]:
    """Read a label of a calendar unit, as 2024-03, 2024-Q1, 2024, 2020s or <1936."""
    if text.startswith("<") and _YEAR.fullmatch(text[1:]) and int(text[1:]):
        yield Span("day", -math.inf, below(date(int(text[1:]), 1, 1).toordinal()))
    if _YEAR.fullmatch(text) and int(text):
        yield _days(date(int(text), 1, 1), date(int(text), 12, 31))
    found = _UNIT.fullmatch(text)
    if not found or not int(found[1] or found[3]):
        return
    if found[3]:
        yield _days(date(int(found[3]), 1, 1), date(int(found[3]) + 9, 12, 31))
    elif not _DAY.match(text) and text in _units_of(int(found[1])):
        yield _units_of(int(found[1]))[text]


def _days(first: date, last: date) -> Span:
    return Span("day", first.toordinal(), math.nextafter(last.toordinal() + 1, 0))


@cache
def _units_of(year: int) -> Mapping[str, Span]:
    """Return what every label of a year's units covers."""
    days: dict[str, list[date]] = {}
    first = date(year, 1, 1).toordinal()
    for day in map(date.fromordinal, range(first, date(year, 12, 31).toordinal() + 1)):
        for unit, label in DATE_UNITS.items():
            if unit not in ("day", "decade"):
                days.setdefault(label(day), []).append(day)
    return {label: _days(inside[0], inside[-1]) for label, inside in days.items()}


def times_in(text: str) -> Iterator[Span]:
    """Read a label of a part of the day, as 14:00-14:59 or morning."""
    if text in _parts():
        yield _parts()[text]


@cache
def _parts() -> Mapping[str, Span]:
    minutes: dict[str, list[int]] = {}
    for minute in range(1440):
        for label in TIME_UNITS.values():
            minutes.setdefault(label(minute), []).append(minute)
    return {label: Span("minute", inside[0], inside[-1]) for label, inside in minutes.items()}
