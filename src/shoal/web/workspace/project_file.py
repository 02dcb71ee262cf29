"""A project: the policy, the hierarchies, the settings and their history, without the data.

A project file may come from an untrusted source. It is parsed as JSON of limited size and depth, and every
field is checked. The file contains the hierarchies. No path in it is opened, except a table inside the folder
of `--folder`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import ShoalError
from shoal.files.yaml import LoadError, load_json
from shoal.web.errors import Refused
from shoal.web.fields import Count, Level, RoleName, ShortText, Weight
from shoal.web.workspace.draft import SETTINGS, CachedResult, Snapshot
from shoal.web.workspace.history import MAX_STATES, HistoryState
from shoal.web.workspace.negotiation_log import MAX_ENTRIES, LogEntry
from shoal.web.workspace.scenarios import MAX_SCENARIOS, Scenario, ScenarioFigures
from shoal.web.workspace.table import Decisions
from shoal.web.workspace.workspace import Workspace

MAX_BYTES = 64 << 20  # size limit of the JSON
_NOT_A_PROJECT = "This is not a project that the studio has saved, or it is damaged."

_Rows = list[list[Annotated[str, Field(max_length=100_000)]]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProjectColumn(_Part):
    """A column as a policy writes it. In addition, the hierarchy is stored for every role."""

    role: RoleName
    hierarchy: str | dict[str, Any] | None = None
    max_level: Level | None = None
    min_level: Level | None = None
    weight: Weight | None = None
    release_as: Literal["text", "bounds"] | None = None
    identifying: Literal[1, 2, 3] | None = None


class ProjectState(_Part):
    """The settings after a change. `columns` holds only the columns that differ from the previous state."""

    label: ShortText
    columns: dict[ShortText, ProjectColumn]
    settings: dict[Literal[SETTINGS], Any]  # type: ignore[valid-type]
    chosen: list[ShortText]
    hierarchy_files: dict[ShortText, ShortText]  # for each column, the key of its rows in `files`
    file_notes: dict[ShortText, ShortText]
    node: dict[ShortText, Level] | None = None
    preset: ShortText | None = None

    def written_columns(self) -> dict[str, dict[str, Any]]:
        """Return the columns as a policy writes them."""
        return {
            name: column.model_dump(exclude_unset=True, exclude_none=True)
            for name, column in self.columns.items()
        }


class ProjectScenario(_Part):
    """A pinned scenario. Its state contains all columns, not only changed ones."""

    number: Annotated[int, Field(ge=1, le=10**9, strict=True)]
    protection: Annotated[str, Field(max_length=100_000)]
    columns: dict[ShortText, ShortText]
    figures: ScenarioFigures
    state: ProjectState
    terms: Annotated[str, Field(max_length=10_000)]
    k: Count


class ProjectTable(_Part):
    """The table of a project. The server finds it again by `source` and `name`."""

    name: ShortText
    source: Literal["sample", "given", "folder", "upload", "source"]
    path: ShortText | None = None  # relative to the folder of `--folder`, or the name of the source
    sheet: ShortText | None = None  # the sheet of a workbook, if one was chosen
    header_row: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    columns: Annotated[list[ShortText], Field(min_length=1, max_length=1_000_000)]
    records: Annotated[int, Field(ge=0)]


class SavedProject(_Part):
    """Everything that a project file holds."""

    format: Literal["shoal project 1"] = "shoal project 1"
    name: Annotated[str, Field(min_length=1, max_length=200)]
    saved: Annotated[str, Field(max_length=40)]  # in ISO form
    table: ProjectTable
    files: dict[ShortText, _Rows]  # rows of hierarchy files by their digest
    states: Annotated[list[ProjectState], Field(min_length=1, max_length=MAX_STATES)]
    position: Annotated[int, Field(ge=0, lt=MAX_STATES)]
    step: Annotated[str, Field(max_length=20)] = "data"
    scenarios: Annotated[list[ProjectScenario], Field(max_length=MAX_SCENARIOS)] = []
    log: Annotated[list[LogEntry], Field(max_length=MAX_ENTRIES)] = []

    def to_json(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()


def read_project(content: bytes) -> SavedProject:
    """Read a project from an untrusted source. Raise Refused if it is not a valid project."""
    try:
        project = SavedProject.model_validate(load_json(content, max_bytes=MAX_BYTES))
    except (LoadError, ValidationError, RecursionError, ValueError):
        raise Refused(_NOT_A_PROJECT, "file") from None
    names = set(project.table.columns)
    pinned = [scenario.state for scenario in project.scenarios]
    for number, state in enumerate([*pinned, *project.states]):
        complete = set(state.columns) == names if number <= len(pinned) else set(state.columns) <= names
        digests = set(state.hierarchy_files.values())
        if not complete or not digests <= set(project.files) or project.position >= len(project.states):
            raise Refused(_NOT_A_PROJECT, "file")
    return project


def project_of(workspace: Workspace, name: str, step: str = "data") -> SavedProject:
    """Return the project of a workspace that has a table."""
    with workspace.table.changes.lock:
        states, position = list(workspace.history.states), workspace.history.position
        table, source = workspace.table, workspace.table.source
        records, columns, pinned = table.records, list(table.loaded.names), workspace.scenarios.pinned
    files: dict[str, _Rows] = {}
    saved: list[ProjectState] = []
    before: Mapping[str, Mapping[str, Any]] = {}
    for state in states:
        saved.append(_saved_state(state, before, files))
        before = state.snapshot.table.columns
    scenarios = [
        ProjectScenario(
            number=scenario.number,
            protection=scenario.protection,
            columns=dict(scenario.columns),
            figures=scenario.figures,
            state=_saved_state(scenario.state, {}, files),
            terms=scenario.terms,
            k=scenario.k,
        )
        for scenario in pinned
    ]
    return SavedProject(
        name=name[:200] or "project",
        saved=datetime.now(UTC).isoformat(timespec="seconds"),
        table=ProjectTable(
            name=(table.name or "table")[:1000],
            source=source.kind,
            path=source.path,
            sheet=source.sheet.name if source.sheet else None,
            header_row=source.sheet.header_row if source.sheet else None,
            columns=columns,
            records=records,
        ),
        files=files,
        states=saved,
        position=max(0, position),
        step=step,
        scenarios=scenarios,
        log=list(workspace.negotiation.log.entries),
    )


def _saved_state(
    state: HistoryState, before: Mapping[str, Mapping[str, Any]], files: dict[str, _Rows]
) -> ProjectState:
    snapshot = state.snapshot
    digests = {}
    for column, rows in snapshot.table.hierarchy_files.items():
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]
        files[digest] = [list(row) for row in rows]
        digests[column] = digest
    return ProjectState(
        label=state.label,
        columns={
            column: ProjectColumn(**entries)
            for column, entries in snapshot.table.columns.items()
            if before.get(column) != entries
        },
        settings=dict(snapshot.settings),
        chosen=sorted(snapshot.table.chosen),
        hierarchy_files=digests,
        file_notes={name: note for name, note in snapshot.table.file_notes.items() if note},
        node=state.node.result,
        preset=snapshot.preset,
    )


def apply_project(workspace: Workspace, project: SavedProject, *, history: bool = True) -> None:
    """Apply the settings of a project to the open table, with or without its history.

    Every state is checked like a policy. An invalid current state is an error. Other invalid states are
    omitted.
    """
    table = workspace.table
    _check_columns(table.loaded.names, project.table.columns)
    with table.changes.lock:
        before, node_before = workspace.draft.snapshot(), workspace.negotiation.chosen
        states: list[HistoryState] = []
        position = 0
        columns: dict[str, dict[str, Any]] = {}
        try:
            for number, saved in enumerate(project.states):
                columns |= saved.written_columns()
                state = _checked_state(workspace, project, saved, columns, before.populations)
                if state is not None:
                    states.append(state)
                if number == project.position:
                    if state is None:
                        raise Refused("The settings of this project cannot be used: " + _problem(workspace))
                    position = len(states) - 1
            scenarios = _checked_scenarios(workspace, project, before.populations) if history else ()
        except BaseException:
            workspace.draft.restore(before)
            workspace.negotiation.chosen = node_before
            raise
        if history:
            workspace.history.replace(states, position)
            workspace.scenarios.replace(scenarios)
            workspace.negotiation.log.replace(project.log)
        else:
            current = states[position]
            workspace.draft.restore(current.snapshot)
            workspace.negotiation.chosen = current.node
    workspace.prepare()


def _problem(workspace: Workspace) -> str:
    try:
        _ = workspace.draft.build()
    except ShoalError as error:
        return str(error)
    return "they do not belong to this table."


def _check_columns(names: Sequence[str], saved: Sequence[str]) -> None:
    missing = [name for name in saved if name not in set(names)]
    unexpected = [name for name in names if name not in set(saved)]
    if missing or unexpected:
        problem = f"lacks {missing[0]!r}" if missing else f"also has {unexpected[0]!r}"
        raise Refused(
            f"The project is for a table with other columns: this table {problem}. Open the right table.",
            "table",
        )


def _checked_state(
    workspace: Workspace,
    project: SavedProject,
    saved: ProjectState,
    columns: Mapping[str, dict[str, Any]],
    populations: frozenset[str],
) -> HistoryState | None:
    """Restore a state. Return None if it has quasi-identifiers, but its policy is invalid."""
    files = {column: project.files[digest] for column, digest in saved.hierarchy_files.items()}
    _check_files(columns, files)
    names = set(columns)
    snapshot = Snapshot(
        Decisions(
            {name: columns[name] for name in workspace.table.loaded.names},
            frozenset(saved.chosen) & names,
            {column: rows for column, rows in files.items() if column in names},
            {column: note for column, note in saved.file_notes.items() if column in names},
        ),
        {name: value for name, value in saved.settings.items() if value is not None},
        populations,
        saved.preset,
    )
    workspace.draft.restore(snapshot)
    try:
        _ = workspace.draft.build()
    except ShoalError:
        if workspace.table.quasi_identifiers:
            return None
    return HistoryState(saved.label, snapshot, _node(workspace, saved.node))


def _checked_scenarios(
    workspace: Workspace, project: SavedProject, populations: frozenset[str]
) -> tuple[Scenario, ...]:
    """Return the scenarios of a project, without those whose settings are invalid."""
    scenarios: dict[int, Scenario] = {}
    for saved in project.scenarios:
        state = _checked_state(workspace, project, saved.state, saved.state.written_columns(), populations)
        if state is not None:
            scenarios[saved.number] = Scenario(
                saved.number,
                state.label,
                saved.protection,
                saved.columns,
                saved.figures,
                state,
                saved.terms,
                saved.k,
            )
    return tuple(scenarios.values())


def _check_files(columns: Mapping[str, Mapping[str, Any]], files: Mapping[str, _Rows]) -> None:
    """Reject a hierarchy file whose rows are not in the project: its name would be opened as a path."""
    for name, column in columns.items():
        spec = column.get("hierarchy")
        if isinstance(spec, Mapping) and "csv" in spec and (name not in files or _is_path(spec["csv"])):
            raise Refused(f"The project lacks the hierarchy file of {name[:80]!r}.", "file")


def _is_path(name: object) -> bool:
    return not isinstance(name, str) or any(sign in name for sign in "/\\\0") or name in ("", ".", "..")


def _node(workspace: Workspace, node: Mapping[str, int] | None) -> CachedResult[dict[str, int]]:
    """Return the chosen node with the key of the current lattice; empty if the lattice lacks the node."""
    key = workspace.draft.lattice_key() if node else None
    names = workspace.table.quasi_identifiers
    if node is None or key is None or set(node) != set(names):
        return CachedResult()
    previews = {name: workspace.table.check_hierarchy(name).preview for name in names}
    if any(preview is None or node[name] > preview.height for name, preview in previews.items()):
        return CachedResult()
    return CachedResult(key, {name: node[name] for name in names})
