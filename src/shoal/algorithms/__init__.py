"""Search algorithms, by name."""

from __future__ import annotations

from shoal.core.contracts import Algorithm
from shoal.registry import Registry

ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    {
        "contour": "shoal.algorithms.contour:Contour",
        "exhaustive": "shoal.algorithms.exhaustive:Exhaustive",
        "ola": "shoal.algorithms.ola:Ola",
    },
)
