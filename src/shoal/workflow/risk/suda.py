"""Special uniques: the minimal sets of columns on which a record is unique, and their scores.

A minimal sample unique (MSU) of a record is a set of columns on which the record is unique, although it is
not unique on any proper subset (Elliot, Manning and Ford 2002, "A computational algorithm for handling the
special uniques problem"). A record with many MSUs, or with MSUs of few columns, is more likely to be unique
in the population.

The search goes depth first through sets of columns, as SUDA2 does (Manning, Haglin and Keane 2008, "A
recursive search algorithm for statistical disclosure assessment"), and splits the classes of a set by one
other column. A set is a bit mask; sets are visited in the order of their masks, so a subset comes before the
sets that contain it. A set on which a record is unique is minimal if the record is not unique on any subset
with one column less. So the search stores, for each record and smaller set, a bit that says whether the
record is unique on the set. Three lemmas justify pruning:

- A record that is unique on a set has no MSU that properly contains this set.
- If a column does not split a class, no MSU of its records contains the set with that column: their classes
  are the same without the column. So such a class is dropped.
- A record that equals another in all columns has no MSU, so a class of only such records is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compile_events
from shoal.core.counts.counts import Counts, Domain
from shoal.core.counts.subsets import ColumnIndices
from shoal.core.progress import Progress, quiet
from shoal.errors import UsageError, interruptible, invalid

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.workflow.risk.suda_kernels import Results, Space, SudaTable

Steps = Callable[[int, int], None]
ScoreForm = Literal["elliot", "arx", "ihsn"]

MOST_COLUMNS = 63  # the bits of a mask
MOST_SETS = 1 << 24  # maximum number of sets to search
_BYTES = 1 << 28  # memory for one bit per unique record and set; more records are searched in parts
MOST_SPREAD = 27  # maximum columns for DIS-SUDA: its published exponent is 0 at 28


@dataclass(frozen=True, eq=False)
class Suda:
    """The minimal sample uniques of a table, and their scores."""

    columns: int
    most: int  # maximum size of the searched sets
    records: int
    unique: int  # records that are unique on all columns together
    paired: int  # records in classes of two records on all columns together
    masks: IntArray  # (sets,): the MSUs of all records, small sets first; bit i is column i
    set_records: IntArray  # (sets,): the number of records with this MSU
    msus: IntArray  # (combinations,): the number of MSUs of its record; 0 if it has several records
    scores: FloatArray  # (combinations,): the sum of the scores of these MSUs
    weights: FloatArray  # (most + 1,): the score of an MSU of each size

    @cached_property
    def at_risk(self) -> int:
        """The number of records that have an MSU."""
        return int(np.count_nonzero(self.msus))

    @cached_property
    def sizes(self) -> IntArray:
        """The number of MSUs of each size (most + 1,), over all records."""
        return np.bincount(_sizes(self.masks), self.set_records, self.most + 1).astype(np.int64)

    @cached_property
    def by_set(self) -> dict[ColumnIndices, int]:
        """The number of records that have each MSU, by its columns; small sets first."""
        return {
            _columns(mask): records
            for mask, records in zip(self.masks.tolist(), self.set_records.tolist(), strict=True)
        }

    @cached_property
    def column_contribution(self) -> FloatArray:
        """The share of the total score (columns,) that comes from MSUs containing each column.

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
        """Return the probability that a match with a unique record is correct.

        `fraction` is the part of the population that is in the table. This is the measure of data intrusion
        simulation (Skinner and Elliot 2002, "A measure of disclosure risk for microdata").
        """
        if not 0 < fraction <= 1:
            raise invalid("fraction", "above 0 and at most 1", fraction)
        if self.unique == 0:
            return 0.0
        return self.unique * fraction / (self.unique * fraction + self.paired * (1 - fraction))

    def dis_scores(self, fraction: float = 0.01) -> FloatArray:
        """Return the DIS-SUDA scores (combinations,): `dis`, distributed over unique records by score.

        The odds of a record are the odds of `dis`, times a power of the record's score, divided by the
        harmonic mean of these powers (Elliot and Manning 2003, "Using DIS to modify the classification of
        special uniques"). The exponent is that of Elliot 2004, "Special uniques detection algorithm: user
        guide", as in sdcMicro and ARX. It decreases with the number of columns. At 28 columns it is 0, so
        scores have no effect. Unique records without an MSU of a searched size get 0.
        """
        if self.columns > MOST_SPREAD:
            raise UsageError(
                f"DIS-SUDA scores are defined for at most {MOST_SPREAD} columns, got {self.columns}. "
                "Name fewer columns, or use the scores as they are."
            )
        overall, spread = self.dis(fraction), np.zeros(len(self.scores))
        scored = self.scores > 0
        if not scored.any() or overall == 0:
            return spread
        if overall == 1:
            spread[scored] = 1
            return spread
        powers = self.scores[scored] ** (1 + (8 - self.columns) / 20)
        factor = self.unique * (1 / overall - 1) / (1 / powers).sum()
        spread[scored] = 1 / (1 + factor / powers)
        return spread


