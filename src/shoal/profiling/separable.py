"""The separable metrics, whose loss of every node is a sum over columns, by name and options."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.core.contracts import Metric, When
from shoal.metrics import METRICS


def separable_metrics() -> Iterator[str]:
    """Name the metrics whose loss is a sum over columns, at least where nothing is suppressed."""
    for name in METRICS:
        if METRICS.load(name).separable is not When.NEVER:
            yield name


def losses_kept(metric: str | None) -> list[str]:
    """Name the separable metrics, and the policy's with its options where it is one."""
    found = list(separable_metrics())
    mine = metric or found[0]
    return list(dict.fromkeys([*found, mine] if mine.partition(":")[0] in found else found))


def metric_of(name: str) -> Metric:
    """Return a metric, by its name and its options, if any: coverage:aggregate=geometric."""
    plain, _, options = name.partition(":")
    return METRICS.create(plain, dict(pair.split("=", 1) for pair in options.split(",") if pair))
