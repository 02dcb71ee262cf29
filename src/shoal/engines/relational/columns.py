"""Queries about single columns: their values, patterns and empty cells, and the groups of a key.

Each query parses a text file again. So one query with grouping sets counts several columns of the same type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.core.arrow import flags_of, numbers_of
from shoal.core.contracts import COMPARED_GROUPS, ColumnScan, KeyGroups
from shoal.core.counts.counts import Counts, Domain, layout
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.engines.names import quoted
from shoal.engines.relational import few_rows
from shoal.engines.relational.relations import (
    COUNT,
    FLAG,
    INTERNAL,
    Backend,
    BackendTable,
    domain_of,
    is_scalar,
    rows_of,
    table_changed,
)

_NUMBER, _VALUE, _MATCH, _KEY, _ROWS, _REPEATED, _LOW, _HIGH, _SAME = (
    INTERNAL + name for name in ("place", "value", "match", "key", "rows", "many", "low", "high", "same")
)
_MOST = 8  # columns counted by one query; their values stay in memory until they are used
Ask = Callable[[str], pa.Table]


def scan_columns(
    backend: Backend, table: BackendTable, columns: Sequence[str], patterns: Sequence[str]
) -> dict[str, ColumnScan]:
    """Count, per column, the values that occur once and the values that match each pattern.

    Few rows are scanned in memory. Otherwise, a first query selects the columns to count; the others get 0.
    Unique values are counted in columns with an estimated two or more distinct values per three rows. Matches
    are counted in columns in which any pattern matches.
    """
    schema = table.schema()
    single = [name for name in columns if is_scalar(schema[name])]
    with suppress(pa.ArrowNotImplementedError):  # a type that only the backend groups by
        rows = few_rows.fetch_few(backend, table, single) if single else None
        if rows is not None:
            return few_rows.scan(rows, single, patterns)
    texts = [name for name in single if patterns and schema[name].is_string()]
    pattern = "|".join(f"({pattern})" for pattern in patterns)
    mostly_distinct, matching, distinct = _worthwhile(backend, table, single, texts, pattern)
    unique = dict.fromkeys(single, 0) | backend.count_unique(table, mostly_distinct)
    matches = _count_matches(backend, table, matching, patterns)
    nothing = (0,) * len(patterns)
    return {name: ColumnScan(unique[name], matches.get(name, nothing), distinct.get(name)) for name in single}


def _worthwhile(
    backend: Backend, table: BackendTable, columns: Sequence[str], texts: Sequence[str], pattern: str
) -> tuple[list[str], list[str], dict[str, int]]:
    """Return the columns with distinct values for most rows, and the text columns in which a pattern matches.

    Also return the estimated number of distinct values of each column, if the backend estimates it.
    """
    estimated = columns if backend.estimates else ()
    expressions = {f"{_VALUE}{number}": table[name].approx_nunique() for number, name in enumerate(estimated)}
    expressions |= {
        f"{_MATCH}{number}": table[name].re_search(pattern).any() for number, name in enumerate(texts)
    }
    if not expressions:
        return list(columns), [], {}
    (estimates,) = backend.fetch(table.aggregate(**expressions, **{COUNT: table.count()})).to_pylist()
    threshold = estimates[COUNT] * 2 / 3
    mostly_distinct = [
        name
        for number, name in enumerate(columns)
        if estimates.get(f"{_VALUE}{number}", threshold + 1) > threshold
    ]
    distinct = {name: estimates[f"{_VALUE}{number}"] for number, name in enumerate(estimated)}
    return (
        mostly_distinct,
        [name for number, name in enumerate(texts) if estimates[f"{_MATCH}{number}"]],
        distinct,
    )


def _count_matches(
    backend: Backend, table: BackendTable, columns: Sequence[str], patterns: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Count the distinct values of each column that match each pattern."""
    expressions = [
        table[name].nunique(where=table[name].re_search(pattern)) for name in columns for pattern in patterns
    ]
    if not expressions:
        return {}
    named = {f"{_VALUE}{number}": expression for number, expression in enumerate(expressions)}
    (counts,) = backend.fetch(table.aggregate(**named)).to_pylist()
    numbers = iter(counts.values())
    return {name: tuple(next(numbers) for _ in patterns) for name in columns}


