"""Meaning: which values a released label covers.

It is defined by the custodian's recipe or by the policy's hierarchies. Without them, a label is interpreted
by its form. A label that cannot be interpreted may cover every value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache, cached_property

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.hierarchy.builder import Builder, number_of
from shoal.core.hierarchy.builders import Flat
from shoal.core.hierarchy.calendar import DATE_UNITS, TIME_UNITS, Times
from shoal.core.hierarchy.classifications import Classified
from shoal.core.hierarchy.hierarchy import MISSING, TOP
from shoal.core.hierarchy.numbers import Banded
from shoal.core.hierarchy.prefixes import Prefix
from shoal.core.hierarchy.rare import RareValues
from shoal.core.recoding.groups import Cover
from shoal.core.recoding.wording import parts_of
from shoal.workflow.release.spreadsheet import plain_cell
from shoal.workflow.utility.labels import CellText, band_of

_BRACKETS = re.compile(r"([\[(])(.+)([\])])")
_SPANS_OF_YEARS = (5, 20, 100)
_YEARS = re.compile(r"(\d{4})-(\d{4})")
_MEMBER = re.compile(r'"(.*?)"(?:, |$)|([^,]*)(?:,\s*|$)')


@dataclass(frozen=True, slots=True)
class Meaning:
    """The set of values that a label, or a known value, may represent."""

    everything: bool = False
    texts: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    prefixes: tuple[str, ...] = ()  # the values are codes that begin with one of these
    understood: bool = True  # False if the text could be the name of any group


EVERYTHING = Meaning(everything=True)


@dataclass(frozen=True)
class Reader:
    """Reads the labels and the known values of one column.

    >>> age = Reader()
    >>> age.label("20-29").spans[0].low, age.label("90+").spans[0].high, age.label("*").everything
    (20.0, inf, True)
    >>> sorted(age.label('{a, "b, c"}').texts), age.label("married").understood
    (['a', 'b, c', '{a, "b, c"}'], False)
    >>> [(span.low, span.high) for span in Reader(several=True).label("20 or 30").spans]
    [(20.0, 20.0), (30.0, 30.0)]
    """

    rule: Builder | None = None  # the policy's hierarchy
    covers: Mapping[tuple[CellText, ...], Cover] | None = None  # a recipe's groups, by released text
    levels: bool = False  # bands are those of the hierarchy's levels, not of regions
    several: bool = False  # whether a cell may hold several labels, such as "Europe or Asia"
    as_is: bool = False  # whether the text "missing" is an ordinary value, not a null

    def labels(self, texts: Sequence[CellText], written: Mapping[str, str]) -> list[Meaning]:
        """Read labels; `written` maps some labels to another form, whose values they also cover."""
        present_texts = [text for text in texts if text is not None]
        spans_by_text = dict(zip(present_texts, spans_at(present_texts, self.rule), strict=True))
        others = [text for text in present_texts if text in written]
        other_spans = dict(zip(others, spans_at([written[text] for text in others], self.rule), strict=True))
        other_spans |= {text: self.label(written[text]).spans for text in others if not other_spans[text]}
        meanings = []
        for text in texts:
            meaning = EVERYTHING if text is None else self.label(text, spans_by_text[text])
            extra = other_spans.get(text or "", ())
            if extra and not meaning.everything:
                spans = tuple(dict.fromkeys((*meaning.spans, *extra)))
                meaning = replace(meaning, spans=spans, understood=True)
            meanings.append(meaning)
        return meanings

    def label(self, text: CellText, positions: tuple[Span, ...] | None = None) -> Meaning:
        """Read a label; None covers every value. `positions` are the label's spans, if already computed."""
        if text is None or self.tells_nothing(text):
            return EVERYTHING
        cover = (self.covers or {}).get((text,))
        if cover is not None:
            return self._covered(text, cover)
        if (text == MISSING or text.endswith(f" or {MISSING}")) and not self.as_is:
            return EVERYTHING
        if text in self._groups:
            return self._members(text, self._groups[text])
        if self.several and len(parts := parts_of(text)) > 1:
            return self._union(text, [self.label(part) for part in parts])
        if (plain := plain_cell(text)) != text:  # without the apostrophe that `safe_cell` adds
            meaning = self.label(plain)
            return meaning if meaning.everything else replace(meaning, texts=meaning.texts | {text})
        return self._by_form(text, positions)

    def bounds(self, lower: CellText, upper: CellText) -> Meaning:
        """Read the two bounds of a band that is released in two columns."""
        if (lower, upper) not in (self.covers or {}):
            lower, upper = (None if end is None else plain_cell(end) for end in (lower, upper))
        low, high = (None if end is None else number_of(end) for end in (lower, upper))
        if low is None and high is None:
            return EVERYTHING
        cover = (self.covers or {}).get((lower, upper))
        if cover is not None and ("blank" in cover or cover.get("missing")):
            return EVERYTHING
        band = self._band(low, high) if self.levels else None
        return Meaning(spans=(band or span_of("number", low, high),))

    def tells_nothing(self, text: str) -> bool:
        """Return whether a text is empty, only stars, a code for unknown, or the label of uncovered ones."""
        rule = self.rule
        return not text.strip(" *") or (
            rule is not None and (text == rule.uncovered or rule.is_unknown(text))
        )

    @property
    def written(self) -> frozenset[str]:
        """The labels and values that the hierarchy or a recipe lists."""
        texts = (text for covered in self.covers or () for text in covered if text is not None)
        return frozenset((*self._groups, *texts))

    @cached_property
    def _groups(self) -> Mapping[str, list[str]]:
        """The values that the hierarchy lists under each label; each value is also its own label."""
        groups: dict[str, list[str]] = {}
        for value, labels in self.rule.listed().items() if self.rule else ():
            for label in dict.fromkeys((value, *labels)):
                groups.setdefault(label, []).append(value)
        return groups

    def _members(self, label: str, values: list[str]) -> Meaning:
        spans = tuple(span for value in values for span in self._spans_of(value))
        return Meaning(texts=frozenset([label, *values]), spans=spans)

    def _covered(self, text: str, cover: Cover) -> Meaning:
        """Return the values that a group covers according to the recipe."""
        if "blank" in cover or cover.get("missing") or None in cover.get("values", ()):
            return EVERYTHING
        if "values" in cover:
            return self._members(text, list(cover["values"]))
        if "labels" in cover:
            return self._union(text, [self.label(label) for label in cover["labels"]])
        if "level" in cover:
            known = self._groups.get(text)
            return self._by_form(text) if known is None else self._members(text, known)
        span = self._between(cover["from"], cover["to"])
        return Meaning(texts=frozenset([text]), spans=(span,) if span else ())

    def _union(self, text: str, parts: Sequence[Meaning]) -> Meaning:
        """Return the values that several labels cover together."""
        if any(part.everything for part in parts):
            return EVERYTHING
        return Meaning(
            texts=frozenset([text]).union(*(part.texts for part in parts)),
            spans=tuple(dict.fromkeys(span for part in parts for span in part.spans)),
            prefixes=tuple(dict.fromkeys(prefix for part in parts for prefix in part.prefixes)),
            understood=all(part.understood for part in parts),
        )

    def _spans_of(self, text: str) -> tuple[Span, ...]:
        """Return the position of a value on each possible scale."""
        return spans_at([text], self.rule)[0]

    def _between(self, low: str, high: str) -> Span | None:
        for a in self._spans_of(low):
            for b in self._spans_of(high):
                if a.scale == b.scale and a.low <= b.high:
                    return Span(a.scale, a.low, b.high)
        return None

    def _by_form(self, text: str, positions: tuple[Span, ...] | None = None) -> Meaning:
        label_texts = frozenset([text])
        if text[0] == text[-1] == '"' and len(text) > 2:  # a quoted value that resembles another label
            return Meaning(texts=label_texts | {text[1:-1]}, spans=self._spans_of(text[1:-1]))
        if text[0] == "{" and text[-1] == "}":
            return self._set(text)
        bracketed = list(self._range(text))
        spans = [
            *bracketed,
            *(numbers_in(text) if self._may_be("number") else ()),
            *(dates_in(text) if self._may_be("day") else ()),
            *(times_in(text) if self._may_be("minute") else ()),
        ]
        if isinstance(self.rule, Prefix) and self.rule.together and text == self.rule.label:
            return Meaning(texts=label_texts, prefixes=self.rule.together)
        if TOP in text and (self.rule is None or isinstance(self.rule, Prefix)):
            prefix = text[: text.index(TOP)]
            return Meaning(texts=label_texts, prefixes=(prefix,)) if prefix else EVERYTHING
        positions = self._spans_of(text) if positions is None else positions
        positions = tuple(dict.fromkeys([*spans, *positions]))
        other_texts_are_values = isinstance(self.rule, Flat | Prefix | RareValues | Classified)
        lists = self.rule is not None and not self.rule.scale and bool(self.rule.listed())
        understood = bool(positions and not lists) or bool(bracketed) or other_texts_are_values
        return Meaning(texts=label_texts, spans=positions, understood=understood)

    def _may_be(self, scale: str) -> bool:
        return self.rule is None or self.rule.scale == scale

    def _set(self, text: str) -> Meaning:
        members = [quoted or plain.strip() for quoted, plain in _MEMBER.findall(text[1:-1])]
        members = [member for member in members if member]
        if MISSING in members and not self.as_is:
            return EVERYTHING
        return self._members(text, members)

    def _range(self, text: str) -> Iterator[Span]:
        """Read a range in brackets, such as [25-28], [-3 to 5] or [20, 30)."""
        match = _BRACKETS.fullmatch(text)
        for separator in (", ", ",", " to ", "-") if match else ():
            parts = match[2].split(separator) if match else []
            for cut in range(1, len(parts)):
                ends = (separator.join(side).strip() for side in (parts[:cut], parts[cut:]))
                span = self._between(*ends)
                if span and match:
                    low = math.nextafter(span.low, math.inf) if match[1] == "(" else span.low
                    yield Span(span.scale, low, below(span.high) if match[3] == ")" else span.high)
                    return

    def _band(self, low: Decimal | None, high: Decimal | None) -> Span | None:
        """Return the band of the hierarchy that has these ends, or None."""
        if not isinstance(self.rule, Banded):
            return None
        inside = low if low is not None else (high or Decimal(0)) - 1
        for fractions in (False, True):
            style = Banded(fractions=fractions)
            for band in self.rule.bands(inside):
                if style.ends(band) == (low, high):
                    end = math.inf if band[1] is None else below(float(band[1]))
                    return Span("number", -math.inf if low is None else float(low), end)
        return None


