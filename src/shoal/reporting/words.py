"""Small pieces that reports, notebooks and the studio share: names in a row, options, shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.core.markup import Html, joined, own, tag


def between(parts: Sequence[object], sign: str = ", ") -> list[object]:
    """Return parts with a sign between them.

    >>> between(["a", "b"])
    ['a', ', ', 'b']
    """
    return [part for one in parts for part in (sign, one)][1:]


def listed(names: Iterable[str]) -> Html:
    """Return names of the data's own in a row.

    >>> listed(["age", "sex"])
    '<bdi>age</bdi>, <bdi>sex</bdi>'
    """
    return joined(between([own(name) for name in names]))


def whole(words: str) -> Html:
    """Keep words on one line."""
    return tag("span", words, class_="whole")


def options_in_words(options: Mapping[str, object]) -> str:
    """Write the options of a plug-in.

    >>> options_in_words({"k": 1000, "t": 0.2})
    'k = 1,000, t = 0.2'
    """
    return ", ".join(f"{option} = {_value(value)}" for option, value in options.items())


def _value(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value)


def percent(share: float) -> str:
    """Write a share in percent; what is neither nothing nor all never looks like it.

    >>> [percent(share) for share in (0, 0.00012, 0.05, 1 / 3, 0.99999, 1)]
    ['0%', '0.012%', '5%', '33.3%', '99.9%', '100%']
    """
    if 0 < share < 0.001:
        return f"{100 * share:.2g}%"
    rounded = min(round(100 * share, 1), 99.9) if share < 1 else 100 * share
    return f"{rounded:.1f}".removesuffix(".0") + "%"


def of_records(number: int, records: int) -> str:
    """Write a number of records, and which share of all it is.

    >>> of_records(250, 5000)
    '250 of 5,000 records (5%)'
    """
    return f"{number:,} of {records:,} records ({percent(number / records)})"
