"""The studio's doors: who is let in, from where, to which files, and what is left behind."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
from shoal.web.errors import Refused, TooLarge, Unknown
from shoal.web.server.origins import Served, is_loopback
from shoal.web.server.security import Guard
from shoal.web.server.sessions import Keys, check_host
from shoal.web.workspace.workspaces import Workspaces
from studio import Custodian, Running, running


@pytest.fixture
def studio() -> Iterator[Running]:
    with running() as found:
        yield found


def knock(studio: Running, headers: dict[str, str], path: str = "/_nicegui_ws/socket.io/") -> int:
    """Ask for a socket and return the status of the answer."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = {
        "Host": f"127.0.0.1:{studio.port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
    } | headers
    asked = f"GET {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in lines.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", studio.port), timeout=300) as line:
        line.sendall(asked.encode())
        return int(line.recv(1000).split(b" ")[1])


# Sessions.


@pytest.mark.parametrize(
    "path", ["/", "/api/docs", "/api/openapi.json", "/api/catalogue", "/_nicegui/x", "/no"]
)
def test_nothing_is_served_without_a_session(studio: Running, path: str) -> None:
    with studio.anyone() as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"shoal-studio-{studio.port}=x"}):
            assert client.get(path, headers=headers).status_code == 401
        assert client.post("/api/workspaces").status_code == 401


def test_the_token_works_once_and_gives_a_strict_cookie(studio: Running) -> None:
    token = studio.keys.token
    with studio.anyone() as first, studio.anyone() as second:
        assert first.get("/", params={"token": "wrong"}).status_code == 401
        assert first.head("/", params={"token": token}).status_code == 401  # a look does not use it up
        answer = first.get("/", params={"token": token})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert str(token) not in cookie + answer.text
        assert first.get("/").status_code == 200
        assert first.get("/", params={"token": token}).status_code == 200  # a reload
        assert second.get("/", params={"token": token}).status_code == 401
        assert second.post("/api/session", json={"token": token}).status_code == 401
        assert second.get("/").status_code == 401


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"\xff", b'{"token": 3}', b'{"password": null}', b"{" * 9999]
)
def test_a_session_asked_for_in_any_other_way_is_refused(studio: Running, body: bytes) -> None:
    with studio.anyone() as client:
        assert client.post("/api/session", content=body).status_code == 401
        assert client.post("/login", content=body).status_code == 401


def test_a_password_opens_where_there_is_one() -> None:
    with running(password="correct horse") as studio, studio.anyone() as client:
        page = client.get("/", headers={"accept": "text/html"})
        assert page.status_code == 401
        assert "type=password" in page.text
        assert client.post("/login", data={"password": "wrong"}).status_code == 401
        assert client.post("/login", data={"password": ""}).status_code == 401
        assert client.post("/login", data={"password": "correct horse"}).status_code == 200
        assert client.get("/").status_code == 200


def test_no_password_means_that_none_is_right(studio: Running) -> None:
    with studio.anyone() as client:
        for password in ("", "None", "null"):
            assert client.post("/login", data={"password": password}).status_code == 401


# Host and Origin.


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example", "127.0.0.1:{port}@evil.example", "x@127.0.0.1:{port}",
        "127.0.0.1:{port}/x", "169.254.1.1:{port}", "[", "",
    ],
)  # fmt: skip
def test_another_host_is_not_served(studio: Running, host: str) -> None:
    with studio.client() as client:
        answer = client.get("/api/catalogue", headers={"host": host.format(port=studio.port)})
        assert answer.status_code in (400, 421)
        assert client.get("/api/catalogue", headers={"host": f"LocalHost:{studio.port}"}).status_code == 200


def test_what_changes_something_must_come_from_here(studio: Running) -> None:
    with studio.anyone() as client:
        client.get("/", params={"token": studio.keys.token})
        good = {"origin": studio.address}
        assert client.post("/api/workspaces", headers=good).status_code == 201
        for origin in (
            "http://evil.example",
            "null",
            f"https://127.0.0.1:{studio.port}",
            "http://127.0.0.1:1",
        ):
            assert client.post("/api/workspaces", headers={"origin": origin}).status_code == 403
        assert client.post("/api/workspaces").status_code == 403  # a browser always says where from
        form = {"origin": "null", "sec-fetch-site": "same-origin"}  # of a page that sends no referrer
        assert client.post("/api/workspaces", headers=form).status_code == 201
        assert (
            client.post("/api/workspaces", headers=form | {"sec-fetch-site": "cross-site"}).status_code == 403
        )
        assert client.get("/api/catalogue").status_code == 200
        for site in ("cross-site", "same-site"):
            asked = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert client.get("/api/catalogue", headers=asked).status_code == 403
    with studio.client() as client:  # a program has no origin, but a page that holds a bearer has
        assert client.post("/api/workspaces").status_code == 201
        assert client.post("/api/workspaces", headers={"origin": "http://evil.example"}).status_code == 403