_UNIT = re.compile(r"([0-9]{4})(-.+)|([0-9]{3}0)s")
_YEAR = re.compile(r"[0-9]{4}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_AS_IS, _TIMES = Flat(), Times()


@dataclass(frozen=True, slots=True)
class Span:
    """A closed interval on a scale."""

    scale: str
    low: float
    high: float


def span_of(scale: str, low: Decimal | None, high: Decimal | None) -> Span:
    """Return the interval between two ends; a missing end is infinite."""
    return Span(scale, -math.inf if low is None else float(low), math.inf if high is None else float(high))


def intervals_at(texts: Sequence[str], rule: Builder | None) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the interval of each text on every possible scale; nan if the text is not on the scale.

    A column's rule defines how texts are read; without one they are interpreted by their form.
    """
    positions = dict((rule or _AS_IS).positions_by_scale(texts))
    if rule is None:
        times = [index for index, text in enumerate(texts) if ":" in text.strip()[:3]]  # no date with a time
        positions["minute"] = np.full(len(texts), np.nan)
        positions["minute"][times] = _TIMES.positions([texts[index] for index in times])
    ends = {scale: (low, low) for scale, low in positions.items()}
    if "day" in ends:  # a date without a time covers the whole day
        low = positions["day"]
        ends["day"] = low, np.where(low == np.floor(low), np.nextafter(low + 1, 0), low)
    return ends


def spans_at(texts: Sequence[str], rule: Builder | None) -> list[tuple[Span, ...]]:
    """Return the position of each text on every possible scale.

    >>> spans_at(["42", "x"], None), spans_at(["14:05"], None)
    ([(Span(scale='number', low=42.0, high=42.0),), ()], [(Span(scale='minute', low=845.0, high=845.0),)])
    """
    spans: list[tuple[Span, ...]] = [()] * len(texts)
    for scale, (low, high) in intervals_at(texts, rule).items():
        rows = np.flatnonzero(~np.isnan(low))
        for index, start, end in zip(rows.tolist(), low[rows].tolist(), high[rows].tolist(), strict=True):
            spans[index] += (Span(scale, start, end),)
    return spans


def below(number: float) -> float:
    """Return the largest float below a number."""
    return math.nextafter(number, -math.inf)


def numbers_in(text: str) -> Iterator[Span]:
    """Read a band such as 45-49, <18 or 90+; a fraction between two bands belongs to the lower band."""
    band = band_of(text)
    if band is None:
        return
    low, high = band.low, band.high
    if band.without_end:
        low = low if math.isinf(low) else math.nextafter(low, math.inf)
        high = high if math.isinf(high) else below(high)
    elif low.is_integer() and high.is_integer():
        high = below(high + 1)
    yield Span("number", low, high)


def dates_in(text: str) -> Iterator[Span]:
    """Read a label of a calendar unit, such as 2024-03, 2024-Q1, 2024, 2020-2024, 2020s or <1936."""
    if text.startswith("<") and _YEAR.fullmatch(text[1:]) and int(text[1:]):
        yield Span("day", -math.inf, below(date(int(text[1:]), 1, 1).toordinal()))
    if _YEAR.fullmatch(text) and int(text):
        yield _days(date(int(text), 1, 1), date(int(text), 12, 31))
    years = _YEARS.fullmatch(text)
    width = int(years[2]) - int(years[1]) + 1 if years else 0
    if years and width in _SPANS_OF_YEARS and int(years[1]) % width == 0:
        yield _days(date(max(1, int(years[1])), 1, 1), date(int(years[2]), 12, 31))
    match = _UNIT.fullmatch(text)
    if not match or not int(match[1] or match[3]):
        return
    if match[3]:
        yield _days(date(int(match[3]), 1, 1), date(int(match[3]) + 9, 12, 31))
    elif not _DAY.match(text) and text in _units_of(int(match[1])):
        yield _units_of(int(match[1]))[text]


def _days(first: date, last: date) -> Span:
    return Span("day", first.toordinal(), math.nextafter(last.toordinal() + 1, 0))


@cache
def _units_of(year: int) -> Mapping[str, Span]:
    days: dict[str, list[date]] = {}
    first = date(year, 1, 1).toordinal()
    for day in map(date.fromordinal, range(first, date(year, 12, 31).toordinal() + 1)):
        for unit, label in DATE_UNITS.items():
            if unit not in ("day", "five_years", "decade", "twenty_years", "century"):
                days.setdefault(label(day), []).append(day)
    return {label: _days(inside[0], inside[-1]) for label, inside in days.items()}


def times_in(text: str) -> Iterator[Span]:
    """Read a label of a part of the day, such as 14:00-14:59 or morning."""
    if text in _parts_of_day():
        yield _parts_of_day()[text]


@cache
def _parts_of_day() -> Mapping[str, Span]:
    minutes: dict[str, list[int]] = {}
    for minute in range(1440):
        for label in TIME_UNITS.values():
            minutes.setdefault(label(minute), []).append(minute)
    return {label: Span("minute", inside[0], inside[-1]) for label, inside in minutes.items()}
