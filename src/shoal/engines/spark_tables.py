"""Tables of Spark's catalogue: marked, put in place of others and dropped."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from shoal.core.targets import TableEngine
from shoal.engines.names import parts_of, quoted
from shoal.engines.over_ibis import HELD, OverIbis

_PROPERTY = "shoal.mark"


class SparkTables(OverIbis, TableEngine):
    """What an engine does with the tables of a session's catalogue."""

    @property
    @abstractmethod
    def session(self) -> Any:
        """The session whose catalogue it is."""

    def has(self, name: str) -> bool:
        """Tell whether the catalogue has a table of this name."""
        with self.told():
            return bool(self.session.catalog.tableExists(table_name(name)))

    def mark(self, name: str, mark: str) -> None:
        """Write the mark into the table's properties."""
        self._do(f"ALTER TABLE {table_name(name)} SET TBLPROPERTIES ('{_PROPERTY}' = '{mark}')")

    def mark_of(self, name: str) -> str | None:
        """Read the mark from the table's properties."""
        if not self.has(name):
            return None
        with self.told():
            rows = self.session.sql(f"SHOW TBLPROPERTIES {table_name(name)}").collect()
        return next((row["value"] for row in rows if row["key"] == _PROPERTY), None)

    def beside(self, name: str, mark: str) -> str:
        """Return the name of a table that waits, in the same database."""
        return quoted((*table_parts(name)[:-1], f"{HELD}{mark}"), "`")

    def place(self, waiting: str, name: str, *, replace: bool) -> None:
        """Move the table that has the name aside, and rename: Spark has no transactions."""
        aside = _aside(waiting)
        if replace and self.has(name):
            self._rename(name, aside)
        self._rename(waiting, name)
        self.drop(aside)

    def settle(self, waiting: str, name: str) -> None:
        """Bring back the table that was moved aside, where none took its place, and remove what waits."""
        aside = _aside(waiting)
        if self.has(aside) and not self.has(name):
            self._rename(aside, name)
        self.drop(aside)
        self.drop(waiting)

    def drop(self, name: str) -> None:
        """Remove a table that may not exist."""
        self._do(f"DROP TABLE IF EXISTS {table_name(name)}")

    def _rename(self, old: str, new: str) -> None:
        self._do(f"ALTER TABLE {table_name(old)} RENAME TO {table_name(new)}")

    def _do(self, statement: str) -> None:
        with self.told():
            self.session.sql(statement)


def table_parts(name: str) -> tuple[str, ...]:
    """Split the name of a table into its parts."""
    return parts_of(name, "`", 3)


def table_name(name: str) -> str:
    """Write a name as Spark reads it."""
    return quoted(table_parts(name), "`")


def _aside(waiting: str) -> str:
    """Name the table that is replaced while it may still come back."""
    *database, own = table_parts(waiting)
    return quoted((*database, f"{own}_before"), "`")
