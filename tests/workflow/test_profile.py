"""Profiles and negotiation against the naive oracle, and the published numbers on Adult."""

from __future__ import annotations

import json
import math
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import adult
import oracle
import shoal
from adult import needs_adult
from example_counts import examples
from problems import Case, cases
from shoal.core.classes import is_sensitive_name
from shoal.core.lattice.lattice import build
from shoal.core.lattice.walk import Spread
from shoal.core.problem import Problem
from shoal.errors import DataError, OutputError, UnknownName, UsageError
from shoal.workflow.profile import file
from shoal.workflow.profile.grouping import (
    SCORES,
    best_first,
    best_of_heights,
    heights_in_turn,
    ranked,
    scores,
    share_of,
)
from shoal.workflow.profile.profile import Profile, tabulated
from shoal.workflow.profile.source import PolicyDefaults
from shoal.workflow.profile.tables import table_of
from shoal.workflow.profile.tabulate import Tabulation, _one_table

pytestmark = pytest.mark.usefixtures("both_modes")

Node = tuple[int, ...]


def whole(case: Case) -> Problem:
    """The case over its whole hierarchies, as a profile covers them."""
    case.low, case.high = [0] * len(case.low), oracle.heights(case.hierarchies)
    case.same_level = []
    return case.problem()


def profile_of(case: Case, **options: Any) -> Profile:
    return tabulated(whole(case), PolicyDefaults("k", case.k, case.limit, {}, {}), **options)


def suppressed(case: Case, model: str, least: int) -> dict[Node, int]:
    wishes = {"k": least} if model == "k" else {"l": least, "sensitive": case.sensitive}
    every = oracle.nodes(case.hierarchies)
    return {n: oracle.suppressed(case.rows, case.hierarchies, n, **wishes) for n in every}


def naive_scores(case: Case, score: str) -> dict[Node, float]:
    """Score every node by the definitions: a sum over columns of what a level groups together."""
    heights = oracle.heights(case.hierarchies)
    sizes, importances = [], []
    for column, height in enumerate(heights):
        nodes = [tuple(level * (c == column) for c in range(len(heights))) for level in range(height + 1)]
        sizes.append([len(case.rows) / len(oracle.classes(case.rows, case.hierarchies, v)) for v in nodes])
        ratios = [sizes[-1][level] / sizes[-1][level - 1] for level in range(1, height + 1)]
        importances.append([1 / ratios[0], *ratios] if ratios else [1.0])
    of_level = {
        "weighted-log": lambda size, importance: math.log2(size) * importance,
        "sizes": lambda size, importance: size,
        "importances": lambda size, importance: importance,
        "products": lambda size, importance: size * importance,
    }[score]
    return {
        node: sum(of_level(sizes[c][level], importances[c][level]) for c, level in enumerate(node))
        for node in oracle.nodes(case.hierarchies)
    }


def naive_best(case: Case, share: float, score: str) -> set[Node]:
    """Keep the best share of the nodes of each height, rounded up."""
    by_height: dict[int, list[tuple[float, Node]]] = {}
    for node, value in naive_scores(case, score).items():
        by_height.setdefault(sum(node), []).append((-round(value, 7), node))
    return {
        node for nodes in by_height.values() for _, node in sorted(nodes)[: math.ceil(share * len(nodes))]
    }


def naive(
    case: Case, model: str, least: int, limit: int, high: Node, known: set[Node] | None = None
) -> dict[str, Any]:
    """Negotiate by the definitions, in plain dicts; with some nodes alone where those are known."""
    gone = {v: g for v, g in suppressed(case, model, least).items() if known is None or v in known}
    n = len(case.rows)
    classes = {node: len(oracle.classes(case.rows, case.hierarchies, node)) for node in gone}

    def within(node: Node, top: Node) -> bool:
        return all(a <= b for a, b in zip(node, top, strict=True))

    def chosen(nodes: list[Node]) -> Node | None:
        return min(nodes, key=lambda v: (sum(v), gone[v], -classes[v], v), default=None)

    good = [v for v in gone if gone[v] <= limit and gone[v] < n]
    exact = chosen([v for v in good if within(v, high)])
    if exact is not None:
        return {"exact": exact}
    box = [v for v in gone if within(v, high)]
    least_gone = min((gone[v] for v in box), default=n)
    found: dict[str, Any] = {"exact": None, "suppression": None, "levels": chosen(good), "privacy": None}
    if least_gone < n:
        found["suppression"] = (chosen([v for v in box if gone[v] == least_gone]), least_gone)
    for strength in range(n, 1, -1):
        every = suppressed(case, model, strength)
        there = [every[v] for v in ([high] if high in gone else box) if every[v] <= limit and every[v] < n]
        if there:
            found["privacy"] = strength, there
            break
    columns = {}
    for c, top in enumerate(oracle.heights(case.hierarchies)):
        for level in range(high[c] + 1, top + 1):
            wider = (*high[:c], level, *high[c + 1 :])
            node = chosen([v for v in good if within(v, wider)])
            if node is not None:
                columns[f"c{c}"] = (level, node)
                break
    found["columns"] = columns
    return found


