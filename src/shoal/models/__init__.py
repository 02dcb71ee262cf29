"""Privacy models, by name."""

from __future__ import annotations

from shoal.core.contracts import Model
from shoal.registry import Registry

MODELS: Registry[Model] = Registry(
    "model",
    {
        "alpha-k-anonymity": "shoal.models.alpha_k_anonymity:AlphaKAnonymity",
        "average-risk": "shoal.models.average_risk:AverageRisk",
        "basic-beta-likeness": "shoal.models.basic_beta_likeness:BasicBetaLikeness",
        "delta-disclosure": "shoal.models.delta_disclosure:DeltaDisclosure",
        "delta-presence": "shoal.models.delta_presence:DeltaPresence",
        "distinct-l-diversity": "shoal.models.distinct_l_diversity:DistinctLDiversity",
        "enhanced-beta-likeness": "shoal.models.enhanced_beta_likeness:EnhancedBetaLikeness",
        "entropy-l-diversity": "shoal.models.entropy_l_diversity:EntropyLDiversity",
        "k-anonymity": "shoal.models.k_anonymity:KAnonymity",
        "k-map": "shoal.models.k_map:KMap",
        "p-sensitive": "shoal.models.p_sensitive:PSensitive",
        "recursive-cl-diversity": "shoal.models.recursive_cl_diversity:RecursiveClDiversity",
        "sample-uniqueness": "shoal.models.sample_uniqueness:SampleUniqueness",
        "t-closeness": "shoal.models.t_closeness:TCloseness",
    },
)
