"""Outputs: checks before a file is written, writing of complete files, and errors that say what to do.

A file is replaced only when the new one is complete.
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
)  # names of files in the private folder of a release
WHOLE = "whole"  # the kind of output in the marks of `written_whole`
_SPECIAL = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def check_place(output: Path, *, folder: bool = False) -> None:
    """Refuse an output whose parent folder is missing, or that exists and cannot be replaced."""
    check_path(output)
    if not output.parent.is_dir():
        raise OutputError(f"The folder {quote(output.parent)} does not exist. Create it first.")
    check_kind(output)
    if output.is_dir() and not folder:
        raise OutputError(f"The output {quote(output)} is a folder. Name a file.")


def check_kind(output: Path) -> None:
    """Refuse to replace a symbolic link, a named pipe, a socket or a device.

    A link is not followed, because it may point to a file of another user. It is not replaced either,
    because its target would stay unchanged, and the user wants to replace the target.
    """
    try:
        kind = _SPECIAL.get(stat.S_IFMT(output.lstat().st_mode))
    except OSError:  # it does not exist, or the first write reports the error
        return
    if kind is None:
        return
    advice = (
        "Name the file that it points to, or remove the link" if "link" in kind else "Name another output"
    )
    raise OutputError(
        f"The output {str(output)!r} is a {kind}, and only regular files are replaced. {advice}."
    )


def check_file(
    path: Path, *, force: bool, table: Any = None, inputs: Mapping[Path, str] | None = None
) -> None:
    """Refuse an output that cannot be written, that is also an input, or that exists (unless `force`)."""
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
        for source, description in inputs.items():
            if output.exists() and source.exists() and output.samefile(source):
                raise OutputError(
                    f"{str(output)!r} is {description} and would be replaced. Name another output."
                )


def private_folder(output: Path) -> Path:
    """Return the folder of files that are for the custodian only, such as the recipe and the audit."""
    return output.parent / f"{output.name}.private"


@contextmanager
def written_whole(path: Path, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Write a temporary file, and rename it to its final name when it is complete.

    `mode` is the mode of the complete file. Until then, only the owner can read it. Temporary files of killed
    runs are removed.
    """
    mark, descriptor = new_mark(path), None
    try:
        with exclusive_lock(path):
            _sweep(path)
            descriptor = lock_mark(mark, WHOLE)
        temporary = Path(f"{mark}.new")
        with cleanup(lambda: _discard(mark)):
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                final_mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                os.chmod(temporary, final_mode & 0o600)
                yield file
                file.flush()
                os.fsync(file.fileno())
            with placing(path):
                os.replace(temporary, path)
                os.chmod(path, final_mode)
                sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        if descriptor is not None:
            os.close(descriptor)
        _discard(mark)


def _discard(mark: Path) -> None:
    """Remove the temporary files of one run; remove the mark last, because it names the kind of the files."""
    for file in (Path(f"{mark}.new"), mark):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove the temporary files that killed runs of `written_whole` left for this output."""
    temporary = temporary_files(path)
    for mark in marks(path):
        files = [file for file in temporary if file.name.startswith(mark.name)]
        kind = kind_of(mark)
        if (kind == WHOLE or (not kind and files == [mark])) and is_stale(mark):
            for file in sorted(files, reverse=True):  # so that the mark is removed last
                with suppress(OSError):
                    file.unlink()


def kind_of(mark: Path) -> str:
    """Return the kind of output that a mark contains; "" if it cannot be read."""
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
    """Translate errors of the operating system to OutputError, which says what to do."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None


REPLACE = Change("force", True, "Use {} to replace it")


def already_exists(name: str) -> OutputError:
    """Return the error for an output that exists."""
    return OutputError(f"{quote(Path(name))} exists.", code="output-exists", advice=[REPLACE])


def appeared_meanwhile(name: str) -> OutputError:
    """Return the error for an output that another process created during the run."""
    return OutputError(
        f"{quote(Path(name))} appeared while this ran.", code="output-exists", advice=[REPLACE]
    )


def folder_missing(folder: Path) -> OutputError:
    """Return the error for an output whose folder does not exist, or no longer exists."""
    return OutputError(
        f"The folder {quote(folder)} does not exist (any more), so nothing could be written. Create it and "
        "run again."
    )


_ADVICE = {
    errno.ENOSPC: "Free some space there and run again",
    errno.EDQUOT: "Free some space there and run again",
    errno.EROFS: "Name an output in a folder that you may read and write",
    errno.EACCES: "Name an output in a folder that you may read and write",
    errno.EPERM: "Name an output in a folder that you may read and write",
    errno.ENAMETOOLONG: "Give it a shorter name, because the temporary files next to it have longer names",
    errno.EFBIG: "A limit on the size of files is set for this process (ulimit -f). Raise it and run again",
}


def cannot_write(output: Path, error: OSError) -> OutputError:
    """Return the error for an output that the operating system refuses to write."""
    if error.errno == errno.ENOENT and not output.parent.is_dir():
        return folder_missing(output.parent)
    reason = os.strerror(error.errno) if error.errno else "the disk refused"
    advice = _ADVICE.get(error.errno or 0, "Check the folder and run again")
    location = f"{quote(output.name)} in the folder {quote(output.parent)}"
    return OutputError(f"Cannot write {location}: {reason}. {advice}.")
