"""The list of columns: their figures, roles and hierarchies, with a filter and bulk changes."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from nicegui import background_tasks
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.web.pages import elements
from shoal.web.pages.tab import TabView
from shoal.web.workspace.table import ROLES, ColumnAnswer, IdentifierAnswer
from shoal.wording import percent, plural

ROWS_PER_TURN = 10  # rows drawn before the task yields to other users
ROWS_PER_PAGE = 100  # a browser needs time for each row at every change
_FEW = 8  # with at most this many columns, there is no filter
_HEAD = (
    ("Column", ""), ("Values", "figure"), ("Distinct", "r figure"), ("Missing", "r figure"),
    ("Unique", "r figure"),
    ("Suggested", "figure"), ("Role", ""), ("Hierarchy", ""),
)  # fmt: skip


@dataclass
class _Row:
    """A drawn row.

    A row is one element that contains its cells as HTML, because the framework renders all elements of a page
    again when one of them changes. Scripts change single cells later, so that the focus stays.
    """

    element: Element
    has_values: bool
    choices: int = 0  # number of the user's choices in this row that have been applied


class ColumnRows:
    """The rows of the list. A few are drawn at a time, so that many columns do not block other users."""

    def __init__(
        self,
        tab: TabView,
        choose_role: Callable[[str, str, Callable[[], None]], Any],
        choose_column: Callable[[str], Any],
        choose_roles: Callable[[Sequence[str], str], Any],
    ) -> None:
        self.tab, self.choose_role, self.choose_column = tab, choose_role, choose_column
        self.choose_roles = choose_roles
        self.names: Sequence[str] = tab.workspace.table.loaded.names  # names that pass the filter
        self.start = 0  # position of the first column of the page
        self.rows: dict[str, _Row] = {}
        self.shown: dict[str, tuple[ColumnAnswer, bool]] = {}
        self.update_number = 0  # a new update cancels the previous one
        self.range_text: TextElement | None = None
        if len(self.names) > _FEW:
            self._filter()
        with elements.box("t columns", "table"):
            with elements.box("", "thead"), elements.box("", "tr"):
                for name, classes in _HEAD:
                    elements.tag("th", name, classes, scope="col")
            self.body = elements.box("", "tbody")
            self.body.on("change", self.choose, js_handler="(event) => studio.chooseInRow(event, emit)")
            self.body.on("click", self.choose, js_handler="(event) => studio.pressInRow(event, emit)")
        self._page_buttons()
        self.update()

    def _filter(self) -> None:
        with elements.box("line filter"):
            with elements.box("grow"):
                hint = "part of a name, a type or a role"
                elements.text_field("Show columns with", "", self.set_filter, placeholder=hint)
            with elements.box("field", "label", style="width: 190px"):
                self.bulk_label = elements.tag("span", self._bulk_label())
                options = {"": "choose a role"} | {role: role for role in ROLES}
                self.bulk = elements.bare_select(options, "", self.set_roles)

    def _bulk_label(self) -> str:
        shows_all = len(self.names) == len(self.tab.workspace.table.loaded.names)
        return f"Role of all {len(self.names):,} {'columns' if shows_all else 'that match'}"

    def set_filter(self, text: str) -> None:
        """Show the columns whose name, type or role contains a text."""
        part = text.strip().casefold()
        self.names = [
            row.column
            for row in self.tab.workspace.table.rows()
            if any(part in value.casefold() for value in (row.column, row.kind, row.role))
        ]
        self.bulk_label.set_text(self._bulk_label())
        self.show_page(0)

    async def set_roles(self, role: str) -> None:
        """Give all columns that pass the filter the same role."""
        elements.set_value(self.bulk, "")
        if role and self.names:
            await self.choose_roles(self.names, role)

    def _page_buttons(self) -> None:
        if len(self.names) <= ROWS_PER_PAGE:
            return
        with elements.box("line", style="padding: 8px"):
            elements.button("Previous", lambda: self.turn(-ROWS_PER_PAGE), "small")
            self.range_text = elements.tag("span", self.range_label(), "muted small num")
            elements.button("Next", lambda: self.turn(ROWS_PER_PAGE), "small")

    def range_label(self) -> str:
        count = len(self.names)
        first, last = min(count, self.start + 1), min(count, self.start + ROWS_PER_PAGE)
        return f"Columns {first:,} to {last:,} of {count:,}"

    def turn(self, step: int) -> None:
        start = self.start + step
        if 0 <= start < len(self.names):
            self.show_page(start)

    def show_page(self, start: int) -> None:
        self.start = start
        if self.range_text is not None:
            self.range_text.set_text(self.range_label())
        self.rows.clear()
        self.shown.clear()
        self.body.clear()
        self.update()

    def choose(self, event: Any) -> Any:
        """Set the role of the column of a row. If the event has no role, select the column."""
        column, role, choices = event.args
        row = self.rows.get(column)
        if row is None:
            return None

        def count() -> None:
            row.choices = choices

        return self.choose_role(column, role, count) if role else self.choose_column(column)

    def update(self) -> None:
        """Draw the rows that changed: the first few now, the rest in the background."""
        self.update_number += 1
        columns = self.tab.workspace.table.rows(self.names[self.start : self.start + ROWS_PER_PAGE])
        changed = [row for row in columns if self.shown.get(row.column) != self.state(row)]
        self.draw(changed[:ROWS_PER_TURN])
        remaining = changed[ROWS_PER_TURN:]
        background_tasks.create(self.draw_rest(remaining, self.update_number), name="rows")

    async def draw_rest(self, rows: Sequence[ColumnAnswer], update_number: int) -> None:
        """Draw rows in batches, with pauses for other users in between. Then add the value summaries."""
        for start in range(0, len(rows), ROWS_PER_TURN):
            await asyncio.sleep(0)
            if self.update_number != update_number or self.body.is_deleted:
                return
            self.draw(rows[start : start + ROWS_PER_TURN])
        without_values = {name: row for name, row in self.rows.items() if not row.has_values}
        await anyio.to_thread.run_sync(self.summarize, list(without_values))
        if self.update_number == update_number and not self.body.is_deleted:
            cells = []
            for name, row in without_values.items():
                cells.append((row.element.id, self.values_of(name)))
                row.has_values = True
            self.set_cells(".values", cells)

    def set_cells(self, selector: str, cells: Sequence[tuple[int, str]]) -> None:
        """Set the HTML of one cell in some rows. `cells` pairs the ID of a row's element with the HTML."""
        if cells:
            self.body.client.run_javascript(f"studio.setCells(...{json.dumps([selector, cells])})")

    def summarize(self, columns: Sequence[str]) -> None:
        """Summarize the values of columns. This takes time. The summaries are cached for the open table."""
        for name in columns:
            self.tab.workspace.table.summary(name)

    def values_of(self, column: str) -> str:
        """Return sample values and a small histogram as HTML; an empty string if there is no summary yet."""
        summary = self.tab.workspace.table.summaries.get(column)
        if summary is None:
            return ""
        text, samples = html.escape(summary.text), html.escape(", ".join(summary.samples))
        return (
            f'{elements.bars(summary.bars, summary.text)}<div class="samples" title="{text}">{samples}</div>'
        )

    def state(self, row: ColumnAnswer) -> tuple[ColumnAnswer, bool]:
        return row, row.column == self.tab.state.column

    def draw(self, rows: Sequence[ColumnAnswer]) -> None:
        """Draw rows. In existing rows, replace only the cells that can change, so that the focus stays."""
        hierarchies = []
        for row in rows:
            existing = self.rows.get(row.column)
            chosen = row.column == self.tab.state.column
            if existing is None:
                values = self.values_of(row.column)
                with self.body:
                    element = elements.box("", "tr", data_column=row.column)
                    elements.set_html(element, _cells(row, values, chosen))
                existing = self.rows[row.column] = _Row(element, bool(values))
            else:
                hierarchies.append((existing.element.id, _hierarchy(row, chosen)))
                arguments = json.dumps([existing.element.id, row.role, existing.choices])
                self.body.client.run_javascript(f"studio.showRole(...{arguments})")
            self.shown[row.column] = self.state(row)
            existing.element.classes(replace="on" if chosen else "")
        self.set_cells(".hierarchy", hierarchies)


