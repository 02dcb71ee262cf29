"""Privacy models against their plain definitions, with large numbers, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from example_counts import examples
from problems import OPTIONS, Case, cases, hierarchies, with_models
from shoal.core.classes import Classes, Sensitive
from shoal.core.counts.counts import Field, SensitiveCounts
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.evaluator import Evaluator
from shoal.core.hierarchy.hierarchy import nest
from shoal.errors import InternalError, PolicyError, UnknownName
from shoal.models import MODELS
from shoal.models.sensitive_model import above_caps
from shoal.models.t_closeness import distances, farthest


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("k-anonymity", {"k": 1}, "A record may look like no other in the quasi-identifiers."),
        ("k-anonymity", {"k": 5}, "Every record looks like at least 4 others in the quasi-identifiers."),
        (
            "k-anonymity",
            {"k": 5, "unit": "person"},
            "Every record looks like at least 4 others in the quasi-identifiers (person).",
        ),
        (
            "distinct-l-diversity",
            {"l": 2, "column": "illness"},
            "Every group that looks alike holds at least 2 different sensitive values (illness).",
        ),
        (
            "entropy-l-diversity",
            {"l": 3},
            "Sensitive values in every group are as mixed as 3 equally frequent ones.",
        ),
        (
            "t-closeness",
            {"t": 0.2},
            "In every group sensitive values are spread as in the whole table, to a distance of 0.2.",
        ),
        ("p-sensitive", {"p": 2, "k": 5}, None),
    ],
)
def test_what_a_model_asks_is_told_in_words(name: str, options: dict[str, Any], words: str | None) -> None:
    assert MODELS.create(name, options).in_words() == words


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_every_model_equals_its_definition(name: str, data: st.DataObject) -> None:
    case = data.draw(with_models(data.draw(cases(models=None)), [name], most=1))
    case.k = 1
    problem = case.problem()
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:10]:
        classes = evaluate.classes(node)
        refused = problem.models[-1].violations(classes)
        extra = oracle.at_node(case.extra(), case.hierarchies, node)
        expected = [
            (len(p), oracle.refuses(*case.models[0], labels, p, extra))
            for labels, p in oracle.classes(case.rows, case.hierarchies, node).items()
        ]
        assert sorted(zip(classes.sizes.tolist(), refused.tolist(), strict=True)) == sorted(expected)
        whole = oracle.acceptable(case.rows, case.hierarchies, node, case.limit, **case.asked())
        assert evaluate(node).acceptable == whole


def classes_of(
    spread: Sequence[Sequence[int]], whole: Sequence[int] | None = None, tree: Any = None
) -> Classes:
    """Classes with so many records of each value, built without rows."""
    counts = np.array(spread, np.int64)
    rows, codes = np.nonzero(counts)
    bits = max(1, (counts.shape[1] - 1).bit_length())
    entries = SensitiveCounts((rows << bits) | codes, counts[rows, codes], bits)
    keys = np.arange(len(counts)).reshape(1, -1)
    made = InMemoryCounts((Field(0, 0, 2**20 - 1),), keys, counts.sum(axis=1), {"s": entries})
    hierarchy = None if tree is None else nest("s", [tree[v] for v in range(counts.shape[1])])
    reference = np.array(counts.sum(axis=0) if whole is None else whole, np.int64)
    return Classes(made, {"s": Sensitive(reference, np.arange(counts.shape[1]), hierarchy)})


SPREADS = st.integers(2, 5).flatmap(
    lambda values: st.lists(
        st.lists(st.integers(0, 9), min_size=values, max_size=values).filter(any), min_size=1, max_size=5
    )
)
SHARE_MODELS = [
    "alpha-k-anonymity", "basic-beta-likeness", "delta-disclosure", "enhanced-beta-likeness",
    "entropy-l-diversity", "recursive-cl-diversity", "t-closeness",
]  # fmt: skip


@pytest.mark.parametrize("name", SHARE_MODELS)
@pytest.mark.parametrize("times", [10**5, 10**8])
@settings(max_examples=examples(60), deadline=None)
@given(spread=SPREADS, data=st.data())
def test_shares_do_not_depend_on_how_many_millions_have_them(
    name: str, times: int, spread: list[list[int]], data: st.DataObject
) -> None:
    """Up to ten billion records: 32 bits would overflow, and small floats lose the difference."""
    whole = [max(1, sum(column)) for column in zip(*spread, strict=True)]
    tree = data.draw(hierarchies(len(whole)))
    options = data.draw(OPTIONS[name]) | {"column": None}
    model = MODELS.create(name, options | ({"k": 1} if "k" in options else {}))
    few = model.violations(classes_of(spread, whole, tree))
    scaled = [[number * times for number in counts] for counts in spread]
    many = classes_of(scaled, [number * times for number in whole], tree)
    assert model.violations(many).tolist() == few.tolist()
    assert (model.unavoidable(many) <= many.sizes).all()


@pytest.mark.parametrize("kind", ["equal", "ordered", "hierarchical"])
@settings(max_examples=examples(100), deadline=None)
@given(spread=SPREADS, times=st.integers(10**5, 10**8), data=st.data())
def test_distances_of_millions_equal_exact_fractions(
    kind: str, spread: list[list[int]], times: int, data: st.DataObject
) -> None:
    whole = [max(1, sum(column)) for column in zip(*spread, strict=True)]
    tree = data.draw(hierarchies(len(whole)))
    scaled = [[number * times + 1 for number in counts] for counts in spread]
    found = distances(classes_of(scaled, whole, tree), "s", kind)
    for counts, near in zip(scaled, found.tolist(), strict=True):
        assert near == pytest.approx(float(exact_distance(kind, counts, whole, tree)), abs=1e-12)
        assert near <= farthest(classes_of(scaled, whole, tree).column("s"), kind) + 1e-12


def exact_distance(kind: str, counts: list[int], whole: list[int], tree: Any) -> Fraction:
    """The earth mover's distance in whole numbers, by the definition of Li et al."""
    apart = [Fraction(c, sum(counts)) - Fraction(w, sum(whole)) for c, w in zip(counts, whole, strict=True)]
    values = len(apart)
    if kind == "equal":
        return sum(map(abs, apart), Fraction(0)) / 2
    if kind == "ordered":
        return sum((abs(sum(apart[: i + 1])) for i in range(values)), Fraction(0)) / (values - 1)
    paths = [[v, *tree[v][1:]] for v in range(values)]
    if len({path[-1] for path in paths}) > 1 or len(paths[0]) == 1:
        paths = [[*path, "root"] for path in paths]
    top, extras, total = len(paths[0]) - 1, dict(enumerate(apart)), Fraction(0)
    for level in range(1, top + 1):
        groups: dict[Any, list[Fraction]] = {}
        for child, group in {path[level - 1]: path[level] for path in paths}.items():
            groups.setdefault(group, []).append(extras[child])
        for children in groups.values():
            over = sum((e for e in children if e > 0), Fraction(0))
            under = -sum((e for e in children if e < 0), Fraction(0))
            total += Fraction(level, top) * min(over, under)
        extras = {group: sum(children, Fraction(0)) for group, children in groups.items()}
    return total


