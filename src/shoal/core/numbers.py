"""Builders for numbers: bands of equal width, and bands between break points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.builder import COMMA, POINT, Builder, Labels, not_nested, number_of, with_sign
from shoal.core.counts import Domain
from shoal.core.hierarchy import TOP, Bounds, Hierarchy
from shoal.errors import HierarchyError

Band = tuple[Decimal | None, Decimal | None]  # from (included) and to (not included)


@dataclass(frozen=True)
class Banded(Builder):
    """A rule that puts numbers into bands."""

    fractions: bool | None = None
    """Write bands as `[45, 50)` instead of `45-49`; without it, where some number has a fraction."""
    decimal: str = POINT
    """The decimal sign of the column's numbers, `.` or `,`; bands are written with a point."""

    scale: ClassVar[str | None] = "number"

    def number(self, text: str) -> Decimal | None:
        """Read a number as the column writes it, or return None."""
        return number_of(text, self.decimal)

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Read numbers with the column's decimal sign or, as bands are written, with a point."""
        own = self.positions(texts)
        if self.decimal == POINT:
            return {"number": own}
        return {"number": np.where(np.isnan(own), super().places(texts)["number"], own)}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write numbers with the column's decimal sign where all of them have the other."""
        return with_sign(texts, self.decimal)

    def styles(self) -> Sequence[Banded]:
        """Return it with bands of whole numbers, and with bands of fractions."""
        return [replace(self, fractions=own) for own in (False, True)] if self.fractions is None else [self]

    def bands(self, number: Decimal) -> list[Band]:
        """Return the bands of a number, from level 1 up."""
        raise TypeError(type(self).__name__)

    def points(self) -> list[Decimal]:
        """Return the numbers of the rule itself, which may have fractions too."""
        raise TypeError(type(self).__name__)

    def is_unknown(self, text: str) -> bool:
        """Compare codes as numbers too: 99.0 is 99."""
        if not self.unknown or text in self.unknown:
            return text in self.unknown
        number = self.number(text)
        return number is not None and number in map(self.number, self.unknown)

    def settled(self, texts: Sequence[str | None]) -> Banded:
        """Return the rule with the style of its labels fixed."""
        if self.fractions is not None:
            return self
        numbers = [self.number(text) for text in texts if text is not None and not self.is_unknown(text)]
        found = [*self.points(), *(number for number in numbers if number is not None)]
        return replace(self, fractions=not all(map(_whole, found)))

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each number the bands it falls into."""
        style = self.settled(texts)
        numbers = [self.number(text) for text in texts]
        with localcontext(prec=80):  # long numbers in narrow bands
            return [None if n is None else tuple(map(style.label, self.bands(n))) for n in numbers]

    def label(self, band: Band) -> str:
        """Write a band: 45-49, -10 to -1, [45, 50), <18 or 90+."""
        low, high = band
        if low is None and high is None:
            return TOP
        if low is None or high is None:
            return f"<{_plain(high)}" if low is None and high is not None else f"{_plain(low)}+"
        if self.fractions:
            return f"[{_plain(low)}, {_plain(high)})"
        if high - low == 1:
            return _plain(low)
        between = " to " if low < 0 else "-"
        return f"{_plain(low)}{between}{_plain(high - 1)}"

    def bind(self, domain: Domain) -> Hierarchy:
        """Apply the rule and keep the ends of every band, so that they can be released as numbers."""
        if self.fractions is False and not all(map(_whole, self.points())):
            message = (
                f"Hierarchy of {domain.name!r}: with fractions: false, {self.keyword} takes whole numbers."
            )
            raise HierarchyError(message)
        style = self.settled(domain.texts)
        hierarchy = super().bind(domain)
        ends: dict[str, Bounds] = {TOP: (None, None)}
        first = {
            int(code): None for level in range(1, hierarchy.height + 1) for code in _firsts(hierarchy, level)
        }
        with localcontext(prec=80):
            for code, text in enumerate(domain.texts):
                number = self.number(text) if text is not None and not self.is_unknown(text) else None
                if text is not None:
                    ends[text] = (number, number)
                for band in self.bands(number) if number is not None and code in first else ():
                    ends.setdefault(style.label(band), style.ends(band))
        bounds = tuple(tuple(ends.get(label, (None, None)) for label in level) for level in hierarchy.labels)
        return replace(hierarchy, bounds=bounds)

    def ends(self, band: Band) -> Bounds:
        """Return the least and the greatest number of a band; with fractions, the end it does not reach."""
        low, high = band
        return low, high if high is None or self.fractions else high - 1

    def covers(self, label: str) -> str:
        """Say from where to where."""
        return super().covers(label) if label == TOP else f"numbers in {label}"

    def _miss(self, values: Sequence[str]) -> str:
        example, other = ("3.5", COMMA) if self.decimal == POINT else ("3,5", POINT)
        return (
            f"not a number such as 42 or {example}. Name codes under 'unknown', say decimal: '{other}' if "
            "that is their decimal sign, or use another builder."
        )


@dataclass(frozen=True)
class Intervals(Banded):
    """Numbers in bands of equal width, each width a multiple of the one before."""

    intervals: tuple[Decimal, ...] = ()
    """The width at each level from 1 up, above 0."""
    origin: Decimal = Decimal(0)
    """Where a band begins."""
    bottom_coding: Decimal | None = None
    """Everything below is one group."""
    top_coding: Decimal | None = None
    """This and everything above is one group."""

    keyword: ClassVar[str] = "intervals"

    def depth(self) -> int:
        """Return the number of widths."""
        return len(self.intervals)

    def points(self) -> list[Decimal]:
        """Return widths, origin and coding points."""
        coding = [point for point in (self.bottom_coding, self.top_coding) if point is not None]
        return [*self.intervals, self.origin, *coding]

    def bands(self, number: Decimal) -> list[Band]:
        """Return the band of each width, cut at the coding points."""
        if self.bottom_coding is not None and number < self.bottom_coding:
            return [(None, self.bottom_coding)] * len(self.intervals)
        if self.top_coding is not None and number >= self.top_coding:
            return [(self.top_coding, None)] * len(self.intervals)
        return [self._band(number, width) for width in self.intervals]

    def _band(self, number: Decimal, width: Decimal) -> Band:
        low = self.origin + (number - self.origin) // width * width
        if low > number:  # Decimal's // cuts toward zero
            low -= width
        high = low + width
        if self.bottom_coding is not None:
            low = max(low, self.bottom_coding)
        if self.top_coding is not None:
            high = min(high, self.top_coding)
        return low, high

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that the widths nest for any value, then apply them."""
        low, high = self.bottom_coding, self.top_coding
        if low is not None and high is not None and low >= high:
            message = f"Hierarchy of {domain.name!r}: bottom_coding must be below top_coding."
            raise HierarchyError(message)
        try:
            for level, (narrow, wide) in enumerate(pairwise(self.intervals), 2):
                with localcontext(prec=80):
                    rest = wide % narrow
                if rest:
                    why = f"Each width must be a multiple of the one before: {wide} is not one of {narrow}."
                    raise not_nested(domain.name, level, why)
            return super().bind(domain)
        except ArithmeticError:
            message = (
                f"Hierarchy of {domain.name!r}: the widths are too far from the values in size to count "
                "with. Take wider ones, or fewer digits."
            )
            raise HierarchyError(message) from None


