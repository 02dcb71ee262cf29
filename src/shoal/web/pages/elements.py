"""HTML elements of the pages: fields with a label and an error line, forms, messages, cards and tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.document.document import Code, Document, Table, without_markup
from shoal.errors import ShoalError
from shoal.wording import percent

OnText = Callable[[str], Any]
# Vue sets the prop `value` again at every rendering, which would discard text typed since the last event. Vue
# sets the DOM property `.value` only when the studio changes it. Values from the browser are not sent back.
_FIELD_VALUE = ".value"
_HTML = ".innerHTML"
_VALUE = "(event) => emit(event.target.value)"
_CHECKED = "(event) => emit(event.target.checked)"
_CHECKED_VALUES = "(event) => emit([...event.currentTarget.querySelectorAll(':checked')].map((e) => e.value))"
_NUMBER = "(event) => emit(Number(event.target.value))"
T = TypeVar("T")


def tag(name: str, text: str = "", classes: str = "", **props: Any) -> TextElement:
    """Add an element with a text."""
    element = TextElement(tag=name, text=text)
    _set_props(element, props)
    return element.classes(classes) if classes else element


def box(classes: str, name: str = "div", **props: Any) -> Element:
    """Add an element that contains others."""
    element = ui.element(name).classes(classes)
    _set_props(element, props)
    return element


def _set_props(element: Element, props: Mapping[str, Any]) -> None:
    element._props.update({key.rstrip("_").replace("_", "-"): value for key, value in props.items()})


def note(text: str) -> TextElement:
    """Add a paragraph in small, muted letters."""
    return tag("p", text, "muted small")


def card(title: str = "", description: str = "", **props: Any) -> Element:
    """Add a card, with a heading and a line below it."""
    element = box("card", "section", **props)
    if title:
        with element, box("tight"):
            tag("h2", title)
            if description:
                note(description)
    return element


def empty_card(text: str, title: str = "") -> Element:
    """Add a card that says why there is nothing to show."""
    element = box("card empty")
    with element:
        if title:
            tag("h2", title)
        tag("p", text, "muted")
    return element


@contextmanager
def details(
    summary: str, classes: str = "", body: str = "tight", *, is_open: bool = False, **props: Any
) -> Iterator[Element]:
    """Add a collapsed part, which a user can open. Elements added in the block go into the part's body."""
    with box(classes, "details", **({"open": True} if is_open else {}), **props) as part:
        tag("summary", summary)
        with box(body, style="padding-top: 8px"):
            yield part


def button(text: str, on_click: Callable[..., Any], classes: str = "", **props: Any) -> TextElement:
    """Add a button."""
    element = tag("button", text, f"btn {classes}", type="button", **props)
    element.on("click", lambda _: on_click(), args=[])
    return element


def tile(value: str, label: str, note: str = "") -> None:
    """Add a number with its label."""
    with box("tile"):
        tag("span", label, "muted small")
        tag("b", value, "num")
        if note:
            tag("span", note, "muted small")


def gauge(label: str, name: str, value: float, threshold: float) -> None:
    """Add a bar from 0 to 100% with a mark at the threshold. The text beside the bar has both numbers."""
    above = value > threshold
    text = f"{percent(value)}, {'above' if above else 'within'} {percent(threshold)}"
    with box("gauge"):
        tag("span", name, "muted small")
        ends: dict[str, Any] = {"aria_valuemin": 0, "aria_valuemax": 100}
        ends["aria_valuenow"] = round(value * 100, 2)
        with box("scale", role="meter", aria_label=label, aria_valuetext=text, **ends):
            box("over" if above else "", style=f"width: {min(value, 1) * 100:.2f}%")
            box("mark", style=f"left: {min(threshold, 1) * 100:.2f}%")
        tag("span", text, f"small num {'bad' if above else 'good'}")


def message(text: str, kind: str = "") -> TextElement:
    """Add a message. `kind` is bad, warn, good or empty."""
    return tag("div", text, f"message {kind}", role="alert" if kind == "bad" else "status")


def error_line() -> TextElement:
    """Add an empty line for the error of a field."""
    return tag("div", "", "error", role="alert")


