"""Security: who may speak to the studio, from where, and what browsers may do with its answers.

Every request and socket needs a session: a cookie, or `Authorization: Bearer` for programs. A session is had
once for the token in the address that is printed at the start, or for the password. The Host header must be
the address that is served, or a name that points here could be anyone's (DNS rebinding); what changes
something, and every socket, must come from a page of this address (Origin).
"""

from __future__ import annotations

import logging
import socket
from urllib.parse import urlsplit

from shoal.web.keys import Keys, is_loopback
from shoal.web.refusals import kind_and_place, surprise
from shoal.web.replies import App, Message, Receive, Scope, Send, refuse, with_headers
from shoal.web.sign_in import NOT_FROM_HERE, SignIn, is_own

_LOG = logging.getLogger("shoal.web")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    """The middleware that stands before everything else."""

    def __init__(self, app: App, *, keys: Keys, host: str, port: int, most_bytes: int) -> None:
        self.app = app
        self.keys = keys
        self.sign_in = SignIn(keys, port)
        self.port = port
        self.most_bytes = most_bytes
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
            await refuse(scope, send, 421, "This address is not served here.")
            return
        if scope["type"] == "http" and await self.sign_in.signed_in(scope, headers, receive, send):
            return
        bearer = headers.get("authorization", "")
        by_bearer = bearer[:7].lower() == "bearer " and self.keys.knows(bearer[7:].strip())
        if not by_bearer and not self.keys.knows(self.sign_in.cookie_of(headers)):
            await self.sign_in.turn_away(scope, headers, send)
            return
        if not self.from_here(scope, headers, by_bearer=by_bearer):
            await refuse(scope, send, 403, NOT_FROM_HERE)
            return
        if _length(headers) > self.most_bytes:
            await refuse(scope, send, 413, f"More than {self.most_bytes:,} bytes are not taken.")
            return
        bounded = receive if scope["type"] == "websocket" else _bounded(receive, self.most_bytes)
        await self.passed_on(scope, bounded, with_headers(scope, send))

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
            _LOG.error("%s while answering", kind_and_place(error))
            if not begun:
                await refuse(scope, send, 500, surprise(error))

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
        return is_own(origin, headers)


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
