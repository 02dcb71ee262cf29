"""mu-Argus (Hundepool and Willenborg 1996): generalize single columns, then blank rare combinations.

First, every column is generalized until each of its values has k records. Then the values of sets of up to
three columns are counted. The sets are chosen by how identifying the columns are, as Sweeney (2002) describes
the system. Cells of combinations with fewer than k records are blanked. Larger sets are never tested, so the
result need not be k-anonymous. Only one thing is proven: no tested combination is rare.

Lemma: a record with a blank cell is not counted, so blanking only removes records from a combination. A rare
combination therefore stays rare until each of its records has lost a cell. So blanking cells of all these
records in the same round blanks no record unnecessarily.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import ClassVar

import numpy as np

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import Algorithm, Guarantee
from shoal.core.counts.counts import numbered
from shoal.core.evaluation import Evaluation
from shoal.core.evaluator import Evaluator
from shoal.core.lattice.lattice import Node
from shoal.core.problem import Problem
from shoal.core.recoding.lowering import keys_at
from shoal.core.recoding.refine import recoding_of
from shoal.errors import PolicyError, Refusal, UnknownName

ColumnSubset = tuple[int, ...]

_MAX_DIRECT_CELLS = 1 << 14  # with at most this many possible combinations, each has its own number as a key
_MAX_TALLIES = 10_000_000  # up to this many sets of columns times rows, tallies are kept between rounds


@dataclass(frozen=True)
class VisibleRecords:
    """The visible values of records: distinct rows, with the number of records of each."""

    codes: IntArray  # (columns, rows): numbers from 0 for the values of each column
    visible: BoolArray  # (columns, rows)
    sizes: IntArray  # (rows,)


@dataclass(frozen=True)
class Rare:
    """The rare combinations of some columns: those of fewer than k records."""

    columns: ColumnSubset
    combinations: int
    rows: BoolArray  # (rows,): those with a rare combination


def shown_at(problem: Problem, node: Node) -> tuple[VisibleRecords, IntArray]:
    """Return the visible values at a node, and the row of each combination."""
    levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
    row_of_combination = numbered(keys_at(problem, levels))
    _, first = np.unique(row_of_combination, return_index=True)
    codes = [
        hierarchy.groups(level)[problem.counts.codes(column)[first]]
        for column, (hierarchy, level) in enumerate(zip(problem.hierarchies, node, strict=True))
    ]
    visible = [
        column_codes != hierarchy.null
        if level == 0 and hierarchy.null is not None
        else np.ones(len(column_codes), np.bool_)
        for column_codes, hierarchy, level in zip(codes, problem.hierarchies, node, strict=True)
    ]
    sizes = np.bincount(row_of_combination, problem.counts.sizes).astype(np.int64)
    return VisibleRecords(np.stack(codes), np.stack(visible), sizes), row_of_combination


def rare(visible_records: VisibleRecords, columns: ColumnSubset, k: int) -> Rare:
    """Find combinations of some columns that fewer than k records share."""
    tally = _Tally(visible_records, columns, visible_records.visible)
    is_rare = (tally.sizes > 0) & (tally.sizes < k)
    return Rare(columns, int(is_rare.sum()), tally.rare(k))


def blank_rare(
    visible_records: VisibleRecords,
    tested: Sequence[ColumnSubset],
    k: int,
    order: Sequence[int],
    *,
    check: Callable[[int], None],
) -> BoolArray:
    """Blank cells (columns, rows) until no combination of tested columns is rare.

    In each round, every row with rare combinations loses the cell that is in most of them. Among ties, it is
    the cell whose column comes first in `order`. `check` is called with the number of sets that are counted
    next, and may raise an exception.
    """
    visible = visible_records.visible.copy()
    columns_in_order = np.array(order)
    keep_tallies = len(tested) * len(visible_records.sizes) <= _MAX_TALLIES
    tallies: list[_Tally] = []
    while True:
        hits = np.zeros(visible.shape, np.int64)
        for number, columns in enumerate(tested):
            check(1)
            tally = tallies[number] if number < len(tallies) else _Tally(visible_records, columns, visible)
            if keep_tallies and number == len(tallies):
                tallies.append(tally)
            hits[list(tally.columns)] += tally.rare(k)
        rows = np.flatnonzero(hits.any(axis=0))
        if not len(rows):
            return visible_records.visible & ~visible
        chosen_columns = columns_in_order[np.argmax(hits[np.ix_(columns_in_order, rows)], axis=0)]
        visible[chosen_columns, rows] = False
        rows_by_column = [rows[chosen_columns == column] for column in range(len(columns_in_order))]
        for tally in tallies:
            tally.lose(np.concatenate([rows_by_column[column] for column in tally.columns]))


class _Tally:
    """The number of records of each combination of some columns, updated when rows lose cells."""

    def __init__(self, visible_records: VisibleRecords, columns: ColumnSubset, visible: BoolArray) -> None:
        self.columns = columns
        self._row_sizes = visible_records.sizes
        self._is_visible: BoolArray = np.logical_and.reduce(visible[list(columns)])  # (rows,)
        self._key, cells = _keys(visible_records.codes[list(columns)])  # (rows,)
        self.sizes = np.bincount(self._key, np.where(self._is_visible, self._row_sizes, 0), cells).astype(
            np.int64
        )

    def rare(self, k: int) -> BoolArray:
        """Mark the rows whose combination has fewer than k records."""
        rows: BoolArray = self._is_visible & (self.sizes < k)[self._key]
        return rows

    def lose(self, rows: IntArray) -> None:
        """Remove rows in which one of the columns is now blank; no row may be removed twice."""
        rows = rows[self._is_visible[rows]]
        np.subtract.at(self.sizes, self._key[rows], self._row_sizes[rows])
        self._is_visible[rows] = False


def _keys(codes: IntArray) -> tuple[IntArray, int]:
    """Assign equal numbers to equal rows of `codes`, (columns, rows); also return a bound of the numbers."""
    widths = (codes.max(axis=1) + 1).tolist()
    if prod(widths) <= max(_MAX_DIRECT_CELLS, codes.shape[1]):
        key = codes[0]
        for column_codes, width in zip(codes[1:], widths[1:], strict=True):
            key = key * width + column_codes
        return key, prod(widths)
    key = codes[0]
    for column_codes, width in zip(codes[1:], widths[1:], strict=True):
        # Both factors are below 2 ** 31, so the product fits in a word.
        key = numbered((key * width + column_codes).reshape(1, -1))
    return key, int(key.max()) + 1


IDENTIFYING, MORE, MOST = 1, 2, 3
# The categories whose columns are tested together, each pair and triple in ascending order.
_TESTED = {
    (IDENTIFYING, MORE),
    (IDENTIFYING, MOST),
    (MORE, MOST),
    (MOST, MOST),
    (IDENTIFYING, MORE, MOST),
    (IDENTIFYING, MOST, MOST),
    (MORE, MOST, MOST),
    (MOST, MOST, MOST),
}


@dataclass(frozen=True)
class MuArgus(Algorithm):
    """Generalize until each value has k records, then blank cells of rare combinations of 2 and 3 columns."""

    generalize: Mapping[str, int] | None = field(
        default=None, metadata={"takes": "columns with levels, such as {born: 2}, or --generalize born=2"}
    )
    """Columns to generalize further, with the minimum level of each."""

    plain_summary: ClassVar[str] = (
        "Merges rare values, then blanks cells that are rare together; checks few columns at once."
    )
    guarantee: ClassVar[Guarantee] = Guarantee.NONE
    """The policy's models need not hold; no tested combination of visible values has fewer than k records."""
    suppresses: ClassVar[bool] = False

    def refuses(self, problem: Problem) -> Refusal | None:
        if not all(model.sizes_suffice and not model.judges_table for model in problem.models):
            return Refusal(
                "it counts how many records share few values, so k-anonymity is the only model it knows"
            )
        if problem.as_bounds:
            return Refusal("a blank cell looks like empty bounds: use release_as: text")
        return None

    def search(self, problem: Problem, evaluate: Evaluator) -> Evaluation:
        """Generalize, blank cells, and measure the result; the models need not hold."""
        node = self.start(problem)
        visible_records, row_of_combination = shown_at(problem, node)
        identifying = identifying_of(problem)
        order = sorted(range(len(identifying)), key=lambda column: (-identifying[column], column))

        def check(sets: int) -> None:
            evaluate.check_time()
            evaluate.add_cost(len(visible_records.sizes), sets)

        blanks = blank_rare(
            visible_records, self.tested_sets(identifying), problem.least_size, order, check=check
        )
        levels = np.repeat(np.array(node, np.int64)[:, None], len(problem.counts), axis=1)
        nothing = np.zeros(len(problem.counts), np.bool_)
        recoding = recoding_of(problem, levels, nothing, blanks[:, row_of_combination])
        return evaluate.finish(evaluate.recoding(recoding, node, check_models=False), self.guarantee)

    def tested_sets(self, identifying: Sequence[int]) -> list[ColumnSubset]:
        """Return the tested sets of columns: single columns, then pairs, then triples.

        If all columns are equally identifying, every pair and triple is tested.

        >>> [len(MuArgus().tested_sets(columns)) for columns in ([1, 3, 2, 2], [1, 1, 1, 1], [1, 1, 2])]
        [11, 14, 5]
        """
        positions = range(len(identifying))
        all_equal = len(set(identifying)) == 1
        return [
            columns
            for size in (1, 2, 3)
            for columns in combinations(positions, size)
            if size == 1 or all_equal or tuple(sorted(identifying[column] for column in columns)) in _TESTED
        ]

    def start(self, problem: Problem) -> Node:
        """Return the lowest levels at which each value has k records, or else the highest allowed levels."""
        lattice = problem.lattice
        lowest = list(lattice.low)
        for name, level in (self.generalize or {}).items():
            axis = _axis(problem, name)
            if not 0 <= level <= lattice.high[axis]:
                raise PolicyError(
                    f"Level {level} to generalize {name!r} to is outside 0..{lattice.high[axis]}."
                )
            lowest[axis] = max(lowest[axis], level)
        node = []
        for axis, (low, high) in enumerate(zip(lowest, lattice.high, strict=True)):
            enough = (level for level in range(low, high) if _frequent(problem, axis, level))
            node.append(next(enough, high) - lattice.low[axis])
        return lattice.node(node)


def identifying_of(problem: Problem) -> tuple[int, ...]:
    """Return how identifying each column is; all are equal if the policy does not say."""
    return problem.identifying or (IDENTIFYING,) * len(problem.hierarchies)


def _axis(problem: Problem, name: str) -> int:
    lattice = problem.lattice
    if name not in lattice.columns:
        raise UnknownName(name, "quasi-identifier to generalize:", lattice.columns)
    column = lattice.columns.index(name)
    return next(number for number, axis in enumerate(lattice.axes) if column in axis)


def _frequent(problem: Problem, axis: int, level: int) -> bool:
    """Return whether each value of the columns of an axis has k records at a level."""
    for column in problem.lattice.axes[axis]:
        hierarchy, counts = problem.hierarchies[column], problem.value_counts[column]
        if level == 0 and hierarchy.null is not None:
            counts = np.delete(counts, hierarchy.null)  # missing values stay blank
            groups = np.delete(hierarchy.groups(0), hierarchy.null)
        else:
            groups = hierarchy.groups(level)
        sizes = np.bincount(groups, counts)
        if ((sizes > 0) & (sizes < problem.least_size)).any():
            return False
    return True
