"""What the fields of a plug-in are as options: type in words, default and meaning, read from its class.

The meaning of an option is the text below its field, where an editor looks for it too.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

# What one is called, and several.
_WORDS: dict[Any, tuple[str, str]] = {
    bool: ("true or false", "true or false"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    Decimal: ("number", "numbers"),
    str: ("text", "texts"),
}


@dataclass(frozen=True)
class Option:
    """One option of a plug-in, as it is told to people."""

    name: str
    type: str
    """Its type in words; what is to be written as it stands is between backticks."""
    default: object
    """What holds without it; `...` where it must be given."""
    meaning: str
    """A sentence or two; empty where its class does not say."""

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is ...

    @property
    def default_text(self) -> str:
        """Its default in words."""
        if self.required:
            return "required"
        if isinstance(self.default, bool):
            return f"`{str(self.default).lower()}`"
        if isinstance(self.default, float | Decimal):
            return f"`{self.default:g}`"
        return "none" if self.default in (None, (), [], "") else f"`{self.default}`"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        default = None if self.required else self.default
        default = float(default) if isinstance(default, Decimal) else default
        return dataclasses.asdict(self) | {"default": default, "required": self.required}


def options_of(kind: Any) -> tuple[Option, ...]:
    """Tell the fields of a dataclass as options: its own first, then those that it inherits.

    >>> from shoal.models.k_anonymity import KAnonymity
    >>> for option in options_of(KAnonymity):
    ...     print(option.name, option.type, option.default_text, sep=", ")
    k, whole number, required
    unit, text, none
    """
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    own_first = dict.fromkeys(name for one in kind.__mro__ for name in inspect.get_annotations(one))
    meanings = meanings_of(kind)
    return tuple(
        Option(
            name,
            fields[name].metadata.get("takes") or in_words(hints[name]),
            default_of(fields[name]),
            meanings.get(name, ""),
        )
        for name in own_first
        if name in fields
    )


def default_of(field: dataclasses.Field[Any]) -> object:
    """Return what holds where a field is not given, or `...` where it must be."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return ... if field.default is MISSING else field.default


def in_words(kind: Any, *, several: bool = False) -> str:
    """Tell a type in words.

    >>> in_words(int | None), in_words(tuple[tuple[float, ...], ...]), in_words(Literal["a", "b", "c"])
    ('whole number', 'list of lists of numbers', '`a`, `b` or `c`')
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _either([in_words(one, several=several) for one in inside if one is not NoneType])
    if origin is Literal:
        return _either([f"`{one}`" for one in inside])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _either([f"`{one.value}`" for one in kind])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mappings" if several else "mapping"
    if isinstance(origin, type) and issubclass(origin, Collection):
        of = f" of {in_words(inside[0], several=True)}" if inside else ""
        return f"list{'s' if several else ''}{of}"
    return _WORDS[kind][several] if kind in _WORDS else str(getattr(kind, "__name__", kind))


def wanted(kind: Any) -> str:
    """Say what is to be written for a type.

    >>> wanted(int), wanted(str | None), wanted(Literal["a", "b"]), wanted(bool)
    ('a whole number', 'text', "'a' or 'b'", 'true or false')
    """
    words = in_words(kind).replace("`", "'")
    return f"a {words}" if words.startswith(("whole", "number", "list", "mapping")) else words


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def meanings_of(kind: type) -> Mapping[str, str]:
    """Read the text below each field, class attribute or member, of a class and those it inherits from."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        found |= _own_meanings(one)
    return found


@cache
def _own_meanings(kind: type) -> Mapping[str, str]:
    """Read the texts of a class itself; nothing where its source is not there."""
    try:
        (written,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    found = {}
    for field, below in pairwise(getattr(written, "body", ())):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found