@settings(max_examples=examples(250), deadline=None)
@given(case=cases(), data=st.data())
def test_answers_and_suggestions_match_the_oracle(case: Case, data: st.DataObject) -> None:
    profile, known = profile_of(case), None
    if data.draw(st.booleans()):
        share, score = (
            data.draw(st.sampled_from([0.05, 0.3, 0.6])),
            data.draw(st.sampled_from(sorted(SCORES))),
        )
        profile, known = profile_of(case, share=share, score=score), naive_best(case, share, score)
        assert {profile.lattice.node(levels) for levels in profile.levels.tolist()} == known
    model = data.draw(st.sampled_from(["k", "l"] if case.l > 1 else ["k"]))
    least = data.draw(st.integers(1, 5))
    high = tuple(data.draw(st.integers(0, h)) for h in profile.lattice.heights)
    allowed = dict(zip(profile.lattice.columns, high, strict=True))
    if known is not None and data.draw(st.booleans()):
        known |= {high}
    else:
        profile = replace(profile, problem=None)
    answer = profile.negotiate(**{model: least}, suppression_limit=case.limit, max_level=allowed)
    expected = naive(case, model, least, case.limit, high, known)
    assert answer.partial is not profile.complete
    gone = suppressed(case, model, least)
    if expected["exact"] is not None:
        assert tuple(answer.exact.node.values()) == expected["exact"]
        assert answer.exact.suppressed == gone[expected["exact"]]
        assert not answer.columns
        return
    assert answer.exact is None
    told = answer.to_dict()["suggestions"]
    if expected["suppression"] is None:
        assert told["suppression"] is None
    else:
        node, limit = expected["suppression"]
        assert (tuple(told["suppression"]["node"].values()), told["suppression"]["limit"]) == (node, limit)
    if expected["levels"] is None:
        assert told["levels"] is None
    else:
        assert tuple(told["levels"]["node"].values()) == expected["levels"]
    if expected["privacy"] is None:
        assert told["privacy"] is None
    else:
        strength, there = expected["privacy"]
        assert told["privacy"][model] == strength
        assert told["privacy"]["suppressed"] in there
    offered = {o["column"]: (o["max_level"], tuple(o["node"].values())) for o in told["columns"]}
    assert offered == expected["columns"]
    best_first = [(o["height"], o["suppressed"]) for o in told["columns"]]
    assert best_first == sorted(best_first)


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), least=st.integers(1, 6))
def test_every_node_is_tabulated_as_the_oracle_counts_it(case: Case, least: int) -> None:
    profile = profile_of(case)
    for model, sensitive in [("k", None), *([("l", "l")] if case.l > 1 else [])]:
        found = profile.suppressed(least, sensitive)
        for node, gone in suppressed(case, model, least).items():
            assert found[node] == gone
            assert profile.classes[node] == len(oracle.classes(case.rows, case.hierarchies, node))


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), least=st.integers(1, 6))
def test_suppression_never_grows_going_up(case: Case, least: int) -> None:
    profile = profile_of(case)
    for sensitive in profile.tables:
        found = profile.suppressed(least, sensitive)
        for axis in range(found.ndim):
            assert (np.diff(found, axis=axis) <= 0).all()


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), words=st.integers(1, 3))
def test_keys_of_several_words_are_tabulated_alike(case: Case, words: int) -> None:
    """Where keys do not fit one word the counts go another way, to the same numbers."""
    problem = whole(case)
    one = Tabulation(
        problem.counts, problem.hierarchies, problem.lattice, tuple(problem.counts.sensitive), problem.memory
    )
    other = Tabulation(
        problem.counts, problem.hierarchies, problem.lattice, tuple(problem.counts.sensitive), problem.memory
    )
    other._counters = {}
    for tabulation in (one, other):
        assert list(tabulation.slices(size=words))[-1] == problem.lattice.size
    numbers, tables = one.tables()
    again, slow = other.tables()
    assert np.array_equal(numbers, again)
    for name, table in tables.items():
        for part in ("begins", "values", "below", "classes"):
            assert np.array_equal(getattr(table, part), getattr(slow[name], part))


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_a_partial_profile_answers_from_the_nodes_it_has(case: Case, data: st.DataObject) -> None:
    share = data.draw(st.sampled_from(["1%", "30%", 0.6]))
    by = data.draw(st.sampled_from(["height", "lattice"]))
    part = profile_of(case, share=share, score=data.draw(st.sampled_from(sorted(SCORES))), by=by)
    full = profile_of(case)
    if by == "lattice":
        assert len(part.numbers) == math.ceil(share_of(share) * full.lattice.size)
    levels = zip(full.lattice.columns, full.lattice.heights, strict=True)
    wishes: dict[str, Any] = {
        "k": data.draw(st.integers(1, 5)),
        "suppression_limit": case.limit,
        "max_level": {name: data.draw(st.integers(0, height)) for name, height in levels},
    }
    answer, truth = part.negotiate(**wishes, runtime=False), full.negotiate(**wishes)
    assert answer.partial is not part.complete
    if answer.exact:
        assert truth.exact is not None
        assert answer.exact.height >= truth.exact.height
        assert answer.exact.suppressed <= case.limit
    counted = part.negotiate(**wishes)
    if truth.exact:  # the greatest node allowed is acceptable where any is
        assert counted.exact is not None


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_a_profile_can_be_extended(case: Case) -> None:
    begun = profile_of(case, share="20%")
    grown = tabulated(whole(case), begun.defaults, share="70%", extend=begun)
    full = tabulated(whole(case), begun.defaults, extend=grown)
    assert set(begun.numbers.tolist()) <= set(grown.numbers.tolist()) <= set(full.numbers.tolist())
    assert full.complete
    direct = profile_of(case)
    for sensitive in direct.tables:
        for least in (1, 2, 4):
            assert np.array_equal(full.suppressed(least, sensitive), direct.suppressed(least, sensitive))


