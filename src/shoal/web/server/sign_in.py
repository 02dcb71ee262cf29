"""Signing in and out: the requests that open and end sessions, and the pages for them."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope

from shoal.web.server.origins import Origin
from shoal.web.server.sessions import Keys, UserSession

_LOGIN = "/login"
_LOGOUT = "/logout"
_SESSION = "/api/session"
_AT_ONCE = 2  # maximum number of passwords hashed at the same time; each takes 32 MiB


@dataclass(frozen=True)
class RequestInfo:
    """A request to a host that is served: its headers, its origin and the address of its sender."""

    headers: Mapping[str, str]
    origin: Origin
    source: str


class SignIn:
    """Handles the requests that open and end sessions."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._hashing = asyncio.Semaphore(_AT_ONCE)

    async def sign_in(self, scope: Scope, request: RequestInfo, receive: Receive) -> Response | None:
        """Answer a request to open a session; return None for any other request."""
        method, path = scope["method"], scope["path"]
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if method == "GET" and "token" in query and not path.startswith("/api/"):
            return self._by_token(request, query["token"][0])
        if method == "GET" and path == _LOGIN:
            return self._form()
        if method == "POST" and path in (_LOGIN, _SESSION):
            return await self._by_secret(scope, request, receive)
        return None

    def answer_session(self, scope: Scope, request: RequestInfo, session: UserSession) -> Response | None:
        """Answer a request to show the user of a session or to end it; return None for any other request."""
        method, path = scope["method"], scope["path"]
        if method == "GET" and path == _SESSION:
            return JSONResponse({"user": session.user or None})
        if (method, path) not in (("POST", _LOGOUT), ("DELETE", _SESSION)):
            return None
        self.keys.end(session)
        cleared = _set_cookie(request.origin, "", "; Max-Age=0")
        if path == _SESSION:
            return JSONResponse({"user": None}, headers=cleared)
        if self.keys.has_password:
            return self._form("<p class=message role=status>You are signed out.</p>", headers=cleared)
        text = "You are signed out. The terminal of shoal studio shows a new address."
        return _page(f"<p class=message role=status>{text}</p>", headers=cleared)

    def ask(self, request: RequestInfo) -> Response:
        """Answer a request without a session. A browser gets a page that says how to sign in."""
        if "text/html" not in request.headers.get("accept", ""):
            return refusal(401, "Sign in first: this needs a session.")
        if self.keys.has_password:
            return self._form(status=401)
        text = "Open the address that the terminal of shoal studio shows. It works once."
        return _page(f"<p>{text}</p>", 401)

    def _by_token(self, request: RequestInfo, token: str) -> Response:
        """Open a session for the token in an address.

        A wrong token is not counted: 256 random bits cannot be guessed, and a page of another site can make a
        browser request this address.
        """
        if self.keys.find(cookie_of(request.headers, request.origin)):
            return _continue()  # the page was reloaded, and a session is already open
        secret = None if self.keys.users else self.keys.session(token=token)
        return _continue(_set_cookie(request.origin, secret)) if secret else self.ask(request)

    async def _by_secret(self, scope: Scope, request: RequestInfo, receive: Receive) -> Response:
        """Open a session with the token, or the password and name, that a form or a program sends."""
        by_form = scope["path"] == _LOGIN
        fields = _read(await _body(receive), as_form=by_form)
        if not self.keys.attempts.begin(request.source):
            return self._failed(429, "Too many failed attempts. Wait a minute.", by_form=by_form)
        secret = await self._session(fields)
        if secret is None:
            name = "name or password" if self.keys.users else "password" if by_form else "token or password"
            return self._failed(401, f"Wrong {name}.", by_form=by_form)
        self.keys.attempts.succeeded(request.source)
        if not by_form:
            return JSONResponse({"bearer": secret})
        before = self.keys.find(cookie_of(request.headers, request.origin))
        if before:
            self.keys.end(before)
        return _continue(_set_cookie(request.origin, secret))

    async def _session(self, fields: Mapping[str, str]) -> str | None:
        token, password, user = (fields.get(name) for name in ("token", "password", "user"))
        if self.keys.users is None:
            return self.keys.session(token=token, password=password)
        async with self._hashing:
            return await asyncio.to_thread(self.keys.session, password=password, user=user)

    def _failed(self, status: int, message: str, *, by_form: bool) -> Response:
        alert = f"<p class='message bad' role=alert>{html.escape(message)}</p>"
        return self._form(alert, status) if by_form else refusal(status, message)

    def _form(
        self, message: str = "", status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the page that asks for the password."""
        name = (
            "<label class=field><span>Name</span><input class=in name=user autocomplete=username "
            "autocapitalize=none required autofocus></label>"
            if self.keys.users
            else ""
        )
        focus = "" if name else " autofocus"
        form = (
            f"<form method=post action={_LOGIN} class=tight>{name}"
            "<label class=field><span>Password</span><input class=in type=password name=password "
            f"autocomplete=current-password required{focus}></label>"
            "<button class='btn primary self-start'>Sign in</button></form>"
        )
        return _page(message + form, status, headers)


def refusal(status: int, text: str) -> Response:
    """Return the response to a request that is refused."""
    return JSONResponse({"error": text, "field": None}, status)


def _continue(headers: Mapping[str, str] | None = None) -> Response:
    """Return a page that redirects to the studio, never to a path from the request."""
    body = '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Continue</a></p>'
    return _page(body, headers=headers)


def _page(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>shoal studio</title><style>{_style()}</style><body><main class='card sign-in'>"
        "<h1 class=brand><b>shoal</b> studio</h1>"
        "<p class=muted>Makes tables of people's records safe to share, on your own machine.</p>"
        f"{body}</main></body></html>"
    )
    return HTMLResponse(text, status, headers)


@cache
def _style() -> str:
    """Return the style sheet. The system chooses light or dark, because this page runs no script."""
    text = (files("shoal") / "data" / "studio.css").read_text(encoding="utf-8")
    dark = re.search(r"body\.body--dark (\{[^}]*\})", text)
    assert dark
    return f"{text}@media (prefers-color-scheme: dark) {{ body {dark[1]} }}"


def cookie_of(headers: Mapping[str, str], origin: Origin) -> str | None:
    """Return the secret in the session's cookie.

    The header may also contain cookies of other programs on the same host, which may be malformed.
    """
    cookie_name = _cookie_name(origin)
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie_name:
            return value
    return None


def _cookie_name(origin: Origin) -> str:
    """Return a name with the port, because all ports of a host share cookies. __Host- requires HTTPS."""
    return f"{'__Host-' if origin.secure else ''}shoal-studio-{origin.port}"


def _set_cookie(origin: Origin, secret: str, attributes: str = "") -> dict[str, str]:
    secure = "; Secure" if origin.secure else ""
    value = f"{_cookie_name(origin)}={secret}; HttpOnly; SameSite=Strict; Path=/{secure}{attributes}"
    return {"set-cookie": value}


def _read(body: bytes, *, as_form: bool) -> dict[str, str]:
    """Parse the body of a request that opens a session."""
    try:
        text = body.decode("utf-8")
        values = {n: v[0] for n, v in parse_qs(text).items()} if as_form else json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {n: v for n, v in values.items() if isinstance(v, str)} if isinstance(values, dict) else {}


async def _body(receive: Receive, most: int = 10_000) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > most:
            return body[:most]
