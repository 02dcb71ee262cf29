"""The study of a profile against naive counts, and what was published of Adult."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import adult
import oracle
import pytest
from adult import needs_adult
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Case, cases

import shoal
from shoal.errors import UsageError
from shoal.plots import save
from shoal.profile import Profile, tabulated
from shoal.profiling.source import PolicyWish
from shoal.profiling.study_plots import study_plots
from shoal.study import Study, Suppression, agreement, answered, drawn, study


def profile_of(case: Case, **options: Any) -> Profile:
    case.low, case.high, case.same_level = [0] * len(case.low), oracle.heights(case.hierarchies), []
    return tabulated(case.problem(), PolicyWish("k", case.k, case.limit, {}, {}), **options)


def told(rows: tuple[Suppression, ...]) -> dict[int, tuple[float, ...]]:
    return {row.at: (row.nodes, row.least, round(row.mean, 9), row.largest) for row in rows}


def naively(groups: dict[int, list[int]]) -> dict[int, tuple[float, ...]]:
    return {at: (len(gone), min(gone), round(fmean(gone), 9), max(gone)) for at, gone in groups.items()}


@settings(max_examples=60, deadline=None)
@given(case=cases(), data=st.data())
def test_suppression_is_what_a_naive_count_says(case: Case, data: st.DataObject) -> None:
    profile = profile_of(case)
    model = data.draw(st.sampled_from(["k", "l"] if case.l > 1 else ["k"]))
    least = data.draw(st.integers(1, 4))
    strengths = data.draw(st.lists(st.integers(1, 6), min_size=1, unique=True))
    found = study(profile, **{model: least}, strengths=strengths, requests=5)
    heights = oracle.heights(case.hierarchies)
    by_height, by_columns, by_strength = defaultdict(list), defaultdict(list), defaultdict(list)
    for node in oracle.nodes(case.hierarchies):
        for strength in {least, *strengths}:
            wishes = {"k": strength} if model == "k" else {"l": strength, "sensitive": case.sensitive}
            gone = oracle.suppressed(case.rows, case.hierarchies, node, **wishes)
            by_strength[strength].append(gone)
            if strength == least:
                by_height[sum(node)].append(gone)
                below = sum(level < top for level, top in zip(node, heights, strict=True))
                by_columns[below].append(gone)
    assert told(found.by_height) == naively(by_height)
    assert told(found.by_columns) == naively(by_columns)
    assert told(found.by_strength) == naively(by_strength)
    assert (found.records, found.nodes) == (len(case.rows), profile.lattice.size)
    for power in found.grouping:
        column = int(power.column[1:])
        node = tuple(power.level if c == column else 0 for c in range(len(heights)))
        groups = len(oracle.classes(case.rows, case.hierarchies, node))
        assert (power.groups, power.size) == (groups, pytest.approx(len(case.rows) / groups))
    assert len(found.grouping) == sum(height + 1 for height in heights)


@settings(max_examples=60, deadline=None)
@given(case=cases(), share=st.sampled_from(["5%", "30%", "70%"]))
def test_partial_profiles_agree_as_if_they_had_been_made(case: Case, share: str) -> None:
    """The study leaves nodes out of the full profile; it answers as a profile made without them does."""
    full = profile_of(case)
    truth = answered(full, drawn(full, full.negotiate().request, 15))
    without, runtime = agreement(full, share, truth)
    made = profile_of(case, share=share)
    for found, wishes in ((without, {}), (runtime, {"runtime": True})):
        answers = [(made.negotiate(**asked, **wishes).exact, exact) for asked, exact in truth]
        same = sum(answer is not None and answer.node == exact.node for answer, exact in answers)
        failed = sum(answer is None for answer, _ in answers)
        others = [(a, e) for a, e in answers if a is not None and a.node != e.node]
        assert (found.same, found.failed, found.other) == (same, failed, len(others))
        assert found.most_height == max((a.height - e.height for a, e in others), default=0)
        assert found.suppressed == pytest.approx(
            fmean([a.suppressed - e.suppressed for a, e in others]) if others else 0
        )
        assert found.nodes == len(made.numbers)
    assert runtime.failed == 0
    assert runtime.same >= without.same


def test_a_study_is_plain_values_and_always_the_same(tmp_path: Path) -> None:
    import pandas as pd

    flat = {"role": "quasi-identifier", "hierarchy": "flat"}
    table = pd.DataFrame({"a": list("xxyyz") * 4, "b": list("1212") * 5})
    policy = {"columns": {"a": flat, "b": flat}, "models": [{"k-anonymity": {"k": 3}}]}
    profile = shoal.profile(table, policy)
    found = shoal.study(profile)
    assert isinstance(found, Study)
    assert json.loads(json.dumps(found.to_dict()))["least"] == 3
    assert found == shoal.study(shoal.profile(table, policy))
    assert [row.at for row in found.by_strength] == [
        2,
        3,
        5,
        10,
        15,
        20,
    ]  # no class has more than all records
    part = shoal.study(shoal.profile(table, policy, share="50%"))
    assert (part.nodes, part.lattice_size, part.agreement) == (2, 4, ())
    with pytest.raises(UsageError, match="k must be a whole number of at least 1, got 0"):
        shoal.study(profile, strengths=[0])
    with pytest.raises(UsageError, match=r"k must be a whole number of at least 1, got 2\.5"):
        shoal.study(profile, strengths=[2.5])
    with pytest.raises(UsageError, match="The profile knows no l"):
        shoal.study(profile, l=2)


def test_a_policy_of_l_about_several_columns_is_studied_for_the_first() -> None:
    import pandas as pd

    table = pd.DataFrame({"a": list("xxyy"), "s": list("1234"), "t": list("1122")})
    columns = {"a": {"role": "quasi-identifier", "hierarchy": "flat"}}
    columns |= {name: {"role": "sensitive"} for name in "st"}
    profile = shoal.profile(table, {"columns": columns, "models": [{"distinct-l-diversity": {"l": 2}}]})
    assert shoal.study(profile).sensitive == "s"
    assert told(shoal.study(profile, sensitive="t").by_height) == {0: (1, 4, 4, 4), 1: (1, 0, 0, 0)}


@settings(max_examples=4, deadline=None)
@given(case=cases())
def test_any_study_can_be_drawn(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    paths = save(study_plots(study(profile_of(case), requests=3)), tmp_path_factory.mktemp("plots"), ["svg"])
    assert len(paths) == 4
    assert all(path.stat().st_size > 1000 for path in paths)


def study_over(*columns: str, **wishes: Any) -> Study:
    policy = adult.policy(columns, "hierarchies-study")
    root = adult.folder()
    assert root is not None
    return shoal.study(shoal.profile(root / "adult.csv", policy), **wishes)


@needs_adult
def test_the_published_suppression_by_height_and_k() -> None:
    found = study_over("age", "race", "workclass", k=3)
    assert [row.least for row in found.by_height][:7] == [554, 125, 28, 12, 4, 1, 0]
    at_the_bottom = {row.at: row.largest for row in found.by_strength}
    assert (at_the_bottom[3], at_the_bottom[10], at_the_bottom[25]) == (554, 1921, 4578)
    found = study_over("age", "occupation", "race", "workclass", k=3)
    assert [row.least for row in found.by_height][:8] == [3297, 1042, 318, 110, 28, 12, 4, 0]
