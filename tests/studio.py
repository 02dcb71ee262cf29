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
import uvicorn

from shoal.web.desks import Desks
from shoal.web.keys import Keys
from shoal.web.serve import build


@dataclass
class Running:
    """A running studio."""

    desks: Desks
    keys: Keys
    port: int
    app: Any

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def anyone(self, **options: Any) -> httpx.Client:
        """Return a client without a session."""
        return httpx.Client(base_url=self.address, timeout=60, trust_env=False, **options)

    def bearer(self) -> str:
        """Open a session, with a token made anew where it is used up."""
        self.keys.token = self.keys.token or "made-anew"
        with self.anyone() as client:
            answer = client.post("/api/session", json={"token": self.keys.token})
        return str(answer.json()["bearer"])

    def client(self) -> httpx.Client:
        """Return a client with a session."""
        return self.anyone(headers={"authorization": f"Bearer {self.bearer()}"})


@contextmanager
def running(password: str | None = None, host: str = "127.0.0.1", **options: Any) -> Iterator[Running]:
    """Run a studio while the block lasts."""
    desks, keys = Desks(**options), Keys(password)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = build(desks, keys=keys, host=host, port=port)
        config = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, lifespan="on"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Running(desks, keys, port, app)
        finally:
            server.should_exit = True
            thread.join(10)
            desks.close()


class Custodian:
    """A client at a desk of their own."""

    def __init__(self, client: httpx.Client) -> None:
        self.http = client
        self.desk = client.post("/api/desks").json()["desk"]

    def url(self, path: str = "") -> str:
        return f"/api/desks/{self.desk}{'/' if path else ''}{path}"

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
