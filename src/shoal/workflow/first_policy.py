"""First policies: guessed from a table, and from what an outsider could know and the analyst needs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.columns.duplicates import (
    ColumnSizes,
    Dependency,
    dependencies,
    possible_dependencies,
    without_events,
)
from shoal.columns.guesses import Guess
from shoal.columns.kinds import Kind
from shoal.columns.known_keep import (
    Answers,
    answer_notes,
    check_answers,
    with_answers,
    with_limits,
    without_duplicates,
)
from shoal.columns.presets import DEFAULT_LIMIT, PRESETS, check_preset, policy_text, preset_notes
from shoal.core.contracts import Engine, Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.problem import Problem
from shoal.core.progress import Progress
from shoal.errors import DataError, OutOfTime, ShoalError, UsageError
from shoal.policy.limits import check_whole, limit_in_records
from shoal.policy.policy import Policy
from shoal.wording import percent, plural
from shoal.workflow.inspect import ColumnGuesses, guess_columns_of
from shoal.workflow.policy_request import DEFAULT_K, PolicyRequest
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import find, recode, retained
from shoal.workflow.session import AUTO, OpenTable, Session, session

_MOST_CELLS = 20_000_000  # maximum number of cells (records times columns) for comparing columns
_MOST_ROWS = 50_000  # maximum number of rows searched; a larger table is sampled
_SECONDS = 0.5  # limit of a quick search; there are at most two
_MOST_SECONDS = 3.0  # limit of a second attempt, if the first retained nothing, for example while compiling


@dataclass(frozen=True)
class FirstPolicy:
    """A guessed policy, with the reason for every role."""

    guesses: tuple[Guess, ...]
    answers: Answers
    records: int
    text: str = field(repr=False)  # YAML with comments
    policy: Policy = field(repr=False)
    notes: tuple[str, ...] = ()
    compared: frozenset[str] = frozenset()  # the columns that were compared to find duplicates
    duplicates: tuple[Dependency, ...] = ()

    @property
    def release_notes(self) -> tuple[str, ...]:
        """The notes; the first one asks for `known` and `keep` if `known` was not given."""
        if self.answers.known is not None:
            return self.notes
        count = len(self.unrecognized)
        stay = "stays a quasi-identifier" if count == 1 else "stay quasi-identifiers"
        columns = f": {plural(count, 'unrecognized column')} {stay}" if count else ""
        return (
            f"The policy was guessed{columns}. To retain more, name in known what an outsider could know, "
            "and in keep what the analyst needs.",
            *self.notes,
        )

    @property
    def unrecognized(self) -> tuple[str, ...]:
        """The columns that are quasi-identifiers because they were not recognized."""
        return tuple(
            guess.column
            for guess in self.guesses
            if guess.role is Role.QUASI_IDENTIFIER and not guess.recognized
        )

    @property
    def recognized_as_known(self) -> tuple[str, ...]:
        """The quasi-identifiers that were recognized by their name or values, except outcomes."""
        return tuple(
            guess.column
            for guess in self.guesses
            if guess.role is Role.QUASI_IDENTIFIER
            and guess.recognized
            and guess.column_kind is not Kind.OUTCOME
        )


def first_policy(
    s: Session,
    request: PolicyRequest,
    *,
    preset: str | None = None,
    columns: ColumnGuesses | None = None,
    earlier: FirstPolicy | None = None,
) -> FirstPolicy:
    """Guess a policy for the table of a session.

    Pass the guesses for its `columns` and an `earlier` policy for the table to avoid further passes over it.
    """
    check_preset(preset)
    k = check_whole("k", request.k)
    answers = check_answers(request.known, request.keep, s.columns)
    columns = columns or guess_columns_of(s)
    if answers.given and columns.records < k:
        raise DataError(
            f"The table has {plural(columns.records, 'record')}, and k is {k}: no release is possible. Give "
            "a table with more records, or lower k."
        )
    limit = limit_in_records(request.changes.get("suppression_limit", DEFAULT_LIMIT), columns.records)
    guesses = with_answers(columns.guesses, answers)
    compared = _compared(guesses, columns)
    pairs = _duplicates(s, [guess for guess in guesses if guess.column in compared], columns.records, earlier)
    guesses = without_duplicates(guesses, pairs, answers)
    needed = {guess.column: _count(s, guess) for guess in guesses if guess.needed}
    guesses = with_limits(guesses, needed, limit)
    if answers.given and not any(guess.role is Role.QUASI_IDENTIFIER for guess in guesses):
        raise UsageError(
            "names only columns that are removed as identifiers. Name what else an outsider could know.",
            option="known",
        )
    notes = tuple(answer_notes(guesses, answers))
    text = PRESETS[preset](guesses) if preset else policy_text(guesses, k=k, notes=notes)
    policy = Policy.from_yaml(text, Path())
    if request.changes:
        policy = policy.with_(**request.changes)
        text = policy.to_yaml()
    units = [model.unit_column for model in policy.privacy_models if model.unit_column is not None]
    return FirstPolicy(
        tuple(guesses),
        answers,
        columns.records,
        text,
        policy,
        (*notes, *preset_notes(preset, guesses, units=units)),
        compared,
        tuple(pairs),
    )


def _count(s: Session, guess: Guess) -> tuple[Counts, Domain]:
    counts, domains = s.count([guess.column])
    return counts, domains[guess.column]


def _compared(guesses: Sequence[Guess], columns: ColumnGuesses) -> frozenset[str]:
    """Return the columns that may duplicate each other; none if the table is too large to compare them."""
    names = frozenset(
        guess.column
        for guess in guesses
        if guess.role in (Role.QUASI_IDENTIFIER, Role.OTHER) and guess.column_kind is not Kind.EMPTY
    )
    return names if len(names) * columns.records <= _MOST_CELLS else frozenset()


def _duplicates(
    s: Session, guesses: Sequence[Guess], records: int, earlier: FirstPolicy | None
) -> list[Dependency]:
    """Return which columns determine others; a sample of a large table rules out most pairs."""
    names = [guess.column for guess in guesses]
    if earlier is not None and earlier.compared.issuperset(names):
        return [pair for pair in earlier.duplicates if {pair.finer, pair.coarser} <= set(names)]
    sampled = _searched_rows(s, records) if len(names) > 1 else s.table
    if sampled.table is not s.table.table:
        counts, _ = sampled.count(names)
        sizes = [ColumnSizes(guess.values, guess.agreement(records)) for guess in guesses]
        names = [names[column] for column in possible_dependencies(counts, sizes, records)]
    if len(names) < 2:
        return []
    counts, _ = s.count(names)
    if counts.remote:
        return []
    kinds = {guess.column: guess.column_kind for guess in guesses}
    records_per_value = {guess.column: records / max(1, guess.distinct) for guess in guesses}
    return without_events(dependencies(counts, names), kinds, records_per_value)


def init(
    table: Any,
    *,
    known: Sequence[str] | str | None = None,
    keep: Sequence[str] | str | None = None,
    k: int = DEFAULT_K,
    engine: str | Engine = AUTO,
    progress: Progress | None = None,
) -> Policy:
    """Guess a policy for a table, to edit.

    `known` names the columns that an outsider could know of a person: they are the quasi-identifiers. `keep`
    names the columns that the analyst needs. Without `known`, all columns that are not recognized are
    quasi-identifiers.
    """
    with session(table, engine, progress=progress) as s:
        return first_policy(s, PolicyRequest(known, keep, k)).policy


def _searched_rows(s: Session, records: int) -> OpenTable:
    """Return the rows that a quick search uses: a sample of a large table."""
    step = -(-records // _MOST_ROWS)
    return s.sample(step) if step > 1 else s.table


def quick_retained(s: Session, table: OpenTable, policy: Policy) -> float | None:
    """Return the share of information that a short search retains; None if it finds nothing.

    The share is 1 minus the coverage loss, the mean over the quasi-identifiers with equal weights.
    """
    try:
        counts, domains = counted(table, policy)
        problem = problem_of(policy, counts, domains, memory=s.engine.memory)
        return _retained_within(policy, problem, _SECONDS) or _retained_within(policy, problem, _MOST_SECONDS)
    except ShoalError:
        return None


def _retained_within(policy: Policy, problem: Problem, seconds: float) -> float | None:
    """Return the share that a search retains; None if it found no release in time."""
    try:
        _, evaluation = find(policy, problem, seconds=seconds)
    except OutOfTime:
        return None
    return retained(recode(problem, evaluation))


@dataclass(frozen=True)
class Outlook:
    """The share that a quick search retains with a first policy, and if only some columns are known."""

    unrecognized: tuple[str, ...]
    retained: float | None
    known: tuple[str, ...] = ()  # the columns that are assumed to be known instead
    retained_then: float | None = None
    sampled: bool = False  # only a sample of the rows was searched
    too_few: tuple[int, int] | None = None  # the number of records and k, if no release is possible

    @property
    def sentences(self) -> list[str]:
        """Sentences on columns that are not recognized, and on what a quick search retains."""
        lines = []
        if self.unrecognized:
            number = plural(len(self.unrecognized), "column is", "columns are")
            role = "a quasi-identifier" if len(self.unrecognized) == 1 else "quasi-identifiers"
            lines = [f"{number} not recognized, and treated as {role} to be safe."]
        if self.too_few is not None:
            records, k = self.too_few
            lines.append(
                f"No release is possible: the table has {plural(records, 'record')}, and k is {k}. Give a "
                "table with more records, or lower k."
            )
        elif self.retained is None:
            lines.append("A quick search found no release.")
        else:
            share = percent(self.retained)
            lines.append(f"A quick search retains {share} of the information in the quasi-identifiers.")
        if self.retained_then is not None:
            lines.append(
                f"If an outsider could know only {', '.join(self.known)}, it would retain "
                f"{percent(self.retained_then)}:"
            )
        elif self.known:
            lines.append("Say what an outsider could know, and the rest is released as it is:")
        if self.sampled:
            lines.insert(
                bool(self.unrecognized),
                "The table is large: a sample of its rows is searched, and the shares are estimates.",
            )
        return lines

    def command(self, data: str, arguments: Sequence[str] = ()) -> list[str]:
        """Return a `shoal init` command with `--known`, or an empty list if `known` is empty."""
        return ["shoal", "init", data, "--known", names_text(self.known), *arguments] if self.known else []


def outlook(s: Session, first: FirstPolicy, columns: ColumnGuesses, request: PolicyRequest) -> Outlook:
    """Search quickly with a first policy, and with a policy in which only recognized columns are known.

    The second is left out if it does not retain more.
    """
    k = check_whole("k", request.k)
    too_few = (first.records, k) if first.records < k else None
    try:
        rows = _searched_rows(s, first.records)
    except ShoalError:
        return Outlook(first.unrecognized, None, too_few=too_few)
    now = Outlook(
        first.unrecognized,
        quick_retained(s, rows, first.policy),
        sampled=first.records > _MOST_ROWS,
        too_few=too_few,
    )
    if first.answers.known is not None or not first.unrecognized or now.too_few:
        return now
    known = first.recognized_as_known
    if not known:  # any columns serve as an example
        quasi = [guess for guess in first.guesses if guess.role is Role.QUASI_IDENTIFIER]
        known = tuple(guess.column for guess in sorted(quasi, key=lambda guess: guess.distinct)[:3])
    try:
        other = first_policy(s, replace(request, known=known), columns=columns, earlier=first)
    except ShoalError:
        return now
    then = quick_retained(s, rows, other.policy)
    if then is not None and now.retained is not None and then <= now.retained:
        return now
    return replace(now, known=known, retained_then=then)


def names_text(names: Sequence[str]) -> str:
    """Write names of columns as the command line reads them.

    >>> names_text(["age", "city, state"])
    'age,"city, state"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
