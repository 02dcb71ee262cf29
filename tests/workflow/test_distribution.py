"""The distribution of one node of a profile, against counts in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import oracle
import shoal
from example_counts import examples
from problems import Case, cases
from shoal.cli.app import app
from shoal.document.figures import save
from shoal.errors import UnknownName, UsageError
from shoal.workflow.profile.distribution import Histogram, NodeDistribution
from shoal.workflow.profile.profile import Profile, tabulated
from shoal.workflow.profile.source import PolicyDefaults

pytestmark = pytest.mark.usefixtures("both_modes")


def naive(
    case: Case, node: tuple[int, ...], sensitive: list[Any] | None = None
) -> list[tuple[int, int, int, int | None]]:
    """List each class size (or number of sensitive values) with its records, cumulated, and its classes."""
    records, classes = Counter(), Counter()
    for rows in oracle.classes(case.rows, case.hierarchies, node).values():
        value = len(rows) if sensitive is None else len({sensitive[row] for row in rows})
        records[value] += len(rows)
        classes[value] += 1
    bars, total = [], 0
    for value in sorted(records):
        total += records[value]
        bars.append((value, records[value], total, classes[value] if sensitive is None else None))
    return bars


def plain(histogram: Histogram) -> list[tuple[int, int, int, int | None]]:
    return [(bar.value, bar.records, bar.cumulative, bar.classes) for bar in histogram.bars]


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), data=st.data())
def test_a_distribution_is_what_a_naive_count_says(case: Case, data: st.DataObject) -> None:
    case.low, case.high, case.same_level = [0] * len(case.low), oracle.heights(case.hierarchies), []
    profile = tabulated(case.problem(), PolicyDefaults("k", case.k, case.limit, {}, {}))
    if data.draw(st.booleans()):
        profile = profile.best("5%")  # a node that it lacks is counted
    node = tuple(data.draw(st.integers(0, height)) for height in profile.lattice.heights)
    k, l = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    found = profile.distribution(dict(zip(profile.lattice.columns, node, strict=True)), k=k, l=l)
    sizes, *others = found.histograms
    assert plain(sizes) == naive(case, node)
    assert sizes.suppressed == sum(records for value, records, *_ in plain(sizes) if value < k)
    assert (found.height, found.limit, found.records) == (sum(node), case.limit, len(case.rows))
    assert found.classes == sum(bar.classes or 0 for bar in sizes.bars)
    assert {one.sensitive for one in others} == {*case.columns, *(["l"] if case.l > 1 else [])}
    for other in others:
        values = case.sensitive if other.sensitive == "l" else case.columns[other.sensitive]
        assert plain(other) == naive(case, node, values)
        gone = oracle.suppressed(case.rows, case.hierarchies, node, l=l, sensitive=values)
        assert other.suppressed == gone


FLAT = {"role": "quasi-identifier", "hierarchy": "flat"}
TABLE = {"sex": list("ffmmf"), "ward": list("aabbb"), "illness": ["flu", "gout", "flu", "flu", "gout"]}


def policy(**changes: Any) -> dict[str, Any]:
    columns = {"sex": FLAT, "ward": FLAT, "illness": {"role": "sensitive"}}
    models = [{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2}}]
    return {"columns": columns, "models": models, "suppression_limit": 1, **changes}


@pytest.fixture(scope="module")
def profile() -> Profile:
    return shoal.profile(pd.DataFrame(TABLE), policy())


def test_the_policys_k_l_and_limit_are_marked(profile: Profile, tmp_path: Path) -> None:
    found = profile.distribution({})
    assert (found.node, found.classes, found.limit) == ({"sex": 0, "ward": 0}, 3, 1)
    assert [(one.model, one.least, one.suppressed) for one in found.histograms] == [("k", 2, 1), ("l", 2, 3)]
    again = Profile.load(profile.save(tmp_path / "p")).distribution({"sex": 0}, k=3, suppression_limit="40%")
    assert (again.limit, again.histograms[0].suppressed) == (2, 5)
    shown = str(found)
    assert "1 of 5 records (20%) below, within the limit" in shown
    assert "3 of 5 records (60%) below, above the limit" in shown


def test_a_distribution_is_drawn_linear_and_logarithmic(profile: Profile, tmp_path: Path) -> None:
    found = profile.distribution({"ward": 1})
    figures = found.document().figures
    assert [figure.scale for figure in figures] == ["linear", "log", "linear", "log"]
    for figure in figures:
        cumulative = figure.strips[1].panels[0]
        assert any(name in cumulative for name in ("k = 2", "l = 2"))
        assert cumulative["limit 1"][0] == (1.0, 1.0)
    assert len(save(figures, tmp_path, ["svg"])) == 4
    assert "limit 0" not in profile.distribution({}, suppression_limit=0).document().figures[1].order
    assert found.plot() is not None


def test_wrong_nodes_are_refused(profile: Profile) -> None:
    for node, kind, text in [
        ({"sexx": 1}, UnknownName, "Did you mean 'sex'"),
        ({"sex": 2}, UsageError, "The level of 'sex' must be from 0 to 1, got 2"),
        ({"sex": True}, UsageError, "must be from 0 to 1, got True"),
        ([1], UsageError, "A node is levels by column"),
    ]:
        with pytest.raises(kind, match=text):
            profile.distribution(node)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="k must be at least 1, got 0"):
        profile.distribution({}, k=0)
    part = replace(profile.best("1%", by="lattice"), problem=None)  # the top
    with pytest.raises(UsageError, match="To count a node that the profile lacks the data is needed"):
        part.distribution({"sex": 0, "ward": 1})
    both = shoal.profile(pd.DataFrame(TABLE), policy(same_level=[["sex", "ward"]]))
    assert both.distribution({"ward": 1}).node == {"sex": 1, "ward": 1}
    with pytest.raises(UsageError, match="Columns that share their level must have equal levels: sex, ward"):
        both.distribution({"sex": 0, "ward": 1})


def test_the_command_shows_and_draws_a_node(tmp_path: Path) -> None:
    data, rules, output = tmp_path / "data.csv", tmp_path / "policy.json", tmp_path / "p"
    pd.DataFrame(TABLE).to_csv(data, index=False)
    rules.write_text(json.dumps(policy()), encoding="utf-8")
    asked = ["profile", str(data), "--policy", str(rules), "--output", str(output), "--node"]

    def run(*options: str) -> Any:
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, [*asked, *options])

    for node, message in [
        ("sex=3", "The level of 'sex' must be from 0 to 1, got 3."),
        ("sex=0,sex=1", "--node names 'sex' twice, with the levels 0 and 1. Give one."),
    ]:
        refused = run(node)
        assert refused.exit_code == 2
        assert message in refused.output
        assert not output.exists()
    shown = run("sex=1", "--plots", str(tmp_path / "plots"))
    assert shown.exit_code == 0, shown.output
    assert "Records by class size" in shown.stdout
    drawn = sorted(path.name for path in (tmp_path / "plots").glob("*.svg"))
    assert drawn == [
        "class-sizes-linear.svg", "class-sizes-log.svg", "sensitive-values-1-linear.svg",
        "sensitive-values-1-log.svg",
    ]  # fmt: skip
    told = json.loads(run("sex=1", "--json", "--force").stdout)["distribution"]
    found = shoal.profile(pd.DataFrame(TABLE), policy()).distribution({"sex": 1})
    assert isinstance(found, NodeDistribution)
    assert told == json.loads(json.dumps(found.to_dict()))
