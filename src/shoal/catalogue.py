"""What there is to choose from: models, metrics, algorithms, engines, hierarchy builders."""

from __future__ import annotations

from shoal.algorithms import ALGORITHMS
from shoal.core.builders import BUILDERS
from shoal.engines import ENGINES
from shoal.metrics import METRICS
from shoal.models import MODELS


def catalogue() -> dict[str, dict[str, str]]:
    """Return, for each kind of plug-in, every name with one line that says what it is."""
    found = {}
    for registry in (MODELS, METRICS, ALGORITHMS, ENGINES):
        found[f"{registry.kind}s"] = {name: _first_line(registry.load(name)) for name in registry}
    found["builders"] = {name: _first_line(kind) for name, kind in sorted(BUILDERS.items())}
    return found


def _first_line(plugin: type) -> str:
    return (plugin.__doc__ or "").strip().splitlines()[0]
