"""Every promise of every privacy model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from plugin_examples import example
from problems import OPTIONS, Case, cases, edges, pairs, with_models
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.core.evaluator import Evaluator
from shoal.core.problem import Problem
from shoal.errors import PolicyError
from shoal.models import MODELS

ROUNDING = 1e-6


@st.composite
def trials(draw: Any, name: str, k: int | None = None) -> tuple[Case, Model, Problem]:
    """A case with one model beside k-anonymity, that model, and the problem."""
    case = draw(with_models(draw(cases(models=None)), [name], most=1))
    case.k = case.k if k is None else k
    problem = case.problem()
    return case, problem.models[-1], problem


@st.composite
def mergers(draw: Any, name: str) -> tuple[Case, Model, Problem]:
    """Few classes, some of which become one, and a model that some of them only just pass."""
    case = draw(edges([name]))
    problem = case.problem()
    return case, problem.models[-1], problem


def refused(model: Model, classes: Classes) -> int:
    return int(classes.sizes[model.violations(classes)].sum())


def test_every_model_is_tried_here() -> None:
    assert set(OPTIONS) == set(MODELS)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_a_monotone_model_never_suppresses_more_going_up(name: str, data: st.DataObject) -> None:
    """Without suppression: passing stays passing. Always: the suppressed records never grow."""
    _, model, problem = data.draw(trials(name) | mergers(name))
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:12]:
        below = evaluate.classes(node)
        short = refused(model, below)
        for higher in problem.lattice.generalizations(node):
            above = evaluate.classes(higher)
            if model.is_monotone(suppression=True):
                assert refused(model, above) <= short
            if model.is_monotone(suppression=False) and not short and model.holds(below, below.nothing()):
                assert refused(model, above) == 0
                assert model.holds(above, above.nothing())


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_in_a_monotone_problem_what_is_above_an_acceptable_node_is_acceptable(
    name: str, data: st.DataObject
) -> None:
    """Whatever k-anonymity suppresses beside the model: a claim of ALWAYS must bear that too."""
    _, _, problem = data.draw(trials(name) | mergers(name))
    if not problem.monotone_models:
        return
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:12]:
        if evaluate(node).acceptable:
            assert all(evaluate(higher).acceptable for higher in problem.lattice.generalizations(node))


def unsuppressed(case: Case) -> Case:
    return replace(case, limit=0)


ALWAYS = [name for name in MODELS if MODELS.load(name).monotone is When.ALWAYS]
AT_TIMES = [name for name in MODELS if MODELS.load(name).monotone is not When.NEVER]


@settings(max_examples=examples(400), deadline=None)
@given(case=pairs(ALWAYS) | pairs(AT_TIMES).map(unsuppressed))  # else a claim is seldom made
def test_pairs_of_models_are_monotone_where_both_claim_it(case: Case) -> None:
    """What one model suppresses, another must not count on: k-map lets go of records that are unique."""
    problem = case.problem()
    if not problem.monotone_models:
        return
    evaluate = Evaluator(problem)
    for node in problem.lattice.nodes():
        if evaluate(node).acceptable:
            assert all(evaluate(higher).acceptable for higher in problem.lattice.generalizations(node))


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_options_may_weaken_a_promise_and_never_strengthen_it(name: str, data: st.DataObject) -> None:
    _, model, _ = data.draw(trials(name))
    for suppression in (False, True):
        assert model.is_monotone(suppression) <= model.monotone.given(suppression)
    assert model.is_monotone(True) <= model.is_monotone(False)
    assert model.sizes_suffice <= model.by_size


# Two classes that become one, so many records of each value in each; the first passes.
MERGED: dict[str, tuple[dict[str, Any], list[list[int]]]] = {
    "alpha-k-anonymity": ({"alpha": 0.5, "k": 2}, [[5, 5], [3, 0]]),
    "basic-beta-likeness": ({"beta": 0.2}, [[50, 50], [30, 0]]),
    "delta-disclosure": ({"delta": 0.25}, [[50, 50], [30, 0]]),
    "enhanced-beta-likeness": ({"beta": 0.15}, [[50, 50], [40, 0]]),
    "entropy-l-diversity": ({"l": 2}, [[50, 50], [10, 0]]),
    "recursive-cl-diversity": ({"c": 1.5, "l": 2}, [[50, 40], [30, 0]]),
    "t-closeness": ({"t": 0.1}, [[50, 50], [30, 0]]),
}


def merged(spread: list[list[int]], whole: list[int]) -> tuple[Classes, Classes]:
    """Classes of so many records of each value, of a larger input, and the one class that they become."""
    rows = [(place,) for place, counts in enumerate(spread) for _ in range(sum(counts))]
    values = [v for counts in spread for v, number in enumerate(counts) for _ in range(number)]
    flat = {place: [str(place), "*"] for place in range(len(spread))}
    tree = {v: [str(v), "*"] for v in range(len(spread[0]))}
    case = Case(
        rows, [flat], [], 1, 1, 0, "height", [1.0], [0], [1], [], columns={"s": values}, trees={"s": tree}
    )
    problem = case.problem()
    about = {"s": replace(problem.sensitive_info["s"], reference=np.array(whole))}
    problem = replace(problem, sensitive_info=about)
    return problem.classes((0,)), problem.classes((1,))


@pytest.mark.parametrize("name", list(MERGED))
def test_a_model_that_is_not_always_monotone_has_a_class_that_merging_spoils(name: str) -> None:
    """As (50, 50) passes entropy 2-diversity, (10, 0) is suppressed, and merged (60, 50) fails."""
    options, spread = MERGED[name]
    model = MODELS.create(name, options)
    before, after = merged(spread, whole=[500, 500])
    order = np.argsort(-before.sizes)
    assert model.violations(before)[order].tolist() == [False, True]
    assert model.violations(after).tolist() == [True]
    assert not model.is_monotone(suppression=True)


def test_every_model_that_is_not_always_monotone_has_its_example() -> None:
    table_wide = {"average-risk", "delta-presence", "sample-uniqueness"}
    here = [name for name in MODELS if example(name) is None]
    assert {n for n in here if MODELS.load(n).monotone is not When.ALWAYS} == set(MERGED) | table_wide


def wide(
    sizes: dict[int, int], groups: dict[int, str], name: str, options: dict[str, Any], **entries: Any
) -> Problem:
    """One column whose values occur so often and are merged into groups, judged by a model and k = 3."""
    rows = [(value,) for value, number in sizes.items() for _ in range(number)]
    tree = {value: [str(value), group] for value, group in groups.items()}
    case = Case(rows, [tree], [], 3, 1, 4, "height", [1.0], [0], [1], [], models=[(name, options)], **entries)
    return case.problem()


def test_average_risk_is_spoilt_by_what_is_no_longer_suppressed() -> None:
    """One class of ten remains, a risk of 0.1; merged, four suppressed records are a small class."""
    problem = wide({0: 10, 1: 2, 2: 2}, {0: "a", 1: "b", 2: "b"}, "average-risk", {"risk": 0.1})
    judged = [Evaluator(problem)((level,)) for level in (0, 1)]
    assert [(found.acceptable, found.suppressed) for found in judged] == [(True, 4), (False, 0)]
    assert not problem.monotone_models


def test_sample_uniqueness_is_spoilt_by_what_k_map_no_longer_suppresses() -> None:
    """Alone in the population, a record goes; merged with a value that only others have, it stays, unique."""
    population = [(0,), (1,), (1,), (2,), (2,), (2,)]
    problem = wide(
        {0: 1, 2: 3}, {0: "a", 1: "a", 2: "b"}, "sample-uniqueness", {"share": 0.0}, population=population
    )
    k_map = MODELS.create("k-map", {"k": 2, "population": "all.csv"})
    problem = replace(problem, models=(k_map, problem.models[-1]))
    judged = [Evaluator(problem)((level,)) for level in (0, 1)]
    assert [(found.acceptable, found.suppressed) for found in judged] == [(True, 1), (False, 0)]
    assert not problem.monotone_models


def test_delta_presence_is_spoilt_by_a_class_that_was_suppressed() -> None:
    """Presence is 5 of 10, and 4 of 4 which goes; merged 9 of 14 is above a half."""
    options = {"maximum": 0.5, "population": "all.csv"}
    population = [(0,)] * 10 + [(1,)] * 4
    problem = wide({0: 5, 1: 4}, {0: "*", 1: "*"}, "delta-presence", options, population=population)
    judged = [Evaluator(problem)((level,)) for level in (0, 1)]
    assert [(found.acceptable, found.suppressed) for found in judged] == [(True, 4), (False, 9)]
    assert not problem.monotone_models


def test_delta_disclosure_of_present_values_is_spoilt_even_without_suppression() -> None:
    """Each class passes; merged, the value that one of them lacks has become too rare."""
    model = MODELS.create("delta-disclosure", {"delta": 1, "present_only": True})
    before, after = merged([[9, 60, 31], [0, 65, 35]], [200, 500, 300])
    assert not model.violations(before).any()
    assert model.violations(after).all()
    assert not model.is_monotone(suppression=False)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_what_is_unavoidable_is_refused_at_every_node_below(name: str, data: st.DataObject) -> None:
    """And merging classes never makes it more."""
    _, model, problem = data.draw(trials(name) | mergers(name))
    evaluate = Evaluator(problem)
    nodes = list(problem.lattice.nodes())[-12:]
    certain = {node: model.unavoidable(evaluate.classes(node)) for node in nodes}
    for node, here in certain.items():
        classes = evaluate.classes(node)
        assert here.shape == classes.sizes.shape
        assert ((here >= 0) & (here <= classes.sizes + ROUNDING)).all()
        for lower in problem.lattice.nodes():
            if all(a <= b for a, b in zip(lower, node, strict=True)):
                assert here.sum() <= refused(model, evaluate.classes(lower)) + ROUNDING
                if lower in certain:
                    assert here.sum() <= certain[lower].sum() + ROUNDING


@settings(max_examples=examples(400), deadline=None)
@given(data=st.data())
def test_below_a_hopeless_node_nothing_is_acceptable(data: st.DataObject) -> None:
    """Most of all where two models judge few classes at the edge, with suppression."""
    name = data.draw(st.sampled_from(sorted(MODELS)))
    case, _, problem = data.draw(mergers(name) | mergers(name) | trials(name))
    problem = replace(problem, limit=max(1, case.limit))
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[-12:]:
        if evaluate(node).refuses_below:
            for lower in problem.lattice.nodes():
                if all(a <= b for a, b in zip(lower, node, strict=True)):
                    assert not evaluate(lower).acceptable


def test_what_may_pass_below_is_not_hopeless() -> None:
    """At the top all is one class that fails; below, one class passes and the rest is within the limit."""
    values = [0, 1] * 20 + [0] * 3
    rows = [(0,)] * 40 + [(1,)] * 3
    tree = {0: ["0", "*"], 1: ["1", "*"]}
    case = Case(
        rows, [tree], [], 1, 1, 3, "height", [1.0], [0], [1], [],
        models=[("entropy-l-diversity", {"l": 2})], columns={"s": values},
    )  # fmt: skip
    top, bottom = (Evaluator(case.problem())((level,)) for level in (1, 0))
    assert (top.acceptable, top.refuses_below) == (False, False)
    assert (bottom.acceptable, bottom.suppressed) == (True, 3)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_no_class_below_the_least_size_passes(name: str, data: st.DataObject) -> None:
    _, model, problem = data.draw(trials(name))
    evaluate = Evaluator(problem)
    for node in list(problem.lattice.nodes())[:8]:
        classes = evaluate.classes(node)
        passing = classes.sizes[~model.violations(classes)]
        assert (passing >= model.least_size).all()
        if model.sizes_suffice:
            assert np.array_equal(model.violations(classes), classes.sizes < model.least_size)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_a_model_of_values_alone_does_not_look_at_the_number_of_records(
    name: str, data: st.DataObject
) -> None:
    """Were every record there twice, it would refuse the same classes."""
    _, model, problem = data.draw(trials(name) | mergers(name))
    if not model.ignores_size:
        return
    classes = problem.classes(problem.lattice.bottom)
    twice = {name: replace(own, counts=2 * own.counts) for name, own in classes.counts.sensitive.items()}
    doubled = replace(classes.counts, sizes=2 * classes.sizes, sensitive=twice)
    assert np.array_equal(
        model.violations(Classes(doubled, classes.sensitive_info)), model.violations(classes)
    )


@pytest.mark.parametrize(
    ("name", "options"), [("alpha-k-anonymity", {"alpha": 1.0, "k": 3}), ("p-sensitive", {"p": 2, "k": 3})]
)
def test_a_model_that_also_asks_for_records_says_so(name: str, options: dict[str, Any]) -> None:
    """Two values in two records are too few records, twice they are not."""
    model = MODELS.create(name, options)
    refused_once, refused_twice = (
        model.violations(merged([[n, n]], whole=[5, 5])[0]).tolist() for n in (1, 2)
    )
    assert (refused_once, refused_twice) == ([True], [False])
    assert not model.ignores_size


# The option that `nearest` relaxes, and a step that makes it stronger.
STRENGTH: dict[str, tuple[str, float]] = {
    "alpha-k-anonymity": ("alpha", -2e-4),
    "average-risk": ("risk", -2e-4),
    "basic-beta-likeness": ("beta", -2e-4),
    "delta-disclosure": ("delta", -2e-4),
    "delta-presence": ("maximum", -2e-4),
    "distinct-l-diversity": ("l", 1),
    "enhanced-beta-likeness": ("beta", -2e-4),
    "entropy-l-diversity": ("l", 2e-4),
    "k-anonymity": ("k", 1),
    "k-map": ("k", 1),
    "p-sensitive": ("p", 1),
    "recursive-cl-diversity": ("c", -2e-4),
    "sample-uniqueness": ("share", -2e-4),
    "t-closeness": ("t", -2e-4),
}


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=examples(80), deadline=None)
@given(data=st.data())
def test_the_nearest_setting_is_the_strongest_that_holds(name: str, data: st.DataObject) -> None:
    case, model, problem = data.draw(trials(name))
    classes = problem.classes(problem.lattice.top)
    nearest = model.nearest(classes, case.limit)
    if nearest is None:
        return

    def holds(other: Model) -> bool:
        mask = other.violations(classes)
        gone = classes.sizes[mask].sum()
        return bool(gone <= case.limit and gone < classes.records and other.holds(classes, mask))

    if not getattr(model, "minimum", 0):  # a least presence is not relaxed
        assert holds(nearest)
    option, step = STRENGTH.get(name) or example(name).STRENGTH
    if getattr(nearest, option) == getattr(model, option) and nearest != model:
        return  # recursive (c,l)-diversity fell back on another l
    try:
        stronger = replace(nearest, **{option: getattr(nearest, option) + step})
    except PolicyError:
        return  # there is no stronger setting
    assert not holds(stronger) or name in ("average-risk", "sample-uniqueness")
    if name == "p-sensitive":
        assert nearest.p <= model.k
