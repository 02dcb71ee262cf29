"""Security: which requests the studio accepts, and what browsers may do with its responses.

Every request and socket needs a session: a cookie, or `Authorization: Bearer` for programs. A session is
opened by the token in the printed address, by the password, or by a user's name and password. Only the
read-only pages below /shared/ need no session: each has its own token, which opens only this page. The Host
header must name an origin that is served, which prevents DNS rebinding. Requests from pages of other origins
are refused. Requests that change something, and all sockets, must come from a page of the studio.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.web.errors import type_and_line, unexpected_message
from shoal.web.server.origins import Network, Origin, Proxies, Served, parse_origin, without_forwarded
from shoal.web.server.sessions import USER, Keys, UserSession
from shoal.web.server.shared_pages import SharedPages
from shoal.web.server.sign_in import RequestInfo, SignIn, cookie_of, refusal

_LOG = logging.getLogger("shoal.web")
_POLICY_VIOLATION = 1008  # close code of a WebSocket
_SAFE = ("GET", "HEAD", "OPTIONS")
_ONCE = (
    "host", "origin", "authorization", "content-length", "sec-fetch-site", "sec-fetch-mode",
    "x-forwarded-host", "x-forwarded-proto",
)  # fmt: skip
_MOST_BYTES = 64 << 20  # limit of a request body in memory; uploads are written to files
# NiceGUI needs 'unsafe-inline' and 'unsafe-eval': its page has inline scripts and compiles templates.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # With no-referrer, browsers send `Origin: null` with the forms of our own pages.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_FOREIGN = "This request does not come from a page of the studio."
_NOT_SERVED = "This address is not served here. shoal studio --origin ADDRESS serves another one."


class Guard:
    """The middleware that every request passes first."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        host: str,
        port: int,
        most_bytes: int,
        origins: Iterable[Origin] = (),
        proxies: Iterable[Network] = (),
        shared_pages: SharedPages | None = None,
    ) -> None:
        self.app = app
        self.shared_pages = shared_pages
        self.keys = keys
        self.sign_in = SignIn(keys)
        self.served = Served(host, port, origins)
        self.proxies = Proxies(proxies)
        self.most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, or forward it to the application."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] in ("http", "websocket"):
            send = with_headers(scope, send)
            response = await self.check(scope, receive, send)
            if response is not None:
                await respond(response, scope, receive, send)

    async def check(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Return the response to a request, or forward the request to the application and return None."""
        headers = _headers(scope)
        if headers is None:
            return refusal(400, "A header that may occur only once is repeated.")
        peer = self.proxies.peer(scope, headers)
        without_forwarded(scope)
        origin = self.served.match(peer.host, scope, peer.scheme)
        if origin is None:
            return refusal(421, _NOT_SERVED)
        request = RequestInfo(headers, origin, peer.source)
        if _is_foreign(scope, request):
            return refusal(403, _FOREIGN)
        if self.shared_pages and (page := self.shared_pages.respond(scope, request.source)) is not None:
            return page
        response = await self.sign_in.sign_in(scope, request, receive) if scope["type"] == "http" else None
        return response or await self.with_session(scope, request, receive, send)

    async def with_session(
        self, scope: Scope, request: RequestInfo, receive: Receive, send: Send
    ) -> Response | None:
        """Forward the request of a signed-in user to the application. Return the response to any other."""
        bearer = request.headers.get("authorization", "")
        session = self.keys.find(bearer[7:].strip()) if bearer[:7].lower() == "bearer " else None
        by_bearer = session is not None
        session = session or self.keys.find(cookie_of(request.headers, request.origin))
        if session is None:
            return self.sign_in.ask(request)
        if _changes(scope) and "origin" not in request.headers and not by_bearer:
            return refusal(403, _FOREIGN)  # a page of the studio would send its origin
        most = self.most_bytes if _is_upload(scope) else min(_MOST_BYTES, self.most_bytes)
        if _length(request.headers) > most:
            return refusal(413, f"More than {most:,} bytes are not accepted.")
        scope[USER] = session.user
        if scope["type"] == "websocket":
            async with while_signed_in(self.keys, session, receive, send) as (receiving, sending):
                await self.pass_on(scope, receiving, sending)
            return None
        self.keys.sessions.touch(session)
        response = self.sign_in.answer_session(scope, request, session)
        if response is None:
            await self.pass_on(scope, _bounded(receive, most), send)
        return response

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; log only the type and line of an unexpected error."""
        started = disconnected = False

        async def receiving() -> Message:
            nonlocal disconnected
            message = await receive()
            disconnected = disconnected or message["type"] == "http.disconnect"
            return message

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receiving, sending)
        except Exception as error:  # the error's text and traceback may quote a value
            if disconnected and not started:
                return  # the client disconnected before there was a response
            _LOG.error("%s while answering", type_and_line(error))
            if not started:
                await respond(refusal(500, unexpected_message(error)), scope, receive, send)


