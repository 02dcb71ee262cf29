"""Attack: what somebody learns who joins a release with what is known of persons.

A record could be a person's when every cell covers what is known of that person: a generalized value covers
its group, an empty cell everything. Those records are the person's match set. Knowledge is taken to be exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.assessing.exposure import Exposure
from shoal.attacking.covering import covered
from shoal.attacking.released import Knowledge, Shown, joined_on, knowledge_of
from shoal.choose import AUTO, engine_for
from shoal.column_names import check_asked, check_not_swapped
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Engine
from shoal.core.counts import Counts, Domain, numbered, packed
from shoal.core.linking import link
from shoal.errors import DataError, UsageError

_K = 5  # where neither the policy nor the recipe names one
_SEVERAL = -2  # as the kernels write it
Text = str | None


@dataclass(frozen=True)
class Person:
    """A person who is singled out: what was known, and what the record adds."""

    known: Mapping[str, Text]
    learnt: Mapping[str, str]


@dataclass(frozen=True)
class Attack:
    """What joining a release with outside knowledge tells."""

    on: tuple[str, ...]  # the columns of the release that are known
    persons: int
    matched: int  # persons with at least one record that could be theirs
    unmatched: int
    singled_out: int  # persons with exactly one
    k: int
    below_k: int  # persons with some, but fewer than k
    smallest: int  # records in the smallest match set; 0 where nobody is matched
    learnt: Mapping[str, int]  # persons whose records all have one same value, by sensitive column
    notes: tuple[str, ...]
    conclusive: bool = True  # not where nobody matches a record, or a known column could not be read
    exposure: Exposure = field(default=Exposure(), repr=False)  # persons by the size of their match set
    revealed: tuple[Person, ...] = field(default=(), repr=False)  # some who are singled out, where asked for

    def to_dict(self) -> dict[str, Any]:
        """Return the attack as plain values; no value of the data unless some were asked for."""
        pairs = zip(self.exposure.sizes, self.exposure.records, strict=True)
        return {
            "on": list(self.on),
            "persons": self.persons,
            "matched": self.matched,
            "unmatched": self.unmatched,
            "singled_out": self.singled_out,
            "k": self.k,
            "below_k": self.below_k,
            "smallest": self.smallest,
            "learnt": dict(self.learnt),
            "sizes": [{"records": size, "persons": persons} for size, persons in pairs],
            "conclusive": self.conclusive,
            "notes": list(self.notes),
            "revealed": [{"known": dict(one.known), "learnt": dict(one.learnt)} for one in self.revealed],
        }


def attack(
    release: Any,
    known: Any,
    on: str | Sequence[str],
    *,
    policy: Any = None,
    recipe: Any = None,
    k: int | None = None,
    sensitive: str | Sequence[str] = (),
    engine: str | Engine = AUTO,
    reveal: int = 0,
) -> Attack:
    """Join a release with what is known of persons, and count whom it gives away.

    `on` names the columns that are known, as `age`, or `age=years` where the table of persons names one
    otherwise. The recipe or the policy tell what labels cover; without them labels are read. `reveal` asks
    for so many of the persons who are singled out, with what is learnt of them.
    """
    if k is not None and k < 1:
        message = f"k must be at least 1, got {k}."
        raise UsageError(message)
    told = knowledge_of(policy, recipe)
    engine = engine_for(engine, release)
    with closing(engine):
        table, persons = engine.open(release), engine.open(known)
        identifiers = () if told.policy is None else told.policy.roles.identifiers
        check_not_swapped(identifiers, engine.columns(table), engine.columns(persons), "known table")
        columns = joined_on(on, told, engine.columns(table), engine.columns(persons))
        secrets, notes = _sensitive(sensitive, told, [one for one, _ in columns], engine.columns(table))
        there = _counted(engine, table, [part for one, _ in columns for part in one.parts], secrets)
        names = [name for _, name in columns]
        here = _counted(engine, persons, names, (), "table of known persons")
        sizes, codes, read = _linked(columns, there, here, secrets, notes)
        learnt = dict(zip(secrets, codes, strict=True))
        listed, whole = engine.columns(persons), here
        others = [name for name in listed if name not in names]
        if others and reveal and (sizes == 1).any():  # only then is more asked of the table
            whole = _counted(engine, persons, [*names, *others], (), "table of known persons")
    exposure = _exposure(sizes, here.counts.sizes)
    k = k or told.k or _K
    people = here.counts.records
    return Attack(
        on=tuple(one.name for one, _ in columns),
        persons=people,
        matched=exposure.total,
        unmatched=people - exposure.total,
        singled_out=exposure.unique,
        k=k,
        below_k=exposure.below(k),
        smallest=exposure.smallest,
        learnt={name: int(here.counts.sizes[own >= 0].sum()) for name, own in learnt.items()},
        notes=tuple(notes),
        conclusive=read and exposure.total > 0,
        exposure=exposure,
        revealed=_revealed(listed, whole, here, sizes == 1, learnt, there, reveal),
    )


@dataclass(frozen=True)
class _Counted:
    counts: Counts
    domains: Mapping[str, Domain]


def _counted(
    engine: Engine, table: Any, columns: Sequence[str], sensitive: Sequence[str], what: str = "release"
) -> _Counted:
    counts, domains = engine.count(table, columns, sensitive)
    if not len(counts):
        message = f"The {what} has no rows. Give one that has records."
        raise DataError(message)
    return _Counted(counts.near(), domains)


def _sensitive(
    named: str | Sequence[str], told: Knowledge, columns: Sequence[Shown], available: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the sensitive columns, those named or else the policy's, and notes on what is not there."""
    given = [named] if isinstance(named, str) else list(named)
    taken = {part for one in columns for part in one.parts}
    if given:
        check_asked(given, available, kind="sensitive column", where="release", beside=taken)
    for name in given:
        if name in taken:
            message = f"{name!r} is both known and sensitive: nothing could be learnt. Leave it out of one."
            raise UsageError(message)
    if given or told.policy is None:
        return given, []
    own = [name for name in told.policy.roles.sensitive if name not in taken]
    absent = [
        f"{name!r} is not in the release, so nothing is learnt of it there."
        for name in own
        if name not in available
    ]
    return [name for name in own if name in available], absent


