"""A studio that runs in a thread of the tests, with clients that hold a session."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from shoal.web.app import build, server_of
from shoal.web.server.sessions import Attempts, Keys
from shoal.web.workspace.workspaces import Workspaces


@dataclass
class Running:
    """A running studio."""

    workspaces: Workspaces
    keys: Keys
    port: int
    app: Any

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def anyone(self, **options: Any) -> httpx.Client:
        """Return a client without a session."""
        return httpx.Client(base_url=self.address, timeout=300, trust_env=False, **options)

    def bearer(self) -> str:
        """Open a session, with a token made anew where it is used up."""
        self.keys.token = self.keys.token or "made-anew"
        with self.anyone() as client:
            answer = client.post("/api/session", json={"token": self.keys.token})
        return str(answer.json()["bearer"])

    def client(self) -> httpx.Client:
        """Return a client with a session."""
        return self.anyone(headers={"authorization": f"Bearer {self.bearer()}"})


def all_attempts() -> Attempts:
    """Return a count of failed attempts that forgets none, however slow the machine is."""
    return Attempts(clock=lambda: 0.0)


@contextmanager
def running(
    password: str | None = None,
    host: str = "127.0.0.1",
    *,
    keys: Keys | None = None,
    served: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[Running]:
    """Run a studio while the block lasts; `served` are further options of `build`."""
    workspaces, keys = Workspaces(**options), keys or Keys(password, attempts=all_attempts())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = build(workspaces, keys=keys, host=host, port=port, **(served or {}))
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield Running(workspaces, keys, port, app)
        finally:
            server.should_exit = True
            thread.join(300)
            workspaces.close()


class Custodian:
    """A client at a workspace of their own."""

    def __init__(self, client: httpx.Client) -> None:
        self.http = client
        self.workspace = client.post("/api/workspaces").json()["workspace"]

    def url(self, path: str = "") -> str:
        return f"/api/workspaces/{self.workspace}{'/' if path else ''}{path}"

    def state(self) -> dict[str, Any]:
        return dict(self.http.get(self.url()).json())

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.http.get(self.url(path))
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, status: int = 200, **asked: Any) -> Any:
        answer = self.http.post(self.url(path), json=asked)
        assert answer.status_code == status, answer.text
        return answer.json()

    def put(self, path: str, status: int = 200, **asked: Any) -> Any:
        answer = self.http.put(self.url(path), json=asked)
        assert answer.status_code == status, answer.text
        return answer.json()

    def ended(self, job: dict[str, Any]) -> dict[str, Any]:
        while job["status"] in ("waiting", "running"):
            job = self.http.get(self.url(f"jobs/{job['id']}"), params={"wait": 5}).json()
        return job

    def work(self, path: str, status: str = "done", **asked: Any) -> dict[str, Any]:
        """Do long work to its end."""
        job = self.ended(self.post(path, 202, **asked))
        assert job["status"] == status, job
        return job