def test_a_file_that_knows_no_share_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = {"columns": {"a": {"role": "quasi-identifier", "hierarchy": "flat"}},
            "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": "50%"}  # fmt: skip
    profile = shoal.profile(pd.DataFrame({"a": ["x", "x", "y", "y", "z"]}), wish)
    exact = Profile.load(profile.save(tmp_path / "new")).negotiate().exact
    assert exact
    assert (exact.limit, exact.share) == (2, "50%")
    header = file._header

    def older(profile: Profile) -> dict[str, Any]:
        found = header(profile)
        del found["defaults"]["share"]
        return found

    monkeypatch.setattr(file, "_header", older)
    exact = Profile.load(profile.save(tmp_path / "old")).negotiate().exact
    assert exact
    assert (exact.limit, exact.share) == (2, None)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_the_file_holds_the_whole_profile(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    profile = profile_of(case)
    path = profile.save(tmp_path_factory.mktemp("profile") / "p")
    again = Profile.load(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert (again.lattice, again.records, again.defaults) == (
        profile.lattice,
        profile.records,
        profile.defaults,
    )
    assert again.grouping == profile.grouping
    for sensitive in profile.tables:
        assert np.array_equal(again.suppressed(3, sensitive), profile.suppressed(3, sensitive))
    for metric in profile.losses:
        assert np.array_equal(again.loss(metric), profile.loss(metric))


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(metrics=("non-uniform-entropy",)), data=st.data())
def test_prefer_loss_takes_the_least_loss(case: Case, data: st.DataObject) -> None:
    case.weights = [1.0] * len(case.weights)
    profile = profile_of(case)
    metric = data.draw(st.sampled_from(["non-uniform-entropy", "precision", "height"]))
    answer = profile.negotiate(k=case.k, suppression_limit=case.limit, prefer="loss", metric=metric)
    gone = suppressed(case, "k", case.k)
    good = [v for v in gone if gone[v] <= case.limit and gone[v] < len(case.rows)]
    assume(good)
    least = min(oracle.loss(metric, case.rows, case.hierarchies, v) for v in good)
    assert math.isclose(answer.exact.loss, least, rel_tol=1e-9, abs_tol=1e-9)


def small(**changes: Any) -> dict[str, Any]:
    flat = {"role": "quasi-identifier", "hierarchy": "flat"}
    return {
        "columns": {"sex": flat, "ward": flat, "illness": {"role": "sensitive"}},
        "models": [{"k-anonymity": {"k": 2}}],
        **changes,
    }


TABLE = {"sex": list("ffmmf"), "ward": list("aabbb"), "illness": ["flu", "gout", "flu", "flu", "gout"]}


@pytest.fixture(scope="module")
def made() -> Profile:
    import pandas as pd

    return shoal.profile(pd.DataFrame(TABLE), small())


def test_the_policy_is_the_wish_where_a_request_is_silent(made: Profile) -> None:
    assert made.negotiate().request.least == 2
    assert made.negotiate().to_dict()["exact"] == {
        "node": {"sex": 0, "ward": 1}, "height": 1, "suppressed": 0, "k": 2, "limit": 0,
    }  # fmt: skip
    assert made.negotiate(l=2).request.sensitive == "illness"


@pytest.mark.parametrize(
    ("wishes", "kind", "text"),
    [
        ({"k": 0}, UsageError, "k must be at least 1, got 0"),
        ({"l": 1.5}, UsageError, "l must be a whole number, got 1.5"),
        ({"k": 2, "suppression_limit": "200%"}, UsageError, "above 100%"),
        ({"k": 2, "suppression_limit": 9}, UsageError, "above the table's 5 records"),
        ({"k": 2, "max_level": {"sexx": 0}}, UnknownName, "Did you mean 'sex'"),
        (
            {"k": 2, "max_level": {"sex": 4}},
            UsageError,
            "max_level of 'sex' must be a level from 0 to 1, got 4",
        ),
        ({"k": 2, "max_level": [1]}, UsageError, "max_level is levels by column, such as .*, got list"),
        ({"l": 2, "sensitive": "ward"}, UnknownName, "Unknown sensitive column of the profile 'ward'"),
        ({"k": 2, "prefer": "los"}, UnknownName, "Did you mean 'loss'"),
        ({"k": 2, "metric": "height"}, UsageError, "A metric is only used to minimize the loss"),
        ({"k": 2, "prefer": "loss", "metric": "discernibility"}, UnknownName, "separable metric"),
        (
            {"k": 2, "prefer": "loss", "metric": "coverage", "suppression_limit": 1},
            UsageError,
            "a limit of 0",
        ),
    ],
)
def test_wishes_out_of_range_are_refused(made: Profile, wishes: dict, kind: type, text: str) -> None:
    with pytest.raises(kind, match=text):
        made.negotiate(**wishes)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"share": "0%"}, "share must be a part of the lattice"),
        ({"share": "x"}, "share must be a part of the lattice"),
        ({"share": 1.5}, "share must be a part of the lattice"),
        ({"share": "1e-300000000"}, "share must be a part of the lattice"),
        ({"share": "1e300000000"}, "share must be a part of the lattice"),
        ({"seconds": 0}, "seconds must be a number above 0"),
        ({"seconds": "x"}, "seconds must be a number above 0, got 'x'"),
        ({"score": "size"}, "Did you mean 'sizes'"),
        ({"by": "heights"}, "Did you mean 'height'"),
    ],
)
def test_bad_options_of_a_profile_are_refused(options: dict, text: str) -> None:
    import pandas as pd

    with pytest.raises(UsageError, match=text):
        shoal.profile(pd.DataFrame(TABLE), small(), **options)


