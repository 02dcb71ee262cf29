"""Labels of a release: the numbers that they mean, their order, and the values that belong to each label."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.hierarchy.builder import COMMA, POINT, decimal_of, number_of
from shoal.core.hierarchy.hierarchy import MISSING, Hierarchy
from shoal.core.recoding.wording import parts_of

CellText = str | None  # None: missing
Ends = tuple[float, float]  # the two ends of a band; infinite if the band is open

_NUMBER = r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_BAND = re.compile(rf"\s*{_NUMBER}\s*(?:-|\u2013|to|\.\.)\s*{_NUMBER}\s*")
_INTERVAL = re.compile(rf"[\[(]\s*{_NUMBER}\s*(?:-|\u2013|to|,|;|\.\.)\s*{_NUMBER}\s*[\])]")
_ONE_END = re.compile(rf"\s*(<=?|>=?|\u2264|\u2265|up to|from)\s*{_NUMBER}\s*|\s*{_NUMBER}\s*\+\s*")
_HALF_OPEN = re.compile(r"\[.*\)|<[^=].*")  # [45, 50) or <18: the end is excluded
_COMMAS = re.compile(r"(?<![\d,])(?<!\d\.)[-+]?\d+(?:\.\d{3})*,\d+(?!\d|,\d)")
_DATE = re.compile(r"\d{4}(?:-[\dQW].*)?")
NOTHING: frozenset[CellText] = frozenset((None, MISSING))  # texts that stand for a missing value


@dataclass(frozen=True, slots=True)
class Band:
    """The numbers between two ends, one of which may be infinite."""

    low: float
    high: float
    without_end: bool = False  # the end is excluded, as in <18


def band_of(label: str) -> Band | None:
    """Read a band without brackets, such as 20-29, <18 or 90+.

    >>> band_of("20-29"), band_of("<18"), band_of("18")
    (Band(low=20.0, high=29.0, without_end=False), Band(low=-inf, high=18.0, without_end=True), None)
    """
    if match := _BAND.fullmatch(label):
        low, high = float(match[1]), float(match[2])
        return Band(low, high) if low <= high else None
    if match := _ONE_END.fullmatch(label):
        sign, end = match[1] or "from", float(match[2] or match[3])
        upwards = sign in (">", ">=", "\u2265", "from")
        return Band(end if upwards else -math.inf, math.inf if upwards else end, sign in ("<", ">"))
    return None


def ends_of(label: CellText) -> Ends | None:
    """Return the least and the greatest number of a label; None if it is neither a number nor a band.

    >>> [ends_of(label) for label in ("42", "20-29", "[45, 50)", "[-3 to 5]", "<18", "90+", "2024-01", "*")]
    [(42.0, 42.0), (20.0, 29.0), (45.0, 50.0), (-3.0, 5.0), (-inf, 18.0), (90.0, inf), None, None]
    >>> ends_of("20-24 or 30-34"), ends_of("20-24 or missing")
    ((20.0, 34.0), None)
    """
    if label is None:
        return None
    number = number_of(label)
    if number is not None:
        return float(number), float(number)
    if len(parts := parts_of(label)) > 1:
        known = [end for part in parts if (end := ends_of(part)) is not None]
        return (
            (min(low for low, _ in known), max(high for _, high in known))
            if len(known) == len(parts)
            else None
        )
    match = _INTERVAL.fullmatch(label)
    band = Band(float(match[1]), float(match[2])) if match else band_of(label)
    return (band.low, band.high) if band and band.low <= band.high else None


def label_of_ends(low: CellText, high: CellText) -> CellText:
    """Return the label of a band that is released as two columns.

    >>> [label_of_ends(*ends) for ends in (("20", "29"), ("5", "5"), (None, "9"), (None, None))]
    ['20 to 29', '5', 'up to 9', None]
    """
    if low is None or high is None:
        return f"up to {high}" if high else f"from {low}" if low else None
    return low if low == high else f"{low} to {high}"


def with_point(
    labels: Sequence[CellText], unknown: Collection[CellText] = NOTHING, beside: Sequence[CellText] = ()
) -> Sequence[CellText]:
    """Replace decimal commas by points, also within ranges.

    A comma may also separate thousands. Commas are replaced only if some number in `labels` or `beside`
    proves that they are decimal commas.

    >>> with_point(["36,6", "37", None]), with_point(["[36,4-36,5]", "1,234"]), with_point(["[1,234-1,235]"])
    (['36.6', '37', None], ['[36.4-36.5]', '1.234'], ['[1,234-1,235]'])
    """
    shown = [label for label in labels if label is not None and label not in unknown and COMMA in label]
    pointed = {label: text for label in shown if ends_of(text := _pointed(label)) and text != label}
    if not pointed:
        return labels
    others = [text for text in (*labels, *beside) if text is not None and text not in unknown]
    numbers = [text for text in others if number_of(text) is not None or number_of(text, COMMA) is not None]
    ends = [number[0].lstrip("+-") for label in pointed for number in _COMMAS.finditer(label)]
    if decimal_of([*ends, *numbers]) != COMMA:
        return labels
    return [label if label is None else pointed.get(label, label) for label in labels]


def _pointed(label: str) -> str:
    """Replace the decimal comma of each number by a point."""
    return _COMMAS.sub(lambda match: match[0].replace(POINT, "").replace(COMMA, POINT), label)


def ends_of_labels(
    labels: Sequence[CellText], unknown: Collection[CellText] = NOTHING, beside: Sequence[CellText] = ()
) -> list[Ends | None]:
    """Return the ends of each label; None if it is unknown, or is not a number or a band."""
    pointed = zip(labels, with_point(labels, unknown, beside), strict=True)
    return [None if label in unknown else ends_of(text) for label, text in pointed]


def middles(
    labels: Sequence[CellText], unknown: Collection[CellText] = NOTHING, beside: Sequence[CellText] = ()
) -> FloatArray | None:
    """Return the middle of each label; None if a known label is neither a number nor a band.

    A band with one end is represented by that end. Missing labels and codes that mean unknown are nan. The
    texts in `beside` help to decide whether commas are decimal commas.

    >>> middles(["20-29", "90+", "missing"]), middles(["20-29", "*"]), middles(["20-29", "99"], {"99"})
    (array([24.5, 90. ,  nan]), None, array([24.5,  nan]))
    """
    ends = _known_ends(labels, unknown, beside)
    return None if ends is None else np.array([math.nan if end is None else middle(*end) for end in ends])


def _known_ends(
    labels: Sequence[CellText], unknown: Collection[CellText], beside: Sequence[CellText]
) -> list[Ends | None] | None:
    """Return the ends of each label, None for an unknown one; None if a known label is not a number."""
    known = [label not in unknown for label in labels]
    ends = ends_of_labels(labels, unknown, beside)
    if not any(known) or any(is_known and end is None for end, is_known in zip(ends, known, strict=True)):
        return None
    return ends


def middle(low: float, high: float) -> float:
    """Return the middle of a band, or the only end of an open band."""
    if math.isinf(low) or math.isinf(high):
        return high if math.isinf(low) else low
    return (low + high) / 2


def positions(labels: Sequence[CellText], unknown: Collection[CellText] = NOTHING) -> FloatArray | None:
    """Return the rank of each label among numbers, bands or dates; None if a known label is none of these.

    Missing labels and codes that mean unknown have the rank nan.

    >>> positions(["9", "10-19", None]), positions(["2024-03", "2023-11"]), positions(["red", "3"])
    (array([ 0.,  1., nan]), array([1., 0.]), None)
    """
    known_labels = [label for label in labels if label not in unknown]
    dates = bool(known_labels) and all(_DATE.fullmatch(label or "") for label in known_labels)
    if middles(labels, unknown) is None and not dates:
        return None
    ranks = np.empty(len(labels))
    ranks[sorted(range(len(labels)), key=in_order(labels, unknown))] = np.arange(len(labels))
    ranks[[label in unknown for label in labels]] = math.nan
    return ranks


def mean_and_deviation(
    numbers: FloatArray | None, records: FloatArray | IntArray
) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation of numbers, weighted by their records."""
    if numbers is None:
        return None, None
    known = np.isfinite(numbers) & (records > 0)
    if not known.any():
        return None, None
    numbers, weights = numbers[known], records[known]
    mean = float(np.average(numbers, weights=weights))
    return mean, math.sqrt(float(np.average((numbers - mean) ** 2, weights=weights)))


