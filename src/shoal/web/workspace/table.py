"""The table of a workspace: its columns with their roles, hierarchies and settings."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from shoal.columns.guesses import Guess
from shoal.engines.frames import WorkbookSheet
from shoal.errors import HierarchyError, ShoalError, UnknownName
from shoal.policy.policy import Policy
from shoal.web.errors import NotReady, Refused, TooLarge, error_field
from shoal.workflow.inspect import Inspection, Preview, ValueSummary, hierarchy_rows
from shoal.workflow.level_names import LevelNames, names_of_levels
from shoal.workflow.session import RemoteTable

_Rows = Sequence[Sequence[str]]  # rows of a hierarchy file
T = TypeVar("T")

NO_TABLE = "Choose a table first."
NO_COLUMNS = "Give at least one column the role quasi-identifier."
ROLES = ("identifier", "quasi-identifier", "sensitive", "other")
COLUMN_SETTINGS = ("max_level", "min_level", "weight", "release_as", "identifying")
MAX_HIERARCHY_BYTES = 20_000_000  # total size of the files that are uploaded together
MAX_HIERARCHY_FILES = 300
_MAX_VALUES = 20  # maximum number of values that are listed if they do not fit


@dataclass(frozen=True)
class IdentifierAnswer:
    """The Safe Harbor identifier that a column may contain, and the reason."""

    letter: str
    title: str
    by: str
    reason: str


@dataclass(frozen=True)
class ColumnAnswer:
    """A column of the table, with its role and hierarchy."""

    column: str
    kind: str
    distinct: int
    missing: int
    unique_share: float
    suggested_role: str
    reason: str
    role: str
    hierarchy: Any  # as in a policy; None for a column that is not a quasi-identifier
    height: int | None  # the highest level of the hierarchy, if it fits
    problem: str | None  # why the hierarchy does not fit
    identifier: IdentifierAnswer | None


@dataclass(frozen=True)
class HierarchyCheckResult:
    """A hierarchy applied to the values of a column: its levels, or why it does not fit."""

    preview: Preview | None
    problem: str | None = None
    values: tuple[str, ...] = ()  # values that do not fit; shown only to the user of the workspace
    spec: Any = None  # the hierarchy that fits, as a policy writes it


class HierarchyChecks:
    """Checks hierarchies of one table. For each column, the chosen and the last check are cached."""

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection
        self._cached: dict[tuple[str, str], tuple[str, _Rows, int, HierarchyCheckResult]] = {}

    def check(
        self, column: str, spec: Any, rows: _Rows = (), values: int = 8, *, chosen: bool = False
    ) -> HierarchyCheckResult:
        """Check a hierarchy. If it is `chosen`, the result is cached until another hierarchy is chosen."""
        name = repr(spec)  # repr distinguishes 1 from True
        for slot in ("chosen", "last"):
            entry = self._cached.get((column, slot))
            if entry and entry[0] == name and entry[1] is rows and entry[2] == values:
                break
        else:
            entry = (name, rows, values, _check(self.inspection, column, spec, rows, values))
            self._cached[column, "last"] = entry
        if chosen:
            self._cached[column, "chosen"] = entry
        return entry[3]


def _check(inspection: Inspection, column: str, spec: Any, rows: _Rows, values: int) -> HierarchyCheckResult:
    try:
        return HierarchyCheckResult(inspection.preview(column, spec, rows, values=values), spec=spec)
    except HierarchyError as error:
        return HierarchyCheckResult(None, str(error), error.values[:_MAX_VALUES])
    except ShoalError as error:
        return HierarchyCheckResult(None, str(error))


@dataclass(frozen=True)
class TableSource:
    """The place that a table was opened from."""

    kind: Literal["sample", "given", "folder", "upload", "source"] = "upload"
    path: str | None = None  # relative to the folder of `--folder`, or the name of the source
    sheet: WorkbookSheet | None = None  # the sheet of a workbook, if one was chosen


@dataclass(frozen=True)
class _HierarchyFile:
    """A hierarchy file that fits its column."""

    column: str
    name: str
    rows: list[list[str]]
    note: str  # how the file was read
    preview: Preview


def match_files(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return, for each file, the column with its whole name, or with the part after `hierarchy_`.

    >>> match_files(["Age.csv", "adult_hierarchy_native-country.csv"], ["age", "native-country"])
    ['age', 'native-country']
    """
    known = {column.casefold(): column for column in columns}
    matches = [_column_of(name, known) for name in names]
    unmatched = [name for name, column in zip(names, matches, strict=True) if column is None]
    if unmatched:
        names_text = ", ".join(repr(name[-80:]) for name in unmatched[:10])
        raise Refused(
            f"No column has the name of {names_text}. No file was taken. Rename them, or leave them out."
        )
    matched = [column for column in matches if column is not None]
    twice = next((column for column in matched if matched.count(column) > 1), None)
    if twice is not None:
        raise Refused(f"Two files are for the column {twice!r}. No file was taken. Leave one out.")
    return matched


