"""Advice: how much information is retained by other recodings or after small changes of the policy.

Each advice is the result of a search, with the command's options and the policy that give this result. It is
compared with what the release retains of the same columns.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.core.compilation import compile_events
from shoal.core.contracts import Engine
from shoal.core.progress import Progress, quiet
from shoal.document.document import Name, Table
from shoal.errors import ShoalError
from shoal.policy.policy import Policy, named
from shoal.wording import enumerate_names, one_value_text, percent, plural
from shoal.workflow.first_policy import first_policy, names_text
from shoal.workflow.inspect import guess_columns_of
from shoal.workflow.policy_request import PolicyRequest
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.release.release import Basis, Release
from shoal.workflow.search import find, recode, retained
from shoal.workflow.session import session

SECONDS = 10.0  # time limit of all searches together
_LONGEST = 3.0  # maximum seconds of one search
_LEAST_GAIN = 0.01  # share of the information; a smaller gain is not worth reporting
_COSTLY = 0.9  # a column that retains a smaller share of its information is reported as costly
_COLUMNS = 3  # maximum number of columns whose removal is advised
_TRIED = 12  # number of costliest columns whose removal is tried
_LIMITS = (1, 5, 8, 10, 20)  # percent of the records
_SAME = 5e-4  # shares that differ by less are shown as equal
_LEFT_OUT = {"--json", "--force", "--advice", "--no-advice", "--local"}  # flags

ONE_LEVEL = (
    "every record has the same level of a column, so the released columns are easy to read and to compare"
)
LOCAL = "levels differ between classes, so labels of a column overlap: an analyst must know how to count them"
LABELS = "a cell may hold several labels, which needs care in an analysis"
REGIONS = (
    "ranges are made for this table: they overlap, differ from release to release, and someone who knows "
    "the method can infer where values lie"
)
METRIC = "columns with many values no longer count more than others"
SUPPRESSED = "more records are missing, and those missing are the unusual ones"
KNOWN = (
    "all other columns are released as they are, except names, contacts and keys: this is right only if no "
    "outsider can know one of them"
)


@dataclass(frozen=True)
class Advice:
    """A change of the policy, and the result of a search with it."""

    change: str  # in words
    options: tuple[tuple[str, str], ...]  # of `shoal anonymize`: each option with its value, or ""
    policy: Policy  # the policy that gives this result
    retained: float
    instead_of: float  # the share that the release retains of the same columns
    suppressed: int
    drawback: str

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain values."""
        return {
            "change": self.change,
            "options": [f"{option} {value}".strip() for option, value in self.options],
            "retained": self.retained,
            "instead_of": self.instead_of,
            "suppressed": self.suppressed,
            "drawback": self.drawback,
        }


@dataclass(frozen=True)
class _Trial:
    change: str
    options: tuple[tuple[str, str], ...]
    policy: Policy
    drawback: str


def advice_for(
    release: Release, *, seconds: float = SECONDS, progress: Progress | None = None
) -> tuple[Advice, ...]:
    """Search for alternatives to the release for at most `seconds`; return the best first."""
    policy, algorithm = release.policy, release.policy.search_algorithm
    basis = release.basis
    if basis is None or basis.counts.remote or release.separate_column:
        return ()
    if algorithm is not None and not algorithm.suppresses:
        return ()
    deadline = time.monotonic() + seconds
    trials = [*_other_recodings(policy), *_smaller_changes(release)]
    advice = []
    with compile_events(progress or quiet) as timer:  # compilation does not count
        for number, trial in enumerate(trials):
            left = deadline + timer.seconds - time.monotonic()
            if left <= 0:
                break
            if progress:
                progress("advice", number, len(trials))
            outcome = _try(release, basis, trial, min(left, _LONGEST))
            if outcome is not None and outcome.retained >= outcome.instead_of + _LEAST_GAIN:
                advice.append(outcome)
    advice.sort(key=_loss_of_change)
    removals = [entry for entry in advice if entry.options[0][0] == "--drop"]
    return tuple(entry for entry in advice if entry not in removals[_COLUMNS:])


def _loss_of_change(entry: Advice) -> float:
    return entry.instead_of - entry.retained


def with_known_advice(
    advice: Sequence[Advice], release: Release, table: Any, request: PolicyRequest, engine: str | Engine
) -> tuple[Advice, ...]:
    """For a policy guessed without `known`, add what is retained if only recognized columns are known."""
    try:
        with session(table, engine) as s:
            columns = guess_columns_of(s)
            known = first_policy(s, request, columns=columns).recognized_as_known
            if not known or set(known) == set(release.policy.roles.quasi_identifiers):
                return tuple(advice)
            policy = first_policy(s, replace(request, known=known), columns=columns).policy
            problem = problem_of(policy, *counted(s.table, policy), memory=s.engine.memory)
            _, evaluation = find(policy, problem, seconds=_LONGEST)
            recoded = recode(problem, evaluation)
    except ShoalError:
        return tuple(advice)
    entry = Advice(
        f"an outsider could know only {enumerate_names(known)}",
        (("--known", names_text(known)),),
        policy,
        retained=retained(recoded),
        instead_of=release.retained_overall,
        suppressed=evaluation.suppressed,
        drawback=KNOWN,
    )
    if entry.retained < entry.instead_of + _LEAST_GAIN:
        return tuple(advice)
    return tuple(sorted((*advice, entry), key=_loss_of_change))