def test_a_page_elsewhere_cannot_sign_in(studio: Running) -> None:
    with studio.anyone(headers={"origin": "http://evil.example"}) as client:
        assert client.post("/api/session", json={"token": studio.keys.token}).status_code == 403
    assert studio.keys.token


def test_a_socket_needs_a_session_and_an_origin(studio: Running) -> None:
    session = studio.bearer()
    cookie = {"Cookie": f"shoal-studio-{studio.port}={session}"}
    here = {"Origin": studio.address}
    assert knock(studio, here) == 403
    assert knock(studio, cookie) == 403
    assert knock(studio, cookie | {"Origin": "http://evil.example"}) == 403
    assert knock(studio, cookie | here | {"Host": "evil.example"}) == 403
    assert knock(studio, {"Cookie": "shoal-studio-1=x"} | here) == 403


@pytest.mark.parametrize(
    ("headers", "opens"),
    [
        ({"cookie": True, "origin": "http://127.0.0.1:80"}, True),
        ({"cookie": False, "origin": "http://127.0.0.1:80"}, False),
        ({"cookie": True, "origin": "http://evil.example"}, False),
        ({"cookie": True}, False),
    ],
)
def test_the_guard_lets_only_its_own_sockets_through(headers: dict[str, Any], opens: bool) -> None:
    import asyncio

    keys, reached, sent = Keys(), [], []
    session = keys.session(token=keys.token)

    async def app(*_: Any) -> None:
        reached.append(True)

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(app, keys=keys, host="127.0.0.1", port=80, most_bytes=10)
    carried = [(b"host", b"127.0.0.1:80")]
    if headers["cookie"]:
        carried.append((b"cookie", f"shoal-studio-80={session}".encode()))
    if "origin" in headers:
        carried.append((b"origin", headers["origin"].encode()))
    asyncio.run(guard({"type": "websocket", "path": "/", "headers": carried}, None, send))  # type: ignore[arg-type]
    assert bool(reached) == opens
    assert bool(sent) != opens


def test_every_answer_carries_the_headers(studio: Running) -> None:
    with studio.client() as client, studio.anyone() as stranger:
        for answer in (client.get("/"), client.get("/api/catalogue"), client.get("/no"), stranger.get("/")):
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert "server" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers


def test_another_address_than_loopback_needs_a_password() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        assert is_loopback(host)
        check_host(host, None)
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org", "localhost.example.org", ""):
        with pytest.raises(Refused, match="SHOAL_STUDIO_PASSWORD"):
            check_host(host, None)
        with pytest.raises(Refused):
            check_host(host, "")
        check_host(host, "secret")


def test_everywhere_means_this_machines_own_addresses() -> None:
    served, scope = Served("0.0.0.0", 80), {"server": ("192.168.1.5", 80)}
    assert served.match("192.168.1.5", scope)
    assert served.match("localhost", scope)
    assert not served.match("192.168.1.6", scope)
    assert not served.match("evil.example", scope)


# Files.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    home = tmp_path / "tables"
    (home / "inner").mkdir(parents=True)
    (home / "inner" / "table.csv").write_text("age,town\n30,A\n31,B\n", encoding="utf-8")
    (home / "notes.txt").write_text("x", encoding="utf-8")
    (home / "link.csv").symlink_to(outside / "secret.csv")
    (home / "out").symlink_to(outside)
    (home / "loop.csv").symlink_to(home / "loop.csv")
    (tmp_path / "tables-too").mkdir()
    (tmp_path / "tables-too" / "x.csv").write_text("a\n1\n", encoding="utf-8")
    return home


