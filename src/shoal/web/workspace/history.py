"""The history of a workspace's settings: undo, redo, and the states that a project saves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.web.errors import NotReady
from shoal.web.workspace.draft import CachedResult, PolicyDraft, Snapshot
from shoal.web.workspace.negotiation import NegotiationStep
from shoal.web.workspace.table import Decisions

MAX_STATES = 50  # maximum number of states; the oldest are removed


@dataclass(frozen=True)
class HistoryState:
    """The settings after a change, with a label for the change."""

    label: str
    snapshot: Snapshot
    node: CachedResult[dict[str, int]]


@dataclass(frozen=True)
class HistoryAnswer:
    """The changes that the next undo and redo apply to; null if there is no such change."""

    undo: str | None
    redo: str | None
    labels: tuple[str, ...]  # labels of the changes that can be undone, the oldest first


class History:
    """The last states of the draft, and the position of the current one.

    A state is recorded when the outermost `with` block of the lock ends. One action is therefore one entry.
    """

    def __init__(self, draft: PolicyDraft, negotiation: NegotiationStep) -> None:
        self.draft, self.negotiation = draft, negotiation
        self.states: list[HistoryState] = []
        self.position = -1
        self.edits = 0  # number of changes by the user, including undo and redo
        self.on_change: list[Callable[[], None]] = []
        self._revision = 0  # revision of the table
        draft.table.changes.on_release.append(self.record)

    def record(self) -> None:
        """Append the current state if it differs from the last one; the lock must be held."""
        table = self.draft.table
        if table.inspection is None:
            return
        if table.revision != self._revision:
            self._revision = table.revision
            self.states, self.position = [], -1
        current = HistoryState("", self.draft.snapshot(), self.negotiation.chosen)
        if self.position >= 0:
            last = self.states[self.position]
            label = change_label(last, current)
            if not label:
                return
            current = replace(current, label=label)
        self.states = [*self.states[: self.position + 1], current][-MAX_STATES:]
        self.position = len(self.states) - 1
        if self.position:
            self.add_edit()

    def reset(self) -> None:
        """Remove all states except the current one, so that nothing can be undone or redone."""
        with self.draft.table.changes.lock:
            self.states = self.states[self.position : self.position + 1]
            self.position = len(self.states) - 1
            self.edits = 0

    def replace(self, states: list[HistoryState], position: int) -> None:
        """Replace the states with those of a project, and restore one of them."""
        with self.draft.table.changes.lock:
            self._revision = self.draft.table.revision
            self.states, self.position = list(states), position
            self._restore()
            self.edits = 0

    def undo(self) -> None:
        """Restore the state before the last change."""
        self._move(-1, "There is nothing to undo.")

    def redo(self) -> None:
        """Restore the state before the last undo."""
        self._move(1, "There is nothing to redo.")

    def _move(self, step: int, message: str) -> None:
        with self.draft.table.changes.lock:
            if not 0 <= self.position + step < len(self.states) or self.position < 0:
                raise NotReady(message)
            self.position += step
            self._restore()
            self.add_edit()

    def _restore(self) -> None:
        state = self.states[self.position]
        self.draft.restore(state.snapshot)
        self.negotiation.chosen = state.node

    def add_edit(self) -> None:
        """Count a change by the user, and notify the listeners."""
        self.edits += 1
        for listener in self.on_change:
            listener()

    @property
    def answer(self) -> HistoryAnswer:
        """The changes that undo and redo apply to."""
        later = self.states[self.position + 1 :]
        labels = tuple(state.label for state in self.states[1 : self.position + 1])
        return HistoryAnswer(labels[-1] if labels else None, later[0].label if later else None, labels)


def change_label(before: HistoryState, after: HistoryState) -> str:
    """Describe what differs between two states, such as "role of sex". Return "" if nothing differs."""
    parts = _column_changes(before.snapshot.table, after.snapshot.table)
    old, new = before.snapshot.settings, after.snapshot.settings
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    parts += [_SETTING_LABELS.get(name, name) for name in names]
    if before.node.result != after.node.result:
        parts.append("choice for the release")
    if len(parts) > 2:
        return "several settings"
    return " and ".join(parts)


_SETTING_LABELS = {
    "models": "privacy models",
    "suppression_limit": "suppression limit",
    "local": "local recoding",
    "suppressed": "suppressed records",
    "same_level": "columns of the same level",
    "population_size": "population",
    "sampling_share": "sampling share",
}


def _column_changes(before: Decisions, after: Decisions) -> list[str]:
    changed = [
        (name, column, before.columns.get(name, {}))
        for name, column in after.columns.items()
        if column is not before.columns.get(name) and column != before.columns.get(name)
    ]
    kinds = [_what(new, old) for _, new, old in changed]
    parts = [f"{kind} of {name}" for kind, (name, _, _) in zip(kinds, changed, strict=True)]
    files = {*before.hierarchy_files, *after.hierarchy_files} - {name for name, _, _ in changed}
    other_files = [
        name for name in sorted(files) if before.hierarchy_files.get(name) != after.hierarchy_files.get(name)
    ]
    parts += [f"hierarchy of {name}" for name in other_files]
    roles = {str(new["role"]) for _, new, old in changed if new["role"] != old.get("role")}
    if len(parts) > 2 and len(roles) == 1 and not other_files and {*kinds} == {"role"}:
        return [f"role of {len(parts):,} columns"]
    return parts


def _what(new: Mapping[str, Any], old: Mapping[str, Any]) -> str:
    for entry in ("role", "hierarchy"):
        if new.get(entry) != old.get(entry):
            return entry
    return "settings"
