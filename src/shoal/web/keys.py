"""Keys: the token that works once, the password, and the sessions that they open."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import deque

from shoal.web.refusals import Refused

_TRIES = 10  # wrong tokens and passwords in a minute
_MOST_SESSIONS = 100


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, password: str | None) -> None:
    """Refuse to be reached from elsewhere without a password."""
    if not is_loopback(host) and not password:
        message = (
            f"--host {host} lets others reach the studio. Set a password in SHOAL_STUDIO_PASSWORD, "
            "or leave --host out."
        )
        raise Refused(message, "host")


class Keys:
    """The token that works once, the password if there is one, and the sessions that they opened."""

    def __init__(self, password: str | None = None) -> None:
        self.token: str | None = secrets.token_urlsafe(32)
        self._password = None if password is None else _digest(password)
        self._sessions: deque[bytes] = deque(maxlen=_MOST_SESSIONS)
        self._wrong: deque[float] = deque(maxlen=_TRIES)
        self._lock = threading.Lock()

    @property
    def has_password(self) -> bool:
        """Whether a password opens sessions too."""
        return self._password is not None

    @property
    def patience(self) -> bool:
        """Whether another try is allowed."""
        return len(self._wrong) < _TRIES or time.monotonic() - self._wrong[0] > 60

    def session(self, *, token: str | None = None, password: str | None = None) -> str | None:
        """Open a session for the token, which is used up, or for the password; None where it is wrong."""
        with self._lock:
            if not self.patience:
                return None
            good = False
            if token is not None and self.token is not None:
                good = hmac.compare_digest(_digest(token), _digest(self.token))
                self.token = None if good else self.token
            elif password is not None and self._password is not None:
                good = hmac.compare_digest(_digest(password), self._password)
            if not good:
                self._wrong.append(time.monotonic())
                return None
            name = secrets.token_urlsafe(32)
            self._sessions.append(_digest(name))
            return name

    def knows(self, session: str | None) -> bool:
        """Tell whether a session is open."""
        if not session:
            return False
        mine = _digest(session)
        return any(hmac.compare_digest(mine, known) for known in self._sessions)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
