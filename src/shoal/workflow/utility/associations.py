"""Associations of pairs of columns before and after, and the contingency table of one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.progress import Progress
from shoal.document import document
from shoal.document.document import Name, Table
from shoal.workflow.utility.columns import ColumnUtility, shown
from shoal.workflow.utility.labels import CellText, in_order, positions
from shoal.workflow.utility.spread import LabelSpread, rounded
from shoal.workflow.utility.tally import Sides

_MOST_CELLS = 1 << 22  # with more cells, pairs are sorted instead of counted in an array


def crossed(a: IntArray, b: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Count records by pair of codes; return the codes and the records of the pairs that occur."""
    width = int(b.max(initial=0)) + 1
    keys = a.astype(np.int64) * width + b
    if (int(a.max(initial=0)) + 1) * width <= _MOST_CELLS:
        cells = np.bincount(keys, sizes)
        occurring = np.flatnonzero(cells)
        records = cells[occurring]
    else:
        occurring, inverse = np.unique(keys, return_inverse=True)
        records = np.bincount(inverse, sizes)
    return occurring // width, occurring % width, records.astype(np.int64)


def cramers_v(
    a: IntArray, b: IntArray, sizes: FloatArray | IntArray, groups: tuple[float, float] | None = None
) -> float:
    """Return Cramer's V of the codes of two columns, corrected for bias.

    `groups` are the effective numbers of codes, if records are spread (default: the codes that occur).

    >>> half = np.array([0, 0, 1, 1])
    >>> cramers_v(half, half, half + 1), cramers_v(half, np.array([0, 1, 0, 1]), np.full(4, 7))
    (1.0, 0.0)
    """
    if groups is None:
        a, b, sizes = crossed(a, b, sizes.astype(np.int64))
    number = round(float(sizes.sum()))
    if number < 2:
        return 0.0
    rows, columns = np.bincount(a, sizes), np.bincount(b, sizes)
    squared = float((sizes * (sizes / (rows[a] * columns[b]))).sum()) - 1
    r, c = (count - 1 for count in groups or (np.count_nonzero(rows), np.count_nonzero(columns)))
    squared = max(0.0, squared - r * c / (number - 1))
    most = min(r - r * r / (number - 1), c - c * c / (number - 1))
    if squared < 1e-12 or most <= 1e-9:  # 0 up to rounding errors
        return 0.0
    return float(round(min(1.0, np.sqrt(squared / most)), 12))


def ranks(positions: FloatArray, records: FloatArray | IntArray) -> FloatArray:
    """Return the rank of each code's records by position; equal positions get their mean rank.

    >>> ranks(np.array([30.0, 10.0, 10.0]), np.array([2, 1, 1])).tolist()
    [3.5, 1.5, 1.5]
    """
    distinct, inverse = np.unique(positions, return_inverse=True)
    totals = np.bincount(inverse, records, len(distinct))
    middle: FloatArray = np.cumsum(totals) - (totals - 1) / 2
    return middle[inverse]


def spearman(
    a: IntArray, b: IntArray, sizes: FloatArray | IntArray, x: FloatArray, y: FloatArray
) -> float | None:
    """Return Spearman's correlation of two columns whose codes have positions; None if one is constant.

    Records with an unknown position (nan) are left out.
    """
    known = np.isfinite(x[a]) & np.isfinite(y[b])
    a, b, sizes = a[known], b[known], sizes[known]
    if not len(sizes):
        return None
    first = ranks(x, np.bincount(a, sizes, len(x)))[a]
    second = ranks(y, np.bincount(b, sizes, len(y)))[b]
    first, second = first - np.average(first, weights=sizes), second - np.average(second, weights=sizes)
    variance = float((sizes * first**2).sum()) * float((sizes * second**2).sum())
    if variance <= 1e-12 * float(sizes.sum()) ** 4:  # constant up to rounding errors
        return None
    return float(round((sizes * first * second).sum() / np.sqrt(variance), 12))


MOST_ASSOCIATED = 15
_MOST_ASKED = 6  # maximum number of columns if an engine must be asked about each pair
MOST_VALUES = 10_000  # maximum number of values of a column whose associations are measured
MOST_CELLS = 24  # maximum number of labels per column of a contingency table
_CHUNK = 1 << 15  # number of pairs of labels that are spread at once
_FEW_LABELS = 40  # maximum number of labels of a column that is chosen for the contingency table

