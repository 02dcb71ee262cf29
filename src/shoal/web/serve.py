"""Serve: the application put together, and run on this machine alone unless a password is set."""

from __future__ import annotations

import html
import socket
import sys
import tempfile
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from shoal.errors import Infeasible, InternalError, Note, OutOfTime, ShoalError
from shoal.web.api import router
from shoal.web.desks import UPLOAD_LIMIT, Desks
from shoal.web.faults import fault_of
from shoal.web.keys import Keys, check_host
from shoal.web.refusals import NotReady, Refused, TooLarge, Unknown, field_of
from shoal.web.security import Guard

Mount = Callable[[FastAPI, Desks], None]

HOST = "127.0.0.1"
_STATUS: tuple[tuple[type[ShoalError], int], ...] = (
    (Unknown, 404),
    (TooLarge, 413),
    (NotReady, 409),
    (Infeasible, 409),
    (OutOfTime, 409),
    (InternalError, 500),
)


class Plain(Response):
    """JSON in which a number that is none is null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the answer."""
        return to_json(content, inf_nan_mode="null")


def build(
    desks: Desks,
    *,
    keys: Keys | None = None,
    host: str = HOST,
    port: int = 80,
    mount: Mount | None = None,
) -> FastAPI:
    """Build the application: the API, its page, the pages that `mount` adds, and the guard before all."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        desks.close()

    app = FastAPI(
        title="shoal studio",
        description="Every action of the studio. A program opens a session with POST /api/session and the "
        "token of the printed address (or the password), and sends what it gets as Authorization: Bearer.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        default_response_class=Plain,
        lifespan=lifespan,
    )
    app.state.desks = desks
    app.include_router(router())
    app.add_exception_handler(ShoalError, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.get("/api/docs", include_in_schema=False, response_class=HTMLResponse)(lambda: _page(app))
    if mount is None:
        app.get("/", include_in_schema=False, response_class=HTMLResponse)(lambda: _page(app))
    else:
        mount(app, desks)
    app.add_middleware(
        Guard,
        keys=keys or Keys(),
        host=host,
        port=port,
        most_bytes=desks.upload_limit + (1 << 20),
    )
    return app


async def _told(_: Request, error: Exception) -> Response:
    """Answer a deliberate error beside its field."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    nearest = error.nearest if isinstance(error, Infeasible) else {}
    return _error(status, str(error), field_of(error), nearest)


async def _invalid(request: Request, error: Exception) -> Response:
    """Answer what does not fit the request's model, without what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    body = getattr(request.scope.get("route"), "body_field", None)
    known = getattr(getattr(getattr(body, "field_info", None), "annotation", None), "model_fields", ())
    return _error(422, *fault_of(found, known))


async def _http(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "Something went wrong."
    found = _error(status, detail)
    found.headers.update(getattr(error, "headers", None) or {})
    return found


def _error(status: int, text: str, field: str | None = None, nearest: Any = None) -> Response:
    clean = text.encode("utf-8", "replace").decode()
    named = field and field.encode("utf-8", "replace").decode()
    return Plain({"error": clean, "field": named, "nearest": nearest or {}}, status_code=status)


def _page(app: FastAPI) -> str:
    """Write the API's page: nothing is loaded from elsewhere, so it works without a network."""
    schema = app.openapi()
    rows = []
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            body = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
            asked = f"<a href='#{name}'>{name}</a>" if name else ""
            told = html.escape(about.get("description", "").split("\n\n")[0])
            rows.append(f"<tr><td>{method.upper()}<td><code>{html.escape(path)}</code><td>{told}<td>{asked}")
    models = []
    for name, model in schema["components"]["schemas"].items():
        fields = "".join(
            f"<li><code>{html.escape(field)}</code> {html.escape(_kind(about))}"
            for field, about in model.get("properties", {}).items()
        )
        models.append(
            f"<h3 id={name}>{name}</h3><p>{html.escape(model.get('description', ''))}<ul>{fields}</ul>"
        )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'>"
        "<title>shoal studio: the API</title><style>body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;"
        "margin:2rem auto;padding:0 1rem}td{padding:.2rem .8rem .2rem 0;vertical-align:top}</style>"
        f"<h1>shoal studio: the API</h1><p>{html.escape(schema['info']['description'])}"
        "<p><a href=/api/openapi.json>openapi.json</a>"
        f"<table>{''.join(rows)}</table><h2>Models</h2>{''.join(models)}</html>"
    )


def _kind(about: dict[str, Any]) -> str:
    if "$ref" in about:
        return str(about["$ref"]).rpartition("/")[2]
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_kind(one) for one in about["anyOf"]))
    if "enum" in about:
        return " | ".join(map(str, about["enum"]))
    return str(about.get("const", about.get("type", "any")))


def serve(
    data: str | Path | None = None,
    policy: str | Path | None = None,
    *,
    host: str = HOST,
    port: int | None = None,
    folder: str | Path | None = None,
    open_browser: bool = True,
    password: str | None = None,
    upload_limit: int = UPLOAD_LIMIT,
    mount: Mount | None = None,
) -> None:
    """Run the studio until it is stopped; the address with the one-time token goes to stderr."""
    import uvicorn

    check_host(host, password)
    if data is not None and not Path(data).is_file():
        message = f"There is no table {str(data)!r}. Look at its name and at the folder."
        raise Refused(message, "data")
    with _listening(host, port) as listener:
        chosen = int(listener.getsockname()[1])
        desks = Desks(folder=folder, data=data, policy=policy, upload_limit=upload_limit)
        keys = Keys(password)
        elsewhere = tempfile.tempdir
        tempfile.tempdir = str(desks.private)  # what a framework puts aside of an upload is private too
        try:
            app = build(desks, keys=keys, host=host, port=chosen, mount=mount)
            address = f"http://{_shown(host)}:{chosen}/?token={keys.token}"
            sys.stderr.write(f"shoal studio: {address}\nIt works once. Ctrl-C ends the studio.\n")
            sys.stderr.flush()
            if open_browser:
                threading.Timer(0.5, webbrowser.open, (address,)).start()
            config = uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=3,
                proxy_headers=False,
            )
            with warnings.catch_warnings():
                # Pages and the API tell them, under the name of the upload.
                warnings.simplefilter("ignore", Note)
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            tempfile.tempdir = elsewhere
            desks.close()


def _listening(host: str, port: int | None) -> socket.socket:
    """Take a port before anything else does; who comes before the server is up waits and is not refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port or 0))
        listener.listen(128)  # who comes before the studio answers waits, and is not refused
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or "it is not possible"
        message = f"Cannot listen on {host} port {port or 'any'}: {why}. Name another --port or --host."
        raise Refused(message, "port") from None
    return listener


def _shown(host: str) -> str:
    """Return the host as an address shows it; everywhere is reached here."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
