"""The workspace: its answers are the workflow's, and a change drops the results that depend on it."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.columns.presets import PRESETS, preset_text
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import DataError, HierarchyError, PolicyError, ShoalError, UnknownName, UsageError
from shoal.policy.policy import Policy
from shoal.sample import bundled
from shoal.web.errors import NotReady, Refused
from shoal.web.workspace import lattice as views
from shoal.web.workspace.jobs import Jobs, Slot
from shoal.web.workspace.workspace import Workspace
from shoal.web.workspace.workspaces import Workspaces
from shoal.workflow.inspect import Inspection, guess, inspect
from shoal.workflow.profile.offer import PrivacyLevel, adopted
from shoal.workflow.release.spreadsheet import Sheet, lines_of
from shoal.workflow.session import choose_engine


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return bundled(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace with the sample, tabulated; tests that change it take a fresh one."""
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    workspace.open_sample()
    workspace.negotiation.tabulate()
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return _small(tmp_path)


def _small(home: Path) -> Workspace:
    rows = "\n".join(f"{20 + n % 7},{'AB'[n % 2]},{'xyz'[n % 3]},{n}" for n in range(60))
    (home / "small.csv").write_text(f"age,town,illness,note\n{rows}\n", encoding="utf-8")
    workspace = Workspace(home / "workspace")
    workspace.folder.mkdir()
    workspace.open(home / "small.csv")
    workspace.table.choose_role("illness", "sensitive")
    workspace.table.choose_role("note", "identifier")
    workspace.table.choose_hierarchy("age", {"intervals": [2, 4]})
    workspace.table.choose_hierarchy("town", "flat")
    workspace.draft.change(models=[{"k-anonymity": {"k": 3}}])
    return workspace


# The answers are the workflow's own.


def test_the_column_table_is_what_init_guesses(shared: Workspace, sample: tuple[Path, Path]) -> None:
    rows = shared.table.rows()
    for row, found in zip(rows, guess(sample[0]), strict=True):
        told = (row.column, row.kind, row.distinct, row.missing, row.unique_share, row.reason)
        assert told == (
            found.column, found.kind, found.distinct, found.missing, found.unique_share, found.reason,
        )  # fmt: skip
        assert row.suggested_role == found.role.value
        assert (row.identifier and asdict(row.identifier)) == (
            found.identifier and found.identifier.to_dict()
        )
    letters = {row.column: row.identifier.letter for row in rows if row.identifier}
    assert letters["name"] == "A"
    assert letters["admitted"] == "C"
    assert "sex" not in letters


def test_a_table_begins_with_the_policy_that_init_suggests(tmp_path: Path, sample: tuple[Path, Path]) -> None:
    workspace = Workspace(tmp_path)
    workspace.open(sample[0])
    assert workspace.draft.is_suggested
    suggested = workspace.draft.policy()
    workspace.draft.follow_preset(None)
    assert not workspace.draft.is_suggested
    assert workspace.draft.policy().metric == suggested.metric == "coverage"
    assert workspace.draft.policy().roles == suggested.roles


def test_the_policy_of_the_sample_is_its_own(shared: Workspace, sample: tuple[Path, Path]) -> None:
    assert shared.draft.policy().written() == Policy.load(sample[1]).written()


def test_the_diagnosis_is_that_of_diagnose(shared: Workspace, sample: tuple[Path, Path]) -> None:
    found = shared.diagnosis.run(5, "1%")
    own = shoal.diagnose(sample[0], shared.table.quasi_identifiers)
    assert found.unsafe.findings == own.unsafe_sets(5, 50).findings
    assert found.safe.findings == own.largest_sets(5, 50).findings
    measured = shoal.measure(sample[0], shared.table.quasi_identifiers)
    assert (found.risk.k, found.risk.unique) == (measured.k, measured.unique_records)
    assert found.risk.average == measured.classes / measured.records
    assert found.risk.highest == 1 / measured.k
    assert shared.diagnosis.curve(["age", "sex"], 10) == own.suppression_by_k(["age", "sex"], 10)


def test_a_negotiation_is_that_of_the_profile(shared: Workspace, sample: tuple[Path, Path]) -> None:
    own = shoal.profile(sample[0], sample[1])
    for request in ({}, {"k": 3}, {"k": 40, "suppression_limit": 5}, {"l": 3, "max_level": {"age": 1}}):
        assert shared.negotiation.negotiate(**request).to_dict() == own.negotiate(**request).to_dict()
    assert (
        shared.negotiation.negotiate(k=5, prefer="loss").to_dict()
        == own.negotiate(k=5, prefer="loss").to_dict()
    )


