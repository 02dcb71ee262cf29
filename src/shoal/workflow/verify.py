"""Verification: count a released table and check it against the models of a policy."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shoal.columns.header import check_released
from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Engine, Model
from shoal.core.counts.counts import Counts, Domain
from shoal.core.counts.in_memory import of_sizes
from shoal.core.hierarchy.builder import number_of
from shoal.core.hierarchy.hierarchy import TOP
from shoal.core.recoding.groups import group_column
from shoal.document.document import Document, Fact, HasDocument, Verdict
from shoal.errors import DataError, Infeasible, PolicyError, UsageError
from shoal.files.outputs import private_folder
from shoal.policy.policy import Policy, named
from shoal.wording import Change, plural
from shoal.workflow.problem import (
    Reference,
    above_reference,
    count,
    counted,
    problem_of,
    reference_in,
    reference_of,
    sensitive_info,
    separate_column,
)
from shoal.workflow.release.recipe import Recipe
from shoal.workflow.release.recovery import load_policy, recover, recover_recipe
from shoal.workflow.release.spreadsheet import plain_cell
from shoal.workflow.risk.exposure import Exposure, exposure_of
from shoal.workflow.search import find, recode
from shoal.workflow.session import AUTO, OpenTable, Session, session

WILDCARDS = (
    "A blanked cell (*) counts as a match of every value. This guarantees less than classes that look alike: "
    "someone who knows the values behind a person's blanks may find fewer matching records, even only one."
)


MAYBE_MASKED = (
    "records without any value are taken as masked: give the recipe of the release, which says whether they "
    "are"
)


def verified_text(*, wildcards: bool) -> str:
    """State that every model holds, and whether blanked cells match every value."""
    reading = ", if a blanked cell matches every value" if wildcards else ""
    return f"Verified: every model holds in the release{reading}."


class NotRecoded(Exception):
    """The input cannot be recoded by the recipe; the message says why."""


def recode_reference(reference: OpenTable, recipe: Recipe, columns: Sequence[str]) -> OpenTable:
    """Recode the input of a release by its recipe, as `apply` does, and keep some columns unchanged."""
    policy = recipe.policy
    relaxed = getattr(policy.search_algorithm, "relaxed", False)
    if recipe.levels is None and (relaxed or recipe.regions is None):
        raise NotRecoded("its recipe leaves to chance which records are in a class")
    missing = [name for name in columns if name not in reference.columns]
    if missing:
        raise PolicyError(
            f"The reference lacks columns of the policy: {', '.join(map(repr, missing))}. Give the whole "
            "input of the release."
        )
    engine = reference.engine
    counts, domains = counted(reference, policy)
    problem = problem_of(policy, counts, domains, recipe.levels, engine.memory)
    try:
        _, evaluation = find(policy, problem, recipe.regions)
    except Infeasible:
        raise NotRecoded(
            "its recipe does not hold for the reference: give the recipe and the input of this release"
        ) from None
    recoded = recode(problem, evaluation)
    quasi = [shown for name in policy.roles.quasi_identifiers for shown in policy.released(name)]
    blank = [*quasi, *policy.roles.sensitive] if policy.masks and recoded.can_mask(domains) else None
    keep = [*policy.roles.quasi_identifiers, *policy.roles.sensitive, *columns]
    return reference.with_table(
        engine.recode(reference.table, recoded.recoding, domains, keep=list(dict.fromkeys(keep)), blank=blank)
    )


def class_sizes(counts: Counts, domains: Mapping[str, Domain], columns: Sequence[str]) -> Counter[object]:
    """Count the records of each class by its values; numbers and escaped cells are normalized."""
    columns_values = []
    for column, name in enumerate(columns):
        plain = [None if text is None else plain_cell(text) for text in domains[name].texts]
        values: list[object] = [text if text is None else number_of(text) for text in plain]
        known = [text if value is None else value for text, value in zip(plain, values, strict=True)]
        columns_values.append([known[code] for code in counts.codes(column).tolist()])
    sizes: Counter[object] = Counter()
    for values_of_class, size in zip(zip(*columns_values, strict=True), counts.sizes.tolist(), strict=True):
        sizes[values_of_class] += size
    return sizes


@dataclass(frozen=True)
class ModelCheck:
    """The result of one model for a release."""

    model: str
    options: dict[str, Any]
    passed: bool | None  # None: the release alone does not show whether the model holds
    violating_classes: int
    violating_records: int
    reason: str | None = None  # why the model cannot be checked
    command: str | None = None  # a command that checks the model

    @property
    def violation(self) -> str:
        """The records that violate the model, as a reason why the release is not verified."""
        if not self.violating_classes:
            return f"{self.model}: the release as a whole violates it"
        records, classes = plural(self.violating_records, "record"), plural(self.violating_classes, "class")
        verb = "violates" if self.violating_records == 1 else "violate"
        return f"{self.model}: {records} in {classes} {verb} it"

    @property
    def label(self) -> str:
        """The model with its options."""
        options = ", ".join(f"{option} = {value}" for option, value in self.options.items())
        return f"{self.model} ({options})" if options else self.model

    @property
    def outcome(self) -> str:
        """The result of the check, in words."""
        if self.passed is None:
            return "not checkable"
        if self.passed:
            return "passed"
        if not self.violating_records:
            return "violated by the release as a whole"
        return plural(self.violating_records, "record violates it", "records violate it")


@dataclass(frozen=True)
class Verification(HasDocument):
    """The result of checking a release."""

    verified: bool
    records: int
    classes: int
    smallest_class: int
    masked: int  # records kept with all quasi-identifiers and sensitive values blanked
    models: tuple[ModelCheck, ...]
    reasons: tuple[str, ...]  # why the release is not verified
    unchecked: tuple[str, ...] = ()  # models that could not be checked; if any, the release is not verified
    exposure: Exposure = field(default=Exposure(), repr=False)  # of the classes that were counted
    wildcards: bool = False  # True: a blanked cell matches every value, and sizes count matching records

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "exposure"}

    def document(self) -> Document:
        """Describe the verification: the verdict, the classes, and every model."""
        masked = f", of which {self.masked:,} masked" if self.masked else ""
        smallest = plural(self.smallest_class, "record")
        classes = f"{self.classes:,}, the smallest of {smallest}"
        if self.wildcards:
            classes = f"{self.classes:,} that look alike; at least {smallest} match each record"
        return Document(
            title="Verification",
            verdict=self._verdict(),
            facts=[
                Fact("records", "records", f"{self.records:,}{masked}"),
                Fact("classes", "classes", classes),
                *[Fact(check.model, check.label, check.outcome) for check in self.models],
            ],
            notes=(
                *([WILDCARDS] if self.wildcards else ()),
                *(self.unchecked if self.reasons or self.verified else ()),
            ),
        )

    def _verdict(self) -> Verdict:
        if self.verified:
            return Verdict("good", verified_text(wildcards=self.wildcards))
        if not self.reasons:
            return Verdict("warn", f"Not fully verified: {'; '.join(self.unchecked)}.")
        return Verdict("bad", f"Not verified: {'; '.join(self.reasons)}.")


def verify(
    release: Any,
    policy: Any,
    *,
    recipe: Any = None,
    reference: Any = None,
    sensitive_table: Any = None,
    engine: str | Engine = AUTO,
) -> Verification:
    """Count a release and check it against every model of a policy.

    `release` is a file, a table, or the result of `anonymize` or `apply`. Such a result knows its recipe and
    whether its empty records are masked. `recipe`, the release's recipe, or `reference`, the whole input,
    tells how often each sensitive value occurs in the input. If neither is given, a model that compares
    classes with the whole input cannot be checked, and the release is not verified. If both are given, the
    input is recoded again to count the persons of a `unit` column that the release does not contain.
    `sensitive_table` is the second table of a release by anatomy; by default, the file next to it is read.
    """
    masks, known_recipe, second, release = _known_of(release)
    recipe = known_recipe if recipe is None else recipe
    sensitive_table = second if sensitive_table is None else sensitive_table
    commands = _commands(release, policy, recipe, engine)
    policy = load_policy(policy, engine)
    with session(release, engine, role="release") as s:
        recover(release, s.engine)
        recover_recipe(recipe, s.engine)
        made = None if recipe is None else Recipe.load(recipe)
        known: Reference = {} if made is None else made.reference
        recoded = None
        if reference is not None:
            reference_table = s.open(reference, "reference")
            known = reference_in(reference_table, policy.sensitive_needed)
            recoded = None if made is None else partial(recode_reference, reference_table, made)
        of_release = made or (_recipe_beside(release) if policy.masks else None)
        masks = False if masks is None and of_release is not None and of_release.masked == 0 else masks
        return judge(
            release,
            policy,
            s,
            known,
            sensitive_table,
            masks=masks,
            wildcards=policy.wildcards if made is None else made.policy.wildcards or policy.wildcards,
            recoded=recoded,
            commands=commands,
        )


def _known_of(release: Any) -> tuple[bool | None, Any, Any, Any]:
    """Return whether a release has masked records, and its recipe, second table, and table or file."""
    from shoal.workflow.release.release import Release  # which imports this module

    if not isinstance(release, Release):
        return None, None, None, release
    table = release.table if release.output is None else release.output
    return release.masked > 0, release.recipe_content(), release.sensitive_table, table


@dataclass(frozen=True)
class VerifyCommands:
    """The commands that check models for which the release alone is not enough."""

    reference: str  # models that compare with the whole input
    persons: str  # models that count persons


def _commands(release: Any, policy: Any, recipe: Any, engine: str | Engine) -> VerifyCommands:
    """Return the commands. Known files are filled in; unknown files are placeholders."""
    recipe = _recipe_file(release) if recipe is None else recipe
    files = [
        shlex.quote(str(file)) if isinstance(file, str | Path) else name
        for name, file in (("RELEASE", release), ("POLICY.yaml", policy), ("RECIPE.json", recipe))
    ]
    where = f" --engine {engine}" if isinstance(engine, str) and engine != AUTO else ""
    begins = f"shoal verify {files[0]} --policy {files[1]}{where} --recipe {files[2]}"
    return VerifyCommands(begins, f"{begins} --reference INPUT")


def other_models(release: Any, policy: Any, recipe: Any = None) -> str | None:
    """Return a note if the recipe of a release has other models than a policy; None if there is no recipe."""
    recipe = _recipe_file(release) if recipe is None else recipe
    if recipe is None:
        return None
    try:
        recorded, requested = _models(Recipe.load(recipe).policy), _models(Policy.load(policy))
    except UsageError:
        return None  # verify() reports errors in these files
    if sorted(recorded) == sorted(requested):
        return None
    checked = f"The models of the policy were checked: {', '.join(requested)}."
    return f"The release was made under other models: {', '.join(recorded)}. {checked}"


def _recipe_beside(release: Any) -> Recipe | None:
    """Return the recipe in the private folder of a release, if it is there and can be read."""
    path = _recipe_file(release)
    try:
        return None if path is None else Recipe.load(path)
    except UsageError:
        return None


def _recipe_file(release: Any) -> Path | None:
    path = private_folder(Path(release)) / "recipe.json" if isinstance(release, str | Path) else None
    return path if path is not None and path.is_file() else None


def _models(policy: Policy) -> list[str]:
    """Return the models of a policy with their options, without the path of a population."""
    names = []
    for name, options in map(named, policy.models):
        written = [f"{option} {value}" for option, value in sorted(options.items()) if option != "population"]
        names.append(" ".join([name, *written]))
    return names


def judge(
    release: Any,
    policy: Policy,
    s: Session,
    reference: Reference,
    sensitive_table: Any = None,
    *,
    masks: bool | None = None,
    wildcards: bool | None = None,
    recoded: Callable[[Sequence[str]], OpenTable] | None = None,
    commands: VerifyCommands | None = None,
) -> Verification:
    """Check a release. `reference` tells how often sensitive values occur in the whole input, if known.

    `masks`: whether the release contains masked records. If this is unknown and the policy masks records,
    records without any value count as masked. If these are too few to be masked, they are checked as an
    ordinary class instead. `wildcards`: whether a blanked cell matches every value (default: as in the
    policy). `recoded` recodes the input again and keeps the given columns.
    """
    wildcards = policy.wildcards if wildcards is None else wildcards
    check = partial(
        _judge_release,
        release,
        policy,
        s,
        reference,
        sensitive_table,
        recoded,
        commands,
        wildcards=wildcards,
    )
    verification = check(masks=policy.masks if masks is None else masks)
    if masks is not None or not verification.reasons or not verification.masked:
        return verification
    try:
        other = check(masks=False)
    except DataError:  # the reference has fewer nulls: there are masked records
        return verification
    if other.reasons:
        return verification
    if verification.masked < max(model.least_size for model in policy.privacy_models):
        return other
    return replace(verification, reasons=(*verification.reasons, MAYBE_MASKED))


def _judge_release(
    release: Any,
    policy: Policy,
    s: Session,
    reference: Reference,
    sensitive_table: Any,
    recoded: Callable[[Sequence[str]], OpenTable] | None,
    commands: VerifyCommands | None,
    *,
    masks: bool,
    wildcards: bool,
) -> Verification:
    if (separate := separate_column(policy)) is not None:
        unchecked = _lacking(policy, [], reference, commands)
        return _judge_groups(release, policy, s, reference, sensitive_table, separate, unchecked)
    if sensitive_table is not None:
        advice = Change("sensitive_table", action="Leave out {}")
        raise UsageError("The policy's algorithm makes no second table.", advice=[advice])
    table = s.open(release)
    quasi, reasons = _check_columns(policy, table.columns)
    units = [name for name in policy.units if name in table.columns]
    options = {"masks": masks, "wildcards": wildcards}
    counted_release = _count_classes(table, policy, quasi, units, reference, **options)
    released = reference_of(counted_release.classes.counts, counted_release.domains)
    _check_reference(released, reference, int(counted_release.classes.sizes[counted_release.masked].sum()))
    unchecked = _lacking(policy, units, reference, commands)
    each = [counted_release] * len(policy.models)
    missing = [name for name in policy.units if name not in units]
    if missing and recoded is not None:
        of_units = [
            index for index, model in enumerate(policy.privacy_models) if model.unit_column in missing
        ]
        try:
            recoded_input = _with_columns(recoded([*missing, *policy.sensitive_needed]), quasi)
            counted_input = _count_classes(recoded_input, policy, quasi, missing, reference, **options)
            _check_same(counted_release, counted_input, quasi)
        except NotRecoded as error:
            unchecked |= dict.fromkeys(of_units, (f"persons cannot be counted: {error}", None))
        else:
            for index in of_units:
                del unchecked[index]
                each[index] = counted_input
    verification = _judge(policy, each, reasons, unchecked)
    if commands is None or not reasons or wildcards:
        return verification
    return _with_cause(verification, policy, counted_release, len(quasi), commands)


def _with_columns(table: OpenTable, quasi: Sequence[str]) -> OpenTable:
    """Return a table that a recipe recoded; raise if it does not have these quasi-identifiers."""
    if not set(quasi) <= set(table.columns):
        raise NotRecoded("its recipe has other quasi-identifiers than the policy")
    return table


def _check_columns(policy: Policy, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the quasi-identifiers of a release, and an error text for each identifier that it contains."""
    roles = policy.roles
    quasi = [shown for name in roles.quasi_identifiers for shown in policy.released(name)]
    known = {*roles.roles, *quasi} - (set(roles.quasi_identifiers) - set(quasi))
    check_released(columns, known, (*quasi, *policy.sensitive_needed), _hint(policy, columns))
    return quasi, [f"identifier {name!r} is in the release" for name in roles.identifiers if name in columns]


