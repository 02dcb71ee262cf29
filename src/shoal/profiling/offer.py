"""Offers: nodes with the strength and the limit that hold there, made by negotiations and used by releases.

An offer is a complete request: its node fixes the levels; its k (or l) and limit stand in for the policy's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from shoal.errors import UnknownName, UsageError
from shoal.policies.shares import read_limit
from shoal.policy import Named, Policy, named

MODELS = {"k": "k-anonymity", "l": "distinct-l-diversity"}
_KEYS = (
    "node", "height", "suppressed", "k", "l", "limit", "share", "sensitive", "loss", "column", "max_level",
)  # fmt: skip
_KINDS = ("suppression", "levels", "privacy", "columns")


@dataclass(frozen=True)
class Offer:
    """A node that would do, with the strength and the limit that hold there."""

    node: Mapping[str, int]
    height: int
    suppressed: int
    model: str  # k or l
    least: int
    limit: int  # records
    sensitive: str | None = None  # the column that l is about
    loss: float | None = None
    column: str | None = None  # whose level would have to be allowed
    max_level: int | None = None
    share: float | str | None = None  # the limit as it was wished for, where it was a share of the records

    def to_dict(self) -> dict[str, Any]:
        """Return the offer as plain values."""
        found: dict[str, Any] = {
            "node": dict(self.node),
            "height": self.height,
            "suppressed": self.suppressed,
            self.model: self.least,
            "limit": self.limit,
        }
        rest = {name: getattr(self, name) for name in ("share", "sensitive", "loss", "column", "max_level")}
        return found | {name: value for name, value in rest.items() if value is not None}


Chosen = Mapping[str, int] | Offer | Mapping[str, Any] | str | Path | None  # levels, or an offer


def adopted(policy: Policy, node: Chosen) -> tuple[Policy, dict[str, int]]:
    """Return the policy with what an offer asks for, and the levels to fix.

    Levels alone, as {"age": 2}, leave the policy as it is. The policy's other models stay; its max_level
    gives way where the offer goes higher.
    """
    if node is None:
        return policy, {}
    found = offer_of(node)
    if not isinstance(found.get("node"), Mapping):
        return policy, found
    levels = found["node"]
    columns: dict[str, Any] = policy.model_dump(mode="json", exclude_unset=True)["columns"]
    for name, level in levels.items():
        most = columns.get(name, {}).get("max_level")
        if most is not None and level > most:
            columns[name]["max_level"] = level
    model = next((model for model in MODELS if model in found), None)
    models = _strengthened(policy, model, found[model], found.get("sensitive")) if model else None
    limit = found.get("share", found.get("limit"))  # a share holds for another table too
    return policy.with_(columns=columns, models=models, suppression_limit=limit), dict(levels)


def offer_of(source: Any) -> dict[str, Any]:
    """Read an offer, or plain levels, from values, from JSON text or from a file that holds it."""
    if isinstance(source, Offer):
        return source.to_dict()
    found: Any = _read(source) if isinstance(source, str | Path) else source
    if not isinstance(found, Mapping):
        message = f"A node is levels by column, or an offer of a negotiation, got {type(found).__name__}."
        raise UsageError(message)
    if "exact" in found and not isinstance(found["exact"], int):
        found = _exact(found)
    if isinstance(found.get("node"), Mapping):
        _check_offer(found)
        _check_levels(found["node"])
    else:
        _check_levels(found)
    return dict(found)


def _read(source: str | Path) -> Any:
    text = str(source)
    told = "the node"
    if isinstance(source, Path) or not text.lstrip().startswith("{"):
        told = repr(text)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            message = f"Cannot read the node from {told}: {error.strerror}."
            raise UsageError(message) from None
        except UnicodeDecodeError:
            text = ""
    try:
        return json.loads(text)
    except ValueError:
        message = f"Cannot read {told}: it is not JSON. Give an offer as `shoal negotiate --json` writes it."
        raise UsageError(message) from None


def _exact(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take the exact answer of a whole negotiation."""
    exact = answer["exact"]
    if not isinstance(exact, Mapping):
        suggestions = answer.get("suggestions")
        held = suggestions if isinstance(suggestions, Mapping) else {}
        there = ", ".join(kind for kind in _KINDS if held.get(kind))
        message = (
            "This negotiation has no exact answer. Pass one of its suggestions"
            f"{f' ({there})' if there else ''} instead of the whole."
        )
        raise UsageError(message)
    return exact


def _check_offer(offer: Mapping[str, Any]) -> None:
    for key in offer:
        if key not in _KEYS:
            raise UnknownName(str(key), "entry of an offer", _KEYS)
    if "k" in offer and "l" in offer:
        message = "An offer has a k or an l, not both. Leave one out."
        raise UsageError(message)
    for key, least in (("k", 1), ("l", 1), ("limit", 0)):
        if key in offer and (type(offer[key]) is not int or offer[key] < least):
            message = f"{key} of an offer must be a whole number of at least {least}, got {offer[key]!r}."
            raise UsageError(message)
    if "share" in offer and not read_limit(offer["share"])[1]:
        message = f"share of an offer must be a share such as 5%, got {offer['share']!r}."
        raise UsageError(message)
    if not isinstance(offer.get("sensitive", ""), str | None):
        message = f"sensitive of an offer must name a column, got {offer['sensitive']!r}."
        raise UsageError(message)


def _check_levels(levels: Mapping[str, Any]) -> None:
    for name, level in levels.items():
        if isinstance(level, bool) or not isinstance(level, Integral):
            message = f"The level of {str(name)!r} must be a whole number, got {level!r}."
            raise UsageError(message)


def _strengthened(policy: Policy, model: str, least: int, sensitive: str | None) -> list[Named]:
    """Return the policy's models with another k, or with another l for one column."""
    name = MODELS[model]
    if sensitive is not None and sensitive not in policy.roles.sensitive:
        raise UnknownName(sensitive, "sensitive column", policy.roles.sensitive)
    mine: dict[str, Any] = {model: least}
    others: list[Named] = []
    place = len(policy.models)
    for written in policy.models:
        known, options = named(written)
        if known != name or options.get("unit") is not None:  # an offer's k counts records
            others.append(written)
            continue
        place = min(place, len(others))
        if model == "l":
            column = options.get("column")
            about = policy.roles.sensitive if column is None else (column,)
            rest = [other for other in about if sensitive is not None and other != sensitive]
            others += [{name: options | {"column": other}} for other in rest]
    if model == "l" and sensitive is not None:
        mine["column"] = sensitive
    return [*others[:place], {name: mine}, *others[place:]]
