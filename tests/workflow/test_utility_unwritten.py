"""What an analyst would lose is the same before a release is written as after it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import find, recode
from shoal.workflow.session import session
from shoal.workflow.utility.unwritten import unwritten_utility


def people(records: int = 600) -> pa.Table:
    chance = random.Random(7)
    return pa.table(
        {
            "age": [chance.randrange(20, 70) for _ in range(records)],
            "ward": [chance.choice("abcdefgh") for _ in range(records)],
            "sex": [chance.choice(["f", "m", None]) for _ in range(records)],
        }
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"suppression_limit": "30%", "algorithm": "contour"},
        {"local": True},
        {"local": {"labels": 3}},
        {"release_as": "bounds"},
    ],
)
def test_the_same_figures_as_after_the_release(change: dict[str, Any], tmp_path: Path) -> None:
    quasi = {"role": "quasi-identifier"}
    bounds = {"release_as": change["release_as"]} if "release_as" in change else {}
    policy = Policy.load(
        {
            "columns": {
                "age": {**quasi, "hierarchy": {"intervals": [5, 10, 20]}, **bounds},
                "ward": {**quasi, "hierarchy": "flat"},
                "sex": {**quasi, "hierarchy": "flat"},
            },
            "models": [{"k-anonymity": {"k": 12}}],
            "suppression_limit": "5%",
            **{name: value for name, value in change.items() if name != "release_as"},
        }
    )
    release = shoal.anonymize(people(), policy, output=tmp_path / "release.parquet")
    pair = ("age", "ward")
    after = shoal.utility(people(), release.output, policy, pair=pair)
    with session(people()) as s:
        problem = problem_of(policy, *counted(s.table, policy))
    _, evaluation = find(policy, problem)
    before = unwritten_utility(recode(problem, evaluation), policy, pair)
    assert (before.exposure, before.exposure_after) == (release.exposure, release.exposure_after)
    assert [one.column for one in before.columns] == [one.column for one in after.columns]
    for one, other in zip(before.columns, after.columns, strict=True):
        assert one.kept_information == pytest.approx(other.kept_information)
        assert (one.labels, one.mean_after) == (other.labels, other.mean_after)
        assert sorted((str(r.label), r.before, r.after) for r in one.records) == sorted(
            (str(r.label), r.before, r.after) for r in other.records
        )
    assert before.contingency is not None
    assert after.contingency is not None
    assert before.contingency.rows == after.contingency.rows
    assert before.contingency.after == after.contingency.after
