"""The page of the studio: an address for each step, and a workspace for each browser tab.

A tab has a random name, which the browser keeps in its sessionStorage. Each tab therefore has its own
workspace and finds it again after a reload. No address contains a value of the data.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread
import nicegui
from fastapi import FastAPI
from nicegui import Client, core, ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement
from starlette.types import ASGIApp, Receive, Scope, Send

from shoal.errors import ShoalError
from shoal.web.errors import NotReady, type_and_line
from shoal.web.pages import address, data, elements, negotiate
from shoal.web.pages.compare import CompareView
from shoal.web.pages.diagnose import DiagnoseView
from shoal.web.pages.header import corner_buttons, glossary_footer, start_button
from shoal.web.pages.project import ProjectView
from shoal.web.pages.release import ReleaseView
from shoal.web.pages.start import TableChoice
from shoal.web.pages.tab import TabState, TabView
from shoal.web.server.security import respond
from shoal.web.server.sessions import USER
from shoal.web.server.sign_in import refusal
from shoal.web.workspace.workspaces import Workspaces

_LOG = logging.getLogger("shoal.web")
_SHOW = {
    address.START: TableChoice,
    address.PROJECT: ProjectView,
    "data": data.show,
    "diagnose": DiagnoseView,
    "negotiate": negotiate.show,
    "compare": CompareView,
    "release": ReleaseView,
}


def stylesheet() -> str:
    """Return the style sheet of the pages."""
    return (files("shoal") / "data" / "studio.css").read_text(encoding="utf-8")


def scripts() -> str:
    """Return the scripts of the pages."""
    return (files("shoal") / "data" / "studio.js").read_text(encoding="utf-8")


def mount(app: FastAPI, workspaces: Workspaces) -> None:
    """Add the pages to an application."""
    states: dict[tuple[str, str], TabState] = {}  # the key contains the user: a browser may send any tab name
    isolate_users(app)
    nicegui.app._exception_handlers[:] = [_log_exception]
    for name in ("nicegui", "asyncio"):
        logging.getLogger(name).addFilter(_remove_text)

    async def studio() -> None:
        ui.add_css(stylesheet())
        ui.add_head_html(f"<script>{scripts()}</script>")
        client = ui.context.client
        brand, nav, corner, line, error, body = _frame()
        await client.connected()
        user = page_user(client)
        key = (user, client.tab_id or client.id)
        is_new = key not in states or states[key].workspace not in workspaces
        if is_new:
            for closed in [name for name, state in states.items() if state.workspace not in workspaces]:
                del states[closed]
            states[key] = TabState(await _open_workspace(workspaces, user), address.START)
        dark = bool(await ui.run_javascript("return studio.isDark()", timeout=60))
        message = await _open_address(workspaces, states[key], client.request.url.path, user)
        tab = TabView(workspaces, states[key], dark=dark, user=user)
        tab.show, tab.nav, tab.body, tab.error = dict(_SHOW), nav, body, error
        ui.on_exception(tab.show_exception)
        _listen_to_address(tab)
        start_button(tab, brand)
        corner_buttons(tab, corner, line)
        client.run_javascript("studio.reloadAfterSession(); studio.nameScrolled()")
        name = tab.state.workspace
        if (
            is_new
            and workspaces.data is not None
            and name in workspaces
            and not address.parse_path(client.request.url.path)[0]
        ):
            workspaces.start(name, "open", lambda progress: workspaces.open_given_table(name, progress))
        tab.refresh()
        if message:
            tab.show_message(message)

    for path in address.PATHS:
        ui.page(path, title="shoal studio", dark=None)(studio)
    _configure(app)


def _configure(app: FastAPI) -> None:
    """Connect the framework of the pages with the application."""
    ui.run_with(
        app,
        title="shoal studio",
        favicon="\U0001f41f",
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=30,
    )


async def _open_address(workspaces: Workspaces, state: TabState, path: str, user: str) -> str:
    """Show the project and the step of an address. Return a message if there is no such project."""
    project, step = address.parse_path(path)
    if step is not None:
        state.step = step
    saving = workspaces.saving
    if project is None or state.workspace not in workspaces or saving.link(state.workspace).id == project:
        return ""
    name = saving.workspace_of(user, project)
    if name is not None:
        state.workspace = name
        return ""
    try:
        _ = saving.required_store.summary(user, project)
    except (ShoalError, OSError, ValueError) as error:
        state.step = address.START
        return str(error) if isinstance(error, ShoalError) else "This project cannot be read."
    state.step = address.START  # until the project is open
    state.next_step = step
    workspace = state.workspace
    workspaces.start(workspace, "open", lambda progress: saving.open(workspace, project, progress))
    return ""


def _listen_to_address(tab: TabView) -> None:
    """Follow the back and forward buttons of the browser."""

    def follow(event: Any) -> None:
        project, step = address.parse_path(str(event.args))
        saved = None if tab.is_closed else tab.workspaces.saving.link(tab.state.workspace).id
        if project is not None and project != saved:
            client.run_javascript("location.reload()")
            return
        tab.state.step = step or address.START
        tab.refresh()
        client.run_javascript("studio.focusStep()")

    client = ui.context.client
    ui.on("shoal-address", follow)
    client.run_javascript("studio.followAddress()")


async def _open_workspace(workspaces: Workspaces, user: str) -> str:
    """Open a workspace in a thread. Return an empty name if the user has too many workspaces."""
    try:
        return await anyio.to_thread.run_sync(workspaces.open, user)
    except NotReady:
        return ""


def _frame() -> tuple[Element, Element, Element, Element, TextElement, Element]:
    """Add the parts of a page: brand, navigation, corner, lines for notices and errors, and the body."""
    with elements.box("bar", "header"):
        brand = elements.tag("h1", "", "brand")
        nav = elements.box("line grow")
        corner = elements.box("line")
    line = elements.box("")
    error = elements.message("", "bad").classes("page-error")
    error.set_visibility(False)
    body = elements.box("main", "main")
    glossary_footer()
    return brand, nav, corner, line, error, body


def _log_exception(error: Exception) -> None:
    """Log the type and the line of an exception, but not its text, which may quote a value."""
    _LOG.error("%s on a page", type_and_line(error))


def _remove_text(record: logging.LogRecord) -> bool:
    """Remove the text of exceptions that a framework logs, which may quote a value."""
    if record.exc_info or record.levelno >= logging.ERROR:
        kind = record.exc_info[0] if record.exc_info else None
        name = kind.__name__ if kind else "an error"
        record.msg, record.args, record.exc_info, record.exc_text = f"{name} on a page", (), None, None
    return True


_PAGE_PATH = "/_nicegui/client/"  # with the ID of a page, the address of its uploads


def page_user(client: Client) -> str:
    """Return the user of a page."""
    return str(client.request.scope[USER])


def isolate_users(app: FastAPI) -> None:
    """Reject sockets and uploads to pages of other users.

    The framework trusts the page ID in each message, and accepts sockets from any origin.
    """
    core.sio.eio.cors_allowed_origins = []  # no CORS headers: the guard rejects other origins
    core.sio.eio.transports = ["websocket"]  # polling requests could outlive their session
    core.app.config.socket_io_js_transports = ["websocket"]  # pages must not try polling
    handlers = core.sio.handlers["/"]
    for event, handler in list(handlers.items()):
        if event != "disconnect" and not hasattr(handler, "__wrapped__"):
            handlers[event] = _check_user(handler)
    app.add_middleware(UserPages)


class UserPages:
    """Middleware that answers requests to pages of other users as if the page did not exist."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        path = str(scope.get("path", ""))
        if path.startswith(_PAGE_PATH):
            page = path[len(_PAGE_PATH) :].partition("/")[0]
            if _is_foreign(page, scope):
                await respond(refusal(404, "Not Found"), scope, receive, send)
                return
        await self.app(scope, receive, send)


def _check_user(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler of socket.io. The wrapper drops messages to pages of other users."""

    @functools.wraps(handler)
    async def handle(sid: str, *arguments: Any) -> Any:
        environ = core.sio.get_environ(sid) or {}
        message = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        named = message.get("client_id")
        if message is environ:  # the handler of the event `connect`
            named = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [None])[0]
        if named is not None and _is_foreign(named, environ.get("asgi.scope", {})):
            return False
        result = handler(sid, *arguments)
        return await result if inspect.isawaitable(result) else result

    return handle


def _is_foreign(page: object, scope: Scope) -> bool:
    """Return whether a page exists and belongs to another user."""
    client = Client.instances.get(page) if isinstance(page, str) else None
    return client is not None and (USER not in scope or page_user(client) != scope[USER])
