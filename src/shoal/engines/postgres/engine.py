"""PostgreSQL through Ibis: reads a table or view and writes a new table, in one transaction.

Rows stay in the database. Only the distinct values of columns, dimension tables, and packed keys with
their counts are transferred. Keys and counts use the server's binary copy format.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import ibis
import psycopg
import pyarrow as pa
from ibis.expr.operations import DatabaseTable
from ibis.expr.types import Table
from psycopg import sql

from shoal.core.targets import TableEngine, Target
from shoal.engines.frames import check_names
from shoal.engines.ibis.engine import IbisEngine
from shoal.engines.names import parts_of, quoted, refuse_file
from shoal.engines.postgres.connection import (
    PLAIN,
    arrow_of,
    connect,
    in_text,
    is_plain,
    packed,
    translate_errors,
    trimmed,
    type_of,
    unpacked,
)
from shoal.engines.relational.engine import TEMPORARY, temporary_name
from shoal.errors import DataError


@dataclass(frozen=True)
class Postgres(IbisEngine, TableEngine):
    """Works in a PostgreSQL server; libpq's settings (PGHOST, ...) define the server and the credentials."""

    requires = "psycopg"
    ibis_backend = "postgres"
    caches_rows: ClassVar[bool] = True

    @cached_property
    def connection(self) -> Any:
        """The connection; a run is one transaction, on one snapshot of the database."""
        connection = connect(self.__dict__.get("_address", ""))
        self.__dict__["_own_connection"] = connection
        weakref.finalize(self, connection.close)
        with self.translate_errors():
            return ibis.postgres.from_connection(connection)

    @classmethod
    def at(cls, address: str, memory_limit: str | None = None) -> Self:
        """Connect to an address when a table is opened."""
        engine = cls(memory_limit=memory_limit)
        engine.__dict__["_address"] = address
        return engine

    @property
    def _server(self) -> Any:
        return self.connection.con

    def interrupt(self) -> None:
        if "connection" in self.__dict__:
            with suppress(psycopg.Error):
                self._server.cancel_safe(timeout=1)

    @contextmanager
    def translate_errors(self, path: Path | None = None) -> Iterator[None]:
        with translate_errors():
            yield

    @contextmanager
    def inspecting(self, table: Table) -> Iterator[None]:
        with self.translate_errors(), self._server.transaction():
            yield

    def named(self, source: str | Path) -> Table:
        """Open a table or view: NAME or SCHEMA.NAME, with unusual names in double quotes."""
        refuse_file(str(source), "postgres")
        parts = _parts(str(source))
        name = parts[-1]
        with self.translate_errors():
            schema = self._schema_of(parts)
            if schema is None:
                raise DataError(
                    f"PostgreSQL has no table or view {str(source)!r} that this user can see. Look at its "
                    "name, its schema (as clinic.people) and the user's rights."
                )
            table = self.connection.table(name, database=(self._server.info.dbname, schema))
            kinds = self._server.execute(
                "SELECT attname, format_type(atttypid, atttypmod), coalesce(collisdeterministic, true) "
                "FROM pg_attribute LEFT JOIN pg_collation c ON c.oid = attcollation "
                "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                (_quoted((schema, name)),),
            ).fetchall()
        check_names(table.columns)
        if nondeterministic := [column for column, _, exact in kinds if not exact]:
            raise DataError(
                f"Column {nondeterministic[0]!r} has a collation in which different texts are equal. Give a "
                'view in which it has a different one, such as COLLATE "C".'
            )
        as_text = [column for column, kind, _ in kinds if not PLAIN.fullmatch(kind)]
        # Equal numbers, such as 1.0 and 1.00, must have the same text.
        trimmed_columns = {column: trimmed(table[column]) for column, kind, _ in kinds if kind == "numeric"}
        return in_text(table.mutate(**trimmed_columns) if trimmed_columns else table, as_text)

    def _schema_of(self, parts: tuple[str, ...]) -> str | None:
        """Return the schema that contains a table or view, or None."""
        row = self._row(
            "SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE pg_class.oid = to_regclass(%s) AND relkind IN ('r', 'v', 'm', 'p', 'f')",
            _quoted(parts),
        )
        return None if row is None else str(row[0])

    def _row(self, query: str, *values: Any) -> Any:
        """Return the first row of a query's result, or None."""
        with self.translate_errors():
            return self._server.execute(query, values).fetchone()

    def _run(self, statement: str, *parts: sql.Composable) -> None:
        with self.translate_errors():
            self._server.execute(sql.SQL(statement).format(*parts))

    def open(self, source: Any) -> Table:
        table = super().open(source)
        if not isinstance(source, Table):
            return table
        as_text = [name for name, kind in table.schema().items() if kind.is_string() or not is_plain(kind)]
        return in_text(table, as_text)

    @cached_property
    def _temporaries(self) -> list[str]:
        return []

    def _temporary(self, definition: str, *parts: sql.Composable) -> sql.Identifier:
        """Create a temporary table, visible only to this connection and dropped with it."""
        self._temporaries.append(temporary_name())
        name = sql.Identifier(self._temporaries[-1])
        self._run(f"CREATE TEMP TABLE {{}} {definition}", name, *parts)
        return name

    @property
    def _until(self) -> sql.SQL:
        return sql.SQL("ON COMMIT DROP" if "_own_connection" in self.__dict__ else "")

    def _analyzed(self, name: sql.Identifier) -> Table:
        self._run("ANALYZE {}", name)
        return self.connection.table(self._temporaries[-1])

    def upload(self, table: pa.Table) -> Table:
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(type_of(field.type)))
            for field in table.schema
        )
        is_binary = all(pa.types.is_int64(field.type) for field in table.schema) and not any(
            column.null_count for column in table.columns
        )
        form = sql.SQL("WITH (FORMAT BINARY)" if is_binary else "")
        with self.translate_errors():
            name = self._temporary("({}) {}", columns, self._until)
            with (
                self._server.cursor() as cursor,
                cursor.copy(sql.SQL("COPY {} FROM STDIN {}").format(name, form)) as copy,
            ):
                if is_binary:
                    copy.write(packed(table))
                else:
                    for row in zip(*[column.to_pylist() for column in table.columns], strict=True):
                        copy.write_row(row)
            return self._analyzed(name)

    def fetch(self, table: Table) -> pa.Table:
        """Run a query; whole numbers are transferred in binary form, and decimals keep all their digits."""
        with self.translate_errors():
            if all(kind.is_int64() for kind in table.schema().types):
                numbers = unpacked(self._copied(table), table.columns)
                if numbers is not None:
                    return numbers
            cursor = self._server.execute(sql.SQL(self._sql(table)))
            try:
                return arrow_of(cursor.fetchall(), table.schema().to_pyarrow())
            except (psycopg.DataError, pa.ArrowException, OverflowError):
                subject = (
                    f"Column {table.columns[0]!r} holds" if len(table.columns) == 1 else "Some columns hold"
                )
                raise DataError(
                    f"{subject} values that cannot be read here, such as an infinite date or a NaN. "
                    "Give a view that converts them to text."
                ) from None

    def _copied(self, table: Table) -> bytes:
        # The server types integer literals as 32-bit numbers.
        columns = sql.SQL(", ").join(
            sql.SQL("{}::bigint").format(sql.Identifier(name)) for name in table.columns
        )
        query = sql.SQL("COPY (SELECT {} FROM ({}) AS counted) TO STDOUT WITH (FORMAT BINARY)")
        with (
            self._server.cursor() as cursor,
            cursor.copy(query.format(columns, sql.SQL(self._sql(table)))) as copy,
        ):
            return b"".join(copy)

    def cache_table(self, table: Table) -> Table:
        with self.translate_errors():
            return self._analyzed(self._temporary("{} AS {}", self._until, sql.SQL(self._sql(table))))

    def discard(self, table: Table) -> None:
        with suppress(psycopg.Error):  # the rollback after a failed query removes the table
            self._server.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(table.get_name())))
            self._temporaries.remove(table.get_name())

    def _sql(self, table: Table) -> str:
        return str(self.connection.compile(table))

    def target(self, output: str | Path) -> Target:
        refuse_file(str(output), "postgres")
        _parts(str(output))
        return Target(str(output), "table")

    def write(self, table: Table, target: Target) -> None:
        with self.translate_errors():
            self._run("CREATE TABLE {} AS {}", _identifier(target.name), sql.SQL(self._sql(table)))

    def same(self, source: Any, target: Target) -> bool:
        if target.kind != "table":
            return False
        source_names = [_quoted(_parts(str(source)))] if isinstance(source, str | Path) else _read_by(source)
        row = self._row(
            "SELECT to_regclass(%s) = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)",
            _quoted(_parts(target.name)),
            source_names,
        )
        return bool(row and row[0])

    def has(self, name: str) -> bool:
        row = self._row("SELECT to_regclass(%s)", _quoted(_parts(name)))
        return row is not None and row[0] is not None

    def mark(self, name: str, mark: str) -> None:
        self._run("COMMENT ON TABLE {} IS {}", _identifier(name), sql.Literal(f"shoal {mark}"))

    def mark_of(self, name: str) -> str | None:
        """Return the mark of a table, with a new connection if the old one was lost."""
        self._drop_lost_connection()
        self._end_failed()
        row = self._row("SELECT obj_description(to_regclass(%s), 'pg_class')", _quoted(_parts(name)))
        match = re.fullmatch(r"shoal (\w+)", row[0]) if row and row[0] else None
        return match[1] if match else None

    def staging_name(self, name: str, mark: str) -> str:
        """Return the name of the staging table, which other users cannot see until the transaction ends."""
        return _quoted((*_parts(name)[:-1], f"{TEMPORARY}{mark}"))

    def publish(self, staging: str, name: str, *, replace: bool) -> None:
        """Rename the staging table to its final name and commit, atomically."""
        with self.translate_errors():
            with self._server.transaction():
                if replace:
                    self._run("DROP TABLE IF EXISTS {}", _identifier(name))
                new = sql.Identifier(_parts(name)[-1])
                self._run("ALTER TABLE {} RENAME TO {}", _identifier(staging), new)
            self._server.commit()

    def recover(self, staging: str, name: str) -> None:
        if self._drop_lost_connection():
            return
        self._end_failed()
        if self.has(staging):  # a user without the right to drop tables has no staging table
            self.drop(staging)

    def undo(self, name: str) -> None:
        self._drop_lost_connection()
        self.drop(name)
        with self.translate_errors():
            self._server.commit()

    def drop(self, name: str) -> None:
        """Drop a table; if the connection was lost, the server has already rolled back the staging table."""
        if self._drop_lost_connection():
            return
        self._end_failed()
        self._run("DROP TABLE IF EXISTS {}", _identifier(name))

    def _end_failed(self) -> None:
        """Roll back a transaction in which a statement failed, because it accepts no other statements."""
        with self.translate_errors():
            if self._server.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                self._server.rollback()

    def _drop_lost_connection(self) -> bool:
        """Close a connection that was lost or does not respond, so that the next query opens a new one."""
        connection = self.__dict__.get("_own_connection")
        status = psycopg.pq.TransactionStatus
        is_lost = connection is not None and connection.info.transaction_status in (
            status.UNKNOWN,
            status.ACTIVE,
        )
        if is_lost:
            self.close()
        return is_lost

    def close(self) -> None:
        """Roll back and close the connection; if it belongs to the user, only drop the temporary tables."""
        super().close()
        connection = self.__dict__.pop("_own_connection", None)
        if connection is not None:
            with suppress(psycopg.Error):
                connection.rollback()  # waits until it is done
            with suppress(psycopg.Error):
                connection.close()
            self.__dict__.pop("connection", None)
            return
        if "connection" in self.__dict__ and not self.has_lazy_result:
            with suppress(psycopg.Error):
                while self._temporaries:
                    name = sql.Identifier(self._temporaries.pop())
                    self._server.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))


def _parts(name: str) -> tuple[str, ...]:
    return parts_of(name, '"', 2)


def _read_by(source: Any) -> list[str]:
    """Return the names of the tables that an Ibis expression reads."""
    if not isinstance(source, Table):
        return []
    return [
        _quoted((table.namespace.database, table.name) if table.namespace.database else (table.name,))
        for table in source.op().find(DatabaseTable)
    ]


def _quoted(parts: tuple[str, ...]) -> str:
    return quoted(parts, '"')


def _identifier(name: str) -> sql.Identifier:
    return sql.Identifier(*_parts(name))
