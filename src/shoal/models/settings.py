"""Settings of models: the refusals that several of them share."""

from __future__ import annotations

import math

from shoal.errors import PolicyError


def at_least_one(**settings: int) -> None:
    """Refuse whole numbers below 1."""
    for name, value in settings.items():
        if value < 1:
            message = f"{name} must be at least 1, got {value}."
            raise PolicyError(message)


def above_zero(**settings: float) -> None:
    """Refuse what is no number above 0."""
    for name, value in settings.items():
        if not 0 < value < math.inf:
            message = f"{name} must be a number above 0, got {value}."
            raise PolicyError(message)
