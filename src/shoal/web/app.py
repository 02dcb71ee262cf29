"""The application of the studio: API, pages and security, and the server that runs it."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import tempfile
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from shoal.document.html import tag
from shoal.errors import Infeasible, InternalError, Note, OutOfTime, ReleaseRefused, ShoalError
from shoal.files.signals import raising
from shoal.web.actions import action
from shoal.web.errors import NotReady, Refused, TooLarge, Unknown
from shoal.web.fields import describe
from shoal.web.routes import api_router
from shoal.web.server.origins import Network, Origin, read_origin, read_proxy
from shoal.web.server.security import Guard, redact_logs
from shoal.web.server.sessions import IDLE_MINUTES, Keys, Sessions, check_host
from shoal.web.server.users import Users
from shoal.web.workspace.workspaces import (
    KEEP_MINUTES,
    WORKSPACES_PER_USER,
    Workspaces,
)
from shoal.wording import message, plural
from shoal.workflow.session import AUTO, choose_engine

if TYPE_CHECKING:
    import uvicorn

Mount = Callable[[FastAPI, Workspaces], None]

HOST = "127.0.0.1"
_EXPIRE_EVERY = 15.0  # seconds
_STATUS: tuple[tuple[type[ShoalError], int], ...] = (
    (Unknown, 404),
    (TooLarge, 413),
    (NotReady, 409),
    (Infeasible, 409),
    (OutOfTime, 409),
    (ReleaseRefused, 409),
    (InternalError, 500),
)


class JsonResponse(Response):
    """A JSON response in which NaN and infinity are null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content, inf_nan_mode="null")


_DESCRIPTION = """Every operation of the studio.

A program opens a session with POST /api/session and the token of the printed address (or the password, or a
user and a password), sends the result as Authorization: Bearer, and ends it with DELETE /api/session.
"""