def _linked(
    columns: Sequence[tuple[Shown, str]],
    there: _Counted,
    here: _Counted,
    secrets: Sequence[str],
    notes: list[str],
) -> tuple[IntArray, IntArray, bool]:
    """Match every known combination, and tell whether some value of each column could be read.

    What was not understood is added to the notes.
    """
    labels, compatible, read = [], [], []
    place = 0
    for one, name in columns:
        codes, looks = one.codes(there.counts, there.domains, place)
        place += len(one.parts)
        labels.append(codes)
        found, some = covered(one, looks, here.domains[name].texts, notes)
        compatible.append(found)
        read.append(some)
    only = [_only(there.counts, name, there.domains[name]) for name in secrets]
    values = np.stack([here.counts.codes(column) for column in range(len(columns))])
    codes = np.array(only, np.int64).reshape(len(secrets), len(there.counts))
    return *link(np.stack(labels), there.counts.sizes, codes, values, compatible), all(read)


def _only(counts: Counts, name: str, domain: Domain) -> IntArray:
    """Return the one sensitive code of each combination; several where there are more, or it is missing."""
    entries = counts.sensitive[name]
    found = np.full(len(counts), _SEVERAL)
    alone = np.bincount(entries.rows, minlength=len(counts))[entries.rows] == 1
    there = np.array([text is not None for text in domain.texts])[entries.codes]
    found[entries.rows[alone & there]] = entries.codes[alone & there]
    return found


def _exposure(sizes: IntArray, people: IntArray) -> Exposure:
    """Count the persons by the size of their match set; those without any are left out."""
    inside = sizes > 0
    found, of = np.unique(sizes[inside], return_inverse=True)
    persons = np.bincount(of, people[inside], len(found)).astype(np.int64)
    return Exposure(tuple(found.tolist()), tuple(persons.tolist()))


def _revealed(
    columns: Sequence[str],
    whole: _Counted,
    here: _Counted,
    alone: BoolArray,
    codes: Mapping[str, IntArray],
    there: _Counted,
    most: int,
) -> tuple[Person, ...]:
    """Return some persons who are singled out: the whole row of what is known, and what is learnt."""
    if not (most and alone.any()):
        return ()
    joined = range(len(here.domains))
    both = [np.concatenate((here.counts.codes(place), whole.counts.codes(place))) for place in joined]
    of = numbered(packed(both))[len(alone) :]  # the combinations of what is joined on come first, each once
    found: list[Person] = []
    for row in np.flatnonzero(alone[of])[:most].tolist():
        known = {
            name: domain.texts[int(whole.counts.codes(place)[row])]
            for place, (name, domain) in enumerate(whole.domains.items())
        }
        own = {name: int(each[of[row]]) for name, each in codes.items()}
        learnt = {name: there.domains[name].texts[code] or "" for name, code in own.items() if code >= 0}
        person = Person({name: known[name] for name in columns}, learnt)
        found += [person] * int(whole.counts.sizes[row])
    return tuple(found[:most])
