"""Progress: the one callback that is told how far something is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]  # phase, done, of how many


def quiet(_phase: str, _done: int, _total: int | None) -> None:
    """Tell nobody how far it is."""
