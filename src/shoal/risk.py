"""Risk: how likely an intruder finds people in a table and in its release, in the terms of regulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shoal.assessing.exposure import exposure_at
from shoal.assessing.scores import scores_of
from shoal.assessing.special import SPECIAL_SIZE, Special, special_uniques
from shoal.assessing.table import TableRisk, against, table_risk
from shoal.choose import AUTO, engine_for
from shoal.column_names import check_asked, check_not_swapped
from shoal.core.classes import Classes
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain
from shoal.core.groups import released_columns
from shoal.core.progress import Progress, quiet
from shoal.errors import DataError, PolicyError, UsageError, so_many
from shoal.identifiers.rule import Finding, identifiers_in
from shoal.policies.guesses import guess_columns
from shoal.policies.population import persons_of
from shoal.policies.shares import share_of
from shoal.policy import Policy
from shoal.sensitive import with_population
from shoal.verify import masked_in

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.release import Release

THRESHOLD = 0.2  # without a word and without a policy: one in five


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

    @property
    def tables(self) -> tuple[TableRisk, ...]:
        """The table and, where there is one, its release."""
        return (self.before,) if self.after is None else (self.before, self.after)

    def scores(self) -> pa.Table:
        """Return the table's special uniques with their SUDA scores, worst first; it holds their values."""
        return self.before.scores()

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
        released = None if release is None else run.engine.open(release)
        if released is not None:
            run.compare(run.engine.columns(opened), run.engine.columns(released))
        chosen = run.chosen(columns, run.engine.columns(opened))
        limit = threshold_of(policy, threshold)
        tell("count", 0, None)
        counts, domains = run.count(opened, chosen)
        tell("identifiers", 0, None)
        found = run.identifiers(opened, chosen, counts, domains)
        if policy is not None and columns is None and tuple(chosen) == policy.roles.quasi_identifiers:
            counts, domains = with_population(policy, run.engine, counts, domains)
        persons = persons_of(policy, counts.records, population_size, sampling_share)
        if persons is None and counts.population is not None:
            persons = counts.population.records
        before = run.assess(counts, chosen, domains, limit, persons)
        after = None
        if released is not None:
            looks, there, labels = run.released(released, chosen)
            after = run.assess(there, looks, labels, limit, persons)
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
            return check_asked(columns, available)
        if self.policy is None:
            message = (
                "Name the columns that somebody could know of a person, as age, sex, zip, or give a policy, "
                "as `shoal init` makes one."
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

    def compare(self, available: Sequence[str], released: Sequence[str]) -> None:
        """Refuse a release that has identifiers; without a policy, note what only it has."""
        if self.policy is not None:
            check_not_swapped(self.policy.roles.identifiers, released, available)
            return
        more = len(set(released) - set(available))
        if more and set(available) <= set(released):
            self.notes.append(
                f"The release has {so_many(more, 'column')} that the table lacks. Are the two swapped?"
            )

    def count(self, table: Any, columns: Sequence[str]) -> tuple[Counts, dict[str, Domain]]:
        counts, domains = self.engine.count(table, columns)
        if not counts.records:
            message = "The table has no rows. Give one that has records."
            raise DataError(message)
        return counts, domains

    def identifiers(
        self, table: Any, chosen: Sequence[str], counts: Counts, domains: Mapping[str, Domain]
    ) -> dict[str, Finding]:
        """Look at every column; what was counted already is not counted again."""
        known = {
            name: (counts.project([place]), domains[name])
            for place, name in enumerate(chosen if counts.held else ())
        }
        return identifiers_in(found for found, _, _ in guess_columns(self.engine, table, known))

    def released(
        self, opened: Any, columns: Sequence[str]
    ) -> tuple[Sequence[str], Counts, dict[str, Domain]]:
        """Return the columns that a release shows, and count its classes; masked records are in none."""
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
            message = "The release has no rows. Give one that has records."
            raise DataError(message)
        if not masks:
            return shown, counts, domains
        counts = counts.near()
        return shown, counts.only(~masked_in(Classes(counts), shown, domains)), domains

    def _shown(self, name: str, there: Sequence[str]) -> Sequence[str]:
        """Return what stands for a column in a release: itself, or two columns that hold its bounds."""
        ends = released_columns(name, bounds=True)
        if self.policy is not None:
            return ends if name in self.policy.as_bounds else (name,)
        return ends if name not in there and set(ends) <= set(there) else (name,)

    def assess(
        self,
        counts: Counts,
        columns: Sequence[str],
        domains: Mapping[str, Domain],
        threshold: float,
        persons: int | None,
    ) -> TableRisk:
        """Work out all risks of one table."""
        found = table_risk(exposure_at(counts), threshold, persons)
        if counts.population is not None:
            chance = 1 / Classes(counts).in_population
            journalist, marketer = against(counts.sizes, chance, threshold)
            found = replace(found, journalist=journalist, journalist_by="population", marketer=marketer)
        part = None if persons is None else min(found.records / persons, 1.0) or None
        special = self.special(counts, columns, part)
        scored = None if special is None else scores_of(special, counts, columns, domains)
        return replace(found, special=special, scored=scored)

    def special(self, counts: Counts, columns: Sequence[str], part: float | None) -> Special | None:
        """Look for what makes records unique."""
        if self.size == 0:
            return None
        if not counts.held:
            self.notes.append("Special uniques were not looked for: the combinations do not fit in memory.")
            return None
        return special_uniques(counts, columns, self.size, fraction=part, progress=self.tell)


def threshold_of(policy: Policy | None, given: float | str | None = None) -> float:
    """Return the risk that is too high: what is given, else one in the policy's k."""
    if given is not None:
        return share_of(given, "threshold")
    least = 1 if policy is None else max(model.least_size for model in policy.privacy_models)
    return 1 / least if least > 1 else THRESHOLD