@pytest.mark.parametrize("records", [200_000, 10**6, 10**9])
def test_a_distance_of_a_half_is_refused_however_many_records(records: int) -> None:
    """A peer's hierarchical t-closeness overflows 32 bits at 200,000 records and accepts this for t = 0.2."""
    tree = {0: ["a", "x", "*"], 1: ["b", "x", "*"], 2: ["c", "y", "*"], 3: ["d", "y", "*"]}
    half = records // 2
    classes = classes_of([[half // 2, half // 2, 0, 0], [0, 0, half // 2, half // 2]], tree=tree)
    assert distances(classes, "s", "hierarchical").tolist() == [0.5, 0.5]
    for kind in ("equal", "hierarchical"):
        model = MODELS.create("t-closeness", {"t": 0.2, "distance": kind})
        assert model.violations(classes).all()
        assert model.unavoidable(classes).sum() > 0.1 * records


def test_classes_of_billions_are_merged_without_overflow() -> None:
    classes = classes_of([[2**31, 0, 5], [2**31, 7, 2**33]])
    merged = classes.counts.roll_up({0: np.zeros(2, np.int64)})
    assert merged.sizes.tolist() == [2**32 + 2**33 + 12]
    assert sorted(merged.sensitive["s"].counts.tolist()) == [7, 2**32, 2**33 + 5]


# Worked examples of the papers.


SALARY = [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0, 1, 1, 0]]


def test_the_salary_example_of_t_closeness() -> None:
    """Li et al. (2007): salaries 3k..11k; {3k,4k,5k} is 0.375 away, {6k,8k,11k} is 0.167 away."""
    found = distances(classes_of(SALARY), "s", "ordered")
    assert found[:2].tolist() == pytest.approx([0.375, 1 / 6])


def test_the_disease_example_of_t_closeness() -> None:
    """Li et al. (2007): along their tree flu is 1/3 from bronchitis, 2/3 from embolism, 1 from cancer."""
    infection, vascular, lungs = "respiratory infection", "vascular lung disease", "respiratory"
    tree = {
        0: ["flu", infection, lungs, "*"],
        1: ["bronchitis", infection, lungs, "*"],
        2: ["pulmonary embolism", vascular, lungs, "*"],
        3: ["stomach cancer", "stomach disease", "digestive", "*"],
    }
    for other, far in ((0, 0), (1, 1 / 3), (2, 2 / 3), (3, 1)):
        whole = [9 * (v == other) for v in range(4)]
        assert distances(classes_of([[7, 0, 0, 0]], whole, tree), "s", "hierarchical") == pytest.approx(far)


def test_entropy_two_diversity_is_exact_for_equal_halves() -> None:
    """ln 2 is reached by (50, 50) and by nothing less even; 2.5 asks for three values."""
    classes = classes_of([[50, 50, 0], [60, 50, 0], [51, 49, 0], [80, 10, 10], [34, 33, 33]])
    two = MODELS.create("entropy-l-diversity", {"l": 2})
    assert two.violations(classes).tolist() == [False, True, True, True, False]
    more = MODELS.create("entropy-l-diversity", {"l": 2.5})
    assert more.violations(classes).tolist() == [True, True, True, True, False]


def test_recursive_diversity_counts_from_the_lth_value_on() -> None:
    """f1 < c (f_l + ... + f_m), and equality is not enough."""
    classes = classes_of([[6, 3, 2], [6, 3, 3], [5, 5, 0]])
    model = MODELS.create("recursive-cl-diversity", {"c": 3, "l": 3})
    assert model.violations(classes).tolist() == [True, False, True]
    assert MODELS.create("recursive-cl-diversity", {"c": 3, "l": 10**30}).violations(classes).all()


def test_likeness_lets_a_rare_value_gain_and_a_frequent_one_hardly() -> None:
    """p is 0.1 and 0.9: basic 2 allows up to 0.3 and 1; enhanced allows the frequent one 0.9 (1 - ln 0.9)."""
    classes = classes_of([[3, 7], [4, 6], [0, 10], [1, 999]], whole=[100, 900])
    basic = MODELS.create("basic-beta-likeness", {"beta": 2})
    enhanced = MODELS.create("enhanced-beta-likeness", {"beta": 2})
    assert basic.violations(classes).tolist() == [False, True, False, False]
    assert enhanced.violations(classes).tolist() == [False, True, True, True]
    assert 0.9 * (1 - math.log(0.9)) < 0.999


def test_a_value_that_is_absent_breaks_the_textbook_delta_and_not_the_weaker() -> None:
    classes = classes_of([[0, 5, 5], [3, 3, 4]], whole=[10, 45, 45])
    assert MODELS.create("delta-disclosure", {"delta": 1.2}).violations(classes).tolist() == [True, False]
    weaker = MODELS.create("delta-disclosure", {"delta": 1.2, "present_only": True})
    assert weaker.violations(classes).tolist() == [False, False]


def test_a_huge_delta_or_beta_is_only_a_number() -> None:
    classes = classes_of([[0, 5, 5], [3, 3, 4]])
    for name, options in (
        ("delta-disclosure", {"delta": 5000.0, "present_only": True}),
        ("basic-beta-likeness", {"beta": 1e300}),
        ("enhanced-beta-likeness", {"beta": 1e300}),
    ):
        model = MODELS.create(name, options)
        assert model.unavoidable(classes).sum() == 0


def test_a_value_that_the_reference_lacks_is_refused_without_a_warning() -> None:
    classes = classes_of([[5, 5], [0, 10]], whole=[0, 10])
    for name, options in (
        ("delta-disclosure", {"delta": 1}),
        ("basic-beta-likeness", {"beta": 1}),
        ("enhanced-beta-likeness", {"beta": 1}),
    ):
        assert MODELS.create(name, options).violations(classes).tolist() == [True, False]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t-closeness", {"t": 1}),
        ("t-closeness", {"t": 1, "distance": "hierarchical"}),
        ("basic-beta-likeness", {"beta": 9}),
        ("enhanced-beta-likeness", {"beta": 9}),
        ("delta-disclosure", {"delta": 9, "present_only": True}),
    ],
)
def test_without_any_reference_nothing_passes(name: str, options: dict[str, Any]) -> None:
    """What is no number is no proof."""
    tree = {0: ["0", "*"], 1: ["1", "*"]}
    classes = classes_of([[5, 5], [0, 10]], whole=[0, 0], tree=tree)
    assert MODELS.create(name, options).violations(classes).all()