def set_error(line: TextElement, text: str | None, field: Element | None = None) -> None:
    """Show an error below its field, or remove it."""
    line.set_text(text or "")
    if field is not None:
        field._props["aria-invalid"] = "true" if text else "false"
        field.update()


class TextField:
    """A text field and the line of its error."""

    def __init__(self, element: Element, line: TextElement) -> None:
        self.element, self.line = element, line

    def set_error(self, text: str | None) -> None:
        """Show an error below the field, or remove it."""
        set_error(self.line, text, self.element)


def show_at_fields(fields: Mapping[str, TextField], error: ShoalError | None) -> None:
    """Show an error at its field, and clear the errors of all other fields."""
    for name, field in fields.items():
        field.set_error(str(error) if error is not None and error.field == name else None)


def text_field(
    label: str,
    value: Any,
    on_text: OnText,
    *,
    area: bool = False,
    wait: float | None = 0.25,
    **props: Any,
) -> TextField:
    """Add a text field.

    `on_text` is called after a short delay while the user types, and when the field loses focus. A click on a
    button therefore uses the typed text. With `wait=None`, it is called only when the field loses focus.
    """
    with box("field"):
        with box("field", "label"):
            tag("span", label)
            element = box("in", "textarea" if area else "input", **{_FIELD_VALUE: str(value)}, **props)
            if not area:
                element._props["type"] = "text"
        line = error_line()

    def changed(event: Any) -> Any:
        if str(event.args) == element._props[_FIELD_VALUE]:  # reported when the field lost focus
            return None
        with element._props.suspend_updates():
            element._props[_FIELD_VALUE] = str(event.args)
        return on_text(str(event.args))

    if wait is not None:
        element.on("input", changed, js_handler=_VALUE, throttle=wait, leading_events=False)
    element.on("change", changed, js_handler=_VALUE)
    return TextField(element, line)


