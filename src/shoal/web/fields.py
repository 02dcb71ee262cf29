"""The types of the fields of requests, and the messages about fields that are invalid."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from shoal.registry import bound_of
from shoal.wording import did_you_mean

_MAX_DEPTH, _MAX_VALUES = 20, 50_000  # limits of nested JSON


def _check_json(value: Any) -> Any:
    """Reject values that no policy contains: infinite numbers, invalid text, very deep or large values."""
    waiting, count = [(value, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if depth > _MAX_DEPTH or count > _MAX_VALUES:
            raise ValueError("it is too deep or too long; send less at once")
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError("numbers must be finite")
        if isinstance(part, int) and abs(part) > 10**15:
            raise ValueError("the number is too large")
        if isinstance(part, str) and any(0xD800 <= ord(letter) <= 0xDFFF for letter in part):
            raise ValueError("the text is not valid; send it as UTF-8")
        if isinstance(part, Mapping):
            waiting += [(inner, depth + 1) for pair in part.items() for inner in pair]
        elif isinstance(part, list):
            waiting += [(inner, depth + 1) for inner in part]
    return value


Json = Annotated[Any, AfterValidator(_check_json)]
PluginSpec = Annotated[str | dict[str, Any], AfterValidator(_check_json)]
PositiveInt = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Diverse = PositiveInt | Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False, strict=True)]
PositiveReal = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
SuppressionLimit = Annotated[int, Field(ge=0, le=10**12, strict=True)] | Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)
] | Annotated[str, Field(max_length=20, pattern=r"^[0-9.,]+%?$")]  # fmt: skip
PositiveSeconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
ShortText = Annotated[str, Field(max_length=1000)]
Level = Annotated[int, Field(ge=0, le=1000, strict=True)]
Levels = dict[ShortText, Level]
Count = Annotated[int, Field(ge=0, le=10**15, strict=True)]
RoleName = Literal["identifier", "quasi-identifier", "sensitive", "other"]
Names = Annotated[list[ShortText], Field(max_length=5_000)]


# Messages about invalid requests. They never quote what was sent.

_PLUGIN = "a name, or a name with its options, such as {0}"
_FIELDS = {  # messages for fields that accept more than one type
    "suppression_limit": "a number of records, or a share such as 0.05 or '5%'",
    "suppression_limits": "a list of limits: numbers of records, or shares such as 0.05 or '5%'",
    "models": "a list of models with their options, such as [{'k-anonymity': {'k': 5}}]",
    "metric": _PLUGIN.format("'precision'"),
    "metrics": "a list of metrics, such as ['precision']",
    "algorithm": _PLUGIN.format("{'datafly': {'stop': 'k'}}"),
    "algorithms": "a list of algorithms, such as ['ola']",
}
_UNION_PARTS = ("constrained-int", "constrained-float", "constrained-str")  # pydantic adds these to paths
_TYPES = {  # by the prefix of pydantic's error type
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "dict": "a mapping, such as {'age': 2}",
    "list": "a list",
}


def describe(errors: Sequence[Mapping[str, Any]], fields: Collection[str]) -> tuple[str, str | None]:
    """Return a message about the first validation error of a request, and the name of the invalid field.

    >>> describe([{"type": "int_parsing", "loc": ("body", "k"), "ctx": {}}], ["k"])
    ('k must be a whole number.', 'k')
    >>> describe([{"type": "int_type", "loc": ("body", "k", "constrained-int")}], ["k"])
    ('k must be a whole number.', 'k')
    >>> describe([{"type": "less_than_equal", "loc": ("query", "wait"), "ctx": {"le": 30.0}}], [])
    ('wait must be at most 30.', 'wait')
    """
    first = errors[0]
    kind, path = str(first["type"]), [part for part in first["loc"][1:] if part not in _UNION_PARTS]
    names = [part for part in path if isinstance(part, str)]
    if not names:
        problem = "is not JSON" if kind == "json_invalid" else "must be a JSON object"
        return f'The body {problem}. Send one such as {{"k": 5}}, as application/json.', None
    name = names[0]
    if kind == "extra_forbidden":
        hint = did_you_mean(name, fields) or f" It takes: {', '.join(fields) or 'nothing'}."
        return f"The request has no entry {name!r}.{hint}", name
    if kind == "missing":
        rule = _rule(name, first)
        rule = f" It must be {rule}." if rule else ""
        return f"{name} is missing.{rule} /api/docs lists what is needed.", name
    if kind == "value_error":
        return f"{name}: {first['ctx']['error']}.", name
    rule = _rule(name, first)
    return (
        f"{name if name in _FIELDS else _path(path)} {f'must be {rule}' if rule else 'cannot be read'}.",
        name,
    )


def _rule(name: str, error: Mapping[str, Any]) -> str:
    """Return the rule for a field, or an empty string if no rule is known."""
    rule = _FIELDS.get(name) or bound_of(error)
    types = (rule for start, rule in _TYPES.items() if str(error["type"]).startswith(start))
    return rule or next(types, "")


def _path(parts: Sequence[Any]) -> str:
    """Write the path of a value in a request.

    >>> _path(("k", 2)), _path(("max_level", "age"))
    ('k[2]', 'max_level.age')
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
