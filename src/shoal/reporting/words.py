"""Small pieces that reports and notebooks share: names in a row, options, and the first line of a plug-in."""

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
