"""Unread: known values that nothing in a release can be held against, for which no match proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.attacking.meaning import Meaning
from shoal.attacking.released import Shown
from shoal.attacking.values import Values
from shoal.core.arrays import BoolArray
from shoal.core.linking import Compatible
from shoal.errors import so_many


def told_apart(
    one: Shown,
    labels: Sequence[Meaning],
    values: Values,
    more: Sequence[Iterable[str]],
    found: Compatible,
    notes: list[str],
) -> bool:
    """Note known values of a column that match no record; tell whether some value could be read.

    Empty cells match anything, and are no sign that a value was read.
    """
    told = [label for label in labels if not label.everything]
    known = int((~values.everything).sum())
    if not told or not known:
        return True
    alone = (np.diff(found.starts) == 0) & ~values.everything
    unread = int((alone & ~_read(one, told, values, more)).sum())
    if unread:
        many = so_many(unread, "known value")
        match = "matches" if unread == 1 else "match"
        notes.append(
            f"{many} of {one.name!r} could not be read and {match} no record. Write values as the table that "
            "was released does; dates also as 2024-03-05, numbers as 36.6."
        )
    elif 2 * (lonely := int(alone.sum())) >= known:
        notes.append(
            f"{lonely:,} of {so_many(known, 'known value')} of {one.name!r} match no record by that "
            "column alone. Are they written otherwise in the release?"
        )
    return unread < known


def _read(one: Shown, labels: Sequence[Meaning], values: Values, more: Sequence[Iterable[str]]) -> BoolArray:
    """Tell which values that match no record lie on a scale of their column, or are words among words."""
    rule = one.reader.rule
    if rule is not None and rule.scale:
        return values.on()
    if rule is not None and rule.listed():
        return np.array([any(True for _ in own) for own in more] or [False] * len(values.everything))
    if rule is not None or not all(label.spans for label in labels):
        return np.ones(len(values.everything), np.bool_)
    return values.on({span.scale for label in labels for span in label.spans})
