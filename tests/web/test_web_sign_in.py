"""Signing in and out: from which addresses, how often, for how long, and what the log holds of it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
from shoal.web.app import _keys
from shoal.web.errors import Refused
from shoal.web.server.origins import Peer, Proxies, Served, read_origin, read_proxy
from shoal.web.server.security import Guard, redact_logs, redact_record, while_signed_in
from shoal.web.server.sessions import LIMIT, PERIOD, SINGLE_USER, USER, Attempts, Keys, Sessions, check_host
from studio import Running, running

PASSWORD = "correct horse"
IMAGE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
FORM = {"accept": "text/html"}


class Clock:
    """A time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def studio() -> Iterator[Running]:
    with running(password=PASSWORD) as found:
        yield found


def raw(studio: Running, *lines: str) -> bytes:
    """Send a request as it is written, and return the answer's first line."""
    with socket.create_connection(("127.0.0.1", studio.port), timeout=300) as line:
        line.sendall("".join(f"{one}\r\n" for one in (*lines, "Connection: close", "")).encode())
        return line.makefile("rb").readline()


# Origins.


def test_a_second_loopback_address_is_served_under_its_name() -> None:
    assert Served("127.0.0.2", 8000).match("127.0.0.2:8000", {})
    assert Served("[0:0::1]", 8000).match("[::1]:8000", {})
    assert not Served("127.0.0.2", 8000).match("127.0.0.3:8000", {})


@pytest.mark.parametrize(
    ("host", "scheme", "served"),
    [
        ("studio.example.org", None, True),
        ("Studio.Example.org:443", "https", True),
        ("studio.example.org", "http", False),
        ("studio.example.org:80", None, False),
        ("studio.example.org.", None, False),
        ("a.studio.example.org", None, False),
        ("studio.example.org:443@evil.example", None, False),
        ("studio.example.org?", None, False),
        ("127.0.0.1:8000", None, False),
        ("inside.example.org:8000", None, True),
    ],
)
def test_an_origin_is_matched_exactly(host: str, scheme: str | None, served: bool) -> None:
    origins = [read_origin(one) for one in ("https://studio.example.org", "http://inside.example.org:8000")]
    found = Served("127.0.0.1", 8000, origins).match(host, {"server": ("127.0.0.1", 8000)}, scheme)
    assert (found is not None) == served


@pytest.mark.parametrize(
    "text",
    [
        "",
        "studio.example.org",
        "https://",
        "https://a/b",
        "https://a/",
        "https://u@a",
        "ftp://a",
        "https://a:0",
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(
        Refused, match=r"--origin takes a scheme and a host .* such as https://studio.example"
    ):
        read_origin(text)


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.1/8", "10.0.0"])
def test_what_is_no_proxy_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="--proxy takes an IP address or a network"):
        read_proxy(text)


def test_an_origin_that_others_reach_needs_a_password() -> None:
    origins = [read_origin("https://studio.example.org")]
    with pytest.raises(Refused, match=r"--origin https://studio.example.org lets others .*--users"):
        check_host("127.0.0.1", None, origins)
    check_host("127.0.0.1", "secret", origins)
    check_host("0.0.0.0", None, origins, users=True)
    check_host("127.0.0.1", None, [read_origin("http://localhost:8000")])


def test_an_https_origin_has_a_secure_cookie_and_checks_origins_by_its_scheme() -> None:
    origin = "https://studio.example.org"
    served = {"origins": [read_origin(origin)]}
    with running(password=PASSWORD, served=served) as studio, studio.anyone() as client:
        client.headers["host"] = "studio.example.org"
        answer = client.post("/login", data={"password": PASSWORD}, headers={"origin": origin})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-shoal-studio-443=")
        assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
        carried = {"cookie": cookie.partition(";")[0]}
        assert client.post("/api/workspaces", headers=carried | {"origin": origin}).status_code == 201
        for other in ("http://studio.example.org", "https://studio.example.org:8443", "null"):
            assert client.post("/api/workspaces", headers=carried | {"origin": other}).status_code == 403
        assert client.get("/", headers={"host": f"127.0.0.1:{studio.port}"}).status_code == 421


@pytest.mark.parametrize("again", ["Host: evil.example", "Host: 127.0.0.1:{port}", "hOST: evil.example"])
def test_two_host_headers_are_refused(studio: Running, again: str) -> None:
    bearer = f"Authorization: Bearer {studio.bearer()}"
    host = f"Host: 127.0.0.1:{studio.port}"
    assert b" 200 " in raw(studio, "GET /api/catalogue HTTP/1.1", host, bearer)
    again = again.format(port=studio.port)
    assert b" 400 " in raw(studio, "GET /api/catalogue HTTP/1.1", host, again, bearer)
    assert b" 400 " in raw(studio, "GET /api/catalogue HTTP/1.1", again, host, bearer)


def test_a_foreign_origin_is_answered_nothing_and_no_cross_origin_header(studio: Running) -> None:
    with studio.client() as client:
        for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, IMAGE):
            for path in ("/api/catalogue", "/login", "/_nicegui_ws/socket.io/?EIO=4&transport=polling"):
                answer = client.get(path, headers=headers)
                assert answer.status_code == 403
                assert not [name for name in answer.headers if name.startswith("access-control")]
        preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
        assert client.options("/api/workspaces", headers=preflight).status_code == 403


