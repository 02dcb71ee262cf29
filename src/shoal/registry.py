"""Plug-ins by name, and descriptions of their options: type, default and meaning.

The meaning of an option is the string literal below its field in the class. Editors show this string, too.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import PydanticCustomError

from shoal.errors import PolicyError, UnknownName
from shoal.wording import quote

Plugin = TypeVar("Plugin")


def first_line(text: str | None) -> str:
    """Return the first line of a docstring."""
    return (text or "").strip().partition("\n")[0]


@cache
def _class_source(home: str) -> ast.ClassDef | None:
    """Return the parsed source of a class, given as `module:Class`, or None if there is no source file."""
    module, _, attribute = home.partition(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == attribute)
    return next(classes, None)


class Registry(Generic[Plugin]):
    """The plug-ins of one kind: the built-in ones, and those that entry points of other packages add."""

    def __init__(self, kind: str, built_in: Mapping[str, str]) -> None:
        """Store the kind, such as 'model', and the built-in plug-ins as name -> 'module:Class'."""
        self.kind = kind
        self._built_in = dict(built_in)

    @cached_property
    def _locations(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        third_party = {e.name: e.value for e in entry_points(group=f"shoal.{self.kind}s")}
        return {**third_party, **self._built_in}

    @property
    def built_in(self) -> list[str]:
        """The names that come with shoal, sorted."""
        return sorted(self._built_in)

    def __iter__(self) -> Iterator[str]:
        """Yield every name, sorted."""
        return iter(sorted(self._locations))

    def load(self, name: str) -> type[Plugin]:
        """Import the class of a plug-in."""
        location = self._locations.get(name)
        if location is None:
            raise UnknownName(name, self.kind, self)
        module, _, attribute = location.partition(":")
        plugin: type[Plugin] = getattr(import_module(module), attribute)
        return plugin

    def summary(self, name: str) -> str:
        """Return the first line of a plug-in's docstring, without importing the plug-in if possible."""
        source = self._source(name)
        return first_line(ast.get_docstring(source) if source else self.load(name).__doc__)

    def promise(self, name: str, attribute: str) -> object:
        """Return a class attribute whose value is a literal, without importing the plug-in if possible.

        Return None if the source of the class does not set it.
        """
        source = self._source(name)
        if source is None:
            return getattr(self.load(name), attribute, None)
        for statement in source.body:
            match statement:
                case (
                    ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
                    | ast.Assign(targets=[ast.Name(id=target)], value=value)
                ) if target == attribute:
                    return ast.literal_eval(value)
        return None

    def _source(self, name: str) -> ast.ClassDef | None:
        """Return the parsed source of a plug-in's class, or None if there is no source file."""
        return _class_source(self._locations[name])

    def create(self, name: str, options: Mapping[str, Any] | None = None) -> Plugin:
        """Create a plug-in from its name and options; raise UnknownName for an unknown option."""
        plugin_class: Any = self.load(name)
        fields = {field.name: field for field in dataclasses.fields(plugin_class)}
        arguments = dict(options or {})
        for option in arguments:
            if option not in fields:
                raise UnknownName(option, f"option of {name}", fields, field=option)
        missing = [name for name in fields if name not in arguments and default_of(fields[name]) is ...]
        if missing:
            message = f"{self.kind.capitalize()} {name} needs {', '.join(missing)}."
            raise PolicyError(message, field=missing[0])
        hints = _hints(plugin_class)
        for option, value in arguments.items():
            type_text = fields[option].metadata.get("takes")
            arguments[option] = validate_option(name, option, value, hints[option], type_text)
        plugin: Plugin = plugin_class(**arguments)
        return plugin

    def name_of(self, plugin: Plugin) -> str:
        """Return the registered name of a plug-in, or else the name of its class. Imports nothing."""
        for name, location in self._locations.items():
            module, _, attribute = location.partition(":")
            if getattr(sys.modules.get(module), attribute, None) is type(plugin):
                return name
        return type(plugin).__name__

    def options(self, name: str) -> tuple[Option, ...]:
        """Return the options of a plug-in."""
        return options_of(self.load(name))

    def needs_options(self, name: str) -> bool:
        """Return whether some option has no default."""
        return any(option.required for option in self.options(name))


