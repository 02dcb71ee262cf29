"""Answers that need no application: a refusal, a small page; and the headers that every answer carries."""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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


def with_headers(scope: Scope, send: Send) -> Send:
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


async def refuse(scope: Scope, send: Send, status: int, text: str) -> None:
    """Answer no, in JSON; a socket is closed before it opens."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    await answer(send, status, "application/json", json.dumps({"error": text, "field": None}).encode())


async def go_on(send: Send, path: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Answer with a page that leads to a path of this address."""
    place = html.escape(path if path.startswith("/") and not path.startswith("//") else "/", quote=True)
    leading = f'<meta http-equiv="refresh" content="0; url={place}"><p><a href="{place}">Go on</a></p>'
    await page(send, 200, leading, headers)


async def page(send: Send, status: int, body: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Answer with a small page."""
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta name=color-scheme content='light dark'><title>shoal studio</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem}"
        f"</style><h1>shoal studio</h1>{body}</html>"
    )
    await answer(send, status, "text/html; charset=utf-8", text.encode(), headers)


async def answer(
    send: Send, status: int, kind: str, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Answer with a body of some kind."""
    carried = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": carried + (headers or [])}
    sending = with_headers({"path": ""}, send)
    await sending(start)
    await sending({"type": "http.response.body", "body": body})
