"""The base of all engines that use Ibis, for backends that can group, join, sort and make random numbers.

To support another backend, write a subclass with a `connection`, and register it in `shoal.engines`.
With `ibis_backend`, the subclass also works on Ibis tables of that backend.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import ibis
import pyarrow as pa
from ibis.common.exceptions import OperationNotDefinedError, UnsupportedOperationError
from ibis.expr.operations import IsNan
from ibis.expr.types import Table

from shoal.core.targets import Target
from shoal.engines.frames import check_names
from shoal.engines.relational.engine import RelationalEngine, temporary_name
from shoal.errors import DataError, ShoalError, UsageError


@dataclass(frozen=True)
class IbisEngine(RelationalEngine):
    """Counts and recodes in an Ibis backend."""

    @cached_property
    @abstractmethod
    def connection(self) -> Any:
        """The Ibis backend of all tables of this engine."""

    @property
    def expressions(self) -> Any:
        return ibis

    def is_table(self, source: Any) -> bool:
        return isinstance(source, Table)

    def name_of(self, table: Table) -> str:
        return str(getattr(table.op(), "name", ""))

    @classmethod
    def on(cls, connection: Any, memory_limit: str | None = None) -> Self:
        """Use an existing connection."""
        engine = cls(memory_limit=memory_limit)
        engine.__dict__["connection"] = connection
        return engine

    @cached_property
    def knows_nan(self) -> bool:  # type: ignore[override]
        return bool(self.connection.has_operation(IsNan))

    @property
    def _name(self) -> str:
        return str(self.connection.name)

    @contextmanager
    def translate_errors(self, path: Path | None = None) -> Iterator[None]:
        try:
            yield
        except (OperationNotDefinedError, UnsupportedOperationError, NotImplementedError) as error:
            match = re.search(r"operations\.\w+\.(\w+)", str(error))
            operation = match[1] if match else (str(error) or "an operation").splitlines()[0][:200]
            raise DataError(
                f"The Ibis backend {self._name!r} does not support a required operation: {operation}."
            ) from None
        except ShoalError:
            raise
        except Exception:  # every driver has its own error types
            raise DataError(
                f"The Ibis backend {self._name!r} refused a query. Check that the table exists and may be "
                "read, and that the connection is open."
            ) from None

    def named(self, source: str | Path) -> Table:
        """Open a table by its name."""
        with self.translate_errors():
            table = self.connection.table(str(source))
        check_names(table.columns)
        return table

    def upload(self, table: pa.Table) -> Table:
        return ibis.memtable(table)

    def fetch(self, table: Table) -> pa.Table:
        with self.translate_errors():
            return self.connection.to_pyarrow(table)

    def cache_table(self, table: Table) -> Table:
        with self.translate_errors():
            return self.connection.create_table(temporary_name(), table, temp=True)

    def target(self, output: str | Path) -> Target:
        raise UsageError(
            f"An output file cannot be written from the Ibis backend {self._name!r}. Leave out the output "
            "and write the table of the release with Ibis."
        )

    def write(self, table: Table, target: Target) -> None:
        self.target(target.name)


@dataclass(frozen=True)
class IbisTableEngine(IbisEngine):
    """Works on Ibis tables of a backend for which no engine is registered."""

    @cached_property
    def connection(self) -> Any:
        raise UsageError("This engine needs an Ibis table, because it works in the backend of that table.")

    def named(self, source: str | Path) -> Table:
        raise UsageError(f"The Ibis backend {self._name!r} cannot read this file. Give an Ibis table.")
