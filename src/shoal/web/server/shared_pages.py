"""Read-only pages for people without a session: each page can only be opened with its own token."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from shoal.web.errors import Refused
from shoal.web.server.sessions import Attempts, digest

SHARED = "/shared/"
SHARED_SECONDS = 7 * 86_400.0
_MAX_PER_WORKSPACE = 20
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex, nofollow",
}


@dataclass(frozen=True)
class SharedPage:
    """A stored page and its workspace. The page is valid only while the workspace is open."""

    digest: bytes  # hash of the token; the token itself is not stored
    workspace: str
    html: str
    expires: float


class SharedPages:
    """The pages that are currently shared."""

    def __init__(self, is_open: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self.attempts = Attempts(clock)  # not those of sign-in: wrong links must not block sign-in
        self._is_open, self._clock = is_open, clock
        self._pages: tuple[SharedPage, ...] = ()
        self._lock = threading.Lock()

    def share(self, workspace: str, html: str) -> str:
        """Add a page and return its token."""
        token = secrets.token_urlsafe(32)
        page = SharedPage(digest(token), workspace, html, self._clock() + SHARED_SECONDS)
        with self._lock:
            self._pages = tuple(shared for shared in self._pages if self._is_valid(shared))
            if self.count(workspace) >= _MAX_PER_WORKSPACE:
                raise Refused(f"At most {_MAX_PER_WORKSPACE} links can be open. Revoke them first.", "link")
            self._pages = (*self._pages, page)
        return token

    def find(self, token: str) -> str | None:
        """Return the page of a token, or None if it has expired, was revoked, or its workspace is closed."""
        requested, match = digest(token), None
        for page in self._pages:
            if hmac.compare_digest(requested, page.digest) and self._is_valid(page):
                match = page.html
        return match

    def revoke(self, workspace: str) -> None:
        """Remove all pages of a workspace."""
        with self._lock:
            self._pages = tuple(page for page in self._pages if page.workspace != workspace)

    def count(self, workspace: str) -> int:
        return sum(page.workspace == workspace and self._is_valid(page) for page in self._pages)

    def _is_valid(self, page: SharedPage) -> bool:
        return self._clock() < page.expires and self._is_open(page.workspace)

    def respond(self, scope: Scope, source: str) -> Response | None:
        """Answer a request below /shared/, which needs no session. Return None for any other request."""
        path = str(scope["path"])
        if scope["type"] != "http" or not path.startswith(SHARED):
            return None
        if scope["method"] not in ("GET", "HEAD"):
            return _page("This page can only be read.", 405)
        if not self.attempts.begin(source):
            return _page("Too many wrong addresses. Wait a minute.", 429)
        html = self.find(path.removeprefix(SHARED))
        if html is None:
            return _page("There is no such page. It may have expired, or it was revoked.", 404)
        self.attempts.succeeded(source)
        return HTMLResponse(html, headers=_HEADERS)


def _page(text: str, status: int) -> Response:
    content = f"<!doctype html><html lang=en><meta charset=utf-8><title>shoal</title><p>{text}</p></html>"
    return HTMLResponse(content, status, headers=_HEADERS)
