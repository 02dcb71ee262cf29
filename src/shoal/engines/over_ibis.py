"""What all engines that speak through Ibis have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from ibis.expr.types import Table

from shoal.core.contracts import Engine, Look
from shoal.core.counts import Counts, Domain
from shoal.core.memory import limit_of
from shoal.core.recoding import Recoding
from shoal.engines import relations
from shoal.engines.frames import arrow_of, check_names, like_frame
from shoal.engines.names import refuse_address
from shoal.engines.recode import recode
from shoal.engines.relations import Site
from shoal.errors import DataError

HELD = "shoal_"  # begins the names of tables that hold what we put into a backend


@dataclass(frozen=True)
class OverIbis(Engine, Site):
    """Counts and recodes where the rows are; what crosses over are dimension tables, keys and counts."""

    memory_limit: str | None = field(default=None, kw_only=True)
    """Memory for all that grows with the table, as `4GB`; without it, half of the machine's."""

    def __post_init__(self) -> None:
        """Refuse a memory limit that is not a size."""
        limit_of(self.memory_limit)

    @property
    def memory(self) -> int:
        """The bytes that a run may take."""
        return limit_of(self.memory_limit)

    @cached_property
    @abstractmethod
    def connection(self) -> Any:
        """The Ibis backend that all tables of this engine live in."""

    @classmethod
    def on(cls, connection: Any, memory_limit: str | None = None) -> Self:
        """Work on a backend that is connected."""
        engine = cls(memory_limit=memory_limit)
        engine.__dict__["connection"] = connection
        return engine

    @property
    def lent(self) -> bool:
        """Whether a table was given away that is worked out later, from what was put into the backend."""
        return bool(self.__dict__.get("_lent"))

    @contextmanager
    def told(self, path: Path | None = None) -> Iterator[None]:
        """Turn the backend's errors into ours: its texts may quote rows."""
        yield

    def open(self, source: Any) -> Table:
        """Open a path or the name of a table, or take a frame or an Ibis expression."""
        if isinstance(source, Table):
            check_names(source.columns)
            return source
        if isinstance(source, str | Path):
            refuse_address(str(source))
            return self.named(source)
        arrow = arrow_of(source)
        with self.told():
            return self.hold(arrow)

    @abstractmethod
    def named(self, source: str | Path) -> Table:
        """Open a path, or the name of a table."""

    def path_of(self, table: Table) -> Path | None:
        """Return the file behind a table, to name it in errors."""
        return None

    def columns(self, table: Table) -> tuple[str, ...]:
        """Name the table's columns."""
        return tuple(table.columns)

    def count(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        """Count combinations inside the backend."""
        with self.told(self.path_of(table)):
            return relations.count(self, table, columns, sensitive, self.memory)

    def look(self, table: Table, columns: Sequence[str], patterns: Sequence[str] = ()) -> dict[str, Look]:
        """Look at columns, inside the backend."""
        with self.told(self.path_of(table)):
            return relations.look(self, table, columns, patterns)

    def empty(self, table: Table) -> int:
        """Count the rows that hold nothing, inside the backend."""
        with self.told(self.path_of(table)):
            return relations.empty(self, table)

    def recode(
        self,
        table: Table,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        *,
        keep: Sequence[str],
        blank: Sequence[str] | None,
    ) -> Table:
        """Recode by joins, lazily."""
        with self.told():
            return recode(self, table, recoding, domains, keep, blank)

    def materialize(self, table: Table, like: Any, as_is: Sequence[str]) -> Any:
        """Return a table of the same kind as another: pandas, polars, pyarrow or Ibis."""
        if isinstance(like, Table):
            self.__dict__["_lent"] = True
            return table
        with self.told():
            return like_frame(self.fetch(table), like, as_is)


def held_name() -> str:
    """Return a new name for a table that we put into a backend."""
    return f"{HELD}{uuid4().hex}"


def ending_of(path: Path, known: Sequence[str], read_only: Collection[str] = ()) -> str:
    """Return the ending that tells a file's format; some can be read and not be written."""
    refuse_address(str(path))
    for ending in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return ending
    what = f"Unknown format of {path.name!r}"
    if path.name.lower().endswith(tuple(read_only)):
        what = f"Cannot write {path.name!r}: {path.suffix.lower()} files can only be read"
    message = f"{what}. Use one of {', '.join(known)}."
    if not read_only and path.is_file():
        message += " If it is a text of rows, let its name end in .csv."
    if path.is_dir():
        message = f"{str(path)!r} is a folder. Name a file that ends in one of {', '.join(known)}."
    raise DataError(message)


def check_file(path: Path) -> None:
    """Refuse a path at which there is nothing to read."""
    try:
        there = path.exists()
    except OSError as error:
        message = f"Cannot read {str(path)!r}: {error.strerror}."
        raise DataError(message) from None
    if not there:
        message = f"No such file: {str(path)!r}. Look at its name and at the folder."
        raise DataError(message)
    if not path.is_file():
        message = f"{str(path)!r} is not a file. Name one."
        raise DataError(message)
    if path.stat().st_size == 0:
        message = f"{str(path)!r} is empty. Give a table with a line of column names."
        raise DataError(message)