def test_a_profile_of_another_table_is_not_extended(made: Profile) -> None:
    import pandas as pd

    other = pd.DataFrame(TABLE | {"ward": list("aabba")})
    with pytest.raises(DataError, match="of another table"):
        shoal.profile(other, small(), extend=made)
    assert shoal.profile(pd.DataFrame(TABLE), small(), extend=made).complete


def test_a_profile_is_extended_from_its_file(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame(TABLE)
    path = shoal.profile(table, small(), share="50%").save(tmp_path / "p")
    for extend in (path, str(path)):
        assert shoal.profile(table, small(), extend=extend).complete


def test_a_forged_header_is_damage(made: Profile, tmp_path: Path) -> None:
    path = made.save(tmp_path / "p")
    _, header, body = path.read_bytes().split(b"\n", 2)
    known = json.loads(header)
    for changed in (
        {"arrays": []},
        {"losses": [1]},
        {"defaults": 3},
        {"columns": 5},
        {"arrays": known["arrays"] | {"numbers": ["int64", 10**30, 1]}},
        {"defaults": known["defaults"] | {"models": [1]}},
    ):
        text = json.dumps(known | changed).encode()
        told = f"shoal-profile 3 {zlib.crc32(body, zlib.crc32(text)):08x}".encode()
        path.write_bytes(b"\n".join([told, text, body]))
        with pytest.raises(DataError, match="damaged"):
            Profile.load(path)


def test_force_replaces_nothing_but_a_profile(made: Profile, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    for text in ("notes", ""):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(OutputError, match="is not a profile, so it is not replaced"):
            made.save(path, force=True)
        assert path.read_text(encoding="utf-8") == text
    path.unlink()
    made.save(path)
    made.save(path, force=True)


@pytest.mark.parametrize("options", [{"share": "1%"}, {"seconds": 1e-9}])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_of_unique_rows_the_highest_nodes_come_first(
    monkeypatch: pytest.MonkeyPatch, options: dict, one_by_one: bool
) -> None:
    """No level of one column groups anything while the others are as they are: all scores are equal."""
    import pandas as pd

    module = sys.modules["shoal.workflow.profile.grouping"]
    monkeypatch.setattr(module, "_BEST_FIRST", 8)
    if one_by_one:
        monkeypatch.setattr(module, "LARGEST_RANKED", 3)
        options = {"seconds": 1e-9}
    names = [f"c{column}" for column in range(6)]
    table = pd.DataFrame({name: range(60) for name in names})
    banded = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}}
    part = shoal.profile(
        table,
        {"columns": dict.fromkeys(names, banded), "models": [{"k-anonymity": {"k": 2}}]},
        by="lattice",
        **options,
    )
    assert not part.complete
    assert part.row_of(part.lattice.high) is not None
    lattice = part.lattice
    every = np.sort(np.indices(lattice.shape).sum(axis=0).ravel())[::-1]
    assert sorted(part.heights.tolist(), reverse=True) == every[: len(part.numbers)].tolist()
    assert part.negotiate().exact is not None


def test_tables_are_joined_in_the_smallest_numbers() -> None:
    one = table_of(Spread(np.array([0, 2]), np.array([1, 3]), np.array([2, 3]), np.array([3])))
    many = Spread(np.array([0, 1]), np.array([70_000]), np.array([70_000]), np.array([1]))
    parts = [one, table_of(many), one]
    found = _one_table(parts)
    assert parts == []  # each is let go of once it is copied
    assert found.begins.tolist() == [0, 2, 3, 5]
    assert (found.values.tolist(), found.values.dtype) == ([1, 3, 70_000, 1, 3], np.uint32)
    assert (found.below.tolist(), found.below.dtype) == ([0, 2, 0, 0, 2], np.uint16)
    assert (found.classes.tolist(), found.classes.dtype) == ([3, 1, 3], np.uint16)
    assert len(_one_table([]).classes) == 0


TWO = TABLE | {"job": list("abcde")}


def two(*models: dict, **changes: Any) -> dict[str, Any]:
    policy = small(models=list(models), **changes)
    policy["columns"]["job"] = {"role": "sensitive"}
    return policy


def about(l: int, column: str | None = None) -> dict[str, Any]:
    return {"distinct-l-diversity": {"l": l} | ({"column": column} if column else {})}


K2 = {"k-anonymity": {"k": 2}}


