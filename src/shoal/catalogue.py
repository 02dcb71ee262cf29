"""What there is to choose from: models, metrics, algorithms, engines, hierarchy builders, presets."""

from __future__ import annotations

from shoal.algorithms import ALGORITHMS
from shoal.core.builders import BUILDERS
from shoal.engines import ENGINES
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.presets import PRESETS
from shoal.registry import first_line


def catalogue() -> dict[str, dict[str, str]]:
    """Return, for each kind of choice, every name with one line that says what it is."""
    found = {}
    for registry in (MODELS, METRICS, ALGORITHMS, ENGINES):
        found[f"{registry.kind}s"] = {name: registry.about(name) for name in registry}
    found["builders"] = {name: first_line(kind.__doc__) for name, kind in sorted(BUILDERS.items())}
    found["presets"] = {name: first_line(preset.__doc__) for name, preset in PRESETS.items()}
    return found
