"""Negotiating k and l together, other kinds of l, and dropped columns, against plain definitions."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import shoal
from example_counts import examples
from problems import Case, cases
from shoal.core.classes import Classes
from shoal.core.counts.counts import SensitiveCounts
from shoal.core.counts.diversity import MODEL_NAMES, Diversity, Measure
from shoal.core.counts.in_memory import of_sizes
from shoal.errors import DataError, UsageError
from shoal.models import MODELS
from shoal.policy.policy import Policy
from shoal.workflow.profile.offer import adopted
from shoal.workflow.profile.profile import Profile, tabulated
from shoal.workflow.profile.source import ENTROPY_STEPS, PolicyDefaults, PolicyModel

pytestmark = pytest.mark.usefixtures("both_modes")

Node = tuple[int, ...]
C = 1.5


def profile_of(case: Case, **options: Any) -> Profile:
    """Tabulate a case with all kinds of l of its column `l`."""
    case.l = max(case.l, 2)  # which counts the column
    case.low, case.high, case.same_level = [0] * len(case.low), oracle.heights(case.hierarchies), []
    case.models = []
    models = (PolicyModel("entropy-l-diversity", 2, "l"), PolicyModel("recursive-cl-diversity", 2, "l", C))
    wish = PolicyDefaults("k", case.k, case.limit, {}, {}, models=models)
    case.columns = {}
    return tabulated(case.problem(), wish, **options)


def violates(values: list[int], k: int, l: float, kind: str) -> bool:
    if len(values) < k:
        return True
    options = {"l": l} | ({"c": C} if kind == "recursive" else {})
    return oracle.violating(MODEL_NAMES[kind], options, values, values, None)


def suppressed(case: Case, node: Node, k: int, l: float, kind: str) -> int:
    found = oracle.classes(case.rows, case.hierarchies, node).values()
    inside = ([case.sensitive[row] for row in rows] for rows in found)
    return sum(len(values) for values in inside if violates(values, k, l, kind))


def within(node: Node, high: Node) -> bool:
    return all(level <= top for level, top in zip(node, high, strict=True))


def best(case: Case, gone: dict[Node, int], nodes: list[Node]) -> Node | None:
    def merit(node: Node) -> tuple[Any, ...]:
        return sum(node), gone[node], -len(oracle.classes(case.rows, case.hierarchies, node)), node

    return min(nodes, key=merit, default=None)


def values_of(offer: Any) -> tuple[Node, float] | None:
    return offer and (tuple(offer.node.values()), offer.suppressed)


KINDS = st.sampled_from(["distinct", "entropy", "recursive"])


@st.composite
def requests(draw: Any) -> tuple[Case, dict[str, Any]]:
    case = draw(cases(models=None))
    kind = draw(KINDS)
    l = draw(st.sampled_from([1, 1.5, 1.75, 2, 2.5, 3])) if kind == "entropy" else draw(st.integers(1, 4))
    return case, {"k": draw(st.sampled_from([None, 1, 2, 3, 4])), "l": l, "diversity": kind}


@settings(max_examples=examples(300), deadline=None)
@given(asked=requests(), data=st.data())
def test_k_and_l_together_match_the_oracle(asked: tuple[Case, dict[str, Any]], data: st.DataObject) -> None:
    case, wishes = asked
    profile = profile_of(case)
    high = tuple(data.draw(st.integers(0, h)) for h in profile.lattice.heights)
    allowed = dict(zip(profile.lattice.columns, high, strict=True))
    answer = profile.negotiate(**wishes, suppression_limit=case.limit, max_level=allowed, sensitive="l")
    k, l, kind, n, limit = wishes["k"] or 1, wishes["l"], wishes["diversity"], len(case.rows), case.limit
    nodes = list(oracle.nodes(case.hierarchies))
    gone = {node: suppressed(case, node, k, l, kind) for node in nodes}
    for position, levels in enumerate(profile.levels.tolist()):
        assert profile.by_privacy(answer.request.privacy)[position] == gone[profile.lattice.node(levels)]
    good = [node for node in nodes if gone[node] <= limit and gone[node] < n]
    exact = best(case, gone, [node for node in good if within(node, high)])
    assert values_of(answer.exact) == (exact and (exact, gone[exact]))
    if exact:
        return
    inside = [node for node in nodes if within(node, high)]
    lowest = min(gone[node] for node in inside)
    expected = best(case, gone, [node for node in inside if gone[node] == lowest]) if lowest < n else None
    assert values_of(answer.suppression) == (expected and (expected, lowest))
    assert values_of(answer.levels) == (
        (good and (best(case, gone, good), gone[best(case, gone, good)])) or None
    )

    def reaches(k: int, l: float) -> bool:
        return any(suppressed(case, node, k, l, kind) <= min(limit, n - 1) for node in inside)

    if wishes["k"]:
        ks = [smaller for smaller in range(k, 0, -1) if reaches(smaller, l)]
        assert (answer.k and answer.k.least) == (ks[0] if ks else None)
        assert answer.k is None or answer.k.l == l
    else:
        assert answer.k is None
    step = 1 / ENTROPY_STEPS if kind == "entropy" else 1
    steps = range(round(l / step), round(1 / step) - 1, -1)
    ls = [number if step == 1 else number / ENTROPY_STEPS for number in steps]
    ls = [smaller for smaller in ls if reaches(k, smaller)]
    least = 1 if wishes["k"] else 1 + step
    assert (answer.l and answer.l.privacy.l) == (ls[0] if ls and ls[0] >= least else None)
    for offer in (answer.k, answer.l):
        if offer:
            node = tuple(offer.node.values())
            assert within(node, high)
            assert offer.suppressed == suppressed(case, node, offer.privacy.k or 1, offer.privacy.l, kind)
            assert offer.suppressed <= limit
    columns = {}
    for c, top in enumerate(oracle.heights(case.hierarchies)):
        for level in range(high[c] + 1, top + 1):
            node = best(case, gone, [v for v in good if within(v, (*high[:c], level, *high[c + 1 :]))])
            if node is not None:
                columns[f"c{c}"] = (level, node)
                break
    assert {one.column: (one.max_level, tuple(one.node.values())) for one in answer.columns} == columns


@settings(max_examples=examples(200), deadline=None)
@given(asked=requests(), data=st.data())
def test_dropped_columns_match_the_oracle(asked: tuple[Case, dict[str, Any]], data: st.DataObject) -> None:
    """The rows are counted by the remaining columns alone."""
    case, wishes = asked
    profile = profile_of(case)
    with_l = data.draw(st.booleans())
    if not with_l:
        wishes = {"k": wishes["k"] or 2}
    high = tuple(data.draw(st.integers(0, h)) for h in profile.lattice.heights)
    allowed = dict(zip(profile.lattice.columns, high, strict=True))
    answer = profile.negotiate(
        **wishes, suppression_limit=case.limit, max_level=allowed, sensitive="l" if with_l else None
    )
    k, l, kind = wishes.get("k") or 1, wishes.get("l", 1), wishes.get("diversity", "distinct")
    kind = kind if with_l else "distinct"
    columns, n = len(high), len(case.rows)
    sets = [s for size in (1, 2) for s in itertools.combinations(range(columns), size) if size < columns]
    answers = {one.columns: one for one in answer.dropped}
    assert set(answers) == {tuple(f"c{c}" for c in dropped) for dropped in sets}
    for dropped in sets:
        kept = [c for c in range(columns) if c not in dropped]
        smaller = replace(
            case, rows=[tuple(row[c] for c in kept) for row in case.rows],
            hierarchies=[case.hierarchies[c] for c in kept],
        )  # fmt: skip
        inside = [v for v in oracle.nodes(smaller.hierarchies) if within(v, tuple(high[c] for c in kept))]
        gone = {node: suppressed(smaller, node, k, l, kind) for node in inside}
        one = answers[tuple(f"c{c}" for c in dropped)]
        assert one.counted

        def levels(offer: Any, kept: list[int] = kept) -> Any:
            return offer and tuple(offer.node[f"c{c}"] for c in kept)

        good = [v for v in inside if gone[v] <= min(case.limit, n - 1)]
        assert levels(one.levels) == best(smaller, gone, good)
        least = min(gone.values())
        lowest = best(smaller, gone, [v for v in inside if gone[v] == least]) if least < n else None
        assert (levels(one.suppression), one.suppression and one.suppression.limit) == (
            lowest,
            None if lowest is None else least,
        )
        if wishes.get("k"):
            ks = [
                value
                for value in range(n, 0, -1)
                if any(suppressed(smaller, v, value, l, kind) <= min(case.limit, n - 1) for v in inside)
            ]
            expected = ks[0] if ks and (with_l or ks[0] > 1) else None
            assert (one.k and one.k.least) == expected


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(models=None), share=st.sampled_from(["10%", "40%"]))
def test_partial_extended_and_saved_profiles_hold_the_same(
    case: Case, share: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    full = profile_of(case)
    part = profile_of(case, share=share)
    grown = tabulated(part.problem, part.defaults, extend=part)
    loaded = Profile.load(full.save(tmp_path_factory.mktemp("p") / "p"))
    for wishes in ({"k": 2, "l": 2}, {"l": 1.5, "diversity": "entropy"}, {"k": 2, "l": 2, "c": C}):
        privacy = full.negotiate(**wishes, sensitive="l").request.privacy
        expected = dict(zip(full.numbers.tolist(), full.by_privacy(privacy).tolist(), strict=True))
        for other in (part, grown, loaded, full.best(share)):
            found = dict(zip(other.numbers.tolist(), other.by_privacy(privacy).tolist(), strict=True))
            assert found.items() <= expected.items()
        assert loaded.negotiate(**wishes, sensitive="l") == full.negotiate(**wishes, sensitive="l")
        missing = set(expected) - set(part.numbers.tolist())
        if missing:
            number = min(missing)
            index = tuple(int(level) for level in np.unravel_index(number, part.lattice.shape))
            assert part.with_node(index).by_privacy(privacy)[-1] == expected[number]


FRESH = """
import json, sys
import pandas as pd
import shoal
from shoal.core.compilation import work