def empty(backend: Backend, table: BackendTable) -> int:
    """Count the rows in which every column is null or blank text."""
    schema = table.schema()
    nothing = [
        table[name].isnull() | (table[name].strip() == "" if schema[name].is_string() else False)
        for name in table.columns
    ]
    return rows_of(backend, table.filter(nothing))


def flag_empty(table: BackendTable, columns: Sequence[str]) -> BackendTable:
    """Add a column that is 1 in rows where all of the given columns are null or NaN, else 0."""
    schema = table.schema()
    empty = [
        table[name].isnull() | table[name].isnan() if schema[name].is_floating() else table[name].isnull()
        for name in columns
    ]
    return table.mutate(**{FLAG: reduce(and_, empty).ifelse(1, 0)})


def count_each(table: str, kinds: Mapping[str, Any], ask: Ask) -> Iterator[tuple[Counts, Domain]]:
    """Count the values of every column of a table in SQL; columns of the same type share queries."""
    names_by_type: dict[Any, list[str]] = {}
    for name, kind in kinds.items():
        names_by_type.setdefault(kind, []).append(name)
    counted_columns: dict[str, pa.Table] = {}
    records: int | None = None
    for name, kind in kinds.items():
        if name not in counted_columns:
            pending = names_by_type[kind]
            names, pending[:_MOST] = pending[:_MOST], []
            counted = ask(query(table, names))
            numbers = numbers_of(counted[_NUMBER])
            counted_columns |= {
                column: counted if len(names) == 1 else counted.filter(flags_of(numbers == number))
                for number, column in enumerate(names)
            }
        counted_values = counted_columns.pop(
            name
        )  # Python strings need more memory than Arrow's: convert one column at a time
        domain, order = domain_of(name, counted_values[_VALUE].combine_chunks())
        sizes = numbers_of(counted_values[COUNT])[order]
        if records not in (None, total := int(sizes.sum())):
            raise table_changed()
        records = total
        yield InMemoryCounts(layout([domain.bits]), np.arange(len(sizes))[np.newaxis], sizes, {}), domain


def count_unique(table: str, names: Sequence[str], ask: Ask) -> dict[str, int]:
    """Count, per column, the values that occur once, for columns of any types in one query."""
    if not names:
        return {}
    case, sets = _sets(names)
    unique_values = (
        f"SELECT {case} AS {_NUMBER}\nFROM ({table}) GROUP BY GROUPING SETS ({sets}) HAVING COUNT(*) = 1"
    )
    fetched = ask(f"SELECT {_NUMBER}, COUNT(*) AS {COUNT} FROM ({unique_values}) GROUP BY {_NUMBER}")
    counts = dict(zip(fetched[_NUMBER].to_pylist(), fetched[COUNT].to_pylist(), strict=True))
    return {name: counts.get(number, 0) for number, name in enumerate(names)}


def query(table: str, names: Sequence[str]) -> str:
    """Return a query that yields the values of all columns; `place` is the number of a value's column.

    >>> print(query("SELECT 1 AS a, 2 AS b", ["a", "b"]).replace(INTERNAL, ""))
    SELECT CASE WHEN GROUPING("a") = 0 THEN 0 WHEN GROUPING("b") = 0 THEN 1 END AS place,
    COALESCE("a", "b") AS value, COUNT(*) AS n
    FROM (SELECT 1 AS a, 2 AS b) GROUP BY GROUPING SETS (("a"), ("b"))
    """
    case, sets = _sets(names)
    values = ", ".join(quoted((name,), '"') for name in names)
    return (
        f"SELECT {case} AS {_NUMBER},\n"
        f"COALESCE({values}) AS {_VALUE}, COUNT(*) AS {COUNT}\n"
        f"FROM ({table}) GROUP BY GROUPING SETS ({sets})"
    )


def _sets(names: Sequence[str]) -> tuple[str, str]:
    """Return an expression for the number of the column that a row counts, and a grouping set per column."""
    columns = [quoted((name,), '"') for name in names]
    cases = " ".join(f"WHEN GROUPING({column}) = 0 THEN {number}" for number, column in enumerate(columns))
    return f"CASE {cases} END", ", ".join(f"({column})" for column in columns)


