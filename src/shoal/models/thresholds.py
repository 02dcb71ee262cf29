"""Thresholds of models: validation, tolerance for real numbers, and the nearest bound that is satisfied."""

from __future__ import annotations

import math

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes
from shoal.errors import PolicyError, invalid


def at_least_one(**settings: int) -> None:
    """Refuse whole numbers below 1."""
    for name, value in settings.items():
        if value < 1:
            raise invalid(name, "at least 1", value, PolicyError)


def above_zero(**settings: float) -> None:
    """Refuse numbers unless they are finite and above 0."""
    for name, value in settings.items():
        if not 0 < value < math.inf:
            raise invalid(name, "a number above 0", value, PolicyError)


TOLERANCE = 1e-9  # the tolerance for comparing real thresholds
_STEPS = 10_000  # proposed settings are rounded to multiples of 1 / _STEPS


def least_bound(classes: Classes, measures: FloatArray, limit: int) -> float | None:
    """Return the smallest bound that all classes meet, except for at most `limit` records."""
    order = np.argsort(-measures, kind="stable")
    exceeding = np.cumsum(classes.sizes[order]) - classes.sizes[order]  # records in the preceding classes
    allowed = np.flatnonzero(exceeding <= limit)
    last = measures[order][allowed[-1]]
    return float(last) if math.isfinite(last) else None


def rounded_up(bound: float, *, strictly: bool = False) -> float:
    """Round a bound up to four decimals. With `strictly`, the result is greater than the bound."""
    return (
        (math.floor(bound * _STEPS) + 1) / _STEPS
        if strictly
        else math.ceil(bound * _STEPS - TOLERANCE) / _STEPS
    )
