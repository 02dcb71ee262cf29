"""Pages of rows, read with SQL; the size of each row's class is counted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.core.rows import Browse, RowPage, RowRequest, TableRow
from shoal.engines.duckdb.query import SqlTable, quote, text
from shoal.engines.relational.relations import INTERNAL

_LONGEST = 200  # maximum characters per value
_NUMBER, _ALIKE = f"{INTERNAL}number", f"{INTERNAL}alike"


def browser(
    table: SqlTable,
    columns: Sequence[str],
    classes: Sequence[str],
    cache: Callable[[SqlTable], SqlTable],
    ask: Callable[[str], pa.Table],
) -> Browse:
    """Return a function that reads pages; `cache` stores the rows with their class sizes."""
    alike = f"count(*) OVER (PARTITION BY {', '.join(map(quote, classes))})" if classes else "NULL::BIGINT"
    numbered = f"SELECT row_number() OVER () AS {_NUMBER}, * FROM {table.source}"
    sql = f"SELECT *, {alike} AS {_ALIKE} FROM ({numbered})"
    stored = cache(SqlTable(sql, table.describe, (_NUMBER, *table.columns, _ALIKE)))

    def page(request: RowRequest) -> RowPage:
        where = _conditions(request)
        shown = ", ".join(f"left({quote(name)}::VARCHAR, {_LONGEST})" for name in columns)
        rows = ask(
            f"SELECT {_NUMBER}, {_ALIKE}, {shown} FROM {stored.source}{where} ORDER BY {_order(request)} "
            f"LIMIT {request.count:d} OFFSET {request.start:d}"
        )
        total = ask(f"SELECT count(*) AS n FROM {stored.source}{where}")["n"][0].as_py()
        values = zip(*[column.to_pylist() for column in rows.columns], strict=True)
        page_rows = tuple(TableRow(number, size, tuple(cells)) for number, size, *cells in values)
        return RowPage(tuple(columns), page_rows, int(total))

    return page


def _conditions(request: RowRequest) -> str:
    parts = [
        f"contains(lower({quote(name)}::VARCHAR), lower({text(part)}))"
        for name, part in request.contains.items()
    ]
    if request.below:
        parts.append(f"{_ALIKE} < {request.below:d}")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _order(request: RowRequest) -> str:
    """Return the sort keys; numbers stored as text are sorted by value."""
    keys = []
    for name, descending in request.sort:
        direction = "DESC" if descending else "ASC"
        keys += [
            f"TRY_CAST({quote(name)}::VARCHAR AS DOUBLE) {direction} NULLS LAST",
            f"{quote(name)} {direction} NULLS LAST",
        ]
    return ", ".join([*keys, _NUMBER])
