"""Labels of a release: the numbers that they stand for, their order, and the values that fall into each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.builder import COMMA, POINT, decimal_of, number_of
from shoal.core.hierarchy import MISSING, Hierarchy

Text = str | None
Ends = tuple[float, float]  # of a band; infinite where it is open

_NUMBER = r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_BAND = re.compile(rf"[\[(]?\s*{_NUMBER}\s*(?:-|\u2013|to|,|;|\.\.)\s*{_NUMBER}\s*[\])]?")
_BELOW = re.compile(rf"(?:<=?|up to)\s*{_NUMBER}")
_COMMAS = re.compile(r"(?<![\d,])(?<!\d\.)[-+]?\d+(?:\.\d{3})*,\d+(?!\d|,\d)")
_DATE = re.compile(r"\d{4}(?:-[\dQW].*)?")
NOTHING: frozenset[Text] = frozenset((None, MISSING))  # what stands for a missing value
_ABOVE = re.compile(rf"(?:(?:>=?|from)\s*{_NUMBER})|{_NUMBER}\s*\+")


def ends_of(label: Text) -> Ends | None:
    """Return the least and the greatest number that a label stands for, where it is a number or a band.

    >>> [ends_of(label) for label in ("42", "20-29", "[45, 50)", "[-3 to 5]", "<18", "90+", "2024-01", "*")]
    [(42.0, 42.0), (20.0, 29.0), (45.0, 50.0), (-3.0, 5.0), (-inf, 18.0), (90.0, inf), None, None]
    """
    if label is None:
        return None
    number = number_of(label)
    if number is not None:
        return float(number), float(number)
    if found := _BAND.fullmatch(label):
        low, high = float(found[1]), float(found[2])
        return (low, high) if low < high else None
    if found := _BELOW.fullmatch(label):
        return -math.inf, float(found[1])
    if found := _ABOVE.fullmatch(label):
        return float(found[1] or found[2]), math.inf
    return None


def label_of_ends(low: Text, high: Text) -> Text:
    """Write a band that is released as two columns.

    >>> [label_of_ends(*ends) for ends in (("20", "29"), ("5", "5"), (None, "9"), (None, None))]
    ['20 to 29', '5', 'up to 9', None]
    """
    if low is None or high is None:
        return f"up to {high}" if high else f"from {low}" if low else None
    return low if low == high else f"{low} to {high}"


def with_point(
    labels: Sequence[Text], unknown: Collection[Text] = NOTHING, beside: Sequence[Text] = ()
) -> Sequence[Text]:
    """Write numbers, and those of ranges, with a decimal point where all have a comma for it.

    A comma may part thousands, too: another number must show that it does not, of the labels or of the
    texts beside them.

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
    """Write every number that has one comma with a point."""
    return _COMMAS.sub(lambda found: found[0].replace(POINT, "").replace(COMMA, POINT), label)


def middles(
    labels: Sequence[Text], unknown: Collection[Text] = NOTHING, beside: Sequence[Text] = ()
) -> FloatArray | None:
    """Return the middle of each label's numbers; None where some that are known are no numbers.

    An open band counts as its one end; what is missing, or a code for unknown, is no number (nan). Texts
    beside the labels help to tell what commas mean.

    >>> middles(["20-29", "90+", "missing"]), middles(["20-29", "*"]), middles(["20-29", "99"], {"99"})
    (array([24.5, 90. ,  nan]), None, array([24.5,  nan]))
    """
    pointed = with_point(labels, unknown, beside)
    known = [label not in unknown for label in labels]
    ends = [ends_of(label) if told else None for label, told in zip(pointed, known, strict=True)]
    if not any(known) or any(told and end is None for end, told in zip(ends, known, strict=True)):
        return None
    return np.array([math.nan if end is None else _middle(*end) for end in ends])


def _middle(low: float, high: float) -> float:
    if math.isinf(low) or math.isinf(high):
        return high if math.isinf(low) else low
    return (low + high) / 2


def positions(labels: Sequence[Text], unknown: Collection[Text] = NOTHING) -> FloatArray | None:
    """Return the place of each label among numbers, bands or dates; None where some are none of these.

    What is missing, or a code for unknown, has no place (nan).

    >>> positions(["9", "10-19", None]), positions(["2024-03", "2023-11"]), positions(["red", "3"])
    (array([ 0.,  1., nan]), array([1., 0.]), None)
    """
    told = [label for label in labels if label not in unknown]
    dates = bool(told) and all(_DATE.fullmatch(label or "") for label in told)
    if middles(labels, unknown) is None and not dates:
        return None
    place = np.empty(len(labels))
    place[sorted(range(len(labels)), key=in_order(labels, unknown))] = np.arange(len(labels))
    place[[label in unknown for label in labels]] = math.nan
    return place