def with_headers(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the headers of every response."""
    # Browsers may cache only the framework's files, which are the same for everybody.
    framework = str(scope.get("path", "")).startswith("/_nicegui/")

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(n, v) for n, v in message.get("headers", []) if n.lower() not in (b"server",)]
            names = {n.lower() for n, _ in headers}
            if not (framework and b"cache-control" in names):
                headers = [(n, v) for n, v in headers if n.lower() != b"cache-control"]
                headers.append((b"cache-control", b"no-store"))
            headers += [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in names]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def respond(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response; a WebSocket is closed instead, before it opens."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": ""})
    else:
        await response(scope, receive, send)


def _headers(scope: Scope) -> dict[str, str] | None:
    """Return the headers by name, or None if a header that may occur only once is repeated."""
    headers: dict[str, str] = {}
    for name, value in _decoded(scope):
        separator = "; " if name == "cookie" else ", "
        headers[name] = f"{headers[name]}{separator}{value}" if name in headers else value
    counts = Counter(name for name, _ in _decoded(scope))
    return None if any(counts[name] > 1 for name in _ONCE) else headers


def _decoded(scope: Scope) -> Iterable[tuple[str, str]]:
    return ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])


def _changes(scope: Scope) -> bool:
    """Return whether a request may change something; a WebSocket always may."""
    return scope["type"] == "websocket" or scope["method"] not in _SAFE


def _is_upload(scope: Scope) -> bool:
    """Return whether a request's body is written to a file."""
    path = str(scope["path"])
    return path.startswith("/_nicegui/client/") or (
        path.startswith("/api/workspaces/") and path.endswith(("/upload", "/project-file"))
    )


def _is_foreign(scope: Scope, request: RequestInfo) -> bool:
    """Return whether a page of another origin sent a request. Followed links to the studio do not count."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    follows_link = request.headers.get("sec-fetch-mode") == "navigate" and not _changes(scope)
    if site in ("cross-site", "same-site") and not follows_link:
        return True
    if origin == "null":  # the browser does not disclose the origin of the page
        return site != "same-origin"
    return origin is not None and parse_origin(origin) != request.origin


def _bounded(receive: Receive, most: int) -> Receive:
    """Return a `receive` that disconnects when the body exceeds the limit, also without Content-Length."""
    size = 0

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > most else message

    return receiving


def _length(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


_EVENT = re.compile(r'42\d*\["event"')  # begins socket.io messages about actions of the user, not heartbeats


@asynccontextmanager
async def while_signed_in(
    keys: Keys, session: UserSession, receive: Receive, send: Send
) -> AsyncIterator[tuple[Receive, Send]]:
    """Yield functions that receive and send on a WebSocket, which is closed when the session ends."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    pending: asyncio.Future[Message] | None = None
    waiting = asyncio.ensure_future(ended.wait())
    closed = False

    def wake() -> None:
        loop.call_soon_threadsafe(ended.set)

    async def receiving() -> Message:
        nonlocal pending, closed
        while (left := keys.sessions.seconds_left(session)) > 0:
            pending = pending or asyncio.ensure_future(receive())
            tasks: set[asyncio.Future[Any]] = {pending, waiting}
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if pending.done() and not session.ended:
                message, pending = pending.result(), None
                if _EVENT.match(message.get("text") or ""):
                    keys.sessions.touch(session)
                return message
        keys.find(None)  # ends idle sessions
        if not closed:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": ""})
        closed = True
        return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}

    async def sending(message: Message) -> None:
        nonlocal closed
        if not closed:
            closed = message["type"] == "websocket.close"
            await send(message)

    session.on_end.add(wake)
    try:
        yield receiving, sending
    finally:
        session.on_end.discard(wake)
        for task in (pending, waiting):
            if task is not None and not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


LOGGERS = (
    "asyncio", "engineio", "engineio.server", "nicegui", "socketio", "socketio.server", "uvicorn",
    "uvicorn.access", "uvicorn.asgi", "uvicorn.error", "websockets", "websockets.server",
)  # fmt: skip
# Query strings, names of workspaces and pages in paths, and any long random name.
_SECRET = re.compile(r"\?[^\s\"']+|(?<=/workspaces/)[^/\s\"'?]+|(?<=/client/)[^/\s\"'?]+|[\w-]{20,}")


def redact(text: str) -> str:
    """Replace secrets in a log message.

    >>> redact('"GET /api/workspaces/kJ3x/files/recipe?safe=true HTTP/1.1" 200')
    '"GET /api/workspaces/.../files/recipe... HTTP/1.1" 200'
    """
    return _SECRET.sub("...", text)


def redact_record(record: logging.LogRecord) -> bool:
    """Redact a log record. This function is a filter for the loggers of servers and frameworks."""
    record.msg = redact(str(record.msg))
    if isinstance(record.args, dict):
        record.args = {name: _redacted(value) for name, value in record.args.items()}
    elif record.args:
        record.args = tuple(_redacted(value) for value in record.args)
    return True


def redact_logs() -> None:
    """Redact what servers and frameworks log, at every level."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(redact_record)


def _redacted(value: Any) -> Any:
    return value if isinstance(value, int | float) else redact(str(value))
