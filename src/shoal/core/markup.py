"""Markup: elements of a page that escape what they hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape

_NOT_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"
)  # HTML and UTF-8 have no place for it
_VOID = ("meta", "rect", "line")  # those used here that hold nothing


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as text of a page; what is markup stays so."""
    if isinstance(value, Html):
        return value
    return Html(escape(_NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(value))))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; children and attributes are escaped, and `class_` is written class.

    >>> tag("p", "a < b", tag("b", "!"), class_='say "so"')
    '<p class="say &quot;so&quot;">a &lt; b<b>!</b></p>'
    """
    given = {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None
    }
    written = "".join(f' {key}="{text(value)}"' for key, value in given.items())
    if name in _VOID and not children:
        return Html(f"<{name}{written}{'' if name == 'meta' else '/'}>")
    return Html(f"<{name}{written}>{''.join(map(text, children))}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Put parts one after the other."""
    return Html("".join(map(text, parts)))


def own(name: object) -> Html:
    """Return a name or a label of the data's own, whose direction of writing stays within it."""
    return tag("bdi", name)


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Collection[int] = (),  # the columns of numbers, from 0
) -> Html:
    """Return a table whose rows begin with what they are about."""

    def side(column: int) -> str | None:
        return "number" if column in numbers else None

    head = [tag("th", heading, scope="col", class_=side(n)) for n, heading in enumerate(headings)]
    body = []
    for first, *others in rows:
        cells = [tag("td", cell, class_=side(n)) for n, cell in enumerate(others, 1)]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    narrow = "numbers" if len(numbers) == len(headings) - 1 else None
    parts = tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body)
    made = tag("table", *parts, class_=narrow)
    return tag("div", made, class_="wide", role="region", aria_label=caption, tabindex=0)
