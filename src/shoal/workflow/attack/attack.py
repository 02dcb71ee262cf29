"""Attack: re-identify persons by joining a release with a table of known persons.

A record matches a person if each of its cells covers the person's known value. A generalized cell covers the
values of its group; an empty cell covers every value. The matching records of a person are the match set. The
result is only right if the known values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from shoal.columns.header import check_asked, check_not_swapped
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Engine
from shoal.core.counts.counts import Counts, Domain, numbered, packed
from shoal.document.document import Document, Fact, HasDocument, Name, Table, Tone, Verdict
from shoal.errors import UsageError
from shoal.policy.limits import check_whole
from shoal.wording import plural
from shoal.workflow.attack.covering import match_column
from shoal.workflow.attack.linking import link
from shoal.workflow.attack.released import Knowledge, ReleasedColumn, joined_on, knowledge_of
from shoal.workflow.release.recovery import recover, recover_recipe
from shoal.workflow.risk.exposure import Exposure
from shoal.workflow.session import AUTO, OpenTable, session
from shoal.workflow.utility.labels import CellText
from shoal.workflow.verify import WILDCARDS

_K = 5  # the default if neither the policy nor the recipe gives k
_SEVERAL = -2  # stands for several or unknown values, as in `linking`


@dataclass(frozen=True)
class Person:
    """A person with exactly one matching record: what was known, and what the record reveals."""

    known: Mapping[str, CellText]
    learnt: Mapping[str, str]


@dataclass(frozen=True)
class Attack(HasDocument):
    """The result of joining a release with outside knowledge."""

    on: tuple[str, ...]  # the columns of the release that are known
    persons: int
    matched: int  # persons with at least one matching record
    unmatched: int
    singled_out: int  # persons with exactly one matching record
    k: int
    below_k: int  # persons with at least one matching record, but fewer than k
    smallest: int  # number of records in the smallest match set; 0 if nobody is matched
    learnt: Mapping[str, int]  # by sensitive column: how many persons have records of one value only
    notes: tuple[str, ...]
    conclusive: bool = True  # False if nobody matches a record, or a known column could not be read
    exposure: Exposure = field(default=Exposure(), repr=False)  # persons by the size of their match set
    revealed: tuple[Person, ...] = field(default=(), repr=False)  # some singled-out persons, if requested

    def to_dict(self) -> dict[str, Any]:
        """Return the attack as plain values, without values of the data unless some were requested."""
        values = asdict(self)
        sizes = values.pop("exposure")
        pairs = zip(sizes["sizes"], sizes["records"], strict=True)
        return values | {"sizes": [{"records": size, "persons": persons} for size, persons in pairs]}

    def document(self) -> Document:
        """Describe the attack: who can be re-identified, and what is learnt."""
        persons = f"{self.persons:,}, of whom {self.matched:,} match some record"
        smallest = plural(self.smallest, "record") if self.matched else "nobody is matched"
        few = f"fewer than {self.k:,}"
        return Document(
            title="Attack",
            verdict=self._verdict(),
            facts=[
                Fact("persons", "persons", persons),
                Fact("singled_out", "singled out", f"{self.singled_out:,} match exactly one record"),
                Fact("below_k", few, f"{self.below_k:,} match {few} records"),
                Fact("smallest", "smallest", smallest),
                *[
                    Fact("learnt", ("learnt: ", Name(name)), f"of {plural(count, 'person')}, with certainty")
                    for name, count in self.learnt.items()
                ],
            ],
            tables=[self._persons()] if self.revealed else [],
            notes=[f"Note: {note}" for note in self.notes],
        )

    def _verdict(self) -> Verdict:
        sentences = []
        if self.below_k:
            matches = plural(self.below_k, "person matches", "persons match")
            sentences.append(f"{matches} fewer than {plural(self.k, 'record')}.")
        elif self.conclusive:
            sentences.append(f"No person matches fewer than {plural(self.k, 'record')}.")
        if not self.conclusive and self.matched:
            sentences.append("No known value of one column could be read, so the attack proves nothing.")
        elif not self.conclusive:
            sentences.append(
                "Nobody matches any record, which proves nothing: the known table may be of other persons, "
                "or write values in another way. Is somebody in it whom you know to be in the release?"
            )
        tone: Tone = "bad" if self.below_k else "good" if self.conclusive else "warn"
        return Verdict(tone, " ".join(sentences))

    def _persons(self) -> Table:
        known, learnt = list(self.revealed[0].known), list(self.learnt)
        headers: list[str | tuple[str, ...]] = [*map(Name, known)]
        headers += [(Name(name), " (learnt)") for name in learnt]
        rows = [
            [Name(cell or "") for cell in (*map(person.known.get, known), *map(person.learnt.get, learnt))]
            for person in self.revealed
        ]
        title = "Persons who are singled out, and what is learnt"
        omitted = self.singled_out - len(rows)
        return Table(
            title, headers, rows, left=range(len(headers)), note=f"and {omitted:,} more" if omitted else ""
        )


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
    """Join a release with a table of known persons, and count the persons who can be re-identified.

    `on` names the known columns, such as `age`, or `age=years` if the table of persons calls it `years`. The
    recipe or the policy defines which values each label covers; without them the labels are parsed. `reveal`
    is the number of re-identified persons to return, with their sensitive values.
    """
    if k is not None:
        check_whole("k", k)
    with session(release, engine, role="release") as s:
        recover(release, s.engine)
        recover_recipe(recipe, s.engine)
        knowledge = knowledge_of(policy, recipe)
        table, persons = s.table, s.open(known, "table of known persons")
        identifiers = () if knowledge.policy is None else knowledge.policy.roles.identifiers
        check_not_swapped(identifiers, table.columns, persons.columns, "known table")
        columns = joined_on(on, knowledge, table.columns, persons.columns)
        secrets, notes = _sensitive(sensitive, knowledge, [column for column, _ in columns], table.columns)
        if knowledge.policy is not None and knowledge.policy.wildcards:
            notes.append(WILDCARDS)
        return _attack(table, persons, columns, secrets, k or knowledge.k or _K, notes, reveal)


def _attack(
    release: OpenTable,
    persons: OpenTable,
    columns: Sequence[tuple[ReleasedColumn, str]],
    secrets: Sequence[str],
    k: int,
    notes: list[str],
    reveal: int,
) -> Attack:
    released = _counted(release, [part for column, _ in columns for part in column.parts], secrets)
    names = [name for _, name in columns]
    known = _counted(persons, names)
    sizes, codes, read = _linked(columns, released, known, secrets, notes)
    learnt = dict(zip(secrets, codes, strict=True))
    others = [name for name in persons.columns if name not in names]
    shown = known
    if others and reveal and (sizes == 1).any():  # other known columns are only read to show persons
        shown = _counted(persons, [*names, *others])
    people = known.counts.sizes
    exposure = _exposure(sizes, people)
    return Attack(
        on=tuple(column.name for column, _ in columns),
        persons=known.counts.records,
        matched=exposure.total,
        unmatched=known.counts.records - exposure.total,
        singled_out=exposure.unique,
        k=k,
        below_k=exposure.below(k),
        smallest=exposure.smallest,
        learnt={name: int(people[codes >= 0].sum()) for name, codes in learnt.items()},
        notes=tuple(notes),
        conclusive=read and exposure.total > 0,
        exposure=exposure,
        revealed=_revealed(persons.columns, shown, known, sizes == 1, learnt, released, reveal),
    )


@dataclass(frozen=True)
class _Counted:
    counts: Counts
    domains: Mapping[str, Domain]


def _counted(table: OpenTable, columns: Sequence[str], sensitive: Sequence[str] = ()) -> _Counted:
    counts, domains = table.count(columns, sensitive)
    return _Counted(counts.in_memory(), domains)


def _sensitive(
    named: str | Sequence[str],
    knowledge: Knowledge,
    columns: Sequence[ReleasedColumn],
    available: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Return the requested sensitive columns or those of the policy, and notes on columns not released."""
    requested = [named] if isinstance(named, str) else list(named)
    known_parts = {part for column in columns for part in column.parts}
    if requested:
        check_asked(requested, available, kind="sensitive column", where="release", beside=known_parts)
    for name in requested:
        if name in known_parts:
            raise UsageError(
                f"{name!r} is both known and sensitive: nothing could be learnt. Leave it out of one."
            )
    if requested or knowledge.policy is None:
        return requested, []
    policy_names = [name for name in knowledge.policy.roles.sensitive if name not in known_parts]
    missing = [
        f"{name!r} is not in the release, so nothing is learnt of it there."
        for name in policy_names
        if name not in available
    ]
    return [name for name in policy_names if name in available], missing


