"""Counting as relational expressions: distinct values, packed keys, joins by value and row positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from functools import reduce
from math import prod
from operator import add
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.arrays import IntArray
from shoal.core.arrow import column_of, numbers_of
from shoal.core.counts.counts import Counts, Domain, Field, layout
from shoal.core.counts.in_memory import from_joint
from shoal.core.memory import fits
from shoal.errors import DataError
from shoal.wording import quote

BackendTable = Any  # a table of Ibis, or of shoal.engines.duckdb.query, which has the same operations
IntegerValue = Any
INTERNAL = "__shoal_"  # prefix of internal columns; tables must not have names with it
COUNT, WORD, CODE, ROW, GONE, FLAG, _VALUE, _NULL = (
    INTERNAL + name for name in ("n", "w", "c", "row", "gone", "flag", "v", "null")
)
POSITION = INTERNAL + "position"  # the position of each row in the frame that it was read from


_MOST_CASES = 32  # up to this number of values, a CASE expression is as fast as a join
_MOST_PARTS = 16  # maximum number of tables that one query joins by row number


class Backend(ABC):
    """The operations that this code requires from a backend."""

    # Whether the backend sorts groups in parallel, faster than NumPy.
    sorts: ClassVar[bool] = False
    # Whether the backend has NaN values, which count as missing.
    knows_nan: bool = True
    # Whether the backend can estimate the numbers of distinct values of many columns in one cheap scan.
    estimates: ClassVar[bool] = False
    # Whether the backend can cache the rows of a table, until `discard` removes them.
    caches_rows: ClassVar[bool] = False
    # Maximum number of columns that a query looks up: planning time can grow with the square of the joins.
    most_joins: ClassVar[int | None] = None

    @property
    @abstractmethod
    def expressions(self) -> Any:
        """The module with expressions that need no column, as in Ibis: `literal`, `null`, `random`."""

    @abstractmethod
    def upload(self, table: pa.Table) -> BackendTable:
        """Upload a small table, so that the backend can join it."""

    @abstractmethod
    def fetch(self, table: BackendTable) -> pa.Table:
        """Fetch a result: distinct values, or keys with their counts, but not rows."""

    @abstractmethod
    def cache_table(self, table: BackendTable) -> BackendTable:
        """Materialize a table in the backend until the backend is closed."""

    def row_count_if_few(self, table: BackendTable) -> int | None:
        """Return the number of rows if they are few enough to fetch all values, else None."""
        return None

    def discard(self, table: BackendTable) -> None:  # noqa: B027 - by default, the connection drops it
        """Remove a table that `cache_table` returned."""

    @abstractmethod
    def translate_errors(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Translate the errors of the backend, whose messages may quote rows, to ours."""

    def bits(self, words: IntegerValue) -> tuple[Any, Any]:
        """Return the bitwise AND and OR of the words of a group."""
        return words.bit_and(), words.bit_or()

    def distinct(self, table: BackendTable, columns: Sequence[str]) -> tuple[dict[str, pa.Array], int]:
        """Return the distinct values of columns, including null if it occurs, and the number of rows."""
        return {name: values_of(self, table, name) for name in columns}, rows_of(self, table)

    def count_unique(self, table: BackendTable, columns: Sequence[str]) -> dict[str, int]:
        """Count the values of each column that occur once."""
        sizes = {name: table.group_by(name).aggregate(**{COUNT: table.count()}) for name in columns}
        return {name: rows_of(self, counted.filter(counted[COUNT] == 1)) for name, counted in sizes.items()}


def distinct_at_once(
    table: BackendTable, columns: Sequence[str], fetch: Callable[[BackendTable], pa.Table]
) -> tuple[dict[str, pa.Array], int]:
    """Return the distinct values of columns with one query, so that a text file is parsed only once."""
    wanted = {f"{_VALUE}{number}": table[name].collect(distinct=True) for number, name in enumerate(columns)}
    wanted |= {f"{_NULL}{number}": table[name].isnull().any() for number, name in enumerate(columns)}
    seen = fetch(table.aggregate(**wanted, **{COUNT: table.count()}))
    distinct = {}
    for number, name in enumerate(columns):
        values = seen[f"{_VALUE}{number}"].combine_chunks().flatten()
        if seen[f"{_NULL}{number}"][0].as_py():
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        distinct[name] = values
    return distinct, int(seen[COUNT][0].as_py())


