"""From a table and a policy to the problem that a search is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.column_names import has_half, no_such_columns
from shoal.core.classes import LABEL, label_of
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.lattice import build
from shoal.core.memory import limit_of
from shoal.core.problem import Problem
from shoal.core.schema import Role
from shoal.errors import DataError, PolicyError, nearest
from shoal.policies.shares import limit_in_records
from shoal.policy import Policy
from shoal.sensitive import about, count, with_population


def counted(
    table: Any,
    policy: Policy,
    engine: Engine,
    sensitive: Sequence[str] | None = None,
    label: str | None = None,
) -> tuple[Counts, dict[str, Domain]]:
    """Count the combinations of an open table; without names, with all that the policy's plug-ins need."""
    check_columns(policy, engine.columns(table))
    needed = policy.sensitive_needed if sensitive is None else sensitive
    units = policy.units if sensitive is None else ()
    if sensitive is None:
        label = label or policy.label_needed
    counts, domains = count(engine, table, policy.roles.quasi_identifiers, needed, units, label)
    if not len(counts):
        message = "The table has no rows. Give one that has records."
        raise DataError(message)
    return with_population(policy, engine, counts, domains)


def problem_of(
    policy: Policy,
    counts: Counts,
    domains: Mapping[str, Domain],
    node: Mapping[str, int] | None = None,
    memory: int | None = None,
) -> Problem:
    """Put counts and a policy together into what a search is given."""
    hierarchies = policy.bind(domains)
    heights = {hierarchy.name: hierarchy.height for hierarchy in hierarchies}
    for which in ("max_level", "min_level"):
        for name, level in policy.limits(which).items():
            if level > heights[name]:
                message = (
                    f"Column {name!r}: {which} {level} is above its hierarchy's highest, {heights[name]}."
                )
                raise PolicyError(message)
    lattice = build(heights, policy.limits("max_level"), policy.limits("min_level"), policy.same_level)
    return Problem(
        counts=counts,
        hierarchies=hierarchies,
        lattice=lattice.narrowed(node or {}),
        models=policy.privacy_models,
        metric=policy.information_metric,
        limit=limit_for(policy, counts.records),
        weights=tuple(policy.columns[name].weight for name in heights),
        identifying=tuple(policy.columns[name].identifying for name in heights),
        about=about(policy, counts, domains),
        as_bounds=policy.as_bounds,
        whole=lattice,
        memory=limit_of(None) if memory is None else memory,
    )


def check_label(problem: Problem) -> None:
    """Refuse a label with one value, where there is something to search for."""
    if problem.lattice.size == 1:
        return
    name = label_of(problem.counts)
    if name is not None and len(set(problem.counts.sensitive[name].codes.tolist())) < 2:
        message = (
            f"Column {name.removeprefix(LABEL)!r} is the label and has one value in the table: there is "
            "nothing to predict. Name another, or use a metric and an algorithm that need none."
        )
        raise DataError(message)


def with_wishes(problem: Problem, policy: Policy) -> Problem:
    """Return the problem with the models, the metric and the limit of another policy for the same columns."""
    return replace(
        problem,
        models=policy.privacy_models,
        metric=policy.information_metric,
        limit=limit_for(policy, problem.records),
    )


def limit_for(policy: Policy, records: int) -> int:
    """Return the records that may be suppressed: the policy's word, else what its algorithm brings along."""
    algorithm = policy.search_algorithm
    if algorithm is not None and "suppression_limit" not in policy.model_fields_set:
        own = algorithm.own_limit(policy.privacy_models)
        if own is not None:
            return min(own, records)
    return limit_in_records(policy.suppression_limit, records)


def check_columns(policy: Policy, columns: tuple[str, ...]) -> None:
    """Fail closed: the policy and the table must name the same columns."""
    absent = [name for name in policy.columns if name not in columns]
    if len(absent) == len(policy.columns):
        raise PolicyError(no_such_columns())
    if absent:
        message = f"The policy names columns that the table does not have: {', '.join(map(repr, absent))}."
        if has_half(policy.columns, columns):
            others = [name for name in columns if name not in policy.columns]
            close = [own for name in absent if (own := nearest(name, others)) is not None]
            message += f" Did you mean {', '.join(map(repr, dict.fromkeys(close)))}?" if close else ""
            message += f" The table has: {', '.join(map(repr, columns))}."
        raise PolicyError(message)
    unnamed = [name for name in columns if name not in policy.columns]
    if unnamed:
        message = (
            f"The table has columns that the policy does not name: {', '.join(map(repr, unnamed))}. "
            f"Give each a role: {', '.join(role.value for role in Role)}."
        )
        raise PolicyError(message)
