"""Covering: of one column, which labels of a release could stand for which values, or labels of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from shoal.analysing.labels import with_point
from shoal.attacking.meaning import EVERYTHING, Meaning
from shoal.attacking.released import Shown
from shoal.attacking.unread import told_apart
from shoal.attacking.values import Values
from shoal.attacking.writing import months_first_in, otherwise
from shoal.core.arrays import IntArray
from shoal.core.builder import Builder
from shoal.core.hierarchy import TOP
from shoal.core.linking import Compatible
from shoal.core.prefixes import Prefix
from shoal.errors import DataError

_NOTHING = np.empty(0, np.int64)
_MOST = 200_000_000  # pairs of a label and a value that are held
_SHARE = (
    0.5  # of the known values that a column shows as they are, above which its other words are values too
)


def settled(labels: Sequence[Meaning], values: Values, *, rule: bool) -> tuple[list[Meaning], int, int]:
    """Let words that were not understood cover everything; tell how many did, and how many are taken as is.

    A word that is a known value is that value. Where no hierarchy tells and most known values stand in the
    release as they are, other words are values that nobody known has.
    """
    known = values.texts.keys()
    shown = known & {text for label in labels for text in label.texts}
    plain = not rule and bool(known) and len(shown) >= _SHARE * len(known)
    strange = [not label.understood and not label.texts & known for label in labels]
    found = [EVERYTHING if odd and not plain else label for odd, label in zip(strange, labels, strict=True)]
    number = sum(strange)
    return found, 0 if plain else number, number if plain else 0


def by_rule(rule: Builder, texts: Sequence[str | None]) -> list[set[str]]:
    """Return the labels that a hierarchy gives each known value; none where it does not cover it."""
    known = [text for text in texts if text is not None and not rule.is_unknown(text)]
    found: dict[str, set[str]] = {text: set() for text in known}
    for style in rule.styles():
        for text, labels in zip(known, style.labels(known), strict=True):
            found[text].update(labels or ())
    return [found.get(text or "", set()) for text in texts]


def covered(
    one: Shown, looks: Sequence[tuple[str | None, ...]], texts: Sequence[str | None], notes: list[str]
) -> tuple[Compatible, bool]:
    """Pair a column's labels with known values, and tell whether some known value could be read.

    What was not understood is added to the notes.
    """
    rule = one.reader.rule
    labels, values, written = _read(one, looks, texts, notes)
    labels, unread, as_is = settled(labels, values, rule=rule is not None)
    if unread:
        help_ = " Give the policy or the recipe." if rule is None else ""
        notes.append(f"{_labels(unread)} of {one.name!r} could not be read and may cover any value.{help_}")
    if as_is:
        notes.append(
            f"{_labels(as_is)} of {one.name!r} equal no known value and were taken for values that nobody "
            "known has. Give the policy or the recipe where they may be groups."
        )
    more = by_rule(rule, written) if rule is not None and len(one.parts) == 1 else ()
    if isinstance(rule, Prefix):  # it gives each code its labels: 1* is not one that has a group of its own
        labels = [replace(label, stems=()) if _own(rule, label) else label for label in labels]
    found = covering(one.name, labels, values, more)
    return found, told_apart(one, labels, values, more, found, notes)


def _read(
    one: Shown, looks: Sequence[tuple[str | None, ...]], texts: Sequence[str | None], notes: list[str]
) -> tuple[list[Meaning], Values, list[str | None]]:
    """Read labels and known values, however each table writes them; and write the values as the rule does."""
    reader, shown = one.reader, [look[0] for look in looks if len(one.parts) == 1]
    rule = reader.rule
    first = months_first_in([*shown, *texts], rule)
    known = otherwise(texts, rule, months_first=bool(first))
    if first is None and any("/" in text for text in known):
        notes.append(f"Dates of {one.name!r} may begin with the day or the month; the day was taken.")
    there = dict(otherwise(shown, rule, months_first=bool(first)))
    if rule is None:  # whose decimal sign is told by the labels
        there |= {a: b for a, b in zip(shown, with_point(shown), strict=True) if a and b and a != b}
    labels = one.meanings(looks, there)
    values = Values.known(texts, reader, known)
    written = [None if text is None else known.get(text, text) for text in texts]
    return labels, values, written


def _own(rule: Prefix, label: Meaning) -> bool:
    """Tell whether the rule itself writes a label: a group, or as many characters as it keeps."""
    if rule.together and rule.label in label.texts:
        return True
    return any(len(stem) in rule.prefix and stem + TOP in label.texts for stem in label.stems)


def _labels(number: int) -> str:
    return "1 label" if number == 1 else f"{number:,} labels"


def covering(
    name: str, labels: Sequence[Meaning], values: Values, more: Sequence[Iterable[str]] = ()
) -> Compatible:
    """Pair labels with values; `more` are labels that a hierarchy gives each value."""
    given: dict[str, list[int]] = {}
    for value, extra in enumerate(more):
        for text in extra:
            given.setdefault(text, []).append(value)
    wild = np.array([label.everything for label in labels], np.bool_)
    pieces: list[IntArray] = []
    total = 0
    for label in labels:
        found = _NOTHING if label.everything else values.compatible(label, given)
        total += len(found)
        if total > _MOST:
            message = f"Column {name!r} has too many labels for too many values. Round what is known of it."
            raise DataError(message)
        pieces.append(found)
    of = np.concatenate(pieces) if pieces else _NOTHING
    own = np.repeat(np.arange(len(labels)), [len(piece) for piece in pieces])
    order = np.argsort(of, kind="stable")  # labels ascend within a value
    starts = np.append(0, np.cumsum(np.bincount(of, minlength=len(values.everything)))).astype(np.int64)
    return Compatible(wild, values.everything, starts, own[order])
