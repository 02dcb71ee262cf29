"""Builders by name, and how a policy writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.builder import COMMA, POINT, Builder, Labels, number_of, with_sign
from shoal.core.calendar import Dates, Times
from shoal.core.dates import as_iso, day_numbers, usual, written_out
from shoal.core.listed import Csv, Order, Tree
from shoal.core.numbers import Cuts, Intervals
from shoal.core.prefixes import Prefix
from shoal.errors import HierarchyError, UnknownName


@dataclass(frozen=True)
class Flat(Builder):
    """As is, or everything in one group."""

    keyword: ClassVar[str] = "flat"

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Give no labels below the top."""
        return [()] * len(texts)

    def places(self, texts: Sequence[str]) -> Mapping[str, FloatArray]:
        """Read dates that are written out, and numbers."""
        days = day_numbers(written_out(texts))
        numbers = np.full(len(texts), np.nan)
        left = np.flatnonzero(np.isnan(days))
        numbers[left] = super().places([texts[place] for place in left.tolist()])["number"]
        return {"day": days, "number": numbers}

    def rewritten(self, texts: Sequence[str], *, months_first: bool = False) -> Mapping[str, str]:
        """Write dates out, and numbers with a point; eight digits are dates only where all texts are."""
        compact = [len(text) == 8 and text.isascii() and text.isdigit() for text in texts]
        odd = texts if all(compact) else [text for text, is_ in zip(texts, compact, strict=True) if not is_]
        odd = [text for text, own in zip(odd, np.isnat(written_out(odd)).tolist(), strict=True) if own]
        return {**as_iso(odd, usual(odd, months_first=months_first)), **with_sign(texts, POINT)}


BUILDERS: dict[str, type[Builder]] = {
    kind.keyword: kind for kind in (Csv, Cuts, Dates, Flat, Intervals, Order, Prefix, Times, Tree)
}


def parse(column: str, spec: object) -> Builder:
    """Read a hierarchy as a policy writes it: a name, or a mapping that begins with one."""
    if isinstance(spec, str):
        spec = {spec: None}
    if not isinstance(spec, Mapping) or not spec:
        message = f"Hierarchy of {column!r}: expected a builder such as 'flat' or {{intervals: [5, 10]}}."
        raise HierarchyError(message)
    named = [key for key in spec if key in BUILDERS]
    if len(named) > 1:
        message = f"Hierarchy of {column!r}: one builder per column, got {' and '.join(named)}. Keep one."
        raise HierarchyError(message)
    if not named:
        unknown = next((str(key) for key in spec if key not in BUILDERS), "")
        raise UnknownName(unknown, f"hierarchy builder for column {column!r}:", BUILDERS)
    kind = BUILDERS[named[0]]
    known = {field.name for field in fields(kind)} - {"rows"} | {kind.keyword}
    for key in spec:
        if key not in known:
            raise UnknownName(str(key), f"option of {kind.keyword} for column {column!r}:", sorted(known))
    options = {key: READERS[key](column, key, value) for key, value in spec.items() if value is not None}
    if kind.keyword != "flat" and not options.get(kind.keyword):
        message = f"Hierarchy of {column!r}: {kind.keyword} needs at least one entry."
        raise HierarchyError(message)
    if kind is Order and not options.get("sizes"):
        message = f"Hierarchy of {column!r}: order needs sizes, such as sizes: [2, 4]."
        raise HierarchyError(message)
    options.pop("flat", None)
    return kind(**options)


def _many(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _number(column: str, key: str, value: object) -> Decimal:
    number = None if isinstance(value, bool) else number_of(str(value))
    if number is None:
        message = f"Hierarchy of {column!r}: {key} must be a number, got {value!r}."
        raise HierarchyError(message)
    return number


def _widths(column: str, key: str, value: object) -> tuple[Decimal, ...]:
    numbers = tuple(_number(column, key, entry) for entry in _many(value))
    for number in numbers:
        if number <= 0:
            message = f"Hierarchy of {column!r}: {key} takes numbers above 0, got {number}."
            raise HierarchyError(message)
    return numbers


def _lengths(column: str, key: str, value: object) -> tuple[int, ...]:
    numbers = [_number(column, key, entry) for entry in _many(value)]
    for number in numbers:
        if number < 1 or number != number.to_integral_value():
            message = f"Hierarchy of {column!r}: {key} takes whole numbers of at least 1, got {number}."
            raise HierarchyError(message)
    return tuple(int(number) for number in numbers)


def _points(column: str, key: str, value: object) -> tuple[tuple[Decimal, ...], ...]:
    levels = _many(value)
    if levels and not any(isinstance(level, list | tuple) for level in levels):
        levels = [levels]
    return tuple(tuple(sorted({_number(column, key, p) for p in _many(level)})) for level in levels)


def _texts(column: str, key: str, value: object) -> tuple[str, ...]:
    found = _many(value)
    if any(isinstance(entry, bool) for entry in found):
        message = f"Hierarchy of {column!r}: {key} holds true or false; put yes, no, on and off in quotes."
        raise HierarchyError(message)
    if any(entry is None or isinstance(entry, list | tuple | Mapping) for entry in found):
        message = f"Hierarchy of {column!r}: {key} takes single values; put null and ~ in quotes."
        raise HierarchyError(message)
    return tuple(str(entry) for entry in found)


def _text(column: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        message = f"Hierarchy of {column!r}: {key} must be text, got {value!r}."
        raise HierarchyError(message)
    return value


def _flag(column: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        message = f"Hierarchy of {column!r}: {key} must be true or false, got {value!r}."
        raise HierarchyError(message)
    return value


def _sign(column: str, key: str, value: object) -> str:
    if value not in (POINT, COMMA):
        message = f"Hierarchy of {column!r}: {key} must be '{POINT}' or '{COMMA}', in quotes, got {value!r}."
        raise HierarchyError(message)
    return str(value)


def _tree(column: str, key: str, value: object) -> object:
    if not isinstance(value, Mapping | list | tuple):
        message = f"Hierarchy of {column!r}: {key} takes groups with the values below them, got {value!r}."
        raise HierarchyError(message)
    if any(isinstance(entry, bool) for entry in _entries(value)):
        message = f"Hierarchy of {column!r}: {key} holds true or false; put yes, no, on and off in quotes."
        raise HierarchyError(message)
    return value


def _entries(tree: object) -> Iterator[object]:
    """List every group and value of a tree."""
    for entry in tree if isinstance(tree, Mapping | list | tuple) else (tree,):
        if isinstance(entry, Mapping | list | tuple):
            yield from _entries(entry)
        else:
            yield entry
        if isinstance(tree, Mapping):
            yield from _entries(tree[entry])


def _nothing(column: str, key: str, value: object) -> None:
    if value not in (True, {}, []):
        message = f"Hierarchy of {column!r}: {key} takes nothing, got {value!r}."
        raise HierarchyError(message)


READERS: dict[str, Callable[[str, str, object], Any]] = {
    "bottom_coding": _number,
    "csv": _text,
    "cuts": _points,
    "dates": _texts,
    "decimal": _sign,
    "flat": _nothing,
    "format": _text,
    "fractions": _flag,
    "intervals": _widths,
    "label": _text,
    "order": _texts,
    "origin": _number,
    "pad": _lengths,
    "prefix": _lengths,
    "sizes": _lengths,
    "times": _texts,
    "together": _texts,
    "top": _flag,
    "top_coding": _number,
    "tree": _tree,
    "unknown": _texts,
}
