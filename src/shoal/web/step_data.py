"""Step 1, data: a table, the role of each column, and the hierarchies."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import ShoalError
from shoal.web import look
from shoal.web.columns import ROLES
from shoal.web.editor import Editor
from shoal.web.room import Room, Worker
from shoal.web.shown import ColumnRow


def show(room: Room) -> None:
    """Show the step."""
    opened = room.desk.inspection is not None
    if opened and not room.seat.said.get("other table"):
        _Table(room)
    else:
        _source(room, opened=opened)


def _source(room: Room, *, opened: bool) -> None:
    """Offer the ways to a table."""
    desks = room.desks

    wrong: TextElement
    worker: Worker

    def begin(work: Any) -> None:
        look.fault(wrong, None)
        worker.start(work)

    def done(_: Any) -> None:
        room.seat.said.clear()
        room.seat.dials.clear()
        room.seat.column = None
        room.refresh()

    def back() -> None:
        room.seat.said.pop("other table", None)
        room.refresh()

    with look.card(
        "Choose a table",
        "A CSV, TSV, Parquet or Arrow file with one record per row. It stays on this machine.",
    ).classes("narrow"):
        with look.box("cards"):
            with look.box("offer"):
                look.tag("h3", "The sample")
                look.tag("p", "5,000 made-up hospital admissions, with roles and hierarchies.", "muted small")
                look.button("Open the sample", lambda: begin(room.desk.open_sample), "primary")
            with look.box("offer"):
                look.tag("h3", "A file of yours")
                limit = desks.upload_limit / (1 << 20)
                look.tag(
                    "p",
                    f"Up to {limit:,.0f} MiB, kept in a private folder until the studio ends.",
                    "muted small",
                )
                upload = _upload(room, begin, lambda text: look.fault(wrong, text))
                pick = look.tag("button", "Upload a file", "btn", type="button")
                pick.on("click", js_handler=look.picking(upload))
            if desks.folder is not None:
                with look.box("offer"):
                    _files(room, begin, lambda text: look.fault(wrong, text))
        wrong = look.no_fault()
        worker = Worker(room, "open", done)
        if not opened and room.desk.inspection is not None:  # opened just now
            ui.timer(0.01, lambda: done(None), once=True)
        if opened:
            with look.box("line"):
                look.button("Keep the present table", back, "plain")


def _upload(room: Room, begin: Any, refuse: Any) -> ui.upload:
    """Take an upload into the desk's private folder."""

    async def take(event: Any) -> None:
        desks, name = room.desks, room.seat.desk
        try:
            coming = desks.receive(name, event.file.name)
            with coming:
                async for piece in event.file.iterate():
                    await anyio.to_thread.run_sync(coming.write, piece)
        except ShoalError as error:
            refuse(str(error))
            return
        finally:
            made.reset()
        begin(lambda tell: desks.place(name, coming.path, coming.name, tell))

    made = ui.upload(
        on_upload=take,
        on_rejected=lambda: refuse(f"The file is larger than {room.desks.upload_limit:,} bytes, the limit."),
        max_file_size=room.desks.upload_limit,
        auto_upload=True,
    )
    return made


def _files(room: Room, begin: Any, refuse: Any) -> None:
    """Offer the tables below the given folder."""
    tables = [file.name for file in room.desks.tables()]
    look.tag("h3", "A file below the folder")
    if not tables:
        look.tag("p", "There is no table there.", "muted small")
        return
    chosen = {"name": tables[0]}
    look.choice("File", tables, tables[0], lambda name: chosen.update(name=name), shown=False)

    def open_it() -> None:
        try:
            path = room.desks.below(chosen["name"])
        except ShoalError as error:
            refuse(str(error))
            return
        begin(lambda tell: room.desks.place(room.seat.desk, path, path.name, tell))

    look.button("Open", open_it)


def _mark(found: dict[str, str]) -> None:
    """Mark a column that looks like one of the 18 identifiers, with the reason where one points at it."""
    told = f"HIPAA ({found['letter']}) {found['title']}: {found['reason']}"
    look.tag("span", f"HIPAA {found['letter']}", "chip mark", title=told, aria_label=told, role="note")