@pytest.mark.parametrize(
    ("models", "wishes", "besides"),
    [
        ([about(2, "illness")], {"sensitive": "job"}, ["distinct-l-diversity of illness"]),
        ([about(2, "illness")], {}, []),
        (
            [about(3, "illness"), about(2, "job")],
            {"sensitive": "illness"},
            ["distinct-l-diversity of job"],
        ),
        ([K2, about(2, "illness")], {"l": 2, "sensitive": "illness"}, ["k-anonymity"]),
        ([K2, about(2, "illness")], {"l": 2}, ["k-anonymity"]),
        ([K2, about(2, "illness")], {}, []),
        ([K2, about(2, "illness")], {"k": 2}, ["distinct-l-diversity of illness"]),
        ([K2, about(2)], {"k": 2, "l": 2, "sensitive": "job"}, ["distinct-l-diversity of illness"]),
        ([K2, about(2)], {}, ["distinct-l-diversity"]),
        ([{"k-anonymity": {"k": 2, "unit": "job"}}], {}, ["k-anonymity of job"]),
        ([K2, {"k-anonymity": {"k": 3, "unit": "job"}}], {"k": 4}, ["k-anonymity of job"]),
        ([K2, about(2)], {"l": 2, "sensitive": "job"}, ["k-anonymity", "distinct-l-diversity of illness"]),
    ],
)
def test_what_a_request_leaves_out_is_said(models: list, wishes: dict, besides: list, tmp_path: Path) -> None:
    import pandas as pd

    profile = shoal.profile(pd.DataFrame(TWO), two(*models))
    assert list(profile.negotiate(**wishes).besides) == besides
    again = Profile.load(profile.save(tmp_path / "p"))
    assert list(again.negotiate(**wishes).besides) == besides


def test_the_loss_preferred_is_the_policys_where_it_is_a_sum(tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame(TABLE)
    geometric = small(metric={"coverage": {"aggregate": "geometric"}})
    made = shoal.profile(table, geometric)
    made = Profile.load(made.save(tmp_path / "p"))
    found = made.negotiate(prefer="loss")
    assert found.request.metric == "coverage:aggregate=geometric"
    release = shoal.anonymize(table, geometric, node=found.exact)
    assert found.exact.loss == pytest.approx(release.loss)
    assert made.negotiate(prefer="loss", suppression_limit=1).request.metric == "non-uniform-entropy"
    assert made.negotiate(prefer="loss", metric="coverage").request.metric == "coverage"
    for metric, used in [("precision", "precision"), ("discernibility", "non-uniform-entropy")]:
        found = shoal.profile(table, small(metric=metric)).negotiate(prefer="loss")
        assert found.request.metric == used


def test_a_loss_unknown_under_suppression_does_not_choose_what_to_suppress() -> None:
    """Two nodes suppress the one outlier: the lower one is offered, though the other's coverage is better."""
    import pandas as pd

    flat = {"role": "quasi-identifier", "hierarchy": "flat"}
    tree = {"m": {"s0": ["p"], "s1": ["q"]}, "n": {"s2": ["r"]}}
    slow = {"role": "quasi-identifier", "hierarchy": {"tree": tree}}
    table = pd.DataFrame({"a": list("ppqqr"), "b": list("xyxyx"), "c": list("wwwwz")})
    policy = {"columns": {"a": slow, "b": flat, "c": flat}, "models": [{"k-anonymity": {"k": 2}}]}
    profile = shoal.profile(table, policy)
    wishes = {"max_level": {"a": 2, "c": 0}}
    by_loss = profile.negotiate(**wishes, prefer="loss", metric="coverage")
    assert by_loss.exact is None
    assert by_loss.suppression.node == {"a": 0, "b": 1, "c": 0}
    assert by_loss.suppression == profile.negotiate(**wishes).suppression
    precise = profile.negotiate(**wishes, prefer="loss")  # a loss that is known there chooses
    assert precise.suppression.node == {"a": 2, "b": 0, "c": 0}


def test_no_answer_is_settled_where_the_greatest_node_allowed_is_known(made: Profile) -> None:
    part = made.best("1%", by="lattice")
    assert part.negotiate(k=6).settled
    assert part.negotiate(k=6, max_level={"sex": 0}).settled  # counted: the data is available
    assert not part.negotiate(k=6, max_level={"sex": 0}, runtime=False).settled
    assert not replace(part, problem=None).negotiate(k=6, max_level={"sex": 0}).settled
    assert made.negotiate(k=6, max_level={"sex": 0}).settled


def test_a_damaged_file_is_refused(made: Profile, tmp_path: Path) -> None:
    path = made.save(tmp_path / "p")
    good = path.read_bytes()
    with pytest.raises(OutputError, match="exists"):
        made.save(path)
    for bad, text in [
        (b"", "damaged"),
        (b"a,b\n1,2\n", "is not a profile"),
        (good.replace(b"shoal-profile 3", b"shoal-profile 9", 1), "of another version"),
        (good[:-1], "damaged"),
        (good[:-9] + b"x" + good[-8:], "damaged"),
        (good[:200], "damaged"),
        (good.replace(b'"records": 5', b'"records": x'), "damaged"),
    ]:
        path.write_bytes(bad)
        with pytest.raises(DataError, match=text):
            Profile.load(path)
    with pytest.raises(DataError, match="No such file"):
        Profile.load(tmp_path / "none")


def test_no_value_of_the_data_is_in_the_file(made: Profile, tmp_path: Path) -> None:
    text = made.save(tmp_path / "p").read_bytes()
    assert b"ward" in text  # names are
    for value in (b"flu", b"gout"):
        assert value not in text


def test_relative_importance_is_the_growth_of_the_average_group() -> None:
    rows = [(a, b) for a in range(4) for b in range(2)]
    halves = {v: [str(v), str(v // 2), "*"] for v in range(4)}
    case = Case(
        rows=rows, hierarchies=[halves, {v: [str(v), "*"] for v in range(2)}], sensitive=[0] * 8, k=2, l=1,
        limit=0, metric="height", weights=[1.0, 1.0], low=[0, 0], high=[2, 1], same_level=[],
    )  # fmt: skip
    profile = profile_of(case)
    assert profile.grouping.groups == ((8, 4, 2), (8, 4))
    assert profile.grouping.sizes == ((1.0, 2.0, 4.0), (1.0, 2.0))
    assert profile.grouping.importances == ((0.5, 2.0, 2.0), (0.5, 2.0))
    lattice = build({"c0": 2, "c1": 1})
    expected = {"weighted-log": 4.0 + 2.0, "sizes": 4.0 + 2.0, "importances": 4.0, "products": 8.0 + 4.0}
    assert {name: scores(lattice, profile.grouping, name)[2, 1] for name in SCORES} == expected


def adult_profile(*columns: str) -> Profile:
    policy = adult.policy(columns, "hierarchies-study")
    policy["columns"]["hours-per-week"] = {"role": "sensitive"}
    return shoal.profile(adult.folder() / "adult.csv", policy)


@needs_adult
def test_the_published_negotiation_over_three_columns() -> None:
    profile = adult_profile("age", "race", "workclass")
    allowed = {"age": 2, "race": 1, "workclass": 1}

    def answer(**strength: int) -> tuple:
        found = profile.negotiate(**strength, suppression_limit=321, max_level=allowed).exact
        return (*found.node.values(), found.suppressed)

    assert profile.lattice.size == 60
    assert [answer(k=k) for k in (3, 10, 50)] == [(1, 0, 0, 125), (1, 1, 0, 170), (2, 1, 1, 251)]
    assert [answer(l=l) for l in (3, 6)] == [(1, 0, 0, 240), (1, 1, 1, 70)]


@needs_adult
def test_the_published_suggestions_over_four_columns() -> None:
    profile = adult_profile("age", "occupation", "race", "workclass")
    allowed = {"age": 2, "occupation": 0, "race": 1, "workclass": 1}
    exact = profile.negotiate(k=3, suppression_limit=321, max_level=allowed).exact
    assert (*exact.node.values(), exact.suppressed) == (1, 0, 1, 1, 283)
    answer = profile.negotiate(k=10, suppression_limit=321, max_level=allowed)
    assert answer.exact is None
    assert (*answer.suppression.node.values(), answer.suppression.limit) == (2, 0, 1, 1, 655)
    assert (*answer.levels.node.values(), answer.levels.suppressed) == (1, 2, 1, 0, 170)
    assert (answer.privacy.least, answer.privacy.suppressed) == (5, 301)


@needs_adult
def test_the_published_grouping_power() -> None:
    columns = ("age", "education", "marital-status", "occupation", "race", "workclass")
    groups = dict(zip(columns, adult_profile(*columns).grouping.groups, strict=True))
    assert groups["age"] == (15_537, 9117, 7015, 5380, 3455)
    assert groups["occupation"] == (15_537, 10_975, 7932)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), share=st.sampled_from(["5%", "40%"]), score=st.sampled_from(sorted(SCORES)))
@pytest.mark.parametrize("by", ["height", "lattice"])
def test_the_best_part_of_a_profile_is_the_partial_profile(
    case: Case, share: str, score: str, by: str
) -> None:
    part, counted = profile_of(case).best(share, score, by), profile_of(case, share=share, score=score, by=by)
    assert sorted(part.numbers.tolist()) == sorted(counted.numbers.tolist())
    for sensitive in part.tables:
        for least in (1, 2, 4):
            assert np.array_equal(part.suppressed(least, sensitive), counted.suppressed(least, sensitive))
    assert np.array_equal(part.classes, counted.classes)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), data=st.data())
