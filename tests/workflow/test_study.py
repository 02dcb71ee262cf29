"""The study of a profile against naive counts, and what was published of Adult."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from dataclasses import replace
from math import ceil, log
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adult
import oracle
import shoal
from adult import needs_adult
from example_counts import examples
from problems import Case, cases
from shoal.document.document import Table
from shoal.document.figures import save
from shoal.document.terminal import show_table
from shoal.errors import UnknownName, UsageError
from shoal.workflow.profile.agreement import (
    RELAXATIONS,
    Agreement,
    HeightAgreement,
    Outcome,
    agreement,
    agreement_tables,
    answered,
    drawn,
)
from shoal.workflow.profile.grouping import SCORES
from shoal.workflow.profile.profile import Profile, tabulated
from shoal.workflow.profile.source import PolicyDefaults
from shoal.workflow.profile.study import Study, SuppressionSummary, study, study_plots


def profile_of(case: Case, **options: Any) -> Profile:
    case.low, case.high, case.same_level = [0] * len(case.low), oracle.heights(case.hierarchies), []
    return tabulated(case.problem(), PolicyDefaults("k", case.k, case.limit, {}, {}), **options)


def told(rows: tuple[SuppressionSummary, ...]) -> dict[int, tuple[float, ...]]:
    return {row.at: (row.nodes, row.least, round(row.mean, 9), row.largest) for row in rows}


def naively(groups: dict[int, list[int]]) -> dict[int, tuple[float, ...]]:
    return {at: (len(gone), min(gone), round(fmean(gone), 9), max(gone)) for at, gone in groups.items()}


@settings(max_examples=examples(60), deadline=None)
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


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), share=st.sampled_from(["5%", "30%", "70%"]), by=st.sampled_from(["height", "lattice"]))
def test_partial_profiles_agree_as_if_they_had_been_made(case: Case, share: str, by: str) -> None:
    """The study leaves nodes out of the full profile; it answers as a profile made without them does."""
    full = profile_of(case)
    requests = drawn(full, full.negotiate().request, (1, 2, 3, 5), 25)
    truth = answered(full, requests)
    without, runtime = agreement(full, share, truth, by=by)
    made = profile_of(case, share=share, by=by)
    for found, wishes in ((without, {"runtime": False}), (runtime, {"runtime": True})):
        answers = [(made.negotiate(**asked, **wishes), full.negotiate(**asked)) for asked in requests]
        exact = [(a.exact, e.exact) for a, e in answers if e.exact is not None]
        assert found.exact == counted(exact)
        for kind in RELAXATIONS:
            rest = [(getattr(a, kind), getattr(e, kind)) for a, e in answers if e.exact is None]
            assert getattr(found, kind) == counted(rest)
        others = [(a, e) for a, e in exact if a is not None and a.node != e.node]
        assert found.most_height == max((a.height - e.height for a, e in others), default=0)
        assert found.suppressed == pytest.approx(
            fmean([a.suppressed - e.suppressed for a, e in others]) if others else 0
        )
        for row in found.by_height:
            there = [(a, e) for a, e in exact if e.height == row.at]
            higher = [a.height - e.height for a, e in others if e.height == row.at]
            assert (row.requests, row.missed) == (len(there), sum(a is None for a, _ in there))
            assert row.other == len(higher)
            assert row.height == pytest.approx(fmean(higher) if higher else 0)
        assert sum(row.requests for row in found.by_height) == len(exact)
        assert found.nodes == len(made.numbers)
    for kind in ("exact", "suppression", "privacy"):
        assert getattr(runtime, kind).failed == 0
    assert runtime.exact.same >= without.exact.same


def counted(pairs: list[tuple[Any, Any]]) -> Outcome:
    """Count the answers of a partial profile that are the full one's, others, missing, and in neither."""
    kinds = ["neither" if e is None else "failed" if a is None else "same" if a.node == e.node else "other"
             for a, e in pairs]  # fmt: skip
    return Outcome(**{kind: kinds.count(kind) for kind in ("same", "other", "failed", "neither")})


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
    assert (part.nodes, part.lattice_size, part.agreement) == (3, 4, ())
    assert {(row.share, row.score, row.runtime) for row in found.agreement} == set(
        itertools.product(["1%", "5%", "10%"], SCORES, [False, True])
    )
    titles = [table.title for table in found.document().tables]
    assert any(title.startswith("Relaxations of partial profiles") for title in titles)
    with pytest.raises(UnknownName, match=r"Unknown ranking 'heights'\. Did you mean 'height'"):
        shoal.study(profile, by="heights")
    with pytest.raises(UsageError, match="k must be at least 1, got 0"):
        shoal.study(profile, strengths=[0])
    with pytest.raises(UsageError, match=r"k must be a whole number, got 2\.5"):
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