@pytest.mark.parametrize("path", ["/%5Cevil.example", "//evil.example", "/%09/evil.example", "/x%22%3E"])
def test_signing_in_leads_nowhere_else(studio: Running, path: str) -> None:
    with studio.anyone() as client:
        for _ in ("the token", "a reload"):
            answer = client.get(f"{studio.address}{path}", params={"token": str(studio.keys.token)})
            if answer.status_code == 200:
                assert 'content="0; url=/"' in answer.text
            assert "evil" not in answer.text
            client.post("/login", data={"password": PASSWORD})


@pytest.mark.parametrize("other", ['a={"x": 1}', "b[c]=1", "d", "=f"])
def test_cookies_of_other_programs_do_not_hide_the_session(studio: Running, other: str) -> None:
    with studio.anyone() as client:
        carried = f"{other}; shoal-studio-{studio.port}={studio.bearer()}"
        assert client.get("/api/catalogue", headers={"cookie": carried}).status_code == 200


# Attempts.


def test_images_of_a_page_elsewhere_do_not_lock_anybody_out(studio: Running) -> None:
    with studio.anyone() as client:
        for headers in (
            IMAGE,
            {},
            {"referer": "http://evil.example/"},
        ):  # HTTP has no Sec-Fetch
            for _ in range(LIMIT + 1):
                assert client.get("/?token=x", headers=headers).status_code in (401, 403)
        foreign = {"origin": "http://evil.example"}
        for headers in (foreign, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}):
            for _ in range(LIMIT + 1):
                answer = client.post("/login", data={"password": "x"}, headers=headers)
                assert answer.status_code == 403
        assert client.post("/login", data={"password": PASSWORD}).status_code == 200
    with studio.anyone() as client:
        assert client.get("/", params={"token": str(studio.keys.token)}).status_code == 200


@pytest.mark.parametrize("path", ["/login", "/api/session"])
def test_wrong_passwords_block_the_source_that_sent_them_and_no_other(path: str) -> None:
    served = {"proxies": [read_proxy("127.0.0.1")]}
    with running(password=PASSWORD, served=served) as studio, studio.anyone() as client:

        def sign_in(source: str, password: str) -> int:
            given = {"data": {"password": password}} if path == "/login" else {"json": {"password": password}}
            return client.post(path, headers={"x-forwarded-for": source}, **given).status_code

        assert [sign_in("192.0.2.1", "wrong") for _ in range(LIMIT + 1)] == [401] * LIMIT + [429]
        assert sign_in("192.0.2.1", PASSWORD) == 429
        assert sign_in("192.0.2.9, 192.0.2.1", PASSWORD) == 429  # the client's own word is not believed
        assert sign_in("192.0.2.2", PASSWORD) == 200


