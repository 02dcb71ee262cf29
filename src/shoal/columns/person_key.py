"""Person keys: a column whose repeated values are the rows of one person each, so k must count persons.

A person has the same sex and date of birth in every row. A ward, a postcode or a department is repeated, too,
but with people of both sexes. So a repeated key is a key of persons if columns that stay the same for a
person's life are constant within its groups more often than chance explains.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from math import inf, log
from typing import Any

from shoal.columns.evidence import (
    written_as,
    written_as_amounts,
    written_as_key,
    written_as_numbered_key,
    written_as_opaque_key,
)
from shoal.columns.identifiers import IDENTIFIERS, Finding, looks_like
from shoal.columns.kinds import ColumnFacts, Kind, classify
from shoal.columns.names import is_named_as, is_person, weak_word_of, words_of
from shoal.columns.values import spread
from shoal.core.contracts import Engine, KeyGroups
from shoal.errors import DataError
from shoal.wording import plural

_MOST_KEYS = 4  # maximum number of keys that are tried, by one query
_MOST_COLUMNS = 12  # maximum number of columns that are compared within the groups of a key
_CONSTANT = 0.95  # required share of the repeated groups; the rest may be mistakes in the data
_CONTRADICTED = 0.8  # groups are not persons if a smaller share of them has one sex
_EVIDENCE = 10.0  # -ln of the probability: less than 1 in 20,000 by chance
_WEAK_EVIDENCE = 3.0  # 1 in 20
_FEWEST = 3  # minimum number of groups; two may be yes and no
_FEWEST_BALANCED = 10  # minimum number of groups of one size, as in a study with as many visits per person
_FEWEST_REMOVED = 20  # minimum number of groups of a column that a policy removes and whose name says nothing
_MOST_ROWS_OF_PERSON = 50  # maximum average size of groups that may be persons
_REPEATED_NAMES = 0.3  # minimum share of names with several rows, if rows belong to the same persons
_ANY_NUMBER = re.compile(r"(?i)n[or]\.?|num(?:ber|[eé]ro)?\.?|n[uú]mero|nummer")  # or a count, or a gas
_NUMBERS_OF_PERSONS = ("F", "G", "H", "I")  # e-mail, social security, medical record, health plan
_VALUES_OF_PERSONS = ("D", *_NUMBERS_OF_PERSONS, "J", "O")  # and telephone, account, IP address


class Evidence(IntEnum):
    """What suggests that a column is a key of persons; the strongest first."""

    PERSON_KEY = 0  # its name is that of a key of persons
    ID = 1  # its name is that of a key, perhaps not of persons
    IDENTIFIER = 2  # it is an identifier of persons, or its values are UUIDs or hashes
    PERSON_NAME = 3  # it holds names of persons, which several persons may share
    NUMBERED = 4  # its values are a common prefix and numbers, such as S0001
    NUMBER = 5  # its name means any number, such as "no"
    ROLE = 6  # a policy removes it, and its values are written like keys
    SHAPE = 7  # its values are written like keys


@dataclass(frozen=True)
class PersonKey:
    """Columns that distinguish persons who have several rows; uncertain if the evidence is weak."""

    columns: tuple[str, ...]
    persons: int
    records: int
    certain: bool = True

    @property
    def column(self) -> str:
        """The column, or the first of several."""
        return self.columns[0]

    def __str__(self) -> str:
        """Describe the number of rows and the number of persons."""
        rows, persons = plural(self.records, "row"), plural(self.persons, "person")
        names = " and ".join(map(repr, self.columns))
        column = f"column{'s' if len(self.columns) > 1 else ''} {names}"
        return f"{rows} {'seem to' if self.certain else 'may'} be of {persons} ({column})"

    @property
    def advice(self) -> str:
        """The advice on what to add to the policy."""
        if len(self.columns) > 1:
            return "add a column that numbers the persons, and name it as the unit of k-anonymity"
        where = "('Persons by' in the studio)"
        return f"add unit: {self.column} to k-anonymity {where}, so that it counts persons"

    def to_dict(self) -> dict[str, Any]:
        """Return the key as plain values."""
        return {"column": self.column, "persons": self.persons, "records": self.records}


def find_person_key(
    engine: Engine,
    table: Any,
    candidates: Mapping[str, Evidence],
    agreement: Mapping[str, float],
    records: int,
) -> PersonKey | None:
    """Return the columns of an open table that distinguish persons, if persons have several rows.

    `agreement` maps compared columns to the probability that two records with a value have the same one. The
    table is read again only if there are candidates, and columns are compared only if one is repeated.
    """
    keys = sorted(candidates, key=candidates.__getitem__)[:_MOST_KEYS]
    varied = [name for name, chance in agreement.items() if chance < 1]
    compared = sorted(varied, key=lambda name: not (is_lifelong(name) or _names_the_person(name)))
    groups: Mapping[str, KeyGroups] = {}
    if keys:
        with suppress(DataError):  # a note must not cause a failure
            groups = engine.key_groups(table, keys, compared[:_MOST_COLUMNS])
    names = tuple(name for name in engine.columns(table) if _is_person_name(name))
    if len(names) > 1:  # a single one of several name columns is not a key
        groups = {key: group for key, group in groups.items() if key not in names}
    for certain, test in ((True, _are_persons), (False, _may_be_persons)):
        matches = [key for key in keys if key in groups and test(candidates[key], groups[key], agreement)]
        if matches:
            best = min(matches, key=lambda key: (candidates[key], groups[key].groups))
            return PersonKey((best,), groups[best].groups, records, certain)
    repeated = any(evidence is Evidence.PERSON_NAME for evidence in candidates.values())
    return _by_names(engine, table, names, records) if repeated and len(names) > 1 else None


def _by_names(engine: Engine, table: Any, names: tuple[str, ...], records: int) -> PersonKey | None:
    """Return first and last names together as a key, if a large enough share of them is repeated."""
    with suppress(DataError):
        counts, _ = engine.count(table, names[:_MOST_KEYS])
        if not counts.remote and len(counts) >= _FEWEST_BALANCED:
            repeated = int((counts.sizes > 1).sum())
            if repeated >= _REPEATED_NAMES * len(counts):
                return PersonKey(names, len(counts), records, certain=False)
    return None


def evidence_for(
    name: str,
    *,
    identifier: bool,
    finding: Finding | None = None,
    key_shaped: bool = False,
    opaque: bool = False,
    numbered: bool = False,
) -> Evidence | None:
    """Return what suggests that a column is a key of persons, by its name, its role and its values.

    A role alone is no evidence: a first policy also removes columns that repeat others, and rare values.

    >>> evidence_for("patient_id", identifier=False), evidence_for("last_name", identifier=True)
    (<Evidence.PERSON_KEY: 0>, <Evidence.PERSON_NAME: 3>)
    """
    if names_person_key(name):
        return Evidence.PERSON_KEY
    if is_named_as(name, "id"):
        return Evidence.NUMBER if _ANY_NUMBER.fullmatch(name.strip()) else Evidence.ID
    if _is_person_name(name):
        return Evidence.PERSON_NAME
    word = words_of(name)
    named = word is not None and word.kind != "text" and IDENTIFIERS[word.letter].direct
    named = named and (weak_word_of(name) is not None or words_of(name, weak=False) is not None)
    by_values = finding.identifier.letter if finding is not None and finding.by != "name" else None
    if opaque or named or by_values in _VALUES_OF_PERSONS:
        return Evidence.IDENTIFIER
    if numbered:
        return Evidence.NUMBERED
    if not key_shaped:
        return None
    return Evidence.ROLE if identifier else Evidence.SHAPE


def names_person_key(name: str) -> bool:
    """Return whether a name certainly means a key of persons.

    >>> [names_person_key(name) for name in ("subject_id", "PatientID", "Patientennummer", "id", "DeptID")]
    [True, True, True, False, False]
    """
    word = words_of(name, weak=False)
    return is_named_as(name, "person-key") or (word is not None and word.letter in _NUMBERS_OF_PERSONS)


def _is_person_name(name: str) -> bool:
    word = words_of(name)
    return word is not None and word.letter == "A"


def _names_the_person(name: str) -> bool:
    """Return whether a column is named as the name of the person that a record is about, not a doctor's."""
    word = words_of(name, weak=False)
    return is_person(name) or (word is not None and word.letter == "A")