def in_order(
    labels: Sequence[CellText], unknown: Collection[CellText] = NOTHING
) -> Callable[[int], tuple[object, ...]]:
    """Return a sort key for codes: numbers and bands, other texts, codes for unknown, missing values."""
    pointed = with_point(labels, unknown)

    def key(code: int) -> tuple[object, ...]:
        if labels[code] in unknown:
            return (3, "") if labels[code] in NOTHING else (2, labels[code])
        ends = ends_of(pointed[code])
        return (1, pointed[code]) if ends is None else (0, *ends)

    return key


def placed(
    texts: Sequence[CellText],
    before: IntArray,
    labels: Sequence[CellText],
    after: IntArray,
    rule: Hierarchy | None,
    unknown: Collection[CellText] = NOTHING,
) -> IntArray | None:
    """Return the label of each value, or -1 if the value is not released; None if this is not certain.

    A value belongs to a label that equals it, is its ancestor in the hierarchy, or is a band around it. The
    result is None if two labels fit a value, or if a label has more records than its values in the input.
    """
    for label_codes in (_by_rule(texts, labels, rule), _by_numbers(texts, labels, {None, *unknown})):
        if label_codes is not None and (records_in(label_codes, before, len(labels)) >= after).all():
            return label_codes
    return None


def records_in(label_codes: IntArray, before: IntArray, labels: int) -> IntArray:
    """Count the input's records by label; records without a label are left out."""
    inside = label_codes >= 0
    return np.bincount(label_codes[inside], before[inside], labels).astype(np.int64)