@pytest.mark.parametrize(
    "name",
    [
        "../outside/secret.csv", "inner/../../outside/secret.csv", "{outside}/secret.csv", "/etc/passwd",
        "link.csv", "out/secret.csv", "loop.csv", "inner/table.csv\0", "\0", "", ".", "..", "inner",
        "~/x.csv", "notes.txt", "..\\outside\\secret.csv", "../tables-too/x.csv", "absent.csv",
        "x" * 5000 + ".csv", "file:///etc/passwd", "inner/*.csv", "//etc/passwd",
    ],
)  # fmt: skip
def test_a_choice_cannot_leave_the_folder(folder: Path, name: str) -> None:
    workspaces = Workspaces(folder=folder)
    try:
        with pytest.raises(Refused) as error:
            workspaces.data_folder.resolve(name.format(outside=folder.parent / "outside"))
        assert "outside" not in str(error.value)
    finally:
        workspaces.close()


def test_the_list_has_what_can_be_chosen_and_it_opens(folder: Path) -> None:
    with running(folder=folder) as studio, studio.client() as client:
        assert [file["name"] for file in client.get("/api/files").json()] == ["inner/table.csv"]
        custodian = Custodian(client)
        custodian.work("table", source="file", name="inner/table.csv")
        assert custodian.state()["table"] == "table.csv"
        error = custodian.post("table", 422, source="file", name="../outside/secret.csv")
        assert error["field"] == "name"


def test_an_upload_beyond_the_limit_is_refused_and_leaves_nothing() -> None:
    with running(upload_limit=1000) as studio, studio.client() as client:
        custodian = Custodian(client)
        for content in (b"a\n" * 1000, iter([b"a\n" * 300] * 4)):
            answer = client.post(custodian.url("upload"), content=content)
            assert answer.status_code == 413
            assert answer.json()["field"] == "file"
        promised = {"Content-Length": str(1 << 40), "Authorization": client.headers["authorization"]}
        assert (
            knock(studio, promised | {"Upgrade": "", "Connection": "close"}, custodian.url("upload")) == 413
        )
        assert not list(studio.workspaces.get(custodian.workspace).folder.iterdir())
    workspaces = Workspaces(upload_limit=3)
    try:
        name = workspaces.open()
        with pytest.raises(TooLarge, match="limit"), workspaces.receive_upload(name, "x.csv") as upload:
            _ = [upload.write(piece) for piece in (b"ab", b"cd")]
        with pytest.raises(Refused, match="A table is a file that ends in"):
            workspaces.receive_upload(name, "x.exe")
        assert workspaces.receive_upload(name, "../../x/y.csv").path.parent == workspaces.get(name).folder
    finally:
        workspaces.close()


def test_the_private_folder_is_closed_to_others_and_removed() -> None:
    workspaces = Workspaces()
    name = workspaces.open()
    workspace = workspaces.get(name)
    workspace.open_sample()
    workspace.release.run()
    for path in [workspaces.private, workspace.folder, workspace.release.file("release").parent]:
        assert path.stat().st_mode & 0o777 == 0o700
    with workspaces.receive_upload(name, "x.csv") as upload:
        upload.write(b"a\n1\n")
    assert upload.path.stat().st_mode & 0o777 == 0o600
    workspaces.delete(name)
    assert not workspace.folder.exists()
    with pytest.raises(Unknown):
        workspaces.get(name)
    workspaces.close()
    assert not workspaces.private.exists()


def test_an_old_upload_goes_when_another_table_comes(tmp_path: Path) -> None:
    workspaces = Workspaces()
    try:
        name = workspaces.open()
        for _ in range(2):
            with workspaces.receive_upload(name, "x.csv") as upload:
                upload.write(b"age\n1\n2\n")
            workspaces.open_table(name, upload.path, upload.name)
        assert list(workspaces.get(name).folder.iterdir()) == [upload.path]
    finally:
        workspaces.close()


def test_workspaces_that_nobody_uses_make_room() -> None:
    workspaces = Workspaces(workspaces_per_user=3)
    try:
        names = [workspaces.open() for _ in range(3)]
        workspaces.get(names[0])
        workspaces.open()
        assert [name in workspaces for name in names] == [True, False, True]
    finally:
        workspaces.close()


# What is told.


