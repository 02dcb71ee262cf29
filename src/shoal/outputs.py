"""Outputs: whether a file may be written where it is wanted, what to do where it cannot, what is private.

Files are written whole or not at all.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from shoal.errors import OutputError

REPORT = "report.html"  # in the private folder of a release


def check_place(output: Path, *, folder: bool = False) -> None:
    """Refuse an output that has no folder around it, or is one where it must not be."""
    if not output.parent.is_dir():
        message = f"The folder {str(output.parent)!r} does not exist. Create it first."
        raise OutputError(message)
    if output.is_dir() and not folder:
        message = f"The output {str(output)!r} is a folder. Name a file."
        raise OutputError(message)


def check_file(path: Path, *, force: bool, table: Any = None) -> None:
    """Refuse a file that cannot be written, is the table that is read, or exists."""
    check_place(path)
    if not path.exists():
        return
    if isinstance(table, str | Path) and Path(table).exists() and path.samefile(table):
        message = f"{str(path)!r} is the input and would be replaced. Name another output."
        raise OutputError(message)
    if not force:
        raise exists(str(path))


def private_folder(output: Path) -> Path:
    """Return where a release's recipe and audit go: the custodian's, not the public's."""
    return output.parent / f"{output.name}.private"


@contextmanager
def written_whole(path: Path, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Write a file beside its place and rename it once it is whole; without a mode, for its owner alone."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise cannot(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, to the disk itself."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def exists(name: str) -> OutputError:
    """Say that an output is there, and how to replace it."""
    return OutputError(f"{name!r} exists. Use force=True to replace it.")


def appeared(name: str) -> OutputError:
    """Say that an output was not there when the run began."""
    return OutputError(f"{name!r} appeared while this ran. Use force=True to replace it.")


def cannot(output: Path, error: OSError) -> OutputError:
    """Say why an output cannot be written, and what to do."""
    why = os.strerror(error.errno) if error.errno else "the disk refused"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        step = "Free some space there and run again"
    elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        step = "Name an output in a folder that you may read and write"
    else:
        step = "Check the folder and run again"
    return OutputError(f"Cannot write {output.name!r} in the folder {str(output.parent)!r}: {why}. {step}.")