def test_forwarded_addresses_of_others_than_the_proxy_are_ignored() -> None:
    with running(password=PASSWORD, served={"proxies": [read_proxy("192.0.2.0/24")]}) as studio:
        with studio.anyone() as client:
            statuses = [
                client.post(
                    "/login", data={"password": "wrong"}, headers={"x-forwarded-for": f"198.51.100.{n}"}
                ).status_code
                for n in range(LIMIT + 1)
            ]
            host = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https"}
            assert client.get("/", headers=host).status_code == 401
        assert statuses == [401] * LIMIT + [429]


@pytest.mark.parametrize("proxies", [[], [read_proxy("192.0.2.1")]])
def test_no_forwarded_header_reaches_the_application(proxies: list[Any]) -> None:
    """NiceGUI writes X-Forwarded-Prefix into its pages, whoever sends it."""
    keys, reached = Keys(), list[Any]()

    async def app(scope: Any, *_: Any) -> None:
        reached.append(scope)

    guard = Guard(app, keys=keys, host="127.0.0.1", port=80, most_bytes=10, proxies=proxies)
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {keys.session(token=keys.token)}",
        "X-Forwarded-Prefix": "//evil.example",
        "x-forwarded-for": "192.0.2.9",
        "forwarded": "for=192.0.2.9",
    }
    carried = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": carried, "client": ("192.0.2.1", 1)}
    asyncio.run(guard(scope, None, None))  # type: ignore[arg-type]
    assert [name for name, _ in reached[0]["headers"]] == [b"host", b"authorization"]
    assert reached[0][USER] == SINGLE_USER


