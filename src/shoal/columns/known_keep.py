"""Roles from two answers: which columns an outsider could know, and which the analyst needs.

- known: quasi-identifiers;
- keep: released as they are, sensitive or other;
- known and keep: quasi-identifiers of weight 2, with at least two labels in every release;
- neither: other, if the known columns are given; sensitive, if recognized as sensitive;
- names, contacts, keys and free text are identifiers, regardless of the answers.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shoal.columns.duplicates import Dependency, redundant
from shoal.columns.evidence import NEARLY_UNIQUE
from shoal.columns.guesses import Guess
from shoal.columns.header import check_asked
from shoal.columns.kinds import Kind
from shoal.columns.names import is_named_as
from shoal.core.arrays import IntArray
from shoal.core.contracts import Role
from shoal.core.counts.counts import Counts, Domain
from shoal.core.hierarchy.builders import parse
from shoal.errors import HierarchyError, UsageError

_QUASI = Role.QUASI_IDENTIFIER
_OFTEN_KNOWN = (Kind.AGE, Kind.PLACE, Kind.CONTACT)


@dataclass(frozen=True)
class Answers:
    """The columns that an outsider could know (None: not answered) and those that the analyst needs."""

    known: tuple[str, ...] | None = None
    keep: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        """Whether one of the questions was answered."""
        return self.known is not None or bool(self.keep)


def check_answers(known: object, keep: object, columns: Sequence[str]) -> Answers:
    """Check the given names, or those that a function selects, against the columns of a table."""
    named = {
        option: None if names is None else _names(names, columns, option)
        for option, names in (("known", known), ("keep", keep))
    }
    known_names = named["known"]
    if known_names is not None and set(known_names) == set(columns):
        raise UsageError(
            "names every column of the table, so that nothing is released as it is. Leave out what an "
            "outsider cannot know.",
            option="known",
        )
    return Answers(None if known_names is None else tuple(known_names), tuple(named["keep"] or ()))


def _names(names: object, columns: Sequence[str], option: str) -> list[str]:
    """Return names of columns, each once; a single text is a name, or names separated by commas."""
    names = names(columns) if callable(names) else names
    if isinstance(names, str):
        names = [names] if names in columns else [name.strip() for name in names.split(",")]
    chosen = list(dict.fromkeys(map(str, names))) if isinstance(names, Sequence) else names
    if isinstance(chosen, list) and not any(chosen):
        raise UsageError("names no column. Name some, such as age,sex, or leave it out.", option=option)
    return check_asked(chosen, columns)


def with_answers(guesses: Sequence[Guess], answers: Answers) -> list[Guess]:
    """Return the guesses with the roles that follow from the answers."""
    return [_answered(guess, answers) for guess in guesses] if answers.given else list(guesses)


def _answered(guess: Guess, answers: Answers) -> Guess:
    known, keep = guess.column in (answers.known or ()), guess.column in answers.keep
    if guess.role is Role.IDENTIFIER:
        return guess
    if guess.column_kind is Kind.EMPTY and (known or keep):
        raise UsageError(
            f"names column {guess.column!r}, which is empty in every record. Leave it out.",
            option="known" if known else "keep",
        )
    if keep and answers.known is None:  # not answered: columns recognized as known to others count
        known = guess.recognized and guess.role is _QUASI
    if known and keep:
        return _decided(guess, _QUASI, "known to an outsider, and needed by the analyst", needed=True)
    if known:
        return _decided(guess, _QUASI, "known to an outsider")
    if keep:
        return _decided(guess, _released(guess), "needed by the analyst")
    if answers.known is None:
        return guess
    reason = guess.reason if guess.role is Role.SENSITIVE else "not known to an outsider"
    return replace(_decided(guess, _released(guess), reason), chosen=False)


def _released(guess: Guess) -> Role:
    return Role.SENSITIVE if guess.role is Role.SENSITIVE else Role.OTHER


def _decided(guess: Guess, role: Role, reason: str, *, needed: bool = False) -> Guess:
    if guess.nearly_unique and role is not _QUASI and NEARLY_UNIQUE not in reason:
        reason = f"{reason}; {NEARLY_UNIQUE}"
    return replace(guess, role=role, reason=reason, chosen=True, recognized=True, needed=needed)


def with_limits(
    guesses: Sequence[Guess], counted: Mapping[str, tuple[Counts, Domain]], limit: int
) -> list[Guess]:
    """Return the guesses; a column that is known and needed gets the highest level that leaves two labels."""
    return [_limited(guess, *counted[guess.column], limit) if guess.needed else guess for guess in guesses]


def _limited(guess: Guess, counts: Counts, domain: Domain, limit: int) -> Guess:
    """Return a guess with the highest level whose largest group leaves more records than may be suppressed.

    Lemma: then suppression cannot remove all records outside that group, so two labels remain.
    """
    sizes = counts.totals(0, len(domain))
    try:
        hierarchy = parse(guess.column, guess.hierarchy).bind(domain, sizes)
    except HierarchyError:
        return replace(guess, max_level=0)
    for level in range(hierarchy.height, -1, -1):
        if _outside_largest(hierarchy.groups(level), sizes) > limit:
            return replace(guess, max_level=level)
    if np.count_nonzero(sizes) == 1:
        note = (
            f"Column {guess.column!r} has one value in all records, so there is nothing to keep apart in it."
        )
    else:
        note = (
            f"Column {guess.column!r} has one value in nearly all records: the others are so few that all of "
            "them may be suppressed."
        )
    return replace(guess, max_level=0, column_notes=(*guess.column_notes, note))


def _outside_largest(groups: IntArray, sizes: IntArray) -> int:
    in_groups = np.bincount(groups, sizes)
    return int(in_groups.sum() - in_groups.max())


def without_duplicates(
    guesses: Sequence[Guess], pairs: Sequence[Dependency], answers: Answers
) -> list[Guess]:
    """Return the guesses with one column of each pair of duplicates removed, so that it is counted once.

    If the answers name both columns, both are kept, and the second gets a note. A column that is released
    unchanged and determines a quasi-identifier, or is determined by one, would reveal it in every release.
    Such a column is removed, or made a quasi-identifier if the analyst needs it.
    """
    roles = {guess.column: guess.role for guess in guesses}
    among = [pair for pair in pairs if roles[pair.finer] is roles[pair.coarser] is _QUASI]
    readable = {guess.column for guess in guesses if not guess.written_as_key}
    removed = dict(redundant(among, readable, {*(answers.known or ()), *answers.keep}))
    for pair in pairs:
        for name, other in ((pair.finer, pair.coarser), (pair.coarser, pair.finer)):
            if roles[name] is Role.OTHER and roles[other] is _QUASI:
                removed.setdefault(name, pair)
    both = {pair.coarser: pair for pair in among if not {pair.finer, pair.coarser} & set(removed)}
    return [
        _without(guess, removed[guess.column], answers.keep)
        if guess.column in removed
        else _with_pair(guess, both.get(guess.column), answers)
        for guess in guesses
    ]


def _with_pair(guess: Guess, pair: Dependency | None, answers: Answers) -> Guess:
    """Return the guess, with a note if another column that is kept determines its value."""
    if pair is None:
        return guess
    named = {*(answers.known or ()), *answers.keep}
    because = " because known or keep names both" if {pair.finer, pair.coarser} <= named else ""
    note = (
        f"Column {pair.finer!r} tells the value of {pair.coarser!r}, and both stay{because}. To count them "
        "once, give one of them the role identifier."
    )
    return replace(guess, column_notes=(*guess.column_notes, note))


def _without(guess: Guess, pair: Dependency, keep: Collection[str]) -> Guess:
    other = pair.coarser if guess.column == pair.finer else pair.finer
    if pair.both:
        reason = f"says the same as {other!r}"
    else:
        reason = f"tells the value of {other!r}" if guess.column == pair.finer else f"follows from {other!r}"
    if guess.column in keep:
        return _decided(guess, _QUASI, f"{reason}, which an outsider can know", needed=True)
    return replace(guess, role=Role.IDENTIFIER, reason=f"{reason}, which stays", duplicate=True)


def answer_notes(guesses: Sequence[Guess], answers: Answers) -> Iterator[str]:
    """Yield a note for each column whose role is not the one that an answer asks for."""
    for guess in guesses:
        name = guess.column
        option = "known" if name in (answers.known or ()) else "keep" if name in answers.keep else None
        if guess.duplicate:
            yield f"Column {name!r} is removed: it {guess.reason}."
        elif guess.role is Role.IDENTIFIER and option:
            yield (
                f"Column {name!r} is in {option}, and is removed all the same as an identifier: "
                f"{guess.reason}. To keep it, change its role in the policy."
            )
        elif _may_be_known(guess, answers):
            yield (
                f"Column {name!r} looks like something that an outsider could know, and is released as it is "
                "because known does not name it. If somebody could know it, add it to known, or remove it "
                f"with --drop {shlex.quote(name)}."
            )
        elif guess.needed and name not in (answers.known or ()):
            yield (
                f"Column {name!r} is in keep, and may be generalized all the same: it {guess.reason}. To "
                "release it as it is, give it the role other in the policy."
            )


def _may_be_known(guess: Guess, answers: Answers) -> bool:
    """Return whether a column that neither answer names is released, and is of a kind that is often known."""
    named = answers.known is None or guess.column in (*answers.known, *answers.keep)
    of_birth = guess.column_kind is Kind.DATE and is_named_as(guess.column, "lifelong")
    often = of_birth or guess.column_kind in _OFTEN_KNOWN
    return often and guess.distinct > 1 and not named and guess.role is Role.OTHER
