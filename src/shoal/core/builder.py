"""What every hierarchy builder does: bind a rule, made without seeing the data, to a column's values.

A rule gives each value its labels from level 1 up. Binding adds level 0 (the value as it is), the top
group, nulls, and the codes that mean "unknown"; both of these join the others only at the top.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.counts import Domain
from shoal.core.hierarchy import MISSING, TOP, Hierarchy, nest
from shoal.errors import HierarchyError, so_many

Labels = tuple[str, ...]
POINT, COMMA = ".", ","
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]{3})*(?:,[0-9]+)?|[-+]?[0-9]+\.[0-9]+")
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
_PARTED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")


@dataclass(frozen=True)
class Builder(ABC):
    """A rule that gives each value its labels."""

    top: bool = True
    """Add a last level with the one group `*`."""
    unknown: tuple[str, ...] = ()
    """Codes such as `99` or `U` that join the others only at the top."""

    keyword: ClassVar[str]
    scale: ClassVar[str | None] = None
    """What every value of the rule lies on: number, day, minute or place; None where some do not."""

    @abstractmethod
    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give each text its labels from level 1 up, or None where the rule does not cover it."""

    def listed(self) -> Mapping[str, Labels]:
        """Return the values the rule lists, with their labels; empty for a rule about any value."""
        return {}

    def depth(self) -> int:
        """Return how many levels the rule has between the value and the top."""
        return len(next(iter(self.listed().values()), ()))

    def is_unknown(self, text: str) -> bool:
        """Tell whether a value is a code that means "unknown"."""
        return text in self.unknown

    def bind(self, domain: Domain) -> Hierarchy:
        """Apply the rule to a column's distinct values."""
        known = [text for text in domain.texts if text is not None and not self.is_unknown(text)]
        found = dict(zip(known, self.labels(known), strict=True))
        uncovered = [text for text, labels in found.items() if labels is None]
        if uncovered:
            raise self._uncovered(domain, uncovered)
        given = {text: labels for text, labels in found.items() if labels is not None}
        listed = self.listed()
        depth = self.depth()
        top = self._top(listed, given)
        apart = [
            MISSING if t is None else t for t in domain.texts if t not in given and (t or "" not in listed)
        ]
        taken = {label for labels in (*listed.values(), *given.values()) for label in labels} - {top}
        clash = [text for text in apart if depth and (text in taken or apart.count(text) > 1)]
        if clash:
            message = f"Hierarchy of {domain.name!r}: an unknown code or null and a group share a label."
            raise HierarchyError(message, clash)
        rows = []
        for text in domain.texts:
            if text is not None and text in given:
                middle = given[text]
            elif text is None and "" in listed:
                middle = listed[""]
            else:
                middle = (MISSING if text is None else text,) * depth
                if top is not None:
                    middle = (*middle[:-1], top)
            rows.append((MISSING if text is None else text, *middle, *((TOP,) if self.top else ())))
        present = set(domain.texts)
        others = [(text, *labels) for text, labels in listed.items() if text and text not in present]
        if self.top:
            others = [(*row, TOP) for row in others]
        null = domain.texts.index(None) if None in domain.texts else None
        positions = self._positions(domain.texts)
        own = set(domain.own)
        counted = [text in own or (text or "") in listed for text in domain.texts]
        return replace(nest(domain.name, rows, others, counted), null=null, positions=positions)

    def number(self, text: str) -> Decimal | None:
        """Read a number as the column writes it, or return None."""
        return number_of(text)

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return where each value lies on the scale of its column; nan where it lies nowhere."""
        return floats_of(map(self.number, texts))

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return where each text lies that somebody else wrote, on every scale on which it could."""
        return {"number": floats_of(map(number_of, texts))}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Return texts that the rule does not read as they are, written so that it does."""
        return {}

    def months_first(self) -> bool | None:
        """Tell whether the column's dates begin with the month; None where the rule does not tell."""
        return None

    def styles(self) -> Sequence[Builder]:
        """Return the rule in each style that its labels may have."""
        return [self]

    def _positions(self, texts: Sequence[str | None]) -> FloatArray | None:
        known = [place for place, text in enumerate(texts) if text is not None and not self.is_unknown(text)]
        found = np.full(len(texts), np.nan)
        found[known] = self.positions([texts[place] or "" for place in known])
        return None if not known or np.isnan(found[known]).any() else found

    def _top(self, listed: Mapping[str, Labels], given: Mapping[str, Labels]) -> str | None:
        """Return the label all values share at the rule's own last level, where there is one."""
        if self.top:
            return None
        last = {labels[-1] for labels in (listed or given).values() if labels}
        # Of a rule that lists no values, the data may happen to show one group only.
        return last.pop() if len(last) == 1 and (listed or last == {TOP}) else None

    def _uncovered(self, domain: Domain, values: Sequence[str]) -> HierarchyError:
        others = len(set(values) - set(domain.own))
        told = so_many(len(values), "value")
        if others:
            told += " of the population" if others == len(values) else f" ({others} of the population)"
        are = "is" if len(values) == 1 else "are"
        message = f"Hierarchy of {domain.name!r} ({self.keyword}): {told} {are} {self._miss(values)}"
        return HierarchyError(message + self._nearly(values), values)

    def _nearly(self, values: Sequence[str]) -> str:
        """Say how many values miss one of the hierarchy only by spaces around them or by case."""
        known = {text.strip().casefold() for text in (*self.listed(), *self.unknown) if text.strip()}
        near = sum(value.strip().casefold() in known for value in values)
        if not near:
            return ""
        one = "It differs" if len(values) == 1 else f"{near:,} of them {'differs' if near == 1 else 'differ'}"
        return f" {one} from a listed one only by spaces around it or by case."

    def _miss(self, values: Sequence[str]) -> str:
        """Say what values that the rule does not cover are not, and what to do."""
        return "not covered. Add what is missing, or name codes under 'unknown'."

    def note(self, texts: Sequence[str]) -> str | None:
        """Say what may be wrong with a rule that fits these values, without one of them."""
        return None

    def covers(self, label: str) -> str:
        """Say in words which values a label above level 0 stands for."""
        return "every value" if label == TOP else "the value itself"


