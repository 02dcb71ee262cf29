"""What a profile is made from: a table, counted into the problem over its whole hierarchies, and wishes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.choose import engine_for
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.lattice import build
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.models.distinct_l_diversity import DistinctLDiversity
from shoal.models.k_anonymity import KAnonymity
from shoal.policies.shares import share_in
from shoal.policy import Policy, named
from shoal.problem import counted, problem_of
from shoal.recipe import fingerprint

Asked = tuple[str, int | None, str | None]  # a model, its k or l, and the column that it is about or counts


@dataclass(frozen=True)
class PolicyWish:
    """What the policy asks for, taken where a request is silent."""

    model: str  # k or l
    least: int
    limit: int  # records
    max_level: Mapping[str, int]
    min_level: Mapping[str, int]
    sensitive: str | None = None  # the column that l is about, where the policy says
    models: tuple[Asked, ...] = ()  # all that the policy names
    metric: str | None = None  # the policy's, with its options, as coverage:aggregate=geometric
    share: float | str | None = None  # the limit as the policy writes it, where it is a share


def wish_of(policy: Policy, problem: Problem) -> PolicyWish:
    """Take the strength of k-anonymity; without it, that of distinct l-diversity.

    A profile counts records: where k counts units, the k is only what every class needs at least.
    """
    models = policy.privacy_models
    ks = [model.k for model in models if isinstance(model, KAnonymity) and model.unit is None]
    ls = [(model.l, model.column) for model in models if isinstance(model, DistinctLDiversity)]
    least, column = max(ls, key=lambda found: found[0], default=(problem.least_size, None))
    return PolicyWish(
        model="l" if ls and not ks else "k",
        least=max(ks) if ks else least,
        limit=problem.limit,
        max_level=policy.limits("max_level"),
        min_level=policy.limits("min_level"),
        sensitive=column,
        models=tuple(_asked(*named(model)) for model in policy.models),
        metric=_written(*named(policy.metric)),
        share=share_in(policy.suppression_limit),
    )


def _asked(name: str, options: Mapping[str, Any]) -> Asked:
    return name, options.get("k", options.get("l")), options.get("column", options.get("unit"))


def _written(name: str, options: Mapping[str, Any]) -> str:
    told = ",".join(f"{option}={value}" for option, value in options.items())
    return f"{name}:{told}" if told else name


def source(
    table: Any, policy: Policy, engine: str | Engine, memory_limit: str | None, key: str, tell: Progress
) -> tuple[Problem, str]:
    """Count a table into the problem over its whole hierarchies, and fingerprint it under a key."""
    engine = engine_for(engine, table, memory_limit)
    tell("count", 0, None)
    counts, domains = counted(engine.open(table), policy, engine, sensitive=policy.roles.sensitive)
    problem = whole(policy, counts, domains, engine.memory)
    lattice = problem.lattice
    digest = hmac.new(bytes.fromhex(key), fingerprint(key, problem, domains).encode(), hashlib.sha256)
    digest.update(repr((lattice.columns, lattice.heights, lattice.axes)).encode())
    for hierarchy in problem.hierarchies:
        for step in hierarchy.steps:
            digest.update(step.tobytes())
    for entries in counts.sensitive.values():
        digest.update(entries.keys.tobytes())
        digest.update(entries.counts.tobytes())
    return problem, digest.hexdigest()


def whole(
    policy: Policy, counts: Counts, domains: Mapping[str, Domain], memory: int | None = None
) -> Problem:
    """Return the problem over the whole hierarchies, whatever levels the policy allows."""
    problem = problem_of(policy, counts, domains, memory=memory)
    heights = dict(zip(problem.lattice.columns, problem.lattice.heights, strict=True))
    lattice = build(heights, same_level=policy.same_level)
    return replace(problem, lattice=lattice)
