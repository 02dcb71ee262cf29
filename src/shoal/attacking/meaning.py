"""Meaning: which values a released label covers.

The custodian's recipe and the policy's hierarchies tell it; without them a label is read as anybody would
read it. What cannot be read may cover anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from shoal.attacking.spans import Span, below, dates_in, numbers_in, span_of, spans_at, times_in
from shoal.core.builder import Builder, number_of
from shoal.core.builders import Flat
from shoal.core.groups import Cover
from shoal.core.hierarchy import MISSING, TOP
from shoal.core.numbers import Banded
from shoal.core.prefixes import Prefix
from shoal.spreadsheet import plain_cell

Text = str | None
_BRACKETS = re.compile(r"([\[(])(.+)([\])])")
_MEMBER = re.compile(r'"(.*?)"(?:, |$)|([^,]*)(?:,\s*|$)')


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a label, or something known of a person, stands for."""

    everything: bool = False
    texts: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    stems: tuple[str, ...] = ()  # what codes begin with: one of these
    understood: bool = True  # else it may be the name of any group


EVERYTHING = Meaning(everything=True)


@dataclass(frozen=True)
class Reader:
    """Reads the labels of one column, and what is known of persons there.

    >>> age = Reader()
    >>> age.label("20-29").spans[0].low, age.label("90+").spans[0].high, age.label("*").everything
    (20.0, inf, True)
    >>> sorted(age.label('{a, "b, c"}').texts), age.label("married").understood
    (['a', 'b, c', '{a, "b, c"}'], False)
    """

    rule: Builder | None = None  # the policy's hierarchy
    covers: Mapping[tuple[Text, ...], Cover] | None = None  # a recipe's groups, by what is released for them
    levels: bool = False  # bands are those of the hierarchy, not of regions

    def labels(self, texts: Sequence[Text], written: Mapping[str, str]) -> list[Meaning]:
        """Read labels; one that can be written otherwise covers what that does, too."""
        told = [text for text in texts if text is not None]
        own = dict(zip(told, spans_at(told, self.rule), strict=True))
        others = [text for text in told if text in written]
        also = dict(zip(others, spans_at([written[text] for text in others], self.rule), strict=True))
        also |= {text: self.label(written[text]).spans for text in others if not also[text]}  # a range
        found = []
        for text in texts:
            meaning = EVERYTHING if text is None else self.label(text, own[text])
            more = also.get(text or "", ())
            if more and not meaning.everything:
                spans = tuple(dict.fromkeys((*meaning.spans, *more)))
                meaning = replace(meaning, spans=spans, understood=True)
            found.append(meaning)
        return found

    def label(self, text: Text, places: tuple[Span, ...] | None = None) -> Meaning:
        """Read a label; what is missing may be anything. `places` tell where it lies, if that is known."""
        if text is None or self.tells_nothing(text):
            return EVERYTHING
        if text == MISSING or text.endswith(f" or {MISSING}"):
            return EVERYTHING
        told = (self.covers or {}).get((text,))
        if told is not None:
            return self._covered(text, told)
        if text in self._groups:
            return self._members(text, self._groups[text])
        if (plain := plain_cell(text)) != text:  # as it was before it was made safe for a spreadsheet
            found = self.label(plain)
            return found if found.everything else replace(found, texts=found.texts | {text})
        return self._shaped(text, places)

    def bounds(self, lower: Text, upper: Text) -> Meaning:
        """Read the two ends that a band is released as."""
        if (lower, upper) not in (self.covers or {}):
            lower, upper = (None if end is None else plain_cell(end) for end in (lower, upper))
        low, high = (None if end is None else number_of(end) for end in (lower, upper))
        if low is None and high is None:
            return EVERYTHING
        told = (self.covers or {}).get((lower, upper))
        if told is not None and ("blank" in told or told.get("missing")):
            return EVERYTHING
        band = self._band(low, high) if self.levels else None
        return Meaning(spans=(band or span_of("number", low, high),))

    def tells_nothing(self, text: str) -> bool:
        """Tell whether a text is empty, stars or a code for unknown."""
        return not text.strip(" *") or (self.rule is not None and self.rule.is_unknown(text))

    @property
    def written(self) -> frozenset[str]:
        """The labels and values that the hierarchy or a recipe writes out."""
        looks = (text for look in self.covers or () for text in look if text is not None)
        return frozenset((*self._groups, *looks))

    @cached_property
    def _groups(self) -> Mapping[str, list[str]]:
        """The values that the hierarchy lists under each label, the values themselves among them."""
        found: dict[str, list[str]] = {}
        for value, labels in self.rule.listed().items() if self.rule else ():
            for label in dict.fromkeys((value, *labels)):
                found.setdefault(label, []).append(value)
        return found

    def _members(self, label: str, values: list[str]) -> Meaning:
        spans = tuple(span for value in values for span in self._places(value))
        return Meaning(texts=frozenset([label, *values]), spans=spans)

    def _covered(self, text: str, cover: Cover) -> Meaning:
        """Take a recipe's word for what a group stands for."""
        if "blank" in cover or cover.get("missing") or None in cover.get("values", ()):
            return EVERYTHING
        if "values" in cover:
            return self._members(text, list(cover["values"]))
        if "level" in cover:
            known = self._groups.get(text)
            return self._shaped(text) if known is None else self._members(text, known)
        span = self._between(cover["from"], cover["to"])
        return Meaning(texts=frozenset([text]), spans=(span,) if span else ())

    def _places(self, text: str) -> tuple[Span, ...]:
        """Return where a value lies, on each scale on which it could."""
        return spans_at([text], self.rule)[0]

    def _between(self, low: str, high: str) -> Span | None:
        """Return the stretch from one value to another."""
        for a in self._places(low):
            for b in self._places(high):
                if a.scale == b.scale and a.low <= b.high:
                    return Span(a.scale, a.low, b.high)
        return None

    def _shaped(self, text: str, places: tuple[Span, ...] | None = None) -> Meaning:
        """Read a label by its shape."""
        own = frozenset([text])
        if text[0] == text[-1] == '"' and len(text) > 2:  # a value that looks like another label
            return Meaning(texts=own | {text[1:-1]}, spans=self._places(text[1:-1]))
        if text[0] == "{" and text[-1] == "}":
            return self._set(text)
        between = list(self._range(text))
        spans = [
            *between,
            *(numbers_in(text) if self._may_be("number") else ()),
            *(dates_in(text) if self._may_be("day") else ()),
            *(times_in(text) if self._may_be("minute") else ()),
        ]
        if isinstance(self.rule, Prefix) and self.rule.together and text == self.rule.label:
            return Meaning(texts=own, stems=self.rule.together)
        if TOP in text and (self.rule is None or isinstance(self.rule, Prefix)):
            stem = text[: text.index(TOP)]
            return Meaning(texts=own, stems=(stem,)) if stem else EVERYTHING
        places = tuple(dict.fromkeys([*spans, *(self._places(text) if places is None else places)]))
        plain = isinstance(self.rule, Flat | Prefix)  # any other text is a value as it is
        lists = self.rule is not None and not self.rule.scale and bool(self.rule.listed())
        read = bool(places and not lists) or bool(between) or plain
        return Meaning(texts=own, spans=places, understood=read)

    def _may_be(self, scale: str) -> bool:
        return self.rule is None or self.rule.scale == scale

    def _set(self, text: str) -> Meaning:
        members = [quoted or plain.strip() for quoted, plain in _MEMBER.findall(text[1:-1])]
        members = [member for member in members if member]
        if MISSING in members:
            return EVERYTHING
        return self._members(text, members)

    def _range(self, text: str) -> Iterator[Span]:
        """Read [25-28], [-3 to 5], [20, 30) and the like."""
        found = _BRACKETS.fullmatch(text)
        for between in (", ", ",", " to ", "-") if found else ():
            parts = found[2].split(between) if found else []
            for cut in range(1, len(parts)):
                span = self._between(between.join(parts[:cut]).strip(), between.join(parts[cut:]).strip())
                if span and found:
                    low = math.nextafter(span.low, math.inf) if found[1] == "(" else span.low
                    yield Span(span.scale, low, below(span.high) if found[3] == ")" else span.high)
                    return

    def _band(self, low: Decimal | None, high: Decimal | None) -> Span | None:
        """Return the band of the hierarchy that has these ends, where there is one."""
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
