"""Undo and redo: every change of the settings can be taken back, and one action is one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.errors import NotReady
from shoal.web.workspace import history as of_history
from shoal.web.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = Workspace(tmp_path)
    opened.open_sample()
    return opened


def state(workspace: Workspace) -> dict[str, Any]:
    table = workspace.table
    return {
        "columns": {name: dict(column) for name, column in table.columns.items()},
        "settings": workspace.draft.settings(),
        "files": dict(table.decisions.hierarchy_files),
        "node": workspace.negotiation.node,
        "preset": workspace.draft.preset,
    }


def upload(workspace: Workspace) -> None:
    rows = "female,x,*\nmale,x,*\nother,y,*\nU,y,*\n"
    workspace.table.upload_hierarchy("sex", rows.encode(), "sex.csv")


def take(workspace: Workspace) -> None:
    answer = workspace.negotiation.negotiate(k=7)
    assert answer.exact
    workspace.negotiation.take(answer.exact)


def one_step(workspace: Workspace) -> dict[str, int]:
    return dict.fromkeys(workspace.table.quasi_identifiers, 1)


ACTIONS = {
    "role of sex": lambda w: w.table.choose_role("sex", "other"),
    "hierarchy of age": lambda w: w.table.choose_hierarchy("age", {"intervals": [20]}),
    "hierarchy of sex": upload,
    "settings of age": lambda w: w.table.change_settings("age", weight=3),
    "suppression limit": lambda w: w.draft.change(suppression_limit=7),
    "algorithm": lambda w: w.draft.change(algorithm="ola"),
    "choice for the release": lambda w: w.negotiation.choose_node(one_step(w)),
    "several settings": lambda w: w.draft.follow_preset("safe-harbor"),
}


@pytest.mark.parametrize("label", ACTIONS)
def test_a_change_is_undone_and_redone(workspace: Workspace, label: str) -> None:
    if label.startswith("choice"):
        workspace.negotiation.tabulate()
    before = state(workspace)
    ACTIONS[label](workspace)
    after = state(workspace)
    assert after != before
    assert workspace.history.answer.undo == label
    workspace.history.undo()
    assert state(workspace) == before
    assert workspace.history.answer.redo == label
    workspace.history.redo()
    assert state(workspace) == after
    assert workspace.history.answer.labels == (label,)


def test_taking_an_offer_is_one_step_and_shows_the_old_results_again(workspace: Workspace) -> None:
    workspace.negotiation.tabulate()
    workspace.release.run()
    before, released = state(workspace), workspace.release.result
    take(workspace)
    assert workspace.release.result is None
    assert len(workspace.history.answer.labels) == 1
    workspace.history.undo()
    assert state(workspace) == before
    assert workspace.release.result is released


def test_a_rejected_change_is_no_step(workspace: Workspace) -> None:
    with pytest.raises(Exception, match="label"):
        workspace.draft.change(algorithm="tds")
    workspace.table.choose_role("sex", workspace.table.roles["sex"])
    assert workspace.history.answer.undo is None
    with pytest.raises(NotReady, match="nothing to undo"):
        workspace.history.undo()
    with pytest.raises(NotReady, match="nothing to redo"):
        workspace.history.redo()


def test_a_new_change_forgets_what_was_undone(workspace: Workspace) -> None:
    workspace.table.choose_role("sex", "other")
    workspace.history.undo()
    workspace.table.choose_role("age", "other")
    assert workspace.history.answer.redo is None
    assert workspace.history.answer.labels == ("role of age",)


def test_only_the_last_states_are_remembered(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_history, "MAX_STATES", 4)
    for k in range(10):
        workspace.draft.change(suppression_limit=k)
    for _ in range(3):
        workspace.history.undo()
    assert workspace.draft.settings()["suppression_limit"] == 6
    with pytest.raises(NotReady):
        workspace.history.undo()


def test_another_table_has_its_own_history(workspace: Workspace) -> None:
    workspace.table.choose_role("sex", "other")
    workspace.open_sample()
    assert workspace.history.answer.undo is None
    assert workspace.table.roles["sex"] == "quasi-identifier"


def test_the_columns_of_a_state_are_shared_where_they_did_not_change(workspace: Workspace) -> None:
    workspace.table.choose_role("sex", "other")
    first, second = (state.snapshot.table.columns for state in workspace.history.states)
    assert [name for name in first if first[name] is not second[name]] == ["sex"]
