"""Forms made from the fields of the plug-ins: each option has a field, and errors name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui")

from shoal.algorithms import ALGORITHMS
from shoal.errors import ShoalError
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.web.pages import forms
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.plain_words import model_sentence

KINDS = {"whole", "number", "flag", "choice", "text", "structure", "column", "sensitive-column", "file"}
PLUGINS = [(registry, name) for registry in (MODELS, METRICS, ALGORITHMS) for name in registry]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    made.open_sample()
    yield made
    made.close()


@pytest.mark.parametrize(("registry", "name"), PLUGINS, ids=[name for _, name in PLUGINS])
def test_every_option_of_every_plugin_has_a_field_that_reads_back_what_it_shows(
    registry: Any, name: str
) -> None:
    options = forms.options_for(registry, name)
    texts = {}
    for option in options:
        assert option.kind in KINDS
        assert option.meaning
        assert bool(option.choices) == (option.kind == "choice")
        default = forms.text_of(option, option.default)
        texts[option.name] = default or forms._EXAMPLES.get(option.name, "")
        if option.required and option.kind != "file":
            assert texts[option.name], "what must be given has an example"
        elif not option.required:
            assert forms.value_of(option, default) in (option.default, None)
    if all(option.kind != "file" for option in options):
        written = forms.written_plugin(registry, name, texts)
        given = {} if isinstance(written, str) else written[name]
        assert set(given) == {option.name for option in options if option.required}


def test_kinds_follow_the_types() -> None:
    kinds = {option.name: option.kind for option in MODELS.options("t-closeness")}
    assert kinds == {"t": "number", "distance": "choice", "column": "sensitive-column"}
    kinds = {option.name: option.kind for option in MODELS.options("k-anonymity")}
    assert kinds == {"k": "whole", "unit": "column"}
    cells = next(option for option in ALGORITHMS.options("ola") if option.name == "cells")
    assert (cells.kind, cells.choices) == ("choice", ("true", "false", "any"))


@pytest.mark.parametrize(
    ("name", "texts", "field"),
    [
        ("k-anonymity", {"k": "0"}, "k"),
        ("k-anonymity", {"k": "five"}, "k"),
        ("k-anonymity", {"k": ""}, "k"),
        ("k-anonymity", {"k": "2.5"}, "k"),
        ("t-closeness", {"t": "2"}, "t"),
        ("t-closeness", {"t": "0.2", "distance": "far"}, "distance"),
    ],
)
def test_an_error_names_the_option_that_is_wrong(name: str, texts: dict[str, str], field: str) -> None:
    with pytest.raises(ShoalError) as caught:
        forms.written_plugin(MODELS, name, texts)
    assert caught.value.field == field


def test_every_model_has_one_sentence() -> None:
    sentences = {name: model_sentence(name) for name in MODELS}
    assert all(text.endswith(".") and text.count(". ") == 0 for text in sentences.values())
    assert len({*sentences.values()}) == len(sentences)


def test_an_algorithm_and_its_label_are_chosen_together_or_not_at_all(workspace: Workspace) -> None:
    draft = workspace.draft
    with pytest.raises(ShoalError) as caught:
        draft.change(algorithm="tds")
    assert caught.value.field == "label"
    assert draft.settings()["algorithm"] == "auto"
    draft.change(algorithm="tds", label="diagnosis")
    with pytest.raises(ShoalError):
        draft.change(label=None)  # tds still needs it
    assert draft.settings()["label"] == "diagnosis"
    draft.change(algorithm=None, label=None)
    assert (draft.settings()["algorithm"], draft.settings()["label"]) == ("auto", None)
    workspace.history.undo()
    assert draft.settings()["label"] == "diagnosis"
    assert workspace.draft.policy().label == "diagnosis"


def test_population_and_share_are_settings_of_which_one_is_given(workspace: Workspace) -> None:
    workspace.draft.change(population_size=100_000)
    with pytest.raises(ShoalError) as caught:
        workspace.draft.change(sampling_share="5%")
    assert caught.value.field == "sampling_share"
    workspace.draft.change(population_size=None, sampling_share="5%")
    assert "sampling_share: 5%" in workspace.draft.to_yaml()
    assert workspace.risk.run(special_size=0).population == 100_000
