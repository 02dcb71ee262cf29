"""Tables and expressions as SQL, with the operations of Ibis that the shared code of the engines uses.

All column names in a query are unique, also in joins, so columns need no table prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

_INTEGERS = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
_INTEGERS |= {"INTEGER", "UINTEGER"}
_ARROW = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}
Describe = Callable[[str], dict[str, str]]  # the types of the columns of a query


def quote(name: str) -> str:
    """Return the quoted name of a table or column."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a string literal."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True)
class Type:
    """A type of the database, by its name in DuckDB."""

    name: str

    def is_string(self) -> bool:
        return self.name == "VARCHAR" or self.name.startswith("ENUM(")

    def is_integer(self) -> bool:
        return self.name in _INTEGERS

    def is_floating(self) -> bool:
        return self.name in ("FLOAT", "DOUBLE")

    def is_numeric(self) -> bool:
        return self.is_integer() or self.is_floating() or self.name.startswith("DECIMAL(")

    def is_boolean(self) -> bool:
        return self.name == "BOOLEAN"

    def is_nested(self) -> bool:
        return self.name.startswith(("STRUCT(", "MAP(", "UNION(")) or self.name.endswith("]")

    def is_date(self) -> bool:
        return self.name == "DATE"

    def is_timestamp(self) -> bool:
        return self.name.startswith("TIMESTAMP") and not self.name.endswith("]")

    def is_temporal(self) -> bool:
        return (
            self.is_date() or self.is_timestamp() or self.name in ("TIME", "TIME_NS", "TIME WITH TIME ZONE")
        )

    def is_uuid(self) -> bool:
        return self.name == "UUID"

    def is_binary(self) -> bool:
        return self.name == "BLOB"


def types_of(schema: pa.Schema) -> dict[str, Type] | None:
    """Return the types that the database gives to the columns of an arrow table, if they are known."""
    if not all(kind in _ARROW for kind in schema.types):
        return None
    return {name: Type(_ARROW[kind]) for name, kind in zip(schema.names, schema.types, strict=True)}


@dataclass(frozen=True, eq=False)
class SqlColumn:
    """An SQL expression; only a column of a table knows its type."""

    sql: str
    table: SqlTable | None = None
    label: str = ""

    def type(self) -> Type:
        if self.table is None:
            raise TypeError("Only the type of a column is known.")
        return self.table.types.get(self.label) or self.table.schema()[self.label]

    def name(self, label: str) -> SqlColumn:
        return replace(self, label=label)

    def _with(self, operator: str, other: object) -> SqlColumn:
        return SqlColumn(f"({self.sql} {operator} {_sql(other)})")

    def __eq__(self, other: object) -> SqlColumn:  # type: ignore[override]
        return Condition(self._with("=", other).sql)

    def __gt__(self, other: object) -> SqlColumn:
        return Condition(self._with(">", other).sql)

    def __and__(self, other: Any) -> SqlColumn:
        return self._with("&", other)

    def __xor__(self, other: Any) -> SqlColumn:
        return SqlColumn(f"xor({self.sql}, {_sql(other)})")

    def __add__(self, other: Any) -> SqlColumn:
        return self._with("+", other)

    def __mod__(self, other: Any) -> SqlColumn:
        return self._with("%", other)

    def __lshift__(self, other: Any) -> SqlColumn:
        return self._with("<<", other)

    def __rshift__(self, other: Any) -> SqlColumn:
        return self._with(">>", other)

    def isnull(self) -> SqlColumn:
        return Condition(f"({self.sql} IS NULL)")

    def notnull(self) -> SqlColumn:
        return Condition(f"({self.sql} IS NOT NULL)")

    def isnan(self) -> SqlColumn:
        return Condition(f"isnan({self.sql})")

    def re_search(self, pattern: str) -> SqlColumn:
        return Condition(f"regexp_matches({self.sql}, {text(pattern)}, 's')")

    def strip(self) -> SqlColumn:
        return SqlColumn(f"trim({self.sql}, {text(_BLANKS)})")

    def ifelse(self, yes: object, no: object) -> SqlColumn:
        return SqlColumn(f"CASE WHEN {self.sql} THEN {_sql(yes)} ELSE {_sql(no)} END")

    def cases(self, *pairs: tuple[object, object]) -> SqlColumn:
        cases = " ".join(f"WHEN {_sql(value)} THEN {_sql(result)}" for value, result in pairs)
        return SqlColumn(f"CASE {self.sql} {cases} END")

    def cast(self, kind: str | Type) -> SqlColumn:
        name = kind.name if isinstance(kind, Type) else _NAMES[kind]
        return SqlColumn(f"CAST({self.sql} AS {name})")

    def fill_null(self, value: object) -> SqlColumn:
        return SqlColumn(f"COALESCE({self.sql}, {_sql(value)})")

    def over(self, window: str) -> SqlColumn:
        return SqlColumn(f"{self.sql} OVER ({window})")

    def sum(self) -> SqlColumn:
        return SqlColumn(f"sum({self.sql})")

    def min(self) -> SqlColumn:
        return SqlColumn(f"min({self.sql})")

    def max(self) -> SqlColumn:
        return SqlColumn(f"max({self.sql})")

    def any(self) -> SqlColumn:
        return Condition(f"bool_or({self.sql})")

    def count(self) -> SqlColumn:
        return SqlColumn(f"count({self.sql})")

    def nunique(self, where: SqlColumn | None = None) -> SqlColumn:
        return SqlColumn(f"count(DISTINCT {self.sql}){_filter(where)}")

    def approx_nunique(self) -> SqlColumn:
        return SqlColumn(f"approx_count_distinct({self.sql})")

    def bit_and(self) -> SqlColumn:
        return SqlColumn(f"bit_and({self.sql})")

    def bit_or(self) -> SqlColumn:
        return SqlColumn(f"bit_or({self.sql})")

    def collect(self, *, distinct: bool) -> SqlColumn:
        return SqlColumn(f"list({'DISTINCT ' * distinct}{self.sql}) FILTER (WHERE {self.sql} IS NOT NULL)")