def _linked(
    columns: Sequence[tuple[ReleasedColumn, str]],
    released: _Counted,
    persons: _Counted,
    secrets: Sequence[str],
    notes: list[str],
) -> tuple[IntArray, IntArray, bool]:
    """Match every known combination; also return whether some value of each column could be read.

    Adds notes on values that could not be read.
    """
    labels, compatible, read = [], [], []
    index = 0
    for column, name in columns:
        codes, label_texts = column.codes(released.counts, released.domains, index)
        index += len(column.parts)
        labels.append(codes)
        compatibility, is_read = match_column(column, label_texts, persons.domains[name].texts, notes)
        compatible.append(compatibility)
        read.append(is_read)
    only = [_only(released.counts, name, released.domains[name]) for name in secrets]
    values = np.stack([persons.counts.codes(position) for position in range(len(columns))])
    codes = np.array(only, np.int64).reshape(len(secrets), len(released.counts))
    return *link(np.stack(labels), released.counts.sizes, codes, values, compatible), all(read)


def _only(counts: Counts, name: str, domain: Domain) -> IntArray:
    """Return the sensitive code of each combination; `_SEVERAL` for several or unknown values."""
    entries = counts.sensitive[name]
    only_codes = np.full(len(counts), _SEVERAL)
    single = np.bincount(entries.rows, minlength=len(counts))[entries.rows] == 1
    has_value = np.array([text is not None for text in domain.texts])[entries.codes]
    only_codes[entries.rows[single & has_value]] = entries.codes[single & has_value]
    return only_codes


