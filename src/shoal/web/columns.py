"""A table and its columns: the role of each and, of quasi-identifiers, the hierarchy."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from shoal.errors import HierarchyError, UnknownName
from shoal.inspection import Inspection, Preview, hierarchy_rows, inspect
from shoal.policies.guesses import Guess
from shoal.policy import Policy
from shoal.web.answers import ColumnAnswer, IdentifierAnswer
from shoal.web.refusals import NotReady, Refused, beside
from shoal.web.trials import Trial, Trials

Progress = Callable[[str, int, int | None], None]
T = TypeVar("T")
NO_TABLE = "Choose a table first."
NO_COLUMNS = "Give at least one column the role quasi-identifier."
ROLES = ("identifier", "quasi-identifier", "sensitive", "other")
SETTINGS = ("max_level", "min_level", "weight", "release_as", "identifying")  # of a quasi-identifier


class Columns:
    """A table with its columns' roles and hierarchies; each change is checked where it is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # private: uploads, the sample and releases
        self.lock = threading.RLock()
        self.name: str | None = None  # of the table, as the custodian knows it
        self.table: Path | None = None
        self.inspection: Inspection | None = None
        self.revision = 0  # of the table
        self._chosen: set[str] = set()  # columns whose hierarchy somebody chose
        self._columns: dict[str, dict[str, Any]] = {}
        self._files: dict[str, list[list[str]]] = {}  # rows of hierarchies that are files, by column
        self._file_notes: dict[str, str] = {}  # by column: on how its file was read
        self._trials: Trials  # of the table, once there is one
        self._version = 0  # of all that is said above
        self._known: dict[str, tuple[int, Any]] = {}  # what follows from one version

    def _once(self, what: str, work_out: Callable[[], T]) -> T:
        """Work something out once for each version of the plan."""
        with self.lock:
            known = self._known.get(what)
            if known is None or known[0] != self._version:
                known = (self._version, work_out())
                self._known[what] = known
            found: T = known[1]
            return found

    # The table.

    def open(self, table: Path, name: str | None = None, progress: Progress | None = None) -> Inspection:
        """Take a table, look at its columns and begin anew with what they suggest."""
        found = inspect(table, progress=progress)
        with self.lock:
            self._trials = Trials(found)  # before it is seen that there is a table
            self._columns = {guess.column: _suggested(guess) for guess in found.columns}
            self.table, self.name, self.inspection = Path(table), name or Path(table).name, found
            self.revision += 1
            self._version += 1
            self._forget()
        return found

    def _forget(self) -> None:
        """Let go of what was said of the table before."""
        self._chosen, self._files, self._file_notes = set(), {}, {}

    @property
    def opened(self) -> Inspection:
        """What the table's columns are; refused where none is chosen."""
        if self.inspection is None:
            raise NotReady(NO_TABLE, "table")
        return self.inspection

    @property
    def records(self) -> int:
        """The table's records."""
        return self.opened.records

    # Roles and hierarchies.

    def columns(self) -> list[ColumnAnswer]:
        """Return the column table."""
        rows = []
        for guess in self.opened.columns:
            role = self._columns[guess.column]["role"]
            spec, trial = None, Trial(None)
            if role == "quasi-identifier":
                spec = self._columns[guess.column].get("hierarchy")
                trial = self._fit(guess.column)
            rows.append(
                ColumnAnswer(
                    column=guess.column,
                    kind=guess.kind,
                    distinct=guess.distinct,
                    missing=guess.missing,
                    unique_share=guess.unique_share,
                    suggested_role=guess.role.value,
                    reason=guess.reason,
                    role=role,
                    hierarchy=spec,
                    height=trial.preview.height if trial.preview else None,
                    problem=trial.problem,
                    identifier=_identifier(guess),
                )
            )
        return rows

    def of_role(self, role: str) -> tuple[str, ...]:
        """Name the columns of one role."""
        return tuple(name for name in self.opened.names if self._columns[name]["role"] == role)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The columns that are generalized."""
        return self.of_role("quasi-identifier")

    def needed(self, field: str | None = None) -> tuple[str, ...]:
        """Return the quasi-identifiers; refused where there is none."""
        if not self.quasi_identifiers:
            raise NotReady(NO_COLUMNS, field)
        return self.quasi_identifiers

    def choose_role(self, column: str, role: str) -> None:
        """Give a column another role; its hierarchy is kept for when it is one again."""
        self._check(column)
        if role not in ROLES:
            message = f"A role is one of {', '.join(ROLES)}, got {role[:40]!r}."
            raise Refused(message, "role")
        with self.lock:
            self._columns[column]["role"] = role
            self._version += 1

    def preview(self, column: str, spec: Any, *, values: int = 8) -> Trial:
        """Try a hierarchy on a column without choosing it."""
        self._check(column)
        return self._trials.trial(column, spec, self._files.get(column, ()), values)

    def choose_hierarchy(self, column: str, spec: Any) -> Preview:
        """Take a hierarchy that fits; one that does not is refused and the old one stays."""
        self._check(column)
        rows = self._files.get(column, ())
        with beside("spec"):
            found = self._trials.trial(column, spec, rows).preview or self.opened.preview(column, spec, rows)
        with self.lock:
            self._columns[column]["hierarchy"] = spec
            self._chosen.add(column)
            self._version += 1
        return found

    def upload_hierarchy(self, column: str, content: bytes, name: str = "hierarchy.csv") -> Preview:
        """Take a hierarchy's file, one row per value from the value to the top, if it fits."""
        self._check(column)
        stem = re.sub(r"[^\w.-]", "_", Path(name.replace("\0", "")).name)[-80:].lstrip(".") or "hierarchy.csv"
        home = self.folder / f"hierarchy-{secrets.token_hex(4)}"
        home.mkdir(mode=0o700)
        path = home / stem
        try:
            path.write_bytes(content)
            with beside("file"):
                try:
                    rows, note = hierarchy_rows(path, column)
                except HierarchyError as error:
                    raise HierarchyError(str(error).replace(f"{home}/", ""), error.values) from None
                spec = {"csv": stem}
                found = self._trials.trial(column, spec, rows).preview or self.opened.preview(
                    column, spec, rows
                )
        finally:
            path.unlink(missing_ok=True)
            home.rmdir()
        with self.lock:
            self._files[column] = rows
            self._file_notes[column] = (note or "").replace(f"{home}/", "")
            self._columns[column]["hierarchy"] = spec
            self._chosen.add(column)
            self._version += 1
        return found

    def hierarchy_note(self, column: str) -> str:
        """Say what should be known of how a hierarchy's file was read, as that it is not UTF-8."""
        spec = self._columns[column].get("hierarchy")
        return self._file_notes.get(column, "") if isinstance(spec, dict) and "csv" in spec else ""

    def choose_settings(self, column: str, **settings: Any) -> None:
        """Set max_level, min_level, weight, release_as or identifying of a quasi-identifier; None unsets."""
        self._check(column)
        for setting in settings:
            if setting not in SETTINGS:
                raise UnknownName(setting, "setting of a column", SETTINGS)
        kept = {name: value for name, value in self._columns[column].items() if name not in settings}
        kept |= {name: value for name, value in settings.items() if value is not None}
        trial = {**kept, "role": "quasi-identifier", "hierarchy": kept.get("hierarchy", "flat")}
        for setting in settings:
            with beside(setting):
                _ = Policy.load({"columns": {column: trial}, "models": [{"k-anonymity": {"k": 2}}]})
        fit = self._fit(column)
        for setting in ("max_level", "min_level"):
            level = settings.get(setting)
            if level is not None and fit.preview and level > fit.preview.height:
                message = (
                    f"{setting} of {column!r} must be a level from 0 to {fit.preview.height}, got {level}."
                )
                raise Refused(message, setting)
        with self.lock:
            self._columns[column] = kept
            self._version += 1

    def settings(self, column: str) -> dict[str, Any]:
        """Return what is set for a quasi-identifier, besides its hierarchy."""
        self._check(column)
        return {name: self._columns[column][name] for name in SETTINGS if name in self._columns[column]}

    def _fit(self, column: str) -> Trial:
        """Try a column's own hierarchy, once."""
        spec = self._columns[column].get("hierarchy")
        return self._trials.chosen(column, spec, self._files.get(column, ()))

    def _check(self, column: str) -> None:
        if column not in self.opened.names:
            error = UnknownName(column[:80], "column", self.opened.names)
            error.field = "column"  # type: ignore[attr-defined]
            raise error


def _identifier(guess: Guess) -> IdentifierAnswer | None:
    return IdentifierAnswer(**guess.identifier.to_dict()) if guess.identifier else None


def _suggested(guess: Guess) -> dict[str, Any]:
    return {"role": guess.role.value, "hierarchy": guess.hierarchy}
