"""A search whose time is used up: a good result so far, a proven bound, and what is said of both."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import csv

import shoal
from example_counts import examples
from problems import METRIC_NAMES, Case, cases, edges, metric_of
from shoal.algorithms import ALGORITHMS, contour, projection
from shoal.algorithms.descent import descend
from shoal.algorithms.projection import projected_bound
from shoal.core.evaluator import Evaluator
from shoal.errors import Infeasible, UsageError
from shoal.workflow.compare.comparison import Comparison
from shoal.workflow.search import search
from terminal import Conversation
from ticking import let_looks_take_time

BOUNDED = [name for name in METRIC_NAMES if metric_of(name).over_columns is not None]


def bound(case: Case, size: int) -> float | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "_SIZES", (size,))
        return projected_bound(Evaluator(case.problem()), ALGORITHMS.create("contour"), 60)


def test_the_bounded_metrics_are_those_that_are_made_of_columns() -> None:
    assert BOUNDED == [
        "composite-by-column",
        "coverage",
        "height",
        "non-uniform-entropy",
        "non-uniform-entropy-normalized",
        "precision",
        "uniform-entropy",
    ]


@settings(max_examples=examples(300), deadline=None)
@given(case=cases() | edges(), size=st.sampled_from([2, 4, 8]), metric=st.sampled_from(BOUNDED))
def test_no_acceptable_node_falls_below_the_bound(case: Case, size: int, metric: str) -> None:
    case.metric = metric
    problem = case.problem()
    try:
        least = search(problem, ALGORITHMS.create("exhaustive"))[1].loss
    except Infeasible:
        assume(False)
    known = bound(case, size)
    assume(known is not None)
    assert known is not None
    assert known <= least + 1e-9 * max(1.0, abs(least))


def crossed(metric: str, limit: int = 0) -> Case:
    """Four columns of four values: any two together are rare, so that groups of columns bound the loss."""
    rows = [(a % 4, a // 4 % 4, a // 16 % 4, (a + a // 4) % 4) for a in range(64)]
    tree = {v: [str(v), str(v // 2), "*"] for v in range(4)}
    return Case(rows, [tree] * 4, [0] * 64, 8, 1, limit, metric, [1.0, 2.0, 1.0, 1.0], [0] * 4, [2] * 4, [])


@pytest.mark.parametrize("metric", BOUNDED)
def test_groups_of_columns_bound_the_loss(metric: str) -> None:
    case = crossed(metric)
    known, least = bound(case, 30), search(case.problem(), ALGORITHMS.create("exhaustive"))[1].loss
    assert known is not None
    assert 0 < known <= least * (1 + 1e-9)


def test_without_time_the_bound_is_that_of_the_lowest_nodes() -> None:
    evaluate = Evaluator(crossed("precision").problem())
    assert projected_bound(evaluate, ALGORITHMS.create("contour"), 0) in (0.0, None)


@pytest.mark.parametrize(
    "metric", ["composite-by-size", "coverage-geometric", "discernibility", "class-size"]
)
def test_other_metrics_have_no_bound(metric: str) -> None:
    assert bound(crossed(metric), 30) is None


@settings(max_examples=examples(100), deadline=None)
@given(case=cases())
def test_descent_ends_at_a_node_that_no_change_of_one_column_improves(case: Case) -> None:
    problem = case.problem()
    evaluate = Evaluator(problem)
    descend(problem, evaluate)
    if evaluate.best is None:
        return
    index = problem.lattice.index(evaluate.best.node)
    for axis, levels in enumerate(problem.lattice.shape):
        for level in range(levels):
            other = evaluate(problem.lattice.node([*index[:axis], level, *index[axis + 1 :]]))
            least = evaluate.best.loss
            assert not other.acceptable or other.loss >= least - 1e-9 * abs(least)


def test_a_large_lattice_is_bounded_while_it_is_searched() -> None:
    """The search for branches still proves the optimum, and the progress says how far the best is from it."""
    case, phases = crossed("precision"), []

    def progress(phase: str, done: int, total: int | None) -> None:
        phases.append((phase, total))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contour, "MAX_STORED_NODES", 30)
        patch.setattr("shoal.core.evaluator.MAX_STORED_NODES", 30)
        patch.setattr(projection, "_SIZES", (30,))
        patch.setattr("shoal.core.evaluator._REPORT_EVERY", -1.0)
        _, found = search(case.problem(), ALGORITHMS.create("contour"), progress=progress)
    _, truth = search(case.problem(), ALGORITHMS.create("exhaustive"))
    assert math.isclose(found.loss, truth.loss)
    assert str(found.proven) == "least loss"
    assert {total for _, total in phases} == {None}
    assert any(phase.endswith("above the optimum") for phase, _ in phases)


def wide() -> tuple[pa.Table, dict[str, Any]]:
    """Sixteen columns, five levels each: 1.5e11 nodes."""
    random = np.random.default_rng(7)
    columns = {f"c{c}": random.integers(0, 16, 2000) for c in range(16)}
    hierarchy = {"intervals": [2, 4, 8]}
    roles = {name: {"role": "quasi-identifier", "hierarchy": hierarchy} for name in columns}
    policy = {"columns": roles, "models": [{"k-anonymity": {"k": 5}}], "suppression_limit": "20%"}
    return pa.table(columns), policy | {"metric": "coverage"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    let_looks_take_time(monkeypatch)


@pytest.mark.usefixtures("clock")
def test_a_release_whose_time_is_up_says_how_far_it_is_from_the_optimum() -> None:
    table, policy = wide()
    release = shoal.anonymize(table, policy, seconds=0.5)
    found = release.to_dict()
    assert (found["proven"], found["verified"]) == ("acceptable", True)
    assert 0 < found["lower_bound"] <= found["loss"]
    said = next(fact.value for fact in release.document().facts if fact.key == "proven")
    assert "above the optimum, among" in str(said)
    assert release.policy.metric == "coverage"


@pytest.mark.usefixtures("clock")
def test_a_release_of_a_metric_without_a_bound_says_so() -> None:
    table, policy = wide()
    release = shoal.anonymize(table, policy | {"metric": "discernibility"}, seconds=0.5)
    assert release.to_dict()["lower_bound"] is None
    assert "no bound" in str(next(fact.value for fact in release.document().facts if fact.key == "proven"))


@pytest.mark.usefixtures("clock")
def test_finer_classes_are_searched_after_the_time_is_up() -> None:
    table, policy = wide()
    plain = shoal.anonymize(table, policy | {"algorithm": "contour"}, seconds=0.5)
    finer = shoal.anonymize(table, policy | {"algorithm": {"contour": {"refine": True}}}, seconds=0.5)
    assert finer.evaluation.recoding is not None
    assert finer.loss < plain.loss
    assert finer.evaluation.lower_bound is None  # which holds for nodes


@pytest.mark.parametrize("name", ["contour", "ola", "samarati", "exhaustive"])
def test_a_release_is_found_however_few_the_seconds(name: str) -> None:
    columns = {"a": list(range(40)), "b": [n % 4 for n in range(40)]}
    roles = {name: {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}} for name in columns}
    policy = {"columns": roles, "models": [{"k-anonymity": {"k": 5}}], "algorithm": name}
    release = shoal.anonymize(pa.table(columns), policy, seconds=1e-9)
    assert release.verification.verified
    assert release.to_dict()["proven"] == "acceptable"


@pytest.mark.usefixtures("clock")
def test_a_comparison_says_which_rows_used_up_their_seconds() -> None:
    table, policy = wide()
    found: Comparison = shoal.compare(table, policy, algorithms=["contour", "datafly"], seconds=1)
    contour_row, datafly = found.rows
    assert contour_row.note == "out of time: the best after 1 seconds"
    assert contour_row.loss is not None
    assert datafly.note is None


@pytest.mark.parametrize("seconds", [0, "x", -1])
def test_seconds_are_above_0_or_none(seconds: object) -> None:
    table, policy = wide()
    with pytest.raises(UsageError, match="seconds must be a number above 0"):
        shoal.anonymize(table, policy, seconds=seconds)  # type: ignore[arg-type]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    table, policy = wide()
    csv.write_csv(table, tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    return tmp_path


def release_in_terminal(folder: Path) -> Conversation:
    """Start a release whose search has no end, and interrupt it once it has a result and a bound.

    The bound and the way to the next check have as many seconds as they need: on a busy machine the bound
    would be given up, and the process ended before the check.
    """
    code = (
        "import sys; from shoal.algorithms import contour; from shoal.files import signals;"
        "contour.BOUND_SECONDS = signals.GRACE = 600;"
        "from shoal.__main__ import main; sys.exit(main())"
    )
    words = ["anonymize", "t.csv", "--policy", "p.yaml", "--output", "o.csv", "--seconds", "none"]
    paths = [str(folder / word) if "." in word else word for word in words]
    terminal = Conversation([sys.executable, "-c", code, *paths])
    terminal.wait_for("above the optimum")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("Release it? [y/N]")
    return terminal


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_ctrl_c_in_a_terminal_offers_the_best_result_so_far(inputs: Path) -> None:
    terminal = release_in_terminal(inputs)
    terminal.type("y\n")
    code, screen = terminal.end()
    assert code == 0, screen
    assert "% of the information." in screen
    assert "Verified" in screen
    assert shoal.verify(inputs / "o.csv", inputs / "p.yaml").verified


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("answer", ["\n", "SIGINT"])
def test_without_a_yes_nothing_is_released(inputs: Path, answer: str) -> None:
    terminal = release_in_terminal(inputs)
    if answer == "SIGINT":
        terminal.process.send_signal(signal.SIGINT)
    else:
        terminal.type(answer)
    code, screen = terminal.end()
    assert code == 130, screen
    assert "SIGINT ended the command. Nothing was released." in screen
    assert {path.name for path in inputs.iterdir()} == {"t.csv", "p.yaml"}


def test_elsewhere_ctrl_c_ends_a_search_without_a_question(inputs: Path) -> None:
    """The signal comes with the first report of progress of a search that has a result."""
    code = (
        "import os, signal, sys; from shoal.core.evaluator import Evaluator\n"
        "import shoal.files.signals; shoal.files.signals.GRACE = 600\n"
        "real = Evaluator._record\n"
        "def note(self, evaluation):\n"
        "    os.kill(os.getpid(), signal.SIGINT) if self.nodes_evaluated == 9 else None\n"
        "    return real(self, evaluation)\n"
        "Evaluator._record = note\n"
        "from shoal.__main__ import main; sys.exit(main())\n"
    )
    words = ["anonymize", "t.csv", "--policy", "p.yaml", "--output", "o.csv", "--seconds", "none"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=inputs,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    assert (done.returncode, "SIGINT ended the command. Nothing was released." in done.stderr) == (130, True)
    assert "[y/N]" not in done.stderr
    assert {path.name for path in inputs.iterdir()} == {"t.csv", "p.yaml"}