def domain_of(name: str, values: pa.Array) -> tuple[Domain, IntArray]:
    """Sort a column's distinct values into their canonical order, and return the original index of each."""
    try:
        order = pc.sort_indices(values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        kind = str(values.type).partition("<")[0]  # the names of fields may be values of the data
        raise DataError(
            f"Column {quote(name)} holds values of type {kind}; it must hold single values. Turn it "
            "into text."
        ) from None
    values = values.take(order)
    try:
        texts = texts_of(values)
    except (OverflowError, ValueError):  # Python's dates have four digits for the year
        raise DataError(
            f"Column {quote(name)} holds a {values.type} that is not in the years 1 to 9999. Correct it, or "
            "turn the column into text."
        ) from None
    return Domain(name, values, texts), numbers_of(order)


def texts_of(values: pa.Array) -> tuple[str | None, ...]:
    """Return values as the texts that hierarchies use."""
    if pa.types.is_string(values.type):
        return tuple(values.to_pylist())
    return tuple(map(text_of, _python_values(values)))


def _python_values(values: pa.Array) -> Sequence[object]:
    """Return Python values; a 32-bit float keeps its short decimal form."""
    if pa.types.is_float32(values.type):
        return [None if value is None else float(str(np.float32(value))) for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.strftime(values, format="%Y-%m-%d %H:%M:%S%z")
    try:
        return values.to_pylist()
    except OverflowError:  # before the year 1 or after 9999
        return values.cast(pa.string()).to_pylist()


def text_of(value: object) -> str | None:
    """Return a value as the text that hierarchies use: 45 for 45.0, true for True, 2025-01-31 for a date.

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
    backend: Backend, table: BackendTable, columns: Sequence[str], sensitive: Sequence[str], memory: int
) -> tuple[Counts, dict[str, Domain]]:
    """Group by packed integer keys in the engine, and fetch the groups if they fit in memory."""
    names = [*columns, *sensitive]
    table = without_nan(backend, table, names)
    if len(names) <= (backend.most_joins or 0):
        few = backend.row_count_if_few(table)
        if few is not None and fits(few, len(names), memory):
            with suppress(pa.ArrowNotImplementedError):  # a type that domain_of refuses
                return _count_values(backend, table, columns, sensitive)
    if backend.most_joins is not None and len(names) > backend.most_joins:
        table = _numbered(backend, table, names)
    distinct, rows = backend.distinct(table, names)
    domains = {name: domain_of(name, values)[0] for name, values in distinct.items()}
    coded_table, words = coded(backend, table, domains)
    keyed = coded_table.select(**words)
    grouped = keyed.group_by(list(words)).aggregate(**{COUNT: keyed.count()})
    if not fits(min(rows, prod(map(len, domains.values()))), len(words), memory):
        from shoal.core.counts.remote import RemoteCounts
        from shoal.engines.relational.key_table import KeyTable

        grouped = backend.cache_table(grouped)
        fields = layout([domain.bits for domain in domains.values()])
        store = KeyTable(backend, grouped, fields, [len(domain) for domain in domains.values()])
        if not fits(store.combinations, len(words), memory):
            fields_of = {name: number for number, name in enumerate(domains) if name in sensitive}
            return RemoteCounts(store, fields_of, memory, range(len(columns))), domains
    if backend.sorts:  # so that the core need not sort them
        grouped = grouped.order_by(list(reversed(words)))
    packed = backend.fetch(grouped)
    if any(packed[name].null_count for name in words):
        raise table_changed()
    counts = from_joint(
        [domains[name].bits for name in columns],
        {name: domains[name].bits for name in sensitive},
        np.stack([numbers_of(packed[name]) for name in words]),
        numbers_of(packed[COUNT]),
    )
    return counts, domains


def _count_values(
    backend: Backend, table: BackendTable, columns: Sequence[str], sensitive: Sequence[str]
) -> tuple[Counts, dict[str, Domain]]:
    """Group by the values, and encode them after fetching: a single query, for tables with few rows."""
    names = [*columns, *sensitive]
    grouped = without_negative_zero(table, names).group_by(names).aggregate(**{COUNT: table.count()})
    fetched = backend.fetch(grouped)
    domains, codes = {}, []
    for name in names:
        coded_values = fetched[name].combine_chunks().dictionary_encode(null_encoding="encode")
        domains[name], order = domain_of(name, coded_values.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        codes.append(ranks[numbers_of(coded_values.indices)])
    fields = layout([domain.bits for domain in domains.values()])
    keys = np.zeros((fields[-1].word + 1, len(fetched)), np.int64)
    for field, column in zip(fields, codes, strict=True):
        keys[field.word] |= column << field.shift
    counts = from_joint(
        [domains[name].bits for name in columns],
        {name: domains[name].bits for name in sensitive},
        keys,
        numbers_of(fetched[COUNT]),
    )
    return counts, domains


def without_nan(backend: Backend, table: BackendTable, columns: Sequence[str]) -> BackendTable:
    """Replace NaN by null in some columns: both are missing values and count as equal."""
    schema = table.schema()
    floating = [name for name in columns if schema[name].is_floating()]
    if not floating or not backend.knows_nan:
        return table
    null = backend.expressions.null()
    return table.mutate(**{name: table[name].isnan().ifelse(null, table[name]) for name in floating})


def without_negative_zero(table: BackendTable, columns: Sequence[str]) -> BackendTable:
    """Replace -0.0 by 0.0: the two are equal in the backend, but not in Arrow."""
    kinds = table.schema()
    floating = [name for name in columns if kinds[name].is_floating()]
    return table.mutate(**{name: (table[name] + 0.0).cast(kinds[name]) for name in floating})


def values_of(backend: Backend, table: BackendTable, name: str) -> pa.Array:
    """Return the distinct values of a column."""
    return backend.fetch(table.select(name).distinct())[name].combine_chunks()


def rows_of(backend: Backend, table: BackendTable) -> int:
    """Count the rows of a table."""
    counted = backend.fetch(table.aggregate(**{COUNT: table.count()}))
    return int(counted[COUNT][0].as_py())


def is_scalar(kind: Any) -> bool:
    """Return whether all backends can group by a type: by scalars, not by lists or documents."""
    return bool(
        kind.is_string() or kind.is_numeric() or kind.is_temporal() or kind.is_uuid() or kind.is_binary()
    )


def table_changed() -> DataError:
    """Return the error for a table that changed while it was read."""
    return DataError("The table changed while it was counted. Give a table that does not change.")


def positions(
    backend: Backend,
    table: BackendTable,
    columns: Sequence[str],
    domains: Mapping[str, Domain],
    keys: IntArray,
) -> IntArray:
    """Return the numbers of the rows with these packed keys; rows are numbered before any join."""
    numbered = _with_row_numbers(backend, table, columns)
    numbered = without_nan(backend, numbered, columns)
    if backend.most_joins is not None and len(columns) > backend.most_joins:
        numbered = backend.cache_table(numbered)
    coded_table, words = coded(backend, numbered, {name: domains[name] for name in columns})
    wanted = backend.upload(
        pa.table({f"{GONE}{word}": column_of(words_of_key) for word, words_of_key in enumerate(keys)})
    )
    keyed = coded_table.mutate(**words)
    conditions = [keyed[name] == wanted[f"{GONE}{word}"] for word, name in enumerate(words)]
    rows = backend.fetch(keyed.semi_join(wanted, conditions).select(ROW).order_by(ROW))
    numbers: IntArray = numbers_of(rows[ROW])
    return numbers


def coded(
    backend: Backend, table: BackendTable, column_domains: Mapping[str, Domain]
) -> tuple[BackendTable, dict[str, IntegerValue]]:
    """Join the columns' codes, shifted to their fields, and sum them into words."""
    fields = layout([domain.bits for domain in column_domains.values()])
    looked_up = {
        name: {f"{CODE}{number}": column_of(np.arange(len(domain)) << field.shift)}
        for number, ((name, domain), field) in enumerate(zip(column_domains.items(), fields, strict=True))
        if len(domain) > 1
    }
    few: list[str] = []
    if backend.most_joins is not None and len(looked_up) > backend.most_joins:
        few = [name for name in looked_up if _has_few(column_domains[name].values)]
        if len(looked_up) - len(few) > backend.most_joins:
            return _coded_in_parts(backend, table, column_domains, looked_up, fields)
    table = _with_cases(backend, table, looked_up, column_domains, few)
    others = {name: extra for name, extra in looked_up.items() if name not in few}
    coded_table = joined(backend, table, column_domains, others)
    return coded_table, words_of(backend, coded_table, CODE, fields)


def _has_few(values: Any) -> bool:
    kind = values.type
    plain = pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return bool(plain and len(values) <= _MOST_CASES)


def _with_cases(
    backend: Backend,
    table: BackendTable,
    looked_up: Mapping[str, Mapping[str, pa.Array]],
    column_domains: Mapping[str, Domain],
    names: Sequence[str],
) -> BackendTable:
    """Look up the codes of columns with few values by an expression instead of a join."""
    looked = {}
    for name in names:
        values: pa.Array = column_domains[name].values
        for label, codes in looked_up[name].items():
            array = by_value(column_domains[name], codes)
            pairs = [
                (literal(backend, values, at), literal(backend, array, at))
                for at in range(len(values))
                if values[at].is_valid
            ]
            code: Any = table[name].cases(*pairs) if pairs else backend.expressions.null("int64")
            if values.null_count:
                null = _index_of_null(values)
                code = table[name].isnull().ifelse(literal(backend, array, null), code)
            looked[label] = code
    return table.mutate(**looked) if looked else table


def _with_row_numbers(backend: Backend, table: BackendTable, columns: Sequence[str]) -> BackendTable:
    return table.select(*columns, **{ROW: backend.expressions.row_number()})


def _numbered(backend: Backend, table: BackendTable, columns: Sequence[str]) -> BackendTable:
    """Materialize a wide table with row numbers, so that it can be read some columns at a time."""
    return backend.cache_table(_with_row_numbers(backend, table, columns))


def _coded_in_parts(
    backend: Backend,
    table: BackendTable,
    column_domains: Mapping[str, Domain],
    looked_up: Mapping[str, Mapping[str, pa.Array]],
    fields: Sequence[Field],
) -> tuple[BackendTable, dict[str, IntegerValue]]:
    """Like `coded`, for a table with numbered rows: word by word, joined by row number."""
    names = list(column_domains)
    parts = []
    for word in range(fields[-1].word + 1):
        numbers = [number for number, field in enumerate(fields) if field.word == word]
        narrow = table.select(ROW, *(names[number] for number in numbers))
        wanted = {names[p]: looked_up[names[p]] for p in numbers if names[p] in looked_up}
        coded_table = joined(backend, narrow, column_domains, wanted)
        expression = words_of(backend, coded_table, CODE, fields)[f"{WORD}{word}"]
        parts.append(backend.cache_table(coded_table.select(ROW, **{f"{WORD}{word}": expression})))
    while len(parts) > 1:
        parts = [
            _join_by_row_number(backend, parts[at : at + _MOST_PARTS])
            for at in range(0, len(parts), _MOST_PARTS)
        ]
    words = parts[0]
    return words, {name: words[name] for name in words.columns if name != ROW}


def _join_by_row_number(backend: Backend, parts: Sequence[BackendTable]) -> BackendTable:
    """Join tables that have the same rows."""
    first, *others = parts
    whole: BackendTable = first
    for other in others:
        whole = whole.inner_join(other, ROW)
    return backend.cache_table(whole) if others else first


def literal(backend: Backend, values: pa.Array, index: int = 0) -> Any:
    """Return one of the values as a literal expression."""
    return backend.expressions.literal(values[index].as_py(), backend.expressions.dtype(values.type))


def _index_of_null(values: pa.Array) -> int:
    return int(numbers_of(pc.indices_nonzero(pc.is_null(values)))[0])


def by_value(domain: Domain, array: pa.Array) -> pa.Array:
    """Convert an array with an element per code to one with an element per value of the table.

    Codes of values that the table does not have are left out.
    """
    if domain.codes is None:
        return array[: len(domain.values)]
    return array.take(column_of(domain.codes[: len(domain.values)]))


def joined(
    backend: Backend,
    table: BackendTable,
    column_domains: Mapping[str, Domain],
    looked_up: Mapping[str, Mapping[str, pa.Array]],
) -> BackendTable:
    """Join columns that are looked up by the values of some columns of the table.

    Dimension tables contain no nulls, because some databases do not join nulls by hash. The entry for
    a null is part of the expression instead.
    """
    joined: BackendTable = table  # one chain of joins: a subquery per column would be nested too deeply
    for_null: dict[str, tuple[str, Any]] = {}
    for number, (name, extra) in enumerate(looked_up.items()):
        domain = column_domains[name]
        values: pa.Array = domain.values
        valid = pc.is_valid(values)
        columns = {label: by_value(domain, array) for label, array in extra.items()}
        rows = pa.table({f"{_VALUE}{number}": values, **columns}).filter(valid)
        dimension = backend.upload(rows)
        joined = joined.left_join(dimension, table[name] == dimension[f"{_VALUE}{number}"])
        if values.null_count:
            null = _index_of_null(values)
            for_null |= {label: (name, literal(backend, array, null)) for label, array in columns.items()}
    if not for_null:
        return joined
    return joined.mutate(
        **{
            label: joined[name].isnull().ifelse(value, joined[label])
            for label, (name, value) in for_null.items()
        }
    )


def words_of(
    backend: Backend, table: BackendTable, codes: str, fields: Sequence[Field]
) -> dict[str, IntegerValue]:
    """Sum the columns' shifted codes into words; a column without codes has only code 0."""
    parts: dict[int, list[Any]] = {field.word: [] for field in fields}
    for number, field in enumerate(fields):
        if f"{codes}{number}" in table.columns:
            parts[field.word].append(table[f"{codes}{number}"])
    zero = backend.expressions.literal(0, "int64")
    return {f"{WORD}{word}": reduce(add, parts[word]) if parts[word] else zero for word in sorted(parts)}
