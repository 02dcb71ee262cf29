"""The header of every page (undo, redo, appearance, delete, sign out), and the glossary at the foot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import anyio.to_thread
from nicegui import ui
from nicegui.element import Element

from shoal.web.errors import Unknown
from shoal.web.pages import address, elements
from shoal.web.pages.tab import TabView
from shoal.workflow.plain_words import glossary

_EXPIRY_POLL = 15.0  # seconds


def start_button(tab: TabView, brand: Element) -> None:
    """Make the brand a button that leads to the first page."""
    with brand:
        button = elements.button("", lambda: tab.go(address.START), "plain", title="First page")
        with button:
            elements.tag("b", "shoal")
            elements.tag("span", " studio")


def corner_buttons(tab: TabView, corner: Element, line: Element) -> None:
    """Add the buttons of the header's corner."""
    with corner:
        tab.on_nav = HistoryButtons(tab).update
        elements.button("Project", lambda: tab.go(address.PROJECT), "plain small")
    _appearance_button(tab, corner)
    DeleteButton(tab, corner, line)
    _sign_out_button(tab.user, corner)


def _appearance_button(tab: TabView, corner: Element) -> None:
    """Add the switch between light and dark, which the browser remembers."""
    client, dark = ui.context.client, ui.dark_mode(tab.dark)

    def switch() -> None:
        tab.dark = not tab.dark
        dark.set_value(tab.dark)
        toggle.set_text(_appearance_label(tab.dark))
        client.run_javascript(f"localStorage.setItem('shoal-dark', '{str(tab.dark).lower()}')")
        tab.refresh()

    with corner:
        toggle = elements.button(
            _appearance_label(tab.dark), switch, "plain small", aria_label="Switch light and dark"
        )


def _sign_out_button(user: str, corner: Element) -> None:
    """Add the button to sign out. It is a form, because the socket of the page cannot clear the cookie."""
    with corner:
        if user:
            elements.tag("span", user, "muted small nowrap", id="user-name")
        with elements.box("", "form", method="post", action="/logout"):
            elements.tag("button", "Sign out", "btn plain small", type="submit")


def _appearance_label(dark: bool) -> str:
    return "Light" if dark else "Dark"


class HistoryButtons:
    """The undo and redo buttons. Their tooltips name the change."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        with elements.box("history"):
            self.undo = elements.button("Undo", self._undo, "plain small")
            self.redo = elements.button("Redo", self._redo, "plain small")

    def update(self) -> None:
        closed = self.tab.is_closed
        answer = None if closed else self.tab.workspace.history.answer
        for button, verb, label in (
            (self.undo, "Undo", answer and answer.undo),
            (self.redo, "Redo", answer and answer.redo),
        ):
            text = f"{verb}: {label}" if label else f"Nothing to {verb.lower()}"
            button._props.update({"title": text, "disabled": not label})
            button.update()

    async def _undo(self) -> None:
        await self._move(self.tab.workspace.history.undo)

    async def _redo(self) -> None:
        await self._move(self.tab.workspace.history.redo)

    async def _move(self, move: Callable[[], None]) -> None:
        await self.tab.change(self.tab.show_message, move)


class DeleteButton:
    """The button that deletes the workspace, and the notice that the workspace will expire."""

    def __init__(self, tab: TabView, corner: Element, line: Element) -> None:
        self.tab = tab
        self.was_closed = False
        with corner:
            title = "Delete this workspace with all its files"
            self.button = elements.button("Delete", self.ask, "plain small", title=title)
        with line, elements.box("message warn notice", role="status") as self.box:
            self.text = elements.tag("span", "")
            self.delete = elements.button("Delete it", self.remove, "small bad")
            self.keep = elements.button("Keep it", self.use, "small")
        self.hide()
        tab.ask_delete = self.ask
        ui.timer(_EXPIRY_POLL, self.check)

    def ask(self) -> None:
        """Ask for confirmation."""
        if not self.tab.is_closed:
            saved = self.tab.workspaces.saving.link(self.tab.state.workspace).id
            what = "this project with its table" if saved else "this workspace with its table"
            self.show(f"Delete {what}, results and all files? This cannot be undone.")

    def show(self, text: str) -> None:
        self.text.set_text(text)
        self.box.set_visibility(True)

    def hide(self) -> None:
        self.text.set_text("")
        self.box.set_visibility(False)

    async def remove(self) -> None:
        """Delete the workspace, and its project."""
        self.hide()
        with suppress(Unknown):  # the workspace may already be deleted
            await anyio.to_thread.run_sync(self.tab.workspaces.delete_with_project, self.tab.state.workspace)
        self.tab.ask_before_leaving(False)
        self.tab.refresh()

    def use(self) -> None:
        """Use the workspace, so that it does not expire."""
        self.hide()
        if not self.check_closed():
            _ = self.tab.workspace

    def check(self) -> None:
        """Show a notice before the workspace expires. When it is closed, refresh the tab."""
        if self.check_closed():
            return
        if notice := self.tab.workspaces.expiry_notice(self.tab.state.workspace):
            self.show(notice)

    def check_closed(self) -> bool:
        """Return whether the workspace is closed. If so, refresh the tab the first time."""
        closed = self.tab.is_closed
        if closed and not self.was_closed:
            self.hide()
            self.tab.refresh()
        self.was_closed = closed
        return closed


def glossary_footer() -> None:
    """Add the glossary, collapsed until a user opens it."""
    with elements.box("glossary", "footer"), elements.box("", "details"):
        elements.tag("summary", "What the words mean")
        with elements.box("", "dl"):
            for word in glossary():
                with elements.box("", "div"):
                    elements.tag("dt", word.term)
                    elements.tag("dd", word.meaning, "muted")
