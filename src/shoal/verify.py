"""Verification: does a released table satisfy the policy's models, counted afresh?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.assessing.exposure import Exposure, exposure_of
from shoal.choose import AUTO, engine_for
from shoal.column_names import check_released
from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Engine
from shoal.core.counts import Domain
from shoal.core.groups import group_column
from shoal.errors import DataError, UsageError, so_many
from shoal.outputs import private_folder
from shoal.policy import Policy, named
from shoal.recipe import Recipe
from shoal.sensitive import Reference, about, beyond, count, reference_in, reference_of
from shoal.sensitive_table import grouped, second_of, separated


@dataclass(frozen=True)
class ModelCheck:
    """What one model says of a release."""

    model: str
    options: dict[str, Any]
    passed: bool | None  # None: the release alone does not show it
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
    unchecked: tuple[str, ...] = ()  # what the release alone does not show; then it is not verified either
    exposure: Exposure = field(default=Exposure(), repr=False)  # of the classes that were counted

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "exposure"}

    def _repr_html_(self) -> str:
        from shoal.notebook import verification_block

        return verification_block(self)


def verify(
    release: Any,
    policy: Any,
    *,
    recipe: Any = None,
    reference: Any = None,
    sensitive_table: Any = None,
    engine: str | Engine = AUTO,
) -> Verification:
    """Count a release afresh and check it against every model of a policy.

    The release's `recipe`, or the whole input as `reference`, tells how often each sensitive value occurs in
    the input; without it a model that compares classes with the whole input cannot be checked, and the
    release is not verified. Where the sensitive column is released apart, `sensitive_table` is its table;
    without it the file beside the release is read.
    """
    if recipe is not None and reference is not None:
        message = "Give the recipe or the reference, not both."
        raise UsageError(message)
    policy = Policy.load(policy)
    engine = engine_for(engine, release)
    told: Reference = {}
    if reference is not None:
        told = reference_in(engine, reference, policy.sensitive_needed)
    elif recipe is not None:
        told = Recipe.load(recipe).reference
    return judge(release, policy, engine, told, sensitive_table)


def other_models(release: Any, policy: Any, recipe: Any = None) -> str | None:
    """Say that a release was made under other models than a policy has, where its recipe is at hand."""
    beside = recipe
    if recipe is None and isinstance(release, str | Path):
        beside = private_folder(Path(release)) / "recipe.json"
        beside = beside if beside.is_file() else None
    if beside is None:
        return None
    try:
        made, asked = _models(Recipe.load(beside).policy), _models(Policy.load(policy))
    except UsageError:
        return None  # whoever needs them says what is wrong with them
    if sorted(made) == sorted(asked):
        return None
    checked = f"Checked are those of the policy: {', '.join(asked)}."
    return f"The release was made under other models: {', '.join(made)}. {checked}"


def _models(policy: Policy) -> list[str]:
    """Name the models of a policy with their options; where a population lies is no matter."""
    found = []
    for name, options in map(named, policy.models):
        told = [f"{option} {value}" for option, value in sorted(options.items()) if option != "population"]
        found.append(" ".join([name, *told]))
    return found


def judge(
    release: Any, policy: Policy, engine: Engine, reference: Reference, sensitive_table: Any = None
) -> Verification:
    """Check a release, given how often sensitive values occur in the whole input, as far as that is known."""
    apart = separated(policy)
    if apart is not None:
        second = second_of(release, engine, sensitive_table)
        counts, domains, reasons = grouped(engine, release, second, policy, apart)
        _check_reference(policy, reference_of(counts, domains), reference)
        classes = Classes(counts, about(policy, counts, domains, reference))
        return _judge(policy, classes, classes.nothing(), reasons, _lacking(policy, [], reference))
    if sensitive_table is not None:
        message = "The policy's algorithm makes no second table. Leave sensitive_table out."
        raise UsageError(message)
    table = engine.open(release)
    columns = engine.columns(table)
    roles = policy.roles
    quasi = [shown for name in roles.quasi_identifiers for shown in policy.released(name)]
    known = {*roles.roles, *quasi} - (set(roles.quasi_identifiers) - set(quasi))
    check_released(columns, known, (*quasi, *policy.sensitive_needed), _hint(policy, columns))
    units = [name for name in policy.units if name in columns]
    left = [name for name in roles.identifiers if name in columns]
    reasons = [f"identifier {name!r} is in the release" for name in left]
    counts, domains = count(engine, table, quasi, policy.sensitive_needed, units)
    if not len(counts):
        message = "The release has no rows. Give one that has records."
        raise DataError(message)
    _check_reference(policy, reference_of(counts, domains), reference)
    classes = Classes(counts, about(policy, counts, domains, reference))
    lacking = _lacking(policy, units, reference)
    blank = masked_in(classes, quasi, domains) if policy.suppressed == "mask" else classes.nothing()
    return _judge(policy, classes, blank, reasons, lacking)


def _hint(policy: Policy, columns: Sequence[str]) -> str:
    """Tell what to do where a release has a column of groups, as anatomy makes it."""
    if not any(group_column(name) in columns for name in policy.columns):
        return ""
    return " If this is a release by anatomy, set algorithm: anatomy in the policy."


def _check_reference(policy: Policy, released: Reference, reference: Reference) -> None:
    """Refuse a reference that cannot be the release's input; what masked records hold is not from it."""
    for name, own in released.items():
        if policy.suppressed == "mask":
            own = [(text, number) for text, number in own if text is not None]
        strange = beyond(reference[name], own) if name in reference else 0
        if strange:
            message = (
                f"The release has {so_many(strange, 'value')} of {name!r} that the recipe or reference does "
                "not have, or has less often. Give those of this release."
            )
            raise DataError(message)


