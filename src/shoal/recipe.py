"""Recipe and audit: what the custodian keeps to apply a recoding again and to account for it."""

from __future__ import annotations

import hashlib
import hmac
import platform
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from shoal.core.builders import Csv
from shoal.core.counts import Counts, Domain
from shoal.core.evaluate import Problem
from shoal.core.recoding import Recoding
from shoal.policy import Policy
from shoal.verify import Verification


def recipe_of(
    policy: Policy, problem: Problem, recoding: Recoding, domains: Mapping[str, Domain]
) -> dict[str, Any]:
    """Write down a recoding so that it can be applied to new data and verified without the old."""
    listed = {name: policy.builder(name) for name in policy.roles.quasi_identifiers}
    key = secrets.token_hex(32)
    return {
        "shoal": version("shoal"),
        "python": platform.python_version(),
        "policy": policy.model_dump(mode="json", exclude_defaults=True),
        "hierarchy_files": {name: b.rows for name, b in listed.items() if isinstance(b, Csv)},
        "levels": recoding.levels,
        "records": problem.records,
        "suppression_limit": problem.limit,
        "reference": {
            name: _distribution(problem.counts, name, domains[name]) for name in problem.counts.sensitive
        },
        "fingerprints": {"key": key, "input": _fingerprint(key, problem, domains)},
    }


def _distribution(counts: Counts, name: str, domain: Domain) -> list[tuple[str | None, int]]:
    """Return how often each value of a sensitive column occurs in the whole input."""
    totals = [0] * len(domain)
    entries = counts.sensitive[name]
    for code, count in zip(entries.codes.tolist(), entries.counts.tolist(), strict=True):
        totals[code] += count
    return list(zip(domain.texts, totals, strict=True))


def _fingerprint(key: str, problem: Problem, domains: Mapping[str, Domain]) -> str:
    """Fingerprint the counted input under a key, so that the same input can be recognized by its keeper."""
    digest = hmac.new(bytes.fromhex(key), digestmod=hashlib.sha256)
    for name, domain in domains.items():
        digest.update(repr((name, domain.texts)).encode())
    digest.update(problem.counts.keys.tobytes())
    digest.update(problem.counts.sizes.tobytes())
    return digest.hexdigest()


def audit_of(result: Mapping[str, Any], verification: Verification) -> dict[str, Any]:
    """Write down what was done, proven and lost."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "result": {name: value for name, value in result.items() if name != "recipe"},
        "verification": verification.to_dict(),
        "packages": {name: version(name) for name in ("shoal", "numpy", "numba", "duckdb", "ibis-framework")},
    }
