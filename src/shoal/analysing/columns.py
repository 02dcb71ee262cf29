"""What became of one column: its distribution before and after, and what the difference costs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.analysing.association import entropy, total_variation
from shoal.analysing.labels import Text, in_order, mean_and_deviation, middles, records_in, with_point
from shoal.analysing.sides import Sides
from shoal.core.arrays import FloatArray
from shoal.core.builder import number_of
from shoal.policy import Policy

MOST_LABELS = 100  # that are told of a column
_CODES = {"prefix", "dates", "times"}  # rules of columns whose digits are no quantity


@dataclass(frozen=True)
class LabelRecords:
    """The records that have a label of the release."""

    label: Text  # None: missing
    before: int | None  # None where it cannot be told which values fall into the label
    after: int
    unknown: bool = False  # missing, or a code that the column's hierarchy names under `unknown`


@dataclass(frozen=True)
class ColumnUtility:
    """What became of one column."""

    column: str
    role: str
    values: int  # different ones before
    labels: int  # different ones after
    entropy_before: float  # bits
    entropy_after: float
    kept_information: float | None  # the entropy of the labels of the input's values, beside that of these
    suppressed_shift: float | None  # how far suppression moved the labels, by total variation
    mean_before: float | None  # of numbers, without what is missing or unknown
    mean_after: float | None  # of the middles of bands
    deviation_before: float | None
    deviation_after: float | None
    records: tuple[LabelRecords, ...]  # of the most frequent labels, in their order
    rest_before: int | None  # the records of other labels, and of values of which no label is released
    rest_after: int


def column_utility(sides: Sides, policy: Policy, name: str) -> ColumnUtility:
    """Tell what became of a column."""
    before, after = sides.totals[name]
    labels, place, unknown = sides.after.labels[name], sides.places[name], sides.unknown[name]
    there = np.flatnonzero(after)
    most = there[np.argsort(-after[there], kind="stable")][:MOST_LABELS]
    shown = sorted(most.tolist(), key=in_order(labels, unknown))
    mapped = None if place is None else records_in(place, before, len(labels))
    whole = entropy(before)
    kept = shift = rest = None
    if mapped is not None:
        told = np.append(mapped, before.sum() - mapped.sum())  # the last: of which no label is released
        kept = round(min(1.0, entropy(told) / whole), 12) if whole else 1.0
        shift = total_variation(told, np.append(after, 0))
        rest = int(before.sum() - mapped[shown].sum())
    texts = sides.before.labels[name]
    numbers = _numbers(policy, name, texts, unknown)
    bands = None if numbers is None else middles(labels, unknown, texts)
    means = mean_and_deviation(numbers, before), mean_and_deviation(bands, after)
    return ColumnUtility(
        column=name,
        role=policy.columns[name].role.value,
        values=int(np.count_nonzero(before)),
        labels=len(there),
        entropy_before=whole,
        entropy_after=entropy(after),
        kept_information=kept,
        suppressed_shift=shift,
        mean_before=means[0][0],
        mean_after=means[1][0],
        deviation_before=means[0][1],
        deviation_after=means[1][1],
        records=tuple(
            LabelRecords(
                label=labels[code],
                before=None if mapped is None else int(mapped[code]),
                after=int(after[code]),
                unknown=labels[code] in unknown,
            )
            for code in shown
        ),
        rest_before=rest,
        rest_after=int(after.sum() - after[shown].sum()),
    )


def _numbers(
    policy: Policy, name: str, texts: Sequence[Text], unknown: Collection[Text]
) -> FloatArray | None:
    """Return the numbers that values are; None where they are no numbers, or codes such as 00127."""
    written = policy.columns[name].hierarchy
    if isinstance(written, dict) and _CODES & set(written):
        return None
    pointed = zip(texts, with_point(texts, unknown), strict=True)
    told = [text for own, text in pointed if text is not None and own not in unknown]
    if any(number_of(text) is None or (text[:1] == "0" and text[1:2].isdigit()) for text in told):
        return None
    return middles(texts, unknown)
