"""The page of a report, made of elements that escape what they hold; its look is data/report.css."""

from __future__ import annotations

from importlib.resources import files

from shoal.core.markup import Html, tag


def page(title: str, *content: object) -> Html:
    """Return a page that loads nothing and runs nothing."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # A reader's browser refuses what should not be here, too.
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