class Condition(SqlColumn):
    """An expression that is true or false."""

    def __and__(self, other: Any) -> SqlColumn:
        return Condition(self._with("AND", other).sql)

    def __or__(self, other: Any) -> SqlColumn:
        return Condition(self._with("OR", other).sql)

    def sum(self) -> SqlColumn:
        return SqlColumn(f"sum(CAST({self.sql} AS BIGINT))")


_BLANKS = " \t\n\r\v\f"
_NAMES = {"int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR"}


def _filter(where: SqlColumn | None) -> str:
    return "" if where is None else f" FILTER (WHERE {where.sql})"


def _sql(value: object) -> str:
    return value.sql if isinstance(value, SqlColumn) else literal(value).sql


def literal(value: object, kind: Any = None) -> SqlColumn:
    """Return a value as an SQL literal, cast to `kind` if that is the name of a type."""
    if value is None:
        written = "NULL"
    elif isinstance(value, bool):
        written = str(value).upper()
    elif isinstance(value, float):
        written = f"CAST({text(repr(value))} AS DOUBLE)"
    elif isinstance(value, int | Decimal):
        written = str(value)
    elif isinstance(value, datetime):
        written = f"TIMESTAMP {text(value.isoformat(' '))}"
    elif isinstance(value, date):
        written = f"DATE {text(value.isoformat())}"
    elif isinstance(value, time):
        written = f"TIME {text(value.isoformat())}"
    elif isinstance(value, bytes):
        written = "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    else:
        written = text(str(value))
    if isinstance(kind, str):
        written = f"CAST({written} AS {_NAMES[kind]})"
    return (Condition if isinstance(value, bool) else SqlColumn)(written)


def dtype(kind: pa.DataType) -> None:
    """Return None: the form of a literal determines its type."""


def null(kind: str | None = None) -> SqlColumn:
    """Return NULL, of a type if one is given."""
    return SqlColumn("NULL" if kind is None else f"CAST(NULL AS {_NAMES[kind]})")


def random() -> SqlColumn:
    """Return an expression for a random number per row."""
    return SqlColumn("random()")


def row_number() -> RowNumber:
    """Return an expression for the row number, from 0."""
    return RowNumber("(row_number() OVER () - 1)")


class RowNumber(SqlColumn):
    """The number of a row, from 0."""

    def over(self, window: str) -> SqlColumn:
        return SqlColumn(f"(row_number() OVER ({window}) - 1)")


def window(*, group_by: Sequence[SqlColumn], order_by: SqlColumn) -> str:
    """Return the definition of a window."""
    return f"PARTITION BY {', '.join(column.sql for column in group_by)} ORDER BY {order_by.sql}"


def union(first: SqlTable, *others: SqlTable) -> SqlTable:
    """Return the rows of all tables."""
    return replace(first, sql=" UNION ALL ".join(f"({table.query})" for table in (first, *others)), base="")


