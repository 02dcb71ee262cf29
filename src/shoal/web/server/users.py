"""The users file of the studio: one `name:password-hash` per line, hashed with scrypt.

A hash is written in the PHC string format, `$scrypt$ln=15,r=8,p=3$SALT$KEY`. Each line contains its own cost,
so a later version can raise the cost of new lines.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
import unicodedata
from pathlib import Path

from shoal.errors import UsageError
from shoal.files.outputs import check_place, written_whole

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1024
_LARGEST_FILE = 1 << 20  # bytes
_COST = (15, 8, 3)  # log2 of n, r, p: 32 MiB, about 0.15 s
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_HASH = re.compile(
    r"\$scrypt\$ln=(1[4-9]),r=(8|16),p=([1-8])\$([A-Za-z0-9+/]{22,43})\$([A-Za-z0-9+/]{43})",
)
_ADD = "`shoal studio add-user NAME --users FILE` adds a user."


def check_name(name: str) -> str:
    """Return a user name, or raise UsageError if it is invalid."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is not a user name. Use at most 64 lower-case letters, digits and . _ @ -, "
            "starting with a letter or a digit."
        )
    return name


def check_password(password: str) -> str:
    """Return a password, or raise UsageError if it is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        rule = f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters"
        raise UsageError(f"A password must have {rule}, got {len(password):,}.")
    return password


def hash_password(password: str) -> str:
    """Hash a password under a new random salt.

    >>> password_matches("correct horse", hash_password("correct horse"))
    True
    """
    salt = secrets.token_bytes(16)
    log_n, r, p = _COST
    return f"$scrypt$ln={log_n},r={r},p={p}${_encode(salt)}${_encode(_derive(password, salt, _COST))}"


def password_matches(password: str, hashed: str) -> bool:
    """Compare a password with a hash. A wrong password takes as long as the right one."""
    match = _HASH.fullmatch(hashed)
    if match is None or len(password) > LONGEST_PASSWORD:
        return False
    log_n, r, p, salt, key = match.groups()
    derived = _derive(password, _decode(salt), (int(log_n), int(r), int(p)))
    return hmac.compare_digest(derived, _decode(key))


def read_users(path: Path) -> dict[str, str]:
    """Return the hash of each name in a users file. Reject a file that other users can read or write."""
    users: dict[str, str] = {}
    for number, line in enumerate(read_private(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, hashed = line.strip().partition(":")
        if not _NAME.fullmatch(name) or not _HASH.fullmatch(hashed):
            raise UsageError(f"Line {number} of {str(path)!r} is not `name:password-hash`. {_ADD}")
        if name in users:
            line = f"Line {number} of {str(path)!r}"
            raise UsageError(f"{line} repeats the user {name!r}. Remove one of the lines.")
        users[name] = hashed
    if not users:
        raise UsageError(f"{str(path)!r} has no user. {_ADD}")
    return users


def add_user(path: Path, name: str, password: str) -> bool:
    """Add or replace a user; return whether the user was replaced. Only the owner can read a new file."""
    check_name(name)
    check_password(password)
    check_place(path)
    lines = read_private(path).splitlines() if path.exists() else []
    other_lines = [line for line in lines if line.strip().partition(":")[0] != name]
    other_lines.append(f"{name}:{hash_password(password)}")
    with written_whole(path.resolve()) as file:
        file.write("".join(f"{line}\n" for line in other_lines).encode())
    return len(other_lines) <= len(lines)


class Users:
    """The users of a file. The file is read again when it changes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._version = self._current_version()
        self._hashes = read_users(self.path)
        self._unknown = hash_password(secrets.token_urlsafe())

    def refresh(self) -> set[str]:
        """Read the file again if it changed; return the users who were removed or whose password changed.

        A file that cannot be read, or that is invalid, counts as a file without users.
        """
        version = self._current_version()
        if version == self._version:
            return set()
        before, self._version = self._hashes, version
        try:
            self._hashes = read_users(self.path)
        except UsageError:
            self._hashes = {}
        return {name for name, hashed in before.items() if self._hashes.get(name) != hashed}

    def authenticate(self, name: str, password: str) -> str | None:
        """Return the user's name if the password is right, else None. An unknown name takes equally long."""
        name = name.strip().lower()
        hashed = self._hashes.get(name)
        matches = password_matches(password, hashed or self._unknown)
        return name if hashed is not None and matches else None

    def __contains__(self, name: object) -> bool:
        return name in self._hashes

    def _current_version(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def read_private(path: Path, what: str = "users file", advice: str = _ADD) -> str:
    """Read a file that belongs to this user or root. Reject a file that anyone else can read or write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            _check_mode(path, os.fstat(file.fileno()), what)
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            rule = f"larger than {_LARGEST_FILE:,} bytes, so it is not a {what}"
            raise UsageError(f"{str(path)!r} is {rule}.")
        return content.decode()
    except OSError as error:
        raise UsageError(f"Cannot read the {what} {str(path)!r}: {error.strerror}. {advice}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{str(path)!r} is not a {what}: it is not UTF-8 text. {advice}") from None


def _check_mode(path: Path, status: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{str(path)!r} is not a file. Name the {what}.")
    if os.name != "posix":
        return
    if status.st_mode & 0o077:
        raise UsageError(
            f"Others can read or write {str(path)!r} (mode {stat.S_IMODE(status.st_mode):04o}), which is a "
            f"{what}. Run: chmod 600 FILE."
        )
    if status.st_uid not in (0, os.geteuid()):
        raise UsageError(f"{str(path)!r} belongs to another account. Use a file of your own account.")


def _derive(password: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    log_n, r, p = cost
    # NFKC: keyboards and systems encode the same characters differently.
    text = unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
    n = 1 << log_n
    return hashlib.scrypt(text, salt=salt, n=n, r=r, p=p, maxmem=128 * r * (n + p + 2) + (1 << 20), dklen=32)


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4))
