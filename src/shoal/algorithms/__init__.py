"""Search algorithms, by name."""

from __future__ import annotations

from shoal.core.contracts import Algorithm
from shoal.registry import Registry

ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    {
        "all-minimal": "shoal.algorithms.all_minimal:AllMinimal",
        "anatomy": "shoal.algorithms.anatomy:Anatomy",
        "bottom-up": "shoal.algorithms.label_cuts.bottom_up:BottomUp",
        "contour": "shoal.algorithms.contour:Contour",
        "datafly": "shoal.algorithms.datafly:Datafly",
        "exhaustive": "shoal.algorithms.exhaustive:Exhaustive",
        "greedy-cuts": "shoal.algorithms.order_cuts.greedy_cuts:GreedyCuts",
        "incognito": "shoal.algorithms.incognito:Incognito",
        "k-optimize": "shoal.algorithms.order_cuts.k_optimize:KOptimize",
        "mondrian": "shoal.algorithms.mondrian.mondrian:Mondrian",
        "mu-argus": "shoal.algorithms.mu_argus:MuArgus",
        "ola": "shoal.algorithms.ola:Ola",
        "samarati": "shoal.algorithms.samarati:Samarati",
        "tds": "shoal.algorithms.label_cuts.tds:Tds",
    },
)