def _column_of(name: str, known: Mapping[str, str]) -> str | None:
    plain = name.replace("\\", "/").rpartition("/")[2].casefold()
    stem = plain.rpartition(".")[0] or plain
    return known.get(stem) or known.get(stem.rpartition("hierarchy_")[2])


def _check_sizes(files: Sequence[tuple[str, bytes]]) -> None:
    if not 1 <= len(files) <= MAX_HIERARCHY_FILES:
        raise Refused(f"Choose 1 to {MAX_HIERARCHY_FILES} files.", "files")
    if sum(len(content) for _, content in files) > MAX_HIERARCHY_BYTES:
        raise TooLarge(
            f"The files are larger than {MAX_HIERARCHY_BYTES:,} bytes together, the limit.", "files"
        )


@dataclass(frozen=True)
class Decisions:
    """The decisions about the columns of a table. They are immutable, so that the history can share them."""

    columns: Mapping[str, Mapping[str, Any]]  # as in a policy
    chosen: frozenset[str] = frozenset()  # columns whose hierarchy was chosen, not suggested
    hierarchy_files: Mapping[str, list[list[str]]] = field(default_factory=dict)  # rows by column
    file_notes: Mapping[str, str] = field(default_factory=dict)  # by column: how its file was read


class _ChangeLock:
    """A reentrant lock that calls a function before its outermost `with` block ends."""

    def __init__(self, on_release: Callable[[], None]) -> None:
        self._lock, self._depth, self._on_release = threading.RLock(), 0, on_release

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        try:
            if self._depth == 1:
                self._on_release()
        finally:
            self._depth -= 1
            self._lock.release()


class Changes:
    """Counts the changes of a workspace, and caches values derived from its current state."""

    def __init__(self) -> None:
        self.lock = _ChangeLock(self._released)
        self.version = 0
        self.on_release: list[Callable[[], None]] = []  # called with the lock held, after one or more changes
        self._pending = False
        self._derived: dict[str, tuple[int, Any]] = {}

    def add(self) -> None:
        """Count a change; the lock must be held."""
        self.version += 1
        self._pending = True

    def note(self) -> None:
        """Record a change that does not affect derived values. The lock must be held."""
        self._pending = True

    def close(self) -> None:
        """Remove the listeners and the derived values."""
        with self.lock:
            self.on_release.clear()
            self._derived.clear()

    def _released(self) -> None:
        if self._pending:
            self._pending = False
            for listener in self.on_release:
                listener()

    def derive(self, name: str, compute: Callable[[], T]) -> T:
        """Compute a value at most once per version."""
        with self.lock:
            cached = self._derived.get(name)
            if cached is None or cached[0] != self.version:
                cached = (self.version, compute())
                self._derived[name] = cached
            value: T = cached[1]
            return value


