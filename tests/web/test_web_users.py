"""Users of the studio: the file that lists them, the command that adds one, and how they are kept apart."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("uvicorn", reason="the studio needs shoal[web]")
from shoal.cli.app import app
from shoal.errors import UsageError
from shoal.web.app import serve
from shoal.web.server import users as users_module
from shoal.web.server.sessions import LIMIT, Keys
from shoal.web.server.users import Users, add_user, hash_password, password_matches, read_users
from studio import Custodian, Running, all_attempts, running

PASSWORDS = {"anna": "a long password", "ben": "another password"}


@pytest.fixture(scope="module")
def hashes() -> dict[str, str]:
    return {name: hash_password(password) for name, password in PASSWORDS.items()}


@pytest.fixture
def file(tmp_path: Path, hashes: dict[str, str]) -> Path:
    path = tmp_path / "users.txt"
    write(path, hashes)
    return path


def write(path: Path, hashes: dict[str, str]) -> None:
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text("".join(f"{name}:{hashed}\n" for name, hashed in hashes.items()), encoding="utf-8")


@pytest.fixture
def studio(file: Path) -> Iterator[Running]:
    with running(keys=Keys(users=Users(file), attempts=all_attempts())) as found:
        yield found


def client_of(studio: Running, user: str) -> httpx.Client:
    given = {"user": user, "password": PASSWORDS[user]}
    with studio.anyone() as client:
        bearer = client.post("/api/session", json=given).json()["bearer"]
    return studio.anyone(headers={"authorization": f"Bearer {bearer}"})


# The file.


def test_a_hash_is_salted_and_matches_its_password_alone() -> None:
    first, second = hash_password("pass word \u00e9"), hash_password("pass word \u00e9")
    assert first != second
    assert first.startswith("$scrypt$ln=15,r=8,p=3$")
    assert password_matches("pass word \u00e9", first)
    assert password_matches("pass word e\u0301", first)  # the same letters, composed otherwise
    assert not password_matches("pass word e", first)
    assert not password_matches("x" * 1025, first)


@pytest.mark.parametrize(
    "line",
    [
        "anna", "anna:", ":{hash}", "Anna:{hash}", "anna:password", "../x:{hash}", "an na:{hash}",
        "anna:$scrypt$ln=31,r=8,p=3$AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43, "anna:{hash}:x",
        "anna:{hash}\nanna:{hash}",
    ],
)  # fmt: skip
def test_a_line_that_is_no_user_is_refused_without_its_hash(
    tmp_path: Path, hashes: dict[str, str], line: str
) -> None:
    path = tmp_path / "users.txt"
    path.touch(0o600)
    path.write_text(f"# the users\n\n{line.format(hash=hashes['anna'])}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^Line [34] of ") as error:
        read_users(path)
    assert hashes["anna"] not in str(error.value)


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_read_or_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        read_users(file)
    with pytest.raises(UsageError, match="chmod 600"):
        add_user(file, "cleo", "a third password")


def test_what_is_no_file_of_users_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch(0o600)
    with pytest.raises(UsageError, match=r"has no user. `shoal studio add-user"):
        read_users(empty)
    with pytest.raises(UsageError, match="Cannot read the users file"):
        read_users(tmp_path / "absent")
    with pytest.raises(UsageError):
        read_users(tmp_path)
    empty.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_users(empty)


def test_a_user_is_added_and_replaced_and_other_lines_stay(tmp_path: Path, hashes: dict[str, str]) -> None:
    path = tmp_path / "users.txt"
    assert not add_user(path, "anna", "first password")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(f"# ours\n{path.read_text()}ben:{hashes['ben']}\n", encoding="utf-8")
    assert add_user(path, "anna", "second password")
    found = read_users(path)
    assert list(found) == ["ben", "anna"]
    assert path.read_text().startswith("# ours\n")
    assert found["ben"] == hashes["ben"]
    assert password_matches("second password", found["anna"])
    assert not list(tmp_path.glob(".*"))


def test_an_unknown_name_costs_as_much_as_a_wrong_password(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, costs = Users(file), list[Any]()
    derive = users_module._derive
    monkeypatch.setattr(users_module, "_derive", lambda *given: costs.append(given[2]) or derive(*given))
    assert users.authenticate("anna", "wrong password") is None
    assert users.authenticate("nobody", "wrong password") is None
    assert users.authenticate(" Anna ", PASSWORDS["anna"]) == "anna"
    assert len(costs) == 3
    assert len(set(costs)) == 1


# The command.


@pytest.mark.parametrize(
    ("words", "typed", "message"),
    [
        (["Anna"], "a long password", "is not a user name"),
        (["../anna"], "a long password", "is not a user name"),
        (["a:b"], "a long password", "is not a user name"),
        (["anna"], "short", "must have 8 to 1,024 characters"),
        (["anna"], "", "must have 8 to 1,024 characters"),
    ],
)
def test_the_command_refuses(tmp_path: Path, words: list[str], typed: str, message: str) -> None:
    path = tmp_path / "users.txt"
    call = ["studio", "add-user", *words, "--users", str(path), "--password-stdin"]
    found = CliRunner().invoke(app, call, input=f"{typed}\n")
    assert found.exit_code == 2
    assert message in found.output.replace("\n", " ")
    assert not path.exists()


def test_the_command_adds_a_user_and_needs_a_terminal_to_ask(tmp_path: Path) -> None:
    path = tmp_path / "users.txt"
    call = ["studio", "add-user", "anna", "--users", str(path)]
    asked = CliRunner().invoke(app, call, input="a long password\na long password\n")
    assert asked.exit_code == 2
    assert "--password-stdin" in asked.output
    found = CliRunner().invoke(app, [*call, "--password-stdin"], input="a long password\nmore\n")
    assert found.exit_code == 0
    assert password_matches("a long password", read_users(path)["anna"])
    assert "a long password" not in found.output


def test_the_command_asks_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.cli import studio as command

    typed = iter(["a long password", "another one"] + ["a long password"] * 2)
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(command.typer, "prompt", lambda *_, **options: options["hide_input"] and next(typed))
    with pytest.raises(UsageError, match="The two passwords differ"):
        command._ask_password()
    assert command._ask_password() == "a long password"


def test_a_table_may_be_named_like_the_subcommand() -> None:
    found = CliRunner().invoke(app, ["studio", "./add-user", "--no-browser"])
    assert "There is no table" in found.output


def test_users_and_one_password_for_all_exclude_each_other(file: Path) -> None:
    with pytest.raises(UsageError, match="Unset the variable"):
        serve(password="x", users=file, open_browser=False)


# Sign in.


def test_a_user_signs_in_with_name_and_password(studio: Running) -> None:
    assert studio.keys.token is None
    with studio.anyone() as client:
        page = client.get("/", headers={"accept": "text/html"})
        assert page.status_code == 401
        assert "name=user" in page.text
        for given in (
            {"password": PASSWORDS["anna"]},
            {"user": "anna"},
            {"user": "anna", "password": PASSWORDS["ben"]},
            {"user": "", "password": PASSWORDS["anna"]},
            {"user": "nobody", "password": PASSWORDS["anna"]},
        ):
            wrong = client.post("/login", data=given)
            assert wrong.status_code == 401
            assert "Wrong name or password." in wrong.text
        assert client.post("/login", data={"user": "anna", "password": PASSWORDS["anna"]}).status_code == 200
        assert client.get("/api/session").json() == {"user": "anna"}
        assert client.get("/?token=", headers={"accept": "text/html"}).status_code == 200


def test_guesses_are_limited_also_for_who_has_a_login(studio: Running) -> None:
    with studio.anyone() as client:
        statuses = []
        for n in range(LIMIT + 1):
            client.post("/api/session", json={"user": "ben", "password": PASSWORDS["ben"]})
            answer = client.post("/api/session", json={"user": "anna", "password": f"guess number {n}"})
            statuses.append(answer.status_code)
        assert statuses == [401] * LIMIT + [429]


def test_a_user_who_is_removed_or_has_another_password_is_signed_out(
    studio: Running, file: Path, hashes: dict[str, str]
) -> None:
    with client_of(studio, "anna") as anna, client_of(studio, "ben") as ben:
        write(file, {"ben": hashes["ben"], "cleo": hashes["anna"]})
        assert anna.get("/api/catalogue").status_code == 401
        assert ben.get("/api/catalogue").status_code == 200
        write(file, {"ben": hashes["anna"]})
        assert ben.get("/api/catalogue").status_code == 401
        file.unlink()  # nobody, rather than everybody
        with studio.anyone() as client:
            given = {"user": "ben", "password": PASSWORDS["anna"]}
            assert client.post("/api/session", json=given).status_code == 401


# Workspaces.


def test_no_route_shows_or_changes_the_workspace_of_another_user(studio: Running) -> None:
    with client_of(studio, "anna") as anna, client_of(studio, "ben") as ben:
        custodian = Custodian(anna)
        custodian.work("table", source="sample")
        custodian.work("release")
        before = custodian.state()
        asked = 0
        for path, methods in studio.app.openapi()["paths"].items():
            for method in methods if "{workspace_id}" in path else ():
                job = before["jobs"][0]["id"]
                named = path.replace("{job}", job).replace("{file}", "release")
                bodies: list[dict[str, Any]] = [{"json": {}}, {"content": b"a\n1\n"}]
                for body in bodies if method in ("post", "put") else [{}]:
                    taken = ben.request(method, named.replace("{workspace_id}", custodian.workspace), **body)
                    absent = ben.request(method, named.replace("{workspace_id}", "x" * 22), **body)
                    assert (taken.status_code, taken.text) == (absent.status_code, absent.text), path
                    assert taken.status_code in (404, 422), path
                    asked += 1
        assert asked > 25
        assert custodian.state() == before
        assert anna.get(custodian.url("files/release")).status_code == 200
        assert ben.delete(custodian.url()).status_code == 404
        assert custodian.state() == before


def test_with_one_password_everyone_is_one_user() -> None:
    with running(password="correct horse") as studio, studio.client() as first, studio.anyone() as second:
        custodian = Custodian(first)
        second.post("/login", data={"password": "correct horse"})
        assert second.get(custodian.url()).status_code == 200