class _Table:
    """The column table with the hierarchy editor beside it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        with look.box("line spread"):
            with look.box("tight"):
                look.tag("h2", "What is each column?")
                look.tag(
                    "p",
                    "Identifiers are removed, quasi-identifiers generalized, sensitive columns protected.",
                    "muted small",
                )
            with look.box("line"):
                look.button("Other table", self.other)
                look.button("Diagnose \u2192", lambda: room.go("diagnose"), "primary")
        with look.box("split data-split"):
            with look.box("card", style="padding: 6px 4px"):
                self.place = look.box("scroll")
            with look.box("stack"):
                self.missing = look.told("", "warn")
                self.side = look.box(
                    "card",
                    "section",
                    style="position: sticky; top: 70px; max-height: calc(100vh - 84px); overflow: auto",
                )
        self.rows()
        self.edit()

    def other(self) -> None:
        """Go back to choosing a table."""
        self.room.seat.said["other table"] = True
        self.room.refresh()

    def rows(self) -> None:
        """Show the columns."""
        desk = self.room.desk
        missing = desk.missing()
        self.missing.set_text(missing or "")
        self.missing.set_visibility(bool(missing))
        self.place.clear()
        with self.place, look.box("t", "table"):
            with look.box("", "thead"), look.box("", "tr"):
                for name, classes in (
                    ("Column", ""), ("Distinct", "r"), ("Missing", "r"), ("Unique", "r"),
                    ("Suggested", ""), ("Role", ""), ("Hierarchy", ""),
                ):  # fmt: skip
                    look.tag("th", name, classes, scope="col")
            with look.box("", "tbody"):
                for row in desk.columns():
                    self.row(row)

    def row(self, row: ColumnRow) -> None:
        """Show one column."""
        with look.box("on" if row.column == self.room.seat.column else "", "tr", data_column=row.column):
            with look.box("", "td"):
                look.tag("div", row.column, "name", title=row.column)
                with look.box("nowrap small"):
                    look.tag("span", row.kind, "muted")
                    if row.identifier:
                        _mark(row.identifier)
            look.tag("td", f"{row.distinct:,}", "r")
            look.tag("td", f"{row.missing:,}" if row.missing else "\u2013", "r")
            look.tag("td", look.percent(row.unique_share), "r")
            with look.box("small reason", "td", title=f"{row.suggested_role}: {row.reason}"):
                look.tag("div", row.suggested_role)
                look.tag("div", row.reason, "muted")
            with look.box("", "td", style="width: 158px; min-width: 158px"):
                look.choice(
                    f"Role of {row.column}",
                    ROLES,
                    row.role,
                    lambda role: self.choose(row.column, role),
                    shown=False,
                )
            with look.box("nowrap", "td"):
                if row.role == "quasi-identifier":
                    about = "does not fit" if row.problem else f"{(row.height or 0) + 1} levels"
                    chosen = "chosen" if row.column == self.room.seat.column else ""
                    look.button(
                        about,
                        lambda: self.choose_column(row.column),
                        f"small {'bad' if row.problem else ''} {chosen}",
                        aria_label=f"Hierarchy of {row.column}: {about}",
                    )

    async def choose(self, column: str, role: str) -> None:
        """Give a column its role; its hierarchy, which may be large, is tried off the event loop."""
        if role == "quasi-identifier":
            await anyio.to_thread.run_sync(self.room.desk.fit, column)
        self.room.desk.choose_role(column, role)
        if role == "quasi-identifier":
            self.room.seat.column = column
        self.changed()
        self.edit()

    def choose_column(self, column: str) -> None:
        """Edit a column's hierarchy."""
        self.room.seat.column = column
        self.rows()
        self.edit()

    def changed(self) -> None:
        """Show what a change changes."""
        self.rows()
        self.room.refresh_nav()

    def edit(self) -> None:
        """Show the editor of the column chosen."""
        names = self.room.desk.quasi_identifiers
        if self.room.seat.column not in names:
            self.room.seat.column = names[0] if names else None
            self.rows()
        self.side.clear()
        with self.side:
            if self.room.seat.column is None:
                look.tag("p", "Hierarchies are for quasi-identifiers; there is none yet.", "muted")
            else:
                Editor(self.room, self.room.seat.column, self.changed)
