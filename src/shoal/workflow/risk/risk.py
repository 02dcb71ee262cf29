"""Re-identification risk of a table and its release: prosecutor, journalist and marketer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shoal.columns.guesses import guess_columns
from shoal.columns.header import check_asked, check_not_swapped, check_record_numbers
from shoal.columns.identifiers import Finding, identifiers_in
from shoal.core.classes import Classes
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Counts, Domain
from shoal.core.progress import Progress
from shoal.core.recoding.groups import released_columns
from shoal.document.document import Document, Fact, HasDocument, Name, Table, name_list
from shoal.errors import PolicyError, UsageError, invalid
from shoal.policy.limits import share_of
from shoal.policy.policy import Policy
from shoal.wording import percent, plural
from shoal.workflow.problem import with_population
from shoal.workflow.release.recovery import load_policy, recover
from shoal.workflow.risk.exposure import TableRisk, against, exposure_at, table_risk
from shoal.workflow.risk.suda import SPECIAL_SIZE, Special, scores_of, special_uniques
from shoal.workflow.risk.uniqueness import persons_of
from shoal.workflow.session import AUTO, OpenTable, session
from shoal.workflow.verify import flag_masked, flagged_in

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.workflow.release.release import Release

THRESHOLD = 0.2  # default without a policy


@dataclass(frozen=True)
class Risk(HasDocument):
    """The re-identification risks of a table and, if given, of its release."""

    columns: tuple[str, ...]
    threshold: float
    population: int | None  # persons; None if unknown
    before: TableRisk
    after: TableRisk | None = None  # of the release, if given
    identifiers: Mapping[str, Finding] = field(default_factory=dict)  # by column: HIPAA identifiers
    notes: tuple[str, ...] = field(default=())

    @property
    def tables(self) -> tuple[TableRisk, ...]:
        """The risk of the table and, if given, of its release."""
        return (self.before,) if self.after is None else (self.before, self.after)

    def scores(self) -> pa.Table:
        """Return the special uniques of the table with their SUDA scores, highest first; contains values."""
        return self.before.scores()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "columns": list(self.columns),
            "threshold": self.threshold,
            "population": self.population,
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "identifiers": [
                {"column": name, **finding.to_dict()} for name, finding in self.identifiers.items()
            ],
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Describe every measure, what makes records unique, and columns that look like identifiers."""
        from shoal.workflow.risk.rows import risk_plots, risk_rows

        headers = ("measure", "before", "after")[: 3 if self.after else 2]
        tables = [Table("Risk", headers, risk_rows(self))]
        if self.before.special is not None and self.before.special.sets:
            tables.append(special_table(self.before.special))
        if self.identifiers:
            rows = [(Name(name), item.mark, item.reason) for name, item in self.identifiers.items()]
            title = "Columns that look like an identifier of HIPAA's Safe Harbor"
            tables.append(Table(title, ("column", "identifier", "reason"), rows, left=range(3)))
        return Document(
            title="Risk that people are re-identified",
            facts=[Fact("columns", "known of a person", name_list(self.columns))],
            tables=tables,
            notes=self.notes,
            figures=risk_plots(self),
        )


def special_table(special: Special, most: int = 10) -> Table:
    """List the sets of columns that make the most records unique."""
    sets = "single columns" if special.size == 1 else f"sets of at most {special.size} columns"
    by = f"{plural(special.size, 'column')} or fewer"
    return Table(
        f"What makes records unique: {sets}",
        ("columns, none of which can be left out", "records"),
        [(name_list(columns), f"{records:,}") for columns, records in special.sets[:most]],
        total=len(special.sets),
        note=f"{plural(special.records, 'record')} ({percent(special.share)}) can be identified by {by}.",
    )


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
    """Estimate the risk that persons are re-identified in a table, and in its release, by quasi-identifiers.

    The quasi-identifiers are `columns`, or those of the policy. The size of the population, or the sampling
    share, is taken from the policy unless it is given. Special uniques are searched in sets of at most
    `special_size` columns (None: of any size; 0: not at all).
    """
    policy = None if policy is None else load_policy(policy, engine)
    with session(table, engine, memory_limit, progress) as s:
        run = _Run(policy, special_size, s.progress)
        recover(release, s.engine)
        released = None if release is None else s.open(release)
        if released is not None:
            run.compare(s.columns, released.columns)
        chosen = run.chosen(columns, s.columns)
        limit = threshold_of(policy, threshold)
        s.progress("count", 0, None)
        counts, domains = s.count(chosen)
        s.progress("identifiers", 0, None)
        identifiers = _identifiers(s.table, chosen, counts, domains)
        if policy is not None and columns is None and tuple(chosen) == policy.roles.quasi_identifiers:
            counts, domains = with_population(policy, s.table, counts, domains)
        persons = persons_of(policy, counts.records, population_size, sampling_share)
        if persons is None and counts.population is not None:
            persons = counts.population.records
        before = run.assess(counts, chosen, domains, limit, persons)
        after = None
        if released is not None:
            released_names, released_counts, labels = run.released(released, chosen)
            check_record_numbers(released_counts.records, counts.records)
            after = run.assess(released_counts, released_names, labels, limit, persons)
    return Risk(tuple(chosen), limit, persons, before, after, identifiers, tuple(run.notes))


