"""Sign in: what opens a session, and what one without a session is told."""

from __future__ import annotations

import html
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from shoal.web.keys import Keys
from shoal.web.replies import Receive, Scope, Send, answer, go_on, page, refuse

_LOGIN = "/login"
_SESSION = "/api/session"
NOT_FROM_HERE = "This request does not come from a page of the studio."


class SignIn:
    """The token in an address, the password's form, and a program's way to a session."""

    def __init__(self, keys: Keys, port: int) -> None:
        self.keys = keys
        self.cookie = f"shoal-studio-{port}"  # cookies do not tell ports apart

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
            await self.by_token(scope, headers, send, query["token"][0])
        elif method == "GET" and path == _LOGIN:
            await page(send, 200, self.form())
        elif method == "POST" and path in (_LOGIN, _SESSION):
            await self.by_secret(scope, headers, receive, send)
        else:
            return False
        return True

    async def by_token(self, scope: Scope, headers: dict[str, str], send: Send, token: str) -> None:
        """Open a session for the token in an address."""
        if self.keys.knows(self.cookie_of(headers)):
            await go_on(send, scope["path"])  # reloaded: the session is there
            return
        session = self.keys.session(token=token)
        if session:
            await self.welcome(send, session, scope["path"])
        else:
            await self.turn_away(scope, headers, send)

    async def by_secret(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        """Open a session for the token or the password that a form or a program sends."""
        origin, by_form = headers.get("origin"), scope["path"] == _LOGIN
        if origin is not None and not is_own(origin, headers):
            await refuse(scope, send, 403, NOT_FROM_HERE)
            return
        told = _told(await _body(receive), as_form=by_form)
        session = self.keys.session(token=told.get("token"), password=told.get("password"))
        if session is None:
            waits = not self.keys.patience
            message = "Too many tries. Wait a minute." if waits else "That is not right."
            status = 429 if waits else 401
            if by_form:
                await page(send, status, self.form(message))
            else:
                await refuse(scope, send, status, message)
        elif by_form:
            await self.welcome(send, session, "/")
        else:
            await answer(send, 200, "application/json", json.dumps({"bearer": session}).encode())

    async def welcome(self, send: Send, session: str, path: str) -> None:
        """Give the cookie and go on without the token; by a page, for a redirect would not bring a cookie."""
        cookie = f"{self.cookie}={session}; HttpOnly; SameSite=Strict; Path=/"
        await go_on(send, path, [(b"set-cookie", cookie.encode())])

    async def turn_away(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Answer one without a session: the form where there is a password and a page was asked for."""
        by_browser = scope["type"] == "http" and "text/html" in headers.get("accept", "")
        if by_browser and self.keys.has_password:
            await page(send, 401, self.form())
        elif by_browser:
            told = "Open the address that shoal studio printed; it works once. Start it again for another."
            await page(send, 401, f"<p>{told}</p>")
        else:
            await refuse(scope, send, 401, "Sign in first: this needs a session.")

    def form(self, message: str = "") -> str:
        """Return the page that asks for the password."""
        return (
            f"<p role=alert>{html.escape(message)}</p><form method=post action={_LOGIN}>"
            "<label>Password <input type=password name=password autofocus required></label> "
            "<button>Sign in</button></form>"
        )


def is_own(origin: str, headers: dict[str, str]) -> bool:
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