def suda(
    counts: Counts, most: int | None = None, *, form: ScoreForm = "elliot", progress: Progress | None = None
) -> Suda:
    """Find the MSUs of every record with at most `most` columns, and score them.

    A null counts as a value. `form` selects the score formula; see `weights`.
    """
    columns = len(counts.fields)
    most = _checked(columns, most)
    counts = counts.in_memory()
    order = np.argsort(counts.sizes > 1, kind="stable")
    unique = int(np.count_nonzero(counts.sizes == 1))
    weight = weights(columns, most, form)
    with interruptible():
        masks, records, numbers, scores = _search(counts, order, unique, weight, progress)
    ordered = _ordered(masks, columns)
    msus, aligned = np.zeros(len(counts), np.int64), np.zeros(len(counts))
    msus[order[:unique]], aligned[order[:unique]] = numbers, scores
    return Suda(
        columns=columns,
        most=most,
        records=counts.records,
        unique=unique,
        paired=2 * int(np.count_nonzero(counts.sizes == 2)),
        masks=masks[ordered],
        set_records=records[ordered],
        msus=msus,
        scores=aligned,
        weights=weight,
    )


def weights(columns: int, most: int, form: ScoreForm = "elliot") -> FloatArray:
    """Return the score of an MSU of each size from 0 to `most`; a smaller MSU scores at least as much.

    - `elliot`: the product of (columns - i) for i from the size to `most`, but i < columns (Elliot,
      Manning, Mayes, Gurd and Bane 2005, "SUDA: a program for detecting special uniques"). If all sizes are
      searched, this is (columns - size)!, which is the default score of sdcMicro. It is the default here
      because it is the published form, and because all tools agree on it if all sizes are searched.
    - `arx`: the product ends at `most` - 1, as in ARX. Scores are those of `elliot`, divided by a constant
      that is 1 if `most` is at least columns - 1. The MSUs are the same.
    - `ihsn`: (2^(columns - size) - 1) size! (columns - size)! / columns!, the score of sdcMicro without
      `original_scores`: the number of ways to add columns to the MSU, divided by the number of sets of its
      size. An MSU of all columns has the score 0.

    >>> weights(4, 3).tolist(), weights(4, 2, "arx").tolist(), weights(4, 4, "ihsn").tolist()
    ([0.0, 6.0, 2.0, 1.0], [0.0, 3.0, 1.0], [0.0, 1.75, 0.5, 0.25, 0.0])
    """
    if form not in get_args(ScoreForm):
        raise invalid("form", f"one of {', '.join(get_args(ScoreForm))}", form)
    scores = [0.0]
    for size in range(1, most + 1):
        if form == "ihsn":
            scores.append((2.0 ** (columns - size) - 1) / math.comb(columns, size))
        else:
            end = min(most + (form == "elliot"), columns)
            scores.append(float(math.prod(columns - i for i in range(size, end))))
    return np.array(scores)