def is_lifelong(name: str) -> bool:
    """Return whether a column's name means something that does not change during a person's life."""
    return is_named_as(name, "lifelong")


def _are_persons(evidence: Evidence, groups: KeyGroups, agreement: Mapping[str, float]) -> bool:
    """Return whether the groups of a key are persons; a vaguer name requires more evidence from columns."""
    if not groups.repeated or groups.groups < _FEWEST:
        return False
    if evidence is Evidence.PERSON_KEY:  # without evidence from columns: counting persons is stricter
        return True
    if _is_contradicted(groups):
        return False
    surprise = _surprises(groups, agreement)
    if evidence in (Evidence.ID, Evidence.NUMBER):
        balanced = groups.groups >= _FEWEST_BALANCED and groups.smallest == groups.largest
        return balanced or sum(surprise.values()) >= _EVIDENCE
    too_many_rows = groups.rows > _MOST_ROWS_OF_PERSON * groups.groups
    if too_many_rows and evidence in (Evidence.IDENTIFIER, Evidence.PERSON_NAME):
        return False
    if evidence is Evidence.IDENTIFIER:
        return sum(surprise.values()) >= _EVIDENCE
    lifelong = {name: value for name, value in surprise.items() if is_lifelong(name)}
    # Patients of one room have the same sex, too.
    half = len(surprise) > 1 and 2 * len(surprise) >= len(groups.constant)
    return sum(lifelong.values()) >= _EVIDENCE and (half or len(lifelong) > 1)


