"""Work folders: private folders for temporary data. If a process is killed, a later one removes its folders.

A work folder has mode 0700. Its name contains the host, the process ID and the start time of the process that
created it. That process holds a lock on the folder until it ends. If another process can take the lock, the
owner has ended. On a file system without locks, the process ID and the start time are compared instead.
Folders of other hosts and users are never removed.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from shoal.errors import OutputError
from shoal.files.locks import available, is_at, lock, try_lock

PREFIX = "shoal-work-"
BESIDE_PREFIX = ".shoal-work-"  # in the folder of an output
_NAME = re.compile(r"-(?P<host>\w+)-(?P<process>\d{1,10})-(?P<started>\w+)-[0-9a-f]{12}$")
_BESIDE = "beside"  # a file that contains the path of a work folder next to an output
_owned: dict[Path, WorkFolder] = {}
_cleaned: set[tuple[int, Path]] = set()  # pairs: in this folder, this process ID has removed stale ones


@dataclass(frozen=True, eq=False)
class WorkFolder:
    """A private folder, locked by this process until it is removed."""

    path: Path
    descriptor: int | None  # the open folder, which holds the lock; None if the system has no locks
    listing: WorkFolder | None = None  # a folder in the temporary folder that refers to this one

    def remove(self) -> None:
        """Remove the folder with its contents."""
        # It is not in `_owned` if it was already removed, or if the parent of this forked process created it.
        if _owned.pop(self.path, None) is not None:
            _remove(self.path)
            self.unlock()
        if self.listing is not None:
            self.listing.remove()

    def unlock(self) -> None:
        """Close the folder, which ends its lock."""
        if self.descriptor is not None:
            os.close(self.descriptor)


def create(parent: Path, prefix: str = PREFIX) -> WorkFolder:
    """Create a work folder, or raise an OutputError that names the parent and says what to do."""
    owner = f"{_host()}-{os.getpid()}-{_started(os.getpid())}"
    try:
        while True:
            path = parent.absolute() / f"{prefix}{owner}-{secrets.token_hex(6)}"
            path.mkdir(mode=0o700)
            if not available():
                folder = WorkFolder(path, None)
                break
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDONLY)
                lock(descriptor)
                if is_at(descriptor, path):  # otherwise another process removed it before it was locked
                    folder = WorkFolder(path, descriptor)
                    break
                os.close(descriptor)
    except OSError as error:
        raise cannot_create(parent, error) from None
    _owned[path] = folder
    return folder


def remove_stale(parent: Path, prefix: str = PREFIX) -> int:
    """Remove the work folders whose process has ended; return their number."""
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    except OSError:
        return 0
    return sum(_remove_if_stale(parent / name) for name in names)


def _remove_if_stale(folder: Path) -> bool:
    """Remove a folder if it is a work folder of this user on this host whose process has ended."""
    match = _NAME.search(folder.name)
    if match is None or match["host"] != _host():
        return False
    try:
        # These flags refuse links, and anything that is not a folder.
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    except (OSError, AttributeError):  # a system without such flags has no locks either
        return False
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            return False
        locked = try_lock(descriptor)
        ended = locked is True or (locked is None and _has_ended(int(match["process"]), match["started"]))
        # While this process holds the lock, no other one removes the folder.
        return ended and is_at(descriptor, folder) and _remove(folder)
    finally:
        os.close(descriptor)


def _has_ended(process: int, started: str) -> bool:
    """Return whether a process has ended; `started` tells it from a later process with the same ID."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return "unknown" not in (started, now := _started(process)) and now != started


def _remove(folder: Path) -> bool:
    """Remove a folder. If it refers to a work folder next to an output, remove that folder first."""
    with suppress(OSError, UnicodeError):
        _remove_if_stale(Path((folder / _BESIDE).read_text(encoding="utf-8")))
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def create_temporary() -> WorkFolder:
    """Create a work folder in the temporary folder; the first call removes stale ones there."""
    parent = temporary_folder()
    if (os.getpid(), parent) not in _cleaned:
        _cleaned.add((os.getpid(), parent))
        remove_stale(parent)
    return create(parent)


def create_beside(output: Path) -> WorkFolder:
    """Create a work folder next to an output.

    A second folder in the temporary folder refers to it, so that later processes find it there if this one
    is killed.
    """
    parent = output.absolute().parent
    remove_stale(parent, BESIDE_PREFIX)
    folder = create(parent, BESIDE_PREFIX)
    with suppress(OSError, OutputError):  # the listing only helps other runs to find the folder
        listing = create_temporary()
        folder = replace(folder, listing=listing)
        (listing.path / _BESIDE).write_text(str(folder.path), encoding="utf-8")
    _owned[folder.path] = folder
    return folder


def temporary_folder() -> Path:
    """Return the folder for temporary files: TMPDIR if it is set, even if it cannot be used."""
    requested = os.environ.get("TMPDIR")
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:  # no default folder can be written
        return Path(requested or "/tmp")
    defaults = ("/tmp", "/var/tmp", "/usr/tmp", os.getcwd())
    if requested and folder in defaults and os.path.abspath(requested) != folder:
        return Path(requested)  # raw data must not be written to any other folder
    return Path(folder)


def remove_owned() -> None:
    """Remove all work folders of this process."""
    for folder in list(_owned.values()):
        folder.remove()


def cannot_create(parent: Path, error: OSError) -> OutputError:
    """Return the error for temporary files that cannot be written."""
    reason = os.strerror(error.errno) if error.errno else "the disk refused"
    if error.errno == errno.EFBIG:
        advice = "Raise the limit of the size of files (ulimit -f) and run again."
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "Free some space there, or set TMPDIR to another folder, and run again."
    else:
        advice = "Set TMPDIR to a folder that exists and that you may write, and run again."
    return OutputError(f"Cannot write temporary files in the folder {str(parent)!r}: {reason}. {advice}")


def _host() -> str:
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return re.sub(r"\W", "_", name)[:64]


def _started(process: int) -> str:
    """Return an identifier of the start of a process, or "unknown" if the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        ticks = (
            Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19]
        )  # proc(5), field 22
        return hashlib.sha256(boot + ticks).hexdigest()[:12]
    except (OSError, IndexError):
        return "unknown"


def _release_inherited() -> None:
    """Close inherited folders in a forked process, because its parent owns them."""
    for folder in _owned.values():
        folder.unlock()
    _owned.clear()


atexit.register(remove_owned)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_inherited)
