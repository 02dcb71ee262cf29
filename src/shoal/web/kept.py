"""Kept: a result together with all that it depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.web.columns import Progress


@dataclass(frozen=True)
class Kept:
    """A result, shown as long as what it depends on stays the same."""

    key: object = None
    result: Any = None

    def under(self, key: object) -> Any:
        """Return the result where it was made under this key, else None."""
        return self.result if self.result is not None and self.key == key else None


def still_wanted(progress: Progress | None) -> None:
    """Let a cancelled job end before its result is kept."""
    if progress:
        progress("keep", 0, None)