def _try(release: Release, basis: Basis, trial: _Trial, seconds: float) -> Advice | None:
    """Search with a changed policy; None if there is no acceptable result within the time limit."""
    policy = trial.policy
    names, before = policy.roles.quasi_identifiers, release.policy.roles.quasi_identifiers
    counts = basis.counts if names == before else basis.counts.project([before.index(name) for name in names])
    try:
        problem = problem_of(policy, counts, basis.domains)
        _, evaluation = find(policy, problem, seconds=seconds)
        recoded = recode(problem, evaluation)
    except ShoalError:
        return None
    return Advice(
        trial.change,
        trial.options,
        policy,
        retained=retained(recoded),
        instead_of=sum(release.retained[name] for name in names) / len(names),
        suppressed=evaluation.suppressed,
        drawback=trial.drawback,
    )


def _other_recodings(policy: Policy) -> Iterator[_Trial]:
    """Yield other kinds of recoding: labels by class, several labels in a cell, ranges, another metric."""
    by_ranges = named(policy.algorithm)[0] == "mondrian"
    if policy.local is False:
        nodes = policy.with_(algorithm="auto") if by_ranges else policy
        auto = (("--algorithm", "auto"),) if by_ranges else ()
        yield _Trial(
            "labels are chosen class by class", (*auto, ("--local", "")), nodes.with_(local=True), LOCAL
        )
        yield _Trial(
            "labels are chosen class by class, up to three in a cell",
            (*auto, ("--local-labels", "3")),
            nodes.with_(local={"labels": 3}),
            f"{LOCAL}; {LABELS}",
        )
    if not by_ranges and policy.local is False:
        ranges = policy.with_(algorithm="mondrian")
        yield _Trial("ranges are cut class by class", (("--algorithm", "mondrian"),), ranges, REGIONS)
    if named(policy.metric)[0] != "coverage" and not by_ranges:
        by_coverage = policy.with_(metric="coverage")
        yield _Trial("the search uses another metric", (("--metric", "coverage"),), by_coverage, METRIC)


def _smaller_changes(release: Release) -> Iterator[_Trial]:
    """Yield changes that keep the kind of recoding: a higher limit, or without some columns."""
    policy = release.policy
    for share in [share for share in _LIMITS if share * release.records > 100 * release.limit][:2]:
        yield _Trial(
            f"up to {share}% of the records may be suppressed",
            (("--suppression-limit", f"{share}%"),),
            policy.with_(suppression_limit=f"{share}%"),
            SUPPRESSED,
        )
    for name in costliest(release):
        yield _Trial(
            f"{name!r} is removed",
            (("--drop", name),),
            policy.dropping([name]),
            f"{name!r} is missing in the release",
        )


def costliest(release: Release) -> list[str]:
    """Return the removable columns that retain least, the costliest first; in a tie, more values first."""
    columns, retained = release.policy.columns, release.retained
    names = [name for name in retained if columns[name].weight <= 1 and columns[name].max_level is None]
    values = {name: len(domain) for name, domain in release.basis.domains.items()} if release.basis else {}
    names.sort(key=lambda name: (retained[name], -values.get(name, 0)))
    return names[:_TRIED] if len(retained) > 1 else []


def advice_table(advice: Sequence[Advice], overall: float) -> Table:
    """Describe advice: what each change retains, and its drawback."""
    return Table(
        f"What other choices retain; this release retains {percent(overall)}",
        ("retained", "if", "drawback"),
        [(retained_text(entry, overall), Name(entry.change), Name(entry.drawback)) for entry in advice],
        left=range(3),
    )


def advice_summary(release: Release, advice: Sequence[Advice]) -> str:
    """Summarize how many columns retain information, which cost most, and what small changes retain."""
    shares = release.retained
    carrying = len(shares) - len(release.columns_without_information)
    carry = "carries" if carrying == 1 else "carry"
    sentences = [f"{carrying} of {plural(len(shares), 'quasi-identifier')} still {carry} information."]
    if one_value := one_value_text(release.columns_with_one_value):
        sentences.append(f"{one_value}.")
    costly = [name for name in sorted(shares, key=lambda name: shares[name]) if shares[name] < _COSTLY][:2]
    if costly:
        sentences.append(f"{' and '.join(costly)} {'costs' if len(costly) == 1 else 'cost'} most.")
    for entry in advice:
        option, value = entry.options[0]
        if option in ("--drop", "--suppression-limit"):
            change = f"Without {value}" if option == "--drop" else f"With {value} suppressed"
            sentences.append(f"{change}: {percent(entry.retained)} instead of {percent(entry.instead_of)}.")
    return " ".join(sentences)


def retained_text(entry: Advice, overall: float) -> str:
    """Write the share that a change retains; with fewer columns, also the release's share of the same."""
    if abs(entry.instead_of - overall) < _SAME:
        return percent(entry.retained)
    return f"{percent(entry.retained)} of the other columns, instead of {percent(entry.instead_of)}"


def changed_command(arguments: Sequence[str], entry: Advice) -> str:
    """Return the command with its options replaced by those of a change.

    >>> change = (("--local", ""), ("--algorithm", "auto"))
    >>> entry = Advice("", change, None, 0.9, 0.8, 0, "")
    >>> changed_command(["anonymize", "a.csv", "--algorithm", "mondrian", "--json"], entry)
    'shoal anonymize a.csv --local --algorithm auto --force'
    """
    replaced = {option for option, _ in entry.options} - {"--drop"}
    words, skip = [], False
    for argument in arguments:
        option, equals, _ = argument.partition("=")
        if skip or option in _LEFT_OUT:
            skip = False
        elif option in replaced:
            skip = not equals
        else:
            words.append(argument)
    changes = [word for option, value in entry.options for word in (option, value) if word]
    return shlex.join(["shoal", *words, *changes, "--force"])
