"""Plug-ins by name: imported when first used, with their options taken from their fields."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter

from shoal.errors import PolicyError, UnknownName
from shoal.options import Option, default_of, options_of, wanted

Plugin = TypeVar("Plugin")


def first_line(text: str | None) -> str:
    """Return the first line of a docstring."""
    return (text or "").strip().partition("\n")[0]


class Registry(Generic[Plugin]):
    """One kind of plug-in: its built-in names and those of third parties' entry points."""

    def __init__(self, kind: str, built_in: Mapping[str, str]) -> None:
        """Take the kind ('model') and name -> 'module:Class'."""
        self.kind = kind
        self._built_in = dict(built_in)

    @cached_property
    def _homes(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        third_party = {e.name: e.value for e in entry_points(group=f"shoal.{self.kind}s")}
        return {**third_party, **self._built_in}

    @property
    def built_in(self) -> list[str]:
        """The names that come with shoal, sorted."""
        return sorted(self._built_in)

    def __iter__(self) -> Iterator[str]:
        """Yield every name, sorted."""
        return iter(sorted(self._homes))

    def load(self, name: str) -> type[Plugin]:
        """Import the class behind a name."""
        home = self._homes.get(name)
        if home is None:
            raise UnknownName(name, self.kind, self)
        module, _, attribute = home.partition(":")
        loaded: type[Plugin] = getattr(import_module(module), attribute)
        return loaded

    def about(self, name: str) -> str:
        """Return the first line of what a plug-in says of itself, without importing what it needs."""
        module, _, attribute = self._homes[name].partition(":")
        found = find_spec(module)
        if found is None or found.origin is None or not found.origin.endswith(".py"):
            return first_line(self.load(name).__doc__)
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == attribute)
        return first_line(next((ast.get_docstring(node) for node in classes), None))

    def create(self, name: str, options: Mapping[str, Any] | None = None) -> Plugin:
        """Build a plug-in from its name and options, refusing what it does not know."""
        loaded: Any = self.load(name)
        fields = {field.name: field for field in dataclasses.fields(loaded)}
        given = dict(options or {})
        for option in given:
            if option not in fields:
                raise UnknownName(option, f"option of {name}", fields)
        missing = [f for f, d in fields.items() if f not in given and default_of(d) is ...]
        if missing:
            message = f"{self.kind.capitalize()} {name} needs {', '.join(missing)}."
            raise PolicyError(message)
        hints = _hints(loaded)
        takes = {option: field.metadata.get("takes") for option, field in fields.items()}
        built: Plugin = loaded(**{o: checked(name, o, v, hints[o], takes[o]) for o, v in given.items()})
        return built

    def name_of(self, plugin: Plugin) -> str:
        """Return the name of a plug-in that was built, or its class's where it is not registered."""
        return next((name for name in self if self.load(name) is type(plugin)), type(plugin).__name__)

    def options(self, name: str) -> tuple[Option, ...]:
        """Tell each option's type in words, its default and its meaning."""
        return options_of(self.load(name))


_hints = cache(get_type_hints)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))


def checked(name: str, option: str, value: object, kind: Any, takes: str | None = None) -> object:
    """Return an option's value as its type wants it, or refuse it; `takes` tells what it is, in words."""
    try:
        if isinstance(value, bool) and kind is not bool:
            raise ValueError  # Python takes true for 1
        found: object = _adapter(kind).validate_python(value)
    except ValueError:  # pydantic's own among them
        message = f"Option {option} of {name} must be {takes or wanted(kind)}, got {value!r}."
        raise PolicyError(message) from None
    return found