def key_groups(
    backend: Backend, table: BackendTable, keys: Sequence[str], columns: Sequence[str]
) -> dict[str, KeyGroups]:
    """Count the groups of each key and, if some have several rows, those in which columns are constant.

    Few rows are grouped in memory. Otherwise one query counts the groups of all keys, and a second one
    compares columns, only in the first groups of several rows.
    """
    schema = table.schema()
    keys = [key for key in keys if _is_comparable(schema[key])]
    columns = [name for name in columns if _is_comparable(schema[name])]
    if not keys:
        return {}
    few = few_rows.fetch_few(backend, table, [*keys, *columns])
    if few is not None:
        return few_rows.key_groups(few, keys, columns)
    sizes = {key: _sizes(table, key) for key in keys}
    totals = _rows(backend, {key: _numbers(table_of_sizes) for key, table_of_sizes in sizes.items()})
    repeated = [key for key in keys if totals[key][_REPEATED] and columns]
    same = _rows(backend, {key: _compared(table, key, sizes[key], columns) for key in repeated})
    return {key: _groups_of(totals[key], same.get(key), key, columns) for key in keys}


def _groups_of(
    totals: Mapping[str, int], same: Mapping[str, int] | None, key: str, columns: Sequence[str]
) -> KeyGroups:
    constant = {} if same is None else {name: same[f"{_SAME}{number}"] for number, name in enumerate(columns)}
    constant.pop(key, None)
    return KeyGroups(
        groups=totals[COUNT],
        rows=totals[_ROWS] or 0,  # null if there are none
        smallest=totals[_LOW] or 0,
        largest=totals[_HIGH] or 0,
        repeated=totals[_REPEATED],
        compared=same[COUNT] if same else 0,
        constant=constant,
    )


def _rows(backend: Backend, counted: Mapping[str, BackendTable]) -> dict[str, dict[str, int]]:
    """Fetch one row for each key, with one query."""
    if not counted:
        return {}
    named = [
        counts.mutate(**{_NUMBER: backend.expressions.literal(number, "int64")})
        for number, counts in enumerate(counted.values())
    ]
    rows: pa.Table = backend.fetch(backend.expressions.union(*named) if len(named) > 1 else named[0])
    keys = list(counted)
    return {keys[row[_NUMBER]]: row for row in rows.to_pylist()}


def _sizes(table: BackendTable, key: str) -> BackendTable:
    present = table.filter(table[key].notnull())
    return present.group_by(**{_KEY: present[key]}).aggregate(**{COUNT: present.count()})


def _numbers(sizes: BackendTable) -> BackendTable:
    """Count the groups, their rows and the groups of several rows, and find the smallest and largest size."""
    rows = sizes[COUNT]
    expressions = {COUNT: sizes.count(), _REPEATED: sizes.count(where=rows > 1)}
    expressions |= {_ROWS: rows.sum().cast("int64"), _LOW: rows.min(), _HIGH: rows.max()}
    return sizes.aggregate(**expressions)


def _compared(table: BackendTable, key: str, sizes: BackendTable, columns: Sequence[str]) -> BackendTable:
    """Count the compared groups of several rows, and those in which each column is constant."""
    repeated_groups = sizes.filter(sizes[COUNT] > 1).order_by(_KEY).limit(COMPARED_GROUPS).select(_KEY)
    rows = table.semi_join(repeated_groups, table[key] == repeated_groups[_KEY])
    ends: dict[str, Any] = {}
    for number, name in enumerate(columns):
        column = rows[name].cast("int32") if rows[name].type().is_boolean() else rows[name]
        ends |= {f"{_LOW}{number}": column.min(), f"{_HIGH}{number}": column.max()}
    grouped = rows.group_by(**{_KEY: rows[key]}).aggregate(**ends)
    same = {}
    for number in range(len(columns)):
        low, high = grouped[f"{_LOW}{number}"], grouped[f"{_HIGH}{number}"]
        same[f"{_SAME}{number}"] = grouped.count(where=low.isnull() | (low == high))
    return grouped.aggregate(**{COUNT: grouped.count()}, **same)


def _is_comparable(kind: Any) -> bool:
    """Return whether every backend can group by a type, and compute its minimum and maximum."""
    temporal = kind.is_date() or kind.is_timestamp()
    return bool(kind.is_string() or kind.is_numeric() or kind.is_boolean() or temporal)