class Form:
    """Fields by name. Their values are stored in `values`."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self.fields: dict[str, TextField] = {}

    def text(self, name: str, label: str, width: int | None = 170, **props: Any) -> None:
        with box("", style=f"width: {width}px" if width else ""):
            self.fields[name] = text_field(
                label, self.values[name], lambda text: self.values.update({name: text}), **props
            )

    def select(self, name: str, label: str, options: Mapping[str, str] | Sequence[str], width: int) -> None:
        """Add a select. If its value is no longer one of the options, the first option is chosen."""
        if self.values[name] not in options:
            self.values[name] = next(iter(options))
        with box("", style=f"width: {width}px"):
            select(label, options, self.values[name], lambda value: self.values.update({name: value}))

    def show_errors(self, errors: Mapping[str, str | None]) -> None:
        """Show errors below their fields, and clear the errors of all other fields."""
        for name, field in self.fields.items():
            field.set_error(errors.get(name))


def select(
    label: str,
    options: Mapping[str, str] | Iterable[str],
    value: str,
    on_change: OnText,
    *,
    show_label: bool = True,
) -> Element:
    """Add a select; `on_change` gets the key of the chosen option."""
    with box("field", "label"):
        tag("span", label, "" if show_label else "hidden-label")
        return bare_select(options, value, on_change, aria_label=label)


def bare_select(
    options: Mapping[str, str] | Iterable[str], value: str, on_change: OnText, **props: Any
) -> Element:
    """Add a select without a label."""
    texts = options if isinstance(options, Mapping) else {option: option for option in options}
    element = box("", "select", **{_FIELD_VALUE: value}, **props)
    with element:
        for key, text in texts.items():
            tag("option", text, value=key)
    _listen(element, "change", _FIELD_VALUE, str, on_change, _VALUE)
    return element


def checkbox(label: str, value: bool, on_change: Callable[[bool], Any], description: str = "") -> None:
    """Add a checkbox."""
    with box("check", "label", title=description):
        element = box("", "input", type="checkbox", checked=value)
        tag("span", label)
    _listen(element, "change", "checked", bool, on_change, _CHECKED)


def choices(
    label: str, names: Sequence[str], chosen: Sequence[str], on_change: Callable[[list[str]], Any]
) -> TextField:
    """Add a list of names with checkboxes. `on_change` gets the checked names in the order of the list.

    The list is a single element, for any number of names.
    """
    on = set(chosen)
    items = "".join(
        f'<label class="choice" title="{html.escape(name)}"><input type="checkbox" value="{number}"'
        f"{' checked' if name in on else ''}><span>{html.escape(name)}</span></label>"
        for number, name in enumerate(names)
    )
    tag("h3", label)
    element = ui.html(items, sanitize=False).classes("choices")
    _set_props(element, {"role": "group", "aria_label": label})
    line = error_line()

    def changed(event: Any) -> Any:
        return on_change([names[int(number)] for number in event.args])

    element.on("change", changed, js_handler=_CHECKED_VALUES)
    return TextField(element, line)


def set_html(element: Element, content: str) -> None:
    """Fill an element without children with HTML. Values of the table must be escaped in the HTML."""
    element._props[_HTML] = content
    element.update()


def segments(label: str, name: str, options: Sequence[str], value: str) -> str:
    """Return the HTML of a radio group drawn as coloured segments. `name` is that of the radio buttons."""
    radios = "".join(
        f'<label class="segment {option}"><input type="radio" name="{html.escape(name)}" '
        f'value="{option}"{" checked" if option == value else ""}><span>{option}</span></label>'
        for option in options
    )
    return f'<div class="segments" role="radiogroup" aria-label="{html.escape(label)}">{radios}</div>'


def bars(counts: Sequence[int], text: str) -> str:
    """Return a small histogram as SVG. The text describes it for screen readers."""
    top, width = max(counts, default=1) or 1, 96 / max(len(counts), 1)
    heights = [max(1.0, 22 * count / top) if count else 0.0 for count in counts]
    svg_bars = "".join(
        f'<rect x="{number * width:.1f}" y="{22 - height:.1f}" width="{max(width - 1, 1):.1f}" '
        f'height="{height:.1f}"/>'
        for number, height in enumerate(heights)
    )
    shown = html.escape(text)
    return f'<svg class="bars" width="96" height="22" role="img" aria-label="{shown}">{svg_bars}</svg>'


def slider(label: str, value: int, highest: int, on_change: Callable[[int], Any], lowest: int = 0) -> Element:
    """Add a slider. `on_change` gets each value while the slider moves."""
    ends = {"min": lowest, "max": highest}  # set before the value, because they limit it
    element = box("", "input", type="range", **ends, **{_FIELD_VALUE: value}, step=1, aria_label=label)
    _listen(element, "input", _FIELD_VALUE, int, on_change, _NUMBER, throttle=0.03)
    return element


def _listen(
    element: Element,
    event: str,
    prop: str,
    convert: Callable[[Any], T],
    on_change: Callable[[T], Any],
    script: str,
    **options: Any,
) -> None:
    """Call `on_change` with each new value of an element, and store the value as a prop of the element."""

    def changed(sent: Any) -> Any:
        value = convert(sent.args)
        with element._props.suspend_updates():
            element._props[prop] = value
        return on_change(value)

    element.on(event, changed, js_handler=script, **options)


def value_of(element: Element) -> Any:
    """Return the current value of a field, from the browser or from `set_value`."""
    return element._props[_FIELD_VALUE]


def set_value(element: Element, value: Any, text: str = "") -> None:
    """Change the value that a field shows. For a slider, screen readers read `text` as the value."""
    element._props[_FIELD_VALUE] = value
    if text:
        element._props["aria-valuetext"] = text
    element.update()
    element.client.run_javascript(f"const e = getHtmlElement({element.id}); if (e) e.value = {value!r};")


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    right: Iterable[int] = (),
    *,
    classes: str = "",
    row_classes: Mapping[int, str] | None = None,
    cell_classes: Mapping[tuple[int, int], str] | None = None,
) -> ui.html:
    """Add a table of texts. Columns in `right` are aligned to the right.

    With the class `rows`, each row becomes a list of labels and values in a narrow window.
    """
    aligned = set(right)

    def cell(name: str, column: int, value: Any, extra: str = "") -> str:
        kinds = " ".join(part for part in ("r" if column in aligned else "", extra) if part)
        text = html.escape(str(value))
        if name == "th":
            return f'<th class="{kinds}" scope="col">{text}</th>'
        label = html.escape(str(head[column])) if column < len(head) else ""
        return f'<td class="{kinds}" title="{text}" data-label="{label}">{text}</td>'

    top = "".join(cell("th", column, name) for column, name in enumerate(head))
    body = "".join(
        f'<tr class="{(row_classes or {}).get(number, "")}">'
        + "".join(
            cell("td", column, value, (cell_classes or {}).get((number, column), ""))
            for column, value in enumerate(row)
        )
        + "</tr>"
        for number, row in enumerate(rows)
    )
    text = f'<table class="t {classes}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return ui.html(text, sanitize=False).classes("scroll")


CellContent = str | Callable[[], Any]


def drawn_table(
    head: Sequence[str],
    rows: Iterable[tuple[Mapping[str, Any], Sequence[CellContent]]],
    right: Iterable[int] = (),
    *,
    classes: str = "",
) -> None:
    """Add a table whose rows have attributes, and whose cells are texts or functions that draw them."""
    kinds = dict.fromkeys(right, "r")
    with box(f"t fit small rows wide-result {classes}", "table"):
        with box("", "thead"), box("", "tr"):
            for column, name in enumerate(head):
                tag("th", name, kinds.get(column, ""), scope="col")
        with box("", "tbody"):
            for props, cells in rows:
                with box("", "tr", **props):
                    for column, (name, cell) in enumerate(zip(head, cells, strict=True)):
                        if isinstance(cell, str):
                            tag("td", cell, kinds.get(column, ""), data_label=name)
                            continue
                        with box("", "td", data_label=name):
                            cell()


def document_table(content: Table) -> None:
    """Add a table of a document, with the note below it."""
    right = set(range(len(content.headers))) - set(content.left)
    rows = [tuple(map(without_markup, row)) for row in content.rows]
    table([without_markup(header) for header in content.headers], rows, right)
    if content.omitted:
        note(f"and {content.omitted:,} more")
    if content.note:
        note(without_markup(content.note))


def show_document(content: Document) -> None:
    """Show a result: its verdict or title, facts, tables and notes."""
    if content.verdict:
        message(content.verdict.text, content.verdict.tone)
    else:
        tag("h3", without_markup(content.title))
    if content.facts:
        table(
            (),
            [(without_markup(fact.label), without_markup(fact.value)) for fact in content.facts],
            classes="facts",
        )
    for part in content.tables:
        tag("h3", without_markup(part.title))
        document_table(part)
    for text in content.notes:
        if isinstance(text, Code):
            tag("pre", text, "code scroll small")
        else:
            note(without_markup(text))


def upload_button(
    label: str,
    on_upload: Callable[[Any], Any],
    max_bytes: int,
    classes: str = "",
    *,
    accept: str = "",
    title: str = "",
    **options: Any,
) -> ui.upload:
    """Add a button that opens a file dialog, and the hidden upload that sends the chosen files."""
    received = "on_multi_upload" if options.get("multiple") else "on_upload"
    options |= {received: on_upload, "max_file_size": max_bytes, "auto_upload": True}
    upload = ui.upload(**options)
    if accept:
        upload.props(f"accept={accept}")
    choose = tag("button", label, f"btn {classes}", type="button", title=title)
    choose.on("click", js_handler=f"() => getHtmlElement({upload.id}).querySelector('[type=file]').click()")
    return upload


def parse_value(text: str) -> int | float | str | None:
    """Parse the number in a text field. Other text is returned unchanged, and None for empty text.

    >>> parse_value(" 12 "), parse_value("2.5"), parse_value("5%"), parse_value(" "), parse_value("\u00b2")
    (12, 2.5, '5%', None, '\u00b2')
    """
    text = text.strip()
    if parse_whole(text) is not None:
        return int(text)
    try:
        return float(text) if text.isascii() else text
    except ValueError:
        return text or None


def parse_whole(text: str) -> int | None:
    """Parse a whole number of at most 9 digits. Return None for anything else.

    >>> parse_whole(" 12 "), parse_whole("\u00b2"), parse_whole("-3"), parse_whole("9" * 5000)
    (12, None, None, None)
    """
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= 9 else None


def parse_limit(text: str) -> int | str:
    """Parse a suppression limit: a number of records, or the text of a share, which is parsed later.

    >>> parse_limit("25"), parse_limit(" 5% ")
    (25, '5%')
    """
    records = parse_whole(text)
    return text.strip() if records is None else records
