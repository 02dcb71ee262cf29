"""Counting and recoding as relational expressions: the code that every Ibis engine shares.

Rows stay in the engine. Out come the distinct values of each column and (packed key, count); in go
dimension tables: value -> code, value -> label, and the keys of suppressed classes. Codes arrive in the
dimension tables already shifted to their fields, so a packed key is a sum; grouping and sorting by one
integer is several times as fast as by the columns it stands for, and needs less memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from math import prod
from operator import add, or_
from typing import Any, ClassVar

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis.expr.types import IntegerValue, Table

from shoal.core.arrays import IntArray
from shoal.core.contracts import Look
from shoal.core.counts import Counts, Domain, Field, layout
from shoal.core.far import FarCounts
from shoal.core.held import from_joint
from shoal.core.memory import fits
from shoal.errors import DataError

OWN = "__shoal_"  # begins the names of our own columns; a table must not have such
COUNT, WORD, CODE, ROW, GONE, _VALUE, _NULL = (
    OWN + name for name in ("n", "w", "c", "row", "gone", "v", "null")
)


class Site(ABC):
    """What this code asks of a backend."""

    # Its threads sort what is grouped faster than ours would.
    sorts: ClassVar[bool] = False
    # It tells about how many values a column has, of many columns at once, by one cheap reading.
    estimates: ClassVar[bool] = False

    @abstractmethod
    def hold(self, table: pa.Table) -> Table:
        """Put a small table where the backend can join it."""

    @abstractmethod
    def fetch(self, table: Table) -> pa.Table:
        """Bring a result here: distinct values, or keys with their counts; never rows."""

    @abstractmethod
    def kept(self, table: Table) -> Table:
        """Let the backend work a table out once and keep it until it is closed."""

    def distinct(self, table: Table, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        """Return the distinct values of columns, a null among them where there is one; and the rows."""
        return {name: values_of(self, table, name) for name in columns}, rows_of(self, table)

    def lone_of(self, table: Table, columns: Sequence[str]) -> dict[str, int]:
        """Count the values of each column that occur once."""
        sizes = {name: table.group_by(name).aggregate(**{COUNT: table.count()}) for name in columns}
        return {name: rows_of(self, found.filter(found[COUNT] == 1)) for name, found in sizes.items()}


def distinct_at_once(
    table: Table, columns: Sequence[str], fetch: Callable[[Table], pa.Table]
) -> tuple[dict[str, pa.Array], int]:
    """Return the distinct values of columns by one query, so that a text file is parsed once for all."""
    wanted = {f"{_VALUE}{place}": table[name].collect(distinct=True) for place, name in enumerate(columns)}
    wanted |= {f"{_NULL}{place}": table[name].isnull().any() for place, name in enumerate(columns)}
    seen = fetch(table.aggregate(**wanted, **{COUNT: table.count()}))
    found = {}
    for place, name in enumerate(columns):
        values = seen[f"{_VALUE}{place}"].combine_chunks().flatten()
        if seen[f"{_NULL}{place}"][0].as_py():
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        found[name] = values
    return found, int(seen[COUNT][0].as_py())


def domains(site: Site, table: Table, columns: Sequence[str]) -> tuple[dict[str, Domain], int]:
    """Return each column's distinct values, in an order that the rows' order does not touch; and the rows."""
    seen, rows = site.distinct(table, columns)
    return {name: domain_of(name, values)[0] for name, values in seen.items()}, rows


def domain_of(name: str, values: pa.Array) -> tuple[Domain, IntArray]:
    """Put a column's distinct values in their canonical order; and tell where each was."""
    try:
        order = pc.sort_indices(values)
    except pa.ArrowNotImplementedError:
        message = f"Column {name!r} holds {values.type}; it must hold single values. Turn it into text."
        raise DataError(message) from None
    values = values.take(order)
    return Domain(name, values, _texts(values)), order.to_numpy()


def _texts(values: pa.Array) -> tuple[str | None, ...]:
    if pa.types.is_string(values.type):
        return tuple(values.to_pylist())
    return tuple(map(text_of, _plain(values)))