def _judge_groups(
    release: Any,
    policy: Policy,
    s: Session,
    reference: Reference,
    sensitive_table: Any,
    separate: str,
    unchecked: Mapping[int, tuple[str, str | None]],
) -> Verification:
    """Check a release whose sensitive column is in a second table, group by group."""
    from shoal.workflow.release.sensitive_table import count_groups, find_second_table

    second = find_second_table(release, s.engine, sensitive_table)
    counts, domains, reasons = count_groups(s, release, second, policy, separate)
    _check_reference(reference_of(counts, domains), reference)
    classes = Classes(counts, sensitive_info(policy, counts, domains, reference))
    counted_release = _CountedClasses(classes, classes.nothing())
    return _judge(policy, [counted_release] * len(policy.models), reasons, unchecked)


@dataclass(frozen=True)
class _CountedClasses:
    classes: Classes
    masked: BoolArray  # (classes,)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    matches: Classes | None = None  # the records that match each class, if blanks match every value

    def judged_by(self, model: Model) -> Classes:
        """Return the classes for a model: with matching records if the model needs only sizes."""
        return self.matches if self.matches is not None and model.sizes_suffice else self.classes


def _count_classes(
    table: OpenTable,
    policy: Policy,
    quasi: Sequence[str],
    units: Sequence[str],
    reference: Reference,
    *,
    masks: bool,
    wildcards: bool,
) -> _CountedClasses:
    """Count the classes of a table; masked records form classes of their own."""
    flags: list[str] = []
    if masks:
        table, flag = flag_masked(table, policy)
        flags = [flag]
    counts, domains = count(table, [*quasi, *flags], policy.sensitive_needed, units)
    classes = Classes(counts, sensitive_info(policy, counts, domains, reference))
    masked = flagged_in(counts, domains) if masks else classes.nothing()
    matches = _matches(counts, domains, len(quasi)) if wildcards else None
    return _CountedClasses(classes, masked, domains, matches)


