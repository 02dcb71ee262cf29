"""HTML: documents as blocks for a notebook, and elements that escape their content."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from shoal.document.document import Code, Document, Name, Table, Text, without_markup

_NOT_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"
)  # characters that HTML or UTF-8 cannot contain
_VOID = ("meta", "rect", "line")  # elements without content


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def text(value: object) -> Html:
    """Escape a value; markup is returned unchanged."""
    if isinstance(value, Html):
        return value
    return Html(escape(_NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(value))))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element with escaped children and attributes; write `class_` for the attribute class.

    >>> tag("p", "a < b", tag("b", "!"), class_='say "so"')
    '<p class="say &quot;so&quot;">a &lt; b<b>!</b></p>'
    """
    written_attributes = {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None
    }
    written = "".join(f' {key}="{text(value)}"' for key, value in written_attributes.items())
    if name in _VOID and not children:
        return Html(f"<{name}{written}{'' if name == 'meta' else '/'}>")
    return Html(f"<{name}{written}>{''.join(map(text, children))}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Concatenate escaped parts."""
    return Html("".join(map(text, parts)))


def isolated(name: object) -> Html:
    """Return a name or label of the data, with its writing direction isolated from the surrounding text."""
    return tag("bdi", name)


def table(
    caption: str,
    headings: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Collection[int] = (),  # indices of the columns that hold numbers
) -> Html:
    """Return a table whose first column is the header of each row."""

    def kind(column: int) -> str | None:
        return "number" if column in numbers else None

    head = [tag("th", heading, scope="col", class_=kind(n)) for n, heading in enumerate(headings)]
    body = []
    for first, *others in rows:
        cells = [tag("td", cell, class_=kind(n)) for n, cell in enumerate(others, 1)]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    narrow = "numbers" if len(numbers) == len(headings) - 1 else None
    parts = tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body)
    made = tag("table", *parts, class_=narrow)
    return tag("div", made, class_="wide", role="region", aria_label=caption, tabindex=0)


LONGEST = 60  # maximum number of characters of a label
_MOST_ROWS = 60


def render(document: Document) -> str:
    """Return a document as one block for a notebook."""
    headline = joined([*[f"{warning} " for warning in document.warnings], marked(document.headline)])
    pairs = ((_capitalized(fact.label), marked(fact.value)) for fact in document.facts)
    return block(
        headline,
        facts(pairs) if document.facts else "",
        *map(document_table, document.tables),
        *[quiet(marked(note)) for note in document.notes],
        *[quiet(marked(hint)) for hint in document.hints],
        kind=document.verdict.tone if document.verdict else None,
    )


def marked(value: Text) -> Html:
    """Return a text with its names isolated and its code marked."""
    parts = (value,) if isinstance(value, str) else value
    kinds = {Name: "bdi", Code: "code"}
    return joined(tag(kinds[type(part)], part) if type(part) in kinds else part for part in parts)


def _capitalized(label: Text) -> Html:
    """Begin a label with a capital letter, unless it begins with a name or a symbol such as k."""
    words = isinstance(label, str) and not isinstance(label, Name) and len(label.split(" ")[0]) > 2
    return text(f"{label[0].upper()}{label[1:]}") if words else marked(label)


def document_table(content: Table) -> Html:
    """Return a table of a document."""
    rows = [[marked(_cut(cell)) for cell in row] for row in content.rows]
    total = content.total or len(rows)
    if len(rows) > _MOST_ROWS or total > len(rows):
        shown = rows[: _MOST_ROWS - 1]
        rows = [*shown, [text(f"and {total - len(shown):,} more"), *[Html("")] * (len(content.headers) - 1)]]
    numbers = set(range(len(content.headers))) - set(content.left)
    headers = [_capitalized(header) for header in content.headers]
    made = table(without_markup(content.title), headers, rows, numbers=numbers)
    return joined([made, quiet(marked(content.note))]) if content.note else made


def _cut(cell: Text) -> Text:
    return Name(cut(cell)) if isinstance(cell, Name) else cell


def block(title: object, *content: object, kind: str | None = None) -> str:
    """Return a titled block; `kind` (good, warn, bad) colours its edge."""
    classes = " ".join(filter(None, ("shoal-block", kind)))
    parts = tag("style", _style_sheet()), tag("p", title, class_="title"), *content
    return str(tag("div", *parts, class_=classes))


@cache
def _style_sheet() -> Html:
    return Html((files("shoal") / "data" / "notebook.css").read_text(encoding="utf-8"))


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return labels and values, one pair per line."""
    return tag("dl", *[part for label, value in pairs for part in (tag("dt", label), tag("dd", value))])


def quiet(*words: object) -> Html:
    """Return a paragraph in a lighter colour."""
    return tag("p", *words, class_="quiet")


def first(rows: Sequence[Sequence[object]], most: int = _MOST_ROWS) -> Sequence[Sequence[object]]:
    """Return the first `most` rows. If rows are left out, add a row that says how many.

    >>> first([("a", 1), ("b", 2), ("c", 3)], 2)
    [('a', 1), ('and 2 more', '')]
    """
    if len(rows) <= most:
        return rows
    more = (f"and {len(rows) - most + 1:,} more", *[""] * (len(rows[0]) - 1))
    return [*rows[: most - 1], more]


def cut(words: str, longest: int = LONGEST) -> str:
    """Shorten a long label.

    >>> cut("north-west", 6)
    'north-…'
    """
    return words if len(words) <= longest else f"{words[:longest]}\N{HORIZONTAL ELLIPSIS}"


def page(title: str, *content: object) -> Html:
    """Return a page that loads no resources and runs no scripts; its style sheet is data/report.css."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # The browser then refuses scripts and external resources.
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'",
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html((files("shoal") / "data" / "report.css").read_text(encoding="utf-8"))),
    )
    body = tag("body", tag("main", *content))
    return Html(f"<!DOCTYPE html>\n{tag('html', head, Html(chr(10)), body, lang='en')}\n")