def test_a_node_counted_at_the_request_is_as_if_tabulated(case: Case, data: st.DataObject) -> None:
    full = profile_of(case)
    part = full.best("5%")
    index = tuple(data.draw(st.integers(0, top)) for top in full.lattice.high)
    assume(part.row_of(index) is None)
    grown = part.with_node(index)
    place, there = grown.row_of(index), full.row_of(index)
    assert place is not None
    for sensitive in full.tables:
        for least in (1, 2, 3, 5):
            assert grown.by_node(least, sensitive)[place] == full.by_node(least, sensitive)[there]
    assert grown.merged[place] == full.merged[there]


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), data=st.data())
def test_columns_at_one_level_and_least_levels_are_honoured(case: Case, data: st.DataObject) -> None:
    """What the constraints leave is answered as if the lattice were no larger."""
    case.l = 1
    low, high = case.low, case.high
    names = [f"c{c}" for c in range(len(high))]
    levels = [dict(zip(names, found, strict=True)) for found in (high, low)]
    case.low, case.high = [0] * len(low), oracle.heights(case.hierarchies)
    profile = tabulated(case.problem(), PolicyDefaults("k", case.k, case.limit, *levels))
    gone = {
        n: oracle.suppressed(case.rows, case.hierarchies, n, k=case.k)
        for n in oracle.nodes(case.hierarchies, low, high, case.same_level)
    }
    good = [n for n in gone if gone[n] <= case.limit and gone[n] < len(case.rows)]
    answer = profile.negotiate()
    assert (answer.exact is not None) == bool(good)
    if answer.exact:
        assert answer.exact.height == min(map(sum, good))
        assert tuple(answer.exact.node.values()) in good
        return
    for _, offer in [("levels", answer.levels), *[("column", one) for one in answer.columns]]:
        if offer:
            found = tuple(offer.node.values())
            assert all(a <= b for a, b in zip(low, found, strict=True))
            assert all(len({found[c] for c in group}) == 1 for group in case.same_level)


