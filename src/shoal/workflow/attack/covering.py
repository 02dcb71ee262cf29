"""Match the labels of a released column with known values, or with the labels of another release."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.columns.evidence import unknown_codes
from shoal.core.arrays import BoolArray, FloatArray, IntArray
from shoal.core.hierarchy import dates
from shoal.core.hierarchy.builder import Builder
from shoal.core.hierarchy.builders import Flat
from shoal.core.hierarchy.hierarchy import MISSING, TOP
from shoal.core.hierarchy.prefixes import Prefix
from shoal.errors import DataError
from shoal.wording import plural
from shoal.workflow.attack.labels import EVERYTHING, Meaning, Reader, Span, intervals_at
from shoal.workflow.attack.linking import Compatible
from shoal.workflow.attack.released import ReleasedColumn
from shoal.workflow.utility.labels import CellText, with_point

_FEW_MATCHES = 16  # up to this number, Python sorts faster than NumPy


@dataclass(frozen=True)
class ValueIndex:
    """Known values, or labels of another release, indexed by text, prefix and interval."""

    everything: BoolArray  # (values,): whether the value matches every label
    texts: Mapping[str, Sequence[int]]  # by text: the indexes of the values that have it
    prefixes: Sequence[tuple[str, int]]  # a prefix of codes, and the index of the value that has it
    scales: Mapping[str, ScaleIndex]

    @classmethod
    def of_meanings(cls, meanings: Sequence[Meaning]) -> ValueIndex:
        """Index values by their meanings."""
        texts: dict[str, list[int]] = {}
        spans: dict[str, list[tuple[float, float, int]]] = {}
        prefixes: list[tuple[str, int]] = []
        for index, value in enumerate(meanings):
            for text in value.texts:
                texts.setdefault(text, []).append(index)
            for span in value.spans:
                spans.setdefault(span.scale, []).append((span.low, span.high, index))
            prefixes += [(prefix, index) for prefix in value.prefixes]
        scales = {
            scale: ScaleIndex.of(*map(np.array, zip(*ends, strict=True))) for scale, ends in spans.items()
        }
        return cls(np.array([value.everything for value in meanings], np.bool_), texts, prefixes, scales)

    @classmethod
    def of_texts(cls, texts: Sequence[CellText], reader: Reader, written: Mapping[str, str]) -> ValueIndex:
        """Index known values; an empty value, or a code such as "unknown", matches every label.

        `written` maps some values to another form; these are also indexed at the position of that form.
        """
        everything = np.array([text is None or reader.tells_nothing(text) for text in texts], np.bool_)
        known_indices = np.flatnonzero(~everything)
        known_texts = [texts[index] or "" for index in known_indices.tolist()]
        rewritten = np.array([index for index, text in enumerate(known_texts) if text in written], np.int64)
        pieces: dict[str, list[tuple[FloatArray, FloatArray, IntArray]]] = {}
        for indices, index_texts in (
            (known_indices, known_texts),
            (known_indices[rewritten], [written[known_texts[index]] for index in rewritten.tolist()]),
        ):
            for scale, (low, high) in intervals_at(index_texts, reader.rule).items():
                readable = ~np.isnan(low)
                pieces.setdefault(scale, []).append((low[readable], high[readable], indices[readable]))
        scales = {
            scale: ScaleIndex.of(*map(np.concatenate, zip(*parts, strict=True)))
            for scale, parts in pieces.items()
        }
        indices_by_text = {
            text: (index,) for text, index in zip(known_texts, known_indices.tolist(), strict=True)
        }
        return cls(everything, indices_by_text, (), scales)

    def on_scales(self, scales: Collection[str] | None = None) -> BoolArray:
        """Return which values lie on one of the given scales, or on any scale if none are given."""
        mask = np.zeros(len(self.everything), np.bool_)
        for name, scale in self.scales.items():
            if scales is None or name in scales:
                mask[scale.indices] = True
        return mask

    def compatible(self, label: Meaning, values_by_label: Mapping[str, Sequence[int]]) -> IntArray:
        """Return the distinct indexes of the values that match a label, in ascending order.

        `values_by_label` maps each label of a hierarchy to the indexes of its values.
        """
        matches: list[int] = []
        for text in label.texts:
            matches += self.texts.get(text, ())
            matches += values_by_label.get(text, ())
        for prefix in label.prefixes:
            matches += self._with_prefix(prefix)
        for prefix, index in self.prefixes:
            if any(text.startswith(prefix) for text in label.texts) or _prefixes_overlap(
                prefix, label.prefixes
            ):
                matches.append(index)
        pieces = [
            self.scales[span.scale].overlapping(span) for span in label.spans if span.scale in self.scales
        ]
        if len(matches) + sum(map(len, pieces)) <= _FEW_MATCHES:
            return np.array(
                sorted({*matches, *(index for piece in pieces for index in piece.tolist())}), np.int64
            )
        return np.unique(np.concatenate([np.array(matches, np.int64), *pieces]))

    @cached_property
    def _sorted(self) -> list[tuple[str, int]]:
        return sorted((text, index) for text, indices in self.texts.items() for index in indices)

    def _with_prefix(self, prefix: str) -> list[int]:
        position = bisect_left(self._sorted, (prefix, -1))
        matches = []
        while position < len(self._sorted) and self._sorted[position][0].startswith(prefix):
            matches.append(self._sorted[position][1])
            position += 1
        return matches


def _prefixes_overlap(prefix: str, others: Iterable[str]) -> bool:
    return any(prefix.startswith(other) or other.startswith(prefix) for other in others)


@dataclass(frozen=True)
class ScaleIndex:
    """The intervals of values on one scale, sorted by their lower ends."""

    lows: FloatArray
    highs: FloatArray
    indices: IntArray
    ordered: bool  # whether the upper ends are sorted, too

    @classmethod
    def of(cls, lows: FloatArray, highs: FloatArray, indices: IntArray) -> ScaleIndex:
        """Sort intervals by their lower ends."""
        order = np.lexsort((highs, lows))
        highs = highs[order]
        return cls(lows[order], highs, indices[order], bool((np.diff(highs) >= 0).all()))

    @cached_property
    def _listed(self) -> tuple[list[float], list[float]]:
        """The lower ends, and the running maximum of the upper ends, as lists: faster for single lookups."""
        return self.lows.tolist(), np.maximum.accumulate(self.highs).tolist()

    def overlapping(self, span: Span) -> IntArray:
        """Return the indices of the values whose intervals overlap a span."""
        last = bisect_right(self._listed[0], span.high)
        first = bisect_left(self._listed[1], span.low)  # all earlier intervals end below the span
        indices = self.indices[first:last]
        return indices if self.ordered else indices[self.highs[first:last] >= span.low]


_AS_IS = Flat()


def rewritten_texts(
    texts: Iterable[str | None], rule: Builder | None, *, months_first: bool = False
) -> Mapping[str, str]:
    """Write dates as 2024-03-05, and numbers with the rule's decimal sign; omit texts that need no change.

    >>> rewritten_texts(["05.03.2024", "6.3.2024 14:15", "2024-03-07"], None)
    {'05.03.2024': '2024-03-05', '6.3.2024 14:15': '2024-03-06 14:15:00'}
    >>> rewritten_texts(["36,6", "37"], None), rewritten_texts(["1,234", "999"], None)
    ({'36,6': '36.6'}, {})
    """
    rule = rule or _AS_IS
    known = [text for text in texts if text is not None and not rule.is_unknown(text)]
    codes = set(unknown_codes(known))
    return rule.rewritten([text for text in known if text not in codes], months_first=months_first)


def months_first_in(texts: Iterable[str | None], rule: Builder | None) -> bool | None:
    """Return whether dates such as 05/03/2024 begin with the month; None if both orders fit all texts.

    If the rule has an order, this order is used.
    """
    rule_order = (rule or _AS_IS).months_first()
    return dates.begins_with_month([text for text in texts if text]) if rule_order is None else rule_order


def check_readable(
    column: ReleasedColumn,
    labels: Sequence[Meaning],
    values: ValueIndex,
    rule_labels: Sequence[Iterable[str]],
    compatible: Compatible,
    notes: list[str],
) -> bool:
    """Add a note if known values match no record, and return whether at least one value could be read.

    Empty values match every record, so they do not prove that a value was read.
    """
    specific_labels = [label for label in labels if not label.everything]
    known = int((~values.everything).sum())
    if not specific_labels or not known:
        return True
    unmatched = (np.diff(compatible.starts) == 0) & ~values.everything
    unread = int((unmatched & ~_is_read(column, specific_labels, values, rule_labels)).sum())
    if unread:
        unread_text = plural(unread, "known value")
        match = "matches" if unread == 1 else "match"
        notes.append(
            f"{unread_text} of {column.name!r} could not be read and {match} no record. Write values as in "
            "the table that was released; dates also as 2024-03-05, numbers as 36.6."
        )
    elif 2 * (unmatched_values := int(unmatched.sum())) >= known:
        notes.append(
            f"{unmatched_values:,} of {plural(known, 'known value')} of {column.name!r} match no record by "
            "that column alone. Does the release write them in another way?"
        )
    return unread < known


def _is_read(
    column: ReleasedColumn, labels: Sequence[Meaning], values: ValueIndex, of_rule: Sequence[Iterable[str]]
) -> BoolArray:
    """Return which values could be read: those on a scale or with labels; all, if neither applies."""
    rule = column.reader.rule
    if rule is not None and rule.scale:
        return values.on_scales()
    if rule is not None and rule.listed():
        return np.array([any(True for _ in names) for names in of_rule] or [False] * len(values.everything))
    if rule is not None or not all(label.spans for label in labels):
        return np.ones(len(values.everything), np.bool_)
    return values.on_scales({span.scale for label in labels for span in label.spans})


_NOTHING = np.empty(0, np.int64)
_MOST_PAIRS = 200_000_000  # maximum number of pairs of a label and a value in memory
# If the release contains at least this share of the known values, unreadable labels count as values.
_UNCHANGED_SHARE = 0.5


def resolve_unread(
    labels: Sequence[Meaning], values: ValueIndex, *, rule: bool
) -> tuple[list[Meaning], int, int]:
    """Give unread labels a meaning; also return how many of them cover everything, and how many are values.

    A label that equals a known value is that value. If there is no hierarchy and most known values are in the
    release unchanged, the other labels are values that no known person has. Otherwise they cover every value.
    """
    known = values.texts.keys()
    shown = known & {text for label in labels for text in label.texts}
    as_values = not rule and bool(known) and len(shown) >= _UNCHANGED_SHARE * len(known)
    unread_labels = [not label.understood and not label.texts & known for label in labels]
    meanings = [
        EVERYTHING if unread and not as_values else label
        for unread, label in zip(unread_labels, labels, strict=True)
    ]
    number = sum(unread_labels)
    return meanings, 0 if as_values else number, number if as_values else 0


def labels_by_rule(rule: Builder, texts: Sequence[str | None]) -> list[set[str]]:
    """Return the labels that a hierarchy gives each known value; an empty set for a value without labels."""
    known = [text for text in texts if text is not None and not rule.is_unknown(text)]
    labels_by_text: dict[str, set[str]] = {text: set() for text in known}
    for style in rule.styles():
        for text, labels in zip(known, style.labels(known), strict=True):
            labels_by_text[text].update(labels or ())
    return [labels_by_text.get(text or "", set()) for text in texts]


def match_column(
    column: ReleasedColumn,
    label_texts: Sequence[tuple[str | None, ...]],
    texts: Sequence[str | None],
    notes: list[str],
) -> tuple[Compatible, bool]:
    """Pair a column's labels with known values, and return whether some known value could be read.

    A note is added for labels and values that could not be read.
    """
    if MISSING in texts:  # a known value is the text "missing", so the label "missing" is not a null
        column = replace(column, reader=replace(column.reader, as_is=True))
    rule = column.reader.rule
    labels, values, written = _read(column, label_texts, texts, notes)
    labels, unread, as_is = resolve_unread(labels, values, rule=rule is not None)
    if unread:
        help_ = " Give the policy or the recipe." if rule is None else ""
        notes.append(
            f"{_labels(unread)} of {column.name!r} could not be read and may cover any value.{help_}"
        )
    if as_is:
        notes.append(
            f"{_labels(as_is)} of {column.name!r} equal no known value and were taken for values that no "
            "known person has. Give the policy or the recipe if they may be groups."
        )
    rule_labels = labels_by_rule(rule, written) if rule is not None and len(column.parts) == 1 else ()
    if isinstance(rule, Prefix):  # the rule labels each code: 1* excludes codes with their own group
        labels = [replace(label, prefixes=()) if _is_rule_label(rule, label) else label for label in labels]
    compatible = match_labels(column.name, labels, values, rule_labels)
    return compatible, check_readable(column, labels, values, rule_labels, compatible, notes)


def _read(
    column: ReleasedColumn,
    label_texts: Sequence[tuple[str | None, ...]],
    texts: Sequence[str | None],
    notes: list[str],
) -> tuple[list[Meaning], ValueIndex, list[str | None]]:
    """Read the labels and the known values of a column; also return the values in the rule's notation."""
    reader = column.reader
    shown = [texts_of_label[0] for texts_of_label in label_texts] if len(column.parts) == 1 else []
    rule = reader.rule
    first = months_first_in([*shown, *texts], rule)
    known = rewritten_texts(texts, rule, months_first=bool(first))
    if first is None and any("/" in text for text in known):
        notes.append(f"Dates of {column.name!r} may begin with the day or the month; the day was taken.")
    rewritten_labels = dict(rewritten_texts(shown, rule, months_first=bool(first)))
    if rule is None:  # the form of the labels shows the decimal sign
        rewritten_labels |= {
            a: b for a, b in zip(shown, with_point(shown), strict=True) if a and b and a != b
        }
    labels = column.meanings(label_texts, rewritten_labels)
    values = ValueIndex.of_texts(texts, reader, known)
    written = [None if text is None else known.get(text, text) for text in texts]
    return labels, values, written


