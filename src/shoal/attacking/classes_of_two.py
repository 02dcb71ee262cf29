"""Classes of two releases: how many records can be in a class of one and in a class of the other.

A pair of classes can have records in common when their labels are compatible in every quasi-identifier. What
is released unchanged in both tells records apart: a pair has at most the lesser count of each such value.
What no class of the other release can account for is not in it, and is a part of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.attacking.covering import covering, settled
from shoal.attacking.meaning import Meaning
from shoal.attacking.released import Knowledge, Shown, shown
from shoal.attacking.values import Values
from shoal.core.arrays import IntArray
from shoal.core.contracts import Engine
from shoal.core.counts import Domain, numbered, packed
from shoal.core.linking import Compatible, joined
from shoal.core.schema import Role
from shoal.errors import DataError, PolicyError
from shoal.policy import Policy
from shoal.spreadsheet import plain_cells

Pair = tuple[Any, Any]
Text = str | None


@dataclass(frozen=True)
class _Side:
    """The classes of one release."""

    codes: list[IntArray]  # per quasi-identifier in common: (classes,)
    looks: list[list[Meaning]]  # what each code covers
    texts: list[list[tuple[Text, ...]]]  # what each code is released as
    extra: bool  # it has quasi-identifiers that the other lacks
    of: IntArray  # (rows,): the class of each row
    links: list[tuple[IntArray, Domain]]  # (rows,): what is released unchanged
    sizes: IntArray  # (rows,)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.of.max()) + 1


def estimated(
    engine: Engine, releases: Pair, told: tuple[Knowledge, Knowledge], k: int
) -> tuple[int, int, int, bool]:
    """Return the least records that a pair can have, the pairs that have some, and the records below k.

    The last tells whether no pair can have fewer, as where both show the same classes.
    """
    tables = [engine.open(release) for release in releases]
    available = [engine.columns(table) for table in tables]
    policies = [one.policy for one in told if one.policy is not None]
    quasi = list(dict.fromkeys(name for policy in policies for name in policy.roles.quasi_identifiers))
    found = [
        [shown(name, one, columns) for name in quasi] for one, columns in zip(told, available, strict=True)
    ]
    common = [place for place in range(len(quasi)) if found[0][place] and found[1][place]]
    if not common:
        message = (
            "The releases have no quasi-identifier of the policies in common. Are they of the same table?"
        )
        raise PolicyError(message)
    links = _links(policies, available, {part for side in found for one in side if one for part in one.parts})
    new, old = (
        _side(
            engine,
            table,
            [own[place] for place in common],
            [own[p] for p in range(len(quasi)) if p not in common],
            links,
        )
        for table, own in zip(tables, found, strict=True)
    )
    ids = _common_codes(new, old)
    if not (new.extra or old.extra) and set(_released(new)) == set(_released(old)):
        return *_same(new, old, ids, k), True
    return *_pairs([quasi[place] for place in common], new, old, ids, k), False


def _links(policies: Sequence[Policy], available: Sequence[Sequence[str]], taken: set[str]) -> list[str]:
    """Name the columns that both releases hold unchanged."""
    unchanged = (Role.SENSITIVE, Role.OTHER)
    return [
        name
        for name in available[0]
        if name in available[1]
        and name not in taken
        and all(name in policy.columns and policy.columns[name].role in unchanged for policy in policies)
    ]


def _side(
    engine: Engine,
    table: Any,
    common: Sequence[Shown | None],
    others: Sequence[Shown | None],
    links: Sequence[str],
) -> _Side:
    columns = [one for one in (*common, *others) if one is not None]
    parts = [part for one in columns for part in one.parts]
    counts, domains = engine.count(table, [*parts, *links])
    if not len(counts):
        message = "A release has no rows. Give one that has records."
        raise DataError(message)
    counts = counts.near()
    told = {part: one.reader.written for one in columns for part in one.parts}
    domains = {name: _plain(domain, told.get(name, ())) for name, domain in domains.items()}
    of = numbered(packed([counts.codes(place) for place in range(len(parts))]))
    first = np.unique(of, return_index=True)[1]
    codes, looks, texts = [], [], []
    place = 0
    for one in columns[: len(common)]:
        own, released = one.codes(counts, domains, place)
        codes.append(own[first])
        looks.append(one.meanings(released))
        texts.append(released)
        place += len(one.parts)
    values = [(counts.codes(len(parts) + n), domains[name]) for n, name in enumerate(links)]
    return _Side(codes, looks, texts, len(columns) > len(common), of, values, counts.sizes)


def _plain(domain: Domain, told: Collection[str]) -> Domain:
    """Write values as they were before they were made safe for a spreadsheet: one release alone may be."""
    return replace(domain, texts=tuple(plain_cells(domain.texts, told)))


def _common_codes(new: _Side, old: _Side) -> tuple[IntArray, IntArray]:
    """Return numbers of what is released unchanged, one for what is equal in both."""
    if not new.links:
        return np.zeros(len(new.of), np.int64), np.zeros(len(old.of), np.int64)
    both = []
    for (own, domain), (other, there) in zip(new.links, old.links, strict=True):
        codes: dict[Text, int] = {}
        maps = [np.array([codes.setdefault(text, len(codes)) for text in d.texts]) for d in (domain, there)]
        both.append(np.concatenate((maps[0][own], maps[1][other])))
    ids = numbered(packed(both))
    return ids[: len(new.of)], ids[len(new.of) :]


def _released(side: _Side) -> list[tuple[tuple[Text, ...], ...]]:
    """Return what each class looks like."""
    pairs = zip(side.codes, side.texts, strict=True)
    return list(zip(*[[texts[code] for code in codes.tolist()] for codes, texts in pairs], strict=True))


def _same(new: _Side, old: _Side, ids: tuple[IntArray, IntArray], k: int) -> tuple[int, int, int]:
    """Compare class with class, where both releases show the same ones."""
    looks: dict[object, int] = {}
    tables = []
    for side, own in zip((new, old), ids, strict=True):
        classes = np.array([looks.setdefault(look, len(looks)) for look in _released(side)])
        tables.append((classes[side.of], own, side.sizes))
    keys = numbered(packed([np.concatenate([table[n] for table in tables]) for n in (0, 1)]))
    size, cut = int(keys.max()) + 1, len(new.of)
    mine, other = (
        np.bincount(part, table[2], size)
        for part, table in zip((keys[:cut], keys[cut:]), tables, strict=True)
    )
    both = np.minimum(mine, other)
    of = np.empty(size, np.int64)
    of[keys] = np.concatenate([table[0] for table in tables])
    return _told([np.bincount(of, part).astype(np.int64) for part in (both, mine - both, other - both)], k)


def _told(parts: Sequence[IntArray], k: int) -> tuple[int, int, int]:
    """Return the least of some numbers of records, how many there are, and the records below k."""
    records = np.concatenate(parts)
    records = records[records > 0]
    least = int(records.min()) if len(records) else 0
    return least, len(records), int(records[records < k].sum())


def _pairs(
    names: Sequence[str], new: _Side, old: _Side, ids: tuple[IntArray, IntArray], k: int
) -> tuple[int, int, int]:
    """Walk all pairs of classes whose labels are compatible."""
    from shoal.core.linking_kernels import overlap

    columns = []
    for name, mine, other in zip(names, new.looks, old.looks, strict=True):
        looks = (settled(one, Values.of(two), rule=True)[0] for one, two in ((mine, other), (other, mine)))
        ours, theirs = looks
        columns.append(covering(name, theirs, Values.of(ours)))
    released, known = list(old.codes), list(new.codes)
    if old.extra:  # classes that look alike here are told apart by what covers everything
        number = old.classes
        one = np.zeros(1, np.int64)
        columns.append(
            Compatible(np.ones(number, np.bool_), np.ones(1, np.bool_), np.append(one, one), one[:0])
        )
        released.append(np.arange(number))
        known.append(np.zeros(new.classes, np.int64))
    totals = np.bincount(old.of, old.sizes).astype(np.int64)
    both = joined(np.stack(released), np.stack(known), columns, totals)
    sides = _grouped(new, ids[0], both.rows), _grouped(old, ids[1], both.released)
    seen = [np.zeros(len(counts), np.int64) for _, _, counts in sides]
    least, pairs, records = overlap(
        both.known, both.fresh, both.tree, both.lists, *sides[0], *sides[1], k, *seen
    )
    rest = _told([_left(*side, met) for side, met in zip(sides, seen, strict=True)], k)
    least = min(filter(None, (int(least), rest[0])), default=0)
    return least, int(pairs) + rest[1], int(records) + rest[2]


def _left(starts: IntArray, _: IntArray, counts: IntArray, seen: IntArray) -> IntArray:
    """Return how many records of each class are not in the other release, at least."""
    before = np.append(0, np.cumsum(np.maximum(0, counts - seen)))
    left: IntArray = before[starts[1:]] - before[starts[:-1]]
    return left


def _grouped(side: _Side, ids: IntArray, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Lay what links records out by class, in an order of classes."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    of = place[side.of]
    rows = np.lexsort((ids, of))
    starts = np.append(0, np.cumsum(np.bincount(of, minlength=len(order)))).astype(np.int64)
    return starts, ids[rows], side.sizes[rows]
