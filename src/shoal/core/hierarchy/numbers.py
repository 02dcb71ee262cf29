"""Builders for numbers: bands of equal width, and bands between break points."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import (
    COMMA,
    POINT,
    Builder,
    Labels,
    not_nested,
    number_of,
    plain_numbers,
    with_sign,
)
from shoal.core.hierarchy.hierarchy import TOP, Bounds, Hierarchy
from shoal.errors import HierarchyError

_FRACTION = re.compile(r"\.0*[1-9]")
_EXACT = 1e15  # below this, a float times a power of ten rounds to the correct whole number
_MAX_PLACES = 15
_MAX_CODES = 1 << 62
NumberRange = tuple[Decimal | None, Decimal | None]  # from (included) and to (not included)


@dataclass(frozen=True)
class Banded(Builder):
    """A rule that puts numbers into bands."""

    fractions: bool | None = None
    """Write bands as `[45, 50)` instead of `45-49`; by default only if some number has a fraction."""
    decimal: str = POINT
    """The decimal sign of the column's numbers, `.` or `,`; bands are written with a point."""

    scale: ClassVar[str | None] = "number"

    def number(self, text: str) -> Decimal | None:
        return number_of(text, self.decimal)

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Parse numbers with the decimal sign of the column, or with a point, which bands always have."""
        positions = self.positions(texts)
        if self.decimal == POINT:
            return {"number": positions}
        return {
            "number": np.where(np.isnan(positions), super().positions_by_scale(texts)["number"], positions)
        }

    def positions(self, texts: Sequence[str]) -> FloatArray:
        plain = plain_numbers(texts) if self.decimal == POINT else None
        return super().positions(texts) if plain is None else plain

    def numbers(self, texts: Sequence[str]) -> Sequence[Decimal | None]:
        """Parse texts to decimals; None for a text that is not a number."""
        plain = self.decimal == POINT and plain_numbers(texts) is not None
        return list(map(Decimal if plain else self.number, texts))

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write numbers with the decimal sign of the column if all of them use the other one."""
        return with_sign(texts, self.decimal)

    def styles(self) -> Sequence[Banded]:
        """Return the rule with bands of whole numbers, and with bands of fractions."""
        return (
            [replace(self, fractions=fractions) for fractions in (False, True)]
            if self.fractions is None
            else [self]
        )

    def bands(self, number: Decimal) -> list[NumberRange]:
        """Return the bands of a number, from level 1 up."""
        raise TypeError(type(self).__name__)

    def points(self) -> list[Decimal]:
        """Return the numbers that define the rule."""
        raise TypeError(type(self).__name__)

    def keys(self, numbers: IntArray, scale: Callable[[Decimal], int]) -> Iterator[IntArray]:
        """Yield arrays with one key per number; numbers with equal keys in each array share all bands."""
        raise TypeError(type(self).__name__)

    def is_unknown(self, text: str) -> bool:
        """Compare codes also as numbers: 99.0 is the code 99."""
        if not self.unknown or text in self.unknown:
            return text in self.unknown
        number = self.number(text)
        return number is not None and number in map(self.number, self.unknown)

    def with_fixed_style(self, texts: Sequence[str | None]) -> Banded:
        """Return the rule with `fractions` set, so that its labels no longer depend on the data."""
        if self.fractions is not None:
            return self
        known = [text for text in texts if text is not None and not self.is_unknown(text)]
        if self.decimal == POINT and plain_numbers(known) is not None:
            all_whole = not any(map(_FRACTION.search, known))
            return replace(self, fractions=not (all_whole and all(map(_is_whole, self.points()))))
        points = [*self.points(), *(number for number in map(self.number, known) if number is not None)]
        return replace(self, fractions=not all(map(_is_whole, points)))

    def stored(self, domain: Domain, counts: IntArray | None) -> dict[str, Any]:
        return {"fractions": self.with_fixed_style(domain.texts).fractions}

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        style = self.with_fixed_style(texts)
        with localcontext(prec=80):  # enough for long numbers in narrow bands
            if (grouped := self._same_bands(texts)) is not None:
                first, group = grouped
                bands = [self.bands(Decimal(texts[index])) for index in first.tolist()]
                rows = [tuple(map(style.label, row)) for row in bands]
                return [rows[index] for index in group.tolist()]
            numbers = self.numbers(texts)
            return [None if n is None else tuple(map(style.label, self.bands(n))) for n in numbers]

    def _same_bands(self, texts: Sequence[str]) -> tuple[IntArray, IntArray] | None:
        """Group numbers that are in the same bands; return the first index of each group, and the groups.

        The numbers are scaled to integers below 1e15, where floats are exact. Return None if a number is too
        large for that or not a plain number, or if there are only few numbers.
        """
        floats = plain_numbers(texts) if self.decimal == POINT else None
        if floats is None:
            return None
        points = self.points()
        places = max(len(text.partition(POINT)[2]) for text in texts)
        places = max([places, *(-int(point.as_tuple().exponent) for point in points)])
        largest = max([float(np.abs(floats).max()), *(abs(float(point)) for point in points)])
        if places > _MAX_PLACES or largest * 10.0**places >= _EXACT:
            return None
        numbers = np.rint(floats * 10.0**places).astype(np.int64)
        code, size = np.zeros(len(texts), np.int64), 1
        for key in self.keys(numbers, lambda point: int(point.scaleb(places))):
            low, span = int(key.min()), int(key.max() - key.min()) + 1
            code, size = code * span + (key - low), size * span
            if size > _MAX_CODES:
                return None
        _, first, group = np.unique(code, return_index=True, return_inverse=True)
        return first, group

    def label(self, band: NumberRange) -> str:
        """Format a band: 45-49, -10 to -1, [45, 50), <18 or 90+."""
        low, high = band
        if low is None and high is None:
            return TOP
        if low is None or high is None:
            return f"<{_number_text(high)}" if low is None and high is not None else f"{_number_text(low)}+"
        if self.fractions:
            return f"[{_number_text(low)}, {_number_text(high)})"
        if high - low == 1:
            return _number_text(low)
        between = " to " if low < 0 else "-"
        return f"{_number_text(low)}{between}{_number_text(high - 1)}"

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        """Apply the rule and keep the ends of every band, so that they can be released as numbers."""
        if self.fractions is False and not all(map(_is_whole, self.points())):
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: with fractions: false, {self.keyword} takes whole numbers."
            )
        style = self.with_fixed_style(domain.texts)
        hierarchy = super().bind(domain, counts)
        ends: dict[str, Bounds] = {TOP: (None, None)}
        first_codes = {
            int(code): None
            for level in range(1, hierarchy.height + 1)
            for code in _first_values(hierarchy, level)
        }
        with localcontext(prec=80):
            known = [text for text in domain.texts if text is not None and not self.is_unknown(text)]
            numbers = dict(zip(known, self.numbers(known), strict=True))
            for code, text in enumerate(domain.texts):
                number = None if text is None else numbers.get(text)
                if text is not None:
                    ends[text] = (number, number)
                for band in self.bands(number) if number is not None and code in first_codes else ():
                    ends.setdefault(style.label(band), style.ends(band))
        bounds = tuple(tuple(ends.get(label, (None, None)) for label in level) for level in hierarchy.labels)
        return replace(hierarchy, bounds=bounds)

    def ends(self, band: NumberRange) -> Bounds:
        """Return the smallest and largest number of a band; with fractions, the upper end is excluded."""
        low, high = band
        return low, high if high is None or self.fractions else high - 1

    def covers(self, label: str) -> str:
        return super().covers(label) if label == TOP else f"numbers in {label}"

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        example, other = ("3.5", COMMA) if self.decimal == POINT else ("3,5", POINT)
        return (
            f"not a number such as 42 or {example}, of at most 20 digits and below 1e60. Name codes under "
            f"'unknown', add decimal: '{other}' if this is their decimal sign, or use another builder."
        )