class WorkspaceTable:
    """The open table and the decisions about its columns. Every change is checked before it is made."""

    def __init__(self, folder: Path, changes: Changes) -> None:
        self.folder = folder
        self.changes = changes
        self.name: str | None = None  # the name that the user knows
        self.path: Path | RemoteTable | None = None
        self.source = TableSource()
        self.inspection: Inspection | None = None
        self.revision = 0  # number of tables that were opened
        self.decisions = Decisions({})
        self._checks: HierarchyChecks  # of the open table
        self.summaries: dict[str, ValueSummary] = {}  # by column, for the open table

    @property
    def file(self) -> Path | None:
        """The file of the table; None if its rows are in a database."""
        return self.path if isinstance(self.path, Path) else None

    @property
    def remote(self) -> RemoteTable | None:
        """The table in a database; None if it is a file."""
        return self.path if isinstance(self.path, RemoteTable) else None

    def replace(self, path: Path | RemoteTable, name: str, inspection: Inspection) -> None:
        """Switch to another table, with the suggested roles and hierarchies; the lock must be held."""
        self._checks = HierarchyChecks(inspection)  # first, because readers use it if `inspection` is set
        self.path, self.name, self.inspection = path, name, inspection
        self.summaries = {}
        self.revision += 1
        columns = {
            guess.column: {"role": guess.role.value, "hierarchy": guess.hierarchy}
            for guess in inspection.columns
        }
        self.decide(Decisions(columns))

    def decide(self, decisions: Decisions) -> None:
        """Replace the decisions about the columns; the lock must be held."""
        self.decisions = decisions
        self.changes.add()

    def _change_columns(self, changed: Mapping[str, Mapping[str, Any]], chosen: Iterable[str] = ()) -> None:
        """Change entries of columns. `chosen` are the columns whose hierarchy a user chose."""
        with self.changes.lock:
            columns = {**self.columns, **{name: {**self.columns[name], **changed[name]} for name in changed}}
            self.decide(replace(self.decisions, columns=columns, chosen=self.decisions.chosen.union(chosen)))

    @property
    def columns(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns as in a policy."""
        return self.decisions.columns

    @property
    def loaded(self) -> Inspection:
        """The inspection of the table; raises NotReady if no table is open."""
        if self.inspection is None:
            raise NotReady(NO_TABLE, "table")
        return self.inspection

    @property
    def records(self) -> int:
        return self.loaded.records

    @property
    def roles(self) -> dict[str, str]:
        return {name: column["role"] for name, column in self.columns.items()}

    def with_role(self, role: str) -> tuple[str, ...]:
        return tuple(name for name in self.loaded.names if self.columns[name]["role"] == role)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The columns that are generalized."""
        return self.with_role("quasi-identifier")

    def require_quasi_identifiers(self, field: str | None = None) -> tuple[str, ...]:
        """Return the quasi-identifiers; raises NotReady if there are none."""
        if not self.quasi_identifiers:
            raise NotReady(NO_COLUMNS, field)
        return self.quasi_identifiers

    def rows(self, names: Sequence[str] | None = None) -> list[ColumnAnswer]:
        """Describe each column, or only the named ones."""
        chosen = None if names is None else set(names)
        return [self._row(guess) for guess in self.loaded.columns if chosen is None or guess.column in chosen]

    def _row(self, guess: Guess) -> ColumnAnswer:
        column = self.columns[guess.column]
        quasi_identifier = column["role"] == "quasi-identifier"
        check = self.check_hierarchy(guess.column) if quasi_identifier else HierarchyCheckResult(None)
        return ColumnAnswer(
            column=guess.column,
            kind=guess.kind,
            distinct=guess.distinct,
            missing=guess.missing,
            unique_share=guess.unique_share,
            suggested_role=guess.role.value,
            reason=guess.reason,
            role=column["role"],
            hierarchy=column.get("hierarchy") if quasi_identifier else None,
            height=check.preview.height if check.preview else None,
            problem=check.problem,
            identifier=IdentifierAnswer(**guess.identifier.to_dict()) if guess.identifier else None,
        )

    def choose_role(self, column: str, role: str) -> None:
        """Change the role of a column. The hierarchy is kept in case the user restores the old role."""
        self.choose_roles([column], role)

    def choose_roles(self, columns: Sequence[str], role: str) -> None:
        """Change the role of several columns. If one change is invalid, none is made."""
        for column in columns:
            self._require_column(column)
        if role not in ROLES:
            raise Refused(f"A role is one of {', '.join(ROLES)}, got {role[:40]!r}.", "role")
        self._change_columns({column: {"role": role} for column in columns})

    def summary(self, column: str) -> ValueSummary:
        """Summarize the values of a column, once per table."""
        self._require_column(column)
        cached = self.summaries.get(column)
        if cached is None:
            cached = self.summaries[column] = self.loaded.summary(column)
        return cached

    def preview(self, column: str, spec: Any, *, values: int = 8) -> HierarchyCheckResult:
        """Check a hierarchy on a column without choosing it."""
        self._require_column(column)
        return self._checks.check(column, spec, self.decisions.hierarchy_files.get(column, ()), values)

    def check_hierarchy(self, column: str) -> HierarchyCheckResult:
        rows = self.decisions.hierarchy_files.get(column, ())
        return self._checks.check(column, self.columns[column].get("hierarchy"), rows, chosen=True)

    def choose_hierarchy(self, column: str, spec: Any) -> Preview:
        """Change the hierarchy of a column. Raise an error if the hierarchy does not fit."""
        self._require_column(column)
        with error_field("spec"):
            preview = self._fitting(column, spec, self.decisions.hierarchy_files.get(column, ()))
        self._change_columns({column: {"hierarchy": spec}}, [column])
        return preview

    def upload_hierarchy(self, column: str, content: bytes, name: str = "hierarchy.csv") -> Preview:
        """Use a hierarchy file if it fits. The file has one row per value, from the value to the top."""
        file = self._read_hierarchy(column, content, name)
        self._take_hierarchies([file])
        return file.preview

    def upload_hierarchies(self, files: Sequence[tuple[str, bytes]]) -> list[str]:
        """Use hierarchy files, each for the column in its file name. If one is invalid, none is used.

        Return the columns.
        """
        _check_sizes(files)
        with error_field("files"):
            columns = match_files([name for name, _ in files], self.loaded.names)
        read = [
            self._read_hierarchy(column, content, name)
            for column, (name, content) in zip(columns, files, strict=True)
        ]
        self._take_hierarchies(read)
        return columns

    def _read_hierarchy(self, column: str, content: bytes, name: str) -> _HierarchyFile:
        self._require_column(column)
        stem = re.sub(r"[^\w.-]", "_", Path(name.replace("\0", "")).name)[-80:].lstrip(".") or "hierarchy.csv"
        folder = self.folder / f"hierarchy-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        path = folder / stem
        try:
            path.write_bytes(content)
            with error_field("file"):
                rows, note = hierarchy_rows(path, column, name=stem)
                return _HierarchyFile(
                    column, stem, rows, note or "", self._fitting(column, {"csv": stem}, rows)
                )
        finally:
            path.unlink(missing_ok=True)
            folder.rmdir()

    def _take_hierarchies(self, files: Sequence[_HierarchyFile]) -> None:
        with self.changes.lock:
            rows = {**self.decisions.hierarchy_files, **{file.column: file.rows for file in files}}
            notes = {**self.decisions.file_notes, **{file.column: file.note for file in files}}
            self.decisions = replace(self.decisions, hierarchy_files=rows, file_notes=notes)
            changed = {file.column: {"hierarchy": {"csv": file.name}} for file in files}
            self._change_columns(changed, changed)

    def _fitting(self, column: str, spec: Any, rows: _Rows) -> Preview:
        return self._checks.check(column, spec, rows).preview or self.loaded.preview(column, spec, rows)

    @property
    def level_names(self) -> LevelNames:
        """The names of the levels of each quasi-identifier whose hierarchy fits."""
        return self.changes.derive("level names", self._level_names)

    def _level_names(self) -> LevelNames:
        names = {}
        for column in self.quasi_identifiers:
            preview = self.check_hierarchy(column).preview
            if preview is not None:
                names[column] = names_of_levels(self.columns[column].get("hierarchy"), preview.hierarchy)
        return LevelNames(names)

    def hierarchy_note(self, column: str) -> str:
        """Describe how the hierarchy file of a column was read, for example that it is not UTF-8."""
        spec = self.columns[column].get("hierarchy")
        is_file = isinstance(spec, dict) and "csv" in spec
        return self.decisions.file_notes.get(column, "") if is_file else ""

    def settings(self, column: str) -> dict[str, Any]:
        """Return the settings of a quasi-identifier other than its hierarchy."""
        self._require_column(column)
        return {name: self.columns[column][name] for name in COLUMN_SETTINGS if name in self.columns[column]}

    def change_settings(self, column: str, **settings: Any) -> None:
        """Change max_level, min_level, weight, release_as or identifying. None removes a setting."""
        self._require_column(column)
        for setting in settings:
            if setting not in COLUMN_SETTINGS:
                raise UnknownName(setting, "setting of a column", COLUMN_SETTINGS)
        self._check_levels(column, settings)
        changed = {name: value for name, value in self.columns[column].items() if name not in settings}
        changed |= {name: value for name, value in settings.items() if value is not None}
        trial = {**changed, "role": "quasi-identifier", "hierarchy": changed.get("hierarchy", "flat")}
        for setting in settings:
            with error_field(setting):
                _ = Policy.load({"columns": {column: trial}, "models": [{"k-anonymity": {"k": 2}}]})
        preview = self.check_hierarchy(column).preview
        for setting in ("max_level", "min_level"):
            level = settings.get(setting)
            if level is not None and preview and level > preview.height:
                rule = f"must be a level from 0 to {preview.height}, got {level}"
                raise Refused(f"{setting} of {column!r} {rule}.", setting)
        with self.changes.lock:
            self.decide(replace(self.decisions, columns={**self.columns, column: changed}))

    def _check_levels(self, column: str, settings: Mapping[str, Any]) -> None:
        both = {**self.settings(column), **settings}
        low, high = both.get("min_level"), both.get("max_level")
        if low is not None and high is not None and low > high:
            raise Refused(
                f"min_level {low} of {column!r} is above its max_level {high}. Lower it, or raise max_level.",
                "min_level" if "min_level" in settings else "max_level",
            )

    def adopt(self, policy: Policy, columns: Mapping[str, Mapping[str, Any]]) -> None:
        """Adopt columns and hierarchy files of a policy; the lock must be held."""
        files = {name: [list(row) for row in _file_rows(policy, name)] for name in policy.files}
        adopted: dict[str, Mapping[str, Any]] = {}
        for name, column in columns.items():
            old = self.columns[name]
            new = {"hierarchy": old.get("hierarchy", "flat"), **column}
            adopted[name] = old if new == old else new
        notes = {
            name: note
            for name, note in self.decisions.file_notes.items()
            if files.get(name) == self.decisions.hierarchy_files.get(name)
        }
        chosen = frozenset(name for name, column in policy.columns.items() if column.hierarchy is not None)
        self.decide(Decisions({**self.columns, **adopted}, chosen, files, notes))

    def _require_column(self, column: str) -> None:
        if column not in self.loaded.names:
            raise UnknownName(column[:80], "column", self.loaded.names, field="column")


def _file_rows(policy: Policy, name: str) -> _Rows:
    rows: _Rows = getattr(policy.builder(name), "rows", ())
    return rows
