"""The public names."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import shoal
from shoal.errors import UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS


def test_all_is_sorted_and_complete() -> None:
    assert list(shoal.__all__) == sorted(shoal.__all__)
    assert all(hasattr(shoal, name) for name in shoal.__all__)
    assert {"Policy", "Release", "Verification", "anonymize", "verify"} <= set(shoal.__all__)


def test_functions_are_not_hidden_by_their_modules() -> None:
    assert callable(shoal.anonymize)
    assert callable(shoal.verify)


def test_the_version_is_that_of_the_changelog() -> None:
    root = Path(__file__).parents[1]
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert declared == version("shoal")
    assert f"## {declared}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(UnknownName, match=r"Unknown metric 'coverge'. Did you mean 'coverage'"):
        METRICS.create("coverge")
    with pytest.raises(UnknownName, match=r"Unknown option of k-anonymity 'kk'. Did you mean 'k'"):
        MODELS.create("k-anonymity", {"kk": 3})
