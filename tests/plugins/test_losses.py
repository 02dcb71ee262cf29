"""The loss of one result by every metric, against the oracle and against the released table."""

from __future__ import annotations

import json
import math
from collections import Counter
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
from problems import Case, cases, composite_parts
from shoal.cli.app import app
from shoal.core.evaluator import Evaluator
from shoal.errors import DataError
from shoal.metrics import METRICS
from shoal.policy.policy import plugin_text
from shoal.workflow.search import losses_by_metric, recode

WITH_OPTIONS = {  # as the oracle names them
    "coverage-geometric": "coverage:aggregate=geometric",
    "non-uniform-entropy-normalized": "non-uniform-entropy:normalized=true",
    **{name: plugin_text({"composite": {"parts": composite_parts(name)}}) for name in oracle.COMPOSITES},
}


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(), data=st.data())
def test_every_loss_of_a_node_is_the_oracles(case: Case, data: st.DataObject) -> None:
    problem = case.problem()
    node = data.draw(st.sampled_from(list(problem.lattice.nodes())))
    losses = losses_by_metric(recode(problem, Evaluator(problem)(node)))
    names = {name for name in METRICS if case.labels or name != "classification"} - {"composite"}
    written = WITH_OPTIONS.get(case.metric)
    assert losses.keys() == names | ({written} if written else set())
    for name, loss in losses.items():
        asked = next((plain for plain, option in WITH_OPTIONS.items() if option == name), name)
        expected = oracle.loss(asked, case.rows, case.hierarchies, node, **case.wishes())
        assert math.isclose(loss, expected, rel_tol=1e-9, abs_tol=1e-9), name


def table() -> pd.DataFrame:
    ages = [20, 21, 23, 25, 28, 31, 34, 36, 47, 47, 48, 49, 52, 55, 58, 80]
    return pd.DataFrame({"age": ages, "sex": list("fm" * 8), "illness": list("abcdabcdabcdabcd")})


def policy(**changes: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
    }
    return {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": 2, **changes}


@pytest.mark.parametrize(
    "algorithm",
    ["auto", {"auto": {"refine": True}}, {"auto": {"cells": True}}, "mondrian", "tds", "anatomy"],
)
def test_the_losses_of_a_release_are_those_of_its_classes(algorithm: Any) -> None:
    changes = {"models": [{"distinct-l-diversity": {"l": 2}}]} if algorithm == "anatomy" else {}
    changes |= {"label": "illness"} if algorithm == "tds" else {}
    release = shoal.anonymize(table(), policy(algorithm=algorithm, **changes))
    losses = release.to_dict()["losses"]
    assert losses[release.to_dict()["metric"]] == pytest.approx(release.loss)
    if algorithm == "anatomy":
        assert "height" not in losses
        return
    columns = [name for name in release.table.columns if name != "illness"]
    sizes = Counter(release.table[columns].astype(str).itertuples(index=False, name=None))
    kept = sum(size**2 for size in sizes.values())
    assert losses["discernibility"] == kept + release.records * release.suppressed
    assert losses["coverage"] == pytest.approx(1 - release.retained_overall)
    if release.levels:
        assert losses["height"] == sum(release.levels.values())


def test_compare_and_the_command_report_every_loss(tmp_path: Path) -> None:
    found = shoal.compare(
        table(), policy(), algorithms=["ola", "datafly", "mondrian"], metrics=["height", "coverage"]
    )
    for row in found.rows:
        if row.loss is None:
            continue
        assert row.losses is not None
        assert row.losses[row.metric] == pytest.approx(row.loss)
    (ola,) = [row for row in found.rows if (row.algorithm, row.metric) == ("ola", "height")]
    release = shoal.anonymize(table(), policy(metric="height", algorithm="ola"))
    assert ola.losses == pytest.approx(dict(release.loss_by_metric))
    found.write(tmp_path / "rows.csv")
    assert (
        json.loads(
            pd.read_csv(tmp_path / "rows.csv").set_index(["algorithm", "metric"]).losses["ola", "height"]
        )
        == ola.losses
    )
    data, rules = tmp_path / "data.csv", tmp_path / "policy.json"
    table().to_csv(data, index=False)
    rules.write_text(json.dumps(policy(metric="height")), encoding="utf-8")
    command = ["anonymize", str(data), "--policy", str(rules), "--output", str(tmp_path / "r.csv"), "--json"]
    told = json.loads(CliRunner().invoke(app, command).stdout)
    assert told["losses"]["height"] == told["loss"]
    assert set(told["losses"]) == set(METRICS) - {"classification", "composite"}


@pytest.mark.parametrize(
    "algorithm", ["auto", {"auto": {"refine": True}}, {"auto": {"cells": True}}, "mondrian"]
)
def test_a_label_that_the_search_does_not_need_is_measured(algorithm: Any) -> None:
    """And changes nothing else."""
    data = table().assign(illness=list("aabbaabbabababcd"))
    plain = shoal.anonymize(data, policy(algorithm=algorithm))
    release = shoal.anonymize(data, policy(algorithm=algorithm, label="illness"))
    assert "classification" not in plain.loss_by_metric
    losses = dict(release.loss_by_metric)
    columns = [name for name in release.table.columns if name != "illness"]
    most = release.table.astype(str).groupby(columns).illness.agg(lambda labels: labels.value_counts().max())
    assert losses.pop("classification") == pytest.approx((16 - most.sum()) / 16)
    assert losses == plain.loss_by_metric
    (row,) = shoal.compare(data, policy(label="illness"), algorithms=[algorithm]).rows
    assert row.losses == pytest.approx(dict(release.loss_by_metric))


def test_a_label_of_one_value_is_refused_only_where_it_is_needed() -> None:
    data = table().assign(illness="a")
    release = shoal.anonymize(data, policy(label="illness"))
    assert release.loss_by_metric["classification"] == release.suppressed / 16
    with pytest.raises(DataError, match="nothing to predict"):
        shoal.anonymize(data, policy(label="illness", metric="classification"))


def test_random_runs_have_mean_losses() -> None:
    rows = shoal.compare(table(), policy(), algorithms=[{"datafly": {"ties": "random"}}]).rows
    assert rows[0].runs > 1
    assert rows[0].losses is not None
    assert rows[0].losses[rows[0].metric] == pytest.approx(rows[0].loss)
