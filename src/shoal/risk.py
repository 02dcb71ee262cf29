"""Risk: how likely an intruder finds people in a table and in its release, in the terms of regulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.choose import AUTO, engine_for
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.chances import chances
from shoal.core.classes import Classes
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.evaluate import Progress, quiet
from shoal.core.groups import released_columns
from shoal.core.uniqueness import RULE, UNIQUENESS_MODELS, Estimate, estimate, population_of
from shoal.errors import DataError, PolicyError, UsageError
from shoal.exposure import Exposure, exposure_at
from shoal.identifiers import Finding, identifiers_in
from shoal.init import Guess, guess_column
from shoal.policy import Policy
from shoal.questions import check_names
from shoal.sensitive import with_population
from shoal.shares import share_of
from shoal.special import SPECIAL_SIZE, Special, special_uniques
from shoal.verify import masked_in

if TYPE_CHECKING:
    from shoal.release import Release

THRESHOLD = 0.2  # without a word and without a policy: one in five


@dataclass(frozen=True)
class Intruder:
    """What an intruder may hope for: each risk is the chance that a record is rightly told whose it is."""

    highest: float  # of the record most at risk
    average: float  # over all records
    above: float  # the share of records whose risk is above the threshold


@dataclass(frozen=True)
class TableRisk:
    """The risks of one table."""

    exposure: Exposure  # the records by the size of their class
    prosecutor: Intruder  # knows that the person is in the table
    journalist: Intruder  # knows that the person is in the population
    journalist_by: str  # prosecutor (a bound), estimate or population
    marketer: float  # expects to tell this share of all records rightly
    uniques: tuple[Estimate, ...] = ()  # in the population, by each model; none where its size is not known
    special: Special | None = None  # what makes records unique; None where it was not looked for

    @property
    def records(self) -> int:
        """All records in classes."""
        return self.exposure.total

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        found = self.exposure
        return {
            "records": found.total,
            "classes": found.classes,
            "k": found.smallest,
            "unique_records": found.unique,
            "sample_uniqueness": found.unique / found.total if found.total else 0.0,
            "prosecutor": asdict(self.prosecutor),
            "journalist": asdict(self.journalist) | {"by": self.journalist_by},
            "marketer": {"average": self.marketer, "expected_records": self.marketer * found.total},
            "population_uniqueness": [asdict(one) for one in self.uniques],
            "class_sizes": [
                {"size": size, "records": records, "classes": records // size}
                for size, records in zip(found.sizes, found.records, strict=True)
            ],
            "special_uniques": None if self.special is None else self.special.to_dict(),
        }


@dataclass(frozen=True)
class Risk:
    """The risks of a table as it is, and of its release."""

    columns: tuple[str, ...]
    threshold: float
    population: int | None  # persons; None where nobody told
    before: TableRisk
    after: TableRisk | None = None  # of the release, where one was given
    identifiers: Mapping[str, Finding] = field(default_factory=dict)  # by column: those of HIPAA
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "columns": list(self.columns),
            "threshold": self.threshold,
            "population": self.population,
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "identifiers": [{"column": name, **found.to_dict()} for name, found in self.identifiers.items()],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from shoal.notebook import risk_block

        return risk_block(self)


def risk(
    table: Any,
    policy: Any = None,
    *,
    columns: Sequence[str] | Callable[[Sequence[str]], Sequence[str]] | None = None,
    release: Any = None,
    threshold: float | str | None = None,
    population_size: int | None = None,
    sampling_share: float | str | None = None,
    special_size: int | None = SPECIAL_SIZE,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Risk:
    """Say how likely people are found in a table by its quasi-identifiers, and in a release of it.

    The quasi-identifiers are the policy's or the `columns`. The size of the population, or the share of it
    that the table holds, is the policy's unless it is given. Special uniques are looked for in sets of at
    most `special_size` columns (None: of any size; 0: not at all).
    """
    policy = None if policy is None else Policy.load(policy)
    tell = progress or quiet
    run = _Run(policy, engine_for(engine, table, memory_limit), special_size, tell)
    with closing(run.engine):
        opened = run.engine.open(table)
        chosen = run.chosen(columns, run.engine.columns(opened))
        limit = threshold_of(policy, threshold)
        tell("count", 0, None)
        counts, domains = run.count(opened, chosen)
        tell("identifiers", 0, None)
        found = identifiers_in(run.guesses(opened, chosen, counts, domains))
        if policy is not None and columns is None and tuple(chosen) == policy.roles.quasi_identifiers:
            counts, domains = with_population(policy, run.engine, counts, domains)
        persons = persons_of(policy, counts.records, population_size, sampling_share)
        if persons is None and counts.population is not None:
            persons = counts.population.records
        before = run.assess(counts, chosen, limit, persons)
        after = None
        if release is not None:
            looks, there = run.released(release, chosen)
            after = run.assess(there, looks, limit, persons)
    return Risk(tuple(chosen), limit, persons, before, after, found, tuple(run.notes))


def risk_of(release: Release) -> Risk:
    """Say what the sizes of classes tell of a release and of its input, without counting anew."""
    policy = release.policy
    limit, persons = threshold_of(policy), persons_of(policy, release.records)
    both = [table_risk(found, limit, persons) for found in (release.exposure, release.exposure_after)]
    return Risk(policy.roles.quasi_identifiers, limit, persons, both[0], both[1])


class _Run:
    """One assessment: what both tables share."""

    def __init__(self, policy: Policy | None, engine: Engine, size: int | None, tell: Progress) -> None:
        if size is not None and size < 0:
            message = f"special_size is a number of columns, 0 for none, got {size}."
            raise UsageError(message)
        self.policy, self.engine, self.size, self.tell = policy, engine, size, tell
        self.notes: list[str] = []

    def chosen(
        self,
        columns: Sequence[str] | Callable[[Sequence[str]], Sequence[str]] | None,
        available: Sequence[str],
    ) -> Sequence[str]:
        """Return the columns that make the classes: those named, else the policy's quasi-identifiers."""
        if callable(columns):
            columns = columns(available)
        if columns is not None:
            return check_names([columns] if isinstance(columns, str) else columns, available)
        if self.policy is None:
            message = (
                "Name the columns that somebody could know of a person (--columns), or give a policy, as "
                "`shoal init` makes one (--policy)."
            )
            raise UsageError(message)
        quasi = self.policy.roles.quasi_identifiers
        shown = [own for name in quasi for own in self.policy.released(name)]
        for names in (quasi, tuple(shown)):
            if set(names) <= set(available):
                return names
        absent = [name for name in quasi if name not in available]
        message = (
            f"The table lacks quasi-identifiers of the policy: {', '.join(map(repr, absent))}. "
            "Give the policy of this table, or name the columns."
        )
        raise PolicyError(message)

    def count(self, table: Any, columns: Sequence[str]) -> tuple[Counts, dict[str, Domain]]:
        counts, domains = self.engine.count(table, columns)
        if not counts.records:
            message = "The table has no rows."
            raise DataError(message)
        return counts, domains

    def guesses(
        self, table: Any, chosen: Sequence[str], counts: Counts, domains: Mapping[str, Domain]
    ) -> Iterator[Guess]:
        """Look at every column; what was counted already is not counted again."""
        for name in self.engine.columns(table):
            if name in chosen and counts.held:
                yield guess_column(name, counts.project([list(chosen).index(name)]), domains[name])
            else:
                own, values = self.engine.count(table, [name])
                yield guess_column(name, own, values[name])

    def released(self, release: Any, columns: Sequence[str]) -> tuple[Sequence[str], Counts]:
        """Return the columns that a release shows, and count its classes; masked records are in none."""
        opened = self.engine.open(release)
        there = self.engine.columns(opened)
        shown = [own for name in columns for own in self._shown(name, there)]
        absent = [name for name in shown if name not in there]
        if absent:
            message = (
                f"The release lacks columns: {', '.join(map(repr, absent))}. "
                "Give a release of this table, or name columns that both have."
            )
            raise PolicyError(message)
        masks = self.policy is not None and self.policy.suppressed == "mask"
        sensitive = self.policy.sensitive_needed if self.policy and masks else ()
        counts, domains = self.engine.count(opened, shown, sensitive)
        if not counts.records:
            message = "The release has no rows."
            raise DataError(message)
        if not masks:
            return shown, counts
        counts = counts.near()
        return shown, counts.only(~masked_in(Classes(counts), shown, domains))

    def _shown(self, name: str, there: Sequence[str]) -> Sequence[str]:
        """Return what stands for a column in a release: itself, or two columns that hold its bounds."""
        ends = released_columns(name, bounds=True)
        if self.policy is not None:
            return ends if name in self.policy.as_bounds else (name,)
        return ends if name not in there and set(ends) <= set(there) else (name,)

    def assess(
        self, counts: Counts, columns: Sequence[str], threshold: float, persons: int | None
    ) -> TableRisk:
        """Work out all risks of one table."""
        found = table_risk(exposure_at(counts), threshold, persons)
        if counts.population is not None:
            chance = 1 / Classes(counts).in_population
            journalist, marketer = _against(counts.sizes, chance, threshold)
            found = replace(found, journalist=journalist, journalist_by="population", marketer=marketer)
        part = None if persons is None else min(found.records / persons, 1.0) or None
        return replace(found, special=self.special(counts, columns, part))

    def special(self, counts: Counts, columns: Sequence[str], part: float | None) -> Special | None:
        """Look for what makes records unique."""
        if self.size == 0:
            return None
        if not counts.held:
            self.notes.append("Special uniques were not looked for: the combinations do not fit in memory.")
            return None
        return special_uniques(counts, columns, self.size, fraction=part, progress=self.tell)


