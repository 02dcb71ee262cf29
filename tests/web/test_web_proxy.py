"""The studio in a real browser from elsewhere: a second address, a name, nginx with HTTPS, two users."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from browser import BROWSER_MARKS, chromium, new_page, studio
from code_blocks import DOCS, blocks

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
OPENSSL = shutil.which("openssl")
pytestmark = BROWSER_MARKS
needs_nginx = pytest.mark.skipif(not (NGINX and OPENSSL), reason="needs nginx and openssl")

NAME = "studio.example.org"
PASSWORD = "correct horse"
PASSWORDS = {"anna": "a long password", "ben": "another password"}
_GET = "path => fetch(path).then(answer => answer.status)"
_SEND = """path => {
  const form = new FormData();
  form.append("file", new File(["a,b\\n1,2\\n"], "x.csv"));
  return fetch(path, { method: "POST", body: form }).then(answer => answer.status);
}"""
ELSEWHERE = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """Keep a port from other programs: it is bound, and whoever names it may listen there all the same."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def sign_in(page: Any, address: str, password: str, user: str | None = None) -> None:
    page.goto(address)
    if user:
        page.get_by_label("Name").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def opened(page: Any) -> Any:
    """Wait for the page that the socket fills."""
    page.get_by_role("button", name="Open the sample").wait_for()
    return page


def open_sample(page: Any) -> None:
    page.get_by_role("button", name="Open the sample").click()
    page.get_by_role("heading", name="Hierarchy of age").wait_for()


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users with the cheapest hashes that are accepted: eleven are computed within one period."""
    from shoal.web.server import users

    path = tmp_path_factory.mktemp("users") / "users.txt"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(users, "_COST", (14, 8, 1))
        for name, password in PASSWORDS.items():
            users.add_user(path, name, password)
    return path


# Addresses.


def test_a_second_loopback_address_signs_in_with_the_printed_address() -> None:
    with studio("--host", "127.0.0.2") as started, chromium() as browser:
        address = started()
        assert address.startswith("http://127.0.0.2:")
        page = new_page(browser)
        page.goto(address)
        open_sample(opened(page))


def test_a_name_over_http_signs_in_although_browsers_say_less_there() -> None:
    """A browser sends no Sec-Fetch-Site there, and Origin only if the referrer policy lets it."""
    with ExitStack() as stack:
        port = stack.enter_context(reserved_port())
        origin = f"http://{NAME}:{port}"
        options = ("--port", str(port), "--origin", origin)
        started = stack.enter_context(studio(*options, password=PASSWORD))
        browser = stack.enter_context(chromium(ELSEWHERE))
        assert started().startswith(f"{origin}/?token=")
        page, sent = new_page(browser), list[dict[str, str]]()
        page.on("request", lambda asked: sent.append(asked.all_headers()) if asked.method == "POST" else None)
        sign_in(page, origin, PASSWORD)
        open_sample(opened(page))
        assert [one["origin"] for one in sent if "sec-fetch-site" not in one] == [origin]
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("You are signed out.").wait_for()
        page.goto(origin)
        page.get_by_label("Password").wait_for()


# A reverse proxy.


@contextmanager
def nginx(home: Path, port: int, behind: int) -> Iterator[None]:
    """Run nginx as the docs configure it, at other ports and with a certificate of its own."""
    assert NGINX
    assert OPENSSL
    key, certificate = home / "studio.key", home / "studio.pem"
    subprocess.run(
        [
            OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
            "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(key), "-out", str(certificate),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    (block,) = blocks(DOCS / "studio.md", "nginx")
    server = (
        block.text.replace("listen 443", f"listen 127.0.0.1:{port}")
        .replace("127.0.0.1:8000", f"127.0.0.1:{behind}")
        .replace("/etc/ssl/certs/studio.pem", str(certificate))
        .replace("/etc/ssl/private/studio.key", str(key))
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {home / kind};\n" for kind in kinds)
    configuration = home / "nginx.conf"
    configuration.write_text(
        f"daemon off;\nmaster_process off;\npid {home / 'pid'};\nerror_log {home / 'errors'};\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{server}}}\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([NGINX, "-p", str(home), "-c", str(configuration)], stderr=subprocess.PIPE)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=300).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        assert process.poll() is None, process.communicate()[1]
        yield
    finally:
        process.terminate()
        process.communicate(timeout=300)


@pytest.fixture(scope="module")
def proxied(users: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any, Path]]:
    """A studio behind nginx with HTTPS, its address, a browser, and its log."""
    home = tmp_path_factory.mktemp("nginx")
    with ExitStack() as stack:
        behind, port = stack.enter_context(reserved_port()), stack.enter_context(reserved_port())
        origin, log = f"https://{NAME}:{port}", home / "log"
        options = ("--port", str(behind), "--origin", origin, "--proxy", "127.0.0.1", "--users", str(users))
        started = stack.enter_context(studio(*options, log=log))
        stack.enter_context(nginx(home, port, behind))
        browser = stack.enter_context(chromium(ELSEWHERE))
        assert started() == f"{origin}/"
        with httpx.Client(trust_env=False, timeout=300) as client:  # the printed address waits until it is up
            client.get(f"http://127.0.0.1:{behind}/")
        yield origin, browser, log


def visit(proxied: tuple[str, Any, Path], user: str) -> Any:
    """Sign a user in, in a browser of their own."""
    origin, browser, _ = proxied
    page = new_page(browser, ignore_https_errors=True)
    sign_in(page, origin, PASSWORDS[user], user)
    return opened(page)


@needs_nginx
def test_https_behind_a_proxy_signs_in_with_a_secure_cookie_and_a_socket(proxied: Any) -> None:
    origin, _, _ = proxied
    page = visit(proxied, "anna")
    open_sample(page)
    (cookie,) = page.context.cookies()
    assert cookie["name"] == f"__Host-shoal-studio-{urlsplit(origin).port}"
    assert cookie["secure"]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert page.locator("#user-name").text_content() == "anna"
    page.context.close()


@needs_nginx
def test_the_source_of_wrong_passwords_is_the_one_behind_the_proxy(proxied: Any) -> None:
    origin, _, _ = proxied

    def statuses(source: str, tries: int, password: str) -> list[int]:
        transport = httpx.HTTPTransport(local_address=source, verify=trusted())
        with httpx.Client(transport=transport, trust_env=False, timeout=300) as client:
            headers = {"host": urlsplit(origin).netloc, "x-forwarded-for": "192.0.2.1"}
            given = {"user": "ben", "password": password}
            address = origin.replace(NAME, "127.0.0.1")
            return [
                client.post(f"{address}/login", data=given, headers=headers).status_code for _ in range(tries)
            ]

    assert statuses("127.0.0.3", 11, "wrong password") == [401] * 10 + [429]
    assert statuses("127.0.0.3", 1, PASSWORDS["ben"]) == [429]
    assert statuses("127.0.0.4", 1, PASSWORDS["ben"]) == [200]


def trusted() -> ssl.SSLContext:
    """Return what takes the certificate of the tests, whoever signed it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# Users.


