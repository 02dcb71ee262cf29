"""Combinations of few columns: which values, seen together, are rare, and what to blank so that none is.

A cell that is blank shows nothing: a combination with one is not counted. Lemma: blanking only ever takes
records away from a combination. So a rare one stays rare until each of its records has lost one of its cells,
and blanking in all of them at once blanks in no record that could have been spared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.counts import numbered
from shoal.core.lattice import Node
from shoal.core.lowering import keys_at
from shoal.core.problem import Problem

Columns = tuple[int, ...]

_FEW = 1 << 14  # cells of a table in which what is alike is counted, or as many as there are rows
_HELD = 10_000_000  # sets of columns times rows that are kept in memory between rounds


@dataclass(frozen=True)
class Shown:
    """What can be seen of some records: rows that are alike, with how many records each stands for."""

    codes: IntArray  # (columns, rows): numbers from 0 for the values of each column
    visible: BoolArray  # (columns, rows)
    sizes: IntArray  # (rows,)


@dataclass(frozen=True)
class Rare:
    """The values of some columns that fewer than k records show together."""

    columns: Columns
    combinations: int
    rows: BoolArray  # (rows,): those that show one of them


def shown_at(problem: Problem, node: Node) -> tuple[Shown, IntArray]:
    """Return what a node shows of the records, and the row of each combination."""
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    of = numbered(keys_at(problem, levels))
    _, first = np.unique(of, return_index=True)
    codes = [
        hierarchy.groups(level)[problem.counts.codes(column)[first]]
        for column, (hierarchy, level) in enumerate(zip(problem.hierarchies, node, strict=True))
    ]
    visible = [
        own != hierarchy.null if level == 0 and hierarchy.null is not None else np.ones(len(own), np.bool_)
        for own, hierarchy, level in zip(codes, problem.hierarchies, node, strict=True)
    ]
    sizes = np.bincount(of, problem.counts.sizes).astype(np.int64)
    return Shown(np.stack(codes), np.stack(visible), sizes), of


def rare(shown: Shown, columns: Columns, k: int) -> Rare:
    """Find what fewer than k records show in some columns together."""
    tally = _Tally(shown, columns, shown.visible)
    few = (tally.sizes > 0) & (tally.sizes < k)
    return Rare(columns, int(few.sum()), tally.rare(k))


def blank_rare(
    shown: Shown, tested: Sequence[Columns], k: int, order: Sequence[int], *, check: Callable[[int], None]
) -> BoolArray:
    """Blank cells (columns, rows) until no combination of tested columns is rare.

    In rounds, every row that shows rare combinations loses the cell that is in most of them; of several the
    one whose column comes first in `order`. `check` is told the sets counted after each round and may raise.
    """
    visible = shown.visible.copy()
    places = np.array(order)
    hold = len(tested) * len(shown.sizes) <= _HELD
    held = [_Tally(shown, columns, visible) for columns in tested] if hold else []
    while True:
        hits = np.zeros(visible.shape, np.int64)
        for tally in held or (_Tally(shown, columns, visible) for columns in tested):
            hits[list(tally.columns)] += tally.rare(k)
        check(len(tested))
        rows = np.flatnonzero(hits.any(axis=0))
        if not len(rows):
            return shown.visible & ~visible
        most = places[np.argmax(hits[np.ix_(places, rows)], axis=0)]
        visible[most, rows] = False
        lost = [rows[most == column] for column in range(len(places))]
        for tally in held:
            tally.lose(np.concatenate([lost[column] for column in tally.columns]))


class _Tally:
    """How many records show each combination of some columns, kept up while rows lose cells."""

    def __init__(self, shown: Shown, columns: Columns, visible: BoolArray) -> None:
        self.columns = columns
        self._own = shown.sizes
        self._seen: BoolArray = np.logical_and.reduce(visible[list(columns)])  # (rows,)
        self._key, cells = _keys(shown.codes[list(columns)])  # (rows,)
        self.sizes = np.bincount(self._key, np.where(self._seen, self._own, 0), cells).astype(np.int64)

    def rare(self, k: int) -> BoolArray:
        """Mark the rows that show a combination of fewer than k records."""
        rows: BoolArray = self._seen & (self.sizes < k)[self._key]
        return rows

    def lose(self, rows: IntArray) -> None:
        """Take away rows, each named once, that no longer show all columns."""
        rows = rows[self._seen[rows]]
        np.subtract.at(self.sizes, self._key[rows], self._own[rows])
        self._seen[rows] = False


def _keys(codes: IntArray) -> tuple[IntArray, int]:
    """Give rows (columns, rows) that are alike the same number; return also how many there may be."""
    widths = (codes.max(axis=1) + 1).tolist()
    if prod(widths) <= max(_FEW, codes.shape[1]):
        key = codes[0]
        for own, width in zip(codes[1:], widths[1:], strict=True):
            key = key * width + own
        return key, prod(widths)
    key = codes[0]
    for own, width in zip(codes[1:], widths[1:], strict=True):
        # Numbers of rows times codes of a column: both are below 2 ** 31, so this fits a word.
        key = numbered((key * width + own).reshape(1, -1))
    return key, int(key.max()) + 1
