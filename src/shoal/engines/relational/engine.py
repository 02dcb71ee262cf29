"""The base class of all engines that count and recode with queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.agreement import AgreementQuestions, ColumnAgreement
from shoal.core.arrow import column_of
from shoal.core.contracts import ColumnScan, Engine, KeyGroups, ReleaseColumns
from shoal.core.counts.counts import Counts, Domain
from shoal.core.memory import limit_of
from shoal.core.recoding.recoding import Recoding
from shoal.engines.frames import Frame, check_names, read_frame
from shoal.engines.names import refuse_address
from shoal.engines.relational import relations
from shoal.engines.relational.columns import empty, flag_empty, key_groups, scan_columns
from shoal.engines.relational.recode import TableRecoding
from shoal.engines.relational.relations import FLAG, POSITION, Backend, BackendTable
from shoal.errors import DataError

TEMPORARY = "shoal_"  # prefix of the tables that we create in a backend


@dataclass(frozen=True)
class RelationalEngine(Engine, Backend):
    """Counts and recodes in the backend; only dimension tables, keys and counts are transferred."""

    memory_limit: str | None = field(default=None, kw_only=True)
    """Memory for data that grows with the table, such as `4GB`; the default is half of the machine's."""

    def __post_init__(self) -> None:
        limit_of(self.memory_limit)

    @property
    def memory(self) -> int:
        return limit_of(self.memory_limit)

    @property
    def has_lazy_result(self) -> bool:
        """Whether a result was returned that is computed later from tables in the backend."""
        return bool(self.__dict__.get("_has_lazy_result"))

    @abstractmethod
    def is_table(self, source: Any) -> bool:
        """Return whether an object is already a table of the backend."""

    @abstractmethod
    def name_of(self, table: BackendTable) -> str:
        """Return the name of a table in the backend; "" for a query."""

    def open(self, source: Any) -> BackendTable:
        if self.is_table(source):
            check_names(source.columns)
            return source
        if isinstance(source, str | Path):
            refuse_address(str(source))
            return self.named(source)
        read = read_frame(source)
        with self.translate_errors():
            table = self.upload(read.arrow)
        self._frames[self.name_of(table)] = read
        return table

    @abstractmethod
    def named(self, source: str | Path) -> BackendTable:
        """Open a table by its path or name."""

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        """The opened frames, by the names of their tables in the backend."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for read in self._frames.values() for note in read.notes))

    def notes_on(self, table: BackendTable) -> tuple[str, ...]:
        read = self._frame_of(table)
        return () if read is None else read.notes

    def durations(self, table: BackendTable) -> tuple[str, ...]:
        read = self._frame_of(table)
        return () if read is None else read.durations

    def close(self) -> None:
        self._frames.clear()

    def number_rows(self, table: BackendTable) -> BackendTable:
        read = self._frame_of(table)
        if read is None:
            return table
        positions = column_of(np.arange(len(read.arrow)))
        with self.translate_errors():
            return self.upload(read.arrow.append_column(POSITION, positions))

    def _frame_of(self, table: BackendTable) -> Frame | None:
        return self._frames.get(self.name_of(table))

    def path_of(self, table: BackendTable) -> Path | None:
        """Return the file of a table, for error messages."""
        return None

    @contextmanager
    def inspecting(self, table: BackendTable) -> Iterator[None]:
        """Run queries; after a failure, the engine can run others."""
        with self.translate_errors(self.path_of(table)):
            yield

    def columns(self, table: BackendTable) -> tuple[str, ...]:
        return tuple(name for name in table.columns if name != POSITION)

    def count(
        self, table: BackendTable, columns: Sequence[str], sensitive: Sequence[str] = ()
    ) -> tuple[Counts, dict[str, Domain]]:
        with self.translate_errors(self.path_of(table)):
            schema = table.schema()
            for name in (*columns, *sensitive):
                if name in schema and schema[name].is_nested():
                    raise DataError(
                        f"Column {name!r} holds nested values, such as lists or structs, which cannot be "
                        "counted. Turn them into text, or give the column the role other."
                    )
            return relations.count(self, table, columns, sensitive, self.memory)

    def scan_columns(
        self, table: BackendTable, columns: Sequence[str], patterns: Sequence[str] = ()
    ) -> dict[str, ColumnScan]:
        with self.inspecting(table):
            return scan_columns(self, table, columns, patterns)

    def key_groups(
        self, table: BackendTable, keys: Sequence[str], columns: Sequence[str]
    ) -> dict[str, KeyGroups]:
        with self.inspecting(table):
            return key_groups(self, table, keys, columns)

    def empty(self, table: BackendTable) -> int:
        with self.inspecting(table):
            return empty(self, table)

    def flag_empty(self, table: BackendTable, columns: Sequence[str]) -> tuple[BackendTable, str]:
        return flag_empty(table, columns), FLAG

    def recode(
        self,
        table: BackendTable,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        *,
        keep: Sequence[str],
        blank: Sequence[str] | None,
    ) -> BackendTable:
        with self.translate_errors():
            return TableRecoding(self, table, recoding, domains, blank).recode(keep)

    def agreement(
        self,
        table: BackendTable,
        recoding: Recoding,
        domains: Mapping[str, Domain],
        questions: AgreementQuestions,
        *,
        unchanged: Sequence[str],
        blank: Sequence[str] | None,
        unit: str | None,
    ) -> ColumnAgreement:
        from shoal.engines.relational.agreement import group_unchanged

        with self.translate_errors(self.path_of(table)):
            recoded = TableRecoding(self, table, recoding, domains, blank)
            return group_unchanged(recoded, questions, unchanged, unit)

    def materialize(
        self, recoded: BackendTable, source: Any, opened: BackendTable, columns: ReleaseColumns
    ) -> tuple[Any, tuple[str, ...]]:
        if self.is_table(source):
            self.__dict__["_has_lazy_result"] = True
            return recoded, ()
        read = self._frame_of(opened)
        with self.translate_errors():
            rows = self.fetch(recoded)
            if read is None:
                return rows, ()
            if POSITION not in rows.column_names:  # the table lists values, not records
                (name,) = columns.unchanged
                rows = rows.append_column(POSITION, self._positions_of(opened, name, rows[name]))
            from shoal.engines.unchanged import release_frame

            return release_frame(read, rows, columns)

    def _positions_of(self, opened: BackendTable, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the first position of each value of a column in the opened frame."""
        table = relations.without_nan(self, self.number_rows(opened), [name])
        table = relations.without_negative_zero(table, [name])
        first = self.fetch(table.group_by(name).aggregate(**{POSITION: table[POSITION].min()}))
        values = values.cast(first[name].type)
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))
        return first[POSITION].take(pc.index_in(values, first[name]))


def temporary_name() -> str:
    """Return a new name for a table in a backend."""
    return f"{TEMPORARY}{uuid4().hex}"
