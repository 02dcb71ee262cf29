"""Verification: does a released table satisfy the policy's models, counted afresh?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.engines import ENGINES
from shoal.errors import DataError, PolicyError
from shoal.policy import Policy


@dataclass(frozen=True)
class ModelCheck:
    """What one model says of a release."""

    model: str
    passed: bool
    violating_classes: int
    violating_records: int


@dataclass(frozen=True)
class Verification:
    """What a fresh count says of a release."""

    verified: bool
    records: int
    classes: int
    smallest_class: int
    masked: int  # records kept with everything blanked
    models: tuple[ModelCheck, ...]
    reasons: tuple[str, ...]  # why it is not verified

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as plain values."""
        return asdict(self)


def verify(release: Any, policy: Any, *, engine: str | Engine = "duckdb") -> Verification:
    """Count a release afresh and check it against every model of a policy."""
    policy = Policy.load(policy)
    engine = ENGINES.create(engine) if isinstance(engine, str) else engine
    table = engine.open(release)
    columns = engine.columns(table)
    roles = policy.roles
    quasi = [shown for name in roles.quasi_identifiers for shown in policy.released(name)]
    known = {*roles.roles, *quasi} - (set(roles.quasi_identifiers) - set(quasi))
    unknown = [name for name in columns if name not in known]
    if unknown:
        message = f"The release has columns that the policy does not name: {', '.join(map(repr, unknown))}."
        raise PolicyError(message)
    absent = [name for name in (*quasi, *policy.sensitive_needed) if name not in columns]
    if absent:
        message = f"The release lacks columns of the policy: {', '.join(map(repr, absent))}."
        raise PolicyError(message)
    left = [name for name in roles.identifiers if name in columns]
    reasons = [f"identifier {name!r} is in the release" for name in left]
    counts, domains = engine.count(table, quasi, policy.sensitive_needed)
    if not len(counts):
        message = "The release has no rows."
        raise DataError(message)
    classes = Classes(counts)
    return _judge(policy, classes, _blank(policy, classes, quasi, domains), reasons)


def _judge(policy: Policy, classes: Classes, blank: BoolArray, reasons: list[str]) -> Verification:
    checks = []
    models = policy.privacy_models
    for written, model in zip(policy.models, models, strict=True):
        mask = model.violations(classes) & ~blank
        name = written if isinstance(written, str) else next(iter(written))
        records = int(classes.sizes[mask].sum())
        checks.append(ModelCheck(name, not mask.any(), int(mask.sum()), records))
        if mask.any():
            reasons.append(f"{name}: {records} records in {int(mask.sum())} classes violate it")
    masked = int(classes.sizes[blank].sum())
    least = max(model.least_size for model in models)
    if 0 < masked < least:
        reasons.append(f"{masked} masked records are fewer than {least}")
    kept = classes.sizes[~blank]
    return Verification(
        verified=not reasons,
        records=classes.records,
        classes=len(kept),
        smallest_class=int(kept.min()) if len(kept) else 0,
        masked=masked,
        models=tuple(checks),
        reasons=tuple(reasons),
    )


def _blank(policy: Policy, classes: Classes, quasi: list[str], domains: dict[str, Domain]) -> BoolArray:
    """Mark the class of masked records: every quasi-identifier and every sensitive value is null."""
    if policy.suppressed != "mask":
        return classes.nothing()
    blank = np.ones(len(classes), np.bool_)
    for column, name in enumerate(quasi):
        null = np.array([text is None for text in domains[name].texts])
        blank &= null[classes.counts.codes(column)]
    for name, entries in classes.counts.sensitive.items():
        null = np.array([text is None for text in domains[name].texts])
        blank[entries.rows[~null[entries.codes]]] = False
    return blank
