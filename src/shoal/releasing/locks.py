"""Locks: which runs on a target are alive, and one of them at a time to begin or to end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: see abandoned
    fcntl = None  # type: ignore[assignment]


def abandoned(mark: Path) -> bool:
    """Tell whether the run that held a lock is gone; where that cannot be known, it is not."""
    try:
        if fcntl is None:
            mark.unlink()  # refused while the file is open
        else:
            with open(mark, "rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Keep other runs on a target waiting for the moment that it takes to begin or to end."""
    path = hidden(output, "tmp")
    descriptor = _locked(path)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Wait for the lock of a file that its holders make and remove; None where none is to be had."""
    while fcntl is not None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # what cannot be written here will say so itself
            return None
        lock(descriptor)
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # the run before has just removed it
    return None


def lock(descriptor: int) -> None:
    """Wait for a lock; a file system without locks gives none."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def hidden(output: Path, ending: str) -> Path:
    """Return the name of a file beside an output that nobody looks at."""
    return output.parent / f".{output.name}.{ending}"