def _cells(row: ColumnAnswer, values: str, chosen: bool) -> str:
    """Return the cells of a row as HTML. The names of columns come from the table and are escaped."""
    name, kind = html.escape(row.column), html.escape(row.kind)
    suggested, reason = html.escape(row.suggested_role), html.escape(row.reason)
    mark = _identifier_mark(row.identifier) if row.identifier else ""
    role = elements.segments(f"Role of {row.column}", f"role of {row.column}", ROLES, row.role)
    return (
        f'<td><div class="name" title="{name}">{name}</div>'
        f'<div class="nowrap small"><span class="muted">{kind}</span>{mark}</div></td>'
        f'<td class="figure values">{values}</td>'
        f'<td class="r figure">{row.distinct:,}</td>'
        f'<td class="r figure">{f"{row.missing:,}" if row.missing else "&ndash;"}</td>'
        f'<td class="r figure">{percent(row.unique_share)}</td>'
        f'<td class="small reason figure" title="{suggested}: {reason}">'
        f'<div>{suggested}</div><div class="muted">{reason}</div></td>'
        f'<td class="role">{role}</td>'
        f'<td class="nowrap hierarchy">{_hierarchy(row, chosen)}</td>'
    )


def _hierarchy(row: ColumnAnswer, chosen: bool) -> str:
    """Return the button of a column's hierarchy as HTML; an empty string for other roles."""
    if row.role != "quasi-identifier":
        return ""
    text = "does not fit" if row.problem else plural((row.height or 0) + 1, "level")
    classes = f"btn small {'bad' if row.problem else ''} {'chosen' if chosen else ''}"
    label = html.escape(f"Hierarchy of {row.column}: {text}")
    return f'<button type="button" class="{classes}" aria-label="{label}">{text}</button>'


def _identifier_mark(identifier: IdentifierAnswer) -> str:
    """Mark a column that may be one of the 18 Safe Harbor identifiers. The tooltip gives the reason."""
    text = html.escape(f"HIPAA ({identifier.letter}) {identifier.title}: {identifier.reason}")
    letter = html.escape(identifier.letter)
    return f'<span class="chip mark" title="{text}" aria-label="{text}" role="note">HIPAA {letter}</span>'
