"""Every promise of every privacy model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Case, cases

from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.core.evaluate import Evaluator
from shoal.models import MODELS

# How to make one of each model small enough to matter on tiny tables.
OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "k-anonymity": st.fixed_dictionaries({"k": st.integers(1, 6)}),
    "distinct-l-diversity": st.fixed_dictionaries({"l": st.integers(1, 4)}),
}


@st.composite
def models(draw: st.DrawFn, name: str) -> Model:
    return MODELS.create(name, draw(OPTIONS[name]))


def evaluator(case: Case) -> Evaluator:
    case.l = max(case.l, 2)  # so that the sensitive column is counted
    return Evaluator(case.problem())


def test_every_model_is_tried_here() -> None:
    assert set(OPTIONS) == set(MODELS)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=150, deadline=None)
@given(case=cases(), data=st.data())
def test_a_monotone_model_never_suppresses_more_going_up(name: str, case: Case, data: st.DataObject) -> None:
    """Without suppression: passing stays passing. Always: the suppressed records never grow."""
    model = data.draw(models(name))
    evaluate = evaluator(case)
    lattice = evaluate.problem.lattice
    for node in list(lattice.nodes())[:12]:
        below = evaluate.classes(node)
        short = below.sizes[model.violations(below)].sum()
        for higher in lattice.generalizations(node):
            above = evaluate.classes(higher)
            more = above.sizes[model.violations(above)].sum()
            if model.monotone is When.ALWAYS:
                assert more <= short
            if model.monotone is When.WITHOUT_SUPPRESSION and short == 0:
                assert more == 0


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_no_class_below_the_least_size_passes(name: str, case: Case, data: st.DataObject) -> None:
    model = data.draw(models(name))
    evaluate = evaluator(case)
    for node in list(evaluate.problem.lattice.nodes())[:8]:
        classes = evaluate.classes(node)
        passing = classes.sizes[~model.violations(classes)]
        assert (passing >= model.least_size).all()
        if model.by_size:
            assert np.array_equal(model.violations(classes), classes.sizes < model.least_size)


@pytest.mark.parametrize("name", list(MODELS))
@settings(max_examples=100, deadline=None)
@given(case=cases(), data=st.data())
def test_the_nearest_setting_is_the_strongest_that_holds(name: str, case: Case, data: st.DataObject) -> None:
    model = data.draw(models(name))
    classes = evaluator(case).classes(case.problem().lattice.top)
    nearest = model.nearest(classes, case.limit)

    def holds(other: Model, classes: Classes) -> bool:
        gone = classes.sizes[other.violations(classes)].sum()
        return bool(gone <= case.limit and gone < classes.records)

    if nearest is not None:
        assert holds(nearest, classes)
        if holds(model, classes):
            assert nearest.least_size >= model.least_size
        else:
            assert nearest.least_size < model.least_size
