"""The ways to a table: the sample, an upload, or a file below the given folder."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import ShoalError
from shoal.web import look
from shoal.web.downloads import kinds
from shoal.web.room import Room, Worker


def choose_table(room: Room, *, opened: bool) -> None:
    """Offer the ways to a table."""
    desks = room.desks

    wrong: TextElement
    worker: Worker

    def refuse(text: str | None) -> None:
        worker.tell(None)  # what was wrong with the one before
        look.fault(wrong, text)

    def begin(work: Any) -> None:
        refuse(None)
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
        f"A {kinds()} file with one record per row. It stays on this machine.",
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
                upload = _upload(room, begin, refuse)
                pick = look.tag("button", "Upload a file", "btn", type="button")
                pick.on("click", js_handler=look.picking(upload))
            if desks.folder is not None:
                with look.box("offer"):
                    _files(room, begin, refuse)
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
        on_begin_upload=lambda: refuse(None),
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