def _matches(counts: Counts, domains: Mapping[str, Domain], columns: int) -> Classes:
    """Count the records that match each class; a star in one of the first columns matches every value."""
    from shoal.core.recoding.wildcards import match_sizes

    codes = [counts.codes(column) for column in range(columns)]
    stars = [np.array([text == TOP for text in domain.texts], np.bool_) for domain in domains.values()]
    blanks = np.stack([star[column_codes] for star, column_codes in zip(stars, codes, strict=False)])
    return Classes(of_sizes(match_sizes(codes, blanks, counts.sizes)))


def _check_same(release: _CountedClasses, recoded: _CountedClasses, quasi: Sequence[str]) -> None:
    """Raise if the recoded input has other classes than the release."""
    released, expected = (
        class_sizes(table.classes.counts, table.domains, quasi) for table in (release, recoded)
    )
    if released != expected:
        different = len((released - expected) | (expected - released))
        raise NotRecoded(
            f"{plural(different, 'class')} of the release {'is' if different == 1 else 'are'} not what its "
            "recipe makes of the reference: give the recipe and the input of this release"
        )


def _hint(policy: Policy, columns: Sequence[str]) -> str:
    """Return a hint if a release has a group column, as anatomy writes it."""
    if not any(group_column(name) in columns for name in policy.columns):
        return ""
    return " If this is a release by anatomy, set algorithm: anatomy in the policy."


