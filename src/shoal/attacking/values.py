"""Values: what the labels of a release are held against, many at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.attacking.meaning import Meaning, Reader
from shoal.attacking.spans import Span, stretches
from shoal.core.arrays import BoolArray, FloatArray, IntArray

Text = str | None
_FEW = 16  # are sorted sooner without NumPy


@dataclass(frozen=True)
class Values:
    """Values known, or labels of another release, by what could make them match a label."""

    everything: BoolArray  # (values,): may be anything
    texts: Mapping[str, Sequence[int]]  # whose each text is
    stems: Sequence[tuple[str, int]]  # what codes begin with, and whose that is
    scales: Mapping[str, Scale]

    @classmethod
    def of(cls, meanings: Sequence[Meaning]) -> Values:
        """Take what each stands for."""
        texts: dict[str, list[int]] = {}
        spans: dict[str, list[tuple[float, float, int]]] = {}
        stems: list[tuple[str, int]] = []
        for place, value in enumerate(meanings):
            for text in value.texts:
                texts.setdefault(text, []).append(place)
            for span in value.spans:
                spans.setdefault(span.scale, []).append((span.low, span.high, place))
            stems += [(stem, place) for stem in value.stems]
        scales = {scale: Scale.of(*map(np.array, zip(*found, strict=True))) for scale, found in spans.items()}
        return cls(np.array([value.everything for value in meanings], np.bool_), texts, stems, scales)

    @classmethod
    def known(cls, texts: Sequence[Text], reader: Reader, written: Mapping[str, str]) -> Values:
        """Take each value itself; an empty one or a code for unknown may be anything.

        A value that can be written otherwise lies where that does, too.
        """
        everything = np.array([text is None or reader.tells_nothing(text) for text in texts], np.bool_)
        told = np.flatnonzero(~everything)
        own = [texts[place] or "" for place in told.tolist()]
        also = np.array([place for place, text in enumerate(own) if text in written], np.int64)
        found: dict[str, list[tuple[FloatArray, FloatArray, IntArray]]] = {}
        for places, these in ((told, own), (told[also], [written[own[place]] for place in also.tolist()])):
            for scale, (low, high) in stretches(these, reader.rule).items():
                on = ~np.isnan(low)
                found.setdefault(scale, []).append((low[on], high[on], places[on]))
        scales = {
            scale: Scale.of(*map(np.concatenate, zip(*parts, strict=True))) for scale, parts in found.items()
        }
        whose = {text: (place,) for text, place in zip(own, told.tolist(), strict=True)}
        return cls(everything, whose, (), scales)

    def on(self, scales: Collection[str] | None = None) -> BoolArray:
        """Tell which values lie on one of some scales, or on any."""
        found = np.zeros(len(self.everything), np.bool_)
        for name, scale in self.scales.items():
            if scales is None or name in scales:
                found[scale.places] = True
        return found

    def compatible(self, label: Meaning, given: Mapping[str, Sequence[int]]) -> IntArray:
        """Return the values that a label could stand for, ascending and each once.

        `given` tells whose labels a hierarchy's are.
        """
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
        if len(found) + sum(map(len, pieces)) <= _FEW:
            return np.array(
                sorted({*found, *(place for piece in pieces for place in piece.tolist())}), np.int64
            )
        return np.unique(np.concatenate([np.array(found, np.int64), *pieces]))

    @cached_property
    def _sorted(self) -> list[tuple[str, int]]:
        return sorted((text, place) for text, places in self.texts.items() for place in places)

    def _beginning(self, stem: str) -> list[int]:
        at = bisect_left(self._sorted, (stem, -1))
        found = []
        while at < len(self._sorted) and self._sorted[at][0].startswith(stem):
            found.append(self._sorted[at][1])
            at += 1
        return found


def _alike(stem: str, others: Iterable[str]) -> bool:
    return any(stem.startswith(other) or other.startswith(stem) for other in others)


@dataclass(frozen=True)
class Scale:
    """Stretches of a scale, by where they begin."""

    lows: FloatArray
    highs: FloatArray
    places: IntArray
    ordered: bool  # they end in the same order

    @classmethod
    def of(cls, lows: FloatArray, highs: FloatArray, places: IntArray) -> Scale:
        """Put stretches into their order."""
        order = np.lexsort((highs, lows))
        highs = highs[order]
        return cls(lows[order], highs, places[order], bool((np.diff(highs) >= 0).all()))

    @cached_property
    def _listed(self) -> tuple[list[float], list[float]]:
        """Where they begin, and the last end so far: lists, which are searched sooner one by one."""
        return self.lows.tolist(), np.maximum.accumulate(self.highs).tolist()

    def meeting(self, span: Span) -> IntArray:
        """Return the places of what has a point in common with a stretch."""
        last = bisect_right(self._listed[0], span.high)
        first = bisect_left(self._listed[1], span.low)  # before it all end too early
        places = self.places[first:last]
        return places if self.ordered else places[self.highs[first:last] >= span.low]