Crosstab = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Association:
    """How strongly two columns are associated: Cramer's V, and Spearman's correlation of ordered columns."""

    columns: tuple[str, str]
    before: float
    after: float
    spearman_before: float | None
    spearman_after: float | None
    estimated: bool  # True if labels of a column overlap, so that records are spread over values

    @property
    def change(self) -> float:
        """The change of Cramer's V."""
        return self.after - self.before


@dataclass(frozen=True)
class Contingency:
    """The records of each pair of labels of two columns, before and after.

    The last row and the last column count all other labels, and values without a label.
    """

    columns: tuple[str, str]
    rows: tuple[CellText, ...]  # labels of the first column
    across: tuple[CellText, ...]  # labels of the second column
    before: Crosstab
    after: Crosstab
    estimated: bool  # True if labels of a column overlap, so that records before are spread over labels


def associations_of(
    sides: Sides, columns: Sequence[ColumnUtility], progress: Progress
) -> tuple[Association, ...]:
    """Measure each pair of columns that have at least 2 and at most `MOST_VALUES` values."""
    most = MOST_ASSOCIATED if all(not tally.counts.remote for tally in sides.both) else _MOST_ASKED
    names = [column.column for column in columns if 1 < column.values <= MOST_VALUES][:most]
    pairs = [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]
    orders = {name: positions(sides.before.labels[name], sides.unknown[name]) for name in names}
    associations = []
    for number, pair in enumerate(pairs):
        progress("compare", number, len(pairs))
        associations.append(_associated(sides, pair, orders))
    return tuple(associations)


def _associated(sides: Sides, pair: tuple[str, str], orders: dict[str, FloatArray | None]) -> Association:
    """Measure a pair before and after; after, use groups of values instead of labels if labels overlap."""
    (a, b), sizes = sides.before.read(pair)
    x, y = orders[pair[0]], orders[pair[1]]
    before = cramers_v(a, b, sizes)
    rank_before = None if x is None or y is None else spearman(a, b, sizes, x, y)
    spreads = sides.spreads[pair[0]], sides.spreads[pair[1]]
    estimated = any(spread.overlaps for spread in spreads)
    (a, b), sizes = sides.after.read(pair)
    x, y = (_positions_after(sides, name, orders[name]) for name in pair)
    records: FloatArray | IntArray = sizes
    groups = None
    if estimated:
        a, b, records, groups = spread_over(spreads, *crossed(a, b, sizes))
    after = cramers_v(a, b, records, groups)
    rank_after = None if x is None or y is None else spearman(a, b, records, x, y)
    if rank_after is None and rank_before is not None:
        rank_after = 0.0  # no order is left in the release
    return Association(pair, before, after, rank_before, rank_after, estimated)


def _positions_after(sides: Sides, name: str, order: FloatArray | None) -> FloatArray | None:
    """Return the position of each label, or of each group of values if labels overlap."""
    spread = sides.spreads[name]
    if spread.overlaps:
        return None if order is None else spread.group_positions(order)
    labels = positions(sides.after.labels[name], sides.unknown[name])
    return spread.mean_of(order)[0] if labels is None and order is not None else labels


def spread_over(
    spreads: tuple[LabelSpread, LabelSpread], a: IntArray, b: IntArray, sizes: IntArray
) -> tuple[IntArray, IntArray, FloatArray, tuple[float, float]]:
    """Spread records over pairs of groups of values; also return the effective numbers of groups.

    `a` must be sorted. The effective number is the sum over labels and groups of records * share^2 / records
    of the group. It is the number of labels if they do not overlap, and 1 if each covers all values.
    """
    first, second = (spread.weights if spread.overlaps else None for spread in spreads)
    rows, columns = np.bincount(a, sizes), np.bincount(b, sizes)
    width = len(columns) if second is None else second.shape[1]
    cells = np.zeros((len(rows), width))
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        if second is None:
            cells[a[part], b[part]] += sizes[part]
        else:
            starts = np.flatnonzero(np.diff(a[part], prepend=-1))
            cells[a[part][starts]] += np.add.reduceat(sizes[part, None] * second[b[part]], starts)
    if first is not None:
        cells = first[: len(rows)].T @ cells
    a, b = np.nonzero(cells > 0)
    return a, b, cells[a, b], (_effective(first, rows), _effective(second, columns))


def _effective(weights: FloatArray | None, records: FloatArray | IntArray) -> float:
    if weights is None:
        return float(np.count_nonzero(records))
    used = weights[: len(records)]
    totals = records @ used
    squares = records @ used**2
    return float(np.divide(squares, totals, out=np.zeros(len(totals)), where=totals > 0).sum())


