"""The pages: one address, five steps, a desk of its own for each browser tab.

Which desk is a tab's is kept here under the tab's random name, which the browser keeps in its sessionStorage:
a reload finds the desk again, another tab has another, and nothing of the data is in an address.
"""

from __future__ import annotations

import logging

import nicegui
from fastapi import FastAPI
from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.web import look, step_compare, step_data, step_diagnose, step_negotiate, step_release
from shoal.web.desks import Desks
from shoal.web.refusals import kind_and_place
from shoal.web.room import Room, Seat
from shoal.web.style import CSS

_LOG = logging.getLogger("shoal.web")
_SHOW = {
    "data": step_data.show,
    "diagnose": step_diagnose.show,
    "negotiate": step_negotiate.show,
    "compare": step_compare.show,
    "release": step_release.show,
}
_DARK = """const said = localStorage.getItem('shoal-dark');
return said === null ? matchMedia('(prefers-color-scheme: dark)').matches : said === 'true'"""


def mount(app: FastAPI, desks: Desks) -> None:
    """Put the pages into an application."""
    seats: dict[str, Seat] = {}
    nicegui.app._exception_handlers[:] = [_quietly]
    for name in ("nicegui", "asyncio"):
        logging.getLogger(name).addFilter(_without_text)

    @ui.page("/", title="shoal studio", dark=None)
    async def studio() -> None:
        ui.add_css(CSS)
        client = ui.context.client
        nav, corner, accident, body = _frame()
        await client.connected()
        tab = client.tab_id or client.id
        new = tab not in seats or seats[tab].desk not in desks
        if new:
            for gone in [name for name, seat in seats.items() if seat.desk not in desks]:
                del seats[gone]
            seats[tab] = Seat(desks.open())
        room = Room(desks, seats[tab], dark=bool(await ui.run_javascript(_DARK, timeout=5)))
        room.show, room.nav, room.body, room.accident = dict(_SHOW), nav, body, accident
        ui.on_exception(room.surprised)
        _appearance(room, corner)
        if new and desks.data is not None:
            desks.start(room.seat.desk, "open", lambda tell: desks.begin(room.seat.desk, tell))
        room.refresh()

    ui.run_with(
        app,
        title="shoal studio",
        favicon="\U0001f41f",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=30,
    )


def _frame() -> tuple[Element, Element, TextElement, Element]:
    """Make what stands around every step: the steps, the corner, the place for an accident, and the body."""
    with look.box("bar", "header"):
        with look.tag("h1", "", "brand"):
            look.tag("span", "shoal")
            look.tag("i", " studio", style="font-style: normal; font-weight: 400")
        nav = look.box("line grow")
        corner = look.box("line")
    accident = look.told("", "bad").classes("accident")
    accident.set_visibility(False)
    return nav, corner, accident, look.box("main")


def _appearance(room: Room, corner: Element) -> None:
    """Make the switch between light and dark, which the browser remembers."""
    client, dark = ui.context.client, ui.dark_mode(room.dark)

    def switch() -> None:
        room.dark = not room.dark
        dark.set_value(room.dark)
        toggle.set_text(_named(room.dark))
        client.run_javascript(f"localStorage.setItem('shoal-dark', '{str(room.dark).lower()}')")
        room.refresh()

    with corner:
        toggle = look.button(_named(room.dark), switch, "plain small", aria_label="Switch light and dark")


def _named(dark: bool) -> str:
    return "Light" if dark else "Dark"


def _quietly(error: Exception) -> None:
    """Tell of an accident its kind and place; its text may quote a value."""
    _LOG.error("%s on a page", kind_and_place(error))


def _without_text(record: logging.LogRecord) -> bool:
    """Keep of what a framework logs about an accident that there was one, for the same reason."""
    if record.exc_info or record.levelno >= logging.ERROR:
        kind = record.exc_info[0] if record.exc_info else None
        told = kind.__name__ if kind else "an error"
        record.msg, record.args, record.exc_info, record.exc_text = f"{told} on a page", (), None, None
    return True
