"""Catalogue of plug-ins, hierarchy builders and presets, with descriptions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.columns.presets import PRESETS
from shoal.core.hierarchy.builders import BUILDERS, READERS
from shoal.engines import ENGINES
from shoal.errors import UnknownName
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.registry import Option, Registry, first_line, options_of

REGISTRIES: tuple[Registry[Any], ...] = (MODELS, METRICS, ALGORITHMS, ENGINES)


@dataclass(frozen=True)
class Choice:
    """A plug-in, a hierarchy builder or a preset, with its options."""

    kind: str
    name: str
    about: str
    options: tuple[Option, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain values."""
        options = [option.to_dict() for option in self.options]
        return {"kind": self.kind, "name": self.name, "about": self.about, "options": options}


def catalogue() -> dict[str, dict[str, str]]:
    """Return, for each kind of choice, every name with a one-line summary."""
    summaries = {f"{kind.kind}s": {name: kind.summary(name) for name in kind} for kind in REGISTRIES}
    summaries["builders"] = {name: builder_summary(name) for name in sorted(BUILDERS)}
    summaries["presets"] = {name: first_line(preset.__doc__) for name, preset in PRESETS.items()}
    return summaries


def builder_summary(name: str) -> str:
    """Return what a hierarchy builder does, in one line."""
    return first_line(BUILDERS[name].__doc__)


def algorithm_sentence(name: str) -> str:
    """Return what a search does, in a sentence for readers who do not program."""
    if name == "auto":
        return "Chooses the search that can prove that nothing else loses less, if it has the time."
    return ALGORITHMS.load(name).plain_summary or ALGORITHMS.summary(name)


def describe(name: str) -> Choice:
    """Return the description and the options of the plug-in, builder or preset with this name.

    >>> choice = describe("coverage")
    >>> choice.kind, [option.name for option in choice.options]
    ('metric', ['aggregate'])
    """
    for registry in REGISTRIES:
        if name in registry:
            return Choice(registry.kind, name, registry.summary(name), registry.options(name))
    if name in BUILDERS:
        return Choice("builder", name, builder_summary(name), builder_options(name))
    if name in PRESETS:
        return Choice("preset", name, first_line(PRESETS[name].__doc__))
    raise UnknownName(name, "name", sorted([*chain.from_iterable(REGISTRIES), *BUILDERS, *PRESETS]))


def builder_options(name: str) -> tuple[Option, ...]:
    """Return the options of a builder. `sizes` and the option that has the builder's name are required."""
    options = (option for option in options_of(BUILDERS[name]) if option.name in READERS)
    needed = (name, "sizes")
    return tuple(replace(option, default=...) if option.name in needed else option for option in options)
