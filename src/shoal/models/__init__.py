"""Privacy models, by name."""

from __future__ import annotations

from shoal.core.contracts import Model
from shoal.registry import Registry

MODELS: Registry[Model] = Registry(
    "model",
    {
        "distinct-l-diversity": "shoal.models.distinct_l_diversity:DistinctLDiversity",
        "k-anonymity": "shoal.models.k_anonymity:KAnonymity",
    },
)
