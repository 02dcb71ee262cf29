"""What became of pairs of columns: how much they tell of each other, and the table of one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.analysing.association import cramers_v, spearman
from shoal.analysing.columns import ColumnUtility
from shoal.analysing.labels import Text, in_order, positions
from shoal.analysing.sides import Sides
from shoal.analysing.tally import Tally
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.progress import Progress

MOST_ASSOCIATED = 15
_MOST_ASKED = 6  # where every pair is a query of an engine
MOST_VALUES = 10_000  # of a column whose associations are measured
MOST_CELLS = 24  # labels of a column that the table of a pair tells apart
_FEW_LABELS = 40  # of a column that is chosen for the table of a pair

Cells = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Association:
    """How much two columns tell of each other: Cramer's V, and Spearman's correlation of ordered ones."""

    columns: tuple[str, str]
    before: float
    after: float
    spearman_before: float | None
    spearman_after: float | None

    @property
    def change(self) -> float:
        """What Cramer's V gained."""
        return self.after - self.before


@dataclass(frozen=True)
class Contingency:
    """The records of each pair of labels of two columns, before and after.

    One more row and one more column hold the labels beyond the most frequent, and values without a label.
    """

    columns: tuple[str, str]
    rows: tuple[Text, ...]  # labels of the first column
    across: tuple[Text, ...]  # labels of the second
    before: Cells | None  # None where it cannot be told which values fall into a label
    after: Cells


def associations_of(
    sides: Sides, columns: Sequence[ColumnUtility], progress: Progress
) -> tuple[Association, ...]:
    """Measure every pair of columns that have more than one value, and not too many."""
    most = MOST_ASSOCIATED if all(tally.counts.held for tally in sides.both) else _MOST_ASKED
    names = [one.column for one in columns if 1 < one.values <= MOST_VALUES][:most]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    orders = [
        {name: positions(tally.labels[name], sides.unknown[name]) for name in names} for tally in sides.both
    ]
    found = []
    for done, pair in enumerate(pairs):
        progress("compare", done, len(pairs))
        before, after = (
            _measured(tally, pair, order) for tally, order in zip(sides.both, orders, strict=True)
        )
        found.append(Association(pair, before[0], after[0], before[1], after[1]))
    return tuple(found)


def _measured(
    tally: Tally, pair: tuple[str, str], orders: dict[str, FloatArray | None]
) -> tuple[float, float | None]:
    (a, b), sizes = tally.read(pair)
    x, y = orders[pair[0]], orders[pair[1]]
    return cramers_v(a, b, sizes), None if x is None or y is None else spearman(a, b, sizes, x, y)


def strongest(
    columns: Sequence[ColumnUtility], associations: Sequence[Association]
) -> tuple[str, str] | None:
    """Choose the pair that tells most of each other before, among columns of few labels after."""
    few = {one.column for one in columns if 1 < one.labels <= _FEW_LABELS}
    able = [one for one in associations if few.issuperset(one.columns)]
    return max(able, key=lambda one: one.before).columns if able else None


def contingency_of(sides: Sides, pair: tuple[str, str]) -> Contingency:
    """Count the records of each pair of labels."""
    kept = [_most(sides, name) for name in pair]
    (a, b), sizes = sides.after.read(pair)
    after = _cells(kept, a, b, sizes)
    before = None
    first, second = (sides.places[name] for name in pair)
    if first is not None and second is not None:
        (a, b), sizes = sides.before.read(pair)
        before = _cells(kept, first[a], second[b], sizes)
    rows, across = (
        tuple(sides.after.labels[name][code] for code in codes)
        for name, codes in zip(pair, kept, strict=True)
    )
    return Contingency(pair, rows, across, before, after)


def _most(sides: Sides, name: str) -> list[int]:
    """Return the most frequent labels of a column, in their order."""
    _, after = sides.totals[name]
    there = np.flatnonzero(after)
    most = there[np.argsort(-after[there], kind="stable")][:MOST_CELLS]
    return sorted(most.tolist(), key=in_order(sides.after.labels[name], sides.unknown[name]))


def _cells(kept: Sequence[Sequence[int]], a: IntArray, b: IntArray, sizes: IntArray) -> Cells:
    """Add up the records of each pair of the labels that are kept, and of one that is all others."""
    places = []
    for codes, own in zip(kept, (a, b), strict=True):
        place = np.full(max(int(own.max(initial=0)), *codes) + 2, len(codes), np.int64)
        place[list(codes)] = np.arange(len(codes))
        places.append(place[own])  # -1, no label, is the last
    width = len(kept[1]) + 1
    cells = np.bincount(places[0] * width + places[1], sizes, (len(kept[0]) + 1) * width)
    return tuple(map(tuple, cells.astype(np.int64).reshape(-1, width).tolist()))
