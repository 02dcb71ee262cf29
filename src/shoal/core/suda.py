"""Special uniques: the minimal sets of columns on which a record is like no other, and what they score.

A minimal sample unique (MSU) of a record is a set of columns on which it is unique while it is on no proper
subset (Elliot, Manning and Ford 2002, "A computational algorithm for handling the special uniques problem").
The fewer columns tell a record apart, and the more such sets it has, the likelier it is that nobody else in
the population is like it.

The search goes depth first through sets of columns, as SUDA2 does (Manning, Haglin and Keane 2008, "A
recursive search algorithm for statistical disclosure assessment"), and splits the classes of a set by one
column more. A set is a bit mask; sets are visited in the order of their masks, so a subset comes before the
sets that hold it. A set on which a record is unique is minimal if the record is not unique without any one of
its columns, so a bit for each record and smaller set is all that need be held. Three lemmas prune:

- A record in a class of its own has no MSU in a set below: it would hold this one.
- A column that does not split a class is superfluous to its records in this set and in all that hold it:
  their classes are the same without the column. So such a class is dropped.
- Records with an equal twin have no MSU at all, so a class made of them alone is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts import Counts
from shoal.core.progress import Progress
from shoal.core.subsets import Columns
from shoal.errors import UsageError, interruptible

if TYPE_CHECKING:
    from shoal.core.suda_kernels import Found, Space, Table

Steps = Callable[[int, int], None]
Form = Literal["elliot", "arx", "ihsn"]

MOST_COLUMNS = 63  # the bits of a mask
MOST_SETS = 1 << 24  # that are looked at, at most
_BYTES = 1 << 28  # for a bit for each unique record and set; more records are searched part by part
MOST_SPREAD = 27  # columns up to which DIS-SUDA is defined: its published power ends there


@dataclass(frozen=True, eq=False)
class Suda:
    """The minimal sample uniques of a table, and what they score."""

    columns: int
    most: int  # columns of a set that was looked for
    records: int
    unique: int  # records that all columns together tell from every other
    paired: int  # records that they tell from every other but one
    masks: IntArray  # (sets,): the sets that are an MSU of some record, small ones first; bit i is column i
    set_records: IntArray  # (sets,): of how many records
    msus: IntArray  # (combinations,): how many MSUs its record has; 0 where there are several records
    scores: FloatArray  # (combinations,): their scores, added up
    weights: FloatArray  # (most + 1,): what an MSU of each size scores

    @cached_property
    def at_risk(self) -> int:
        """The records that have an MSU."""
        return int(np.count_nonzero(self.msus))

    @cached_property
    def sizes(self) -> IntArray:
        """The MSUs of each size (most + 1,), of all records together."""
        return np.bincount(_sizes(self.masks), self.set_records, self.most + 1).astype(np.int64)

    @cached_property
    def by_set(self) -> dict[Columns, int]:
        """The records of which a set of columns is an MSU, for every such set, small sets first."""
        return {
            _columns(mask): records
            for mask, records in zip(self.masks.tolist(), self.set_records.tolist(), strict=True)
        }

    @cached_property
    def column_contribution(self) -> FloatArray:
        """The share of the whole score that comes from MSUs with the column, for every column (columns,).

        An MSU counts for each of its columns, so the shares add up to more than 1.
        """
        shares = np.zeros(self.columns)
        total = float(self.sizes @ self.weights)
        if total == 0:
            return shares
        scores = self.set_records * self.weights[_sizes(self.masks)]
        for column in range(self.columns):
            shares[column] = scores[self.masks >> column & 1 == 1].sum() / total
        return shares

    def dis(self, fraction: float) -> float:
        """Return the probability that a record that matches one unique record is that person's.

        `fraction` is the part of the population that is in the table. This is the measure of data intrusion
        simulation (Skinner and Elliot 2002, "A measure of disclosure risk for microdata").
        """
        if not 0 < fraction <= 1:
            message = f"fraction must be above 0 and at most 1, got {fraction!r}."
            raise UsageError(message)
        if self.unique == 0:
            return 0.0
        return self.unique * fraction / (self.unique * fraction + self.paired * (1 - fraction))

    def dis_scores(self, fraction: float = 0.01) -> FloatArray:
        """Spread that probability over the unique records by their scores (combinations,): DIS-SUDA.

        The odds of a record are those of the whole, times its score to a power, over the harmonic mean of
        such powers (Elliot and Manning 2003, "Using DIS to modify the classification of special uniques"; the
        power is that of Elliot 2004, "Special uniques detection algorithm: user guide", as in sdcMicro and
        ARX). The power falls with the columns and is 0 at 28, where scores would no longer count. Records
        that are unique but have no MSU of at most so many columns as were looked for get 0.
        """
        if self.columns > MOST_SPREAD:
            message = (
                f"DIS-SUDA scores are defined for at most {MOST_SPREAD} columns, got {self.columns}. "
                "Name fewer columns, or use the scores as they are."
            )
            raise UsageError(message)
        whole, spread = self.dis(fraction), np.zeros(len(self.scores))
        some = self.scores > 0
        if not some.any() or whole == 0:
            return spread
        if whole == 1:
            spread[some] = 1
            return spread
        powers = self.scores[some] ** (1 + (8 - self.columns) / 20)
        factor = self.unique * (1 / whole - 1) / (1 / powers).sum()
        spread[some] = 1 / (1 + factor / powers)
        return spread


def suda(
    counts: Counts, most: int | None = None, *, form: Form = "elliot", progress: Progress | None = None
) -> Suda:
    """Find the MSUs of every record, of at most so many columns, and score them.

    A null is a value of its own. `form` is what an MSU of k of n columns scores, see `weights`.
    """
    columns = len(counts.fields)
    most = _checked(columns, most)
    counts = counts.near()
    order = np.argsort(counts.sizes > 1, kind="stable")
    alone = int(np.count_nonzero(counts.sizes == 1))
    weight = weights(columns, most, form)
    with interruptible():
        masks, records, numbers, scores = _search(counts, order, alone, weight, progress)
    ordered = _ordered(masks, columns)
    msus, aligned = np.zeros(len(counts), np.int64), np.zeros(len(counts))
    msus[order[:alone]], aligned[order[:alone]] = numbers, scores
    return Suda(
        columns=columns,
        most=most,
        records=counts.records,
        unique=alone,
        paired=2 * int(np.count_nonzero(counts.sizes == 2)),
        masks=masks[ordered],
        set_records=records[ordered],
        msus=msus,
        scores=aligned,
        weights=weight,
    )


def weights(columns: int, most: int, form: Form = "elliot") -> FloatArray:
    """Return what an MSU of each size from 0 to `most` scores; a smaller one scores more, or as much.

    - `elliot`: the product of (columns - i) for i from the size to `most`, at most columns - 1 (Elliot,
      Manning, Mayes, Gurd and Bane 2005, "SUDA: a program for detecting special uniques"). Where all sizes
      are looked for this is (columns - size)!, which is what sdcMicro scores by default. It is the default
      here because it is the published form, and where all sizes are looked for all tools agree on it.
    - `arx`: the product goes to `most` - 1, as in ARX. Scores are those of `elliot` over one number, the same
      MSUs; where `most` is columns - 1 or more, that number is 1.
    - `ihsn`: (2^(columns - size) - 1) size! (columns - size)! / columns!, what sdcMicro scores without
      `original_scores`: the ways to add columns to the MSU over the sets of its size. An MSU of all columns
      scores nothing.

    >>> weights(4, 3).tolist(), weights(4, 2, "arx").tolist(), weights(4, 4, "ihsn").tolist()
    ([0.0, 6.0, 2.0, 1.0], [0.0, 3.0, 1.0], [0.0, 1.75, 0.5, 0.25, 0.0])
    """
    if form not in get_args(Form):
        message = f"form must be one of {', '.join(get_args(Form))}, got {form!r}."
        raise UsageError(message)
    found = [0.0]
    for size in range(1, most + 1):
        if form == "ihsn":
            found.append((2.0 ** (columns - size) - 1) / math.comb(columns, size))
        else:
            end = min(most + (form == "elliot"), columns)
            found.append(float(math.prod(columns - i for i in range(size, end))))
    return np.array(found)


def _search(
    counts: Counts, order: IntArray, unique: int, weight: FloatArray, progress: Progress | None
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the sets with their records, and the number and score of each unique row, in this order."""
    from shoal.core.suda_kernels import Found, Table

    rows, columns, most = len(order), len(counts.fields), len(weight) - 1
    codes = np.empty((columns, rows), np.int32)
    for column in range(columns):
        codes[column] = counts.codes(column)[order]
    # The column with the most values comes first on every path: it leaves the fewest records to look at.
    values = codes.max(axis=1, initial=0).astype(np.int64) + 1
    bit_of = np.argsort(values, kind="stable")
    choose = np.array([[math.comb(c, size) for size in range(most + 1)] for c in range(columns + 1)])
    table = Table(codes[bit_of], values[bit_of], weight, choose)
    space = _space(rows, most + 1, int(values.max()))
    bytes_each = -(-sum(math.comb(columns, size) for size in range(1, most)) // 8) or 1
    part = min(unique, max(_BYTES // bytes_each, 1)) or 1
    numbers, scores = np.zeros(unique, np.int64), np.zeros(unique)
    masks, records = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low in range(0, unique, part):
        alone = np.zeros((min(part, unique - low), bytes_each), np.uint8)
        tell = progress and partial(_told, progress, low // part, -(-unique // part))
        for own, number in _explored(table, low, space, Found(alone, numbers, scores), tell):
            masks.append(own)
            records.append(number)
    sets, place = np.unique(np.concatenate(masks), return_inverse=True)
    totals = np.bincount(place, np.concatenate(records), len(sets)).astype(np.int64)
    return _renamed(sets, bit_of), totals, numbers, scores


def _space(rows: int, levels: int, values: int) -> Space:
    """Make working space, with one class of all rows at the first level."""
    from shoal.core.suda_kernels import Space

    space = Space(
        np.empty((levels, rows), np.int32),
        np.empty((levels, rows // 2 + 2), np.int32),
        np.zeros(levels, np.int64),
        np.zeros(values, np.int64),
        np.empty(rows, np.int32),
        np.empty(rows, np.int32),
    )
    space.rows[0], space.begins[0, :2], space.classes[0] = np.arange(rows), (0, rows), 1
    return space


def _explored(
    table: Table, low: int, space: Space, found: Found, tell: Steps | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Search all sets for some rows, from each pair of columns on, and tell how many pairs are done."""
    from shoal.core.suda_kernels import explore

    columns, most = len(table.codes), len(table.weights) - 1
    for first in range(columns):
        yield explore(table, low, 1 << first, False, space, found)
        deeper = most > 1 and first > 0 and space.classes[1] > 0
        for second in range(first if deeper else 0):
            yield explore(table, low, 1 << first | 1 << second, True, space, found)
            if tell:
                tell(math.comb(first, 2) + second + 1, math.comb(columns, 2))


def _told(progress: Progress, part: int, parts: int, done: int, total: int) -> None:
    """Tell how far all parts together are."""
    progress("sets", part * total + done, parts * total)


def _renamed(masks: IntArray, bit_of: IntArray) -> IntArray:
    """Give every bit the number of its column."""
    renamed = np.zeros_like(masks)
    for bit, column in enumerate(bit_of.tolist()):
        renamed |= (masks >> bit & 1) << column
    return renamed


def _columns(mask: int) -> Columns:
    """Return the columns of a set.

    >>> _columns(0b1010)
    (1, 3)
    """
    return tuple(column for column in range(mask.bit_length()) if mask >> column & 1)


def _sizes(masks: IntArray) -> IntArray:
    """Count the columns of each set."""
    return sum((masks >> column & 1 for column in range(MOST_COLUMNS)), np.zeros_like(masks))


def _ordered(masks: IntArray, columns: int) -> IntArray:
    """Return the order of sets by size, then by their columns.

    >>> _ordered(np.array([0b110, 0b1001, 0b11, 0b1]), 4).tolist()
    [3, 2, 1, 0]
    """
    turned = _renamed(masks, np.arange(columns)[::-1])  # of two sets, that with the first column is greater
    return np.lexsort((-turned, _sizes(masks)))


def _checked(columns: int, most: int | None) -> int:
    """Refuse more columns than a mask has bits, and a bound below 1."""
    if not 1 <= columns <= MOST_COLUMNS:
        message = f"Special uniques are looked for in 1 to {MOST_COLUMNS} columns, got {columns}. Name fewer."
        raise UsageError(message)
    if most is not None and most < 1:
        message = f"most must be at least 1, got {most}."
        raise UsageError(message)
    most = min(most or columns, columns)
    sets = sum(math.comb(columns, size) for size in range(1, most + 1))
    if sets > MOST_SETS:
        message = (
            f"{columns} columns have {sets:,} sets of at most {most} columns, too many to search. "
            "Look at smaller sets, which are what makes a record special (special_size)."
        )
        raise UsageError(message)
    return most
