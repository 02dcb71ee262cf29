"""Connections to tables whose rows stay in a database, and the files of their releases."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.engines.names import parts_of
from shoal.engines.relational.engine import RelationalEngine
from shoal.errors import DataError
from shoal.workflow.session import RemoteTable


def connect(table: RemoteTable, memory_limit: str | None) -> tuple[Any, Engine | None, Callable[[], object]]:
    """Connect. Return the table, its engine (None for an Ibis table) and a function that disconnects."""
    if table.in_postgres:
        from shoal.engines.postgres.engine import Postgres

        return table.table, Postgres.at(table.address, memory_limit), lambda: None
    ibis_table = _ibis_table(table)
    # If a session stays open, its tables keep this connection until they are no longer used.
    return ibis_table, None, weakref.finalize(ibis_table, ibis_table.get_backend().disconnect)


def _ibis_table(table: RemoteTable) -> Any:
    import ibis

    options = {"read_only": True} if table.address.lower().startswith("duckdb:") else {}
    *schema, name = parts_of(table.table, '"', 2)
    try:
        return ibis.connect(table.address, **options).table(name, database=schema[0] if schema else None)
    except Exception:  # every driver has its own error types, and their messages quote the address
        raise DataError(
            f"Cannot open the source {table.name!r}. Its address, its table and the rights of the database's "
            "user are in the file of sources."
        ) from None


@dataclass(frozen=True)
class DatabaseReleaseFiles(DuckDb):
    """Reads and writes the files of a release whose input is in a database."""

    remote: Engine | None = None

    def write(self, table: Any, target: Target) -> None:
        """Write a recoded table of the database; only the rows of the release leave the database."""
        assert isinstance(self.remote, RelationalEngine)
        super().write(self.upload(self.remote.fetch(table)), target)