def build(
    workspaces: Workspaces,
    *,
    keys: Keys | None = None,
    host: str = HOST,
    port: int = 80,
    mount: Mount | None = None,
    origins: Sequence[Origin] = (),
    proxies: Sequence[Network] = (),
) -> FastAPI:
    """Build the application: the API, its documentation, the pages that `mount` adds, and the guard."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        expiring = asyncio.create_task(_expire(workspaces))
        yield
        expiring.cancel()
        workspaces.close()

    app = FastAPI(
        title="shoal studio",
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        default_response_class=JsonResponse,
        lifespan=lifespan,
    )
    app.state.workspaces = workspaces
    app.include_router(api_router())
    app.add_exception_handler(ShoalError, _shoal_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.get("/api/docs", include_in_schema=False, response_class=HTMLResponse)(lambda: _api_page(app))
    if mount is None:
        app.get("/", include_in_schema=False, response_class=HTMLResponse)(lambda: _api_page(app))
    else:
        mount(app, workspaces)
    app.add_middleware(
        Guard,
        keys=keys or Keys(),
        host=host,
        port=port,
        most_bytes=workspaces.upload_limit + (1 << 20),
        origins=origins,
        proxies=proxies,
        shared_pages=workspaces.shared_pages,
    )
    return app


async def _expire(workspaces: Workspaces) -> None:
    """Delete unused workspaces while the studio runs."""
    while True:
        await asyncio.sleep(_EXPIRE_EVERY)
        await anyio.to_thread.run_sync(workspaces.expire)


async def _shoal_error(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    nearest = error.nearest if isinstance(error, Infeasible) else {}
    assert isinstance(error, ShoalError)
    return _error(status, message(error, "web"), error.field, nearest)


async def _invalid_request(request: Request, error: Exception) -> Response:
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    name = getattr(request.scope.get("endpoint"), "__name__", "")
    return _error(422, *describe(errors, action.fields(name)))


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "Something went wrong."
    response = _error(status, detail)
    response.headers.update(getattr(error, "headers", None) or {})
    return response


def _error(status: int, text: str, field: str | None = None, nearest: Any = None) -> Response:
    text = text.encode("utf-8", "replace").decode()
    field = field and field.encode("utf-8", "replace").decode()
    return JsonResponse({"error": text, "field": field, "nearest": nearest or {}}, status_code=status)


def _api_page(app: FastAPI) -> str:
    """Return the documentation of the API as HTML that loads nothing from other servers."""
    schema = app.openapi()
    rows = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            model = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
            link = tag("a", model, href=f"#{model}") if model else ""
            text = operation.get("description", "").split("\n\n")[0]
            cells = (method.upper(), tag("code", path), text, link)
            rows.append(tag("tr", *[tag("td", cell) for cell in cells]))
    models = []
    for name, model in schema["components"]["schemas"].items():
        properties = model.get("properties", {}).items()
        fields = [tag("li", tag("code", field), " ", _kind(kind)) for field, kind in properties]
        models += [tag("h3", name, id=name), tag("p", model.get("description", "")), tag("ul", *fields)]
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "td{padding:.2rem .8rem .2rem 0;vertical-align:top}"
    )
    title = "shoal studio: the API"
    head = tag("meta", charset="utf-8"), tag("meta", name="color-scheme", content="light dark")
    content = (
        tag("h1", title),
        tag("p", schema["info"]["description"]),
        tag("p", tag("a", "openapi.json", href="/api/openapi.json")),
        tag("table", *rows),
        tag("h2", "Models"),
        *models,
    )
    page = tag("html", *head, tag("title", title), tag("style", style), *content, lang="en")
    return f"<!doctype html>{page}"


def _kind(field_schema: dict[str, Any]) -> str:
    if "$ref" in field_schema:
        return str(field_schema["$ref"]).rpartition("/")[2]
    if "anyOf" in field_schema:
        return " or ".join(dict.fromkeys(_kind(option) for option in field_schema["anyOf"]))
    if "enum" in field_schema:
        return " | ".join(map(str, field_schema["enum"]))
    return str(field_schema.get("const", field_schema.get("type", "any")))


def serve(
    data: str | Path | None = None,
    policy: str | Path | None = None,
    *,
    host: str = HOST,
    port: int | None = None,
    open_browser: bool = True,
    password: str | None = None,
    mount: Mount | None = None,
    origins: Sequence[str] = (),
    proxies: Sequence[str] = (),
    users: str | Path | None = None,
    idle_minutes: float = IDLE_MINUTES,
    max_workspaces: int = WORKSPACES_PER_USER,
    expire_minutes: float = KEEP_MINUTES,
    **options: Any,
) -> None:
    """Run the studio until it is stopped. The address with the one-time token goes to stderr.

    `options` are passed to `Workspaces`.
    """
    served = [read_origin(origin) for origin in origins]
    networks = [read_proxy(proxy) for proxy in proxies]
    keys = _keys(password, users, idle_minutes)
    check_host(host, password, served, users=users is not None)
    if data is not None and not Path(data).is_file():
        raise Refused(f"There is no table {str(data)!r}. Check the name and the folder.", "data")
    with _listening(host, port) as listener:
        chosen = int(listener.getsockname()[1])
        workspaces = Workspaces(
            data=data,
            policy=policy,
            workspaces_per_user=max_workspaces,
            keep_seconds=expire_minutes * 60,
            **options,
        )
        try:
            app = build(
                workspaces, keys=keys, host=host, port=chosen, mount=mount, origins=served, proxies=networks
            )
            origin = str(served[0]) if served else f"http://{_shown(host)}:{chosen}"
            _announce(workspaces, keys, origin, open_browser=open_browser)
            _run(app, listener, workspaces.private)
        finally:
            workspaces.close()


def _announce(workspaces: Workspaces, keys: Keys, origin: str, *, open_browser: bool) -> None:
    """Print the address, now and for each new token, and open a browser."""
    keys.on_new_token = lambda token: _print_address(origin, token)
    if workspaces.leftovers:
        removed = plural(workspaces.leftovers, "folder")
        sys.stderr.write(f"Removed {removed} with the uploads of studios that were killed.\n")
    _print_address(origin, keys.token)
    if open_browser:
        threading.Timer(0.5, webbrowser.open, (_address(origin, keys.token),)).start()


def _run(app: FastAPI, listener: socket.socket, private: Path) -> None:
    before, tempfile.tempdir = tempfile.tempdir, str(private)  # the framework stores uploads there
    server = server_of(app)
    try:
        with warnings.catch_warnings(), raising(), _ended_by_hang_up(server):
            warnings.simplefilter("ignore", Note)  # notes are shown by pages and API instead
            # A full garbage collection blocks all pages for a while: do it now, and freeze what was imported.
            choose_engine(AUTO, None)
            gc.collect()
            gc.freeze()
            server.run(sockets=[listener])
    finally:
        gc.unfreeze()
        tempfile.tempdir = before


@contextmanager
def _ended_by_hang_up(server: uvicorn.Server) -> Iterator[None]:
    """Shut the server down on SIGHUP, which is sent when its terminal is closed."""
    number: int = getattr(signal, "SIGHUP", 0)
    before = signal.getsignal(number) if number else None
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        arrived.append(number)
        server.should_exit = True

    arrived: list[int] = []
    signal.signal(number, stop)
    try:
        yield
    finally:
        signal.signal(number, before)
    if arrived:
        signal.raise_signal(number)


def server_of(app: FastAPI) -> uvicorn.Server:
    """Return a server that ignores forwarded headers: only the guard decides which ones are trusted."""
    import uvicorn

    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=3,
        proxy_headers=False,
    )
    redact_logs()
    return uvicorn.Server(config)


def _keys(password: str | None, users: str | Path | None, idle_minutes: float) -> Keys:
    if users is not None and password:
        raise Refused(
            "--users gives each person a password, and SHOAL_STUDIO_PASSWORD gives everyone the same one. "
            "Unset the variable, or leave --users out.",
            "users",
        )
    sessions = Sessions(idle_seconds=idle_minutes * 60)
    return Keys(password, users=None if users is None else Users(users), sessions=sessions)


def _address(origin: str, token: str | None) -> str:
    return f"{origin}/?token={token}" if token else f"{origin}/"


def _print_address(origin: str, token: str | None) -> None:
    text = "It works once." if token else "Sign in with a name and password of the users file."
    sys.stderr.write(f"shoal studio: {_address(origin, token)}\n{text} Ctrl-C ends the studio.\n")
    sys.stderr.flush()


def _listening(host: str, port: int | None) -> socket.socket:
    """Listen on a port. Connections that arrive before the server runs then wait for the server."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port or 0))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or "it is not possible"
        message = f"Cannot listen on {host} port {port or 'any'}: {why}. Name another --port or --host."
        raise Refused(message, "port") from None
    return listener


def _shown(host: str) -> str:
    """Return the host for the printed address. It is 127.0.0.1 for a server on all interfaces."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
