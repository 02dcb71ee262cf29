"""Read YAML and JSON from files and requests, within limits on size, depth and aliases.

No file is trusted. Text that exceeds a limit, repeats a name, or has a value that JSON cannot express is
refused with `LoadError`. Its text continues a sentence that begins with the file: "... is not JSON".
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from shoal.wording import quote

# Explanations of the parser's messages. {n} is a group of the pattern, {line} the line where the part starts.
_EXPLANATIONS = {
    r"expected the node content, but found '<stream end>'": (
        "the text ends where a value is missing. Close every bracket"
    ),
    r"expected the node content, but found '(.)'": "a value is missing before {1}",
    r"expected ',' or '(.)', but got .*": "a comma or a {1} is missing in what begins at line {line}",
    r"found character '\\t' that .*": "there is a tab. Indent with spaces",
    r"found character '(.)' that .*": "text that begins with {1} needs quotes",
    r"expected <block end>, but found .*": (
        "the line is not indented like the lines that it belongs to, which begin at line {line}"
    ),
    r"mapping values are not allowed here": (
        "a colon is not possible here. Put text that contains one in quotes, and indent like the line above"
    ),
    r"sequence entries are not allowed here": "a list begins on a line of its own, with - before each entry",
    r"found unexpected end of stream": "the quote that opens at line {line} is not closed",
    r"could not find expected ':'": "a colon is missing after the name at line {line}",
    r"found unknown escape character .*": "a backslash stands in double quotes. Use single quotes",
    r"expected alphabetic or numeric character, .*|found undefined alias .*": (
        "text that begins with * or & needs quotes"
    ),
    r"could not determine a constructor for the tag .*": "text that begins with ! needs quotes",
    r"but found another document": "a second document begins there. Keep one",
}


def explain(error: Any) -> str:
    """Explain an error of the YAML parser, with its line.

    >>> import yaml
    >>> try:
    ...     yaml.safe_load("columns: {age: @x}")
    ... except yaml.YAMLError as error:
    ...     print(explain(error))
     at line 1: text that begins with @ needs quotes
    """
    mark, context_mark = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    location = f" at line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None)
    if problem is None:
        if isinstance(error, TypeError):
            return ": a key is a list or a mapping"
        return ": a character in it is not text"  # yaml's reader gives an offset, not a line
    first_line = (context_mark or mark).line + 1 if mark else 0
    for pattern, explanation in _EXPLANATIONS.items():
        if match := re.fullmatch(pattern, problem):
            return f"{location}: {explanation.format(match[0], *match.groups(), line=first_line)}"
    return f"{location}: {problem}"


MAX_DEPTH = 64
"""Maximum depth of nested lists and mappings. A policy has about 6, a tree of groups rarely 20."""
MAX_YAML_BYTES = 2_000_000
"""About four seconds of parsing; large hierarchies belong in CSV files."""
MAX_JSON_BYTES = 16_000_000
MAX_ALIASED_NODES = 10_000
"""Number of values that aliases may add. Nine levels of ten aliases each would add a billion."""

# The compiled parser accepts tabs, `?` inside words and block texts that the parser in Python refuses.
_READ_ALIKE = re.compile(r"[^\t?|>]*")
_DEEP = f"nested more than {MAX_DEPTH} levels deep"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class LoadError(ValueError):
    """A text that cannot be loaded; the message continues a sentence that begins with the file's name."""


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Read a file, or raise LoadError if it is larger than the limit."""
    with open(path, "rb") as file:
        data = file.read(max_bytes + 1)
    _check_size(len(data), max_bytes)
    return data


def load_json(text: str | bytes, *, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Parse JSON; refuse texts that other programs could read differently.

    >>> load_json('{"k": 5}')
    {'k': 5}
    >>> load_json('{"k": 5, "k": 2}')
    Traceback (most recent call last):
    shoal.files.yaml.LoadError: not valid: a name occurs twice in one object
    """
    _check_size(len(text), max_bytes)
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        data = json.loads(
            decoded, parse_constant=_not_finite, parse_float=_finite, object_pairs_hook=_refuse_duplicates
        )
    except LoadError:
        raise
    except RecursionError:
        raise LoadError(_DEEP) from None
    except ValueError:
        raise LoadError("not JSON") from None
    check_depth(data)
    if _SURROGATE.search(decoded):
        _check_text(json.dumps(data, ensure_ascii=False))
    return data


def load_yaml(text: str, *, as_text: bool = False, max_bytes: int = MAX_YAML_BYTES) -> Any:
    """Parse YAML, but keep values as text that YAML 1.1 would convert: `no`, 007 and 14:05.

    With `as_text`, numbers and all other scalars remain text, too.

    >>> load_yaml("{a: no, b: 007, c: 5}"), load_yaml("[036, 5]", as_text=True)
    ({'a': 'no', 'b': '007', 'c': 5}, ['036', '5'])
    """
    _check_size(len(text.encode("utf-8", "replace")), max_bytes)
    try:
        data = _load(text, as_text=as_text)
        check_depth(data)  # an alias is as deep as the node that it refers to
        return data
    except LoadError:
        raise
    except RecursionError:
        raise LoadError(_DEEP) from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise LoadError(f"not valid YAML{explain(error)}") from None


