"""What a release would do is what it does, and what Negotiate answers first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.errors import Infeasible
from shoal.web.workspace.lattice import retained_by_column
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.profile.offer import privacy_of


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    opened = Workspace(tmp_path)
    opened.open_sample()
    return opened


CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "a metric that depends on what is suppressed": {"metric": "coverage"},
    "fewer suppressed": {"suppression_limit": 100},
    "labels by class": {"local": True},
    "no node": {"algorithm": "mondrian", "same_level": []},
    "a model that cannot be negotiated": {"models": [{"k-anonymity": {"k": 5}}, {"t-closeness": {"t": 0.5}}]},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_preview_is_the_release(workspace: Workspace, what: str) -> None:
    workspace.draft.change(**CHANGES[what])
    preview = workspace.preview.run()
    release = workspace.release.run()
    assert preview.levels == release.levels
    assert preview.suppressed == release.suppressed
    assert preview.smallest_class == release.verification.smallest_class
    assert preview.retained == pytest.approx(release.retained_overall)
    assert preview.retained_by_column == pytest.approx(release.retained)
    assert not list(workspace.folder.glob("preview*"))


@pytest.mark.parametrize("metric", ["coverage", "non-uniform-entropy"])
def test_negotiate_begins_with_the_answer_of_the_release(workspace: Workspace, metric: str) -> None:
    workspace.draft.change(metric=metric)
    workspace.negotiation.tabulate()
    preview = workspace.preview.run()
    answer = workspace.preview.confirm(workspace.negotiation.negotiate(prefer="loss"))
    assert answer.exact is not None
    assert answer.exact.node == preview.levels == workspace.release.run().levels
    assert answer.besides == ()
    workspace.negotiation.take(answer.exact)
    assert workspace.release.run().levels == preview.levels


def test_another_request_is_not_confirmed(workspace: Workspace) -> None:
    workspace.negotiation.tabulate()
    workspace.preview.run()
    for request in ({"k": 7}, {"suppression_limit": 3}, {"max_level": {"age": 1}}, {"prefer": "height"}):
        answer = workspace.negotiation.negotiate(**({"prefer": "loss"} | request))
        assert workspace.preview.confirm(answer) is answer


def test_a_preview_at_the_chosen_node_keeps_it(workspace: Workspace) -> None:
    workspace.negotiation.tabulate()
    node = dict(workspace.preview.run().levels or {})
    node["postcode"] += 1
    workspace.negotiation.choose_node(node)
    assert workspace.preview.result is None
    assert workspace.preview.run().levels == node


def test_a_preview_of_the_impossible_says_so(workspace: Workspace) -> None:
    workspace.draft.change(models=[{"k-anonymity": {"k": 5001}}])
    with pytest.raises(Infeasible):
        workspace.preview.run()


def test_notes_say_by_what_the_models_count(workspace: Workspace) -> None:
    def persons() -> str:
        return next(note for note in workspace.draft.notes() if "person" in note and "row" in note)

    assert "k counts rows. Add unit: " in persons()
    assert any("k counts rows. Add unit: " in note for note in workspace.release.run().notes)
    workspace.draft.follow_preset("health-0.09")
    assert "the policy has unit: " in persons()
    workspace.draft.follow_preset("safe-harbor")  # whose k is 1, for records
    assert "k counts rows. Add unit: " in persons()


def test_negotiate_retains_of_a_node_what_its_release_retains(workspace: Workspace) -> None:
    workspace.negotiation.tabulate()
    node = workspace.preview.run().levels
    assert node is not None
    profile = workspace.negotiation.tabulated
    retained = retained_by_column(profile, node, privacy_of(profile))
    assert retained == pytest.approx(dict(workspace.release.run().retained))


def test_a_preview_by_class_is_that_of_the_request_of_the_policy(workspace: Workspace) -> None:
    workspace.draft.change(local=True)
    workspace.negotiation.tabulate()
    preview = workspace.preview.run()
    assert preview.levels is None
    same = workspace.negotiation.negotiate(prefer="loss")
    assert workspace.preview.of_request(same.request) is preview
    other = workspace.negotiation.negotiate(prefer="loss", k=7)
    assert workspace.preview.of_request(other.request) is None
