"""Scenarios: what is pinned, what it says in words, and what taking one changes."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.errors import Refused, Unknown
from shoal.web.workspace.negotiation_log import NegotiationLog
from shoal.web.workspace.project_file import SavedProject, apply_project, project_of, read_project
from shoal.web.workspace.scenarios import MAX_SCENARIOS
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.level_names import LevelNames
from shoal.workflow.profile.offer import Offer


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = Workspace(tmp_path)
    opened.open_sample()
    opened.negotiation.tabulate()
    return opened


def offered(workspace: Workspace, k: int = 7) -> Offer:
    offer = workspace.negotiation.negotiate(k=k, prefer="loss").exact
    assert offer
    return offer


def draft_state(workspace: Workspace) -> tuple[Any, ...]:
    columns = {name: dict(column) for name, column in workspace.table.columns.items()}
    return columns, workspace.draft.settings(), workspace.negotiation.node


def pin_offer(workspace: Workspace) -> None:
    workspace.scenarios.pin_offer(offered(workspace))


def pin_preview(workspace: Workspace) -> None:
    workspace.preview.run()
    workspace.scenarios.pin_preview()


def pin_row(workspace: Workspace) -> None:
    comparison = workspace.comparison.run(algorithms=["datafly"], metrics=["coverage"])
    workspace.scenarios.pin_row(comparison.rows[0])


PINS = {"Offer": pin_offer, "Release": pin_preview, "Compared": pin_row}


@pytest.mark.parametrize("kind", PINS)
def test_pinning_changes_no_setting_and_describes_each_column_in_words(
    workspace: Workspace, kind: str
) -> None:
    before, labels = draft_state(workspace), workspace.history.answer.labels
    PINS[kind](workspace)
    assert draft_state(workspace) == before
    assert workspace.history.answer.labels == labels
    (scenario,) = workspace.scenarios.pinned
    assert scenario.name.startswith(kind)
    assert tuple(scenario.columns) == workspace.table.quasi_identifiers
    for text in scenario.columns.values():
        assert re.search(r"[a-z]", text)
        assert not re.search(r"\blevel \d", text)


def test_an_offer_is_pinned_with_the_figures_that_its_release_has(workspace: Workspace) -> None:
    workspace.draft.change(models=[{"k-anonymity": {"k": 5}}])
    offer = offered(workspace)
    scenario = workspace.scenarios.pin_offer(offer)
    workspace.negotiation.take(offer)
    preview = workspace.preview.run()
    figures = scenario.figures
    assert (figures.suppressed, figures.classes) == (preview.suppressed, preview.classes)
    assert figures.smallest_class == preview.smallest_class >= 7
    assert figures.retained == pytest.approx(preview.retained)
    assert "at least 6 others" in scenario.protection


@pytest.mark.parametrize("kind", PINS)
def test_using_a_scenario_is_one_change_that_can_be_undone(workspace: Workspace, kind: str) -> None:
    PINS[kind](workspace)
    workspace.draft.change(suppression_limit=11, algorithm="ola")
    workspace.table.choose_role("sex", "other")
    before, count = draft_state(workspace), len(workspace.history.answer.labels)
    workspace.scenarios.use(1)
    after = draft_state(workspace)
    assert after != before
    assert "sex" in workspace.table.quasi_identifiers
    assert len(workspace.history.answer.labels) == count + 1
    workspace.history.undo()
    assert draft_state(workspace) == before
    workspace.history.redo()
    assert draft_state(workspace) == after


def test_using_an_offer_is_the_same_as_taking_it(workspace: Workspace) -> None:
    offer = offered(workspace)
    workspace.scenarios.pin_offer(offer)
    workspace.negotiation.take(offer)
    taken = draft_state(workspace)
    workspace.history.undo()
    workspace.scenarios.use(1)
    assert draft_state(workspace) == taken
    assert workspace.negotiation.node == dict(offer.node)


def test_a_row_of_a_comparison_is_used_and_gives_its_result(workspace: Workspace) -> None:
    row = workspace.comparison.run(algorithms=["datafly"], metrics=["coverage"]).rows[0]
    workspace.scenarios.use_row(row)
    assert workspace.draft.settings()["algorithm"] == "datafly"
    assert workspace.draft.settings()["metric"] == "coverage"
    preview = workspace.preview.run()
    assert (preview.levels, preview.suppressed) == (row.levels, row.suppressed)
    with pytest.raises(Refused, match="no result"):
        workspace.scenarios.use_row(replace(row, loss=None))


def test_scenarios_are_removed_limited_and_forgotten_with_their_table(workspace: Workspace) -> None:
    offer = offered(workspace)
    for _ in range(MAX_SCENARIOS):
        workspace.scenarios.pin_offer(offer)
    with pytest.raises(Refused, match=str(MAX_SCENARIOS)):
        workspace.scenarios.pin_offer(offer)
    workspace.scenarios.remove(3)
    assert [one.number for one in workspace.scenarios.pinned][:3] == [1, 2, 4]
    with pytest.raises(Unknown):
        workspace.scenarios.use(3)
    workspace.open_sample()
    assert workspace.scenarios.pinned == ()


def saved_and_opened(workspace: Workspace, folder: Path) -> Workspace:
    project = read_project(project_of(workspace, "mine").to_json())
    other = Workspace(folder)
    other.open_sample()
    apply_project(other, project)
    return other


def test_scenarios_are_saved_with_the_project(workspace: Workspace, tmp_path: Path) -> None:
    edits = workspace.history.edits
    for pin in PINS.values():
        pin(workspace)
    assert workspace.history.edits > edits  # autosave follows the edits
    (tmp_path / "other").mkdir()
    other = saved_and_opened(workspace, tmp_path / "other")
    for old, new in zip(workspace.scenarios.pinned, other.scenarios.pinned, strict=True):
        assert (old.number, old.name, old.protection, old.columns, old.figures) == (
            new.number, new.name, new.protection, new.columns, new.figures,
        )  # fmt: skip
    for number in (1, 2, 3):
        workspace.scenarios.use(number)
        other.scenarios.use(number)
        assert draft_state(workspace) == draft_state(other)


def _without_a_column(scenario: dict[str, Any]) -> None:
    scenario["state"]["columns"].pop("sex")


def _with_a_path(scenario: dict[str, Any]) -> None:
    scenario["state"]["hierarchy_files"] = {"sex": "/etc/passwd"}


def _with_more(scenario: dict[str, Any]) -> None:
    scenario["script"] = "x"


def _with_a_count(scenario: dict[str, Any]) -> None:
    scenario["figures"]["suppressed"] = -1


@pytest.mark.parametrize("damage", [_without_a_column, _with_a_path, _with_more, _with_a_count])
def test_a_damaged_scenario_of_a_stranger_is_rejected(
    workspace: Workspace, damage: Callable[[dict[str, Any]], None]
) -> None:
    pin_offer(workspace)
    content = json.loads(project_of(workspace, "mine").to_json())
    assert SavedProject.model_validate(content)
    damage(content["scenarios"][0])
    with pytest.raises(Refused):
        read_project(json.dumps(content).encode())


def logged(workspace: Workspace) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(workspace.negotiation.log.to_csv())))


def test_the_log_has_requests_answers_and_what_was_taken_in_words(workspace: Workspace) -> None:
    workspace.negotiation.log = NegotiationLog(clock=itertools.count(0, 10).__next__)
    names = workspace.table.level_names
    offer = offered(workspace)
    workspace.negotiation.negotiate(k=7, prefer="loss")  # the same again
    impossible = workspace.negotiation.negotiate(k=4_000, suppression_limit=0, max_level={"age": 1})
    assert impossible.exact is None
    workspace.negotiation.take(offer)
    workspace.negotiation.choose_node(None)
    rows = logged(workspace)
    assert [row["event"] for row in rows] == ["asked", "asked", "taken", "chosen"]
    first, second, taken, _ = rows
    assert (first["protection"], first["answer"]) == ("k = 7", "possible")
    assert first["columns"] == taken["columns"] == names.describe(offer.node)
    assert first["suppressed"] == str(offer.suppressed)
    assert second["answer"] == "not possible"
    assert second["coarsest"].startswith(names.phrase("age", 1))
    assert second["limit"] == "0 records"


def test_a_moving_dial_is_one_request_in_the_log(workspace: Workspace) -> None:
    times = iter([0.0, 0.5, 1.0, 9.0])
    log = NegotiationLog(clock=lambda: next(times))
    workspace.negotiation.log = log
    for k in (3, 4, 5, 6):
        offered(workspace, k)
    assert [row["protection"] for row in logged(workspace)] == ["k = 5", "k = 6"]


def test_the_log_is_saved_with_the_project_and_ends_with_the_table(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.negotiation.take(offered(workspace))
    (tmp_path / "other").mkdir()
    other = saved_and_opened(workspace, tmp_path / "other")
    assert len(logged(workspace)) == 2
    assert logged(other) == logged(workspace)
    workspace.open_sample()
    assert logged(workspace) == []


def test_no_cell_of_the_log_is_run_by_a_spreadsheet() -> None:
    log = NegotiationLog()
    log.add_taken({}, {"=cmd": 1}, LevelNames({}))
    assert "'=cmd" in log.to_csv()