def test_no_value_of_the_data_is_in_logs_errors_or_addresses(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "Xyzzyplugh"
    asked: list[str] = []
    with running() as studio, studio.client() as client:
        client.event_hooks["request"].append(lambda request: asked.append(str(request.url)))
        custodian = Custodian(client)
        rows = "".join(f"{20 + n % 3},{secret}{n % 4}\n" for n in range(40))
        answer = client.post(custodian.url("upload"), content=f"age,town\n{rows}".encode())
        custodian.ended(answer.json())
        custodian.put("role", column="town", role="quasi-identifier")
        refused = custodian.put("hierarchy", 422, column="town", spec={"tree": {"x": ["y"]}})
        custodian.put("hierarchy", column="town", spec="flat")
        custodian.work("diagnosis")
        custodian.work("profile")
        custodian.work("release")
        told = json.dumps([custodian.state(), custodian.get("release"), refused])
    out = capfd.readouterr()
    assert secret not in told
    assert secret not in caplog.text + out.out + out.err
    assert secret not in "".join(asked)
    assert all(re.fullmatch(r"http://127\.0\.0\.1:\d+/api/[\w/?=.%-]*", url) for url in asked)


def test_an_accident_tells_its_kind_and_no_value(
    studio: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def accident(*_: Any) -> None:
        message = "row ('Xyzzyplugh', 42)"
        raise KeyError(message)

    with studio.client() as client:
        custodian = Custodian(client)
        monkeypatch.setattr("shoal.web.workspace.draft.PolicyDraft.settings", accident)
        answer = client.get(custodian.url("settings"))
    assert answer.status_code == 500
    assert "KeyError" in answer.json()["error"]
    assert "KeyError" in caplog.text
    assert "Xyzzyplugh" not in caplog.text + answer.text


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_command_serves_until_it_is_stopped_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text("age,town\n" + "30,A\n31,B\n" * 10, encoding="utf-8")
    call = [sys.executable, "-m", "shoal", "studio", str(table), "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line)
        assert found, line
        assert list(tmp_path.glob("shoal-studio-*"))
        import httpx

        answer = httpx.get(found[0], trust_env=False, timeout=300)  # at once: it may not be up yet
        assert answer.status_code == 200
        process.send_signal(getattr(signal, name))
        _, rest = process.communicate(timeout=300)
    assert process.returncode == 128 + getattr(signal, name)
    assert f"{name} ended the studio." in rest
    assert not list(tmp_path.glob("shoal-*"))
    assert "Traceback" not in rest
    assert "GET" not in rest


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_next_start_removes_the_uploads_of_a_studio_that_was_killed(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "shoal", "studio", "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment)

    with start() as killed, start() as alive:
        assert killed.stderr is not None
        assert alive.stderr is not None
        assert "http" in killed.stderr.readline()
        assert "http" in alive.stderr.readline()
        for folder in tmp_path.glob("shoal-studio-*"):
            (folder / "upload").write_text("Xyzzyplugh")
        killed.kill()
        killed.wait(300)
        with start() as last:
            assert last.stderr is not None
            assert "Removed 1 folder with the uploads of studios that were killed." in last.stderr.readline()
            assert "http" in last.stderr.readline()
            left = [path for path in tmp_path.rglob("upload") if "Xyzzyplugh" in path.read_text()]
            assert len(left) == 1  # of the one that is alive
            last.terminate()
            alive.terminate()
            last.communicate(timeout=300)
            alive.communicate(timeout=300)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "SHOAL_STUDIO_PASSWORD"),
        (["absent.csv"], "There is no table"),
        (["--policy", "x.yaml"], "A policy is about a table"),
        (["--folder", "/no/such/folder"], "does not exist"),
    ],
)
def test_the_command_refuses_before_it_listens(options: list[str], told: str) -> None:
    from typer.testing import CliRunner

    from shoal.cli.app import app

    found = CliRunner().invoke(app, ["studio", "--no-browser", *options], env={"SHOAL_STUDIO_PASSWORD": ""})
    assert found.exit_code == 2
    assert told in found.output.replace("\n", " ")


def test_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from shoal.cli import studio
    from shoal.cli.app import app

    monkeypatch.setattr(studio, "find_spec", lambda name: None if name == "nicegui" else object())
    found = CliRunner().invoke(app, ["studio"])
    assert found.exit_code == 2
    assert "The studio needs nicegui. Install it with: pip install 'shoal[web]'." in found.output.replace(
        "\n", " "
    )


def test_who_comes_before_the_studio_answers_is_not_refused() -> None:
    """The address is printed, and a browser opened, before the pages are there."""
    from shoal.web.app import _listening

    with _listening("127.0.0.1", None) as listener:
        socket.create_connection(listener.getsockname(), timeout=300).close()