def _is_rule_label(rule: Prefix, label: Meaning) -> bool:
    """Return whether the rule makes a label: that of a group, or a prefix of a length that the rule keeps."""
    if rule.together and rule.label in label.texts:
        return True
    return any(len(prefix) in rule.prefix and prefix + TOP in label.texts for prefix in label.prefixes)


def _labels(number: int) -> str:
    return "1 label" if number == 1 else f"{number:,} labels"


def match_labels(
    name: str, labels: Sequence[Meaning], values: ValueIndex, more: Sequence[Iterable[str]] = ()
) -> Compatible:
    """Pair labels with values; `more` holds the labels that a hierarchy gives each value."""
    values_by_label: dict[str, list[int]] = {}
    for value, extra in enumerate(more):
        for text in extra:
            values_by_label.setdefault(text, []).append(value)
    everything = np.array([label.everything for label in labels], np.bool_)
    pieces: list[IntArray] = []
    total = 0
    for label in labels:
        matches = _NOTHING if label.everything else values.compatible(label, values_by_label)
        total += len(matches)
        if total > _MOST_PAIRS:
            raise DataError(
                f"Column {name!r} has too many labels for too many values. Round its known values."
            )
        pieces.append(matches)
    owners = np.concatenate(pieces) if pieces else _NOTHING
    label_codes = np.repeat(np.arange(len(labels)), [len(piece) for piece in pieces])
    order = np.argsort(owners, kind="stable")  # so that labels ascend within a value
    starts = np.append(0, np.cumsum(np.bincount(owners, minlength=len(values.everything)))).astype(np.int64)
    return Compatible(everything, values.everything, starts, label_codes[order])