@dataclass(frozen=True)
class Intervals(Banded):
    """Numbers in bands. All bands of a level have the same width, a multiple of the one a level below."""

    intervals: tuple[Decimal, ...] = ()
    """The width at each level from 1 up, above 0."""
    origin: Decimal = Decimal(0)
    """A number at which a band begins."""
    bottom_coding: Decimal | None = None
    """All numbers below this one are one group."""
    top_coding: Decimal | None = None
    """This number and all numbers above it are one group."""
    split: tuple[tuple[Decimal, ...], ...] = ()
    """Levels above the widths, on which only these numbers separate bands: one number, a list, or a list
    for each level. Each list keeps some numbers of the list before. A band must begin at each number."""

    keyword: ClassVar[str] = "intervals"

    def depth(self) -> int:
        return len(self.intervals) + len(self.split)

    def points(self) -> list[Decimal]:
        coding_points = [point for point in (self.bottom_coding, self.top_coding) if point is not None]
        return [
            *self.intervals,
            self.origin,
            *coding_points,
            *(point for level in self.split for point in level),
        ]

    def bands(self, number: Decimal) -> list[NumberRange]:
        """Return the band of each width, cut at the coding points; then the joined bands."""
        return [*self._widths(number), *(_between(level, number) for level in self.split)]

    def keys(self, numbers: IntArray, scale: Callable[[Decimal], int]) -> Iterator[IntArray]:
        for width in self.intervals:
            yield (numbers - scale(self.origin)) // scale(width)
        for point in (self.bottom_coding, self.top_coding):
            if point is not None:
                yield (numbers >= scale(point)).astype(np.int64)
        yield from _keys_between(self.split, numbers, scale)

    def _widths(self, number: Decimal) -> list[NumberRange]:
        if self.bottom_coding is not None and number < self.bottom_coding:
            return [(None, self.bottom_coding)] * len(self.intervals)
        if self.top_coding is not None and number >= self.top_coding:
            return [(self.top_coding, None)] * len(self.intervals)
        return [self._band(number, width) for width in self.intervals]

    def _band(self, number: Decimal, width: Decimal) -> NumberRange:
        low = self.origin + (number - self.origin) // width * width
        if low > number:  # Decimal's // truncates toward zero
            low -= width
        high = low + width
        if self.bottom_coding is not None:
            low = max(low, self.bottom_coding)
        if self.top_coding is not None:
            high = min(high, self.top_coding)
        return low, high

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        low, high = self.bottom_coding, self.top_coding
        if low is not None and high is not None and low >= high:
            raise HierarchyError(f"Hierarchy of {domain.name!r}: bottom_coding must be below top_coding.")
        try:
            for level, (narrow, wide) in enumerate(pairwise(self.intervals), 2):
                with localcontext(prec=80):
                    remainder = wide % narrow
                if remainder:
                    reason = (
                        f"Each width must be a multiple of the one before: {wide} is not one of {narrow}."
                    )
                    raise not_nested(domain.name, level, reason)
            self._check_split(domain.name)
            return super().bind(domain, counts)
        except ArithmeticError:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: the widths are too small for values of this size. "
                "Use wider ones, or fewer digits."
            ) from None

    def _check_split(self, name: str) -> None:
        low, high = self.bottom_coding, self.top_coding
        for point in self.split[0] if self.split else ():
            with localcontext(prec=80):
                inside = (point - self.origin) % self.intervals[-1] == 0
            inside = inside and (low is None or low <= point) and (high is None or point <= high)
            if not inside and point not in (low, high):
                reason = f"A band of the width {self.intervals[-1]} must begin at split, {point}."
                raise not_nested(name, len(self.intervals) + 1, reason)
        _check_fewer(name, self.split, len(self.intervals) + 1)


