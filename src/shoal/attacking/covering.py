"""Covering: of one column, which labels of a release could stand for which values, or labels of another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.attacking.meaning import EVERYTHING, Meaning
from shoal.attacking.released import Shown
from shoal.attacking.spans import Span
from shoal.attacking.unread import told_apart
from shoal.attacking.writing import begins_with_month, otherwise
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.builder import Builder
from shoal.core.hierarchy import TOP
from shoal.core.linking import Compatible
from shoal.core.numbers import Banded
from shoal.core.prefixes import Prefix
from shoal.errors import DataError

_NOTHING = np.empty(0, np.int64)
_MOST = 200_000_000  # pairs of a label and a value that are held
_SHARE = (
    0.5  # of the known values that a column shows as they are, above which its other words are values too
)


def settled(
    labels: Sequence[Meaning], values: Sequence[Meaning], *, rule: bool
) -> tuple[list[Meaning], int, int]:
    """Let words that were not understood cover everything; tell how many did, and how many are taken as is.

    A word that is a known value is that value. Where no hierarchy tells and most known values stand in the
    release as they are, other words are values that nobody known has.
    """
    known = {text for value in values for text in value.texts}
    shown = known & {text for label in labels for text in label.texts}
    plain = not rule and bool(known) and len(shown) >= _SHARE * len(known)
    strange = [not label.understood and not label.texts & known for label in labels]
    found = [EVERYTHING if odd and not plain else label for odd, label in zip(strange, labels, strict=True)]
    number = sum(strange)
    return found, 0 if plain else number, number if plain else 0


def by_rule(rule: Builder, texts: Sequence[str | None]) -> list[set[str]]:
    """Return the labels that a hierarchy gives each known value; none where it does not cover it."""
    known = [text for text in texts if text is not None and not rule.is_unknown(text)]
    found: dict[str, set[str]] = {text: set() for text in known}
    styles = [replace(rule, fractions=own) for own in (False, True)] if isinstance(rule, Banded) else [rule]
    if isinstance(rule, Banded) and rule.fractions is not None:
        styles = [rule]
    for style in styles:
        for text, labels in zip(known, style.labels(known), strict=True):
            found[text].update(labels or ())
    return [found.get(text or "", set()) for text in texts]


def covered(
    one: Shown, looks: Sequence[tuple[str | None, ...]], texts: Sequence[str | None], notes: list[str]
) -> tuple[Compatible, bool]:
    """Pair a column's labels with known values, and tell whether some known value could be read.

    What was not understood is added to the notes.
    """
    rule = one.reader.rule
    labels, values, written = _read(one, looks, texts, notes)
    labels, unread, as_is = settled(labels, values, rule=rule is not None)
    if unread:
        help_ = " Give the policy or the recipe." if rule is None else ""
        notes.append(f"{_labels(unread)} of {one.name!r} could not be read and may cover any value.{help_}")
    if as_is:
        notes.append(
            f"{_labels(as_is)} of {one.name!r} equal no known value and were taken for values that nobody "
            "known has. Give the policy or the recipe where they may be groups."
        )
    more = by_rule(rule, written) if rule is not None and len(one.parts) == 1 else ()
    if isinstance(rule, Prefix):  # it gives each code its labels: 1* is not one that has a group of its own
        labels = [replace(label, stems=()) if _own(rule, label) else label for label in labels]
    found = covering(one.name, labels, values, more)
    return found, told_apart(one, labels, values, more, found, notes)


def _read(
    one: Shown, looks: Sequence[tuple[str | None, ...]], texts: Sequence[str | None], notes: list[str]
) -> tuple[list[Meaning], list[Meaning], list[str | None]]:
    """Read labels and known values, however each table writes them; and write the values as the rule does."""
    reader, shown = one.reader, [look[0] for look in looks if len(one.parts) == 1]
    rule = reader.rule
    labels = one.meanings(looks)
    first = begins_with_month([*shown, *texts], rule)
    known = otherwise(texts, rule, months_first=bool(first))
    if first is None and any("/" in text for text in known):
        notes.append(f"Dates of {one.name!r} may begin with the day or the month; the day was taken.")
    if shown:
        there = otherwise(shown, rule, months_first=bool(first))
        labels = [
            reader.also(label, there.get(text or "")) for label, text in zip(labels, shown, strict=True)
        ]
    values = [reader.also(reader.value(text), known.get(text or "")) for text in texts]
    written = [None if text is None else known.get(text, text) for text in texts]
    return labels, values, written


def _own(rule: Prefix, label: Meaning) -> bool:
    """Tell whether the rule itself writes a label: a group, or as many characters as it keeps."""
    if rule.together and rule.label in label.texts:
        return True
    return any(len(stem) in rule.prefix and stem + TOP in label.texts for stem in label.stems)


def _labels(number: int) -> str:
    return "1 label" if number == 1 else f"{number:,} labels"


def covering(
    name: str, labels: Sequence[Meaning], values: Sequence[Meaning], more: Sequence[Iterable[str]] = ()
) -> Compatible:
    """Pair labels with values; `more` are labels that a hierarchy gives each value."""
    index = _Index.of(values)
    given: dict[str, list[int]] = {}
    for value, extra in enumerate(more):
        for text in extra:
            given.setdefault(text, []).append(value)
    wild = np.array([label.everything for label in labels], np.bool_)
    free = np.array([value.everything for value in values], np.bool_)
    pieces: list[IntArray] = []
    total = 0
    for label in labels:
        found = _NOTHING if label.everything else index.compatible(label, given)
        total += len(found)
        if total > _MOST:
            message = f"Column {name!r} has too many labels for too many values. Round what is known of it."
            raise DataError(message)
        pieces.append(found)
    of = np.concatenate(pieces) if pieces else _NOTHING
    own = np.repeat(np.arange(len(labels)), [len(piece) for piece in pieces])
    order = np.argsort(of, kind="stable")  # labels ascend within a value
    starts = np.append(0, np.cumsum(np.bincount(of, minlength=len(values)))).astype(np.int64)
    return Compatible(wild, free, starts, own[order])


@dataclass(frozen=True)
class _Index:
    """Finds the values that a label could stand for."""

    texts: dict[str, list[int]]
    sorted_texts: list[tuple[str, int]]
    stems: list[tuple[str, int]]
    scales: dict[str, _Scale]

    @classmethod
    def of(cls, values: Sequence[Meaning]) -> _Index:
        texts: dict[str, list[int]] = {}
        spans: dict[str, list[tuple[float, float, int]]] = {}
        stems: list[tuple[str, int]] = []
        for place, value in enumerate(values):
            for text in value.texts:
                texts.setdefault(text, []).append(place)
            for span in value.spans:
                spans.setdefault(span.scale, []).append((span.low, span.high, place))
            stems += [(stem, place) for stem in value.stems]
        both = sorted((text, place) for text, places in texts.items() for place in places)
        return cls(texts, both, stems, {scale: _Scale.of(found) for scale, found in spans.items()})

    def compatible(self, label: Meaning, given: dict[str, list[int]]) -> IntArray:
        """Return the values, ascending and each once."""
        found: list[int] = []
        for text in label.texts:
            found += self.texts.get(text, ())
            found += given.get(text, ())
        for stem in label.stems:
            found += self._beginning(stem)
        for stem, place in self.stems:
            if any(text.startswith(stem) for text in label.texts) or _alike(stem, label.stems):
                found.append(place)
        pieces = [self.scales[span.scale].meeting(span) for span in label.spans if span.scale in self.scales]
        every = np.concatenate([np.array(found, np.int64), *pieces])
        return np.unique(every) if len(every) > 1 else every

    def _beginning(self, stem: str) -> list[int]:
        at = bisect_left(self.sorted_texts, (stem, -1))
        found = []
        while at < len(self.sorted_texts) and self.sorted_texts[at][0].startswith(stem):
            found.append(self.sorted_texts[at][1])
            at += 1
        return found


def _alike(stem: str, others: Iterable[str]) -> bool:
    return any(stem.startswith(other) or other.startswith(stem) for other in others)


@dataclass(frozen=True)
class _Scale:
    """Stretches of a scale, by where they begin."""

    lows: FloatArray
    highs: FloatArray
    places: IntArray
    ordered: bool  # they end in the same order

    @classmethod
    def of(cls, found: list[tuple[float, float, int]]) -> _Scale:
        low, high, place = zip(*sorted(found), strict=True)
        highs = np.array(high, np.float64)
        return cls(
            np.array(low, np.float64), highs, np.array(place, np.int64), bool((np.diff(highs) >= 0).all())
        )

    def meeting(self, span: Span) -> IntArray:
        """Return the places of what has a point in common with a stretch."""
        last = int(np.searchsorted(self.lows, span.high, "right"))
        if self.ordered:
            return self.places[int(np.searchsorted(self.highs, span.low, "left")) : last]
        return self.places[:last][self.highs[:last] >= span.low]
