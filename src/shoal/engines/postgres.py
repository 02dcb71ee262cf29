"""PostgreSQL through Ibis: a table or view in, a new table out, in one transaction.

Rows stay in the database. What crosses the wire are the distinct values of columns, dimension tables, and
packed keys with their counts, which come as the server's own binary copies.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ibis
import psycopg
import pyarrow as pa
from ibis.expr.operations import DatabaseTable
from ibis.expr.types import Table
from psycopg import sql

from shoal.core.contracts import Look
from shoal.core.targets import TableEngine, Target
from shoal.engines.binary_copy import packed, unpacked
from shoal.engines.frames import check_names
from shoal.engines.names import parts_of, quoted, refuse_file
from shoal.engines.over_ibis import HELD, OverIbis, held_name
from shoal.engines.postgres_errors import told
from shoal.engines.postgres_types import PLAIN, arrow_of, in_text, is_plain, trimmed, type_of
from shoal.errors import DataError


@dataclass(frozen=True)
class Postgres(OverIbis, TableEngine):
    """Works in a PostgreSQL server; where it is and who may enter, libpq's own settings say (PGHOST, ...)."""

    @cached_property
    def connection(self) -> Any:
        """The connection; all that a run does is one transaction, on one state of the database."""
        try:
            connection = psycopg.connect(fallback_application_name="shoal")
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            # A search may take longer than a server lets a transaction rest.
            connection.execute("SET idle_in_transaction_session_timeout = 0")
        except psycopg.Error:
            message = (
                "Cannot connect to PostgreSQL. Set PGHOST, PGPORT, PGDATABASE and PGUSER (or PGSERVICE), and "
                "keep the password in ~/.pgpass or PGPASSWORD."
            )
            raise DataError(message) from None
        self.__dict__["_own"] = connection
        weakref.finalize(self, connection.close)
        with self.told():
            return ibis.postgres.from_connection(connection)

    @property
    def _server(self) -> Any:
        return self.connection.con

    @contextmanager
    def told(self, path: Path | None = None) -> Iterator[None]:
        """Turn the database's errors into ours: its texts may quote rows."""
        with told():
            yield

    def look(self, table: Table, columns: Sequence[str], patterns: Sequence[str] = ()) -> dict[str, Look]:
        """Look at columns; where that fails, the run's transaction goes on."""
        with self.told(), self._server.transaction():
            return super().look(table, columns, patterns)

    def empty(self, table: Table) -> int:
        """Count empty rows; where that fails, the run's transaction goes on."""
        with self.told(), self._server.transaction():
            return super().empty(table)

    def named(self, source: str | Path) -> Table:
        """Open a table or view: NAME or SCHEMA.NAME, in double quotes where a name is unusual."""
        refuse_file(str(source), "postgres")
        parts = _parts(str(source))
        name = parts[-1]
        with self.told():
            found = self._found(parts)
            if found is None:
                message = (
                    f"PostgreSQL has no table or view {str(source)!r} that this user can see. Look at its "
                    "name, its schema (as clinic.people) and the user's rights."
                )
                raise DataError(message)
            table = self.connection.table(name, database=(self._server.info.dbname, found))
            kinds = self._server.execute(
                "SELECT attname, format_type(atttypid, atttypmod), coalesce(collisdeterministic, true) "
                "FROM pg_attribute LEFT JOIN pg_collation c ON c.oid = attcollation "
                "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                (_quoted((found, name)),),
            ).fetchall()
        check_names(table.columns)
        if loose := [column for column, _, exact in kinds if not exact]:
            message = (
                f"Column {loose[0]!r} has a collation to which different texts are the same. Give a view in "
                'which it has another, such as COLLATE "C".'
            )
            raise DataError(message)
        odd = [column for column, kind, _ in kinds if not PLAIN.fullmatch(kind)]
        # What is the same number must look the same: 1.0 as 1.00.
        shorter = {column: trimmed(table[column]) for column, kind, _ in kinds if kind == "numeric"}
        return in_text(table.mutate(**shorter) if shorter else table, odd)

    def _found(self, parts: tuple[str, ...]) -> str | None:
        """Return the schema that holds a table or view."""
        row = self._server.execute(
            "SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE pg_class.oid = to_regclass(%s) AND relkind IN ('r', 'v', 'm', 'p', 'f')",
            (_quoted(parts),),
        ).fetchone()
        return None if row is None else str(row[0])

    def open(self, source: Any) -> Table:
        """Open a table or view by its name, or take a frame or an Ibis expression."""
        table = super().open(source)
        if not isinstance(source, Table):
            return table
        odd = [name for name, kind in table.schema().items() if kind.is_string() or not is_plain(kind)]
        return in_text(table, odd)

    @cached_property
    def _held(self) -> list[str]:
        return []

    def _temporary(self, definition: Callable[[sql.SQL], sql.Composed]) -> sql.Identifier:
        """Create a temporary table, which nobody else sees and which goes with the connection."""
        self._held.append(held_name())
        name = sql.Identifier(self._held[-1])
        until = sql.SQL("ON COMMIT DROP" if "_own" in self.__dict__ else "")
        self._server.execute(sql.SQL("CREATE TEMP TABLE {} ").format(name) + definition(until))
        return name

    def _known(self, held: sql.Identifier) -> Table:
        self._server.execute(sql.SQL("ANALYZE {}").format(held))
        return self.connection.table(self._held[-1])

    def hold(self, table: pa.Table) -> Table:
        """Copy a table into a temporary one."""
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(type_of(field.type)))
            for field in table.schema
        )
        whole = all(pa.types.is_int64(field.type) for field in table.schema) and not any(
            column.null_count for column in table.columns
        )
        form = sql.SQL("WITH (FORMAT BINARY)" if whole else "")
        with self.told():
            held = self._temporary(lambda until: sql.SQL("({}) {}").format(columns, until))
            with (
                self._server.cursor() as cursor,
                cursor.copy(sql.SQL("COPY {} FROM STDIN {}").format(held, form)) as copy,
            ):
                if whole:
                    copy.write(packed(table))
                else:
                    for row in zip(*[column.to_pylist() for column in table.columns], strict=True):
                        copy.write_row(row)
            return self._known(held)

    def fetch(self, table: Table) -> pa.Table:
        """Run a query; whole numbers come as the server holds them, and decimals with all their digits."""
        with self.told():
            if all(kind.is_int64() for kind in table.schema().types):
                whole = unpacked(self._copied(table), table.columns)
                if whole is not None:
                    return whole
            cursor = self._server.execute(sql.SQL(self._sql(table)))
            try:
                return arrow_of(cursor.fetchall(), table.schema().to_pyarrow())
            except (psycopg.DataError, pa.ArrowException, OverflowError):
                what = (
                    f"Column {table.columns[0]!r} holds" if len(table.columns) == 1 else "Some columns hold"
                )
                message = (
                    f"{what} values that cannot be read here, such as an infinite date or a number that is "
                    "none. Give a view that turns them into text."
                )
                raise DataError(message) from None

    def _copied(self, table: Table) -> bytes:
        # A literal is a shorter number to the server.
        columns = sql.SQL(", ").join(
            sql.SQL("{}::bigint").format(sql.Identifier(name)) for name in table.columns
        )
        query = sql.SQL("COPY (SELECT {} FROM ({}) AS counted) TO STDOUT WITH (FORMAT BINARY)")
        with (
            self._server.cursor() as cursor,
            cursor.copy(query.format(columns, sql.SQL(self._sql(table)))) as copy,
        ):
            return b"".join(copy)

    def kept(self, table: Table) -> Table:
        """Work a table out once, into a temporary table."""
        with self.told():
            query = sql.SQL(self._sql(table))
            return self._known(self._temporary(lambda until: sql.SQL("{} AS {}").format(until, query)))

    def _sql(self, table: Table) -> str:
        return str(self.connection.compile(table))

    def target(self, output: str | Path) -> Target:
        """Take the name of a table: NAME or SCHEMA.NAME."""
        refuse_file(str(output), "postgres")
        _parts(str(output))
        return Target(str(output), "table")

    def write(self, table: Table, target: Target) -> None:
        """Create a table."""
        with self.told():
            name = _identifier(target.name)
            self._server.execute(sql.SQL("CREATE TABLE {} AS {}").format(name, sql.SQL(self._sql(table))))

    def same(self, source: Any, target: Target) -> bool:
        """Tell whether an output is the table that is read."""
        if target.kind != "table":
            return False
        read = [_quoted(_parts(str(source)))] if isinstance(source, str | Path) else _read_by(source)
        output = _quoted(_parts(target.name))
        with self.told():
            row = self._server.execute(
                "SELECT to_regclass(%s) = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)",
                (output, read),
            ).fetchone()
        return bool(row and row[0])

    def has(self, name: str) -> bool:
        """Tell whether a table or view of this name exists."""
        with self.told():
            row = self._server.execute("SELECT to_regclass(%s)", (_quoted(_parts(name)),)).fetchone()
        return row is not None and row[0] is not None

    def mark(self, name: str, mark: str) -> None:
        """Write the mark into the table's comment."""
        with self.told():
            self._server.execute(
                sql.SQL("COMMENT ON TABLE {} IS {}").format(_identifier(name), sql.Literal(f"shoal {mark}"))
            )

    def mark_of(self, name: str) -> str | None:
        """Read the mark from the table's comment."""
        with self.told():
            row = self._server.execute(
                "SELECT obj_description(to_regclass(%s), 'pg_class')", (_quoted(_parts(name)),)
            ).fetchone()
        found = re.fullmatch(r"shoal (\w+)", row[0]) if row and row[0] else None
        return found[1] if found else None

    def beside(self, name: str, mark: str) -> str:
        """Return the name of a table that waits, which nobody else sees before the transaction ends."""
        return _quoted((*_parts(name)[:-1], f"{HELD}{mark}"))

    def place(self, waiting: str, name: str, *, replace: bool) -> None:
        """Put a table in place and end the transaction: both or neither."""
        with self.told():
            with self._server.transaction():
                if replace:
                    self._server.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_identifier(name)))
                self._server.execute(
                    sql.SQL("ALTER TABLE {} RENAME TO {}").format(
                        _identifier(waiting), sql.Identifier(_parts(name)[-1])
                    )
                )
            self._server.commit()

    def drop(self, name: str) -> None:
        """Remove a table; one that waits goes with the transaction that made it."""
        if self._gone():
            return
        with self.told():
            if self._server.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                self._server.rollback()
            self._server.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(_identifier(name)))

    def _gone(self) -> bool:
        """Forget a connection that was lost or is stuck, so that the next question finds a new one."""
        own = self.__dict__.get("_own")
        status = psycopg.pq.TransactionStatus
        gone = own is not None and own.info.transaction_status in (status.UNKNOWN, status.ACTIVE)
        if gone:
            self.close()
        return gone

    def close(self) -> None:
        """Leave the database, where it was entered for this run: what is not committed is gone."""
        own = self.__dict__.pop("_own", None)
        if own is not None:
            with suppress(psycopg.Error):
                own.rollback()  # and wait until it is done
            with suppress(psycopg.Error):
                own.close()
            self.__dict__.pop("connection", None)
            return
        if "connection" in self.__dict__ and not self.lent:
            with suppress(psycopg.Error):
                while self._held:
                    self._server.execute(
                        sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(self._held.pop()))
                    )


def _parts(name: str) -> tuple[str, ...]:
    return parts_of(name, '"', 2)


def _read_by(source: Any) -> list[str]:
    """Name the tables that an Ibis expression reads."""
    if not isinstance(source, Table):
        return []
    return [
        _quoted((found.namespace.database, found.name) if found.namespace.database else (found.name,))
        for found in source.op().find(DatabaseTable)
    ]


def _quoted(parts: tuple[str, ...]) -> str:
    """Write a name as the server reads it."""
    return quoted(parts, '"')


def _identifier(name: str) -> sql.Identifier:
    return sql.Identifier(*_parts(name))
