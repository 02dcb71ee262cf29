"""Outputs: checks that a file can be written, errors that say what to do if it cannot, and private files.

Files are written whole or not at all.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from shoal.errors import OutputError, UsageError
from shoal.files.locks import exclusive_lock, is_stale, lock_mark, marks, new_mark, temporary_files
from shoal.files.signals import cleanup, placing
from shoal.wording import Change, quote


def check_path(path: Path) -> None:
    """Refuse a path that is too long for the system, or not text.

    >>> check_path(Path("x" * 5000))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: The path 'xxx...xxx' is too long or has a name that is. Give a shorter one.
    """
    try:
        str(path).encode()
        os.stat(path)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            return
        raise UsageError(
            f"The path {quote(path)} is too long or has a name that is. Give a shorter one."
        ) from None
    except ValueError:
        raise UsageError(f"The path {quote(path)} is not UTF-8 text. Rename the file or folder.") from None


REPORT, CERTIFICATE, POLICY = (
    "report.html",
    "certificate.html",
    "policy.yaml",
)  # in the private folder of a release
WHOLE = "whole"  # the kind of output in the marks of files that are written whole
_SPECIAL = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def check_place(output: Path, *, folder: bool = False) -> None:
    """Refuse an output without a parent folder, or one that would replace anything but a file or folder."""
    check_path(output)
    if not output.parent.is_dir():
        raise OutputError(f"The folder {quote(output.parent)} does not exist. Create it first.")
    check_kind(output)
    if output.is_dir() and not folder:
        raise OutputError(f"The output {quote(output)} is a folder. Name a file.")


def check_kind(output: Path) -> None:
    """Refuse to replace a symbolic link, a named pipe, a socket or a device.

    A link is not followed: it may lead to a file of somebody else. Nor is it replaced: its target would
    stay unchanged, although the output was to be replaced.
    """
    try:
        kind = _SPECIAL.get(stat.S_IFMT(output.lstat().st_mode))
    except OSError:  # it does not exist, or the first write reports the error
        return
    if kind is None:
        return
    step = "Name the file that it points to, or remove the link" if "link" in kind else "Name another output"
    raise OutputError(f"The output {str(output)!r} is a {kind}, and only regular files are replaced. {step}.")


def check_file(
    path: Path, *, force: bool, table: Any = None, inputs: Mapping[Path, str] | None = None
) -> None:
    """Refuse a file that cannot be written, is the table that is read, or exists."""
    check_place(path)
    if not path.exists():
        return
    if isinstance(table, str | Path):
        check_inputs([path], {Path(table): "the input"})
    check_inputs([path], inputs or {})
    if not force:
        raise already_exists(str(path))


def check_inputs(outputs: Iterable[Path], inputs: Mapping[Path, str]) -> None:
    """Refuse outputs that are also inputs; `inputs` maps paths to descriptions."""
    for output in outputs:
        for known, what in inputs.items():
            if output.exists() and known.exists() and output.samefile(known):
                raise OutputError(f"{str(output)!r} is {what} and would be replaced. Name another output.")


def private_folder(output: Path) -> Path:
    """Return the folder of a release's recipe and audit, which are for the custodian, not for the public."""
    return output.parent / f"{output.name}.private"


@contextmanager
def written_whole(path: Path, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Write a temporary file and rename it when it is complete; by default, only its owner can read it.

    Only the owner can read the temporary file, whatever `mode` is. Files of killed runs are removed.
    """
    mark, descriptor = new_mark(path), None
    try:
        with exclusive_lock(path):
            _sweep(path)
            descriptor = lock_mark(mark, WHOLE)
        temporary = Path(f"{mark}.new")
        with cleanup(lambda: _discard(mark)):
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                usual = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                os.chmod(temporary, usual & 0o600)
                yield file
                file.flush()
                os.fsync(file.fileno())
            with placing(path):
                os.replace(temporary, path)
                os.chmod(path, usual)
                sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        if descriptor is not None:
            os.close(descriptor)
        _discard(mark)


def _discard(mark: Path) -> None:
    """Remove the temporary files of one run; the mark is last, because it contains the kind of the others."""
    for left in (Path(f"{mark}.new"), mark):
        with suppress(OSError):
            left.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove the temporary files of killed runs for a file that is written whole."""
    everything = temporary_files(path)
    for mark in marks(path):
        files = [left for left in everything if left.name.startswith(mark.name)]
        kind = kind_of(mark)
        if (kind == WHOLE or (not kind and files == [mark])) and is_stale(mark):
            for left in sorted(files, reverse=True):  # the mark last: it contains their kind
                with suppress(OSError):
                    left.unlink()


def kind_of(mark: Path) -> str:
    """Return the kind of output that a run wrote in its mark; "" if it cannot be read."""
    try:
        return mark.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, and flush it to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk if the system can, so that they survive a power failure."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Turn the system's refusals to write into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None


REPLACE = Change("force", True, "Use {} to replace it")


def already_exists(name: str) -> OutputError:
    """Return the error that an output exists, which says how to replace it."""
    return OutputError(f"{quote(Path(name))} exists.", code="output-exists", advice=[REPLACE])


def appeared_meanwhile(name: str) -> OutputError:
    """Return the error that an output appeared during the run."""
    return OutputError(
        f"{quote(Path(name))} appeared while this ran.", code="output-exists", advice=[REPLACE]
    )


def folder_missing(folder: Path) -> OutputError:
    """Return the error that the folder of an output does not exist, or no longer exists."""
    return OutputError(
        f"The folder {quote(folder)} does not exist (any more), so nothing could be written. Create it and "
        "run again."
    )


_STEPS = {
    errno.ENOSPC: "Free some space there and run again",
    errno.EDQUOT: "Free some space there and run again",
    errno.EROFS: "Name an output in a folder that you may read and write",
    errno.EACCES: "Name an output in a folder that you may read and write",
    errno.EPERM: "Name an output in a folder that you may read and write",
    errno.ENAMETOOLONG: "Give it a shorter name, because the temporary files next to it have longer names",
    errno.EFBIG: "A limit on the size of files is set for this process (ulimit -f). Raise it and run again",
}


def cannot_write(output: Path, error: OSError) -> OutputError:
    """Return the error that says why an output cannot be written, and what to do."""
    if error.errno == errno.ENOENT and not output.parent.is_dir():
        return folder_missing(output.parent)
    why = os.strerror(error.errno) if error.errno else "the disk refused"
    step = _STEPS.get(error.errno or 0, "Check the folder and run again")
    where = f"{quote(output.name)} in the folder {quote(output.parent)}"
    return OutputError(f"Cannot write {where}: {why}. {step}.")
