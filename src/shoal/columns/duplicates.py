"""Duplicates: pairs of columns where one determines the other, such as date and month, or code and name.

Using both as quasi-identifiers would count the same information twice. One of them is removed, because
releasing it unchanged would reveal the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from shoal.columns.kinds import Kind
from shoal.columns.names import is_named_as
from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Counts

_EVIDENCE = 20.0  # minimum -ln of the probability of agreement by chance: about ten thousand pairs are tried
_ROUNDING = 1e-6  # tolerance of the evidence if the agreement was computed in another way
_MUCH = 1 / 3  # a coarser column with more than this share of the finer one's information can replace it
_SEVERAL = 2
_AT_A_MOMENT = 5  # with fewer records per date on average, the records of a date may belong to one event
_OF_EVENTS = (Kind.CATEGORY, Kind.OUTCOME, Kind.PLACE, Kind.PERSONAL, Kind.HEALTH)
_FIRST = 1000  # number of combinations that are checked first; they exclude most pairs


@dataclass(frozen=True)
class Dependency:
    """The value of one column determines that of another column; with `both`, the reverse is also true."""

    finer: str
    coarser: str
    both: bool
    share: float = 1.0  # share of the finer column's information that the coarser column has
    values: int = 2  # number of distinct values of the coarser column


class ColumnSizes(NamedTuple):
    """Properties of a column that are known without the combinations."""

    values: int
    agreement: float  # the probability that two records, drawn with replacement, have the same value


def dependencies(counts: Counts, names: Sequence[str]) -> list[Dependency]:
    """Return the pairs of columns where one determines the other and chance does not explain it."""
    counts = counts.in_memory()
    codes = [np.unique(counts.codes(column), return_inverse=True)[1] for column in range(len(names))]
    sizes = [np.bincount(column, counts.sizes) for column in codes]
    tested = [column for column, of_column in enumerate(sizes) if len(of_column) > 1]
    edges = {
        (finer, coarser)
        for finer in tested
        for coarser in tested
        if finer != coarser
        and len(sizes[coarser]) <= len(sizes[finer])
        and _is_surprising(sizes[finer], sizes[coarser], counts.records)
        and _determines(codes[finer], codes[coarser])
    }
    information = [_entropy(of_column) for of_column in sizes]
    return [
        Dependency(
            finer=names[finer],
            coarser=names[coarser],
            both=(coarser, finer) in edges,
            share=information[coarser] / information[finer],
            values=len(sizes[coarser]),
        )
        for finer, coarser in sorted(edges)
        if finer < coarser or (coarser, finer) not in edges
    ]


def without_events(
    pairs: Sequence[Dependency], kinds: Mapping[str, Kind], records_per_value: Mapping[str, float]
) -> list[Dependency]:
    """Leave out pairs of the date of an event and a category of this event, such as its cause.

    If few records have the same date, their categories are equal because they belong to one event. The
    category does not reveal the date. The date reveals the category only to people who know the event.
    """
    return [
        pair
        for pair in pairs
        if pair.both
        or kinds[pair.finer] is not Kind.DATE
        or kinds[pair.coarser] not in _OF_EVENTS
        or is_named_as(pair.coarser, "time")
        or records_per_value[pair.finer] >= _AT_A_MOMENT
    ]


def possible_dependencies(sampled: Counts, columns: Sequence[ColumnSizes], records: int) -> list[int]:
    """Return the columns that may be in a pair of `dependencies`, given the counts of a sample.

    Records that contradict a pair in a sample also contradict it in the table.
    """
    codes = [sampled.in_memory().codes(column) for column in range(len(columns))]
    possible: set[int] = set()
    for finer, of_finer in enumerate(columns):
        for coarser, of_coarser in enumerate(columns):
            if (
                finer != coarser
                and 1 < of_coarser.values <= of_finer.values
                and _evidence(of_finer.values, of_coarser.agreement, records) >= _EVIDENCE - _ROUNDING
                and _determines(codes[finer], codes[coarser])
            ):
                possible |= {finer, coarser}
    return sorted(possible)


def _is_surprising(finer: IntArray, coarser: IntArray, records: int) -> bool:
    """Return whether records that agree in one column hardly agree in the other by chance."""
    agreement = float(((coarser / records) ** 2).sum())
    return _evidence(len(finer), agreement, records) >= _EVIDENCE


def _evidence(values: int, agreement: float, records: int) -> float:
    """Return -ln of the probability that records that agree in one column agree in another by chance."""
    return (records - values) * -log(agreement) if agreement < 1 else 0.0


def _determines(finer: IntArray, coarser: IntArray) -> bool:
    """Return whether records with equal values of one column always have equal values of the other."""
    first = np.empty(int(finer.max()) + 1, np.int64)
    for part in (slice(_FIRST), slice(None)):
        first[finer[part]] = coarser[part]
        if (first[finer[part]] != coarser[part]).any():
            return False
    return True


def _entropy(sizes: IntArray) -> float:
    shares = sizes / sizes.sum()
    return float(-(shares * np.log2(shares)).sum())


def redundant(
    pairs: Sequence[Dependency], readable: Collection[str], kept: Collection[str] = ()
) -> Mapping[str, Dependency]:
    """Return the columns that need not be counted, with the reason. A column in `kept` is never returned.

    If each of two columns determines the other, the readable column is kept. Otherwise, the coarser column is
    kept instead of the finer one if it has more than two values and a third of the information. If several
    coarser columns have less, such as one column for each value of the finer one, they are removed. A single
    such column is kept, because it may keep its values in a release that generalizes the finer column.
    """
    slight = Counter(pair.finer for pair in pairs if _is_slight(pair))
    drop: dict[str, Dependency] = {}
    for pair in sorted(pairs, key=lambda pair: (not pair.both, -pair.share)):
        if pair.finer in drop or pair.coarser in drop or (_is_slight(pair) and slight[pair.finer] < _SEVERAL):
            continue
        order = (pair.finer, pair.coarser)
        if _is_slight(pair) or (pair.both and (pair.finer in readable or pair.coarser not in readable)):
            order = (pair.coarser, pair.finer)
        name = next((name for name in order if name not in kept), None)
        if name is not None:
            drop[name] = pair
    return drop


def _is_slight(pair: Dependency) -> bool:
    """Return whether the coarser column has little of the finer column's information."""
    return not pair.both and (pair.values <= _SEVERAL or pair.share < _MUCH)
