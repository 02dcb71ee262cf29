"""The base class of hierarchy builders: rules that are defined without data, and bound to a column's values.

A rule gives each value its labels from level 1 up. Binding adds level 0 (the value itself), the top group,
nulls, and codes for "unknown". Nulls and unknown codes join other groups only at the top. Binding a rule with
`needs_counts` also needs the number of records of each value.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.hierarchy import MISSING, TOP, Hierarchy, nest
from shoal.errors import HierarchyError, UnknownName
from shoal.wording import plural

Labels = tuple[str, ...]
POINT, COMMA = ".", ","
_EXACT_DIGITS = 15  # number of digits that a float represents exactly
_MIN_ARRAY_TEXTS = 1_000  # minimum number of texts for which an array is faster
_PLAIN = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]{3})*(?:,[0-9]+)?|[-+]?[0-9]+\.[0-9]+")
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
_GROUPED_DECIMAL = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")


@dataclass(frozen=True)
class Builder(ABC):
    """A rule that gives each value its labels."""

    top: bool = True
    """Add a last level with the one group `*`."""
    unknown: tuple[str, ...] = ()
    """Codes such as `99` or `U`, which join other groups only at the top."""
    uncovered: str | None = None
    """The label of one group for all values that the rule does not cover; without it, they are an error."""

    keyword: ClassVar[str]
    needs_counts: ClassVar[bool] = False
    """Binding needs the number of records of each value."""
    scale: ClassVar[str | None] = None
    """The scale of the values: number, day, minute or place; None if some values have no scale."""

    @abstractmethod
    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Return the labels of each text from level 1 up; None if the rule does not cover it."""

    def listed(self) -> Mapping[str, Labels]:
        """Return the values that the rule lists, with their labels; empty if it does not list values."""
        return {}

    def depth(self) -> int:
        """Return the number of levels between the value and the top."""
        return len(next(iter(self.listed().values()), ()))

    def is_unknown(self, text: str) -> bool:
        """Return whether a value is a code for "unknown"."""
        return text in self.unknown

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        """Apply the rule to the distinct values of a column; `counts` has the number of records of each."""
        known_texts = [text for text in domain.texts if text is not None and not self.is_unknown(text)]
        labels_by_text = dict(zip(known_texts, self.labels(known_texts), strict=True))
        uncovered = [text for text, labels in labels_by_text.items() if labels is None]
        if uncovered and self.uncovered is None:
            raise self._uncovered(domain, uncovered)
        labelled = {text: labels for text, labels in labels_by_text.items() if labels is not None}
        listed = self.listed()
        depth = self.depth()
        top = self._top(listed, labelled)
        uncovered_labels = (self.uncovered or "",) * depth
        labelled |= dict.fromkeys(
            uncovered, uncovered_labels if top is None else (*uncovered_labels[:-1], top)
        )
        ungrouped = [
            MISSING if t is None else t for t in domain.texts if t not in labelled and (t or "" not in listed)
        ]
        used_labels = {label for labels in (*listed.values(), *labelled.values()) for label in labels} - {top}
        conflicts = [
            text for text in ungrouped if depth and (text in used_labels or ungrouped.count(text) > 1)
        ]
        if conflicts:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: an unknown code or null and a group share a label.", conflicts
            )
        rows = []
        for text in domain.texts:
            if text is not None and text in labelled:
                labels_above = labelled[text]
            elif text is None and "" in listed:
                labels_above = listed[""]
            else:
                labels_above = (MISSING if text is None else text,) * depth
                if top is not None:
                    labels_above = (*labels_above[:-1], top)
            rows.append((MISSING if text is None else text, *labels_above, *((TOP,) if self.top else ())))
        present = set(domain.texts)
        absent_rows = [(text, *labels) for text, labels in listed.items() if text and text not in present]
        if self.top:
            absent_rows = [(*row, TOP) for row in absent_rows]
        null = domain.texts.index(None) if None in domain.texts else None
        positions = self._positions(domain.texts)
        in_table = set(domain.table_texts)
        counted = [text in in_table or (text or "") in listed for text in domain.texts]
        hierarchy = nest(domain.name, rows, absent_rows, counted)
        return replace(hierarchy, null=null, positions=positions, measures=self.scale is not None)

    def number(self, text: str) -> Decimal | None:
        """Parse a number in the notation of the column, or return None."""
        return number_of(text)

    def positions(self, texts: Sequence[str]) -> FloatArray:
        """Return the position of each value on the scale of the column; nan if it has none."""
        return floats_of(map(self.number, texts))

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return the positions of texts from another source, on each scale that they may have."""
        return {"number": floats_of(map(number_of, texts))}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Map texts that the rule cannot parse to a notation that it can."""
        return {}

    def months_first(self) -> bool | None:
        """Return whether dates of the column start with the month; None if the rule does not determine it."""
        return None

    def styles(self) -> Sequence[Builder]:
        """Return a variant of the rule for each style in which it can write labels."""
        return [self]

    def _positions(self, texts: Sequence[str | None]) -> FloatArray | None:
        if type(self).positions is Builder.positions and type(self).number is Builder.number:
            whole_numbers = None if self.unknown else _whole_numbers(texts)
            if whole_numbers is not None:
                return whole_numbers
        known_indices = [
            index for index, text in enumerate(texts) if text is not None and not self.is_unknown(text)
        ]
        if (
            known_indices
            and self.uncovered is None
            and np.isnan(self.positions([texts[known_indices[0]] or ""])).all()
        ):
            return None
        positions = np.full(len(texts), np.nan)
        positions[known_indices] = self.positions([texts[index] or "" for index in known_indices])
        unknown_positions = np.isnan(positions[known_indices])
        return (
            None
            if unknown_positions.all() or (unknown_positions.any() and self.uncovered is None)
            else positions
        )

    def _top(self, listed: Mapping[str, Labels], labelled: Mapping[str, Labels]) -> str | None:
        """Return the label that all values share at the last level of the rule, if there is one."""
        if self.top:
            return None
        last = {labels[-1] for labels in (listed or labelled).values() if labels}
        # If the rule lists no values, the data may contain only one of its groups by chance.
        return last.pop() if len(last) == 1 and (listed or last == {TOP}) else None

    def _uncovered(self, domain: Domain, values: Sequence[str]) -> HierarchyError:
        in_population = len(set(values) - set(domain.table_texts))
        count = plural(len(values), "value")
        if in_population:
            count += (
                " of the population"
                if in_population == len(values)
                else f" ({in_population} of the population)"
            )
        verb = "is" if len(values) == 1 else "are"
        message = (
            f"Hierarchy of {domain.name!r} ({self.keyword}): {count} {verb} {self._explain_uncovered(values)}"
        )
        return HierarchyError(message + self._note_on_near_misses(values), values)

    def _note_on_near_misses(self, values: Sequence[str]) -> str:
        """Describe values that differ from a listed value only by surrounding spaces or case."""
        normalized = {text.strip().casefold() for text in (*self.listed(), *self.unknown) if text.strip()}
        count = sum(value.strip().casefold() in normalized for value in values)
        if not count:
            return ""
        subject = (
            "It differs" if len(values) == 1 else f"{count:,} of them {'differs' if count == 1 else 'differ'}"
        )
        return f" {subject} from a listed one only by spaces around it or by case."

    def _explain_uncovered(self, values: Sequence[str]) -> str:
        """Explain why values are not covered, and what to do."""
        return "not covered. Add what is missing, or name codes under 'unknown'."

    def stored(self, domain: Domain, counts: IntArray | None) -> dict[str, Any]:
        """Return the options that a recipe stores in addition, so that new data get the same labels."""
        return {}

    def note(self, texts: Sequence[str]) -> str | None:
        """Describe a likely mistake in the rule, without quoting values; None if there is none."""
        return None

    def covers(self, label: str) -> str:
        """Describe the values that a label above level 0 covers."""
        return "every value" if label == TOP else "the value itself"