def test_a_level_below_the_policys_least_is_refused() -> None:
    import pandas as pd

    policy = small()
    policy["columns"]["sex"] = {"role": "quasi-identifier", "hierarchy": "flat", "min_level": 1}
    made = shoal.profile(pd.DataFrame(TABLE), policy)
    with pytest.raises(UsageError, match="max_level of 'sex' is 0; the policy's min_level is 1"):
        made.negotiate(max_level={"sex": 0})


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), score=st.sampled_from(sorted(SCORES)))
def test_nodes_come_best_first_without_ranking_them_all(case: Case, score: str) -> None:
    profile = profile_of(case)
    every = scores(profile.lattice, profile.grouping, score).ravel()
    found = list(best_first(profile.lattice, profile.grouping, score))
    assert sorted(found) == list(range(profile.lattice.size))
    assert found == ranked(profile.lattice, profile.grouping, score).tolist()
    assert found[0] == profile.lattice.size - 1  # the top, which answers wherever anything does
    assert (np.diff(every[found[1:]]) <= 1e-9).all()


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(), score=st.sampled_from(sorted(SCORES)))
def test_heights_take_turns_and_each_gives_its_best_nodes(case: Case, score: str) -> None:
    profile = profile_of(case)
    values, lattice = naive_scores(case, score), profile.lattice
    order = [lattice.node(np.unravel_index(n, lattice.shape)) for n in heights_in_turn(
        lattice, profile.grouping, score)]  # fmt: skip
    by_height: dict[int, list[Node]] = {}
    for node in sorted(values, key=lambda node: (-round(values[node], 7), node)):
        by_height.setdefault(sum(node), []).append(node)
    longest = max(map(len, by_height.values()))
    assert order == [
        by_height[height][turn]
        for turn in range(longest)
        for height in sorted(by_height, reverse=True)
        if turn < len(by_height[height])
    ]
    numbers = best_of_heights(lattice, profile.grouping, score).tolist()
    assert order == [lattice.node(np.unravel_index(n, lattice.shape)) for n in numbers]


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), score=st.sampled_from(sorted(SCORES)))
def test_columns_that_move_together_are_ranked_within_each_height(case: Case, score: str) -> None:
    case.low, case.high = [0] * len(case.low), oracle.heights(case.hierarchies)
    profile = tabulated(case.problem(), PolicyDefaults("k", case.k, case.limit, {}, {}))
    ranking = best_of_heights(profile.lattice, profile.grouping, score)
    assert list(heights_in_turn(profile.lattice, profile.grouping, score)) == ranking.tolist()
    heights = profile.lattice.heights_of_nodes().ravel()
    least = best_of_heights(profile.lattice, profile.grouping, score, share_of("0.001%"))
    assert sorted(heights[least].tolist()) == sorted(set(heights.tolist()))  # one node of each height