flat = {"role": "quasi-identifier", "hierarchy": "flat"}
table = pd.DataFrame({
    "a": list("ywwyvxvvvvwxvxyvyvvvxwvxvvvyyxvvvvvvvvww"),
    "b": list("1111211121111111111112112211111212121211"),
    "s": list("qpprprppqpqprppqqrrprppppppqqppppqqppqpp"),
})
models = [
    {"k-anonymity": {"k": 3}}, {"entropy-l-diversity": {"l": 2}}, {"recursive-cl-diversity": {"c": 2, "l": 2}}
]
columns = {"a": flat, "b": flat, "s": {"role": "sensitive"}}
made = shoal.profile(table, {"columns": columns, "models": models, "suppression_limit": 0})
spent = work.numpy_rows
made.save(sys.argv[1])
answers = []
for profile in (made, shoal.Profile.load(sys.argv[1])):
    for l, options in ((2, {}), (1.75, {"diversity": "entropy"}), (2, {"diversity": "recursive"})):
        for limit in (0, 10):
            exact = profile.negotiate(k=6, l=l, suppression_limit=limit, **options).exact
            answers.append(exact and [*exact.node.values(), exact.suppressed])
print(json.dumps([spent, answers]))
"""


def test_a_fresh_process_tabulates_saves_and_negotiates_k_and_l(tmp_path: Path) -> None:
    """Numba is not loaded before the nodes are counted, as in a command."""
    run = [sys.executable, "-c", FRESH, str(tmp_path / "a.profile")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    spent, answers = json.loads(done.stdout.splitlines()[-1])
    assert spent > 0  # NumPy counted; the answers are levels and suppressed records
    assert answers == [[0, 1, 0], [0, 0, 6], [1, 0, 0], [0, 0, 6], [1, 1, 0], [1, 0, 9]] * 2


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=6),
    st.sampled_from([0.3, 0.5, 1.0, 1.1, 2.0, 3.0]),
)
def test_an_l_in_steps_is_what_the_models_refuse(groups: list[list[int]], c: float) -> None:
    rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    codes = np.concatenate([np.arange(len(group)) for group in groups])
    counts = np.concatenate([np.array(group) for group in groups])
    sizes = np.array([sum(group) for group in groups])
    classes = Classes(of_sizes(sizes, {"s": SensitiveCounts((rows << 3) | codes, counts, 3)}))
    for diversity in (Diversity(), Diversity("entropy", steps=100), Diversity("recursive", c)):
        measures = diversity.measures(rows, counts, sizes)
        for l in (1, 2, 3, 4, 5, *((1.5, 1.89, 2.01) if diversity.kind == "entropy" else ())):
            options = {"l": l} | ({"c": c} if diversity.kind == "recursive" else {})
            refused = MODELS.create(diversity.model, options).violations(classes)
            assert (measures < diversity.in_steps(l)).tolist() == refused.tolist()


FLAT = {"role": "quasi-identifier", "hierarchy": "flat"}
TABLE = pd.DataFrame(
    {
        "sex": list("ffmmffmm"),
        "ward": list("aabbccdd"),
        "illness": ["flu", "gout", "flu", "flu", "gout", "flu", "gout", "flu"],
        "job": list("xyxyxyxy"),
    }
)


def policy(*models: dict[str, Any], **changes: Any) -> dict[str, Any]:
    columns = {"sex": FLAT, "ward": FLAT, "illness": {"role": "sensitive"}, "job": {"role": "other"}}
    return {"columns": columns | changes, "models": [*models]}


TREE = {"x": ["a", "b"], "y": ["c", "d"]}
K2, L2 = {"k-anonymity": {"k": 2}}, {"distinct-l-diversity": {"l": 2}}
ENTROPY = {"entropy-l-diversity": {"l": 1.7}}
RECURSIVE = {"recursive-cl-diversity": {"c": 2, "l": 2}}


def test_a_policy_with_k_and_l_asks_for_both() -> None:
    profile = shoal.profile(TABLE, policy(K2, L2))
    answer = profile.negotiate()
    assert (answer.request.privacy.k, answer.request.privacy.l, answer.besides) == (2, 2, ())
    assert answer.to_dict()["k"] == answer.to_dict()["l"] == 2
    assert answer.exact.node == {"sex": 0, "ward": 1}
    assert profile.negotiate(k=2).besides == ("distinct-l-diversity",)
    assert profile.negotiate(l=2).besides == ("k-anonymity",)
    # An offer is a complete request: the release asks for both.
    wanted, _ = adopted(Policy.load(policy({"k-anonymity": {"k": 5}})), answer.exact)
    assert wanted.models == [K2, {"distinct-l-diversity": {"l": 2, "column": "illness"}}]


@pytest.mark.parametrize("model", [ENTROPY, RECURSIVE, L2])
def test_an_offer_of_any_kind_is_released_as_it_says(model: dict[str, Any]) -> None:
    profile = shoal.profile(TABLE, policy(K2, model))
    name, options = next(iter(model.items()))
    wishes = {"l": options["l"], "diversity": name.split("-")[0]}
    offer = profile.negotiate(k=3, **wishes, suppression_limit=2).exact
    assert offer is not None
    for source in (offer, json.dumps(offer.to_dict()), offer.to_dict()):
        assert shoal.anonymize(TABLE, policy(K2), node=source).suppressed == offer.suppressed
        wanted, _ = adopted(Policy.load(policy(K2, model)), source)
        assert wanted.models == [{"k-anonymity": {"k": 3}}, {name: options | {"column": "illness"}}]


def test_what_a_profile_cannot_answer_is_said_when_it_is_made_and_when_it_is_asked() -> None:
    closeness = {"t-closeness": {"t": 0.3}}
    profile = shoal.profile(TABLE, policy(K2, ENTROPY, closeness))
    assert profile.tabulated == ("k", "l of illness", "entropy l of illness")
    assert profile.unanswered == ("t-closeness",)
    assert "not answered" in str(profile)
    assert profile.negotiate().besides == ("t-closeness",)
    for wishes, text in [
        (
            {"l": 2, "diversity": "recursive", "c": 3},
            "does not hold what is asked for: recursive l-diversity",
        ),
        ({"l": 2, "c": 3}, "does not hold what is asked for: recursive l-diversity"),
        ({"l": 2, "diversity": "entropie"}, "Did you mean 'entropy'"),
        ({"l": 2.345, "diversity": "entropy"}, "l must be a multiple of 0.01, got 2.345"),
        ({"l": 2, "diversity": "entropy", "c": 2}, "c is for recursive diversity"),
        ({"k": 2, "diversity": "entropy"}, "diversity and c are for l"),
        ({"k": 2, "l": 0}, "l must be at least 1, got 0"),
        ({"k": 0, "l": 2}, "k must be at least 1, got 0"),
        ({"k": 2, "l": 1.5}, "l must be a whole number, got 1.5"),
        ({"k": 2, "l": True}, "l must be a whole number, got True"),
        ({"l": float("nan"), "diversity": "entropy"}, "l must be at least 1, got nan"),
    ]:
        with pytest.raises(UsageError, match=text):
            profile.negotiate(**wishes)
    bare = shoal.profile(TABLE, policy(K2))
    with pytest.raises(UsageError, match="such as entropy-l-diversity:l=2"):
        bare.negotiate(l=2, diversity="entropy")
    with pytest.raises(UsageError, match=r"The profile to extend does not hold .*: entropy l of illness"):
        shoal.profile(TABLE, policy(K2, ENTROPY), extend=bare)


def test_a_column_whose_top_is_no_single_group_is_dropped_from_the_data(tmp_path: Path) -> None:
    halves = {
        "role": "quasi-identifier",
        "hierarchy": {"tree": {"x": ["a", "b"], "y": ["c", "d"]}, "top": False},
    }
    profile = shoal.profile(TABLE, policy(K2, ward=halves))
    assert profile.removable == ("sex",)
    answer = profile.negotiate(k=4, max_level={"sex": 0})
    by_columns = {one.columns: one for one in answer.dropped}
    assert by_columns["ward",].levels.node == {"sex": 0}
    dropped = by_columns["ward",].levels
    release = shoal.anonymize(TABLE, policy(K2, ward=halves), drop=["ward"], node=dropped)
    assert release.suppressed == dropped.suppressed
    loaded = Profile.load(profile.save(tmp_path / "p"))
    by_columns = {one.columns: one for one in loaded.negotiate(k=4, max_level={"sex": 0}).dropped}
    assert not by_columns["ward",].counted
    assert by_columns["sex",].counted
    assert "What becomes possible without ward is not known" in str(
        loaded.negotiate(k=5, max_level={"sex": 0})
    )


def test_a_forged_joint_table_is_damage(tmp_path: Path) -> None:
    profile = shoal.profile(TABLE, policy(K2, L2))
    joint = profile.joints[Measure("illness")]
    for part, value in [("records", 9), ("sizes", 99), ("values", 1 << 25)]:
        changed = getattr(joint, part).astype(np.uint32)
        changed[0] = value
        forged = replace(profile, joints={Measure("illness"): replace(joint, **{part: changed})})
        path = forged.save(tmp_path / part)
        with pytest.raises(DataError, match="damaged"):
            Profile.load(path)


def test_the_best_node_need_not_be_the_highest_allowed() -> None:
    """Of (x, y) and (x) the second is suppressed; together they are (x, x, y), not worth 2 values."""
    table = pd.DataFrame({"a": list("001"), "s": list("xyx")})
    policy = {
        "columns": {"a": FLAT, "s": {"role": "sensitive"}},
        "models": [{"entropy-l-diversity": {"l": 2}}],
    }
    profile = shoal.profile(table, policy)
    assert profile.negotiate(suppression_limit=1).exact.node == {"a": 0}
    answer = profile.negotiate(l=3, diversity="entropy", suppression_limit=1)
    assert (answer.l.least, answer.l.node) == (2, {"a": 0})
    assert answer.levels is answer.suppression is None
    part = profile.best("1%", by="lattice")  # the top alone
    assert not part.negotiate(suppression_limit=1, runtime=False).settled