@dataclass(frozen=True)
class Cuts(Banded):
    """Numbers in bands between break points. Each level keeps only some points of the level below."""

    cuts: tuple[tuple[Decimal, ...], ...] = ()
    """The break points at each level from 1 up; a single list is one level."""

    keyword: ClassVar[str] = "cuts"

    def depth(self) -> int:
        return len(self.cuts)

    def points(self) -> list[Decimal]:
        return [point for level in self.cuts for point in level]

    def bands(self, number: Decimal) -> list[NumberRange]:
        return [_between(level, number) for level in self.cuts]

    def keys(self, numbers: IntArray, scale: Callable[[Decimal], int]) -> Iterator[IntArray]:
        return _keys_between(self.cuts, numbers, scale)

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        _check_fewer(domain.name, self.cuts, 1)
        return super().bind(domain, counts)


def _between(points: Sequence[Decimal], number: Decimal) -> NumberRange:
    """Return the band of a number between break points in ascending order."""
    above = bisect_right(points, number)
    return points[above - 1] if above else None, points[above] if above < len(points) else None


def _keys_between(
    levels: Sequence[Sequence[Decimal]], numbers: IntArray, scale: Callable[[Decimal], int]
) -> Iterator[IntArray]:
    for points in levels:
        scaled = np.array(list(map(scale, points)), np.int64)
        yield np.searchsorted(scaled, numbers, side="right").astype(np.int64)


def _check_fewer(name: str, levels: Sequence[Sequence[Decimal]], first: int) -> None:
    """Refuse a break point that the level below does not have."""
    for level, (low, high) in enumerate(pairwise(levels), first + 1):
        added = sorted(set(high) - set(low))
        if added:
            reason = f"Each level keeps some break points of the one below; {added[0]} is new."
            raise not_nested(name, level, reason)


def _first_values(hierarchy: Hierarchy, level: int) -> IntArray:
    """Return one value of each group of a level."""
    return np.unique(hierarchy.groups(level), return_index=True)[1]


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def _number_text(number: Decimal | None) -> str:
    return "" if number is None else f"{number.normalize():f}"