def _may_be_persons(evidence: Evidence, groups: KeyGroups, agreement: Mapping[str, float]) -> bool:
    """Return whether the name of a key, or columns that are constant within few groups, suggest persons."""
    if not groups.repeated or groups.groups < _FEWEST_BALANCED or _is_contradicted(groups):
        return False
    if groups.rows > _MOST_ROWS_OF_PERSON * groups.groups:
        return False
    if evidence is Evidence.IDENTIFIER and _has_several_names(groups):
        return False
    if evidence in (Evidence.ID, Evidence.IDENTIFIER, Evidence.NUMBERED):
        return True
    if evidence is Evidence.PERSON_NAME and groups.repeated >= _REPEATED_NAMES * groups.groups:
        return True
    surprise = _surprises(groups, agreement)
    if evidence is Evidence.ROLE and groups.groups >= _FEWEST_REMOVED:
        return sum(surprise.values()) >= _EVIDENCE
    lifelong = [value for name, value in surprise.items() if is_lifelong(name)]
    return sum(lifelong) >= (_EVIDENCE if len(lifelong) == 1 else _WEAK_EVIDENCE)


def _surprises(groups: KeyGroups, agreement: Mapping[str, float]) -> dict[str, float]:
    """Return, for each column that is constant within the groups, -ln of the probability by chance."""
    least = _CONSTANT * groups.compared
    constant = [name for name, number in groups.constant.items() if number >= least]
    return {name: _surprise(agreement[name], groups.compared) for name in constant}


def _is_contradicted(groups: KeyGroups) -> bool:
    """Return whether sex, birth or the like differ in more groups than mistakes in the data explain."""
    least = _CONTRADICTED * groups.compared
    return any(is_lifelong(name) and number < least for name, number in groups.constant.items())


def _has_several_names(groups: KeyGroups) -> bool:
    """Return whether the person's name differs within most groups: the key does not identify that person."""
    return any(
        _names_the_person(name) and 2 * number < groups.compared for name, number in groups.constant.items()
    )


def _surprise(chance: float, groups: int) -> float:
    """Return -ln of the probability that this number of groups of two or more rows is constant by chance."""
    return inf if chance <= 0 else -groups * log(chance)


_MOST_ROWS = 200  # maximum average number per key that its name does not reveal: a person seldom has more
NOT_KEYS = (Kind.DATE, Kind.AGE, Kind.PLACE, Kind.PERSONAL, Kind.INCOME, Kind.EMPTY)


def may_be_shaped(name: str, kind: Kind) -> bool:
    """Return whether values written as keys may be keys; keys from 2000 to 2099 also look like years."""
    if is_named_as(name, "weight"):  # people of one sex and race have the same weight in a survey
        return False
    return kind not in NOT_KEYS or (kind is Kind.DATE and not is_named_as(name, "time"))


def evidence_of_values(
    name: str, texts: Sequence[str | None], records: int, *, removed: bool = False
) -> Evidence | None:
    """Return what suggests that a column is a key, given its values; `removed`: a policy removes it."""
    known = [text for text in texts if text is not None]
    if not may_be_key(len(known), records):
        return None
    sampled = spread(known)
    finding = looks_like(name, sampled, records=records)
    shaped = written_as_key(sampled) and may_be_shaped(name, _kind_of(name, sampled, records, finding))
    opaque, numbered = written_as_opaque_key(sampled), written_as_numbered_key(known)
    removed = removed and not written_as_amounts(known)
    return evidence_for(
        name, identifier=removed, finding=finding, key_shaped=shaped, opaque=opaque, numbered=numbered
    )


def _kind_of(name: str, texts: Sequence[str], records: int, finding: Finding | None) -> Kind:
    written = written_as(name, texts, [1] * len(texts))
    return classify(ColumnFacts(name, texts, written, records, nearly_unique=False, finding=finding)).kind


def may_be_key(distinct: int, rows: int) -> bool:
    """Return whether a column with this many values may be a person key although its name does not say so."""
    return 1 < distinct < rows <= _MOST_ROWS * distinct