def risk_of(release: Release) -> Risk:
    """Return the risks of a release and its input from their class sizes, without counting again."""
    policy = release.policy
    limit, persons = threshold_of(policy), persons_of(policy, release.records)
    both = [table_risk(exposure, limit, persons) for exposure in (release.exposure, release.exposure_after)]
    return Risk(policy.roles.quasi_identifiers, limit, persons, both[0], both[1])


class _Run:
    """One assessment of a table and its release."""

    def __init__(self, policy: Policy | None, size: int | None, progress: Progress) -> None:
        if size is not None and size < 0:
            raise invalid("special_size", "a number of columns, 0 for none", size)
        self.policy, self.size, self.progress = policy, size, progress
        self.notes: list[str] = []

    def chosen(
        self,
        columns: Sequence[str] | Callable[[Sequence[str]], Sequence[str]] | None,
        available: Sequence[str],
    ) -> Sequence[str]:
        """Return the columns that form the classes: the named ones, or the policy's quasi-identifiers."""
        if callable(columns):
            columns = columns(available)
        if columns is not None:
            return check_asked(columns, available)
        if self.policy is None:
            raise UsageError(
                "Name the columns that somebody could know, such as age, sex, zip, or give a policy, "
                "such as one from `shoal init`."
            )
        quasi = self.policy.roles.quasi_identifiers
        shown = [part for name in quasi for part in self.policy.released(name)]
        for names in (quasi, tuple(shown)):
            if set(names) <= set(available):
                return names
        missing = [name for name in quasi if name not in available]
        raise PolicyError(
            f"The table lacks quasi-identifiers of the policy: {', '.join(map(repr, missing))}. "
            "Give the policy of this table, or name the columns."
        )

    def compare(self, available: Sequence[str], released: Sequence[str]) -> None:
        """Raise if the release has identifiers; without a policy, note columns that the table lacks."""
        if self.policy is not None:
            check_not_swapped(self.policy.roles.identifiers, released, available)
            return
        only_in_release = len(set(released) - set(available))
        if only_in_release and set(available) <= set(released):
            self.notes.append(
                f"The release has {plural(only_in_release, 'column')} that the table lacks. "
                "Are the two swapped?"
            )

    def released(
        self, release: OpenTable, columns: Sequence[str]
    ) -> tuple[Sequence[str], Counts, dict[str, Domain]]:
        """Return the columns of a release and count its classes without masked records."""
        release_columns = release.columns
        shown = [part for name in columns for part in self._shown(name, release_columns)]
        missing = [name for name in shown if name not in release_columns]
        if missing:
            raise PolicyError(
                f"The release lacks columns: {', '.join(map(repr, missing))}. "
                "Give a release of this table, or name columns that both have."
            )
        policy = self.policy if self.policy is not None and self.policy.masks else None
        flags: list[str] = []
        if policy is not None:
            release, flag = flag_masked(release, policy)
            flags = [flag]
        counts, domains = release.count([*shown, *flags])
        if policy is None:
            return shown, counts, domains
        counts = counts.in_memory()
        visible = counts.only(~flagged_in(counts, domains))
        return shown, visible.project(range(len(shown))), {name: domains[name] for name in shown}

    def _shown(self, name: str, available: Sequence[str]) -> Sequence[str]:
        """Return the released columns of a column: itself, or two columns with its bounds."""
        ends = released_columns(name, bounds=True)
        if self.policy is not None:
            return ends if name in self.policy.as_bounds else (name,)
        return ends if name not in available and set(ends) <= set(available) else (name,)

    def assess(
        self,
        counts: Counts,
        columns: Sequence[str],
        domains: Mapping[str, Domain],
        threshold: float,
        persons: int | None,
    ) -> TableRisk:
        """Compute all risks of one table."""
        risks = table_risk(exposure_at(counts), threshold, persons)
        if counts.population is not None:
            chance = 1 / Classes(counts).in_population
            journalist, marketer = against(counts.sizes, chance, threshold)
            risks = replace(risks, journalist=journalist, journalist_by="population", marketer=marketer)
        part = None if persons is None else min(risks.records / persons, 1.0) or None
        special = self.special(counts, columns, part)
        scored = None if special is None else scores_of(special, counts, columns, domains)
        return replace(risks, special=special, scored=scored)

    def special(self, counts: Counts, columns: Sequence[str], part: float | None) -> Special | None:
        """Search for special uniques."""
        if self.size == 0:
            return None
        if counts.remote:
            self.notes.append("Special uniques were not looked for: the combinations do not fit in memory.")
            return None
        return special_uniques(counts, columns, self.size, fraction=part, progress=self.progress)


def _identifiers(
    table: OpenTable, chosen: Sequence[str], counts: Counts, domains: Mapping[str, Domain]
) -> dict[str, Finding]:
    """Find the identifiers of HIPAA among all columns; known counts are reused."""
    known = {
        name: (counts.project([column]), domains[name])
        for column, name in enumerate(() if counts.remote else chosen)
    }
    guesses = guess_columns(table.engine, table.table, known, with_hierarchy=False)
    return identifiers_in(guess for guess, _, _ in guesses)


def threshold_of(policy: Policy | None, given: float | str | None = None) -> float:
    """Return the risk threshold: the given one, or 1 / k of the policy, or the default."""
    if given is not None:
        return share_of(given, "threshold")
    least = 1 if policy is None else max(model.least_size for model in policy.privacy_models)
    return 1 / least if least > 1 else THRESHOLD
