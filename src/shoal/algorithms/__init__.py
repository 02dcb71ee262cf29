"""Search algorithms, by name."""

from __future__ import annotations

from shoal.core.contracts import Algorithm
from shoal.registry import Registry

ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    {
        "all-minimal": "shoal.algorithms.all_minimal:AllMinimal",
        "anatomy": "shoal.algorithms.anatomy:Anatomy",
        "contour": "shoal.algorithms.contour:Contour",
        "datafly": "shoal.algorithms.datafly:Datafly",
        "exhaustive": "shoal.algorithms.exhaustive:Exhaustive",
        "incognito": "shoal.algorithms.incognito:Incognito",
        "mondrian": "shoal.algorithms.mondrian:Mondrian",
        "ola": "shoal.algorithms.ola:Ola",
        "samarati": "shoal.algorithms.samarati:Samarati",
    },
)