@settings(max_examples=examples(4), deadline=None)
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


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(models=None))
def test_the_tables_of_agreement_hold_every_outcome(case: Case) -> None:
    full = profile_of(case)
    truth = answered(full, drawn(full, full.negotiate().request, (1, 2, 3, 5), 25))
    exact = sum(answer.exact is not None for _, answer in truth)
    rows = agreement(full, "5%", truth)
    _, relaxed, heights = agreement_tables([replace(r, score=s) for r in rows for s in SCORES], 25, exact)
    assert relaxed.headers[3:] == ("suppression", "levels", "privacy")
    for line in relaxed.rows:
        assert [sum(map(int, str(cell).split("/"))) for cell in line[3:]] == [25 - exact] * 3
    assert str(relaxed.note).startswith("same/other/failed/neither")
    found = {(line[0], line[2]): line[3:] for line in heights.rows}
    for one in rows[0].by_height:
        deviation = (f"{one.height:.2f}", f"{one.suppressed:+,.0f}") if one.other else ("", "")
        for score in SCORES:
            assert found[str(one.at), score] == (str(one.missed), str(one.other), *deviation)
    assert len(found) == len(heights.rows) == len(SCORES) * len(rows[0].by_height)


def test_the_tables_of_agreement_fit_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = Outcome(695, 206, 305, 138)
    height = HeightAgreement(12, 4000, 206, 305, 1.5, -1234.0)
    row = Agreement("10%", "weighted-log", True, 1234, *[outcome] * 4, 1.38, 5, -159.0, -12345, (height,))
    rows = [
        replace(row, score=score, share=share, runtime=False) for score in SCORES for share in ("5%", "10%")
    ]
    for table in agreement_tables(rows, 4000, 695):
        show_table(replace(table, title="", note=""))
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        assert "suppressed" in " ".join(lines) or "suppression" in " ".join(lines)
        assert sum("importances" in line for line in lines) == len(table.rows) / 4  # a line for each row
    show_table(Table("", ["two\nlines", *("abcd" * 8 for _ in range(3))], [["1", "2", "3", "4"]]))
    assert capsys.readouterr().out.splitlines()[1].split("  ")[0] == "two lines"


SIX = ("age", "education", "marital-status", "occupation", "race", "workclass")


def naive_partial(problem: Any, share: float) -> set[tuple[int, ...]]:
    """Keep the best nodes of each height by the sum of log(average group size) x relative importance."""
    tops = problem.lattice.top
    powers = []
    for column, top in enumerate(tops):
        nodes = [tuple(level * (c == column) for c in range(len(tops))) for level in range(top + 1)]
        sizes = [problem.records / len(problem.classes(node).sizes) for node in nodes]
        ratios = [after / before for before, after in itertools.pairwise(sizes)]
        powers.append([log(s) * r for s, r in zip(sizes, [1 / ratios[0], *ratios], strict=True)])
    by_height = defaultdict(list)
    for node in itertools.product(*(range(top + 1) for top in tops)):
        power = sum(of[level] for of, level in zip(powers, node, strict=True))
        by_height[sum(node)].append((-round(power, 7), node))
    return {node for nodes in by_height.values() for _, node in sorted(nodes)[: ceil(share * len(nodes))]}


def naive_offers(
    full: Profile, known: set[tuple[int, ...]], high: tuple[int, ...], limit: int, k: int
) -> dict[str, Any]:
    """Choose among some nodes: the lowest, of these the one that suppresses least, then by most classes."""
    gone, table = full.by_node(k).tolist(), full.table(None)
    rows = [
        (sum(node), lost, -size, node)
        for node, lost, size in zip(
            map(tuple, full.levels.tolist()), gone, table.classes.tolist(), strict=True
        )
        if node in known and lost < full.records
    ]
    within = [row for row in rows if all(a <= b for a, b in zip(row[3], high, strict=True))]
    exact = min((row for row in within if row[1] <= limit), default=None)
    found = {"exact": exact}
    if exact is None:
        found["suppression"] = min(within, key=lambda row: (row[1], row), default=None)
        found["levels"] = min((row for row in rows if row[1] <= limit), default=None)
    return {kind: row and row[3] for kind, row in found.items()}


@needs_adult
def test_the_published_experiment_of_partial_lattices_follows_the_naive_rule() -> None:
    """28 requests over three to six columns of Adult, at 5% of each height."""
    chance = random.Random(28)
    outcomes = []
    for number in range(28):
        columns = tuple(sorted(chance.sample(SIX, 3 + number % 4)))
        problem = adult.problem(columns, "hierarchies-study")
        full = tabulated(problem, PolicyDefaults("k", 5, 0, {}, {}))
        part, kept = full.best("5%", "weighted-log", "height"), naive_partial(problem, 0.05)
        assert set(map(tuple, part.levels.tolist())) == kept
        high = tuple(chance.randint(0, top) for top in problem.lattice.top)
        limit, k = chance.choice([0, 150, 600, 1500]), chance.choice([3, 10, 50, 200])
        wishes = {"k": k, "suppression_limit": limit, "max_level": dict(zip(columns, high, strict=True))}
        found = []
        for profile, known in ((full, set(map(tuple, full.levels.tolist()))), (part, kept)):
            answer = profile.negotiate(**wishes, runtime=False)
            found.append(naive_offers(full, known, high, limit, k))
            for kind, node in found[-1].items():
                offer = getattr(answer, kind)
                assert (offer and tuple(offer.node.values())) == node, kind
        there, here = (offers["exact"] for offers in found)
        outcomes.append(
            "neither" if not there else "failed" if not here else ("other", "same")[here == there]
        )
    assert set(outcomes) >= {"neither", "failed", "same"}
