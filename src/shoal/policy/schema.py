"""The JSON Schema of a policy, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.builders import BUILDERS
from shoal.core.hierarchy.calendar import DATE_UNITS, TIME_UNITS
from shoal.core.hierarchy.classifications import Classified
from shoal.policy.policy import Policy
from shoal.registry import options_of


def policy_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a policy, for editors."""
    schema = Policy.model_json_schema()
    hierarchy = schema["$defs"]["Column"]["properties"]["hierarchy"]
    schema["$defs"]["Column"]["properties"]["hierarchy"] = {
        "description": hierarchy["description"],
        "anyOf": [{"enum": ["flat"]}, *map(_builder_schema, BUILDERS.values())],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _builder_schema(kind: type[Builder]) -> dict[str, Any]:
    meanings = {option.name: option.meaning for option in options_of(kind) if option.name != "rows"}
    options = sorted({*meanings, kind.keyword})
    listed: dict[str, Any] = {
        option: {"description": meanings[option]} if meanings.get(option) else {} for option in options
    }
    units = {"dates": list(DATE_UNITS), "times": list(TIME_UNITS)}.get(kind.keyword)
    units = list(kind.units) if issubclass(kind, Classified) else units
    if units:
        listed[kind.keyword] |= {"type": "array", "items": {"enum": units}}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip().splitlines()[0],
        "properties": listed,
        "required": [kind.keyword],
        "additionalProperties": False,
    }
