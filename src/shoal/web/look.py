"""Small things that pages are made of: plain elements with a label, a place for an error, and tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

Taken = Callable[[str], Any]
_VALUE = "(event) => emit(event.target.value)"
_CHECKED = "(event) => emit(event.target.checked)"


def tag(name: str, text: str = "", classes: str = "", **props: Any) -> TextElement:
    """Make an element with a text."""
    made = TextElement(tag=name, text=text)
    made._props.update({key.rstrip("_").replace("_", "-"): value for key, value in props.items()})
    return made.classes(classes) if classes else made


def box(classes: str, name: str = "div", **props: Any) -> Element:
    """Make an element to put others in."""
    made = ui.element(name).classes(classes)
    made._props.update({key.rstrip("_").replace("_", "-"): value for key, value in props.items()})
    return made


def card(title: str = "", about: str = "") -> Element:
    """Make a card, with a heading and a line about it."""
    made = box("card", "section")
    if title:
        with made, box("tight"):
            tag("h2", title)
            if about:
                tag("p", about, "muted small")
    return made


def button(text: str, act: Callable[..., Any], classes: str = "", **props: Any) -> TextElement:
    """Make a button."""
    made = tag("button", text, f"btn {classes}", type="button", **props)
    made.on("click", lambda _: act(), args=[])
    return made


def tile(value: str, label: str, note: str = "") -> None:
    """Show one number with what it is."""
    with box("tile"):
        tag("span", label, "muted small")
        tag("b", value, "num")
        if note:
            tag("span", note, "muted small")


def told(text: str, kind: str = "") -> TextElement:
    """Say something in place."""
    return tag("div", text, f"told {kind}", role="alert" if kind == "bad" else "status")


def fault(element: TextElement, text: str | None, field: Element | None = None) -> None:
    """Put an error beside its field, or take it away."""
    element.set_text(text or "")
    if field is not None:
        field._props["aria-invalid"] = "true" if text else "false"
        field.update()


def no_fault() -> TextElement:
    """Make the place for an error beside a field."""
    return tag("div", "", "fault", role="alert")


def choice(
    label: str, options: Mapping[str, str] | Iterable[str], value: str, take: Taken, *, shown: bool = True
) -> Element:
    """Make a select with its label; `take` is given what is chosen."""
    named = options if isinstance(options, Mapping) else {one: one for one in options}
    with box("field", "label"):
        tag("span", label, "" if shown else "hidden-label")
        made = box("", "select", value=value)
        with made:
            for key, text in named.items():
                tag("option", text, value=key)

    def changed(event: Any) -> Any:
        made._props["value"] = str(event.args)
        return take(str(event.args))

    made.on("change", changed, js_handler=_VALUE)
    return made


def entry(
    label: str,
    value: Any,
    take: Taken,
    *,
    area: bool = False,
    wait: float = 0.25,
    **props: Any,
) -> tuple[Element, TextElement]:
    """Make a field with its label and the place for its error.

    `take` is given the text as it is typed, a little late, and at once where the field is left: so a press of
    a button acts on what is typed.
    """
    with box("field"):
        with box("field", "label"):
            tag("span", label)
            made = box("in", "textarea" if area else "input", value=str(value), **props)
            if not area:
                made._props["type"] = "text"
        wrong = no_fault()

    def changed(event: Any) -> Any:
        if str(event.args) == str(made._props["value"]):  # it was told when the field was left
            return None
        made._props["value"] = str(event.args)
        return take(str(event.args))

    made.on("input", changed, js_handler=_VALUE, throttle=wait, leading_events=False)
    made.on("change", changed, js_handler=_VALUE)
    return made, wrong


def check(label: str, value: bool, take: Callable[[bool], Any], note: str = "") -> Element:
    """Make a checkbox with its label."""
    with box("check", "label", title=note):
        made = box("", "input", type="checkbox", checked=value)
        tag("span", label)

    def changed(event: Any) -> Any:
        made._props["checked"] = bool(event.args)
        return take(bool(event.args))

    made.on("change", changed, js_handler=_CHECKED)
    return made


def slide(label: str, value: int, most: int, take: Callable[[int], Any], least: int = 0) -> Element:
    """Make a slider; `take` is given each value as it moves."""
    made = box("", "input", type="range", min=least, max=most, step=1, value=value, aria_label=label)

    def changed(event: Any) -> Any:
        made._props["value"] = int(event.args)
        return take(int(event.args))

    made.on("input", changed, js_handler="(event) => emit(Number(event.target.value))", throttle=0.03)
    return made


def put(element: Element, value: Any) -> None:
    """Set what a field shows."""
    element._props["value"] = value
    element.update()
    element.client.run_javascript(f"const e = getHtmlElement({element.id}); if (e) e.value = {value!r};")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    right: Iterable[int] = (),
    *,
    classes: str = "",
    marks: Mapping[int, str] | None = None,
    cells: Mapping[tuple[int, int], str] | None = None,
) -> ui.html:
    """Show a table of texts; `marks` are classes of rows, `cells` of cells."""
    ends = set(right)

    def cell(name: str, place: int, value: Any, more: str = "") -> str:
        kinds = " ".join(part for part in ("r" if place in ends else "", more) if part)
        text = html.escape(str(value))
        return f'<{name} class="{kinds}" title="{text if name == "td" else ""}">{text}</{name}>'

    top = "".join(cell("th", place, name) for place, name in enumerate(head))
    body = "".join(
        f'<tr class="{(marks or {}).get(number, "")}">'
        + "".join(cell("td", place, v, (cells or {}).get((number, place), "")) for place, v in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    text = f'<table class="t {classes}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return ui.html(text, sanitize=False).classes("scroll")


def picking(upload: ui.upload) -> str:
    """Return the script that lets one pick a file for a hidden upload."""
    return f"() => getHtmlElement({upload.id}).querySelector('input[type=file]').click()"


def whole(text: str) -> int | None:
    """Read a whole number as somebody types it; None for anything else, such as '\u00b2' or a billion.

    >>> whole(" 12 "), whole("\u00b2"), whole("-3"), whole("9" * 5000)
    (12, None, None, None)
    """
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= 9 else None


def seconds(text: str) -> float | None:
    """Read a bound on time: None where there is none, 0 where it makes no sense.

    >>> seconds(" "), seconds("2.5"), seconds("soon"), seconds("-1")
    (None, 2.5, 0.0, 0.0)
    """
    try:
        found = float(text) if text.strip() else None
    except ValueError:
        return 0.0
    return found if found is None or 0 < found <= 86_400 else 0.0