def _search(
    counts: Counts, order: IntArray, unique: int, weight: FloatArray, progress: Progress | None
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the MSUs, their record counts, and the number and score of each unique row's MSUs."""
    from shoal.workflow.risk.suda_kernels import Results, SudaTable

    rows, columns, most = len(order), len(counts.fields), len(weight) - 1
    codes = np.empty((columns, rows), np.int32)
    for column in range(columns):
        codes[column] = counts.codes(column)[order]
    # The column with the most values comes first on every path: it leaves the fewest records to search.
    values = codes.max(axis=1, initial=0).astype(np.int64) + 1
    bit_of = np.argsort(values, kind="stable")
    choose = np.array([[math.comb(c, size) for size in range(most + 1)] for c in range(columns + 1)])
    table = SudaTable(codes[bit_of], values[bit_of], weight, choose)
    space = _space(rows, most + 1, int(values.max()))
    bytes_each = -(-sum(math.comb(columns, size) for size in range(1, most)) // 8) or 1
    part = min(unique, max(_BYTES // bytes_each, 1)) or 1
    numbers, scores = np.zeros(unique, np.int64), np.zeros(unique)
    masks, records = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low in range(0, unique, part):
        unique_bits = np.zeros((min(part, unique - low), bytes_each), np.uint8)
        report = progress and partial(_report, progress, low // part, -(-unique // part))
        for sets_found, number in _explored(table, low, space, Results(unique_bits, numbers, scores), report):
            masks.append(sets_found)
            records.append(number)
    sets, inverse = np.unique(np.concatenate(masks), return_inverse=True)
    totals = np.bincount(inverse, np.concatenate(records), len(sets)).astype(np.int64)
    return _renamed(sets, bit_of), totals, numbers, scores


def _space(rows: int, levels: int, values: int) -> Space:
    """Allocate working space. At the first level, all rows are one class."""
    from shoal.workflow.risk.suda_kernels import Space

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
    table: SudaTable, low: int, space: Space, results: Results, report: Steps | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Search all sets for some rows, one pair of columns after another; report the finished pairs."""
    from shoal.workflow.risk.suda_kernels import explore

    columns, most = len(table.codes), len(table.weights) - 1
    for first in range(columns):
        yield explore(table, low, 1 << first, False, space, results)
        deeper = most > 1 and first > 0 and space.classes[1] > 0
        for second in range(first if deeper else 0):
            yield explore(table, low, 1 << first | 1 << second, True, space, results)
            if report:
                report(math.comb(first, 2) + second + 1, math.comb(columns, 2))


def _report(progress: Progress, part: int, parts: int, done: int, total: int) -> None:
    progress("sets", part * total + done, parts * total)


def _renamed(masks: IntArray, bit_of: IntArray) -> IntArray:
    renamed = np.zeros_like(masks)
    for bit, column in enumerate(bit_of.tolist()):
        renamed |= (masks >> bit & 1) << column
    return renamed


def _columns(mask: int) -> ColumnIndices:
    """Return the columns of a set.

    >>> _columns(0b1010)
    (1, 3)
    """
    return tuple(column for column in range(mask.bit_length()) if mask >> column & 1)


def _sizes(masks: IntArray) -> IntArray:
    return sum((masks >> column & 1 for column in range(MOST_COLUMNS)), np.zeros_like(masks))


def _ordered(masks: IntArray, columns: int) -> IntArray:
    """Return the order of sets by size, then by their columns.

    >>> _ordered(np.array([0b110, 0b1001, 0b11, 0b1]), 4).tolist()
    [3, 2, 1, 0]
    """
    turned = _renamed(masks, np.arange(columns)[::-1])  # reversed: the first column is the highest bit
    return np.lexsort((-turned, _sizes(masks)))


def _checked(columns: int, most: int | None) -> int:
    if not 1 <= columns <= MOST_COLUMNS:
        raise UsageError(
            f"Special uniques are looked for in 1 to {MOST_COLUMNS} columns, got {columns}. Name fewer."
        )
    if most is not None and most < 1:
        raise invalid("most", "at least 1", most)
    most = min(most or columns, columns)
    sets = sum(math.comb(columns, size) for size in range(1, most + 1))
    if sets > MOST_SETS:
        raise UsageError(
            f"{columns} columns have {sets:,} sets of at most {most} columns, too many to search. "
            "Look at smaller sets, which are what makes a record special (special_size)."
        )
    return most


NAMES = ("minimal_uniques", "suda", "dis_suda")  # columns with the scores


@dataclass(frozen=True, eq=False)
class Scores:
    """The special uniques of a table with their scores; arrays have one entry per record, worst first."""

    texts: Mapping[str, tuple[str | None, ...]] = field(repr=False)  # by column: the text of each code
    codes: Mapping[str, IntArray] = field(repr=False)
    numbers: IntArray  # number of minimal sample uniques
    suda: FloatArray
    dis_suda: FloatArray

    def table(self) -> pa.Table:
        """Return a row for each record: its combination and its scores."""
        import pyarrow as pa

        columns = {
            name: pa.DictionaryArray.from_arrays(codes, pa.array(self.texts[name], pa.string())).cast(
                pa.string()
            )
            for name, codes in self.codes.items()
        }
        for name, values in zip(NAMES, (self.numbers, self.suda, self.dis_suda), strict=True):
            columns[_free(name, columns)] = pa.array(values)
        return pa.table(columns)


def scores_of(
    special: Special, counts: Counts, columns: Sequence[str], domains: Mapping[str, Domain]
) -> Scores:
    """Return the records that have a minimal sample unique, with their scores."""
    suda_result = special.suda
    scored_rows = np.flatnonzero(suda_result.msus)
    codes = [counts.codes(column)[scored_rows] for column in range(len(columns))]
    order = np.lexsort((*codes[::-1], -suda_result.msus[scored_rows], -suda_result.scores[scored_rows]))
    scored = scored_rows[order]
    return Scores(
        texts={name: domains[name].texts for name in columns},
        codes={name: column_codes[order] for name, column_codes in zip(columns, codes, strict=True)},
        numbers=suda_result.msus[scored],
        suda=suda_result.scores[scored],
        dis_suda=special.dis[scored],
    )


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return the name with underscores added until no column has it.

    >>> _free("suda", {"suda": 1})
    'suda_'
    """
    while name in taken:
        name += "_"
    return name


SPECIAL_SIZE = 3  # default maximum size of the searched sets
FRACTION = 0.01  # default for DIS-SUDA: share of the population that is in the table


@dataclass(frozen=True)
class Special:
    """The minimal sets of columns that make records unique."""

    size: int  # maximum size of the searched sets
    records: int  # records that have a minimal sample unique
    share: float  # share of all records
    by_size: tuple[int, ...]  # minimal sample uniques of 1, 2, ... columns
    sets: tuple[tuple[tuple[str, ...], int], ...]  # with their unique records, most first
    contribution: dict[str, float]  # of each column to the scores
    highest_score: float
    mean_score: float  # over all records
    highest_dis: float  # 0 if there are too many columns for DIS-SUDA
    mean_dis: float
    suda: Suda = field(repr=False, compare=False)  # the scores of every combination
    dis: FloatArray = field(repr=False, compare=False)  # (combinations,): the DIS-SUDA scores

    def to_dict(self) -> dict[str, Any]:
        """Return the special uniques as plain values."""
        return {
            "size": self.size,
            "records": self.records,
            "share": self.share,
            "by_size": list(self.by_size),
            "sets": [{"columns": list(columns), "records": records} for columns, records in self.sets],
            "contribution": self.contribution,
            "scores": {
                "highest": self.highest_score,
                "mean": self.mean_score,
                "highest_dis": self.highest_dis,
                "mean_dis": self.mean_dis,
            },
        }


def special_uniques(
    counts: Counts,
    columns: Sequence[str],
    size: int | None = None,
    *,
    fraction: float | None = None,
    progress: Progress | None = None,
) -> Special:
    """Find the minimal sample uniques up to a number of columns, and score them."""
    tell = progress or quiet
    tell("special uniques", 0, None)
    with compile_events(tell):
        result = suda(counts, size if size is None else min(size, len(columns)), progress=progress)
    defined = result.columns <= MOST_SPREAD
    dis = result.dis_scores(fraction or FRACTION) if defined else np.zeros(len(result.scores))
    sets = sorted(result.by_set.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    total = result.records or 1
    return Special(
        size=result.most,
        records=result.at_risk,
        share=result.at_risk / total,
        by_size=tuple(result.sizes[1:].tolist()),
        sets=tuple((tuple(columns[column] for column in indices), records) for indices, records in sets),
        contribution=dict(zip(columns, result.column_contribution.tolist(), strict=True)),
        highest_score=float(result.scores.max(initial=0.0)),
        mean_score=float(result.scores.sum() / total),
        highest_dis=float(dis.max(initial=0.0)),
        mean_dis=float(dis.sum() / total),
        suda=result,
        dis=dis,
    )
