"""Counting and recoding as relational expressions: the code that every Ibis engine shares.

Rows stay in the engine. Out come the distinct values of each column and (packed key, count); in go
dimension tables: value -> code, value -> label, and the keys of suppressed classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis.expr.types import IntegerValue, Table

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts, Domain, Field, from_joint, layout
from shoal.core.recoding import Recoding
from shoal.errors import DataError

OWN = "__shoal_"  # begins the names of our own columns; a table must not have such
_COUNT, _WORD, _VALUE, _CODE, _LABEL, _GONE = (OWN + name for name in ("n", "w", "v", "c", "l", "gone"))


def domains(table: Table, columns: Sequence[str]) -> dict[str, Domain]:
    """Return each column's distinct values, in an order that the rows' order does not touch."""
    found = {}
    for name in columns:
        values = table.select(name).distinct().to_pyarrow()[name].combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            values = values.take(pc.sort_indices(values))
        except pa.ArrowNotImplementedError:
            message = f"Column {name!r} holds {values.type}; a column to count must hold single values."
            raise DataError(message) from None
        found[name] = Domain(name, values, tuple(map(text_of, values.to_pylist())))
    return found


def text_of(value: object) -> str | None:
    """Write a value the way hierarchies name it: 45.0 as 45, true as true, a date as 2025-01-31.

    >>> text_of(45.0), text_of(True), text_of("007"), text_of(float("nan"))
    ('45', 'true', '007', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if np.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def count(table: Table, columns: Sequence[str], sensitive: Sequence[str]) -> tuple[Counts, dict[str, Domain]]:
    """Group by the columns in the engine, on packed integer keys."""
    names = [*columns, *sensitive]
    grouped = table.group_by(names).aggregate(**{_COUNT: table.count()}).cache()  # the rows are read once
    found = domains(grouped, names)
    fields = layout([domain.bits for domain in found.values()])
    dimensions = [
        _dimension(domain, place, {_CODE: pa.array(np.arange(len(domain)))})
        for place, domain in enumerate(found.values())
    ]
    coded = _join(grouped, found, dimensions)
    words = _words(coded, fields)
    keyed = coded.select(**words, **{_COUNT: coded[_COUNT].cast("int64")})
    packed = keyed.group_by(list(words)).aggregate(**{_COUNT: keyed[_COUNT].sum().cast("int64")}).to_pyarrow()
    keys = np.stack([packed[name].to_numpy() for name in words])
    sizes = packed[_COUNT].to_numpy()
    counts = from_joint(
        [found[name].bits for name in columns], {name: found[name].bits for name in sensitive}, keys, sizes
    )
    return counts, found


def recode(
    table: Table,
    recoding: Recoding,
    found: Mapping[str, Domain],
    keep: Sequence[str],
    blank: Sequence[str] | None,
) -> Table:
    """Replace values by labels, drop or blank suppressed records, and hide the rows' order."""
    suppressing = recoding.suppressed is not None
    dimensions, joined = [], {}
    for place, name in enumerate(recoding.columns):
        labels, groups = recoding.labels[place], recoding.groups[place]
        extra: dict[str, pa.Array] = {}
        if labels is not None:
            extra[_LABEL] = pa.array(labels, pa.string()).take(pa.array(groups))
        if suppressing:
            extra[_CODE] = pa.array(groups)
        if extra:
            joined[name] = found[name]
            dimensions.append(_dimension(found[name], place, extra))
    wide = _join(table, joined, dimensions)
    if recoding.suppressed is not None:
        fields = layout([found[name].bits for name in recoding.columns])
        wide = _without(wide, _words(wide, fields), recoding.suppressed, marked=blank is not None)
    labelled = {
        name for name, labels in zip(recoding.columns, recoding.labels, strict=True) if labels is not None
    }
    place_of = {name: place for place, name in enumerate(recoding.columns)}
    released = {name: wide[f"{_LABEL}{place_of[name]}"] if name in labelled else wide[name] for name in keep}
    if suppressing and blank is not None:
        gone = wide[_GONE].notnull()
        released |= {name: gone.ifelse(ibis.null(), released[name]) for name in blank if name in released}
    shown = wide.select(**released)
    # Sorted by what is public anyway; inside a class the order is random.
    return shown.order_by([*(shown[name] for name in recoding.columns if name in keep), ibis.random()])


def _dimension(domain: Domain, place: int, extra: Mapping[str, pa.Array]) -> Table:
    columns = {f"{_VALUE}{place}": domain.values, **{f"{name}{place}": a for name, a in extra.items()}}
    return ibis.memtable(pa.table(columns))


def _join(table: Table, found: Iterable[str], dimensions: Sequence[Table]) -> Table:
    """Join each column's dimension table; nulls match nulls."""
    for name, dimension in zip(found, dimensions, strict=True):
        value = next(column for column in dimension.columns if column.startswith(_VALUE))
        table = table.left_join(dimension, table[name].identical_to(dimension[value])).drop(value)
    return table


def _words(table: Table, fields: Sequence[Field]) -> dict[str, IntegerValue]:
    """Pack the columns' codes into words."""
    parts: dict[int, list[Any]] = {}
    for place, field in enumerate(fields):
        code = table[f"{_CODE}{place}"].cast("int64")
        parts.setdefault(field.word, []).append(code * ibis.literal(1 << field.shift, "int64"))
    return {f"{_WORD}{word}": reduce(add, codes) for word, codes in parts.items()}


def _without(table: Table, words: Mapping[str, IntegerValue], suppressed: IntArray, *, marked: bool) -> Table:
    """Leave out (or mark) the rows whose packed groups are suppressed."""
    keyed = table.mutate(**words)
    gone = {f"{_GONE}{word}": pa.array(keys) for word, keys in enumerate(suppressed)}
    refused = ibis.memtable(pa.table(gone))
    conditions = [keyed[f"{_WORD}{word}"] == refused[f"{_GONE}{word}"] for word in range(len(suppressed))]
    if not marked:
        return keyed.anti_join(refused, conditions)
    return keyed.left_join(refused.mutate(**{_GONE: ibis.literal(1)}), conditions)
