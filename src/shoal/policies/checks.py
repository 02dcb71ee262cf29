"""What the entries of a policy must be to each other; what each must be by itself, its type says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.algorithms import ALGORITHMS
from shoal.core import builders
from shoal.core.numbers import Banded
from shoal.core.schema import Role
from shoal.errors import PolicyError, UnknownName
from shoal.metrics import METRICS

if TYPE_CHECKING:
    from shoal.policy import Policy


def check(policy: Policy) -> None:
    """Refuse entries that do not go together."""
    if policy.population_size is not None and policy.sampling_share is not None:
        message = "population_size and sampling_share say the same. Name one of them."
        raise PolicyError(message)
    if not policy.roles.quasi_identifiers:
        message = "The policy names no quasi-identifier. Give at least one column the role quasi-identifier."
        raise PolicyError(message)
    for name, column in policy.columns.items():
        if column.role is Role.QUASI_IDENTIFIER and column.hierarchy is None:
            message = f"Column {name!r} is a quasi-identifier and needs a hierarchy, such as 'flat'."
            raise PolicyError(message)
        rule = None if column.hierarchy is None else builders.parse(name, column.hierarchy)
        if column.release_as == "bounds" and not isinstance(rule, Banded):
            message = f"Column {name!r}: release_as bounds is for hierarchies of intervals or cuts. Use text."
            raise PolicyError(message)
    if policy.as_bounds and policy.suppressed == "mask":
        message = "suppressed: mask cannot be told from bounds that are empty. Use release_as: text, or drop."
        raise PolicyError(message)
    for name in policy.as_bounds:
        taken = [shown for shown in policy.released(name) if shown in policy.columns]
        if taken:
            message = f"Column {taken[0]!r} has a name that release_as bounds of {name!r} needs. Rename it."
            raise PolicyError(message)
    _check_models(policy)
    _check_search(policy)


def _check_search(policy: Policy) -> None:
    _check_label(policy)
    if all(policy.finishing.values()):
        message = "refine recodes what cells would blank. Ask for one of them."
        raise PolicyError(message)
    if policy.finishing["cells"] and (policy.as_bounds or policy.suppressed == "mask"):
        message = (
            "cells cannot be told from bounds that are empty, nor from masked records. Use "
            "release_as: text, and suppressed: drop."
        )
        raise PolicyError(message)


def _check_label(policy: Policy) -> None:
    metric, algorithm = policy.information_metric, policy.search_algorithm
    if policy.label is None:
        if metric.needs_label:
            _refuse_without_label("Metric", METRICS.name_of(metric))
        if algorithm is not None and algorithm.needs_label:
            _refuse_without_label("Algorithm", ALGORITHMS.name_of(algorithm))
        return
    if policy.label not in policy.columns:
        raise UnknownName(policy.label, "column for label:", policy.columns)
    role = policy.columns[policy.label].role
    if role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
        message = (
            f"Column {policy.label!r} has the role {role.value} and cannot be the label, which is released "
            "as it is. Give it the role sensitive or other."
        )
        raise PolicyError(message)


def _refuse_without_label(kind: str, name: str) -> None:
    message = (
        f"{kind} {name!r} is about a column that is to be predicted. Name it in the policy, as label: COLUMN."
    )
    raise PolicyError(message)


def _check_models(policy: Policy) -> None:
    for model in policy.privacy_models:
        for name in model.sensitive(policy.roles.sensitive):
            if model.needs_hierarchy and policy.columns[name].hierarchy is None:
                message = f"Column {name!r}: a model measures distances along its hierarchy. Give it one."
                raise PolicyError(message)
    for unit in policy.units:
        if unit not in policy.columns:
            raise UnknownName(unit, "column for unit:", policy.columns)
        if unit in policy.roles.quasi_identifiers:
            message = (
                f"Column {unit!r} is a quasi-identifier and cannot tell persons apart as unit. Name another."
            )
            raise PolicyError(message)
    _ = policy.population  # refuses several
