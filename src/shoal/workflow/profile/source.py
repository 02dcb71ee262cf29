"""The input of a profile: the counted table over its whole hierarchies, and the defaults of the policy."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shoal.core.contracts import Engine, Metric, When
from shoal.core.counts.counts import Counts, Domain
from shoal.core.counts.diversity import KINDS, MODEL_NAMES, Diversity, DiversityKind, kind_prefix
from shoal.core.lattice.lattice import build
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.files.yaml import load_yaml
from shoal.metrics import METRICS
from shoal.models.k_anonymity import KAnonymity
from shoal.policy.limits import share_in
from shoal.policy.policy import Policy, named, plugin_text, split_options
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.release.recipe import fingerprint
from shoal.workflow.session import session

ENTROPY_STEPS = 100  # per unit of an entropy l


def losses_kept(metric: str | None) -> list[str]:
    """Return the separable metrics, and the policy's metric with its options if it is separable."""
    separable = [name for name in METRICS if METRICS.load(name).separable is not When.NEVER]
    own_options = [metric] if metric and metric_of(metric).separable is not When.NEVER else []
    return list(dict.fromkeys([*separable, *own_options]))


def metric_of(name: str) -> Metric:
    """Return a metric, by its name and its options, if any: coverage:aggregate=geometric."""
    plain, _, options = name.partition(":")
    pairs = [pair.partition("=") for pair in split_options(options) if pair]
    return METRICS.create(plain, {option: load_yaml(value) for option, _, value in pairs})


class PolicyModel(NamedTuple):
    """The settings of a policy's model that a profile uses."""

    name: str
    least: float | None  # its k or l
    column: str | None  # its sensitive column, or its unit column
    c: float | None = None  # of recursive (c,l)-diversity


@dataclass(frozen=True)
class PolicyDefaults:
    """The policy's settings that are the defaults of requests."""

    model: str  # k or l
    least: int
    limit: int  # records
    max_level: Mapping[str, int]
    min_level: Mapping[str, int]
    sensitive: str | None = None  # the column that l is about, if the policy names it
    models: tuple[PolicyModel, ...] = ()  # all models of the policy
    metric: str | None = None  # the policy's, with its options, such as coverage:aggregate=geometric
    share: float | str | None = None  # the limit as the policy writes it, if it is a share
    l: float | None = None  # in addition to a k
    diversity: DiversityKind = "distinct"  # of the l
    c: float | None = None

    @property
    def text(self) -> str:
        """The requirement on every class, such as k = 5."""
        prefix = kind_prefix(self.diversity, self.c)
        if self.model == "l":
            return f"{prefix}l = {self.least:g}"
        return f"k = {self.least}" + (f" and {prefix}l = {self.l:g}" if self.l is not None else "")


def policy_defaults(policy: Policy, problem: Problem) -> PolicyDefaults:
    """Take k, l or both from the policy. If it has several kinds of l-diversity, take the first in `KINDS`.

    A profile counts records: if the policy's k counts units, the default k is only the least class size.
    """
    ks = [model.k for model in policy.privacy_models if isinstance(model, KAnonymity) and model.unit is None]
    models = tuple(_asked(*named(model)) for model in policy.models)
    diverse = _diverse(models)
    sensitive = policy.roles.sensitive
    # By default, l is used together with k only if its column is unambiguous.
    both = ks and diverse and (diverse.column or len(sensitive) == 1) and not problem.counts.remote
    kind = _kind_of(diverse.name) if diverse and (both or not ks) else None
    least: Any = max(ks) if ks else diverse.least if diverse else problem.least_size
    return PolicyDefaults(
        model="l" if diverse and not ks else "k",
        least=least,
        limit=problem.limit,
        max_level=policy.limits("max_level"),
        min_level=policy.limits("min_level"),
        sensitive=diverse.column if diverse else None,
        models=models,
        metric=plugin_text(policy.metric),
        share=share_in(policy.suppression_limit),
        l=diverse.least if diverse and both else None,
        diversity=kind or "distinct",
        c=diverse.c if diverse and kind else None,
    )


def _kind_of(model: str) -> DiversityKind | None:
    return next((kind for kind in KINDS if MODEL_NAMES[kind] == model), None)


def _diverse(models: Sequence[PolicyModel]) -> PolicyModel | None:
    for kind in KINDS:
        models_of_kind = [model for model in models if model.name == MODEL_NAMES[kind]]
        if models_of_kind:
            return max(models_of_kind, key=lambda model: model.least or 0)
    return None


def measures_in(models: Sequence[PolicyModel], sensitive: Sequence[str]) -> list[tuple[str, Diversity]]:
    """Return the columns and kinds of l-diversity that are tabulated because the policy names them."""
    measures = []
    for model in models:
        kind = _kind_of(model.name)
        if kind in ("entropy", "recursive"):
            steps = ENTROPY_STEPS if kind == "entropy" else 1
            diversity = Diversity(kind, float(model.c or 0), steps)
            measures += [(name, diversity) for name in sensitive if model.column in (None, name)]
    return list(dict.fromkeys(measures))


def _asked(name: str, options: Mapping[str, Any]) -> PolicyModel:
    least, column = options.get("k", options.get("l")), options.get("column", options.get("unit"))
    c = options.get("c")
    return PolicyModel(name, least, column, None if c is None else float(c))


def source(
    table: Any, policy: Policy, engine: str | Engine, memory_limit: str | None, key: str, tell: Progress
) -> tuple[Problem, str]:
    """Count a table; return its problem over the whole hierarchies, and its fingerprint with the key."""
    s = session(table, engine, memory_limit, tell)  # left open: the counts may be in the engine
    tell("count", 0, None)
    counts, domains = counted(s.table, policy, sensitive=policy.roles.sensitive)
    problem = whole_problem(policy, counts, domains, s.engine.memory)
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


def whole_problem(
    policy: Policy, counts: Counts, domains: Mapping[str, Domain], memory: int | None = None
) -> Problem:
    """Return the problem over the whole hierarchies, without the policy's limits on levels."""
    problem = problem_of(policy, counts, domains, memory=memory)
    heights = dict(zip(problem.lattice.columns, problem.lattice.heights, strict=True))
    lattice = build(heights, same_level=policy.same_level)
    return replace(problem, lattice=lattice)
