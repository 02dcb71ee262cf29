"""Sessions of users: the keys that open them, failed attempts, and the expiry of idle sessions."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shoal.web.errors import Refused
from shoal.web.server.origins import Origin, is_loopback
from shoal.web.server.users import Users

LIMIT = 10  # maximum number of failures of a source in a period
PERIOD = 60.0  # length of the period, in seconds
_MOST_SOURCES = 10_000


class Attempts:
    """The recent failures of each source."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, source: str) -> bool:
        """Count an attempt, or return False if the source has failed too often.

        An attempt counts as a failure until `succeeded` is called, so concurrent attempts are all counted.
        """
        with self._lock:
            failures = self._recent(source)
            if len(failures) >= LIMIT:
                return False
            failures.append(self._clock())
            return True

    def succeeded(self, source: str) -> None:
        """Remove the last attempt of a source from the failures. Earlier failures remain."""
        with self._lock:
            failures = self._recent(source)
            if failures:
                failures.pop()

    def _recent(self, source: str) -> deque[float]:
        name = _network(source)
        failures = self._failures.setdefault(name, deque())
        self._failures.move_to_end(name)
        if len(self._failures) > _MOST_SOURCES:
            self._failures.popitem(last=False)
        while failures and self._clock() - failures[0] > PERIOD:
            failures.popleft()
        return failures


def _network(source: str) -> str:
    """Return the addresses that one person probably controls: an IPv4 address, or the /64 of an IPv6 address.

    >>> _network("192.0.2.7"), _network("2001:db8::7"), _network("::ffff:192.0.2.7"), _network("?")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7', '?')
    """
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


SINGLE_USER = ""  # the name of the user if there is no users file


def check_host(host: str, password: str | None, origins: Iterable[Origin] = (), users: bool = False) -> None:
    """Raise Refused if other machines could use the studio without a password."""
    if password or users:
        return
    option = None if is_loopback(host) else f"--host {host}"
    option = option or next(
        (f"--origin {origin}" for origin in origins if not is_loopback(origin.name)), None
    )
    if option:
        name = option.split()[0]
        raise Refused(
            f"{option} lets others reach the studio. Set a password in SHOAL_STUDIO_PASSWORD, name a file of "
            f"users with --users, or leave {name} out.",
            name.strip("-"),
        )


class Keys:
    """The token, password or users file for sign-in, the open sessions, and the failed attempts."""

    def __init__(
        self,
        password: str | None = None,
        *,
        users: Users | None = None,
        sessions: Sessions | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        self.token = None if users else secrets.token_urlsafe(32)
        self.users = users
        self.sessions = Sessions() if sessions is None else sessions
        self.attempts = Attempts() if attempts is None else attempts
        self.on_new_token: Callable[[str], None] = lambda _: None
        self._password = None if password is None else digest(password)
        self._lock = threading.Lock()

    @property
    def has_password(self) -> bool:
        """Whether a password opens a session."""
        return self._password is not None or self.users is not None

    def session(
        self, *, token: str | None = None, password: str | None = None, user: str | None = None
    ) -> str | None:
        """Open a session and return its secret. Return None if the token, password or user is wrong.

        A token works once. With a users file this takes a tenth of a second or more.
        """
        if self.users is not None:
            self._refresh_users()
            name = self.users.authenticate(user or "", password or "")
            return None if name is None else self.sessions.open(name)
        with self._lock:
            right = False
            if token is not None and self.token is not None:
                right = hmac.compare_digest(digest(token), digest(self.token))
                self.token = None if right else self.token
            elif password is not None and self._password is not None:
                right = hmac.compare_digest(digest(password), self._password)
            return self.sessions.open(SINGLE_USER) if right else None

    def find(self, secret: str | None) -> UserSession | None:
        """Return the open session of a secret, or None. Sessions of removed users are ended first."""
        self._refresh_users()
        session = self.sessions.find(secret)
        self.renew_token()
        return session

    def end(self, session: UserSession) -> None:
        self.sessions.end(session)
        self.renew_token()

    def renew_token(self) -> None:
        """Create a token if no session is open, and if there is no unused token, password or users file."""
        with self._lock:
            if self.token is not None or self.has_password or len(self.sessions):
                return
            self.token = secrets.token_urlsafe(32)
        self.on_new_token(self.token)

    def _refresh_users(self) -> None:
        if self.users is not None:
            self.sessions.end_users(self.users.refresh())


IDLE_MINUTES = 480
USER = "shoal.user"  # the key in a request's scope that holds the name of the user
_MAX_PER_USER = 100  # one more session ends the least recently used one


@dataclass(eq=False)
class UserSession:
    """One sign-in of a user."""

    user: str
    digest: bytes  # hash of the secret that the browser or program holds
    used: float
    ended: bool = False
    on_end: set[Callable[[], None]] = field(default_factory=set)  # called when the session ends


class Sessions:
    """The open sessions."""

    def __init__(
        self, idle_seconds: float = IDLE_MINUTES * 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.idle_seconds = idle_seconds
        self._clock = clock
        self._open: list[UserSession] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, user: str) -> str:
        """Open a session and return its secret, which is not stored."""
        secret = secrets.token_urlsafe(32)
        session = UserSession(user, digest(secret), self._clock())
        with self._lock:
            earlier = sorted(
                (other for other in self._open if other.user == user), key=lambda other: other.used
            )
            self._open.append(session)
        for other in earlier[: max(0, len(earlier) + 1 - _MAX_PER_USER)]:
            self.end(other)
        return secret

    def find(self, secret: str | None) -> UserSession | None:
        """Return the open session of a secret."""
        self.end_idle()
        if not secret:
            return None
        requested, match = digest(secret), None
        for session in tuple(self._open):
            if hmac.compare_digest(requested, session.digest):
                match = session
        return match

    def touch(self, session: UserSession) -> None:
        """Record that the user did something."""
        session.used = self._clock()

    def seconds_left(self, session: UserSession) -> float:
        """Return the seconds until the session ends if the user stays idle; 0 if it has ended."""
        return 0.0 if session.ended else max(0.0, session.used + self.idle_seconds - self._clock())

    def end(self, session: UserSession) -> None:
        """End a session and close its sockets."""
        with self._lock:
            if session not in self._open:
                return
            self._open.remove(session)
        session.ended = True
        for call in tuple(session.on_end):
            call()

    def end_idle(self) -> None:
        """End the sessions that were idle for too long."""
        for session in tuple(self._open):
            if self.seconds_left(session) <= 0:
                self.end(session)

    def end_users(self, users: set[str]) -> None:
        """End the sessions of some users."""
        for session in tuple(self._open):
            if session.user in users:
                self.end(session)


def digest(text: str) -> bytes:
    """Return the hash of a secret; only the hash is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