def table_risk(found: Exposure, threshold: float, persons: int | None = None) -> TableRisk:
    """Work out the risks that the sizes of classes tell, given how many persons the population has."""
    above = found.above(threshold) / found.total if found.total else 0.0
    prosecutor = Intruder(found.highest_risk, found.average_risk, above)
    if persons is None or not found.total:
        return TableRisk(found, prosecutor, prosecutor, "prosecutor", found.average_risk)
    uniques = _uniques(found, persons)
    chance = chances(np.array(found.sizes, np.int64), min(found.total / persons, 1.0))
    alone = next(one.in_sample for one in uniques if one.model == RULE)
    if found.unique and alone is not None:  # who is unique there too is found for certain
        chance[0] = max(chance[0], alone / found.unique)
    journalist, marketer = _against(np.array(found.records, np.int64), chance, threshold)
    return TableRisk(found, prosecutor, journalist, "estimate", marketer, uniques)


def _against(records: IntArray, chance: FloatArray, threshold: float) -> tuple[Intruder, float]:
    """Return the journalist's and the marketer's risk, given the chance of records in each class."""
    total = records.sum()
    average = float((records * chance).sum() / total)
    above = float(records[chance > threshold].sum() / total)
    return Intruder(float(chance.max()), average, above), average


def _uniques(found: Exposure, persons: int) -> tuple[Estimate, ...]:
    sizes = np.array(found.sizes, np.int64)
    classes = np.array(found.records, np.int64) // np.maximum(sizes, 1)
    return tuple(estimate(sizes, classes, persons, model) for model in UNIQUENESS_MODELS)


def threshold_of(policy: Policy | None, given: float | str | None = None) -> float:
    """Return the risk that is too high: what is given, else one in the policy's k."""
    if given is not None:
        return share_of(given, "threshold")
    least = 1 if policy is None else max(model.least_size for model in policy.privacy_models)
    return 1 / least if least > 1 else THRESHOLD


def persons_of(
    policy: Policy | None, records: int, size: int | None = None, share: float | str | None = None
) -> int | None:
    """Return how many persons the population of a table has: as given, else as the policy says."""
    if size is None and share is None and policy is not None:
        size, share = policy.population_size, policy.sampling_share
    if size is None and share is None:
        return None
    part = None if share is None else share_of(share, "sampling_share")
    return population_of(records, size, part)