def test_a_class_too_poor_in_values_is_lost_as_a_whole() -> None:
    """Two values of at most 0.4 each cannot make up a class: no part of it passes."""
    classes = classes_of([[5, 5, 0], [4, 3, 3], [9, 1, 0]])
    model = MODELS.create("alpha-k-anonymity", {"alpha": 0.4, "k": 1})
    assert np.ceil(model.unavoidable(classes)).tolist() == [10, 0, 10]


@settings(max_examples=examples(200), deadline=None)
@given(spread=SPREADS, data=st.data())
def test_what_is_above_caps_is_the_most_over_all_sets_of_values(
    spread: list[list[int]], data: st.DataObject
) -> None:
    """The lemma's bound, tried for every set of values."""
    classes = classes_of(spread)
    held = classes.distribution("s")
    caps = [data.draw(st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9])) for _ in spread[0]]
    patience = data.draw(st.sampled_from([0.0, 0.1]))
    found = above_caps(held, np.array(caps)[held.codes], patience)
    for counts, here in zip(spread, found.tolist(), strict=True):
        present = [v for v, number in enumerate(counts) if number]
        best = 0.0
        for chosen in range(1 << len(present)):
            members = [v for place, v in enumerate(present) if chosen >> place & 1]
            room = 1 - patience - sum(caps[v] for v in members)
            if room > 1e-6:
                share = sum(counts[v] for v in members) / sum(counts)
                best = max(best, 1 - (1 - share) / room)
        assert here == pytest.approx(sum(counts) * best, abs=1e-6)