def _check_reference(released: Reference, reference: Reference, masked: int = 0) -> None:
    """Raise if the reference cannot be the input; nulls of masked records are not counted."""
    for name, pairs in released.items():
        values = [(text, number - masked if text is None else number) for text, number in pairs]
        excess = above_reference(reference[name], values) if name in reference else 0
        if excess:
            raise DataError(
                f"The release has {plural(excess, 'value')} of {name!r} that the recipe or reference does "
                "not have, or has less often. Give those of this release."
            )


def _lacking(
    policy: Policy, units: Sequence[str], reference: Reference, commands: VerifyCommands | None
) -> dict[int, tuple[str, str | None]]:
    """Return, by model index, why a model cannot be checked, and the command that checks it."""
    reasons: dict[int, tuple[str, str | None]] = {}
    for index, model in enumerate(policy.privacy_models):
        columns = model.sensitive(policy.roles.sensitive)
        if model.needs_reference and not all(name in reference for name in columns):
            reason = "it compares with the whole input, so give the recipe or the reference"
            reasons[index] = reason, commands.reference if commands else None
        elif model.population_table is not None:
            reasons[index] = "a release does not show its population", None
        elif model.unit_column is not None and model.unit_column not in units:
            reason = f"the release does not have {model.unit_column!r}, so give the recipe and the reference"
            reasons[index] = reason, commands.persons if commands else None
    return reasons