@pytest.mark.parametrize(
    ("client", "forwarded", "source"),
    [
        ("10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.5", "198.51.100.1, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.5", "192.0.2.1, 10.0.0.6", "192.0.2.1"),
        ("10.0.0.5", "192.0.2.1:5000", "192.0.2.1"),
        ("10.0.0.5", "[2001:db8::1]:5000", "2001:db8::1"),
        ("10.0.0.5", "192.0.2.1, unknown", "10.0.0.5"),
        ("10.0.0.5", "", "10.0.0.5"),
        ("::ffff:10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("192.0.2.7", "192.0.2.1", "192.0.2.7"),
    ],
)
def test_the_source_is_the_last_address_that_is_no_proxy(client: str, forwarded: str, source: str) -> None:
    proxies = Proxies([read_proxy("10.0.0.0/28")])
    headers = {"host": "a", "x-forwarded-for": forwarded}
    assert proxies.peer({"client": (client, 1)}, headers) == Peer(source, "a")


def test_attempts_are_counted_while_they_run_and_success_forgives_only_itself() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    assert [attempts.begin("192.0.2.1") for _ in range(LIMIT + 1)] == [True] * LIMIT + [False]
    attempts.succeeded("192.0.2.1")
    assert [attempts.begin("192.0.2.1") for _ in range(2)] == [True, False]
    assert attempts.begin("2001:db8::1")
    clock.now += PERIOD + 1
    assert attempts.begin("192.0.2.1")


# Sessions.


def test_a_session_ends_when_it_is_idle_and_the_terminal_gets_a_new_address() -> None:
    clock, printed = Clock(), list[str]()
    keys = Keys(sessions=Sessions(600, clock))
    keys.on_new_token = printed.append
    with running(keys=keys) as studio, studio.client() as client, studio.anyone() as stranger:
        for _ in range(3):
            clock.now += 599
            assert client.get("/api/catalogue").status_code == 200
        assert stranger.get("/").status_code == 401
        assert not printed  # somebody is signed in
        clock.now += 601
        assert client.get("/api/catalogue").status_code == 401
        assert stranger.get("/").status_code == 401
        assert printed == [keys.token]
        assert stranger.get("/", params={"token": printed[0]}).status_code == 200


def test_the_option_sets_how_long_a_session_may_be_idle() -> None:
    assert _keys(None, None, 5).sessions.idle_seconds == 300


def test_signing_out_ends_the_session_on_the_server(studio: Running) -> None:
    here = {"origin": studio.address}
    with studio.anyone() as client, studio.client() as other:
        client.post("/login", data={"password": PASSWORD})
        held = client.cookies[f"shoal-studio-{studio.port}"]
        assert client.get("/api/session").json() == {"user": None}
        assert client.post("/logout").status_code == 403  # no page of the studio asked for it
        assert client.post("/logout", headers={"origin": "http://evil.example"}).status_code == 403
        assert client.get("/api/session").status_code == 200
        answer = client.post("/logout", headers=here)
        assert "signed out" in answer.text
        assert "Max-Age=0" in answer.headers["set-cookie"]
        again = {"cookie": f"shoal-studio-{studio.port}={held}"}
        assert client.get("/api/catalogue", headers=again).status_code == 401
        assert other.get("/api/catalogue").status_code == 200  # another session
        assert other.delete("/api/session").json() == {"user": None}
        assert other.get("/api/catalogue").status_code == 401


def test_signing_in_again_makes_another_session_and_ends_the_one_before(studio: Running) -> None:
    name = f"shoal-studio-{studio.port}"
    with studio.anyone() as client:
        client.post("/login", data={"password": PASSWORD})
        first = client.cookies[name]
        client.post("/login", data={"password": PASSWORD})
        assert client.cookies[name] != first
        assert len(studio.keys.sessions) == 1
        assert client.get("/api/catalogue", headers={"cookie": f"{name}={first}"}).status_code == 401
        chosen = {"cookie": f"{name}=chosen-by-somebody-else"}
        answer = client.post("/login", data={"password": PASSWORD}, headers=chosen)
        assert "chosen" not in answer.headers["set-cookie"]


def test_one_user_cannot_push_out_the_sessions_of_another() -> None:
    sessions = Sessions()
    first = sessions.open("anna")
    others = [sessions.open("ben") for _ in range(150)]
    assert sessions.find(first)
    assert sessions.find(others[-1])
    assert not sessions.find(others[0])
    assert len(sessions) == 101


@pytest.mark.parametrize("how", ["signed out", "idle"])
def test_a_socket_is_closed_when_its_session_ends(how: str) -> None:
    clock, sent = Clock(), list[Any]()
    keys = Keys(sessions=Sessions(600, clock))
    session = keys.find(keys.session(token=keys.token))
    assert session

    async def listen() -> list[Any]:
        incoming: asyncio.Queue[Any] = asyncio.Queue()

        async def send(message: Any) -> None:
            sent.append(message)

        async with while_signed_in(keys, session, incoming.get, send) as (receive, sending):
            clock.now += 500
            await incoming.put({"type": "websocket.receive", "text": '42["event",{}]'})
            first = await receive()
            clock.now += 500
            for text in ("3", '42["ack",{}]'):  # a heartbeat is no sign of life
                await incoming.put({"type": "websocket.receive", "text": text})
                await receive()
            clock.now += 50
            assert 0 < keys.sessions.seconds_left(session) <= 100
            waiting = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            if how == "idle":
                clock.now += 601
                await incoming.put({"type": "websocket.receive", "text": "3"})  # wakes what waits
            else:
                keys.end(session)
            last = await waiting
            last = last if last["type"] == "websocket.disconnect" else await receive()
            await sending({"type": "websocket.send", "text": "a value"})
            return [first["text"], last["type"]]

    assert asyncio.run(listen()) == ['42["event",{}]', "websocket.disconnect"]
    assert [message["type"] for message in sent] == ["websocket.close"]


# The log.


def test_tokens_workspaces_and_query_strings_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    redact_logs()
    try:
        with caplog.at_level(logging.DEBUG):
            for name in ("uvicorn.access", "uvicorn.error", "nicegui", "engineio.server"):
                logger = logging.getLogger(name)
                logger.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:5", "GET", "/?token=s3cret&x=y", "1.1", 200)
                logger.info("GET /api/workspaces/kJ3xs3cret/jobs/4?wait=s3cret")
                logger.info('("127.0.0.1", 5) - "WebSocket %s" [accepted]', "/_nicegui_ws/?client_id=s3cret")
                logger.warning("page %s", "4c5b2f6e-7a5d-4e0c-9b6f-s3cret")
    finally:
        for logger in map(logging.getLogger, logging.root.manager.loggerDict):
            logger.removeFilter(redact_record)
    messages = "\n".join(caplog.messages)  # another test may have set another format of the text
    assert '"GET /... HTTP/1.1" 200' in messages
    assert "GET /api/workspaces/.../jobs/4..." in messages
    assert "s3cret" not in messages + caplog.text
