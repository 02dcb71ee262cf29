"""Information loss metrics, by name."""

from __future__ import annotations

from shoal.core.contracts import Metric
from shoal.registry import Registry

METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "class-size": "shoal.metrics.class_size:ClassSize",
        "classification": "shoal.metrics.classification:ClassificationMetric",
        "composite": "shoal.metrics.composite:Composite",
        "coverage": "shoal.metrics.coverage:Coverage",
        "discernibility": "shoal.metrics.discernibility:Discernibility",
        "discernibility-star": "shoal.metrics.discernibility_star:DiscernibilityStar",
        "height": "shoal.metrics.height:Height",
        "non-uniform-entropy": "shoal.metrics.non_uniform_entropy:NonUniformEntropy",
        "precision": "shoal.metrics.precision:Precision",
        "uniform-entropy": "shoal.metrics.uniform_entropy:UniformEntropy",
    },
)