def test_a_partial_lattice_has_nodes_of_each_height_and_counts_the_node_asked_for(
    workspace: Workspace,
) -> None:
    part = workspace.negotiation.tabulate(share="1%")
    assert len(part.numbers) == len(set(part.heights.tolist())) == sum(part.lattice.heights) + 1
    full = part.problem
    assert full is not None
    assert part.lattice.columns == ("age", "town")
    for age, town in itertools.product(range(part.lattice.heights[0] + 1), (0, 1)):
        node = {"age": age, "town": town}
        answer = workspace.negotiation.negotiate(k=5, suppression_limit="50%", max_level=node)
        sizes = full.classes((age, town)).sizes
        assert (answer.exact is not None) == (sizes[sizes < 5].sum() <= 30)
        assert answer.settled


def test_the_lattice_shows_what_the_profile_holds(shared: Workspace) -> None:
    profile = shared.negotiation.tabulated
    view = views.lattice_view(profile, PrivacyLevel(5))
    suppressed = profile.suppressed(5)
    assert len(view.points) == profile.lattice.size
    assert not view.binned
    for point in view.points[::97]:
        assert point.suppressed == suppressed[profile.lattice.index(point.node)]
        assert point.height == sum(point.node)
        assert point.share == point.suppressed / 5000
    rows = views.by_height(profile, PrivacyLevel(5))
    assert sum(row.nodes for row in rows) == profile.lattice.size
    for row in rows:
        own = [point.suppressed for point in view.points if point.height == row.height]
        assert (row.least, row.nodes) == (min(own), len(own))
        assert row.mean == pytest.approx(sum(own) / len(own))


def test_a_lattice_too_large_to_draw_is_binned_and_loses_no_node(shared: Workspace) -> None:
    profile = shared.negotiation.tabulated
    view = views.lattice_view(profile, PrivacyLevel(5), most=100)
    assert view.binned
    assert sum(point.nodes for point in view.points) == profile.lattice.size
    least = {row.height: row.least for row in views.by_height(profile, PrivacyLevel(5))}
    for height, own in least.items():
        assert min(point.suppressed for point in view.points if point.height == height) == own


