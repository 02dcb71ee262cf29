"""Builders by name, and their notation in a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.hierarchy.builder import COMMA, POINT, Builder, Labels, number_of, with_sign
from shoal.core.hierarchy.dates import as_iso, day_numbers, parse_iso, parse_usual
from shoal.core.hierarchy.hierarchy import MAX_LEVELS, TOP
from shoal.core.hierarchy.lists import Order
from shoal.errors import HierarchyError, UnknownName
from shoal.wording import quote

if TYPE_CHECKING:
    from shoal.core.hierarchy.rare import Threshold


@dataclass(frozen=True)
class Flat(Builder):
    """Unchanged values, or one group of all values."""

    keyword: ClassVar[str] = "flat"

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        return [()] * len(texts)

    def positions_by_scale(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Parse ISO dates and numbers."""
        days = day_numbers(parse_iso(texts))
        numbers = np.full(len(texts), np.nan)
        not_days = np.flatnonzero(np.isnan(days))
        numbers[not_days] = super().positions_by_scale([texts[index] for index in not_days.tolist()])[
            "number"
        ]
        return {"day": days, "number": numbers}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write dates as ISO dates, numbers with a point; eight digits are a date if all texts have eight."""
        compact = [len(text) == 8 and text.isascii() and text.isdigit() for text in texts]
        candidates = (
            texts
            if all(compact)
            else [text for text, is_compact in zip(texts, compact, strict=True) if not is_compact]
        )
        candidates = [
            text
            for text, is_unparsed in zip(candidates, np.isnat(parse_iso(candidates)).tolist(), strict=True)
            if is_unparsed
        ]
        return {
            **as_iso(candidates, parse_usual(candidates, months_first=months_first)),
            **with_sign(texts, POINT),
        }


class _Builders(Mapping[str, type[Builder]]):
    """The builders by keyword; a class is imported when its keyword is looked up."""

    _modules: ClassVar[Mapping[str, str]] = {
        "countries": "classifications:Countries",
        "csv": "lists:Csv",
        "cuts": "numbers:Cuts",
        "dates": "calendar:Dates",
        "flat": "builders:Flat",
        "icd_10": "classifications:Icd10",
        "intervals": "numbers:Intervals",
        "order": "lists:Order",
        "prefix": "prefixes:Prefix",
        "rare": "rare:RareValues",
        "times": "calendar:Times",
        "tree": "lists:Tree",
        "us_states": "classifications:UsStates",
    }

    def __getitem__(self, keyword: str) -> type[Builder]:
        module, _, name = self._modules[keyword].partition(":")
        builder: type[Builder] = getattr(import_module(f"shoal.core.hierarchy.{module}"), name)
        return builder

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


BUILDERS: Mapping[str, type[Builder]] = _Builders()


# Options with one entry for each level.
_BY_LEVEL = {
    "countries", "cuts", "dates", "icd_10", "intervals", "prefix", "rare", "sizes", "split", "times",
    "us_states",
}  # fmt: skip


def parse(column: str, spec: object) -> Builder:
    """Parse a hierarchy of a policy: a builder name, or a mapping with one."""
    if isinstance(spec, str):
        spec = {spec: None}
    if not isinstance(spec, Mapping) or not spec:
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: expected a builder such as 'flat' or {{intervals: [5, 10]}}."
        )
    builders = [key for key in spec if key in BUILDERS]
    if len(builders) > 1:
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: one builder per column, got {' and '.join(builders)}. Keep one."
        )
    if not builders:
        raise UnknownName(
            next((str(key) for key in spec if key not in BUILDERS), ""),
            f"hierarchy builder for column {quote(column)}:",
            BUILDERS,
        )
    kind = BUILDERS[builders[0]]
    option_names = {field.name for field in fields(kind)} - {"rows"} | {kind.keyword}
    for key in spec:
        if key not in option_names:
            raise UnknownName(
                str(key), f"option of {kind.keyword} for column {quote(column)}:", sorted(option_names)
            )
    options = {key: READERS[key](column, key, value) for key, value in spec.items() if value is not None}
    if kind.keyword != "flat" and not options.get(kind.keyword):
        raise HierarchyError(f"Hierarchy of {quote(column)}: {kind.keyword} needs at least one entry.")
    if kind is Order and not options.get("sizes"):
        raise HierarchyError(f"Hierarchy of {quote(column)}: order needs sizes, such as sizes: [2, 4].")
    for key in _BY_LEVEL & options.keys():
        if len(options[key]) > MAX_LEVELS:
            raise HierarchyError(
                f"Hierarchy of {quote(column)}: {key} has {len(options[key]):,} "
                "entries, and a hierarchy has at "
                f"most {MAX_LEVELS} levels. Leave some out."
            )
    options.pop("flat", None)
    return kind(**options)


def _as_list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _number(column: str, key: str, value: object) -> Decimal:
    number = None if isinstance(value, bool) else number_of(str(value))
    if number is None:
        raise HierarchyError(f"Hierarchy of {quote(column)}: {key} must be a number, got {quote(value)}.")
    return number


def _widths(column: str, key: str, value: object) -> tuple[Decimal, ...]:
    numbers = tuple(_number(column, key, entry) for entry in _as_list(value))
    for number in numbers:
        if number <= 0:
            raise HierarchyError(f"Hierarchy of {quote(column)}: {key} takes numbers above 0, got {number}.")
    return numbers


def _thresholds(column: str, key: str, value: object) -> tuple[Threshold, ...]:
    return tuple(_threshold(column, key, entry) for entry in _as_list(value))


def _threshold(column: str, key: str, value: object) -> Threshold:
    """Parse a share of the records (1%, 0.01), or a number of records."""
    if isinstance(value, Decimal | int) and not isinstance(value, bool) and value >= 1:
        return int(value)
    text = str(value).strip()
    is_percent = text.endswith("%")
    number = None if isinstance(value, bool) else number_of(text.removesuffix("%"))
    is_share = is_percent or "." in text or "e" in text.lower()
    number = number / 100 if number is not None and is_percent else number
    if number is None or number <= 0 or (is_share and number > 1) or (not is_share and number % 1):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} takes shares of the records such as 1% or 0.01, or whole "
            f"numbers of records, got {quote(value)}."
        )
    return number if is_share else int(number)


def _values_by_level(column: str, key: str, value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(level, list | tuple) for level in value):
        raise HierarchyError(f"Hierarchy of {quote(column)}: {key} takes a list of values for each level.")
    return tuple(_texts(column, key, level) for level in value)


def _group(column: str, key: str, value: object) -> str:
    if value in ("", TOP):
        raise HierarchyError(f"Hierarchy of {quote(column)}: {key} must not be empty nor {TOP}.")
    return _text(column, key, value)


def _lengths(column: str, key: str, value: object) -> tuple[int, ...]:
    numbers = [_number(column, key, entry) for entry in _as_list(value)]
    for number in numbers:
        if number < 1 or number != number.to_integral_value():
            raise HierarchyError(
                f"Hierarchy of {quote(column)}: {key} takes whole numbers of at least 1, got {number}."
            )
    return tuple(int(number) for number in numbers)


def _points(column: str, key: str, value: object) -> tuple[tuple[Decimal, ...], ...]:
    levels = _as_list(value)
    if levels and not any(isinstance(level, list | tuple) for level in levels):
        levels = [levels]
    return tuple(tuple(sorted({_number(column, key, p) for p in _as_list(level)})) for level in levels)


def _day(column: str, key: str, value: object) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} must be a day such as 2025-01-31, got {quote(value)}."
        ) from None


def _texts(column: str, key: str, value: object) -> tuple[str, ...]:
    values = _as_list(value)
    if any(isinstance(entry, bool) for entry in values):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} holds true or false; put yes, no, on and off in quotes."
        )
    if any(entry is None or isinstance(entry, list | tuple | Mapping) for entry in values):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} takes single values; put null and ~ in quotes."
        )
    return tuple(str(entry) for entry in values)


def _text(column: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise HierarchyError(f"Hierarchy of {quote(column)}: {key} must be text, got {quote(value)}.")
    return value


def _flag(column: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} must be true or false, got {quote(value)}."
        )
    return value


def _decimal_sign(column: str, key: str, value: object) -> str:
    if value not in (POINT, COMMA):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} must be '{POINT}' or '{COMMA}', "
            f"in quotes, got {quote(value)}."
        )
    return str(value)


def _tree(column: str, key: str, value: object) -> object:
    if not isinstance(value, Mapping | list | tuple):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} takes groups with the values "
            f"below them, got {quote(value)}."
        )
    if any(isinstance(entry, bool) for entry in _entries(value)):
        raise HierarchyError(
            f"Hierarchy of {quote(column)}: {key} holds true or false; put yes, no, on and off in quotes."
        )
    return value


def _entries(tree: object) -> Iterator[object]:
    """Yield every group and value of a tree."""
    for entry in tree if isinstance(tree, Mapping | list | tuple) else (tree,):
        if isinstance(entry, Mapping | list | tuple):
            yield from _entries(entry)
        else:
            yield entry
        if isinstance(tree, Mapping):
            yield from _entries(tree[entry])


def _no_value(column: str, key: str, value: object) -> None:
    if value not in (True, {}, []):
        raise HierarchyError(f"Hierarchy of {quote(column)}: {key} takes nothing, got {quote(value)}.")


READERS: dict[str, Callable[[str, str, object], Any]] = {
    "bottom_coding": _number,
    "countries": _texts,
    "csv": _text,
    "cuts": _points,
    "dates": _texts,
    "decimal": _decimal_sign,
    "flat": _no_value,
    "format": _text,
    "fractions": _flag,
    "icd_10": _texts,
    "intervals": _widths,
    "kept": _values_by_level,
    "label": _text,
    "latest": _day,
    "order": _texts,
    "origin": _number,
    "pad": _lengths,
    "prefix": _lengths,
    "rare": _thresholds,
    "sizes": _lengths,
    "split": _points,
    "times": _texts,
    "together": _texts,
    "top": _flag,
    "top_coding": _number,
    "tree": _tree,
    "uncovered": _group,
    "unknown": _texts,
    "us_states": _texts,
}
