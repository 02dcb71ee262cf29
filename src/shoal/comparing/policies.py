"""What a comparison asks for: a policy for every algorithm, k, limit and metric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from numbers import Integral, Real
from typing import Any

from shoal.algorithms import ALGORITHMS
from shoal.errors import UsageError
from shoal.policy import Named, Policy, named


def policies(policy: Policy, algorithms: Any, k: Any, limits: Any, metrics: Any) -> list[list[Policy]]:
    """Return the policy of every row; those of one metric, limit and k together."""
    every = [name for name in ALGORITHMS if policy.label or not ALGORITHMS.create(name).needs_label]
    searches = _distinct("algorithms", algorithms, every)
    wanted = product(
        _distinct("metrics", metrics, [None]),
        _distinct("suppression_limits", limits, [None]),
        _distinct("k", k, [None]),
    )
    return [
        [
            policy.with_(
                algorithm=one,
                metric=metric,
                suppression_limit=limit,
                models=None if least is None else _with_k(policy.models, least),
            )
            for one in searches
        ]
        for metric, limit, least in wanted
    ]


def _distinct(what: str, given: Any, otherwise: list[Any]) -> list[Any]:
    """Take one or several wishes, each once."""
    if given is None:
        return otherwise
    if isinstance(given, str | Real | Mapping):
        given = [given]
    try:
        found = [_plain(one) for one in given]
    except TypeError:
        message = f"{what} takes one or a list, got {type(given).__name__}."
        raise UsageError(message) from None
    if not found:
        message = f"{what} is empty. Name at least one, or leave it out."
        raise UsageError(message)
    return list({json.dumps(one, default=str): one for one in found}.values())


def _plain(wish: Any) -> Any:
    """Return a number of NumPy's, say, as Python's own; anything else as it is."""
    if isinstance(wish, Real) and not isinstance(wish, bool):
        return int(wish) if isinstance(wish, Integral) else float(wish)
    return wish


def _with_k(models: Sequence[Named], k: int) -> list[Named]:
    """Let a k stand in for that of k-anonymity, which is added where nobody asked for it."""
    apart = [named(model) for model in models]
    changed: list[Named] = [{n: o | {"k": k}} if n == "k-anonymity" else {n: o} for n, o in apart]
    return changed if any(n == "k-anonymity" for n, _ in apart) else [*changed, {"k-anonymity": {"k": k}}]