@dataclass(frozen=True)
class Cuts(Banded):
    """Numbers in bands between break points, fewer of the same points at each level."""

    cuts: tuple[tuple[Decimal, ...], ...] = ()
    """The break points at each level from 1 up; a single list is one level."""

    keyword: ClassVar[str] = "cuts"

    def depth(self) -> int:
        """Return the number of lists of break points."""
        return len(self.cuts)

    def points(self) -> list[Decimal]:
        """Return the break points."""
        return [point for level in self.cuts for point in level]

    def bands(self, number: Decimal) -> list[Band]:
        """Return the band between the break points around a number, level by level."""
        found = []
        for level in self.cuts:
            below = [point for point in level if point <= number]
            above = [point for point in level if point > number]
            found.append((max(below, default=None), min(above, default=None)))
        return found

    def bind(self, domain: Domain) -> Hierarchy:
        """Check that each level drops points of the one below, then apply them."""
        for level, (low, high) in enumerate(zip(self.cuts, self.cuts[1:], strict=False), 2):
            added = sorted(set(high) - set(low))
            if added:
                reason = f"Each level keeps some break points of the one below; {added[0]} is new."
                raise not_nested(domain.name, level, reason)
        return super().bind(domain)


def _firsts(hierarchy: Hierarchy, level: int) -> IntArray:
    """Return, for each group of a level, one value that belongs to it."""
    return np.unique(hierarchy.groups(level), return_index=True)[1]


def _whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def _plain(number: Decimal | None) -> str:
    return "" if number is None else f"{number.normalize():f}"