@dataclass(frozen=True, eq=False)
class SqlTable:
    """A table, view or query."""

    sql: str  # a query, or the quoted name of a base table
    describe: Describe
    names: tuple[str, ...]
    base: str = ""  # the name of a base table
    order: str = ""  # the ORDER BY clause of the next selection
    joins: str = ""  # the JOIN clauses
    types: Mapping[str, Type] = field(default_factory=dict)  # of the columns whose type is known

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def source(self) -> str:
        """The text after FROM."""
        start = self.sql if self.base and self.sql == quote(self.base) else f"({self.sql})"
        return start + self.joins

    @property
    def query(self) -> str:
        """The query that returns all rows."""
        if self.base or self.joins or self.order:
            return f"SELECT * FROM {self.source}{self.order}"
        return self.sql

    def schema(self) -> dict[str, Type]:
        """Return the type of each column."""
        return dict(self._described)

    @cached_property
    def _described(self) -> Mapping[str, Type]:
        if all(name in self.types for name in self.names):
            return {name: self.types[name] for name in self.names}
        return {name: Type(kind) for name, kind in self.describe(self.query).items()}

    def get_name(self) -> str:
        return self.base

    def __getitem__(self, name: str) -> SqlColumn:
        return SqlColumn(quote(name), self, name)

    def _made(self, sql: str, names: Sequence[str], computed: Collection[str] = ()) -> SqlTable:
        types = {name: self.types[name] for name in names if name in self.types and name not in computed}
        return SqlTable(sql, self.describe, tuple(names), types=types)

    def select(self, *columns: Any, **named: SqlColumn) -> SqlTable:
        """Select columns, given as names, labelled expressions, or one list of them."""
        if len(columns) == 1 and isinstance(columns[0], list | tuple):
            columns = tuple(columns[0])
        items = [(c, quote(c)) if isinstance(c, str) else (c.label, c.sql) for c in columns]
        items += [(label, column.sql) for label, column in named.items()]
        written = ", ".join(
            sql if sql == quote(label) else f"{sql} AS {quote(label)}" for label, sql in items
        )
        labels = [label for label, _ in items]
        computed = [label for label, sql in items if sql != quote(label)]
        return self._made(f"SELECT {written} FROM {self.source}{self.order}", labels, computed)

    def mutate(self, **named: SqlColumn) -> SqlTable:
        """Add columns, or replace those of the same name."""
        if not named:
            return self
        replaced = [f"{c.sql} AS {quote(label)}" for label, c in named.items() if label in self.names]
        added = [label for label in named if label not in self.names]
        star = f"* REPLACE ({', '.join(replaced)})" if replaced else "*"
        items = ", ".join([star, *[f"{named[label].sql} AS {quote(label)}" for label in added]])
        return self._made(f"SELECT {items} FROM {self.source}", [*self.names, *added], named)

    def filter(self, conditions: Any) -> SqlTable:
        written = conditions if isinstance(conditions, list | tuple) else [conditions]
        where = " AND ".join(condition.sql for condition in written)
        return self._made(f"SELECT * FROM {self.source} WHERE {where}", self.names)

    def distinct(self) -> SqlTable:
        return self._made(f"SELECT DISTINCT * FROM {self.source}", self.names)

    def limit(self, rows: int) -> SqlTable:
        return self._made(f"SELECT * FROM {self.source}{self.order} LIMIT {rows}", self.names)

    def order_by(self, keys: Any) -> SqlTable:
        """Sort by columns, nulls last."""
        keys = keys if isinstance(keys, list | tuple) else [keys]
        written = ", ".join(f"{quote(key) if isinstance(key, str) else key.sql} NULLS LAST" for key in keys)
        return replace(self, order=f" ORDER BY {written}")

    def count(self, where: SqlColumn | None = None) -> SqlColumn:
        return SqlColumn(f"count(*){_filter(where)}")

    def aggregate(self, **named: SqlColumn) -> SqlTable:
        return Grouped(self, {}).aggregate(**named)

    def group_by(self, keys: str | Sequence[str] = (), **named: SqlColumn) -> Grouped:
        keys = [keys] if isinstance(keys, str) else keys
        return Grouped(self, {key: self[key] for key in keys} | named)

    def left_join(self, other: SqlTable, on: Any) -> SqlTable:
        return self._joined("LEFT JOIN", other, on, other.names)

    def inner_join(self, other: SqlTable, on: Any) -> SqlTable:
        return self._joined("INNER JOIN", other, on, other.names)

    def semi_join(self, other: SqlTable, on: Any) -> SqlTable:
        return self._joined("SEMI JOIN", other, on, ())

    def anti_join(self, other: SqlTable, on: Any) -> SqlTable:
        return self._joined("ANTI JOIN", other, on, ())

    def _joined(self, how: str, other: SqlTable, on: Any, names: Sequence[str]) -> SqlTable:
        """Join by conditions, or by the name of a column of both tables."""
        if isinstance(on, str):
            clause, names = f"USING ({quote(on)})", [name for name in names if name != on]
        else:
            conditions = on if isinstance(on, list | tuple) else [on]
            clause = f"ON ({' AND '.join(condition.sql for condition in conditions)})"
        there = f"({other.query})" if other.joins else other.source
        joins = f"{self.joins} {how} {there} {clause}"
        types = {**other.types, **self.types}
        return replace(self, names=(*self.names, *names), joins=joins, order="", types=types)


@dataclass(frozen=True)
class Grouped:
    """A table whose rows are grouped by expressions."""

    table: SqlTable
    keys: dict[str, SqlColumn]

    def aggregate(self, **named: SqlColumn) -> SqlTable:
        items = ", ".join(f"{column.sql} AS {quote(label)}" for label, column in (self.keys | named).items())
        groups = f" GROUP BY {', '.join(map(str, range(1, len(self.keys) + 1)))}" if self.keys else ""
        names = [*self.keys, *named]
        computed = [name for name in names if name not in self.keys or self.keys[name].label != name]
        return self.table._made(f"SELECT {items} FROM {self.table.source}{groups}", names, computed)
