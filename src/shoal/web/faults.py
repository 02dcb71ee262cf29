"""What is wrong with a request, in our words: which entry, and what it must be. What was sent is not told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shoal.errors import nearest

_NAMED = "a name, or a name with its options, as {0}"
# What entries must be that take more than one type.
_WANTED = {
    "suppression_limit": "a number of records, or a share such as 0.05 or '5%'",
    "suppression_limits": "a list of limits: numbers of records, or shares such as 0.05 or '5%'",
    "models": "a list of models with their options, as [{'k-anonymity': {'k': 5}}]",
    "metric": _NAMED.format("'precision'"),
    "metrics": "a list of metrics, as ['precision']",
    "algorithm": _NAMED.format("{'datafly': {'stop': 'k'}}"),
    "algorithms": "a list of algorithms, as ['ola']",
}
# What pydantic calls an error: the first part that is its name's beginning tells what would do.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string_too_long": "at most {max_length:,} characters long",
    "string": "text",
    "dict": "a mapping, as {{'age': 2}}",
    "list": "a list",
    "greater_than_equal": "at least {ge:,}",
    "greater_than": "above {gt:,}",
    "less_than_equal": "at most {le:,}",
    "less_than": "below {lt:,}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "too_short": "a list of at least {min_length:,}",
    "too_long": "a list of at most {max_length:,}",
}


def fault_of(errors: Sequence[Mapping[str, Any]], known: Collection[str]) -> tuple[str, str | None]:
    """Word the first thing that pydantic found in a request, with the entry that it is about.

    >>> fault_of([{"type": "int_parsing", "loc": ("body", "k"), "ctx": {}}], ["k"])
    ('k must be a whole number.', 'k')
    >>> fault_of([{"type": "less_than_equal", "loc": ("query", "wait"), "ctx": {"le": 30.0}}], [])
    ('wait must be at most 30.', 'wait')
    """
    first = errors[0]
    kind, place = str(first["type"]), first["loc"][1:]
    names = [str(part) for part in place if isinstance(part, str)]
    if not names:
        wrong = "is not JSON" if kind == "json_invalid" else "must be a JSON object"
        return f'The body {wrong}. Send one such as {{"k": 5}}, as application/json.', None
    name = names[0]
    if kind == "extra_forbidden":
        close = nearest(name, known)
        hint = f"Did you mean {close!r}?" if close else f"It takes: {', '.join(known) or 'nothing'}."
        return f"The request has no entry {name!r}. {hint}", name
    if kind == "missing":
        return (
            f"{name} is missing.{_must(name, kind, {}, ' It must be ')} /api/docs lists what is needed.",
            name,
        )
    if kind == "value_error":
        return f"{name}: {str(first['msg']).removeprefix('Value error, ')}.", name
    must = _must(name, kind, first.get("ctx", {}), " must be ")
    return f"{name if name in _WANTED else _path(place)}{must or ' cannot be read.'}", name


def _must(name: str, kind: str, context: Mapping[str, Any], before: str) -> str:
    """Say what an entry must be; nothing where that is not known."""
    context = {
        key: int(one) if isinstance(one, float) and one == int(one) else one for key, one in context.items()
    }
    words = next((words for start, words in _KINDS.items() if kind.startswith(start)), "")
    words = _WANTED.get(name) or words.format_map(context)
    return f"{before}{words}." if words else ""


def _path(place: Sequence[Any]) -> str:
    """Write where an entry stands.

    >>> _path(("k", 2)), _path(("max_level", "age"))
    ('k[2]', 'max_level.age')
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