def _judge(
    policy: Policy,
    each: Sequence[_CountedClasses],  # the classes for each model
    reasons: list[str],
    unchecked_models: Mapping[int, tuple[str, str | None]],
) -> Verification:
    checks = []
    unchecked: list[str] = []
    models = policy.privacy_models
    for index, (written, model, table) in enumerate(zip(policy.models, models, each, strict=True)):
        name, options = named(written)
        classes, blank = table.classes, table.masked
        reason, command = unchecked_models.get(index, (None, None))
        checked_on = table.judged_by(model)
        refused = checked_on.sizes < model.least_size if reason is not None else model.violations(checked_on)
        mask = refused & ~blank
        records = int(classes.sizes[mask].sum())
        # Masked records are also a class of the release.
        holds = reason is not None or all(model.holds(classes, lost) for lost in (blank, classes.nothing()))
        passed = not mask.any() and holds
        if passed and reason is not None:
            run = f". Run: {command}" if command else ""
            unchecked.append(f"{name} cannot be checked: {reason}{run}")
            checks.append(ModelCheck(name, options, None, 0, 0, reason, command))
        else:
            checks.append(ModelCheck(name, options, passed, int(mask.sum()), records))
            if not passed:
                reasons.append(checks[-1].violation)
        if reason is None:
            reasons.extend(_too_few_masked_persons(model, table))
    classes, blank = each[0].classes, each[0].masked
    masked = int(classes.sizes[blank].sum())
    if 0 < masked < (least := max(model.least_size for model in models)):
        are = "is" if masked == 1 else "are"
        reasons.append(f"{plural(masked, 'masked record')} {are} fewer than {least:,}")
    matched = each[0].matches or classes
    sizes, records_of = matched.sizes[~blank], classes.sizes[~blank]
    return Verification(
        verified=not reasons and not unchecked,
        records=classes.records,
        classes=len(sizes),
        smallest_class=int(sizes.min()) if len(sizes) else 0,
        masked=masked,
        models=tuple(checks),
        reasons=tuple(reasons),
        unchecked=tuple(unchecked),
        exposure=exposure_of(sizes, records_of),
        wildcards=each[0].matches is not None,
    )