def floats_of(found: Iterable[Decimal | float | None]) -> FloatArray:
    """Return numbers as an array, nan where there is none."""
    return np.array([np.nan if number is None else float(number) for number in found], np.float64)


def number_of(text: str, decimal: str = POINT) -> Decimal | None:
    """Read a finite number with its decimal sign, or return None; points part thousands only before a comma.

    >>> number_of("36.6"), number_of("36,6"), number_of("36.6", ","), number_of("1.234", ",")
    (Decimal('36.6'), None, None, None)
    >>> number_of("36,6", ","), number_of("1.234,5", ",")
    (Decimal('36.6'), Decimal('1234.5'))
    """
    text = text.strip()
    if decimal == COMMA:
        text = text.replace(POINT, "") if _PARTED.fullmatch(text) else text
        text = "" if POINT in text else text.replace(COMMA, POINT)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    # Longer numbers are identifiers, and beyond exact decimal arithmetic.
    return number if number.is_finite() and abs(number) < 10**20 else None


def decimal_of(texts: Sequence[str]) -> str | None:
    """Return the decimal sign of texts that are all numbers; None where they are not, or it cannot be told.

    A comma before three digits may part thousands, so another text must show that it does not.

    >>> decimal_of(["36.6", "37"]), decimal_of(["36,6", "37"]), decimal_of(["1,234", "0,5"])
    ('.', ',', ',')
    >>> decimal_of(["1,234", "999"]), decimal_of(["36,6", "37.0"]), decimal_of([])
    (None, None, None)
    """
    if not texts:
        return None
    if all(number_of(text) is not None for text in texts):
        return POINT
    return COMMA if has_commas(texts) and not all(map(_unclear, texts)) else None


def with_sign(texts: Sequence[str], sign: str) -> dict[str, str]:
    """Write numbers with a decimal sign, where all that are numbers say that they have the other.

    >>> with_sign(["36,6", "37", "k.A."], "."), with_sign(["36.6"], ","), with_sign(["1,234", "999"], ".")
    ({'36,6': '36.6'}, {'36.6': '36,6'}, {})
    """
    shown = [text for text in texts if _NUMBER.fullmatch(text.strip())]
    decimal = decimal_of(shown)
    if decimal is None or decimal == sign:
        return {}
    found = {}
    for text in shown:
        number = number_of(text, decimal)
        if number is not None and number_of(text, sign) is None:
            found[text] = str(number).replace(POINT, sign)
    return found


def has_commas(texts: Sequence[str]) -> bool:
    """Tell whether texts are numbers, some with a comma, whatever it stands for."""
    return all(number_of(text, COMMA) is not None for text in texts) and any(COMMA in text for text in texts)


def _unclear(text: str) -> bool:
    """Tell whether a number has no comma, or one that may part thousands."""
    return COMMA not in text or _THOUSANDS.fullmatch(text.strip()) is not None


def not_nested(name: str, level: int, reason: str) -> HierarchyError:
    """Say which level of a rule splits a group of the level below, and why."""
    message = f"Hierarchy of {name!r}: level {level} splits a group of level {level - 1}. {reason}"
    return HierarchyError(message)
