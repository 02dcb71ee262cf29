"""Any other Ibis backend: counted and recoded as far as it can group, join and sort."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from ibis.common.exceptions import OperationNotDefinedError, UnsupportedOperationError
from ibis.expr.types import Table

from shoal.core.targets import Target
from shoal.engines.over_ibis import OverIbis, held_name
from shoal.errors import DataError, ShoalError, UsageError


@dataclass(frozen=True)
class Other(OverIbis):
    """Works on an Ibis table of a backend that has no engine of its own here."""

    @cached_property
    def connection(self) -> Any:
        """The backend of the table that was given."""
        message = "Give an Ibis table: this engine works in its backend."
        raise UsageError(message)

    @property
    def _name(self) -> str:
        return str(self.connection.name)

    @contextmanager
    def told(self, path: Path | None = None) -> Iterator[None]:
        """Say which operation a backend lacks, and nothing of what else it says: its texts may quote rows."""
        try:
            yield
        except (OperationNotDefinedError, UnsupportedOperationError, NotImplementedError) as error:
            named = re.search(r"operations\.\w+\.(\w+)", str(error))
            lacking = named[1] if named else (str(error) or "an operation").splitlines()[0][:200]
            message = f"The Ibis backend {self._name!r} does not support what this needs: {lacking}."
            raise DataError(message) from None
        except ShoalError:
            raise
        except Exception:  # each backend's driver has errors of its own
            message = (
                f"The Ibis backend {self._name!r} refused a query. Look whether the table is there and may "
                "be read, and whether its connection still stands."
            )
            raise DataError(message) from None

    def named(self, source: str | Path) -> Table:
        """Refuse a name: only a table tells its backend."""
        message = f"The Ibis backend {self._name!r} reads no files here. Give an Ibis table of it."
        raise UsageError(message)

    def hold(self, table: pa.Table) -> Table:
        """Let Ibis hand a table to the backend with each query."""
        return ibis.memtable(table)

    def fetch(self, table: Table) -> pa.Table:
        """Run a query."""
        with self.told():
            return self.connection.to_pyarrow(table)

    def kept(self, table: Table) -> Table:
        """Work a table out once, into a temporary table."""
        with self.told():
            return self.connection.create_table(held_name(), table, temp=True)

    def target(self, output: str | Path) -> Target:
        """Refuse: what comes back is an Ibis table, to be written by its backend."""
        message = (
            f"An output file cannot be written from the Ibis backend {self._name!r}. Leave out the output "
            "and write the table of the release with Ibis."
        )
        raise UsageError(message)

    def write(self, table: Table, target: Target) -> None:
        """Refuse, as `target` does."""
        self.target(target.name)