def _too_few_masked_persons(model: Model, table: _CountedClasses) -> list[str]:
    """Return a reason if masked records belong to fewer persons than a model needs."""
    if model.unit_column is None or not table.masked.any():
        return []
    persons = int(table.classes.units(model.unit_column)[table.masked].sum())
    if persons >= model.least_size:
        return []
    return [f"masked records belong to {plural(persons, 'person')}, fewer than {model.least_size:,}"]


def _with_cause(
    verification: Verification,
    policy: Policy,
    released: _CountedClasses,
    columns: int,
    commands: VerifyCommands,
) -> Verification:
    """Advise to pass the recipe if models hold only when a blanked cell matches every value."""
    matches = _matches(released.classes.counts, released.domains, columns)
    checks, unchecked = list(verification.models), list(verification.unchecked)
    for index, (check, model) in enumerate(zip(checks, policy.privacy_models, strict=True)):
        if check.passed is False and model.sizes_suffice and model.holds(matches, released.masked):
            if (model.violations(matches) & ~released.masked).any():
                continue
            reason = (
                "it holds if a blanked cell (*) matches every value. If the release was made with cells: any"
            )
            command = commands.reference
            checks[index] = replace(check, reason=f"{reason}, give its recipe", command=command)
            unchecked.append(f"{check.model}: {reason}, give its recipe. Run: {command}")
    return replace(verification, models=tuple(checks), unchecked=tuple(unchecked))


def flag_masked(table: OpenTable, policy: Policy) -> tuple[OpenTable, str]:
    """Add a column that marks masked records: all quasi-identifiers and sensitive columns are null.

    A record with a sensitive value is not masked.
    """
    roles, available = policy.roles, table.columns
    quasi = [shown for name in roles.quasi_identifiers for shown in policy.released(name)]
    names = [name for name in (*quasi, *roles.sensitive) if name in available]
    flagged, flag = table.engine.flag_empty(table.table, names)
    return table.with_table(flagged), flag


def flagged_in(counts: Counts, domains: Mapping[str, Domain]) -> BoolArray:
    """Mark the class of masked records, given counts whose last column is the flag of `flag_masked`."""
    column = len(counts.fields) - 1
    flag = list(domains.values())[column]
    flagged: BoolArray = np.array([text == "1" for text in flag.texts])[counts.codes(column)]
    return flagged
