"""Progress: the callback that reports how far a run is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]  # phase, done, of how many


def quiet(_phase: str, _done: int, _total: int | None) -> None:
    """Report nothing."""
