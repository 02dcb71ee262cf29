"""Unread: known values that nothing in a release can be held against, for which no match proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.attacking.meaning import Meaning
from shoal.attacking.released import Shown
from shoal.core.calendar import Dates, Times
from shoal.core.linking import Compatible
from shoal.core.listed import Listed, Order
from shoal.core.numbers import Banded
from shoal.errors import so_many


def told_apart(
    one: Shown,
    labels: Sequence[Meaning],
    values: Sequence[Meaning],
    more: Sequence[Iterable[str]],
    found: Compatible,
    notes: list[str],
) -> bool:
    """Note known values of a column that match no record; tell whether some value could be read.

    Empty cells match anything, and are no sign that a value was read.
    """
    told = [label for label in labels if not label.everything]
    known = [place for place, value in enumerate(values) if not value.everything]
    if not told or not known:
        return True
    alone = [place for place in known if found.starts[place] == found.starts[place + 1]]
    unread = [place for place in alone if not _read(one, told, values[place], more[place] if more else ())]
    if unread:
        many = so_many(len(unread), "known value")
        match = "matches" if len(unread) == 1 else "match"
        notes.append(
            f"{many} of {one.name!r} could not be read and {match} no record. Write values as the table that "
            "was released does; dates also as 2024-03-05, numbers as 36.6."
        )
    elif 2 * len(alone) >= len(known):
        notes.append(
            f"{len(alone):,} of {so_many(len(known), 'known value')} of {one.name!r} match no record by that "
            "column alone. Are they written otherwise in the release?"
        )
    return len(unread) < len(known)


def _read(one: Shown, labels: Sequence[Meaning], value: Meaning, more: Iterable[str]) -> bool:
    """Tell whether a value that matches no record lies on a scale of its column, or is a word among words."""
    rule = one.reader.rule
    if isinstance(rule, Banded | Dates | Times | Order):
        return bool(value.spans)
    if isinstance(rule, Listed):
        return any(True for _ in more)
    if rule is not None or not all(label.spans for label in labels):
        return True
    scales = {span.scale for label in labels for span in label.spans}
    return any(span.scale in scales for span in value.spans)