def strongest(
    columns: Sequence[ColumnUtility], associations: Sequence[Association]
) -> tuple[str, str] | None:
    """Return the pair with the strongest association in the input, among columns with few released labels."""
    few_labels = {column.column for column in columns if 1 < column.labels <= _FEW_LABELS}
    candidates = [association for association in associations if few_labels.issuperset(association.columns)]
    return max(candidates, key=lambda association: association.before).columns if candidates else None


def contingency_of(sides: Sides, pair: tuple[str, str]) -> Contingency:
    """Count, for each pair of labels, the released records and the records of the input that it covers."""
    shown_codes = [_most(sides, name) for name in pair]
    (a, b), sizes = sides.after.read(pair)
    after = _cells(shown_codes, a, b, sizes)
    spreads = sides.spreads[pair[0]], sides.spreads[pair[1]]
    (a, b), sizes = sides.before.read(pair)
    first, second = (spread.label_codes for spread in spreads)
    if first is not None and second is not None:
        before = _cells(shown_codes, first[a], second[b], sizes)
    else:
        before = _spread_cells(
            [s.label_shares(codes) for s, codes in zip(spreads, shown_codes, strict=True)], a, b, sizes
        )
    rows, across = (
        tuple(sides.after.labels[name][code] for code in codes)
        for name, codes in zip(pair, shown_codes, strict=True)
    )
    return Contingency(pair, rows, across, before, after, any(spread.overlaps for spread in spreads))


def _spread_cells(shares: Sequence[FloatArray], a: IntArray, b: IntArray, sizes: IntArray) -> Crosstab:
    """Count pairs of labels, where each value belongs to several labels by the given shares."""
    cells = np.zeros((shares[0].shape[1], shares[1].shape[1]))
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        cells += (shares[0][a[part]] * sizes[part, None]).T @ shares[1][b[part]]
    return tuple(map(tuple, rounded(cells, int(sizes.sum())).tolist()))


def _most(sides: Sides, name: str) -> list[int]:
    _, after = sides.totals[name]
    occurring = np.flatnonzero(after)
    most = occurring[np.argsort(-after[occurring], kind="stable")][:MOST_CELLS]
    return sorted(most.tolist(), key=in_order(sides.after.labels[name], sides.unknown[name]))


def _cells(shown_codes: Sequence[Sequence[int]], a: IntArray, b: IntArray, sizes: IntArray) -> Crosstab:
    """Count the records of each pair of shown labels; all other labels share one row and one column."""
    indices = []
    for codes, column_codes in zip(shown_codes, (a, b), strict=True):
        index = np.full(max(int(column_codes.max(initial=0)), *codes) + 2, len(codes), np.int64)
        index[list(codes)] = np.arange(len(codes))
        indices.append(index[column_codes])  # -1 (no label) selects the last entry
    width = len(shown_codes[1]) + 1
    cells = np.bincount(indices[0] * width + indices[1], sizes, (len(shown_codes[0]) + 1) * width)
    return tuple(map(tuple, cells.astype(np.int64).reshape(-1, width).tolist()))


def associations_table(associations: Sequence[Association], most: int = 10) -> Table:
    """List the associations that were strongest before, with their values before and after."""
    strongest_first = sorted(associations, key=lambda association: -association.before)[:most]
    rows: list[list[document.Text]] = []
    for association in strongest_first:
        pair = Name(association.columns[0]), " and ", Name(association.columns[1])
        after = ("about " if association.estimated else "") + f"{association.after:.3f}"
        rows.append([pair, f"{association.before:.3f}", after, f"{association.change:+.3f}"])
    title = "How strongly columns are associated (Cramer's V)"
    return Table(title, ("columns", "before", "after", "change"), rows)


def contingency_table(contingency: Contingency, most: int = 15) -> Table:
    """List the pairs of labels with the most records in the release."""
    cells = []
    for row, label in enumerate(map(shown, contingency.rows)):
        for column, across in enumerate(map(shown, contingency.across)):
            before = contingency.before[row][column]
            after = contingency.after[row][column]
            if before or after:
                cells.append((Name(label), Name(across), before, after))
    largest = sorted(cells, key=lambda cell: (-cell[3], -cell[2]))[:most]
    rows = [(*cell[:2], f"{cell[2]:,}", f"{cell[3]:,}") for cell in largest]
    first, second = map(Name, contingency.columns)
    left = sum(map(sum, contingency.after)) - sum(cell[3] for cell in largest)
    note = f"{left:,} of the records after have other labels, which are not listed here."
    headers = (first, second, "before", "after")
    return Table(
        ("Records by ", first, " and ", second), headers, rows, left=range(2), note=note if left else ""
    )
