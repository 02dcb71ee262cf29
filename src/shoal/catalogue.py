"""What there is to choose from: models, metrics, algorithms, engines, hierarchy builders, presets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.core.builders import BUILDERS, READERS
from shoal.engines import ENGINES
from shoal.errors import UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.options import Option, options_of
from shoal.policies.presets import PRESETS
from shoal.registry import Registry, first_line

REGISTRIES: tuple[Registry[Any], ...] = (MODELS, METRICS, ALGORITHMS, ENGINES)


@dataclass(frozen=True)
class Choice:
    """One of the things to choose from, with its options."""

    kind: str
    name: str
    about: str
    options: tuple[Option, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        told = [option.to_dict() for option in self.options]
        return {"kind": self.kind, "name": self.name, "about": self.about, "options": told}


def catalogue() -> dict[str, dict[str, str]]:
    """Return, for each kind of choice, every name with one line that says what it is."""
    found = {f"{kind.kind}s": {name: kind.about(name) for name in kind} for kind in REGISTRIES}
    found["builders"] = {name: first_line(kind.__doc__) for name, kind in sorted(BUILDERS.items())}
    found["presets"] = {name: first_line(preset.__doc__) for name, preset in PRESETS.items()}
    return found


def describe(name: str) -> Choice:
    """Tell what a name stands for, with its options.

    >>> found = describe("coverage")
    >>> found.kind, [option.name for option in found.options]
    ('metric', ['aggregate'])
    """
    for registry in REGISTRIES:
        if name in registry:
            return Choice(registry.kind, name, registry.about(name), registry.options(name))
    if name in BUILDERS:
        return Choice("builder", name, first_line(BUILDERS[name].__doc__), builder_options(name))
    if name in PRESETS:
        return Choice("preset", name, first_line(PRESETS[name].__doc__))
    raise UnknownName(name, "name", sorted([*chain.from_iterable(REGISTRIES), *BUILDERS, *PRESETS]))


def builder_options(name: str) -> tuple[Option, ...]:
    """Tell the options of a hierarchy builder; the one that has its name, and sizes, must be given."""
    options = (option for option in options_of(BUILDERS[name]) if option.name in READERS)
    needed = (name, "sizes")
    return tuple(replace(option, default=...) if option.name in needed else option for option in options)
