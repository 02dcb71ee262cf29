"""What is wrong with an entry of a policy, in our words: what it must be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from shoal.core.schema import Role
from shoal.errors import PolicyError, nearest
from shoal.options import wanted

_NAMED = "a name, or a name with its options, as {0}"
# What entries must be whose types would say too little.
_WANTED = {
    "columns": "columns with their roles, as age: {role: quasi-identifier, hierarchy: flat}",
    "column": "a mapping with a role, as {role: other}",
    "hierarchy": "a rule, as flat or {intervals: [5, 10]}",
    "same_level": "lists of columns, as [[admitted, discharged]]",
    "models": "a list of models with their options, as [{k-anonymity: {k: 5}}]",
    "metric": _NAMED.format("precision"),
    "algorithm": _NAMED.format("{datafly: {stop: k}}"),
}
_BOUNDS = {"greater_than_equal": "at least {ge:g}", "greater_than": "above {gt:g}", "finite_number": "finite"}


def refusal(
    error: ValidationError, entries: Mapping[str, FieldInfo], column: Mapping[str, FieldInfo]
) -> PolicyError:
    """Word the first thing that pydantic found in a policy, given its fields and those of a column."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    if place[-1] == "[key]":
        return PolicyError(f"Policy: the name {place[1]} of a column must be text. Put it in quotes.")
    fields, depth = (column, 3) if place[0] == "columns" and len(place) > 2 else (entries, 1)
    name = place[depth - 1]
    if len(place) == 2 and place[0] == "columns":
        name, depth = "column", 2
    must = _WANTED.get(name) or wanted(fields[name].annotation)
    where = f"Policy: {'.'.join(place[:depth])}"
    if first["type"] == "missing":
        return PolicyError(f"{where} is missing. It must be {must}.")
    if first["type"] == "value_error":
        said = first["msg"].removeprefix("Value error, ")
        return PolicyError(f"{where}{'' if said.startswith('must') else ':'} {said}.")
    given = first["input"]
    if first["type"] in _BOUNDS:
        must = _BOUNDS[first["type"]].format_map(first.get("ctx", {}))
    # A hierarchy may hold values of the data.
    got = f", got {given!r}" if name != "hierarchy" and isinstance(given, str | int | float) else ""
    return PolicyError(f"{where} must be {must}{got}.{_meant(given, fields.get(name))}")


def _meant(given: Any, field: FieldInfo | None) -> str:
    """Ask for the nearest of the words that an entry takes."""
    kind = field.annotation if field else None
    words = [role.value for role in Role] if kind is Role else [str(one) for one in get_args(kind)]
    close = nearest(given, words) if isinstance(given, str) else None
    return f" Did you mean {close!r}?" if close else ""