def floats_of(numbers: Iterable[Decimal | float | None]) -> FloatArray:
    """Return numbers as an array; nan for None."""
    return np.array([np.nan if number is None else float(number) for number in numbers], np.float64)


def _whole_numbers(texts: Sequence[str | None]) -> FloatArray | None:
    """Parse texts of at most 15 digits; return None if there is any other text."""
    if None in texts or not all(texts):
        return None
    digits = "".join(text or "" for text in texts)
    if not (digits.isascii() and digits.isdigit()) or max(map(len, texts), default=0) > _EXACT_DIGITS:  # type: ignore[arg-type]
        return None
    return np.array(list(map(float, texts)), np.float64)  # type: ignore[arg-type]


def number_of(text: str, decimal: str = POINT) -> Decimal | None:
    """Parse a finite number, or return None; points separate thousands only before a decimal comma.

    >>> number_of("36.6"), number_of("36,6"), number_of("36.6", ","), number_of("1.234", ",")
    (Decimal('36.6'), None, None, None)
    >>> number_of("36,6", ","), number_of("1.234,5", ",")
    (Decimal('36.6'), Decimal('1234.5'))
    >>> number_of("1e22"), number_of("123456789012345678901234"), number_of("1e300")
    (Decimal('1E+22'), None, None)
    """
    text = text.strip()
    if decimal == COMMA:
        text = text.replace(POINT, "") if _GROUPED_DECIMAL.fullmatch(text) else text
        text = "" if POINT in text else text.replace(COMMA, POINT)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number) >= 10**60:  # too large for exact decimal arithmetic
        return None
    # More than 20 digits are an identifier, not a number.
    return number if abs(number) < 10**20 or len(number.normalize().as_tuple().digits) <= 20 else None