# Several columns, units, populations.


def test_without_a_column_every_sensitive_column_must_pass() -> None:
    case = Case(
        [(0,)] * 4, [{0: ["0"]}], [], 1, 1, 0, "height", [1.0], [0], [0], [],
        columns={"s": [0, 1, 2, None], "z": [0, 0, 0, 1]}, trees={},
    )  # fmt: skip
    classes = case.problem().classes((0,))
    for options, refused in (({"l": 3}, True), ({"l": 3, "column": "s"}, False), ({"l": 2}, False)):
        assert MODELS.create("distinct-l-diversity", options).violations(classes).tolist() == [refused]
    assert MODELS.create("distinct-l-diversity", {"l": 4, "column": "s"}).violations(classes).tolist() == [
        False
    ]
    with pytest.raises(UnknownName, match="Unknown sensitive column 'x'"):
        MODELS.create("distinct-l-diversity", {"l": 4, "column": "x"}).violations(classes)


def test_k_counts_units_where_one_is_named() -> None:
    case = Case(
        [(0,)] * 3 + [(1,)] * 3, [{0: ["0"], 1: ["1"]}], [], 1, 1, 0, "height", [1.0], [0], [0], [],
        models=[("k-anonymity", {"k": 3, "unit": "u"})], units=[1, 2, 3, 4, 4, 4],
    )  # fmt: skip
    problem = case.problem()
    assert not problem.models[-1].sizes_suffice
    assert Evaluator(problem)((0,)).suppressed == 3