def _plain(values: pa.Array) -> Sequence[object]:
    """Return Python values; a short float keeps its few digits."""
    if pa.types.is_float32(values.type):
        return [None if value is None else float(str(np.float32(value))) for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.strftime(values, format="%Y-%m-%d %H:%M:%S%z")
    return values.to_pylist()


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
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else str(value.normalize())
    return str(value)


def count(
    site: Site, table: Table, columns: Sequence[str], sensitive: Sequence[str], memory: int
) -> tuple[Counts, dict[str, Domain]]:
    """Group by the columns in the engine, on packed integer keys, and bring them here if they fit."""
    found, rows = domains(site, table, [*columns, *sensitive])
    there, words = coded(site, table, found)
    keyed = there.select(**words)
    grouped = keyed.group_by(list(words)).aggregate(**{COUNT: keyed.count()})
    if not fits(min(rows, prod(map(len, found.values()))), len(words), memory):
        grouped = site.kept(grouped)
        if not fits(rows_of(site, grouped), len(words), memory):
            return _far(site, grouped, found, columns, sensitive, memory), found
    if site.sorts:  # the core's own sort then finds the canonical order made
        grouped = grouped.order_by(list(reversed(words)))
    packed = site.fetch(grouped)
    if any(packed[name].null_count for name in words):
        raise changed()
    keys = np.stack([packed[name].to_numpy() for name in words])
    sizes = packed[COUNT].to_numpy()
    counts = from_joint(
        [found[name].bits for name in columns], {name: found[name].bits for name in sensitive}, keys, sizes
    )
    return counts, found


def _far(
    site: Site,
    grouped: Table,
    found: Mapping[str, Domain],
    columns: Sequence[str],
    sensitive: Sequence[str],
    memory: int,
) -> FarCounts:
    """Leave keys where they are, and ask for what is made of them."""
    from shoal.engines.key_table import KeyTable

    nulls = [grouped[name].isnull() for name in grouped.columns if name != COUNT]
    if rows_of(site, grouped.filter(reduce(or_, nulls))):
        raise changed()
    fields = layout([domain.bits for domain in found.values()])
    store = KeyTable(site, grouped, fields, [len(domain) for domain in found.values()])
    places = {name: place for place, name in enumerate(found) if name in sensitive}
    return FarCounts(store, places, memory, range(len(columns)))


def values_of(site: Site, table: Table, name: str) -> pa.Array:
    """Return the distinct values of a column."""
    values = site.fetch(table.select(name).distinct())[name]
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def rows_of(site: Site, table: Table) -> int:
    """Count the rows of a table."""
    counted = site.fetch(table.aggregate(**{COUNT: table.count()}))
    return int(counted[COUNT][0].as_py())


def look(site: Site, table: Table, columns: Sequence[str], patterns: Sequence[str]) -> dict[str, Look]:
    """Count the values of each column that occur once, and those in which each pattern is found.

    One reading tells which columns may have any: an estimate, off by a few hundredths, which have a value for
    two of three rows at least, and all patterns as one, in which something is found. Only these are counted.
    """
    schema = table.schema()
    single = [name for name in columns if _is_single(schema[name])]
    texts = [name for name in single if patterns and schema[name].is_string()]
    many, hit = _worthwhile(site, table, single, texts, "|".join(f"({pattern})" for pattern in patterns))
    alone = dict.fromkeys(single, 0) | site.lone_of(table, many)
    found = _found(site, table, hit, patterns)
    return {name: Look(alone[name], found.get(name, (0,) * len(patterns))) for name in single}


def _worthwhile(
    site: Site, table: Table, columns: Sequence[str], texts: Sequence[str], pattern: str
) -> tuple[list[str], list[str]]:
    """Name the columns that seem to have a value for most rows, and the texts in which a pattern is found."""
    about = columns if site.estimates else ()
    wanted = {f"{_VALUE}{place}": table[name].approx_nunique() for place, name in enumerate(about)}
    wanted |= {f"{_NULL}{place}": table[name].re_search(pattern).any() for place, name in enumerate(texts)}
    if not wanted:
        return list(columns), []
    (seen,) = site.fetch(table.aggregate(**wanted, **{COUNT: table.count()})).to_pylist()
    least = seen[COUNT] * 2 / 3
    many = [name for place, name in enumerate(columns) if seen.get(f"{_VALUE}{place}", least + 1) > least]
    return many, [name for place, name in enumerate(texts) if seen[f"{_NULL}{place}"]]


def _found(
    site: Site, table: Table, columns: Sequence[str], patterns: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Count the different values of each column in which each pattern is found."""
    wanted = [
        table[name].nunique(where=table[name].re_search(pattern)) for name in columns for pattern in patterns
    ]
    if not wanted:
        return {}
    named = {f"{_VALUE}{place}": one for place, one in enumerate(wanted)}
    (seen,) = site.fetch(table.aggregate(**named)).to_pylist()
    numbers = iter(seen.values())
    return {name: tuple(next(numbers) for _ in patterns) for name in columns}


def empty(site: Site, table: Table) -> int:
    """Count the rows in which every column is null, or a text of spaces alone."""
    schema = table.schema()
    nothing = [
        table[name].isnull() | (table[name].strip() == "" if schema[name].is_string() else False)
        for name in table.columns
    ]
    return rows_of(site, table.filter(nothing))


def _is_single(kind: Any) -> bool:
    """Tell whether a type is one whose values can be grouped everywhere: not a list, nor a document."""
    return bool(
        kind.is_string() or kind.is_numeric() or kind.is_temporal() or kind.is_uuid() or kind.is_binary()
    )


def changed() -> DataError:
    """Say that a table did not stay the same."""
    return DataError("The table changed while it was counted. Give one that stays as it is.")


def positions(
    site: Site, table: Table, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
) -> IntArray:
    """Find rows by their packed key; they are numbered as they are scanned, before any join."""
    numbered = table.select(*columns, **{ROW: ibis.row_number()})
    there, words = coded(site, numbered, {name: domains[name] for name in columns})
    wanted = site.hold(pa.table({f"{GONE}{word}": pa.array(own) for word, own in enumerate(keys)}))
    keyed = there.mutate(**words)
    conditions = [keyed[name] == wanted[f"{GONE}{word}"] for word, name in enumerate(words)]
    found = site.fetch(keyed.semi_join(wanted, conditions).select(ROW).order_by(ROW))
    places: IntArray = found[ROW].to_numpy()
    return places


def coded(site: Site, table: Table, found: Mapping[str, Domain]) -> tuple[Table, dict[str, IntegerValue]]:
    """Join the columns' codes, shifted to their fields, and add them up to words."""
    fields = layout([domain.bits for domain in found.values()])
    looked_up = {
        name: {f"{CODE}{place}": pa.array(np.arange(len(domain)) << field.shift)}
        for place, ((name, domain), field) in enumerate(zip(found.items(), fields, strict=True))
        if len(domain) > 1
    }
    there = joined(site, table, found, looked_up)
    return there, words_of(there, CODE, fields)


def literal(values: pa.Array, place: int = 0) -> Any:
    """Write one of some values as an expression."""
    return ibis.literal(values[place].as_py(), ibis.dtype(values.type))


def joined(
    site: Site, table: Table, found: Mapping[str, Domain], looked_up: Mapping[str, Mapping[str, pa.Array]]
) -> Table:
    """Join what is looked up for the values of some columns, by name.

    A dimension table has no null, for not every database finds nulls that are alike by a hash; what is
    looked up for a null stands in the expression.
    """
    joined: Table = table  # one chain: a subquery for each column would nest too deep
    own: dict[str, tuple[str, Any]] = {}
    for place, (name, extra) in enumerate(looked_up.items()):
        domain = found[name]
        values: pa.Array = domain.values
        here = pc.is_valid(values)  # codes behind these are of values that the table does not have
        columns = {label: array[: len(values)] for label, array in extra.items()}
        held = pa.table({f"{_VALUE}{place}": values, **columns}).filter(here)
        dimension = site.hold(held)
        joined = joined.left_join(dimension, table[name] == dimension[f"{_VALUE}{place}"])
        if values.null_count:
            null = pc.index(here, False).as_py()
            own |= {label: (name, literal(array, null)) for label, array in columns.items()}
    if not own:
        return joined
    return joined.mutate(
        **{label: joined[name].isnull().ifelse(value, joined[label]) for label, (name, value) in own.items()}
    )


def words_of(table: Table, codes: str, fields: Sequence[Field]) -> dict[str, IntegerValue]:
    """Add the columns' shifted codes up to words; a column without codes has none but 0."""
    parts: dict[int, list[Any]] = {field.word: [] for field in fields}
    for place, field in enumerate(fields):
        if f"{codes}{place}" in table.columns:
            parts[field.word].append(table[f"{codes}{place}"])
    zero = ibis.literal(0, "int64")
    return {f"{WORD}{word}": reduce(add, parts[word]) if parts[word] else zero for word in sorted(parts)}