_hints = cache(get_type_hints)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True))


def validate_option(name: str, option: str, value: object, kind: Any, takes: str | None = None) -> object:
    """Convert an option's value to its type, or raise PolicyError; `takes` describes the type in words."""
    try:
        if isinstance(value, bool) and bool not in (kind, *get_args(kind)):
            raise ValueError  # pydantic would accept True as the number 1
        result: object = _adapter(kind).validate_python(value)
    except ValueError:  # the base class of pydantic's ValidationError
        raise PolicyError(
            f"Option {option} of {name} must be {takes or expected_value(kind)}, got {quote(value)}.",
            field=option,
        ) from None
    return result


BROKEN_RULE = "broken_rule"  # the type of the pydantic errors that `broken_rule` returns
# The wording of pydantic's rules, by the type of the error.
_BOUNDS = {
    "string_too_long": "at most {max_length:,} characters long",
    "greater_than_equal": "at least {ge:,}",
    "greater_than": "above {gt:,}",
    "less_than_equal": "at most {le:,}",
    "less_than": "below {lt:,}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "too_short": "a list of at least {min_length:,}",
    "too_long": "a list of at most {max_length:,}",
}


def broken_rule(rule: str, value: object) -> PydanticCustomError:
    """Return the error that a pydantic validator raises if a value breaks a rule."""
    return PydanticCustomError(
        BROKEN_RULE, "must be {rule}, got {value}", {"rule": rule, "value": quote(value)}
    )


def bound_of(error: Mapping[str, Any]) -> str | None:
    """Return the rule for a value if a pydantic error names a bound, else None.

    >>> bound_of({"type": "greater_than_equal", "ctx": {"ge": 1.0}}), bound_of({"type": "int_parsing"})
    ('at least 1', None)
    """
    rule = _BOUNDS.get(str(error["type"]))
    context = {
        name: int(bound) if isinstance(bound, float) and bound == int(bound) else bound
        for name, bound in error.get("ctx", {}).items()
    }
    return rule.format_map(context) if rule else None