def _by_rule(
    texts: Sequence[CellText], labels: Sequence[CellText], rule: Hierarchy | None
) -> IntArray | None:
    codes = {label: code for code, label in enumerate(labels)}
    numbers = {number_of(label): code for label, code in codes.items() if label is not None}
    numbers.pop(None, None)

    def code_of(text: CellText) -> int:
        code = codes.get(text)
        if code is None and text is not None and numbers:  # 45.0 in the release equals 45 in the input
            return numbers.get(number_of(text), -1)
        return -1 if code is None else code

    label_codes = np.array([code_of(text) for text in texts], np.int64)
    for level in range(1, rule.height + 1 if rule else 1):
        groups = np.array([codes.get(label, -1) for label in rule.labels[level]] if rule else [], np.int64)
        level_codes = groups[rule.groups(level)] if rule else groups
        if ((level_codes >= 0) & (label_codes >= 0) & (level_codes != label_codes)).any():
            return None
        label_codes = np.where(label_codes < 0, level_codes, label_codes)
    return label_codes


def _by_numbers(
    texts: Sequence[CellText], labels: Sequence[CellText], unknown: set[CellText]
) -> IntArray | None:
    """Assign numbers to bands that do not overlap; unknown and missing values have themselves as labels."""
    shown = zip(labels, with_point(labels, unknown, texts), strict=True)
    written = zip(texts, with_point(texts, unknown), strict=True)
    ends = [None if label in unknown else ends_of(pointed) for label, pointed in shown]
    values = [None if pointed is None or text in unknown else number_of(pointed) for text, pointed in written]
    if any((end is None) != (label in unknown) for end, label in zip(ends, labels, strict=True)):
        return None
    if any((value is None) != (text in unknown) for value, text in zip(values, texts, strict=True)):
        return None
    order = sorted((end, code) for code, end in enumerate(ends) if end is not None)
    lows = np.array([end[0] for end, _ in order])
    highs = np.array([end[1] for end, _ in order])
    if not order or (highs[:-1] > lows[1:]).any():
        return None
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    half_open = np.array([_HALF_OPEN.fullmatch(labels[code] or "") is not None for _, code in order])
    if np.isin(highs[:-1][~half_open[:-1] & (highs[:-1] == lows[1:])], numbers).any():
        return None  # some value falls into two bands
    code_of_unknown = {label: code for code, label in enumerate(labels) if label in unknown}
    unknown_codes = np.array([code_of_unknown.get(text, -1) for text in texts], np.int64)
    index = np.searchsorted(lows, numbers, side="right") - 1
    inside = (index >= 0) & (numbers <= highs[index])
    codes = np.array([code for _, code in order])
    return np.where(np.isnan(numbers), unknown_codes, np.where(inside, codes[index], -1))


def blank_of(texts: Sequence[CellText], labels: Sequence[CellText], rule: Hierarchy | None) -> int | None:
    """Return the code of empty cells if they are suppressed cells, and not missing values."""
    if None not in labels:
        return None
    code = labels.index(None)
    if None not in texts:
        return code
    if rule is None:
        return None
    null, known = texts.index(None), set(labels)
    above = (rule.labels[level][rule.groups(level)[null]] for level in range(1, rule.height + 1))
    return code if any(label in known for label in above) else None
