"""Thresholds: how real numbers are compared with them, and which would be met."""

from __future__ import annotations

import math

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.classes import Classes

CLOSE = 1e-9  # real thresholds are compared with this much patience
_FINE = 10_000  # steps in 1 that a proposed setting is rounded to


def within(classes: Classes, measures: FloatArray, limit: int) -> float | None:
    """Return the least bound that the measures of classes keep to, if so many records may exceed it."""
    order = np.argsort(-measures, kind="stable")
    exceeding = np.cumsum(classes.sizes[order]) - classes.sizes[order]  # records in the classes before
    allowed = np.flatnonzero(exceeding <= limit)
    last = measures[order][allowed[-1]]
    return float(last) if math.isfinite(last) else None


def rounded_up(bound: float, *, beyond: bool = False) -> float:
    """Round a bound up to four decimals; `beyond` it where it must not be reached."""
    return (math.floor(bound * _FINE) + 1) / _FINE if beyond else math.ceil(bound * _FINE - CLOSE) / _FINE
