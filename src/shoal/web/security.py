"""Security: who may speak to the studio, from where, and what browsers may do with its answers.

Every request and socket needs a session: a cookie, or `Authorization: Bearer` for programs. A session is had
once for the token in the address that is printed at the start, or for the password. The Host header must be
the address that is served, or a name that points here could be anyone's (DNS rebinding); what changes
something, and every socket, must come from a page of this address (Origin).
"""

from __future__ import annotations

import html
import json
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from shoal.web.keys import Keys, is_loopback
from shoal.web.refusals import surprise

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOG = logging.getLogger("shoal.web")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")
_LOGIN = "/login"
_SESSION = "/api/session"
# NiceGUI writes scripts into its page and compiles templates in the browser; nothing comes from elsewhere.
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
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """The middleware that stands before everything else."""

    def __init__(self, app: App, *, keys: Keys, host: str, port: int, most_bytes: int) -> None:
        self.app = app
        self.keys = keys
        self.port = port
        self.most_bytes = most_bytes
        self.cookie = f"shoal-studio-{port}"  # cookies do not tell ports apart
        names = set(LOOPBACK) if is_loopback(host) else {host.strip("[]").lower()}
        self.everywhere = host.strip("[]") in ("0.0.0.0", "::")
        if self.everywhere:
            names = {*LOOPBACK, socket.gethostname().lower(), socket.getfqdn().lower()}
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not self.is_served(headers.get("host", ""), scope):
            await _refuse(scope, send, 421, "This address is not served here.")
            return
        if scope["type"] == "http" and await self.signed_in(scope, headers, receive, send):
            return
        bearer = headers.get("authorization", "")
        by_bearer = bearer[:7].lower() == "bearer " and self.keys.knows(bearer[7:].strip())
        if not by_bearer and not self.keys.knows(self.cookie_of(headers)):
            await self.turn_away(scope, headers, send)
            return
        if not self.from_here(scope, headers, by_bearer=by_bearer):
            await _refuse(scope, send, 403, "This request does not come from a page of the studio.")
            return
        if _length(headers) > self.most_bytes:
            await _refuse(scope, send, 413, f"More than {self.most_bytes:,} bytes are not taken.")
            return
        bounded = receive if scope["type"] == "websocket" else _bounded(receive, self.most_bytes)
        await self.passed_on(scope, bounded, _with_headers(scope, send))

    async def passed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer; of an accident only its kind and place are told, not its text."""
        begun = gone = False

        async def receiving() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receiving, sending)
        except Exception as error:  # whose text, and whose traceback, may quote a value
            if gone and not begun:
                return  # who asked hung up, and the framework misses an answer
            last = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            _LOG.error("%s at %s:%s while answering", kind, Path(last.filename).name, last.lineno)
            if not begun:
                await _refuse(scope, send, 500, surprise(error))

    def is_served(self, host: str, scope: Scope) -> bool:
        """Tell whether the Host header names the address that is served."""
        try:
            found = urlsplit(f"//{host}")
            name, port = (found.hostname or "").lower(), found.port or 80
        except ValueError:
            return False
        if port != self.port or found.username is not None or found.path:
            return False
        # A number that is this very connection's own cannot be somebody else's name.
        own = str((scope.get("server") or ("",))[0]).lower()
        return name in self.names or (self.everywhere and name == own and own != "")

    def from_here(self, scope: Scope, headers: dict[str, str], *, by_bearer: bool) -> bool:
        """Tell whether what changes something, or a socket, was begun by a page of this address."""
        site = headers.get("sec-fetch-site")
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return False
        if scope["type"] == "http" and scope["method"] in _SAFE:
            return True
        origin = headers.get("origin")
        if origin is None:
            return by_bearer  # a program, not a page
        return _own(origin, headers)

    def cookie_of(self, headers: dict[str, str]) -> str | None:
        """Return the session that the cookie names."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return None
        return found.value if found else None

    async def signed_in(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> bool:
        """Answer what opens a session: the token in an address, the password's form, or a program."""
        method, path = scope["method"], scope["path"]
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if method == "GET" and "token" in query and not path.startswith("/api/"):
            if self.keys.knows(self.cookie_of(headers)):
                await _go(send, path)  # reloaded: the session is there
                return True
            session = self.keys.session(token=query["token"][0])
            if session:
                await self.welcome(send, session, path)
            else:
                await self.turn_away(scope, headers, send)
            return True
        if path not in (_LOGIN, _SESSION):
            return False
        if method == "GET" and path == _LOGIN:
            await _page(send, 200, self.form())
            return True
        if method != "POST":
            return False
        origin = headers.get("origin")
        if origin is not None and not _own(origin, headers):
            await _refuse(scope, send, 403, "This request does not come from a page of the studio.")
            return True
        told = _told(await _body(receive), as_form=path == _LOGIN)
        session = self.keys.session(token=told.get("token"), password=told.get("password"))
        if session is None:
            waits = not self.keys.patience
            message = "Too many tries. Wait a minute." if waits else "That is not right."
            status = 429 if waits else 401
            if path == _LOGIN:
                await _page(send, status, self.form(message))
            else:
                await _refuse(scope, send, status, message)
        elif path == _LOGIN:
            await self.welcome(send, session, "/")
        else:
            await _answer(send, 200, "application/json", json.dumps({"bearer": session}).encode())
        return True

    async def welcome(self, send: Send, session: str, path: str) -> None:
        """Give the cookie and go on without the token; by a page, for a redirect would not bring a cookie."""
        cookie = f"{self.cookie}={session}; HttpOnly; SameSite=Strict; Path=/"
        await _go(send, path, [(b"set-cookie", cookie.encode())])

    async def turn_away(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Answer one without a session: the form where there is a password and a page was asked for."""
        page = scope["type"] == "http" and "text/html" in headers.get("accept", "")
        if page and self.keys.has_password:
            await _page(send, 401, self.form())
        elif page:
            told = "Open the address that shoal studio printed; it works once. Start it again for another."
            await _page(send, 401, f"<p>{told}</p>")
        else:
            await _refuse(scope, send, 401, "Sign in first: this needs a session.")

    def form(self, message: str = "") -> str:
        """Return the page that asks for the password."""
        return (
            f"<p role=alert>{html.escape(message)}</p><form method=post action={_LOGIN}>"
            "<label>Password <input type=password name=password autofocus required></label> "
            "<button>Sign in</button></form>"
        )


def _own(origin: str, headers: dict[str, str]) -> bool:
    """Tell whether an origin is the address that is served."""
    if origin == "null":  # a form of a page that tells nobody where it is (no-referrer)
        return headers.get("sec-fetch-site") == "same-origin"
    return origin.lower() == f"http://{headers.get('host', '').lower()}"


def _told(body: bytes, *, as_form: bool) -> dict[str, str]:
    """Read what was sent to open a session."""
    try:
        text = body.decode("utf-8")
        found = {n: v[0] for n, v in parse_qs(text).items()} if as_form else json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {n: v for n, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


async def _body(receive: Receive, most: int = 10_000) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > most:
            return body[:most]


def _bounded(receive: Receive, most: int) -> Receive:
    """Hang up on a request that says nothing of its length and goes on beyond the limit."""
    size = 0

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > most else message

    return receiving


def _length(headers: dict[str, str]) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _with_headers(scope: Scope, send: Send) -> Send:
    """Add the headers that every answer carries."""
    # The framework's own files are the same for everybody; all else must not stay in a cache.
    framework = str(scope.get("path", "")).startswith("/_nicegui/")

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(n, v) for n, v in message.get("headers", []) if n.lower() not in (b"server",)]
            there = {n.lower() for n, _ in kept}
            if not (framework and b"cache-control" in there):
                kept = [(n, v) for n, v in kept if n.lower() != b"cache-control"]
                kept.append((b"cache-control", b"no-store"))
            kept += [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in there]
            message = {**message, "headers": kept}
        await send(message)

    return sending


async def _refuse(scope: Scope, send: Send, status: int, text: str) -> None:
    """Answer no, in JSON; a socket is closed before it opens."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    await _answer(send, status, "application/json", json.dumps({"error": text, "field": None}).encode())


async def _go(send: Send, path: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    place = html.escape(path if path.startswith("/") and not path.startswith("//") else "/", quote=True)
    page = f'<meta http-equiv="refresh" content="0; url={place}"><p><a href="{place}">Go on</a></p>'
    await _page(send, 200, page, headers)


async def _page(send: Send, status: int, body: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta name=color-scheme content='light dark'><title>shoal studio</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem}"
        f"</style><h1>shoal studio</h1>{body}</html>"
    )
    await _answer(send, status, "text/html; charset=utf-8", text.encode(), headers)


async def _answer(
    send: Send, status: int, kind: str, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    carried = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": carried + (headers or [])}
    sending = _with_headers({"path": ""}, send)
    await sending(start)
    await sending({"type": "http.response.body", "body": body})
