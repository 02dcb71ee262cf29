"""Candidate nodes: those that each search chose among, against the oracle, and where they are written."""

from __future__ import annotations

import csv
import json
import math
from itertools import pairwise
from operator import le
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import oracle
import shoal
from example_counts import examples
from problems import Case, cases
from shoal.algorithms import ALGORITHMS
from shoal.cli.app import app
from shoal.errors import OutputError, UsageError
from shoal.workflow.candidates import candidate_nodes
from shoal.workflow.search import search

pytestmark = pytest.mark.usefixtures("both_modes")

LISTING = [name for name in ALGORITHMS if ALGORITHMS.load(name).lists_candidates]


def naive_candidates(case: Case, name: str) -> set[tuple[int, ...]]:
    every = oracle.nodes(case.hierarchies, case.low, case.high, case.same_level)
    passed = [
        n for n in every if oracle.acceptable(case.rows, case.hierarchies, n, case.limit, **case.asked())
    ]
    if name == "incognito":
        return set(passed)
    if name == "samarati":
        return {node for node in passed if sum(node) == min(map(sum, passed))}
    return {n for n in passed if not any(m != n and all(map(le, m, n)) for m in passed)}


def test_the_searches_of_the_papers_list_their_candidates() -> None:
    assert LISTING == ["all-minimal", "incognito", "ola", "samarati"]


@pytest.mark.parametrize("name", LISTING)
@settings(max_examples=examples(120), deadline=None)
@given(case=cases(), most=st.integers(1, 6))
def test_candidates_are_those_of_the_definition(name: str, case: Case, most: int) -> None:
    problem, algorithm = case.problem(), ALGORITHMS.create(name)
    assume(not algorithm.refuses(problem))
    expected = naive_candidates(case, name)
    assume(expected)
    _, evaluation = search(problem, algorithm)
    listed = candidate_nodes(problem, evaluation)
    nodes = [tuple(candidate.levels.values()) for candidate in listed]
    assert set(nodes) == expected
    assert len(nodes) == len(expected)
    for node, candidate in zip(nodes, listed, strict=True):
        assert candidate.suppressed == oracle.suppressed(case.rows, case.hierarchies, node, **case.asked())
        loss = oracle.loss(case.metric, case.rows, case.hierarchies, node, **case.wishes())
        assert math.isclose(candidate.loss, loss, rel_tol=1e-9, abs_tol=1e-9)
        assert candidate.height == sum(node)
        assert candidate.chosen == (node == evaluation.node)
    assert listed[0].chosen
    losses = [candidate.loss for candidate in listed]
    assert all(low <= high + 1e-9 for low, high in pairwise(losses))
    assert candidate_nodes(problem, evaluation, most) == listed[:most]


def table() -> pd.DataFrame:
    ages = [20, 21, 23, 25, 28, 31, 34, 36, 47, 47, 48, 49, 52, 55, 58, 80]
    return pd.DataFrame({"age": ages, "loss": list("fm" * 8)})


