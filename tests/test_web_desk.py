"""The desk: its answers are the workflow's own, its state is kept, and a change drops what depends on it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.choose import engine_for
from shoal.engines.duckdb import DuckDb
from shoal.errors import DataError, HierarchyError, PolicyError, ShoalError, UnknownName, UsageError
from shoal.init import guess
from shoal.inspection import Inspection, inspect
from shoal.policies.presets import PRESETS, preset_text
from shoal.policy import Policy
from shoal.profiling.offer import adopted
from shoal.sample import bundled
from shoal.spreadsheet import Sheet, lines_of
from shoal.web import views
from shoal.web.desk import Desk
from shoal.web.desks import Desks
from shoal.web.jobs import Jobs
from shoal.web.refusals import NotReady, Refused, field_of


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return bundled(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with the sample, tabulated; tests that change it take a fresh one."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.open_sample()
    desk.tabulate()
    return desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return _small(tmp_path)


def _small(home: Path) -> Desk:
    rows = "\n".join(f"{20 + n % 7},{'AB'[n % 2]},{'xyz'[n % 3]},{n}" for n in range(60))
    (home / "small.csv").write_text(f"age,town,illness,note\n{rows}\n", encoding="utf-8")
    desk = Desk(home / "desk")
    desk.folder.mkdir()
    desk.open(home / "small.csv")
    desk.choose_role("illness", "sensitive")
    desk.choose_role("note", "identifier")
    desk.choose_hierarchy("age", {"intervals": [2, 4]})
    desk.choose_hierarchy("town", "flat")
    desk.wish(models=[{"k-anonymity": {"k": 3}}])
    return desk


# The answers are the workflow's own.


def test_the_column_table_is_what_init_guesses(shared: Desk, sample: tuple[Path, Path]) -> None:
    rows = shared.columns()
    for row, found in zip(rows, guess(sample[0]), strict=True):
        told = (row.column, row.kind, row.distinct, row.missing, row.unique_share, row.reason)
        assert told == (
            found.column, found.kind, found.distinct, found.missing, found.unique_share, found.reason,
        )  # fmt: skip
        assert row.suggested_role == found.role.value
        assert (row.identifier and row.identifier.model_dump()) == (
            found.identifier and found.identifier.to_dict()
        )
    letters = {row.column: row.identifier.letter for row in rows if row.identifier}
    assert letters["name"] == "A"
    assert letters["admitted"] == "C"
    assert "sex" not in letters


def test_the_policy_of_the_sample_is_its_own(shared: Desk, sample: tuple[Path, Path]) -> None:
    assert shared.policy().written() == Policy.load(sample[1]).written()


def test_the_diagnosis_is_that_of_diagnose(shared: Desk, sample: tuple[Path, Path]) -> None:
    found = shared.diagnose(5, "1%")
    own = shoal.diagnose(sample[0], shared.quasi_identifiers)
    assert found.unsafe.found == own.unsafe_sets(5, 50).found
    assert found.safe.found == own.largest_sets(5, 50).found
    measured = shoal.measure(sample[0], shared.quasi_identifiers)
    assert (found.risk.k, found.risk.unique) == (measured.k, measured.unique_records)
    assert found.risk.average == measured.classes / measured.records
    assert found.risk.highest == 1 / measured.k
    assert shared.curve(["age", "sex"], 10) == own.suppression_by_k(["age", "sex"], 10)


def test_a_negotiation_is_that_of_the_profile(shared: Desk, sample: tuple[Path, Path]) -> None:
    own = shoal.profile(sample[0], sample[1])
    for wishes in ({}, {"k": 3}, {"k": 40, "suppression_limit": 5}, {"l": 3, "max_level": {"age": 1}}):
        assert shared.negotiate(**wishes).to_dict() == own.negotiate(**wishes).to_dict()
    assert shared.negotiate(k=5, prefer="loss").to_dict() == own.negotiate(k=5, prefer="loss").to_dict()


def test_the_lattice_shows_what_the_profile_holds(shared: Desk) -> None:
    profile = shared.tabulated
    view = views.lattice_view(profile, 5)
    suppressed = profile.suppressed(5)
    assert len(view.points) == profile.lattice.size
    assert not view.binned
    for point in view.points[::97]:
        assert point.suppressed == suppressed[profile.lattice.index(point.node)]
        assert point.height == sum(point.node)
        assert point.share == point.suppressed / 5000
    rows = views.by_height(profile, 5)
    assert sum(row.nodes for row in rows) == profile.lattice.size
    for row in rows:
        own = [point.suppressed for point in view.points if point.height == row.height]
        assert (row.least, row.nodes) == (min(own), len(own))
        assert row.mean == pytest.approx(sum(own) / len(own))


def test_a_lattice_too_large_to_draw_is_binned_and_loses_no_node(shared: Desk) -> None:
    profile = shared.tabulated
    view = views.lattice_view(profile, 5, most=100)
    assert view.binned
    assert sum(point.nodes for point in view.points) == profile.lattice.size
    least = {row.height: row.least for row in views.by_height(profile, 5)}
    for height, own in least.items():
        assert min(point.suppressed for point in view.points if point.height == height) == own


def test_a_node_to_keep_is_among_the_points_of_a_large_lattice(shared: Desk) -> None:
    profile = shared.tabulated
    for place in (0, 7, profile.lattice.size // 2, profile.lattice.size - 1):
        node = profile.lattice.node(profile.levels[place].tolist())
        view = views.lattice_view(profile, 5, most=100, keep=[place])
        assert 50 <= len(view.points) <= 100
        assert node in [point.node for point in view.points]
        assert sum(point.nodes for point in view.points) == profile.lattice.size
        assert all(point.height == sum(point.node) for point in view.points)


def test_losses_of_columns_add_up_to_the_loss(shared: Desk) -> None:
    profile = shared.tabulated
    exact = shared.negotiate(k=5, prefer="loss").exact
    assert exact is not None
    found = views.loss_by_column(profile, exact.node)
    assert sum(row["loss"] for row in found["columns"]) == pytest.approx(exact.loss)
    with pytest.raises(UnknownName, match="Unknown separable metric"):
        views.loss_by_column(profile, exact.node, "beauty")
    with pytest.raises(Refused, match="The node needs a level of 'age' from 0 to 4"):
        views.loss_by_column(profile, {**exact.node, "age": 9})


def test_examples_are_records_that_climbed(shared: Desk) -> None:
    profile = shared.tabulated
    exact = shared.negotiate(k=5).exact
    assert exact is not None
    found = views.examples(profile, exact.node, 5)
    assert len(found) == 10
    for example in found:
        assert example.suppressed == (example.alike < 5)
        for name, before, after in zip(profile.lattice.columns, example.before, example.after, strict=True):
            trial = shared.preview(name, shared.policy().columns[name].hierarchy, values=10**6).preview
            assert trial is not None
            assert after in {row[exact.node[name]] for row in trial.examples if row[0] == before}


def test_a_release_is_that_of_anonymize(desk: Desk, tmp_path: Path) -> None:
    release = desk.release()
    own = shoal.anonymize(tmp_path / "small.csv", desk.policy(), output=tmp_path / "own.csv")
    assert release.levels == own.levels
    assert release.loss == own.loss
    assert release.verification == own.verification
    assert set(desk.files()) == {"release", "recipe", "audit", "policy", "codebook", "report"}
    assert Policy.load(desk.file("policy")) == desk.policy()
    assert shoal.verify(desk.file("release"), desk.file("policy"), recipe=desk.file("recipe")).verified
    assert sorted(desk.file("release").read_text().splitlines()) == sorted(
        (tmp_path / "own.csv").read_text().splitlines()
    )


def test_a_comparison_is_that_of_compare(desk: Desk, tmp_path: Path) -> None:
    found = desk.compare(algorithms=["ola", "datafly"], k=[2, 3])
    own = shoal.compare(tmp_path / "small.csv", desk.policy(), algorithms=["ola", "datafly"], k=[2, 3])
    assert [(row.algorithm, row.k, row.loss, row.levels) for row in found.rows] == [
        (row.algorithm, row.k, row.loss, row.levels) for row in own.rows
    ]


@pytest.mark.parametrize("kind", ["exact", "suppression", "levels", "privacy", "column"])
def test_taking_an_offer_is_adopting_it(kind: str, desk: Desk) -> None:
    desk.choose_settings("age", max_level=1)
    desk.choose_settings("town", max_level=0)
    desk.tabulate()
    answer = desk.negotiate(k=3 if kind == "exact" else 9, suppression_limit=0)
    offer = answer.columns[0] if kind == "column" else getattr(answer, kind)
    assert offer is not None
    policy, levels = adopted(desk.policy(), offer)
    assert desk.take(desk.offer(kind, offer.column)) == levels
    assert desk.policy() == policy
    assert desk.node == levels
    assert desk.release().levels == levels
    with pytest.raises(Refused, match="no such offer"):
        desk.offer("privacy" if kind == "exact" else "exact")


def test_what_is_negotiated_and_not_taken_is_told(desk: Desk) -> None:
    assert desk.untaken() is None
    desk.tabulate()
    desk.negotiate()
    assert desk.untaken() is None  # it is what the policy says
    desk.negotiate(k=7, suppression_limit="10%", max_level={"age": 2})
    told = "(k 7, at most 6 suppressed, age up to 2) was not taken; the release follows the policy: k 3, "
    assert told + "at most 3 suppressed, age up to 3." in (desk.untaken() or "")
    desk.take(desk.offer("exact"))
    assert desk.untaken() is None
    desk.negotiate(l=2, sensitive="illness", suppression_limit="10%")
    assert "(l 2 of illness) was not taken; the release follows the policy: no l of illness." in (
        desk.untaken() or ""
    )
    desk.negotiate(k=1000, suppression_limit=0)
    assert desk.untaken() is None  # it cannot be had


def test_a_share_that_is_taken_stays_one(desk: Desk) -> None:
    desk.tabulate()
    desk.negotiate(k=3, suppression_limit="10%")
    desk.take(desk.offer("exact"))
    assert desk.wishes()["suppression_limit"] == "10%"


def test_a_policy_is_told_in_words(desk: Desk) -> None:
    desk.wish(
        suppression_limit="5%",
        models=[{"k-anonymity": {"k": 3}}, {"alpha-k-anonymity": {"alpha": 0.5, "k": 2}}],
    )
    assert desk.words() == [
        "Removed: note.",
        "Generalized: age, town.",
        "Kept as they are, and protected: illness.",
        "No column is harmless.",
        "Every record looks like at least 2 others in the quasi-identifiers.",
        "The release satisfies alpha-k-anonymity (alpha 0.5, k 2).",
        "At most 3 of 60 records (5%) may be left out.",
        "Among what is acceptable, the least loss by non-uniform-entropy is chosen.",
    ]
    desk.wish(models=None, suppression_limit=0)
    desk.tabulate()
    desk.choose_node({"age": 1, "town": 0})
    assert "No record may be left out." in desk.words()
    assert desk.words()[-1] == "Levels are fixed: age 1, town 0."


@pytest.mark.parametrize("preset", [*PRESETS, None])
def test_a_preset_makes_the_policy_that_init_writes(preset: str | None, desk: Desk, tmp_path: Path) -> None:
    desk.open_sample()
    data, _ = bundled(tmp_path / "sample")
    desk.choose_role("sex", "identifier")
    desk.follow(preset)
    written = tmp_path / "policy.yaml"
    written.write_text(preset_text(preset, guess(data)), encoding="utf-8")
    assert desk.policy().written() == Policy.load(written).written()
    assert desk.preset == preset
    desk.choose_role("sex", "identifier")
    assert desk.preset is None


def test_a_preset_is_told_in_words_and_released(desk: Desk) -> None:
    desk.open_sample()
    desk.follow("safe-harbor")
    assert desk.release().verification.verified
    assert desk.preset == "safe-harbor"
    words = desk.words()
    assert "A record may look like no other in the quasi-identifiers." in words
    assert [told for told in words if told.startswith("Levels begin at age 1")]


def test_an_unknown_preset_is_refused_and_changes_nothing(desk: Desk) -> None:
    before = desk.policy()
    with pytest.raises(UnknownName, match="Did you mean 'safe-harbor'") as error:
        desk.follow("safe-harbour")
    assert field_of(error.value) == "preset"
    assert desk.policy() == before


# Hierarchies in place.


def test_a_hierarchy_that_does_not_fit_says_why_and_the_old_one_stays(desk: Desk) -> None:
    trial = desk.preview("age", {"intervals": [2, 3]})
    assert trial.preview is None
    assert trial.problem
    assert "3 is not one of 2" in trial.problem
    with pytest.raises(HierarchyError, match="level 2 splits") as error:
        desk.choose_hierarchy("age", {"intervals": [2, 3]})
    assert field_of(error.value) == "spec"
    assert desk.policy().columns["age"].hierarchy == {"intervals": [2, 4]}
    trial = desk.preview("town", {"tree": {"north": ["A"]}})
    assert trial.values == ("B",)
    assert "B" not in str(trial.problem).replace("Builder", "")


def test_an_edit_tries_its_hierarchy_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    plain = Inspection.preview

    def counting(self: Inspection, column: str, spec: Any, *rest: Any, **more: Any) -> Any:
        tried.append(spec)
        return plain(self, column, spec, *rest, **more)

    monkeypatch.setattr(Inspection, "preview", counting)
    desk.columns()
    tried.clear()
    for spec in ({"intervals": [3]}, {"intervals": [2, 3]}, {"intervals": [3, 6]}):  # the second does not fit
        if desk.preview("age", spec).preview is not None:  # as the editor does
            desk.choose_hierarchy("age", spec)
            desk.fit()
        desk.columns()
        assert tried == [spec]
        tried.clear()
    desk.upload_hierarchy("town", b"A,x,*\nB,x,*\n")
    desk.fit()
    desk.preview("town", {"csv": "hierarchy.csv"})
    assert tried == [{"csv": "hierarchy.csv"}]
    tried.clear()
    desk.upload_hierarchy("town", b"A,x,y,*\nB,x,y,*\n")  # another file of the same name
    assert tried == [{"csv": "hierarchy.csv"}]
    assert [row.height for row in desk.columns() if row.column == "town"] == [3]


def test_a_preview_shows_values_climbing(desk: Desk) -> None:
    found = desk.preview("age", {"intervals": [2, 4]}, values=3).preview
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


def test_a_hierarchy_file_is_read_once_and_never_from_the_disk(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="Upload it"):
        desk.choose_hierarchy("town", {"csv": str(tmp_path / "small.csv")})
    with pytest.raises(HierarchyError, match=r"'town': 'bad\.csv' is neither UTF-8 nor") as error:
        desk.upload_hierarchy("town", b"\xff\x81", "bad.csv")
    assert str(tmp_path) not in str(error.value)
    desk.upload_hierarchy("town", b"A,land,*\nB,land,*\n", "/etc/towns.csv")
    assert desk.policy().columns["town"].hierarchy == {"csv": "towns.csv"}
    assert desk.release().verification.verified
    assert not list(desk.folder.glob("hierarchy-*"))
    assert desk.hierarchy_note("town") == ""
    desk.upload_hierarchy("town", "A,Süd,*\nB,Süd,*\n".encode("cp1252"), "towns.csv")
    assert desk.hierarchy_note("town").startswith("'towns.csv' is not UTF-8; it was read as Windows-1252.")
    desk.adopt_yaml(desk.policy_text())  # with the same file
    assert desk.hierarchy_note("town")
    desk.choose_hierarchy("town", "flat")
    assert desk.hierarchy_note("town") == ""


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
def test_any_hierarchy_is_answered_in_place(spec: Any, desk: Desk) -> None:
    trial = desk.preview("age", spec)
    assert (trial.preview is None) == (trial.problem is not None)
    if trial.preview is None:
        with pytest.raises(ShoalError):
            desk.choose_hierarchy("age", spec)


def test_a_population_cannot_be_named_from_outside(desk: Desk, tmp_path: Path) -> None:
    people = {"k-map": {"k": 2, "population": str(tmp_path / "small.csv")}}
    with pytest.raises(Refused, match="A population is a file"):
        desk.wish(models=[people])
    with pytest.raises(Refused, match="A population is a file"):
        desk.adopt_yaml(desk.policy_text().replace("k-anonymity:\n    k: 3", f"k-map: {people['k-map']}"))
    desk.adopt(desk.policy().with_(models=[people]))
    assert desk.missing() is None


# What is kept and what drops.


def test_steps_say_what_is_missing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert [step.usable for step in desk.steps()] == [True, False, False, False, False]
    with pytest.raises(NotReady, match="Choose a table first"):
        desk.columns()
    with pytest.raises(NotReady, match="Choose a table first"):
        desk.tabulate()
    desk.open_sample()
    assert all(step.usable for step in desk.steps())
    for name in desk.quasi_identifiers:
        desk.choose_role(name, "other")
    assert desk.steps()[1].missing == "Give at least one column the role quasi-identifier."
    assert [step.usable for step in desk.steps()] == [True, False, False, False, False]
    with pytest.raises(NotReady, match="Negotiate first"):
        desk.offer("exact")


@pytest.fixture
def done(desk: Desk) -> Desk:
    desk.diagnose(3)
    desk.tabulate()
    desk.negotiate(k=3)
    desk.choose_node({"age": 1, "town": 0})
    desk.compare(algorithms=["ola"])
    desk.release()
    return desk


def _left(desk: Desk) -> set[str]:
    results = ("findings", "profile", "negotiation", "node", "comparison", "released")
    return {name for name in results if getattr(desk, name) is not None}


ALL = {"findings", "profile", "negotiation", "node", "comparison", "released"}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda desk: None, ALL),
        (lambda desk: desk.columns(), ALL),
        (lambda desk: desk.preview("age", "flat"), ALL),
        (lambda desk: desk.choose_role("age", "quasi-identifier"), ALL),
        (lambda desk: desk.choose_node({"age": 2, "town": 0}), ALL - {"released"}),
        (lambda desk: desk.wish(suppression_limit=2), ALL - {"comparison", "released"}),
        (lambda desk: desk.wish(metric="precision"), ALL - {"comparison", "released"}),
        (lambda desk: desk.choose_settings("age", max_level=2), ALL - {"comparison", "released"}),
        (lambda desk: desk.choose_hierarchy("age", {"intervals": [5]}), {"findings"}),
        (lambda desk: desk.choose_settings("age", weight=3), {"findings"}),
        (lambda desk: desk.choose_role("illness", "other"), {"findings"}),
        (lambda desk: desk.choose_role("town", "other"), set()),
        (lambda desk: desk.open(desk.table), set()),
    ],
)
def test_a_change_drops_what_depends_on_it_and_nothing_else(done: Desk, change: Any, left: set[str]) -> None:
    assert _left(done) == ALL
    change(done)
    assert _left(done) == left


def test_a_change_taken_back_brings_the_results_back(done: Desk) -> None:
    done.choose_role("town", "other")
    done.choose_hierarchy("age", "flat")
    done.choose_role("town", "quasi-identifier")
    done.choose_hierarchy("age", {"intervals": [2, 4]})
    assert _left(done) == ALL


def test_a_profile_follows_the_wishes_without_being_tabulated_again(done: Desk) -> None:
    done.wish(models=[{"k-anonymity": {"k": 7}}], suppression_limit=4)
    answer = done.negotiate()
    assert (answer.request.least, answer.request.limit) == (7, 4)


def test_wishes_are_taken_together_or_not_at_all(desk: Desk) -> None:
    before = desk.wishes()
    with pytest.raises(UsageError) as error:
        desk.wish(suppression_limit="3%", metric="beauty")
    assert field_of(error.value) == "metric"
    assert desk.wishes() == before
    desk.wish(suppression_limit="3%")
    desk.wish(suppression_limit=None)
    assert desk.wishes() == before


def test_a_policy_of_another_table_is_refused(desk: Desk, sample: tuple[Path, Path]) -> None:
    with pytest.raises(PolicyError, match="The policy is not of this table"):
        desk.adopt(sample[1])
    text = desk.policy_text()
    desk.choose_role("town", "other")
    desk.adopt_yaml(text)
    assert desk.policy_text() == text
    with pytest.raises(PolicyError, match="not valid YAML") as error:
        desk.adopt_yaml("columns: [")
    assert str(desk.folder) not in str(error.value)


def test_an_old_release_goes_when_a_new_one_comes(done: Desk) -> None:
    old = done.file("release")
    done.release("parquet")
    assert not old.exists()
    assert done.file("release").suffix == ".parquet"
    assert os.stat(done.file("release").parent).st_mode & 0o777 == 0o700


def test_safe_cells_are_read_back_as_they_were_but_for_the_apostrophe(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('=a,b\n"-1,5","x\ny"\n"\tq",+\n', encoding="utf-8")
    assert "".join(lines_of(path, Sheet(safe=True))) == "'=a,b\n\"'-1,5\",\"x\ny\"\n'\tq,'+\n"


# Jobs.


def test_a_comparison_can_be_cancelled_inside_a_search(
    desk: Desk, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()

    def endless(*_: Any, progress: Any, **__: Any) -> None:
        while True:
            progress("search", 1, None)
            going.set()

    home = sys.modules["shoal.compare"]
    monkeypatch.setattr(home._Run, "warm", lambda _: None)
    monkeypatch.setattr(home, "search", endless)
    job = jobs.start("desk", "compare", lambda tell: desk.compare(algorithms=["ola"], progress=tell))
    assert going.wait(10)
    job.cancel()
    assert job.wait(10)
    assert job.status == "cancelled"
    assert desk.comparison is None


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
        go.wait(10)
        tell("keep", 0, None)
        kept.append(1)
        return 1

    job = jobs.start("desk", "x", silent)
    assert going.wait(5)
    start = time.monotonic()
    job.cancel()
    assert job.wait(5)
    assert time.monotonic() - start < 2
    assert job.status == "cancelled"
    assert not job.wait_for_thread(0)
    go.set()
    assert job.wait_for_thread(5)
    assert (job.status, job.result, kept) == ("cancelled", None, [])


def test_a_query_ends_with_its_job(jobs: Jobs) -> None:
    going = threading.Event()
    ended: list[str] = []

    def counting(_: Any) -> None:
        engine = engine_for("duckdb", None)
        assert isinstance(engine, DuckDb)
        database = engine.connection.con
        going.set()
        try:
            with engine.told():
                database.execute("SELECT sum(a.range * b.range % 7) FROM range(200_000) a, range(200_000) b")
        except KeyboardInterrupt:
            ended.append("the query")
            raise

    job = jobs.start("desk", "x", counting)
    assert going.wait(20)
    time.sleep(0.2)
    job.cancel()
    assert job.wait_for_thread(5)
    assert (job.status, job.error, ended) == ("cancelled", None, ["the query"])


def test_an_error_that_comes_of_being_cancelled_is_not_told(jobs: Jobs) -> None:
    going, go = threading.Event(), threading.Event()

    def failing(_: Any) -> None:
        going.set()
        go.wait(10)
        message = "The table cannot be read."
        raise DataError(message)

    job = jobs.start("desk", "x", failing)
    assert going.wait(5)
    job.cancel()
    go.set()
    assert job.wait_for_thread(5)
    assert (job.status, job.error) == ("cancelled", None)


def test_work_that_is_let_go_makes_room_for_as_much_again(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.web.jobs.PATIENCE", 0.05)
    go = threading.Event()
    begun: list[str] = []

    def silent(kind: str) -> Any:
        def work(tell: Any) -> None:
            begun.append(kind)
            go.wait(20)
            tell("keep", 0, None)

        return jobs.start("desk", kind, work)

    def until(kinds: list[str]) -> None:
        end = time.monotonic() + 10
        while sorted(begun) != kinds and time.monotonic() < end:
            time.sleep(0.01)
        assert sorted(begun) == kinds

    first = [silent(kind) for kind in "ab"]  # two may run at once
    until(["a", "b"])
    second = [silent(kind) for kind in "cd"]
    for job in first:
        job.cancel()
    until(["a", "b", "c", "d"])
    for job in second:
        job.cancel()
        assert job.wait(5)
    last = silent("e")
    assert not last.wait(0.3)
    assert (last.status, sorted(begun)) == ("waiting", ["a", "b", "c", "d"])  # four have not ended yet
    go.set()
    assert last.wait(5)
    assert last.status == "done"
    assert [job.status for job in first + second] == ["cancelled"] * 4
    assert jobs.start("desk", "f", lambda _: 1).wait(5)


def test_a_table_that_was_cancelled_at_its_last_column_is_not_taken(desk: Desk, jobs: Jobs) -> None:
    path, columns = desk.table, []

    def work(tell: Any) -> None:
        def last(phase: str, done: int, total: int | None) -> None:
            columns.append(done)
            if done == 3:
                job.cancel()
                return
            tell(phase, done, total)

        desk.open(path, "again.csv", last)  # type: ignore[arg-type]

    job = jobs.start("desk", "open", work)
    assert job.wait_for_thread(20)
    assert columns == [0, 1, 2, 3, 4]
    assert (job.status, desk.name) == ("cancelled", "small.csv")


def test_an_unreadable_upload_goes_alone_and_is_named_as_its_custodian_knows_it(tmp_path: Path) -> None:
    desks = Desks()
    name = desks.open()
    try:
        paths = []
        for content in (b"", b"a\n1\n"):
            with desks.receive(name, "mine.csv") as coming:
                coming.write(content)
            paths.append(coming.path)
        with pytest.raises(ShoalError, match=r"'mine\.csv' is empty") as error:
            desks.place(name, paths[0], "mine.csv")
        assert str(desks.private) not in str(error.value)
        assert [path.exists() for path in paths] == [False, True]
        desks.place(name, paths[1], "mine.csv")
        with desks.receive(name, "next.csv") as coming:
            coming.write(b"b\n2\n")
        desks.place(name, coming.path, "next.csv")
        assert (paths[1].exists(), coming.path.exists()) == (False, True)
    finally:
        desks.close()


def test_what_is_opened_has_been_tried(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.open_sample()
    monkeypatch.setattr(Inspection, "preview", lambda *_, **__: pytest.fail("tried again"))
    assert all(row.problem is None for row in desk.columns())
    assert all(step.usable for step in desk.steps())


def test_a_job_tells_its_progress_and_its_end(jobs: Jobs) -> None:
    going, go = threading.Event(), threading.Event()

    def work(tell: Any) -> int:
        tell("search", 3, 10)
        going.set()
        go.wait(5)
        return 42

    job = jobs.start("desk", "x", work)
    assert going.wait(5)
    assert (job.status, job.phase, job.done, job.total) == ("running", "search", 3, 10)
    go.set()
    assert job.wait(5)
    assert (job.status, job.result) == ("done", 42)


def test_an_error_is_one_line_and_a_surprise_shows_no_value(jobs: Jobs) -> None:
    def refused(_: Any) -> None:
        message = "k must be at least 1, got 0."
        raise Refused(message, "k")

    def surprised(_: Any) -> None:
        message = "row ('Anna', 42)"
        raise ValueError(message)

    one, other = jobs.start("desk", "x", refused), jobs.start("desk", "y", surprised)
    assert one.wait(5)
    assert other.wait(5)
    assert (one.status, one.error, one.field) == ("failed", "k must be at least 1, got 0.", "k")
    assert other.error
    assert "Anna" not in other.error
    assert "ValueError" in other.error


def test_a_new_job_of_the_same_kind_on_the_desk_cancels_the_old(jobs: Jobs) -> None:
    def endless(tell: Any) -> None:
        while True:
            tell("x", 0, None)

    one = jobs.start("desk", "x", endless)
    elsewhere = jobs.start("other", "x", endless)
    waiting = jobs.start("desk", "y", endless)
    again = jobs.start("desk", "x", lambda tell: 1)
    assert one.wait(5)
    assert one.status == "cancelled"
    assert not elsewhere.ended
    elsewhere.cancel()
    waiting.cancel()
    assert again.wait(5)
    assert again.status == "done"
    assert waiting.wait(5)
    assert waiting.status == "cancelled"