def _lacking(policy: Policy, units: list[str], reference: Reference) -> dict[int, str]:
    """Say of each model, by its place, what would be needed to check it."""
    found = {}
    for place, model in enumerate(policy.privacy_models):
        columns = model.sensitive(policy.roles.sensitive)
        if model.needs_reference and not all(name in reference for name in columns):
            found[place] = "it compares with the whole input, so give the recipe or the reference"
        elif model.population_table is not None:
            found[place] = "a release does not show its population"
        elif model.unit_column is not None and model.unit_column not in units:
            found[place] = f"the release does not have {model.unit_column!r}"
    return found


def _judge(
    policy: Policy, classes: Classes, blank: BoolArray, reasons: list[str], lacking: dict[int, str]
) -> Verification:
    checks = []
    unchecked: list[str] = []
    models = policy.privacy_models
    for place, (written, model) in enumerate(zip(policy.models, models, strict=True)):
        name, options = named(written)
        if place in lacking:
            mask = (classes.sizes < model.least_size) & ~blank
        else:
            mask = model.violations(classes) & ~blank
        records = int(classes.sizes[mask].sum())
        passed = not mask.any() and (place in lacking or model.holds(classes, blank))
        shown = None if passed and place in lacking else passed
        checks.append(ModelCheck(name, options, shown, int(mask.sum()), records))
        if mask.any():
            told = f"{so_many(records, 'record')} in {so_many(int(mask.sum()), 'class')}"
            reasons.append(f"{name}: {told} {'violates' if records == 1 else 'violate'} it")
        elif not passed:
            reasons.append(f"{name}: the release as a whole violates it")
        elif place in lacking:
            unchecked.append(f"{name} cannot be checked: {lacking[place]}")
    masked = int(classes.sizes[blank].sum())
    least = max(model.least_size for model in models)
    if 0 < masked < least:
        reasons.append(f"{masked:,} masked records are fewer than {least:,}")
    kept = classes.sizes[~blank]
    return Verification(
        verified=not reasons and not unchecked,
        records=classes.records,
        classes=len(kept),
        smallest_class=int(kept.min()) if len(kept) else 0,
        masked=masked,
        models=tuple(checks),
        reasons=tuple(reasons),
        unchecked=tuple(unchecked),
        exposure=exposure_of(kept),
    )


def masked_in(classes: Classes, quasi: Sequence[str], domains: Mapping[str, Domain]) -> BoolArray:
    """Mark the class of masked records: every quasi-identifier and every sensitive value is null."""
    blank = np.ones(len(classes), np.bool_)
    for column, name in enumerate(quasi):
        null = np.array([text is None for text in domains[name].texts])
        blank &= null[classes.counts.codes(column)]
    for name in classes.sensitive:
        spread = classes.distribution(name)
        null = np.array([text is None for text in domains[name].texts])
        blank &= ~spread.having(~null[spread.codes])
    return blank
