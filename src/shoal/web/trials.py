"""Hierarchies tried on the columns of a table; the one chosen and the one tried last are not tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.errors import HierarchyError, ShoalError
from shoal.inspection import Inspection, Preview

Rows = Sequence[Sequence[str]]  # of a hierarchy that is a file
_MOST_VALUES = 20  # of those that do not fit


@dataclass(frozen=True)
class Trial:
    """A hierarchy tried on a column's values: how they climb, or why they cannot."""

    preview: Preview | None
    problem: str | None = None
    values: tuple[str, ...] = ()  # those that do not fit: the custodian's own, for their screen alone


@dataclass(frozen=True)
class _Tried:
    spec: str  # as Python writes it: there 1 is not true
    rows: Rows
    values: int
    trial: Trial

    def is_of(self, spec: Any, rows: Rows, values: int) -> bool:
        return self.rows is rows and self.values == values and self.spec == repr(spec)


class Trials:
    """What was tried on one table."""

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection
        self._chosen: dict[str, _Tried] = {}
        self._last: dict[str, _Tried] = {}

    def trial(self, column: str, spec: Any, rows: Rows = (), values: int = 8) -> Trial:
        """Try a hierarchy."""
        return self._tried(column, spec, rows, values).trial

    def chosen(self, column: str, spec: Any, rows: Rows = ()) -> Trial:
        """Try the hierarchy that is chosen, and remember it until another is."""
        found = self._tried(column, spec, rows, 8)
        self._chosen[column] = found
        return found.trial

    def _tried(self, column: str, spec: Any, rows: Rows, values: int) -> _Tried:
        for known in (self._chosen.get(column), self._last.get(column)):
            if known is not None and known.is_of(spec, rows, values):
                return known
        found = _Tried(repr(spec), rows, values, _trial(self.inspection, column, spec, rows, values))
        self._last[column] = found
        return found


def _trial(inspection: Inspection, column: str, spec: Any, rows: Rows, values: int) -> Trial:
    try:
        return Trial(inspection.preview(column, spec, rows, values=values))
    except HierarchyError as error:
        return Trial(None, str(error), error.values[:_MOST_VALUES])
    except ShoalError as error:
        return Trial(None, str(error))