def mean_and_deviation(middle: FloatArray | None, records: IntArray) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation of numbers that occur so often."""
    if middle is None:
        return None, None
    there = np.isfinite(middle) & (records > 0)
    if not there.any():
        return None, None
    numbers, weights = middle[there], records[there]
    mean = float(np.average(numbers, weights=weights))
    return mean, math.sqrt(float(np.average((numbers - mean) ** 2, weights=weights)))


def in_order(
    labels: Sequence[Text], unknown: Collection[Text] = NOTHING
) -> Callable[[int], tuple[object, ...]]:
    """Return the key by which codes are sorted: numbers and bands, then texts, what is unknown or missing."""
    pointed = with_point(labels, unknown)

    def key(code: int) -> tuple[object, ...]:
        if labels[code] in unknown:
            return (3, "") if labels[code] in NOTHING else (2, labels[code])
        ends = ends_of(pointed[code])
        return (1, pointed[code]) if ends is None else (0, *ends)

    return key


def placed(
    texts: Sequence[Text],
    before: IntArray,
    labels: Sequence[Text],
    after: IntArray,
    rule: Hierarchy | None,
    unknown: Collection[Text] = NOTHING,
) -> IntArray | None:
    """Return the label that each value falls into, -1 where it is not released; None where none can tell.

    A value falls into the label that it is, or that stands above it in the hierarchy, or whose numbers hold
    it. Where two labels would fit, or one has more records than its values had, it cannot be told.
    """
    for found in (_by_rule(texts, labels, rule), _by_numbers(texts, labels, {None, *unknown})):
        if found is not None and (records_in(found, before, len(labels)) >= after).all():
            return found
    return None


def records_in(place: IntArray, before: IntArray, labels: int) -> IntArray:
    """Count the input's records in each label; those in none are left out."""
    inside = place >= 0
    return np.bincount(place[inside], before[inside], labels).astype(np.int64)


def _by_rule(texts: Sequence[Text], labels: Sequence[Text], rule: Hierarchy | None) -> IntArray | None:
    codes = {label: code for code, label in enumerate(labels)}
    numbers = {number_of(label): code for label, code in codes.items() if label is not None}
    numbers.pop(None, None)

    def own(text: Text) -> int:
        found = codes.get(text)
        if found is None and text is not None and numbers:  # a release may show 45.0 where the input has 45
            return numbers.get(number_of(text), -1)
        return -1 if found is None else found

    place = np.array([own(text) for text in texts], np.int64)
    for level in range(1, rule.height + 1 if rule else 1):
        groups = np.array([codes.get(label, -1) for label in rule.labels[level]] if rule else [], np.int64)
        here = groups[rule.groups(level)] if rule else groups
        if ((here >= 0) & (place >= 0) & (here != place)).any():
            return None
        place = np.where(place < 0, here, place)
    return place


def _by_numbers(texts: Sequence[Text], labels: Sequence[Text], unknown: set[Text]) -> IntArray | None:
    """Sort numbers into bands that do not overlap; what is unknown or missing goes to itself."""
    shown = zip(labels, with_point(labels, unknown, texts), strict=True)
    given = zip(texts, with_point(texts, unknown), strict=True)
    ends = [None if label in unknown else ends_of(pointed) for label, pointed in shown]
    values = [None if pointed is None or text in unknown else number_of(pointed) for text, pointed in given]
    if any((end is None) != (label in unknown) for end, label in zip(ends, labels, strict=True)):
        return None
    if any((value is None) != (text in unknown) for value, text in zip(values, texts, strict=True)):
        return None
    order = sorted((end, code) for code, end in enumerate(ends) if end is not None)
    lows = np.array([end[0] for end, _ in order])
    highs = np.array([end[1] for end, _ in order])
    if not order or (highs[:-1] > lows[1:]).any():
        return None
    apart = {label: code for code, label in enumerate(labels) if label in unknown}
    own = np.array([apart.get(text, -1) for text in texts], np.int64)
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    at = np.searchsorted(lows, numbers, side="right") - 1
    inside = (at >= 0) & (numbers <= highs[at])
    codes = np.array([code for _, code in order])
    return np.where(np.isnan(numbers), own, np.where(inside, codes[at], -1))


def blank_of(texts: Sequence[Text], labels: Sequence[Text], rule: Hierarchy | None) -> int | None:
    """Return the code of empty cells, where they stand for suppressed records and not for a missing value."""
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