def _load(text: str, *, as_text: bool) -> Any:
    """Load with the compiled parser if both parsers read the text alike, else with the parser in Python.

    Text that the compiled parser refuses is parsed again in Python: `explain` knows only those messages.
    """
    if _FastLoader is not None and not as_text and _READ_ALIKE.fullmatch(text):
        with suppress(yaml.YAMLError):
            return yaml.load(text, Loader=_FastLoader)
    loader: Any = _TextLoader if as_text else _Loader
    return yaml.load(text, Loader=loader)


def check_depth(data: Any) -> None:
    """Refuse lists and mappings that are nested too deeply, without recursion."""
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise LoadError(_DEEP)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise LoadError(f"larger than {max_bytes / 1_000_000:g} MB, which is the limit")


def _check_text(text: str) -> None:
    """Refuse a lone surrogate, which can be neither printed nor written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LoadError("not valid: a character in it is not text") from None


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(_: str) -> float:
    raise LoadError("not valid: a number in it is not finite")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):  # the message leaves out the name, which may be a value of the data
        raise LoadError("not valid: a name occurs twice in one object")
    return data


class _Limits(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """YAML with fewer types of values and no tags. Limits are checked before values are constructed."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - yaml's own name; filled below

    def __init__(self) -> None:
        for part in (yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
            part.__init__(self)
        self._depth = 0
        self._aliased = 0
        self._root: Any = None
        self._sizes: dict[int, int] = {}  # id of a complete node -> number of nodes in it, aliases expanded

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, and count the nodes that aliases stand for."""
        event = self.peek_event()  # type: ignore[attr-defined]
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._sizes:
                raise LoadError(f"not valid: an alias is inside the part that it names{_line(event)}")
            self._aliased += self._sizes[id(node)]
            if self._aliased > MAX_ALIASED_NODES:
                raise LoadError(
                    f"too large: its aliases (*name) stand for more than {MAX_ALIASED_NODES:,} values"
                )
            return node
        if event.tag is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"could not determine a constructor for the tag {event.tag!r}", event.start_mark
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LoadError(f"{_DEEP}{_line(event)}")
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._root = node
        if isinstance(node, yaml.ScalarNode):
            _check_text(node.value)
        self._sizes[id(node)] = 1 + self._size_below(node)
        return node

    def _size_below(self, node: Any) -> int:
        if isinstance(node, yaml.MappingNode):
            return sum(self._sizes[id(part)] for pair in node.value for part in pair)
        if isinstance(node, yaml.SequenceNode):
            return sum(self._sizes[id(part)] for part in node.value)
        return 0

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that appears twice; the base class would keep the last value."""
        names = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":  # <<, which the base class resolves
                continue
            name = self.construct_object(key, deep=True)
            if name in names:
                # Below the top level, a key may be a value of the data, which a message must not quote.
                key_text = quote(name) if node is self._root else "a key"
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key_text} appears twice", key.start_mark
                )
            names.add(name)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Read a number, or refuse one that is too large."""
        text = str(self.construct_scalar(node))
        try:
            return int(text) if node.tag.endswith(":int") else _finite(text)
        except ValueError:
            raise LoadError(f"not valid YAML{_line(node)}: a number is too large") from None


class _Loader(_Limits, yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """A loader with the parser that is written in Python."""

    def __init__(self, stream: str) -> None:
        yaml.reader.Reader.__init__(self, stream)
        for part in (yaml.scanner.Scanner, yaml.parser.Parser, _Limits):
            part.__init__(self)


def _fast_loader() -> Any:
    """Return a loader with the compiled parser, or None if yaml was built without it."""
    if not yaml.__with_libyaml__:
        return None
    from yaml._yaml import CParser

    class FastLoader(_Limits, CParser):
        def __init__(self, stream: str) -> None:
            CParser.__init__(self, stream)
            _Limits.__init__(self)

    return FastLoader


class _TextLoader(_Loader):
    """A loader that leaves every scalar as text."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - yaml's own name


_FLOAT = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?"
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", [*"-+0123456789"]),
    ("float", _FLOAT, [*"-+.0123456789"]),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", ["<"]),
):
    _Limits.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
for _tag in ("int", "float"):
    _Limits.add_constructor(f"tag:yaml.org,2002:{_tag}", _Limits.construct_number)  # type: ignore[type-var]
_FastLoader = _fast_loader()


def _line(part: Any) -> str:
    return f" at line {part.start_mark.line + 1}"