def test_a_population_is_counted_into_the_classes() -> None:
    """Value 2 is in the population alone; it merges into the class of value 1."""
    tree = {0: ["0", "a"], 1: ["1", "b"], 2: ["2", "b"]}
    case = Case(
        [(0,), (0,), (1,)], [tree], [], 1, 1, 0, "height", [1.0], [0], [1], [],
        models=[("k-map", {"k": 3, "population": "p"})], population=[(0,), (0,), (0,), (1,), (2,), (2,)],
    )  # fmt: skip
    evaluate = Evaluator(case.problem())
    assert [evaluate((level,)).suppressed for level in (0, 1)] == [1, 0]
    presence = MODELS.create("delta-presence", {"maximum": 0.5, "minimum": 0.1, "population": "p"})
    classes = evaluate.classes((1,))
    assert (classes.sizes / classes.in_population).tolist() == [2 / 3, 1 / 3]
    assert presence.violations(classes).tolist() == [True, False]
    assert presence.holds(classes, classes.nothing())
    below = evaluate.classes((0,))  # those of value 2 are surely not in the table
    assert not presence.holds(below, below.nothing())
    with pytest.raises(InternalError, match="without one"):
        _ = Classes(replace(classes.counts, population=None)).in_population


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12, unique=True),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12, unique=True),
    st.sampled_from([1, 2]),
)
def test_sizes_are_looked_up_by_key(there: list[Any], wanted: list[Any], words: int) -> None:
    def keys(pairs: list[Any]) -> np.ndarray:
        return np.array([[a * 4 + b for a, b in pairs]] if words == 1 else list(zip(*pairs, strict=True)))

    counts = InMemoryCounts((), keys(there), np.arange(1, len(there) + 1), {})
    expected = [there.index(pair) + 1 if pair in there else 0 for pair in wanted]
    assert counts.sizes_of(keys(wanted)).tolist() == expected


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("alpha-k-anonymity", {"alpha": 0, "k": 2}, "alpha must be above 0 and at most 1, got 0.0"),
        ("alpha-k-anonymity", {"alpha": 0.5, "k": 0}, "k must be at least 1, got 0"),
        ("average-risk", {"risk": 1.5}, "risk must be above 0 and at most 1, got 1.5"),
        ("basic-beta-likeness", {"beta": 0}, "beta must be a number above 0, got 0.0"),
        ("enhanced-beta-likeness", {"beta": math.inf}, "beta must be a number above 0, got inf"),
        ("delta-disclosure", {"delta": -1}, "delta must be a number above 0, got -1.0"),
        ("delta-presence", {"maximum": 0.1, "minimum": 0.2, "population": "p"}, "0 <= minimum <= maximum"),
        ("distinct-l-diversity", {"l": 0}, "l must be at least 1, got 0"),
        ("entropy-l-diversity", {"l": 0.5}, "l must be a number of at least 1, got 0.5"),
        ("k-map", {"k": 0, "population": "p"}, "k must be at least 1, got 0"),
        ("k-map", {"k": 3}, "Model k-map needs population"),
        ("p-sensitive", {"p": 3, "k": 2}, "p must not be above k, got p=3 and k=2"),
        ("p-sensitive", {"p": 0, "k": 2}, "p must be at least 1, got 0"),
        ("recursive-cl-diversity", {"c": math.inf, "l": 2}, "c must be a number above 0, got inf"),
        ("recursive-cl-diversity", {"c": 1, "l": 0}, "l must be at least 1, got 0"),
        ("sample-uniqueness", {"share": 2}, "share must be from 0 to 1, got 2.0"),
        ("t-closeness", {"t": 1.2}, "t must be from 0 to 1, got 1.2"),
        ("t-closeness", {"t": -0.1}, "t must be from 0 to 1, got -0.1"),
        ("t-closeness", {"t": math.nan}, "t must be from 0 to 1, got nan"),
        ("t-closeness", {"t": 0.2, "distance": "far"}, "Option distance of t-closeness"),
        ("delta-disclosure", {"delta": 1, "present_only": "perhaps"}, "Option present_only"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        MODELS.create(name, options)
