"""Block: what a notebook shows of a result; one calm piece of HTML, readable in light and in dark.

Its look is data/notebook.css, which takes the colours of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from shoal.core.markup import Html, tag

LONGEST = 60  # characters of a label
_MOST = 40  # rows of a table


def block(title: object, *content: object, kind: str | None = None) -> str:
    """Return a block of a title and what follows it; `kind` good or bad colours its edge."""
    named = " ".join(filter(None, ("shoal-block", kind)))
    parts = tag("style", _look()), tag("p", title, class_="title"), *content
    return str(tag("div", *parts, class_=named))


@cache
def _look() -> Html:
    return Html((files("shoal") / "data" / "notebook.css").read_text(encoding="utf-8"))


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return names with what is told of each, a line each."""
    return tag("dl", *[part for name, told in pairs for part in (tag("dt", name), tag("dd", told))])


def quiet(*words: object) -> Html:
    """Return a note."""
    return tag("p", *words, class_="quiet")


def first(rows: Sequence[Sequence[object]], most: int = _MOST) -> Sequence[Sequence[object]]:
    """Return as many rows as are shown; the last says how many are not.

    >>> first([("a", 1), ("b", 2), ("c", 3)], 2)
    [('a', 1), ('and 2 more', '')]
    """
    if len(rows) <= most:
        return rows
    more = (f"and {len(rows) - most + 1:,} more", *[""] * (len(rows[0]) - 1))
    return [*rows[: most - 1], more]


def cut(words: str, longest: int = LONGEST) -> str:
    """Return a label, cut short where it is long.

    >>> cut("north-west", 6)
    'north-…'
    """
    return words if len(words) <= longest else f"{words[:longest]}\N{HORIZONTAL ELLIPSIS}"
