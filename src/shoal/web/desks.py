"""Desks: one for each browser tab, under a random name, with a private folder that is removed at the end."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import ShoalError
from shoal.policy import Policy
from shoal.web.answers import FileAnswer
from shoal.web.columns import Progress
from shoal.web.desk import Desk
from shoal.web.downloads import ENDINGS, UPLOADED
from shoal.web.jobs import Job, Jobs, Work
from shoal.web.refusals import Refused, TooLarge, Unknown

UPLOAD_LIMIT = 1 << 30  # bytes
MOST_DESKS = 64
_MOST_FILES = 1_000  # that are listed to choose from


class Desks:
    """All desks of a process, their jobs, and the folders that they may use."""

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        data: str | Path | None = None,
        policy: str | Path | None = None,
        upload_limit: int = UPLOAD_LIMIT,
    ) -> None:
        self.folder = None if folder is None else Path(folder).resolve()  # to choose files below
        if self.folder is not None and not self.folder.is_dir():
            message = f"The folder {str(folder)!r} does not exist. Create it, or name another."
            raise Refused(message, "folder")
        self.data = None if data is None else Path(data)  # with which every desk begins
        self.policy = None if policy is None else Policy.load(policy)
        self.upload_limit = upload_limit
        self.jobs = Jobs()
        self.private = Path(tempfile.mkdtemp(prefix="shoal-studio-"))
        os.chmod(self.private, 0o700)
        self._desks: dict[str, Desk] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    # Desks.

    def open(self) -> str:
        """Set up a desk and return its name; the one longest unused makes room where they are too many."""
        name = secrets.token_urlsafe(16)
        home = self.private / secrets.token_hex(8)
        home.mkdir(mode=0o700)
        with self._lock:
            idle = sorted(self._used, key=self._used.__getitem__)
            self._desks[name] = Desk(home)
            self._used[name] = time.monotonic()
        for other in idle:
            if len(self._desks) <= MOST_DESKS:
                break
            if not any(not job.ended for job in self.jobs.of(other)):
                self.leave(other)
        return name

    def desk(self, name: str) -> Desk:
        """Return a desk by its name."""
        with self._lock:
            if name not in self._desks:
                message = "There is no such desk. It may have been closed; open another."
                raise Unknown(message, "desk")
            self._used[name] = time.monotonic()
            return self._desks[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a desk of this name."""
        return name in self._desks

    def leave(self, name: str) -> None:
        """Clear a desk away with all its files."""
        desk = self.desk(name)
        self.jobs.leave(name)
        with self._lock:
            self._desks.pop(name, None)
            self._used.pop(name, None)
        shutil.rmtree(desk.folder, ignore_errors=True)

    def start(self, name: str, kind: str, work: Work) -> Job:
        """Begin long work on a desk; where a table is opened, all other work on the desk ends."""
        self.desk(name)
        if kind == "open":
            self.jobs.stop(name)
        return self.jobs.start(name, kind, work)

    def close(self) -> None:
        """Stop all work and remove the private folder."""
        atexit.unregister(self.close)
        self.jobs.close()
        with self._lock:  # a framework may hold us to the end, and a database prints what is left then
            self._desks.clear()
            self._used.clear()
        shutil.rmtree(self.private, ignore_errors=True)

    # Tables.

    def begin(self, name: str, progress: Progress | None = None) -> None:
        """Put the table and the policy given with the command on a desk, where there are any."""
        desk = self.desk(name)
        if self.data is None:
            return
        with _named(self.data, self.data.name):
            desk.open(self.data, self.data.name, progress)
        if self.policy is not None:
            desk.adopt(self.policy)
        desk.fit()

    def place(self, name: str, path: Path, shown: str, progress: Progress | None = None) -> None:
        """Open a table on a desk; an earlier upload, and one that cannot be read, is removed."""
        desk = self.desk(name)
        before = desk.table
        try:
            with _named(path, shown):
                desk.open(path, shown, progress)
        except BaseException:
            _remove(path, desk.folder)
            raise
        if before is not None and before != path:
            _remove(before, desk.folder)
        desk.fit()

    def tables(self) -> list[FileAnswer]:
        """List the tables below the given folder; hidden ones and what links lead to are left out."""
        if self.folder is None:
            return []
        found = []
        for home, folders, files in os.walk(self.folder, followlinks=False):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and not _private(one))
            for one in sorted(files):
                path = Path(home) / one
                if one.lower().endswith(ENDINGS) and not one.startswith(".") and not path.is_symlink():
                    with suppress(OSError):  # it may just have gone
                        name = path.relative_to(self.folder).as_posix()
                        found.append(FileAnswer(name=name, size=path.stat().st_size))
                if len(found) == _MOST_FILES:
                    return found
        return found

    def below(self, name: str) -> Path:
        """Return a file below the given folder; what leads out of it is refused, whether there or not."""
        if self.folder is None:
            message = (
                "No folder was given to choose from. Start shoal studio with --folder, or upload a file."
            )
            raise Refused(message, "name")
        message = "Name a table below the given folder, without '..' and without links that lead out."
        parts = Path(name).parts if "\0" not in name else ("..",)
        if not parts or ".." in parts or Path(name).is_absolute() or "\\" in name or len(name) > 1000:
            raise Refused(message, "name")
        try:
            path = (self.folder / name).resolve()
            inside = path.is_relative_to(self.folder) and path.is_file()
        except (OSError, RuntimeError, ValueError):
            inside = False
        if not inside:
            raise Refused(message, "name")
        if not path.name.lower().endswith(ENDINGS):
            told = f"A table is a file that ends in {', '.join(ENDINGS)}."
            raise Refused(told, "name")
        return path

    def receive(self, name: str, file_name: str) -> Upload:
        """Begin to receive a table into a desk's private folder."""
        plain = file_name.replace("\\", "/").rpartition("/")[2].replace("\0", "")[-120:]
        ending = next((ending for ending in UPLOADED if plain.lower().endswith(ending)), None)
        if ending is None:
            message = f"A table is a file that ends in {', '.join(UPLOADED)}."
            raise Refused(message, "file")
        path = self.desk(name).folder / f"upload-{secrets.token_hex(6)}{ending}"
        return Upload(path, plain, self.upload_limit)


class Upload:
    """A file that comes in piece by piece, whole or not at all; use it with `with`."""

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self.path = path
        self.name = name
        self.limit = limit
        self.size = 0

    def __enter__(self) -> Upload:
        self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        return self

    def write(self, piece: bytes) -> None:
        """Take a piece; refused once the limit is passed."""
        self.size += len(piece)
        if self.size > self.limit:
            message = f"The file is larger than {self.limit:,} bytes, which is the limit."
            raise TooLarge(message, "file")
        self._file.write(piece)

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is not None:
            self.path.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, shown: str) -> Iterator[None]:
    """Let errors name a file as its custodian knows it, without the folders of this machine."""
    try:
        yield
    except ShoalError as error:
        error.args = tuple(
            arg.replace(str(path), shown) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def _remove(path: Path, folder: Path) -> None:
    """Remove an upload; a table that lies elsewhere is not ours."""
    if path.parent == folder and path.name.startswith("upload-"):
        path.unlink(missing_ok=True)


def _private(folder: str) -> bool:
    """Tell whether a folder holds recipes and audits of releases."""
    return folder.endswith(".private")
