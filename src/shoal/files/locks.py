"""Locks on outputs: they show which runs are active, and let only one run at a time start or finish.

A run writes temporary files next to its output. Their names begin with `.NAME.<12 hex digits>.tmp`. The file
with exactly that name is the *mark* of the run. The run holds a lock on its mark until it ends, so that other
runs do not remove its files.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]


def available() -> bool:
    """Return whether this system has file locks."""
    return fcntl is not None


def lock(descriptor: int) -> None:
    """Wait for a lock; do nothing on a file system without locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool | None:
    """Try to take a lock; return False if another process holds it, and None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_stale(path: Path) -> bool:
    """Return whether the process that locked a file has ended; False if that cannot be determined."""
    try:
        if fcntl is None:
            path.unlink()  # refused while the file is open
            return True
        descriptor = _open(path)
        try:
            return try_lock(descriptor) is True
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _open(path: Path) -> int:
    """Open a file to lock it; some network file systems can only lock files that are open for writing."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether a path still refers to this open file, which could have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def new_mark(output: Path) -> Path:
    """Return the path of the mark of a new run."""
    return hidden_path(output, f"{secrets.token_hex(6)}.tmp")


def temporary_files(output: Path) -> list[Path]:
    """Return the temporary files of all runs on an output, active or not."""
    pattern = re.compile(rf"\.{re.escape(output.name)}\.[0-9a-f]{{12}}\.tmp")
    try:
        return [path for path in output.parent.iterdir() if pattern.match(path.name)]
    except OSError:
        return []


def marks(output: Path) -> list[Path]:
    """Return the path of the mark of each run on an output, whether or not that file exists."""
    length = len(hidden_path(output, f"{'0' * 12}.tmp").name)
    return sorted({path.with_name(path.name[:length]) for path in temporary_files(output)})


def lock_mark(mark: Path, kind: str = "") -> int:
    """Create and lock a mark, and write the kind of output into it; closing the descriptor unlocks it."""
    descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    lock(descriptor)
    try:
        os.write(descriptor, kind.encode())
    except OSError:
        os.close(descriptor)
        with suppress(OSError):
            mark.unlink()
        raise
    return descriptor


@contextmanager
def exclusive_lock(output: Path) -> Iterator[None]:
    """Make other runs on an output wait while this run starts or finishes."""
    path = hidden_path(output, "tmp")
    descriptor = _lock_file(path)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                if not os.fstat(descriptor).st_size:  # a lock file is empty; no other file may be removed
                    path.unlink()
            os.close(descriptor)


def is_lock_left(output: Path) -> bool:
    """Return whether the file of the exclusive lock exists, whether or not it is locked."""
    try:
        return not hidden_path(output, "tmp").stat().st_size
    except OSError:
        return False


def _lock_file(path: Path) -> int | None:
    """Create and lock a file; return None if it cannot be created. The holder removes the file at the end."""
    while available():
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:  # the next write reports the error
            return None
        lock(descriptor)
        if is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # the previous holder has just removed it
    return None


def hidden_path(output: Path, ending: str) -> Path:
    """Return the path of a hidden file next to an output."""
    return output.parent / f".{output.name}.{ending}"