def test_a_node_to_keep_is_among_the_points_of_a_large_lattice(shared: Workspace) -> None:
    profile = shared.negotiation.tabulated
    for place in (0, 7, profile.lattice.size // 2, profile.lattice.size - 1):
        node = profile.lattice.node(profile.levels[place].tolist())
        view = views.lattice_view(profile, PrivacyLevel(5), most=100, keep=[place])
        assert 50 <= len(view.points) <= 100
        assert node in [point.node for point in view.points]
        assert sum(point.nodes for point in view.points) == profile.lattice.size
        assert all(point.height == sum(point.node) for point in view.points)


def test_losses_of_columns_add_up_to_the_loss(shared: Workspace) -> None:
    profile = shared.negotiation.tabulated
    exact = shared.negotiation.negotiate(k=5, prefer="loss").exact
    assert exact is not None
    found = views.loss_by_column(profile, exact.node, "non-uniform-entropy")
    assert sum(row["loss"] for row in found["columns"]) == pytest.approx(exact.loss)
    with pytest.raises(UnknownName, match="Unknown separable metric"):
        views.loss_by_column(profile, exact.node, "beauty")
    with pytest.raises(Refused, match="The node needs a level of 'age' from 0 to 4"):
        views.loss_by_column(profile, {**exact.node, "age": 9})


def test_examples_are_records_that_climbed(shared: Workspace) -> None:
    profile = shared.negotiation.tabulated
    exact = shared.negotiation.negotiate(k=5).exact
    assert exact is not None
    found = views.examples(profile, exact.node, PrivacyLevel(5))
    assert len(found) == 10
    for example in found:
        assert example.suppressed == (example.alike < 5)
        for name, before, after in zip(profile.lattice.columns, example.before, example.after, strict=True):
            trial = shared.table.preview(
                name, shared.draft.policy().columns[name].hierarchy, values=10**6
            ).preview
            assert trial is not None
            assert after in {row[exact.node[name]] for row in trial.examples if row[0] == before}


def test_a_release_is_that_of_anonymize(workspace: Workspace, tmp_path: Path) -> None:
    release = workspace.release.run()
    own = shoal.anonymize(tmp_path / "small.csv", workspace.draft.policy(), output=tmp_path / "own.csv")
    assert release.levels == own.levels
    assert release.loss == own.loss
    assert release.verification == own.verification
    assert set(workspace.release.files()) == {
        "release",
        "recipe",
        "audit",
        "policy",
        "codebook",
        "report",
        "certificate",
    }
    assert Policy.load(workspace.release.file("policy")) == workspace.draft.policy()
    assert shoal.verify(
        workspace.release.file("release"),
        workspace.release.file("policy"),
        recipe=workspace.release.file("recipe"),
    ).verified
    assert sorted(workspace.release.file("release").read_text().splitlines()) == sorted(
        (tmp_path / "own.csv").read_text().splitlines()
    )


def test_a_comparison_is_that_of_compare(workspace: Workspace, tmp_path: Path) -> None:
    found = workspace.comparison.run(algorithms=["ola", "datafly"], k=[2, 3])
    own = shoal.compare(
        tmp_path / "small.csv", workspace.draft.policy(), algorithms=["ola", "datafly"], k=[2, 3]
    )
    assert [(row.algorithm, row.k, row.loss, row.levels) for row in found.rows] == [
        (row.algorithm, row.k, row.loss, row.levels) for row in own.rows
    ]


@pytest.mark.parametrize("kind", ["exact", "suppression", "levels", "privacy", "column"])
def test_taking_an_offer_is_adopting_it(kind: str, workspace: Workspace) -> None:
    workspace.table.change_settings("age", max_level=1)
    workspace.table.change_settings("town", max_level=0)
    workspace.negotiation.tabulate()
    answer = workspace.negotiation.negotiate(k=3 if kind == "exact" else 9, suppression_limit=0)
    offer = answer.columns[0] if kind == "column" else getattr(answer, kind)
    assert offer is not None
    policy, levels = adopted(workspace.draft.policy(), offer)
    assert workspace.negotiation.take(workspace.negotiation.offer(kind, offer.column)) == levels
    assert workspace.draft.policy() == policy
    assert workspace.negotiation.node == levels
    assert workspace.release.run().levels == levels
    with pytest.raises(Refused, match="no such offer"):
        workspace.negotiation.offer("privacy" if kind == "exact" else "exact")


def test_what_is_negotiated_and_not_taken_is_told(workspace: Workspace) -> None:
    assert workspace.negotiation.not_taken() is None
    workspace.negotiation.tabulate()
    workspace.negotiation.negotiate()
    assert workspace.negotiation.not_taken() is None  # it is what the policy says
    workspace.negotiation.negotiate(k=7, suppression_limit="10%", max_level={"age": 2})
    told = "(k 7, at most 6 suppressed, age at most in 4-year bands) was not taken; the release follows the "
    assert told + "policy: k 3, at most 3 suppressed, age without a limit." in (
        workspace.negotiation.not_taken() or ""
    )
    workspace.negotiation.take(workspace.negotiation.offer("exact"))
    assert workspace.negotiation.not_taken() is None
    workspace.negotiation.negotiate(l=2, sensitive="illness", suppression_limit="10%")
    assert "(l 2 of illness) was not taken; the release follows the policy: no l of illness." in (
        workspace.negotiation.not_taken() or ""
    )
    workspace.negotiation.negotiate(k=1000, suppression_limit=0)
    assert workspace.negotiation.not_taken() is None  # it cannot be had


def test_a_share_that_is_taken_stays_one(workspace: Workspace) -> None:
    workspace.negotiation.tabulate()
    workspace.negotiation.negotiate(k=3, suppression_limit="10%")
    workspace.negotiation.take(workspace.negotiation.offer("exact"))
    assert workspace.draft.settings()["suppression_limit"] == "10%"


def test_a_policy_is_told_in_words(workspace: Workspace) -> None:
    workspace.draft.change(
        suppression_limit="5%",
        models=[{"k-anonymity": {"k": 3}}, {"alpha-k-anonymity": {"alpha": 0.5, "k": 2}}],
    )
    assert workspace.release.summary() == [
        "Removed: note.",
        "Generalized: age, town.",
        "Kept as they are, and protected by the models: illness.",
        "No column is harmless.",
        "Every record looks like at least 2 others in the quasi-identifiers.",
        "The release satisfies alpha-k-anonymity (alpha 0.5, k 2).",
        "At most 3 of 60 records (5%) may be left out.",
        "Among the acceptable recodings, the one of least loss by coverage is chosen; if time runs out, the "
        "best so far.",
    ]
    workspace.draft.change(models=None, suppression_limit=0)
    workspace.negotiation.tabulate()
    workspace.negotiation.choose_node({"age": 1, "town": 0})
    assert "No record may be left out." in workspace.release.summary()
    assert workspace.release.summary()[-1] == "Levels are fixed: age in 2-year bands, town as it is."


@pytest.mark.parametrize("preset", [*PRESETS, None])
def test_a_preset_makes_the_policy_that_init_writes(
    preset: str | None, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.open_sample()
    data, _ = bundled(tmp_path / "sample")
    workspace.table.choose_role("sex", "identifier")
    workspace.draft.follow_preset(preset)
    written = tmp_path / "policy.yaml"
    written.write_text(preset_text(preset, guess(data)), encoding="utf-8")
    assert workspace.draft.policy().written() == Policy.load(written).written()
    assert workspace.draft.preset == preset
    workspace.table.choose_role("sex", "identifier")
    assert workspace.draft.preset is None


def test_a_preset_is_told_in_words_and_released(workspace: Workspace) -> None:
    workspace.open_sample()
    workspace.draft.follow_preset("safe-harbor")
    assert workspace.release.run().verification.verified
    assert workspace.draft.preset == "safe-harbor"
    words = workspace.release.summary()
    assert "A record may look like no other in the quasi-identifiers." in words
    assert [told for told in words if told.startswith("At least this coarse: age ")]


def test_an_unknown_preset_is_refused_and_changes_nothing(workspace: Workspace) -> None:
    before = workspace.draft.policy()
    with pytest.raises(UnknownName, match="Did you mean 'safe-harbor'") as error:
        workspace.draft.follow_preset("safe-harbour")
    assert error.value.field == "preset"
    assert workspace.draft.policy() == before


# Hierarchies in place.


# The two questions and the advice.


def test_the_answers_make_the_policy_that_init_makes(workspace: Workspace) -> None:
    answers: dict[str, Any] = {"known": ["age", "town"], "keep": ["illness"], "k": 4}
    workspace.known_keep.run(**answers)
    made = shoal.init(workspace.table.path, **answers)
    # The studio writes the defaults out.
    assert workspace.draft.policy().written()["columns"] == made.written()["columns"]
    assert workspace.draft.policy().privacy_models == made.privacy_models
    assert workspace.draft.settings()["metric"] == "coverage"
    answer = workspace.known_keep.answer
    assert (answer.known, answer.keep, answer.can_undo) == (("age", "town"), ("illness",), True)


def test_the_answers_are_undone_once(done: Workspace) -> None:
    before = done.draft.to_yaml()
    done.known_keep.run(known=["town"])
    assert done.draft.to_yaml() != before
    assert done.release.result is None
    done.table.choose_role("age", "sensitive")
    done.known_keep.undo()
    assert done.draft.to_yaml() == before
    assert _left(done) == ALL
    assert not done.known_keep.answer.can_undo
    with pytest.raises(NotReady, match="no answers to undo"):
        done.known_keep.undo()


def test_answers_that_cannot_be_followed_change_nothing(workspace: Workspace) -> None:
    before = workspace.draft.to_yaml()
    for answers in ({"known": ["nobody"]}, {"known": workspace.table.loaded.names}, {"keep": []}):
        with pytest.raises(UsageError) as error:
            workspace.known_keep.run(**answers)
        assert error.value.field == next(iter(answers))
    assert workspace.draft.to_yaml() == before
    assert not workspace.known_keep.answer.can_undo


def test_another_table_forgets_the_answers(workspace: Workspace) -> None:
    workspace.known_keep.run(known=["town"])
    assert workspace.table.path is not None
    workspace.open(workspace.table.path)
    assert workspace.known_keep.answer.known is None
    with pytest.raises(NotReady):
        workspace.known_keep.undo()


def test_what_an_advice_retains_is_what_its_release_retains(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.open_sample()
    workspace.negotiation.tabulate()
    node = workspace.negotiation.negotiate(k=20, suppression_limit="5%").exact
    assert node is not None
    workspace.negotiation.choose_node(node.node)
    with pytest.raises(NotReady, match="Release first"):
        workspace.advice.run()
    release = workspace.release.run()
    advice = workspace.advice.run(seconds=60)
    assert advice
    assert workspace.advice.result == advice
    with pytest.raises(Refused, match="number must be below"):
        workspace.advice.use(len(advice))
    workspace.advice.use(0)
    assert workspace.draft.policy().written() == Policy.load(advice[0].policy).written()
    assert workspace.negotiation.node is None
    assert workspace.advice.result is None  # it is about a release of other settings
    better = workspace.release.run(seconds=60)
    assert better.retained_overall == pytest.approx(advice[0].retained, abs=0.02)
    assert better.retained_overall > release.retained_overall


def test_a_hierarchy_that_does_not_fit_says_why_and_the_old_one_stays(workspace: Workspace) -> None:
    trial = workspace.table.preview("age", {"intervals": [2, 3]})
    assert trial.preview is None
    assert trial.problem
    assert "3 is not one of 2" in trial.problem
    with pytest.raises(HierarchyError, match="level 2 splits") as error:
        workspace.table.choose_hierarchy("age", {"intervals": [2, 3]})
    assert error.value.field == "spec"
    assert workspace.draft.policy().columns["age"].hierarchy == {"intervals": [2, 4]}
    trial = workspace.table.preview("town", {"tree": {"north": ["A"]}})
    assert trial.values == ("B",)
    assert "B" not in str(trial.problem).replace("Builder", "")


def test_an_edit_tries_its_hierarchy_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    plain = Inspection.preview

    def counting(self: Inspection, column: str, spec: Any, *rest: Any, **more: Any) -> Any:
        tried.append(spec)
        return plain(self, column, spec, *rest, **more)

    monkeypatch.setattr(Inspection, "preview", counting)
    workspace.table.rows()
    tried.clear()
    for spec in ({"intervals": [3]}, {"intervals": [2, 3]}, {"intervals": [3, 6]}):  # the second does not fit
        if workspace.table.preview("age", spec).preview is not None:  # as the editor does
            workspace.table.choose_hierarchy("age", spec)
            workspace.prepare()
        workspace.table.rows()
        assert tried == [spec]
        tried.clear()
    workspace.table.upload_hierarchy("town", b"A,x,*\nB,x,*\n")
    workspace.prepare()
    workspace.table.preview("town", {"csv": "hierarchy.csv"})
    assert tried == [{"csv": "hierarchy.csv"}]
    tried.clear()
    workspace.table.upload_hierarchy("town", b"A,x,y,*\nB,x,y,*\n")  # another file of the same name
    assert tried == [{"csv": "hierarchy.csv"}]
    assert [row.height for row in workspace.table.rows() if row.column == "town"] == [3]


def test_a_preview_shows_values_climbing(workspace: Workspace) -> None:
    found = workspace.table.preview("age", {"intervals": [2, 4]}, values=3).preview
    assert found is not None
    assert found.groups == (7, 4, 2, 1)
    assert found.examples == (
        ("20", "20-21", "20-23", "*"),
        ("23", "22-23", "20-23", "*"),
        ("26", "26-27", "24-27", "*"),
    )
    tree = found.tree(most=1)
    assert tree["name"] == "*"
    assert [child["name"] for child in tree["children"]] == ["20-23", "1 more"]


def test_a_preview_shows_numbers_from_the_smallest_up(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("n\n" + "\n".join(map(str, (10, 9, -3, 100, 9, 2))) + "\n\n")
    found = inspect(tmp_path / "x.csv").preview("n", {"intervals": [5, 50]})
    assert [row[0] for row in found.examples if row[0] != "missing"] == ["-3", "2", "9", "10", "100"]
    tree = found.tree()
    assert [child["name"] for child in tree["children"]][:3] == ["-50 to -1", "0-49", "100-149"]
    assert [child["name"] for child in tree["children"][1]["children"]] == ["0-4", "5-9", "10-14"]


def test_a_hierarchy_file_is_read_once_and_never_from_the_disk(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="Upload it"):
        workspace.table.choose_hierarchy("town", {"csv": str(tmp_path / "small.csv")})
    with pytest.raises(HierarchyError, match=r"'town': 'bad\.csv' is neither UTF-8 nor") as error:
        workspace.table.upload_hierarchy("town", b"\xff\x81", "bad.csv")
    assert str(tmp_path) not in str(error.value)
    workspace.table.upload_hierarchy("town", b"A,land,*\nB,land,*\n", "/etc/towns.csv")
    assert workspace.draft.policy().columns["town"].hierarchy == {"csv": "towns.csv"}
    assert workspace.release.run().verification.verified
    assert not list(workspace.folder.glob("hierarchy-*"))
    assert workspace.table.hierarchy_note("town") == ""
    workspace.table.upload_hierarchy("town", "A,Süd,*\nB,Süd,*\n".encode("cp1252"), "towns.csv")
    assert workspace.table.hierarchy_note("town").startswith(
        "'towns.csv' is not UTF-8; it was read as Windows-1252."
    )
    workspace.draft.adopt_yaml(workspace.draft.to_yaml())  # with the same file
    assert workspace.table.hierarchy_note("town")
    workspace.table.choose_hierarchy("town", "flat")
    assert workspace.table.hierarchy_note("town") == ""


@pytest.mark.parametrize(
    "spec",
    [
        None, 7, [], {}, "", "nothing", {"intervals": [0]}, {"intervals": [-1]}, {"intervals": "x"},
        {"intervals": [1e300]}, {"intervals": [1e-300]}, {"intervals": [[1]]}, {"prefix": [99]},
        {"prefix": [1.5]}, {"dates": ["fortnight"]}, {"dates": ["year"], "format": "%Q"}, {"cuts": []},
        {"cuts": [[1], [2]]}, {"tree": {"a": {"b": {"c": []}}}}, {"tree": None}, {"order": ["20"]},
        {"order": ["20"], "sizes": [0]}, {"csv": "x.csv"}, {"csv": None}, {"flat": None, "prefix": [1]},
        {"intervals": [2], "origin": "x"}, {"intervals": [2], "top_coding": 10**9}, {"flat": 3},
    ],
    ids=str,
)  # fmt: skip
def test_any_hierarchy_is_answered_in_place(spec: Any, workspace: Workspace) -> None:
    trial = workspace.table.preview("age", spec)
    assert (trial.preview is None) == (trial.problem is not None)
    if trial.preview is None:
        with pytest.raises(ShoalError):
            workspace.table.choose_hierarchy("age", spec)


def test_a_population_cannot_be_named_from_outside(workspace: Workspace, tmp_path: Path) -> None:
    people = {"k-map": {"k": 2, "population": str(tmp_path / "small.csv")}}
    with pytest.raises(Refused, match="A population is a file"):
        workspace.draft.change(models=[people])
    with pytest.raises(Refused, match="A population is a file"):
        workspace.draft.adopt_yaml(
            workspace.draft.to_yaml().replace("k-anonymity:\n    k: 3", f"k-map: {people['k-map']}")
        )
    workspace.draft.adopt(workspace.draft.policy().with_(models=[people]))
    assert workspace.draft.missing() is None


# What is kept and what drops.


def test_steps_say_what_is_missing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert [step.usable for step in workspace.steps()] == [True, False, False, False, False]
    with pytest.raises(NotReady, match="Choose a table first"):
        workspace.table.rows()
    with pytest.raises(NotReady, match="Choose a table first"):
        workspace.negotiation.tabulate()
    workspace.open_sample()
    assert all(step.usable for step in workspace.steps())
    for name in workspace.table.quasi_identifiers:
        workspace.table.choose_role(name, "other")
    assert workspace.steps()[1].missing == "Give at least one column the role quasi-identifier."
    assert [step.usable for step in workspace.steps()] == [True, False, False, False, False]
    with pytest.raises(NotReady, match="Negotiate first"):
        workspace.negotiation.offer("exact")


@pytest.fixture
def done(workspace: Workspace) -> Workspace:
    workspace.diagnosis.run(3)
    workspace.negotiation.tabulate()
    workspace.negotiation.negotiate(k=3)
    workspace.negotiation.choose_node({"age": 1, "town": 0})
    workspace.comparison.run(algorithms=["ola"])
    workspace.release.run()
    return workspace


def _left(workspace: Workspace) -> set[str]:
    results = {
        "findings": workspace.diagnosis.findings,
        "profile": workspace.negotiation.profile,
        "negotiation": workspace.negotiation.answer,
        "node": workspace.negotiation.node,
        "comparison": workspace.comparison.result,
        "released": workspace.release.result,
    }
    return {name for name, result in results.items() if result is not None}


ALL = {"findings", "profile", "negotiation", "node", "comparison", "released"}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda workspace: None, ALL),
        (lambda workspace: workspace.table.rows(), ALL),
        (lambda workspace: workspace.table.preview("age", "flat"), ALL),
        (lambda workspace: workspace.table.choose_role("age", "quasi-identifier"), ALL),
        (lambda workspace: workspace.negotiation.choose_node({"age": 2, "town": 0}), ALL - {"released"}),
        (lambda workspace: workspace.draft.change(suppression_limit=2), ALL - {"comparison", "released"}),
        (lambda workspace: workspace.draft.change(metric="precision"), ALL - {"comparison", "released"}),
        (
            lambda workspace: workspace.table.change_settings("age", max_level=2),
            ALL - {"comparison", "released"},
        ),
        (lambda workspace: workspace.table.choose_hierarchy("age", {"intervals": [5]}), {"findings"}),
        (lambda workspace: workspace.table.change_settings("age", weight=3), {"findings"}),
        (lambda workspace: workspace.table.choose_role("illness", "other"), {"findings"}),
        (lambda workspace: workspace.table.choose_role("town", "other"), set()),
        (lambda workspace: workspace.open(workspace.table.path), set()),
    ],
)
def test_a_change_drops_what_depends_on_it_and_nothing_else(
    done: Workspace, change: Any, left: set[str]
) -> None:
    assert _left(done) == ALL
    change(done)
    assert _left(done) == left


def test_a_change_taken_back_brings_the_results_back(done: Workspace) -> None:
    done.table.choose_role("town", "other")
    done.table.choose_hierarchy("age", "flat")
    done.table.choose_role("town", "quasi-identifier")
    done.table.choose_hierarchy("age", {"intervals": [2, 4]})
    assert _left(done) == ALL


def test_a_profile_follows_the_settings_without_being_tabulated_again(done: Workspace) -> None:
    done.draft.change(models=[{"k-anonymity": {"k": 7}}], suppression_limit=4)
    answer = done.negotiation.negotiate()
    assert (answer.request.least, answer.request.limit) == (7, 4)


def test_settings_are_changed_together_or_not_at_all(workspace: Workspace) -> None:
    before = workspace.draft.settings()
    with pytest.raises(UsageError) as error:
        workspace.draft.change(suppression_limit="3%", metric="beauty")
    assert error.value.field == "metric"
    assert workspace.draft.settings() == before
    workspace.draft.change(suppression_limit="3%")
    workspace.draft.change(suppression_limit=None)
    assert workspace.draft.settings() == before


def test_a_policy_of_another_table_is_refused(workspace: Workspace, sample: tuple[Path, Path]) -> None:
    with pytest.raises(PolicyError, match="The policy is not for this table"):
        workspace.draft.adopt(sample[1])
    text = workspace.draft.to_yaml()
    workspace.table.choose_role("town", "other")
    workspace.draft.adopt_yaml(text)
    assert workspace.draft.to_yaml() == text
    with pytest.raises(PolicyError, match="not valid YAML") as error:
        workspace.draft.adopt_yaml("columns: [")
    assert str(workspace.folder) not in str(error.value)


def test_an_old_release_goes_when_a_new_one_comes(done: Workspace) -> None:
    old = done.release.file("release")
    done.release.run("parquet")
    assert not old.exists()
    assert done.release.file("release").suffix == ".parquet"
    assert os.stat(done.release.file("release").parent).st_mode & 0o777 == 0o700


def test_safe_cells_are_read_back_as_they_were_but_for_the_apostrophe(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('=a,b\n"-1,5","x\ny"\n"\tq",+\n', encoding="utf-8")
    assert "".join(lines_of(path, Sheet(safe=True))) == "'=a,b\n\"'-1,5\",\"x\ny\"\n'\tq,'+\n"


# Jobs.


def test_a_comparison_can_be_cancelled_inside_a_search(
    workspace: Workspace, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()

    def endless(*_: Any, progress: Any, **__: Any) -> None:
        while True:
            progress("search", 1, None)
            going.set()

    home = sys.modules["shoal.workflow.compare.compare"]
    monkeypatch.setattr(home._Run, "warm_up", lambda _: None)
    monkeypatch.setattr(home, "search", endless)
    job = jobs.start(
        "workspace", "compare", lambda tell: workspace.comparison.run(algorithms=["ola"], progress=tell)
    )
    assert going.wait(300)
    job.cancel()
    assert job.wait(300)
    assert job.status == "cancelled"
    assert workspace.comparison.result is None


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    found = Jobs(at_once=2)
    yield found
    found.close()


def test_work_that_gives_no_word_is_let_go_and_keeps_nothing(jobs: Jobs) -> None:
    going, go = threading.Event(), threading.Event()
    kept: list[int] = []

    def silent(tell: Any) -> int:
        going.set()
        go.wait(3600)
        tell("keep", 0, None)
        kept.append(1)
        return 1

    job = jobs.start("workspace", "x", silent)
    assert going.wait(300)
    job.cancel()
    assert job.wait(300)  # although the work itself has not ended: see below
    assert job.status == "cancelled"
    assert not job.wait_for_thread(0)
    go.set()
    assert job.wait_for_thread(300)
    assert (job.status, job.result, kept) == ("cancelled", None, [])


def test_a_query_ends_with_its_job(jobs: Jobs) -> None:
    going = threading.Event()
    ended: list[str] = []

    def counting(_: Any) -> None:
        engine = choose_engine("duckdb", None)
        assert isinstance(engine, DuckDb)
        database = engine.connection
        going.set()
        try:
            with engine.translate_errors():
                database.execute("SELECT sum(a.range * b.range % 7) FROM range(200_000) a, range(200_000) b")
        except KeyboardInterrupt:
            ended.append("the query")
            raise

    job = jobs.start("workspace", "x", counting)
    assert going.wait(300)
    job.cancel()  # perhaps before the query begins
    assert job.wait_for_thread(300)
    assert (job.status, job.error, ended) == ("cancelled", None, ["the query"])


def test_an_error_that_comes_of_being_cancelled_is_not_told(jobs: Jobs) -> None:
    going, go = threading.Event(), threading.Event()

    def failing(_: Any) -> None:
        going.set()
        go.wait(300)
        message = "The table cannot be read."
        raise DataError(message)

    job = jobs.start("workspace", "x", failing)
    assert going.wait(300)
    job.cancel()
    go.set()
    assert job.wait_for_thread(300)
    assert (job.status, job.error) == ("cancelled", None)


def test_work_that_is_let_go_makes_room_for_as_much_again(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.web.workspace.jobs.PATIENCE", 0.0)
    go, arrived, given_up = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
    begun: list[str] = []
    abandon = Slot.abandon

    def count_abandoned(slot: Slot) -> None:
        abandon(slot)
        given_up.release()

    monkeypatch.setattr(Slot, "abandon", count_abandoned)

    def silent(kind: str) -> Any:
        def work(tell: Any) -> None:
            begun.append(kind)
            arrived.release()
            go.wait(600)
            tell("keep", 0, None)

        return jobs.start("workspace", kind, work)

    first = [silent(kind) for kind in "ab"]  # two may run at once
    assert all(arrived.acquire(timeout=300) for _ in first)
    second = [silent(kind) for kind in "cd"]
    for job in first:
        job.cancel()
    assert all(arrived.acquire(timeout=300) for _ in second)
    for job in second:
        job.cancel()
        assert job.wait(300)
    last = silent("e")
    assert all(given_up.acquire(timeout=300) for _ in first + second)  # no other slot will be freed
    assert last.slot.state == "waiting"
    assert (last.status, sorted(begun)) == ("waiting", ["a", "b", "c", "d"])  # four have not ended yet
    go.set()
    assert last.wait(300)
    assert last.status == "done"
    assert [job.status for job in first + second] == ["cancelled"] * 4
    assert jobs.start("workspace", "f", lambda _: 1).wait(300)


def test_a_table_that_was_cancelled_at_its_last_column_is_not_taken(workspace: Workspace, jobs: Jobs) -> None:
    path, columns, started = workspace.table.path, [], threading.Event()

    def work(tell: Any) -> None:
        assert started.wait(300)  # before that, `job` has no value

        def last(phase: str, done: int, total: int | None) -> None:
            columns.append(done)
            if done == 3:
                job.cancel()
                return
            tell(phase, done, total)

        workspace.open(path, "again.csv", last)  # type: ignore[arg-type]

    job = jobs.start("workspace", "open", work)
    started.set()
    assert job.wait_for_thread(300)
    assert columns == [0, 1, 2, 3, 4]
    assert (job.status, workspace.table.name) == ("cancelled", "small.csv")


def test_an_unreadable_upload_goes_alone_and_is_named_as_its_custodian_knows_it(tmp_path: Path) -> None:
    workspaces = Workspaces()
    name = workspaces.open()
    try:
        paths = []
        for content in (b"", b"a\n1\n"):
            with workspaces.receive_upload(name, "mine.csv") as coming:
                coming.write(content)
            paths.append(coming.path)
        with pytest.raises(ShoalError, match=r"'mine\.csv' is empty") as error:
            workspaces.open_table(name, paths[0], "mine.csv")
        assert str(workspaces.private) not in str(error.value)
        assert [path.exists() for path in paths] == [False, True]
        workspaces.open_table(name, paths[1], "mine.csv")
        with workspaces.receive_upload(name, "next.csv") as coming:
            coming.write(b"b\n2\n")
        workspaces.open_table(name, coming.path, "next.csv")
        assert (paths[1].exists(), coming.path.exists()) == (False, True)
    finally:
        workspaces.close()


def test_what_is_opened_has_been_tried(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.open_sample()
    monkeypatch.setattr(Inspection, "preview", lambda *_, **__: pytest.fail("tried again"))
    assert all(row.problem is None for row in workspace.table.rows())
    assert all(step.usable for step in workspace.steps())


def test_a_job_tells_its_progress_and_its_end(jobs: Jobs) -> None:
    going, go = threading.Event(), threading.Event()

    def work(tell: Any) -> int:
        tell("search", 3, 10)
        going.set()
        go.wait(300)
        return 42

    job = jobs.start("workspace", "x", work)
    assert going.wait(300)
    assert (job.status, job.phase, job.done, job.total) == ("running", "search", 3, 10)
    go.set()
    assert job.wait(300)
    assert (job.status, job.result) == ("done", 42)


def test_an_error_is_one_line_and_a_surprise_shows_no_value(jobs: Jobs) -> None:
    def refused(_: Any) -> None:
        message = "k must be at least 1, got 0."
        raise Refused(message, "k")

    def surprised(_: Any) -> None:
        message = "row ('Anna', 42)"
        raise ValueError(message)

    one, other = jobs.start("workspace", "x", refused), jobs.start("workspace", "y", surprised)
    assert one.wait(300)
    assert other.wait(300)
    assert (one.status, one.error, one.field) == ("failed", "k must be at least 1, got 0.", "k")
    assert other.error
    assert "Anna" not in other.error
    assert "ValueError" in other.error


def test_a_new_job_of_the_same_kind_in_a_workspace_cancels_the_old(jobs: Jobs) -> None:
    def endless(tell: Any) -> None:
        while True:
            tell("x", 0, None)

    one = jobs.start("workspace", "x", endless)
    elsewhere = jobs.start("other", "x", endless)
    waiting = jobs.start("workspace", "y", endless)
    again = jobs.start("workspace", "x", lambda tell: 1)
    assert one.wait(300)
    assert one.status == "cancelled"
    assert not elsewhere.ended
    elsewhere.cancel()
    waiting.cancel()
    assert again.wait(300)
    assert again.status == "done"
    assert waiting.wait(300)
    assert waiting.status == "cancelled"
