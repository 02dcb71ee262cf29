"""Looking at hierarchies before a run: how labels climb, and whether every column's rule fits its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.counts import Domain, missing_records
from shoal.core.hierarchy import Hierarchy
from shoal.errors import HierarchyError, PolicyError, UnknownName
from shoal.policy import Policy


@dataclass(frozen=True)
class HierarchyCheck:
    """How a rule fits a column's values."""

    column: str
    builder: str
    distinct: int
    missing: int  # records without a value
    groups: tuple[int, ...]  # how many at each level
    problem: str | None
    values: tuple[str, ...] = ()  # those the rule does not fit
    note: str | None = None  # what may be wrong though it fits

    def to_dict(self, *, reveal: bool = False) -> dict[str, Any]:
        """Return the check as plain values; values of the data only when asked for."""
        found = asdict(self)
        return found if reveal else {name: value for name, value in found.items() if name != "values"}


def check_hierarchies(
    table: Any, policy: Policy | Mapping[str, Any] | str | Path, *, engine: str | Engine = AUTO
) -> list[HierarchyCheck]:
    """Bind every hierarchy that a search or a model uses to its column's values and say how each fits."""
    policy = Policy.load(policy)
    engine = engine_for(engine, table)
    opened = engine.open(table)
    sensitive = [name for name in policy.sensitive_needed if policy.columns[name].hierarchy is not None]
    absent = [name for name in policy.roles.quasi_identifiers if name not in engine.columns(opened)]
    if absent:
        message = (
            f"The table lacks quasi-identifiers of the policy: {', '.join(map(repr, absent))}. Give the "
            "policy of this table."
        )
        raise PolicyError(message)
    absent = [name for name in sensitive if name not in engine.columns(opened)]
    if absent:
        message = (
            f"The table lacks sensitive columns of the policy: {', '.join(map(repr, absent))}. Give the "
            "policy of this table."
        )
        raise PolicyError(message)
    return [_check(policy, engine, opened, name) for name in (*policy.roles.quasi_identifiers, *sensitive)]


def _check(policy: Policy, engine: Engine, table: Any, name: str) -> HierarchyCheck:
    counts, domains = engine.count(table, [name])
    domain = domains[name]
    missing = missing_records(counts, domain)
    builder = type(policy.builder(name)).keyword
    found = HierarchyCheck(name, builder, len(domain), missing, (), None)
    rule = policy.builder(name)
    try:
        bound = rule.bind(domain)
    except HierarchyError as error:
        return replace(found, problem=str(error), values=error.values)
    told = rule.note([text for text in domain.texts if text is not None])
    note = f"Hierarchy of {name!r} ({builder}): {told}" if told else None
    return replace(found, groups=tuple(map(len, bound.labels)), note=note)


def climb(policy: Policy, name: str, values: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each value's labels from level 0 to the top."""
    if name not in policy.roles.quasi_identifiers:
        raise UnknownName(name, "quasi-identifier", policy.roles.quasi_identifiers)
    texts = tuple(dict.fromkeys(values))
    bound: Hierarchy = policy.builder(name).bind(Domain(name, texts, texts))
    levels = range(bound.height + 1)
    return [tuple(bound.labels[lv][bound.groups(lv)[code]] for lv in levels) for code in range(len(texts))]