@pytest.mark.parametrize("one_by_one", [False, True])
def test_with_seconds_heights_are_taken_in_turn(monkeypatch: pytest.MonkeyPatch, one_by_one: bool) -> None:
    module = sys.modules["shoal.workflow.profile.grouping"]
    monkeypatch.setattr(module, "_BEST_FIRST", 4)
    if one_by_one:
        monkeypatch.setattr(module, "LARGEST_RANKED", 3)
    banded = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}}
    policy = {"columns": dict.fromkeys("abc", banded), "models": [{"k-anonymity": {"k": 2}}]}
    part = shoal.profile(pd.DataFrame({name: range(60) for name in "abc"}), policy, seconds=1e-9)
    assert sorted(part.heights.tolist()) == [6, 7, 8, 9]


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), size=st.integers(1, 20), after=st.integers(1, 5))
def test_a_slice_stopped_halfway_leaves_whole_tables(case: Case, size: int, after: int) -> None:
    """Ctrl-C may come after sizes were counted and before distinct values were."""
    problem = whole(case)
    sensitive = tuple(filter(is_sensitive_name, problem.counts.sensitive))
    tabulation = Tabulation(problem.counts, problem.hierarchies, problem.lattice, sensitive, problem.memory)
    counted = 0

    def stop(self: Any, index: Any, name: str | None) -> Any:
        nonlocal counted
        counted += 1
        if counted > after * size:
            raise KeyboardInterrupt
        return one(self, index, name)

    one, tabulation._counters = Tabulation._single_spread, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tabulation, "_single_spread", stop)
        try:
            for _ in tabulation.slices(size=size):
                pass
        except KeyboardInterrupt:
            pass
    numbers, tables = tabulation.tables()
    full = profile_of(case)
    for name, table in tables.items():
        assert len(table.classes) == len(numbers)
        expected = full.suppressed(2, name).ravel()[numbers]
        assert np.array_equal(table.suppressed(2, full.records), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_ctrl_c_keeps_what_is_tabulated_and_it_can_be_extended(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    import pandas as pd

    def progress(phase: str, done: int, total: int | None) -> None:
        if phase == "tabulate" and done:
            if compiled:  # what compiled code makes of Ctrl-C
                raise SystemError from KeyboardInterrupt()
            raise KeyboardInterrupt

    monkeypatch.setattr(Tabulation.slices, "__defaults__", (None, 1))
    table = pd.DataFrame(TABLE)
    part = shoal.profile(table, small(), progress=progress)
    assert part.stopped
    assert len(part.numbers) == 1
    assert part.negotiate().partial
    full = shoal.profile(table, small(), extend=part)
    assert full.complete
    assert not full.stopped
    direct = shoal.profile(table, small())
    assert np.array_equal(full.suppressed(2), direct.suppressed(2))
    with pytest.raises(KeyboardInterrupt):  # nothing to keep
        shoal.profile(table, small(), progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))


def test_other_hierarchies_or_sensitive_values_are_noticed(made: Profile) -> None:
    import pandas as pd

    table = pd.DataFrame(TABLE)
    assert made.with_data(table, small()).problem is not None
    tree = {"role": "quasi-identifier", "hierarchy": {"tree": {"x": ["a"], "y": ["b"]}}}
    others = [
        (table, small(columns=small()["columns"] | {"ward": tree})),
        (table.assign(illness=table["illness"].tolist()[::-1]), small()),
        (table, small(same_level=[["sex", "ward"]])),
        (table.assign(ward=list("aabba")), small()),
    ]
    for other, policy in others:
        with pytest.raises(DataError, match="of another table, or of other hierarchies"):
            made.with_data(other, policy)
        with pytest.raises(DataError, match="of another table, or of other hierarchies"):
            shoal.profile(other, policy, extend=made)


def test_a_lattice_too_large_to_rank_needs_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    monkeypatch.setattr(sys.modules["shoal.workflow.profile.grouping"], "LARGEST_RANKED", 3)
    table = pd.DataFrame(TABLE)
    for options in ({}, {"share": "50%"}):
        with pytest.raises(
            UsageError, match=r"The lattice has 4 nodes, too many to tabulate or to rank\. Give sec"
        ):
            shoal.profile(table, small(), **options)
    made = shoal.profile(table, small(), seconds=60)
    assert made.complete
    assert made.negotiate().exact.height == 1
    columns = {f"c{c}": {"role": "quasi-identifier", "hierarchy": "flat"} for c in range(64)}
    wide = pd.DataFrame({name: list("ab") for name in columns})
    with pytest.raises(UsageError, match=r"1\.84e\+19 nodes, more than a profile can number"):
        shoal.profile(wide, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}, seconds=1)


def test_any_byte_that_changed_is_noticed(made: Profile, tmp_path: Path) -> None:
    path = made.save(tmp_path / "p")
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(DataError, match=r"damaged|is not a profile|of another version"):
            Profile.load(path)


def test_numbers_of_any_kind_and_size_are_taken(made: Profile) -> None:
    found = made.negotiate(k=np.int64(2), max_level={"sex": np.int8(0)})
    assert json.dumps(found.to_dict())
    assert (found.request.least, found.request.max_level) == (2, {"sex": 0, "ward": 1})
    assert made.negotiate(k=10**30).privacy.least == 5
    assert made.negotiate(l=10**30).privacy.least == 2


def test_a_loss_is_told_only_where_it_is_known(made: Profile) -> None:
    found = made.negotiate(k=3, suppression_limit=0, max_level={"ward": 0}, prefer="loss", metric="coverage")
    assert found.suppression.suppressed > 0
    assert found.suppression.loss is None
    assert found.levels.loss is not None


def test_the_policys_wish_is_its_own_k_or_l(made: Profile) -> None:
    import pandas as pd

    both = small(models=[{"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 3}}])
    table = pd.DataFrame(TABLE)
    found = shoal.profile(table, both)
    assert (found.defaults.model, found.defaults.least) == ("k", 2)
    assert found.negotiate().besides == ()
    assert found.negotiate(k=2).besides == ("distinct-l-diversity",)
    assert found.negotiate(l=2).besides == ("k-anonymity",)
    two = small(models=[{"distinct-l-diversity": {"l": 2, "column": "other"}}])
    two["columns"]["other"] = {"role": "sensitive"}
    wide = table.assign(other=list("abcde"))
    found = shoal.profile(wide, two)
    assert found.negotiate().request.sensitive == "other"
    assert found.negotiate().besides == ()
    two["models"] = [{"distinct-l-diversity": {"l": 2}}]
    found = shoal.profile(wide, two)
    with pytest.raises(UsageError, match="Say which sensitive column l is about: illness, other"):
        found.negotiate()
    assert found.negotiate(sensitive="illness").besides == ("distinct-l-diversity of other",)
    with pytest.raises(UsageError, match="A sensitive column is for l"):
        made.negotiate(k=2, sensitive="illness")


def test_more_nodes_than_memory_holds_are_counted_while_there_is_time(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(46)]
    rows = (",".join("ab"[row * (n + 1) // 7 % 2] for n in range(46)) for row in range(60))
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in names}
    policy = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": 5}
    counted = shoal.profile(tmp_path / "wide.csv", policy, seconds=1)
    assert counted.lattice.size == 1 << 46
    assert len(counted.numbers) > 0
    assert not counted.complete