def _exposure(sizes: IntArray, people: IntArray) -> Exposure:
    """Count the persons by the size of their match set; persons without a match are left out."""
    inside = sizes > 0
    distinct_sizes, size_index = np.unique(sizes[inside], return_inverse=True)
    persons = np.bincount(size_index, people[inside], len(distinct_sizes)).astype(np.int64)
    return Exposure(tuple(distinct_sizes.tolist()), tuple(persons.tolist()))


def _revealed(
    columns: Sequence[str],
    whole: _Counted,
    known_persons: _Counted,
    singled_out: BoolArray,
    codes: Mapping[str, IntArray],
    released: _Counted,
    most: int,
) -> tuple[Person, ...]:
    """Return some singled-out persons: the whole row of known values, and what is learnt."""
    if not (most and singled_out.any()):
        return ()
    joined = range(len(known_persons.domains))
    both = [
        np.concatenate((known_persons.counts.codes(index), whole.counts.codes(index))) for index in joined
    ]
    match = numbered(packed(both))[len(singled_out) :]  # the first are distinct, so numbers are indexes
    persons: list[Person] = []
    for row in np.flatnonzero(singled_out[match])[:most].tolist():
        known = {
            name: domain.texts[int(whole.counts.codes(index)[row])]
            for index, (name, domain) in enumerate(whole.domains.items())
        }
        learnt_codes = {name: int(each[match[row]]) for name, each in codes.items()}
        learnt = {
            name: released.domains[name].texts[code] or "" for name, code in learnt_codes.items() if code >= 0
        }
        person = Person({name: known[name] for name in columns}, learnt)
        persons += [person] * int(whole.counts.sizes[row])
    return tuple(persons[:most])
