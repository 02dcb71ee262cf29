"""Checks that the entries of a policy are consistent. Pydantic checks each single entry by its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from shoal.algorithms import ALGORITHMS
from shoal.core.contracts import Role
from shoal.core.hierarchy import builders
from shoal.core.hierarchy.numbers import Banded
from shoal.errors import PolicyError, UnknownName
from shoal.metrics import METRICS
from shoal.registry import BROKEN_RULE, bound_of, expected_value
from shoal.wording import did_you_mean

if TYPE_CHECKING:
    from shoal.policy.policy import Policy


_NAMED = "a name, or a name with its options, such as {0}"
# What messages say about entries whose type alone does not tell what is allowed.
_WANTED = {
    "columns": "columns with their roles, such as age: {role: quasi-identifier, hierarchy: flat}",
    "column": "a mapping with a role, such as {role: other}",
    "hierarchy": "a rule, such as flat or {intervals: [5, 10]}",
    "same_level": "lists of columns, such as [[admitted, discharged]]",
    "local": "true, false or a mapping such as {labels: 3}, with 1 to 8 labels",
    "fail": "a list of findings for which nothing is released, such as [revealed]",
    "models": "a list of models with their options, such as [{k-anonymity: {k: 5}}]",
    "metric": _NAMED.format("precision"),
    "algorithm": _NAMED.format("{datafly: {stop: k}}"),
}


def refusal(
    error: ValidationError, entries: Mapping[str, FieldInfo], column: Mapping[str, FieldInfo]
) -> PolicyError:
    """Return the error for pydantic's first finding, given the fields of a policy and of a column."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    if path[-1] == "[key]":
        return PolicyError(f"Policy: the name {path[1]} of a column must be text. Put it in quotes.")
    fields, depth = (column, 3) if path[0] == "columns" and len(path) > 2 else (entries, 1)
    name = path[depth - 1]
    if len(path) == 2 and path[0] == "columns":
        name, depth = "column", 2
    must = _WANTED.get(name) or expected_value(fields[name].annotation)
    where = f"Policy: {'.'.join(path[:depth])}"
    if first["type"] == "missing":
        return PolicyError(f"{where} is missing. It must be {must}.")
    if first["type"] == BROKEN_RULE:
        return PolicyError(f"{where} {first['msg']}.", field=name)
    if first["type"] == "value_error":
        return PolicyError(f"{where}: {first['ctx']['error']}.", field=name)
    value = first["input"]
    if (bound := bound_of(first)) and name not in _WANTED:
        must = bound
    # A hierarchy may contain values of the data, which a message must not show.
    got = f", got {value!r}" if name != "hierarchy" and isinstance(value, str | int | float) else ""
    kind = fields[name].annotation if name in fields else None
    words = [role.value for role in Role] if kind is Role else map(str, get_args(kind))
    return PolicyError(f"{where} must be {must}{got}.{did_you_mean(value, words)}", field=name)


def check(policy: Policy) -> None:
    """Refuse entries that are inconsistent."""
    if policy.population_size is not None and policy.sampling_share is not None:
        text = "population_size and sampling_share say the same. Name one of them."
        raise PolicyError(text, field="sampling_share")
    if not policy.roles.quasi_identifiers:
        raise PolicyError(
            "The policy names no quasi-identifier. Give at least one column the role quasi-identifier."
        )
    for name, column in policy.columns.items():
        if column.role is Role.QUASI_IDENTIFIER and column.hierarchy is None:
            raise PolicyError(f"Column {name!r} is a quasi-identifier and needs a hierarchy, such as 'flat'.")
        rule = None if column.hierarchy is None else builders.parse(name, column.hierarchy)
        if column.release_as == "bounds" and not isinstance(rule, Banded):
            raise PolicyError(
                f"Column {name!r}: release_as bounds is for hierarchies of intervals or cuts. Use text."
            )
    if policy.as_bounds and policy.suppressed == "mask":
        raise PolicyError(
            "Masked records would look like empty bounds. Use release_as: text, or suppressed: drop."
        )
    for name in policy.as_bounds:
        conflicting = [shown for shown in policy.released(name) if shown in policy.columns]
        if conflicting:
            raise PolicyError(
                f"Column {conflicting[0]!r} has a name that release_as bounds of {name!r} needs. Rename it."
            )
    _check_models(policy)
    _check_search(policy)


def _check_search(policy: Policy) -> None:
    _check_label(policy)
    finishing = policy.finishing
    for finer in ("refine", "local"):
        if finishing["cells"] and finishing[finer]:
            raise PolicyError(f"The options {finer} and cells change the same records. Choose one of them.")
    if finishing["local"] > 1 and policy.as_bounds:
        raise PolicyError(
            f"Column {policy.as_bounds[0]!r}: a cell with several labels has no bounds. Use release_as: "
            "text, or local: true, which has one label in a cell.",
            field="local",
        )
    _check_wildcards(policy)
    if finishing["cells"] and (policy.as_bounds or policy.suppressed == "mask"):
        raise PolicyError(
            "Blank cells look like empty bounds, and like masked records. Use "
            "release_as: text, and suppressed: drop."
        )


def _check_wildcards(policy: Policy) -> None:
    if not policy.wildcards:
        return
    for written, model in zip(policy.models, policy.privacy_models, strict=True):
        if not model.sizes_suffice:
            name = written if isinstance(written, str) else next(iter(written))
            raise PolicyError(
                f"With cells: any, each record has its own number of matches, which {name} cannot use. Use "
                "k-anonymity without unit, or cells: true.",
                field="algorithm",
            )


def _check_label(policy: Policy) -> None:
    metric, algorithm = policy.information_metric, policy.search_algorithm
    if policy.label is None:
        if metric.needs_label:
            _refuse_without_label("Metric", METRICS.name_of(metric))
        if algorithm is not None and algorithm.needs_label:
            _refuse_without_label("Algorithm", ALGORITHMS.name_of(algorithm))
        return
    if policy.label not in policy.columns:
        raise UnknownName(policy.label, "column for label:", policy.columns, field="label")
    role = policy.columns[policy.label].role
    if role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
        raise PolicyError(
            f"Column {policy.label!r} has the role {role.value} and cannot be the label, which is released "
            "as it is. Give it the role sensitive or other.",
            field="label",
        )


def _refuse_without_label(kind: str, name: str) -> None:
    text = (
        f"{kind} {name!r} is about a column that is to be predicted. Name it in the policy, as label: COLUMN."
    )
    raise PolicyError(text, field="label")


def _check_models(policy: Policy) -> None:
    for model in policy.privacy_models:
        for name in model.sensitive(policy.roles.sensitive):
            if model.needs_hierarchy and policy.columns[name].hierarchy is None:
                raise PolicyError(
                    f"Column {name!r}: a model measures distances along its hierarchy. Give it one."
                )
    for unit in policy.units:
        if unit not in policy.columns:
            raise UnknownName(unit, "column for unit:", policy.columns)
        if unit in policy.roles.quasi_identifiers:
            raise PolicyError(
                f"Column {unit!r} is a quasi-identifier and cannot tell persons apart as unit. Name another."
            )
    _ = policy.population  # raises an error if models name different populations
