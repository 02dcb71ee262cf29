"""A clock for searches: what fits into their seconds is the same on every machine."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest

from shoal.algorithms import projection
from shoal.core import evaluator


def let_looks_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search spend a millisecond each time that it looks at the clock."""
    ticks = count()
    for module in (evaluator, projection):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 1000))