def plain_numbers(texts: Sequence[str]) -> FloatArray | None:
    """Parse many texts to floats; return None for few texts, or if any is not a plain decimal number."""
    if len(texts) < _MIN_ARRAY_TEXTS or not (_PLAIN.fullmatch(texts[0]) and _PLAIN.fullmatch(texts[-1])):
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    from shoal.core.arrow import numbers_of, texts_of_list

    try:
        array = texts_of_list(texts)
    except UnicodeEncodeError:  # a lone surrogate
        return None
    if not pc.all(pc.match_substring_regex(array, rf"\A(?:{_PLAIN.pattern})\z")).as_py():
        return None
    numbers: FloatArray = numbers_of(pc.cast(array, pa.float64()))
    return numbers


def decimal_of(texts: Sequence[str]) -> str | None:
    """Return the decimal sign of texts that are all numbers; None if it is ambiguous, or for other texts.

    A comma before three digits may separate thousands. Another text must then show that it is a decimal sign.

    >>> decimal_of(["36.6", "37"]), decimal_of(["36,6", "37"]), decimal_of(["1,234", "0,5"])
    ('.', ',', ',')
    >>> decimal_of(["1,234", "999"]), decimal_of(["36,6", "37.0"]), decimal_of([])
    (None, None, None)
    """
    if not texts:
        return None
    if plain_numbers(texts) is not None or all(number_of(text) is not None for text in texts):
        return POINT
    return COMMA if has_commas(texts) and not all(map(_is_ambiguous, texts)) else None


def with_sign(texts: Sequence[str], sign: str) -> dict[str, str]:
    """Rewrite numbers with the decimal sign `sign`, if all of them clearly use the other sign.

    >>> with_sign(["36,6", "37", "k.A."], "."), with_sign(["36.6"], ","), with_sign(["1,234", "999"], ".")
    ({'36,6': '36.6'}, {'36.6': '36,6'}, {})
    """
    numbers = [text for text in texts if _NUMBER.fullmatch(text.strip())]
    decimal = decimal_of(numbers)
    if decimal is None or decimal == sign:
        return {}
    rewritten = {}
    for text in numbers:
        number = number_of(text, decimal)
        if number is not None and number_of(text, sign) is None:
            rewritten[text] = str(number).replace(POINT, sign)
    return rewritten


def has_commas(texts: Sequence[str]) -> bool:
    """Return whether texts are numbers and some have a comma, decimal or not."""
    return all(number_of(text, COMMA) is not None for text in texts) and any(COMMA in text for text in texts)


def _is_ambiguous(text: str) -> bool:
    """Return whether a number has no comma, or a comma that may separate thousands."""
    return COMMA not in text or _THOUSANDS.fullmatch(text.strip()) is not None


def not_nested(name: str, level: int, reason: str) -> HierarchyError:
    """Return the error for a level that splits a group of the level below."""
    message = f"Hierarchy of {name!r}: level {level} splits a group of level {level - 1}. {reason}"
    return HierarchyError(message)


def check_units(
    name: str, units: Sequence[str], known: Sequence[str], across: Mapping[str, str] | None = None
) -> None:
    """Check that units are known and go from finer to coarser; `across` explains units that do not nest."""
    for unit in units:
        if unit in (across or {}):
            raise HierarchyError(f"Hierarchy of {name!r}: {unit!r} does not nest. {(across or {})[unit]}")
        if unit not in known:
            raise UnknownName(unit, f"unit for column {name!r}:", known)
    for level, (low, high) in enumerate(pairwise(units), 2):
        if known.index(high) <= known.index(low):
            raise not_nested(name, level, f"A {high} is not made of whole {low}s; name finer units first.")
