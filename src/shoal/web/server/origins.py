"""Origins: the addresses under which browsers reach the studio, directly or through a trusted proxy."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.types import Scope

from shoal.web.errors import Refused

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::([0-9]{1,5}))?", re.ASCII | re.IGNORECASE)
_FORWARDED = re.compile(r"forwarded|x-forwarded-.*|x-real-ip")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Origin:
    """A scheme, a host name and a port."""

    scheme: str
    name: str
    port: int

    @property
    def secure(self) -> bool:
        """Whether browsers reach the origin over HTTPS."""
        return self.scheme == "https"

    def __str__(self) -> str:
        """Write the origin as browsers do in the Origin header: without the scheme's default port."""
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{self.scheme}://{name}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def read_origin(text: str) -> Origin:
    """Read an origin such as https://studio.example.org:8443.

    >>> str(read_origin("HTTPS://Studio.Example.org:443"))
    'https://studio.example.org'
    """
    origin = parse_origin(text.strip())
    if origin is None:
        raise Refused(
            "--origin takes a scheme and a host as browsers show them, such as https://studio.example.org or "
            f"https://studio.example.org:8443, without a path; got {text[:200]!r}.",
            "origin",
        )
    return origin


def parse_origin(text: str) -> Origin | None:
    """Parse an origin, such as the value of an Origin header; return None if it is invalid."""
    scheme, _, host = text.partition("://")
    parts, scheme = _split_host(host), scheme.lower()
    if scheme not in _PORTS or parts is None:
        return None
    return Origin(scheme, parts[0], parts[1] or _PORTS[scheme])


def read_proxy(text: str) -> Network:
    """Read the address of a proxy, or a network of proxies."""
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise Refused(
            f"--proxy takes an IP address or a network, such as 10.0.0.5 or 10.0.0.0/28; got {text[:80]!r}.",
            "proxy",
        ) from None


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Served:
    """The origins that the studio serves. It refuses any other origin, which prevents DNS rebinding."""

    def __init__(self, host: str, port: int, origins: Iterable[Origin] = ()) -> None:
        self.origins = tuple(origins)
        self._port = port
        name = _normalized(host)
        self._names = {name, *LOOPBACK} if is_loopback(name) else {name}
        self._everywhere = name in ("0.0.0.0", "::")
        if self._everywhere:
            self._names = {*LOOPBACK, socket.gethostname().lower(), socket.getfqdn().lower()}

    def match(self, host: str, scope: Scope, scheme: str | None = None) -> Origin | None:
        """Return the origin that a Host header names. Return None if the studio does not serve this origin.

        `scheme` is the scheme of the request that a trusted proxy received, if the proxy forwards it.
        """
        parts = _split_host(host)
        if parts is None:
            return None
        name, port = parts
        if self.origins:
            return next(
                (
                    origin
                    for origin in self.origins
                    if (origin.name, origin.port) == (name, port or _PORTS[origin.scheme])
                    and scheme in (None, origin.scheme)
                ),
                None,
            )
        # The local address of the connection always belongs to this machine.
        connected = _normalized(str((scope.get("server") or ("",))[0]))
        known = name in self._names or (self._everywhere and name == connected)
        return Origin("http", name, self._port) if known and (port or 80) == self._port else None


@dataclass(frozen=True)
class Peer:
    """The sender of a request, and the requested host and scheme."""

    source: str
    host: str
    scheme: str | None = None


class Proxies:
    """The proxies whose X-Forwarded headers are trusted."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks = tuple(networks)

    def peer(self, scope: Scope, headers: Mapping[str, str]) -> Peer:
        """Return the sender of a request. Forwarded headers count only if a trusted proxy sent them."""
        source = str((scope.get("client") or ("",))[0])
        host = headers.get("host", "")
        if not self._is_trusted(source):
            return Peer(source, host)
        for hop in reversed(headers.get("x-forwarded-for", "").split(",")):
            address = _address(hop)
            if address is None:
                break  # an invalid entry makes all entries to its left untrustworthy
            source = address
            if not self._is_trusted(address):
                break
        scheme = headers.get("x-forwarded-proto", "").strip().lower() or None
        return Peer(source, headers.get("x-forwarded-host", "").strip() or host, scheme)

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)


def without_forwarded(scope: Scope) -> None:
    """Remove forwarded headers: frameworks trust them from any sender."""
    scope["headers"] = [
        (name, value)
        for name, value in scope["headers"]
        if not _FORWARDED.fullmatch(name.decode("latin-1").lower())
    ]


def _split_host(host: str) -> tuple[str, int | None] | None:
    """Split a Host header into a name and a port. Return None if the header is malformed.

    >>> _split_host("LocalHost:80"), _split_host("[::1]"), _split_host("a@b"), _split_host("a:99999")
    (('localhost', 80), ('::1', None), None, None)
    """
    match = _HOST.fullmatch(host)
    if match is None or int(match[3] or 1) not in range(1, 65536):
        return None
    return _normalized(match[1] or match[2]), int(match[3]) if match[3] else None


def _normalized(host: str) -> str:
    """Return a host as browsers write it: in lower case, and IP addresses in their shortest form."""
    text = host.strip("[]").lower()
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    return str(getattr(address, "ipv4_mapped", None) or address)


def _address(hop: str) -> str | None:
    """Return the address of an entry of X-Forwarded-For, which may have a port."""
    text = hop.strip().strip('"')
    for candidate in (text, text.rpartition(":")[0].strip("[]"), text.strip("[]")):
        try:
            return str(ipaddress.ip_address(candidate))
        except ValueError:
            continue
    return None