@needs_nginx
def test_a_user_sees_nothing_of_another_on_pages_downloads_and_sockets(proxied: Any) -> None:
    import websockets.sync.client

    origin, _, log = proxied
    anna, ben = visit(proxied, "anna"), visit(proxied, "ben")
    frames: list[str] = []
    anna.on("websocket", lambda one: one.on("framesent", lambda sent: frames.append(str(sent))))
    anna.reload()
    open_sample(opened(anna))
    anna.locator("nav button", has_text="Release").click()
    anna.locator(".main").get_by_role("button", name="Write the release", exact=True).click()
    link = anna.locator("[data-file=release]")
    link.wait_for()
    path = link.get_attribute("href")
    assert [anna.evaluate(_GET, path), ben.evaluate(_GET, path)] == [200, 404]

    # Ben's browser claims to be Anna's tab: it gets a workspace of its own.
    tab = anna.evaluate("sessionStorage.__nicegui_tab_id")
    assert tab
    ben.evaluate("tab => { sessionStorage.__nicegui_tab_id = tab }", tab)
    ben.reload()
    opened(ben)
    assert ben.locator("#table-name").count() == 0

    # Ben's socket names Anna's page: nothing that it says is heard.
    page = anna.evaluate("window.clientId")
    toggle = anna.get_by_role("button", name="Switch light and dark")
    shown = toggle.text_content()
    frames.clear()
    toggle.click()
    anna.wait_for_function("old => !document.body.innerText.includes(old)", arg=shown)
    (click,) = (one for one in frames if one.startswith('42["event"'))
    assert page in click
    (cookie,) = ben.context.cookies()
    address = f"wss://127.0.0.1:{urlsplit(origin).port}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    headers = {"Host": urlsplit(origin).netloc, "Cookie": f"{cookie['name']}={cookie['value']}"}
    with pytest.raises(websockets.exceptions.InvalidStatus):
        connect(address, {**headers, "Origin": "https://evil.example"})
    with pytest.raises(websockets.exceptions.InvalidStatus):
        connect(address, {"Host": headers["Host"], "Origin": origin})
    with connect(address, {**headers, "Origin": origin}) as line:
        line.recv(300)
        line.send("40")
        line.recv(300)
        line.send(click)
        given = {"client_id": page, "tab_id": tab, "document_id": "x", "next_message_id": 0}
        line.send(f'420["handshake",{json.dumps(given)}]')
        assert line.recv(300) == "430[false]"
    changed = toggle.text_content()
    toggle.click()  # had Ben's click been heard, this one would be the second
    anna.wait_for_function("old => !document.body.innerText.includes(old)", arg=changed)
    assert toggle.text_content() == shown

    # Anna sends a file to the upload of Ben's page.
    asked: list[str] = []
    ben.route("**/upload/**", lambda route: (asked.append(route.request.url), route.abort()))
    with ben.expect_file_chooser() as chooser, ben.expect_event("requestfailed"):
        ben.get_by_role("button", name="Upload a file").click()
        chooser.value.set_files({"name": "x.csv", "mimeType": "text/csv", "buffer": b"a\n1\n"})
    ben.unroute("**/upload/**")
    assert [anna.evaluate(_SEND, asked[0]), ben.evaluate(_SEND, asked[0])] == [404, 200]

    # Signing out in one tab ends the others of that browser, and nobody else's.
    other = anna.context.new_page()
    other.goto(origin)
    opened(other)
    other.get_by_role("button", name="Sign out").click()
    other.get_by_text("You are signed out.").wait_for()
    anna.get_by_label("Password").wait_for()
    assert ben.evaluate(_GET, "/api/session") == 200
    assert not re.search(r"token=|client_id|/workspaces/[\w-]{10}", log.read_text(encoding="utf-8"))
    for one in (anna, ben):
        one.context.close()


def connect(address: str, headers: dict[str, str]) -> Any:
    """Open a socket as a program can, with any headers."""
    import websockets.sync.client

    host, origin = headers.pop("Host"), headers.pop("Origin")
    secured = trusted()
    line = socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=300)
    named = address.replace("127.0.0.1:" + str(urlsplit(address).port), host)
    return websockets.sync.client.connect(
        named, sock=line, ssl=secured, origin=origin, additional_headers=headers, proxy=None, open_timeout=300
    )