def policy(**changes: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "loss": {"role": "quasi-identifier", "hierarchy": "flat"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": 2, **changes}


def files(folder: Path, **changes: Any) -> list[str]:
    data, rules = folder / "data.csv", folder / "policy.json"
    table().to_csv(data, index=False)
    rules.write_text(json.dumps(policy(**changes)), encoding="utf-8")
    return ["anonymize", str(data), "--policy", str(rules), "--output", str(folder / "r.csv"), "--json"]


@pytest.mark.parametrize("name", LISTING)
def test_the_command_writes_every_candidate(name: str, tmp_path: Path) -> None:
    release = shoal.anonymize(table(), policy(algorithm=name))
    expected = [node.to_dict() for node in release.candidate_nodes]
    command = files(tmp_path, algorithm=name)
    printed = json.loads(CliRunner().invoke(app, [*command, "--candidates", str(tmp_path / "c.json")]).stdout)
    assert printed["candidates"] == len(expected)
    assert printed["candidate_nodes"] == expected[:100]
    assert printed["candidate_nodes"][0]["levels"] == printed["levels"]
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == expected
    again = [*command, "--force", "--candidates", str(tmp_path / "c.csv"), "--report"]
    assert CliRunner().invoke(app, again).exit_code == 0
    with (tmp_path / "c.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(r["level_age"]), int(r["level_loss"])) for r in rows] == [
        (node["levels"]["age"], node["levels"]["loss"]) for node in expected
    ]
    assert [(int(r["suppressed"]), float(r["loss"]), r["chosen"]) for r in rows] == [
        (node["suppressed"], node["loss"], str(node["chosen"]).lower()) for node in expected
    ]
    assert (tmp_path / "c.csv").stat().st_mode & 0o077 == 0
    report = (tmp_path / "r.csv.private" / "report.html").read_text(encoding="utf-8")
    assert "Nodes among which the metric chose" in report


@pytest.mark.parametrize(
    ("algorithm", "file", "message"),
    [
        ("auto", "c.csv", "'auto' does not list them. Use one of these algorithms: all-minimal, incognito"),
        ("mondrian", "c.csv", "'mondrian' does not list them"),
        ("ola", "c.txt", "written as .csv or .json"),
        ("ola", "r.csv", "is the output of the release"),
        ("ola", "data.csv", "is the input"),
        ("ola", "known.csv", "exists"),
        ("ola", "missing/c.csv", "does not exist"),
    ],
)
def test_a_wrong_request_for_candidates_writes_nothing(
    algorithm: str, file: str, message: str, tmp_path: Path
) -> None:
    command = files(tmp_path, algorithm=algorithm)
    (tmp_path / "known.csv").write_text("a", encoding="utf-8")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = CliRunner().invoke(app, [*command, "--candidates", str(tmp_path / file)])
    assert result.exit_code == 2
    assert message in json.loads(result.stdout)["message"]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_release_without_candidates_has_none_to_write(tmp_path: Path) -> None:
    release = shoal.anonymize(table(), policy())
    assert release.candidate_nodes == ()
    assert release.to_dict()["candidate_nodes"] is None
    with pytest.raises(UsageError, match="'contour' does not list them"):
        release.write_candidates(tmp_path / "c.csv")
    listed = shoal.anonymize(table(), policy(algorithm="ola"))
    with pytest.raises(OutputError, match="written as"):
        listed.write_candidates(tmp_path / "c.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": {"ola": {"refine": True}}},
        {"margin": "50%"},
        {"margin": "50%", "algorithm": "incognito", "metric": "discernibility"},
        {"margin": "100%", "algorithm": "incognito", "metric": "coverage"},
    ],
)
def test_what_is_done_after_the_search_keeps_the_candidates(changes: dict[str, Any]) -> None:
    margin = changes.pop("margin", None)
    release = shoal.anonymize(table(), policy(**{"algorithm": "ola", **changes}), margin=margin)
    assert len(release.candidate_nodes) == len(release.evaluation.candidates) > 0
    problem = release.basis.problem  # type: ignore[union-attr]
    assert candidate_nodes(problem, release.evaluation, 1) == release.candidate_nodes[:1]
    (chosen,) = [node for node in release.candidate_nodes if node.chosen]
    assert chosen.levels == release.start
    if margin:
        assert chosen.suppressed == release.suppressed  # by the policy itself, not by the stricter search


def test_compare_lists_candidates_where_they_are_asked_for(tmp_path: Path) -> None:
    searches = ["ola", "contour", "incognito"]
    plain = shoal.compare(table(), policy(), algorithms=searches)
    assert all(row.candidate_nodes is None for row in plain.rows)
    asked = shoal.compare(
        table(), policy(), algorithms=searches, candidates=True, journal=tmp_path / "journal"
    )
    for row in asked.rows:
        release = shoal.anonymize(table(), policy(algorithm=row.algorithm))
        assert row.candidate_nodes == release.to_dict()["candidate_nodes"]
        assert row.loss_evaluations == release.to_dict()["loss_evaluations"]
        assert row.candidate_graph == release.to_dict()["candidate_graph"]
        assert (row.candidate_graph is None) == (row.algorithm != "incognito")
    resumed = shoal.compare(
        table(), policy(), algorithms=searches, candidates=True, journal=tmp_path / "journal"
    )
    assert resumed == asked
    with pytest.raises(OutputError, match="another run"):
        shoal.compare(table(), policy(), algorithms=searches, journal=tmp_path / "journal")
    asked.write(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        written = {row["algorithm"]: row for row in csv.DictReader(file)}
    assert json.loads(written["ola"]["candidate_nodes"]) == asked.rows[0].candidate_nodes
    command = ["compare", *files(tmp_path)[1:4], "--algorithm", "ola", "--candidates", "--json"]
    (row,) = json.loads(CliRunner().invoke(app, command).stdout)
    assert row["candidate_nodes"] == asked.rows[0].candidate_nodes


def test_a_search_that_is_stopped_writes_no_candidates(tmp_path: Path, monkeypatch: Any) -> None:
    from shoal.algorithms.ola import Ola
    from shoal.core.evaluator import Evaluator
    from shoal.errors import OutOfTime

    def stopped(self: Ola, problem: Any, evaluate: Evaluator) -> Any:
        evaluate(problem.lattice.top)
        evaluate.out_of_time = True
        raise OutOfTime

    monkeypatch.setattr(Ola, "search", stopped)
    path = tmp_path / "c.csv"
    result = CliRunner().invoke(app, [*files(tmp_path, algorithm="ola"), "--candidates", str(path)])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["candidate_nodes"] is None
    assert "stopped before it had listed its candidates" in result.stderr
    assert not path.exists()
