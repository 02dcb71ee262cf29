"""Utility of one column: its distribution before and after, and the information lost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.builder import number_of
from shoal.document.document import Name, Table
from shoal.policy.policy import Policy
from shoal.wording import percent
from shoal.workflow.utility.labels import (
    NOTHING,
    CellText,
    Ends,
    ends_of_labels,
    in_order,
    mean_and_deviation,
    middle,
    middles,
    positions,
    with_point,
)
from shoal.workflow.utility.spread import LabelSpread, rounded
from shoal.workflow.utility.tally import Sides

OTHER = "(other)"
_NOWHERE = "(not released)"
_BARS = 12  # maximum number of labels drawn per column
_DRAWN = 0.25  # minimum share of records that the drawn labels must have
_LONGEST = 34  # maximum length of a label

BarCounts = tuple[str, int, int]  # a label, the records before and after


def shown(label: CellText) -> str:
    """Return a label for display, shortened if it is long."""
    words = "(missing)" if label is None else label
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}\u2026"


def number(value: float | None) -> str:
    """Format a number with about four significant digits; only huge and tiny ones have an exponent.

    >>> number(12123.4), number(44.2345), number(0.00001), number(None)
    ('12,123', '44.23', '1e-05', '?')
    """
    if value is None:
        return "?"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:,.4g}"


def columns_table(columns: Sequence[ColumnUtility]) -> Table:
    """List the values of each column and the entropy in bits, before and after."""
    rows = []
    for column in columns:
        values = f"{column.values:,} \u2192 {column.labels:,}"
        bits = f"{column.entropy_before:.2f} \u2192 {column.entropy_after:.2f}"
        shift = ("about " if column.estimated else "") + percent(column.suppressed_shift)
        rows.append((Name(column.column), values, bits, percent(column.kept_information), shift))
    headers = ("column", "values", "bits", "information kept", "shift")
    return Table("What is left of each column", headers, rows)


def means_table(columns: Sequence[ColumnUtility]) -> Table:
    """List means and deviations before and after; estimated means are marked "about"."""
    rows = []
    for item in columns:
        after = ("about " if item.mean_after_estimated else "") + number(item.mean_after)
        deviations = number(item.deviation_before), number(item.deviation_after)
        rows.append((Name(item.column), number(item.mean_before), after, *deviations))
    headers = ("column", "mean before", "mean after", "deviation before", "deviation after")
    open_ended = [
        f"{item.column} ({item.open_ended_records:,} records)" for item in columns if item.open_ended_records
    ]
    note = "Open-ended bands count as their one end, so the mean may lie beyond what is shown: "
    return Table(
        "Means and standard deviations of numbers",
        headers,
        rows,
        note=f"{note}{', '.join(open_ended)}." if open_ended else "",
    )


def bars_of(column: ColumnUtility) -> list[BarCounts]:
    """Return at most twelve bars of labels, and a bar of all other labels.

    Labels that have an order are merged with their neighbours. Of the others, the most frequent have bars; if
    these have too few records, no bar is returned. Missing values and codes for unknown have additional bars.
    """
    known = [entry for entry in column.records if not entry.unknown]
    bars = [_bar(entry) for entry in known]
    unknown_bars = [_bar(entry) for entry in column.records if entry.unknown]
    before, after = column.rest_before, column.rest_after
    if len(bars) > _BARS and not after and positions([entry.label for entry in known]) is not None:
        step = -(-len(bars) // _BARS)
        bars = [_merged(bars[start : start + step]) for start in range(0, len(bars), step)]
    elif len(bars) > _BARS:
        tallest = set(sorted(range(len(bars)), key=lambda index: -bars[index][2])[:_BARS])
        others = [bar for index, bar in enumerate(bars) if index not in tallest]
        bars = [bar for index, bar in enumerate(bars) if index in tallest]
        before += sum(bar[1] for bar in others)
        after += sum(bar[2] for bar in others)
        shown_records = sum(bar[2] for bar in (*bars, *unknown_bars))
        if shown_records < _DRAWN * (shown_records + after):
            return []
    bars += unknown_bars
    if before or after:
        bars.append((OTHER if after else _NOWHERE, before, after))
    return bars


def _bar(item: LabelRecords) -> BarCounts:
    """Return the bar of one label; codes that mean unknown are marked."""
    text = shown(item.label)
    return (
        f"{text} (unknown)" if item.unknown and item.label not in NOTHING else text,
        item.before,
        item.after,
    )


def _merged(part: Sequence[BarCounts]) -> BarCounts:
    first, last = part[0][0], part[-1][0]
    label = first if len(part) == 1 else f"{first} \u2026 {last}"
    return label, sum(bar[1] for bar in part), sum(bar[2] for bar in part)


MOST_LABELS = 100  # maximum number of labels listed per column
_CODES = {"prefix", "dates", "times"}  # rules of columns whose digits are no quantity


@dataclass(frozen=True)
class LabelRecords:
    """The records that have a label of the release."""

    label: CellText  # None: missing
    before: int  # estimated if labels overlap
    after: int
    unknown: bool = False  # missing, or a code that the column's hierarchy names under `unknown`


@dataclass(frozen=True)
class ColumnUtility:
    """One column before and after: its distribution, entropy and mean, and the information kept."""

    column: str
    role: str
    values: int  # number of different values before
    labels: int  # number of different labels after
    entropy_before: float  # bits
    entropy_after: float  # of the labels; if they overlap, entropy_before minus the mean within labels
    kept_information: float  # 1 - lost / entropy_before: a label loses the entropy of its values
    suppressed_shift: float  # total variation distance between the distributions before and after
    estimated: bool  # True if labels overlap, so that records are spread over the values that they cover
    mean_before: float | None  # of numbers, without missing or unknown values
    mean_after: float | None  # of numbers that represent the labels: middles of bands, or expected values
    mean_after_estimated: bool  # True if some records have a label that covers several numbers
    open_ended_records: int  # records of bands with one end, such as 90+, which make the mean uncertain
    deviation_before: float | None
    deviation_after: float | None
    records: tuple[LabelRecords, ...]  # of the most frequent labels, in the order of the labels
    rest_before: int  # the records of other labels, and of values without a released label
    rest_after: int


def column_utility(sides: Sides, policy: Policy, name: str) -> ColumnUtility:
    """Compute the utility of one column."""
    before, after = sides.totals[name]
    labels, spread, unknown = sides.after.labels[name], sides.spreads[name], sides.unknown[name]
    occurring = np.flatnonzero(after)
    most = occurring[np.argsort(-after[occurring], kind="stable")][:MOST_LABELS]
    shown = sorted(most.tolist(), key=in_order(labels, unknown))
    expected = spread.expected_before()
    unreleased = max(0.0, before.sum() - expected.sum())
    shares = rounded(np.append(expected, unreleased), int(before.sum()))
    numbers = _numbers(policy, name, sides.before.labels[name], unknown)
    means = _numbers_after(sides, name, numbers)
    mean_before, deviation_before = mean_and_deviation(numbers, before)
    mean_after, deviation_after = mean_and_deviation(means.numbers, means.records)
    entropy_before = entropy(before)
    return ColumnUtility(
        column=name,
        role=policy.columns[name].role.value,
        values=int(np.count_nonzero(before)),
        labels=len(occurring),
        entropy_before=entropy_before,
        entropy_after=max(0.0, entropy_before - spread.bits_within())
        if spread.overlaps
        else min(entropy(after), entropy_before),
        kept_information=spread.kept_information(),
        suppressed_shift=spread.shift(),
        estimated=spread.overlaps,
        mean_before=mean_before,
        mean_after=mean_after,
        mean_after_estimated=means.estimated,
        open_ended_records=means.open_ended,
        deviation_before=deviation_before,
        deviation_after=deviation_after,
        records=tuple(
            LabelRecords(labels[code], int(shares[code]), int(after[code]), labels[code] in unknown)
            for code in shown
        ),
        rest_before=int(before.sum() - shares[shown].sum()),
        rest_after=int(after.sum() - after[shown].sum()),
    )


@dataclass(frozen=True)
class _Means:
    """The number that represents each label, and the records with such a number."""

    numbers: FloatArray | None
    records: FloatArray | IntArray
    estimated: bool = False
    open_ended: int = 0  # records of bands with one end, each represented by that end


def _numbers_after(sides: Sides, name: str, numbers: FloatArray | None) -> _Means:
    """Represent a number or a band by its middle, and any other label by its expected value.

    The expected value is the mean of the input's numbers that the label covers. If labels overlap, all of
    them are represented by expected values.
    """
    _, after = sides.totals[name]
    if numbers is None:
        return _Means(None, after)
    spread: LabelSpread = sides.spreads[name]
    labels, unknown = sides.after.labels[name], sides.unknown[name]
    ends: list[Ends | None] = [None] * len(labels)
    if not spread.overlaps:
        ends = ends_of_labels(labels, unknown, sides.before.labels[name])
    expected, shares, has_several = spread.mean_of(numbers)
    by_ends = np.array([end is not None for end in ends], np.bool_)
    wide = np.array([end is not None and end[0] < end[1] for end in ends], np.bool_)
    is_open = np.array([end is not None and bool(np.isinf(end).any()) for end in ends], np.bool_)
    middle_of = np.array([np.nan if end is None else middle(*end) for end in ends], np.float64)
    estimated = np.where(by_ends, wide, has_several)
    return _Means(
        np.where(by_ends, middle_of, expected),
        np.where(by_ends, 1.0, shares) * after,
        bool(after[estimated].any()),
        int(after[is_open].sum()),
    )


def _numbers(
    policy: Policy, name: str, texts: Sequence[CellText], unknown: Collection[CellText]
) -> FloatArray | None:
    """Return the values as numbers; None if some are not numbers, or if they are codes such as 00127."""
    written = policy.columns[name].hierarchy
    if isinstance(written, dict) and _CODES & set(written):
        return None
    pointed = zip(texts, with_point(texts, unknown), strict=True)
    known_texts = [text for original, text in pointed if text is not None and original not in unknown]
    if any(number_of(text) is None or (text[:1] == "0" and text[1:2].isdigit()) for text in known_texts):
        return None
    return middles(texts, unknown)


def entropy(records: IntArray) -> float:
    """Return the entropy of a distribution in bits.

    >>> entropy(np.array([5, 5, 0])), entropy(np.array([7]))
    (1.0, 0.0)
    """
    shares = records[records > 0] / max(1, records.sum())
    return float(abs((shares * np.log2(shares)).sum()))
