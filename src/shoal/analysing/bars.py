"""Bars: the labels of a column that are drawn, with their records before and after."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.analysing.columns import ColumnUtility, LabelRecords
from shoal.analysing.labels import NOTHING, Text, positions

OTHER = "(other)"
_NOWHERE = "(not released)"
_BARS = 12  # labels of a column that are drawn
_DRAWN = 0.25  # of the records, at least, must have one of them
_LONGEST = 34  # characters of a label

Bar = tuple[str, int | None, int]  # a label, the records before and after


def shown(label: Text) -> str:
    """Return a label as it is drawn: cut short where it is long."""
    words = "(missing)" if label is None else label
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}\u2026"


def number(value: float | None) -> str:
    """Write a number with the digits that matter, without an exponent where it is not huge.

    >>> number(12123.4), number(44.2345), number(0.00001), number(None)
    ('12,123', '44.23', '1e-05', '?')
    """
    if value is None:
        return "?"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:,.4g}"


def bars_of(column: ColumnUtility) -> list[Bar]:
    """Return the labels of a column to draw: at most twelve and the rest; none where that tells too little.

    Labels that have an order are put together, with their neighbours. What is missing, and each code for
    unknown, has a bar of its own.
    """
    known = [one for one in column.records if not one.unknown]
    found = [_bar(one) for one in known]
    apart = [_bar(one) for one in column.records if one.unknown]
    before, after = column.rest_before, column.rest_after
    if len(found) > _BARS and not after and positions([one.label for one in known]) is not None:
        step = -(-len(found) // _BARS)
        found = [_merged(found[start : start + step]) for start in range(0, len(found), step)]
    elif len(found) > _BARS:
        kept = set(sorted(range(len(found)), key=lambda place: -found[place][2])[:_BARS])
        others = [bar for place, bar in enumerate(found) if place not in kept]
        found = [bar for place, bar in enumerate(found) if place in kept]
        before = _sum([before, *(bar[1] for bar in others)])
        after += sum(bar[2] for bar in others)
        drawn = sum(bar[2] for bar in (*found, *apart))
        if drawn < _DRAWN * (drawn + after):
            return []
    found += apart
    if before or after:
        found.append((OTHER if after else _NOWHERE, before, after))
    return found


def _bar(one: LabelRecords) -> Bar:
    """Draw one label; a code for unknown is told to be one."""
    told = shown(one.label)
    return f"{told} (unknown)" if one.unknown and one.label not in NOTHING else told, one.before, one.after


def _merged(part: Sequence[Bar]) -> Bar:
    first, last = part[0][0], part[-1][0]
    label = first if len(part) == 1 else f"{first} \u2026 {last}"
    return label, _sum([bar[1] for bar in part]), sum(bar[2] for bar in part)


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(number or 0 for number in numbers)