# The name of each type, in singular and plural.
_WORDS: dict[Any, tuple[str, str]] = {
    bool: ("true or false", "true or false"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    Decimal: ("number", "numbers"),
    str: ("text", "texts"),
}


@dataclass(frozen=True)
class Option:
    """The description of an option of a plug-in."""

    name: str
    type: str
    """The type in words; literal values are between backticks."""
    default: object
    """The default; `...` if the option is required."""
    meaning: str
    """One or two sentences, or empty."""
    kind: str = "text"
    """The form field for the option: `whole`, `number`, `flag`, `choice`, `text` or `structure`. The field's
    metadata may set another one, such as `column`."""
    choices: tuple[str, ...] = ()
    """The values of a `choice`, as a policy writes them."""

    @property
    def required(self) -> bool:
        """Whether the option has no default."""
        return self.default is ...

    @property
    def default_text(self) -> str:
        """The default in words."""
        if self.required:
            return "required"
        if isinstance(self.default, bool):
            return f"`{str(self.default).lower()}`"
        if isinstance(self.default, float | Decimal):
            return f"`{self.default:g}`"
        return "none" if self.default in (None, (), [], "") else f"`{self.default}`"

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, for JSON."""
        default = None if self.required else self.default
        default = float(default) if isinstance(default, Decimal) else default
        parts = {name: getattr(self, name) for name in ("name", "type", "meaning")}
        return parts | {"default": default, "required": self.required}


def options_of(kind: Any) -> tuple[Option, ...]:
    """Return the fields of a dataclass as options, inherited ones last.

    >>> from shoal.models.k_anonymity import KAnonymity
    >>> for option in options_of(KAnonymity):
    ...     print(option.name, option.type, option.default_text, sep=", ")
    k, whole number, required
    unit, text, none
    """
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    names = dict.fromkeys(name for base in kind.__mro__ for name in inspect.get_annotations(base))
    meanings = meanings_of(kind)
    return tuple(
        Option(
            name,
            fields[name].metadata.get("takes") or in_words(hints[name]),
            default_of(fields[name]),
            meanings.get(name, ""),
            fields[name].metadata.get("kind") or kind_of(hints[name]),
            choices_of(hints[name]),
        )
        for name in names
        if name in fields
    )


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the values that a type allows, as a policy writes them. Return () if it has no fixed list.

    >>> choices_of(bool | Literal["any"]), choices_of(Literal["a", "b"] | None), choices_of(bool)
    (('true', 'false', 'any'), ('a', 'b'), ())
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return tuple(map(str, arguments))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(part.value) for part in kind)
    if origin not in (Union, UnionType):
        return ()
    choices = [choices_of(part) for part in arguments if part not in (NoneType, bool)]
    if not choices or not all(choices):
        return ()
    return (*(("true", "false") if bool in arguments else ()), *(name for names in choices for name in names))


_KINDS: dict[Any, str] = {bool: "flag", int: "whole", float: "number", Decimal: "number", str: "text"}


def kind_of(kind: Any) -> str:
    """Return the form field that a type needs.

    >>> kind_of(int | None), kind_of(Literal["a", "b"]), kind_of(str), kind_of(tuple[str, ...])
    ('whole', 'choice', 'text', 'structure')
    """
    if choices_of(kind):
        return "choice"
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    kinds = {_KINDS.get(part, "structure") for part in parts if part is not NoneType}
    return kinds.pop() if len(kinds) == 1 else "number" if kinds == {"whole", "number"} else "structure"


def default_of(field: dataclasses.Field[Any]) -> object:
    """Return the default of a field, or `...` if it must be given."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return ... if field.default is MISSING else field.default


def in_words(kind: Any, *, several: bool = False) -> str:
    """Describe a type in words.

    >>> in_words(int | None), in_words(tuple[tuple[float, ...], ...]), in_words(Literal["a", "b", "c"])
    ('whole number', 'list of lists of numbers', '`a`, `b` or `c`')
    >>> in_words(bool | Literal["any"])
    'true, false or `any`'
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = [part for part in arguments if part is not NoneType]
        if bool in parts and len(parts) > 1:  # true and false are listed like the other choices
            others = [in_words(part, several=several) for part in parts if part is not bool]
            return _either(["true", "false", *others])
        return _either([in_words(part, several=several) for part in parts])
    if origin is Literal:
        return _either([f"`{part}`" for part in arguments])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _either([f"`{part.value}`" for part in kind])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mappings" if several else "mapping"
    if isinstance(origin, type) and issubclass(origin, Collection):
        elements = f" of {in_words(arguments[0], several=True)}" if arguments else ""
        return f"list{'s' if several else ''}{elements}"
    return _WORDS[kind][several] if kind in _WORDS else str(getattr(kind, "__name__", kind))


def expected_value(kind: Any) -> str:
    """Describe the expected value of a type, for "must be ...".

    >>> [expected_value(kind) for kind in (int, str | None, Literal["a", "b"], bool)]
    ['a whole number', 'text', "'a' or 'b'", 'true or false']
    """
    words = in_words(kind).replace("`", "'")
    return f"a {words}" if words.startswith(("whole", "number", "list", "mapping")) else words


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def meanings_of(kind: type) -> Mapping[str, str]:
    """Read the text below each field, class attribute or member, of a class and of its base classes."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _class_meanings(base)
    return meanings


@cache
def _class_meanings(kind: type) -> Mapping[str, str]:
    try:
        (source,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    meanings = {}
    for statement, following in pairwise(getattr(source, "body", ())):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                meanings[name] = " ".join(text.split())
    return meanings
