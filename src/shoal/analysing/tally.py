"""Tally: the columns of one table, counted together once, from which columns and pairs are read off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shoal.analysing.labels import Text, label_of_ends
from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Engine
from shoal.core.counts import Counts
from shoal.spreadsheet import plain_cells


@dataclass(frozen=True)
class Tally:
    """The combinations of some columns of a table; a column may be released as two, the ends of bands."""

    counts: Counts = field(repr=False)
    places: Mapping[str, tuple[int, ...]]  # of each column, its fields
    labels: Mapping[str, tuple[Text, ...]]  # of each column, the text of each code
    joined: Mapping[str, IntArray]  # of a column that is two, the code of each pair of ends
    blanks: Mapping[str, int]  # of some columns, the code of cells that are empty because of suppression

    @property
    def records(self) -> int:
        """All records."""
        return self.counts.records

    def without_blanks(self, blanks: Mapping[str, int]) -> Tally:
        """Return the same counts, where empty cells of some columns are no label."""
        return replace(self, blanks=blanks)

    def read(self, names: Sequence[str], most: int | None = None) -> tuple[list[IntArray], IntArray]:
        """Return the codes of some columns and the records that have them, without blanks.

        With `most`, combinations that are in an engine come as a sample of so many.
        """
        if self.counts.held:
            codes, sizes = [self._held[name] for name in names], self.counts.sizes
        else:
            places = [place for name in names for place in self.places[name]]
            near = self.counts.project(places)
            near = near.near() if near.held or most is None else near.sample(most)
            sizes, codes, at = near.sizes, [], 0
            for name in names:
                codes.append(self._codes(near, name, range(at, at + len(self.places[name]))))
                at += len(self.places[name])
        told: BoolArray | None = None
        for name, own in zip(names, codes, strict=True):
            if name in self.blanks:
                here = own != self.blanks[name]
                told = here if told is None else told & here
        if told is None or told.all():
            return codes, sizes
        return [own[told] for own in codes], sizes[told]

    def totals(self, name: str) -> IntArray:
        """Count the records of each label of a column; none of blanks."""
        (codes,), sizes = self.read([name])
        return np.bincount(codes, sizes, len(self.labels[name])).astype(np.int64)

    @cached_property
    def _held(self) -> dict[str, IntArray]:
        return {name: self._codes(self.counts, name, places) for name, places in self.places.items()}

    def _codes(self, counts: Counts, name: str, places: Sequence[int]) -> IntArray:
        if name not in self.joined:
            return counts.codes(places[0])
        width = self.joined[name].shape[1]
        found: IntArray = self.joined[name].reshape(-1)[
            counts.codes(places[0]) * width + counts.codes(places[1])
        ]
        return found


def tallied(
    engine: Engine, table: Any, columns: Mapping[str, Sequence[str]], before: Tally | None = None
) -> Tally:
    """Count columns of an open table; each is told by one column of the table, or by two.

    Of a release, cells are read as they were before they were made safe for a spreadsheet, unless the table
    that was counted before has them so.
    """
    there = list(dict.fromkeys(name for own in columns.values() for name in own))
    counts, domains = engine.count(table, there)
    places = {name: tuple(map(there.index, own)) for name, own in columns.items()}
    labels, joined = {}, {}
    for name, own in columns.items():
        told = None if before is None else before.labels[name]
        texts = [
            domains[one].texts if told is None else tuple(plain_cells(domains[one].texts, told))
            for one in own
        ]
        if len(own) == 1:
            labels[name] = texts[0]
        else:
            labels[name], joined[name] = _bands(counts, places[name], texts)
    return Tally(counts, places, labels, joined, {})


def _bands(
    counts: Counts, places: Sequence[int], ends: Sequence[tuple[Text, ...]]
) -> tuple[tuple[Text, ...], IntArray]:
    """Give each pair of ends that occurs a code and a label."""
    low, high = ends
    pairs = counts.project(places).near()
    code = np.full((len(low), len(high)), -1, np.int64)
    known: dict[Text, int] = {}
    for a, b in zip(pairs.codes(0).tolist(), pairs.codes(1).tolist(), strict=True):
        code[a, b] = known.setdefault(label_of_ends(low[a], high[b]), len(known))
    return tuple(known), code
