"""Stages: where a release is written, counted afresh, and from where it is put in place.

A file is put in place by one rename or link, a folder by a rename (after another, where it replaces one),
a table by the database, in one transaction where it has such.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.targets import TableEngine, Target
from shoal.errors import OutputError
from shoal.outputs import appeared


@dataclass(frozen=True)
class Stage(ABC):
    """A release that waits, and the place that it is to take."""

    target: Target
    mark: Path  # what the names of all temporaries of a run begin with
    engine: Engine

    @property
    @abstractmethod
    def waiting(self) -> Any:
        """What is counted afresh: a path, or the name of a table."""

    @abstractmethod
    def write(self, table: Any) -> None:
        """Write the release where it waits."""

    @abstractmethod
    def digest(self) -> str:
        """Return what tells the waiting release from all others, once it is on disk for good."""

    @abstractmethod
    def digest_in_place(self) -> str | None:
        """Return what tells the release in place from all others; None where there is none."""

    @abstractmethod
    def place(self, *, force: bool) -> None:
        """Put the release in place: the moment that counts."""

    @abstractmethod
    def undo(self) -> None:
        """Take the release back, where it replaced none."""

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Bring back what a run that was stopped had moved aside."""

    def exists(self) -> bool:
        """Tell whether something is in place."""
        return os.path.lexists(self.target.path)

    def taken(self) -> OutputError:
        """Say that something is in place that was not there before."""
        return appeared(self.target.name)


class FileStage(Stage):
    """A release in one file."""

    @property
    def waiting(self) -> Path:
        """The file."""
        return Path(f"{self.mark}{self.target.ending}")

    def write(self, table: Any) -> None:
        """Write the file."""
        self.engine.write(table, replace(self.target, name=str(self.waiting)))

    def digest(self) -> str:
        """Return the file's SHA-256."""
        sync(self.waiting)
        return _sha256(self.waiting)

    def digest_in_place(self) -> str | None:
        """Return the file's SHA-256."""
        try:
            return _sha256(self.target.path)
        except OSError:
            return None

    def place(self, *, force: bool) -> None:
        """Rename over what is there, or link, never over another."""
        output = self.target.path
        if force:
            self.waiting.replace(output)
            return
        try:
            os.link(self.waiting, output)
        except FileExistsError:
            raise self.taken() from None
        except (NotImplementedError, OSError):  # a file system without links
            if output.exists():
                raise self.taken() from None
            self.waiting.rename(output)

    def undo(self) -> None:
        """Remove the file."""
        self.target.path.unlink()


class FolderStage(FileStage):
    """A release in a folder of files, as a cluster writes them."""

    @property
    def _replaced(self) -> Path:
        return Path(f"{self.mark}.before")

    def digest(self) -> str:
        """Return the SHA-256 of the names and contents of its files."""
        for path in _files(self.waiting):
            sync(path)
        return _sha256_of_folder(self.waiting)

    def digest_in_place(self) -> str | None:
        """Return the SHA-256 of the names and contents of its files."""
        try:
            return _sha256_of_folder(self.target.path)
        except OSError:
            return None

    def place(self, *, force: bool) -> None:
        """Move what is there aside, and rename."""
        output = self.target.path
        if os.path.lexists(output):
            if not force:
                raise self.taken()
            output.rename(self._replaced)
        self.waiting.rename(output)

    def undo(self) -> None:
        """Take the folder back."""
        self.target.path.rename(self.waiting)

    def settle(self) -> None:
        """Bring back the folder that was moved aside, where none took its place."""
        if self._replaced.exists() and not os.path.lexists(self.target.path):
            self._replaced.rename(self.target.path)


@dataclass(frozen=True)
class TableStage(Stage):
    """A release in a table of a database."""

    engine: TableEngine

    @property
    def waiting(self) -> str:
        """The table's name until it is in place."""
        return self.engine.beside(self.target.name, self._mark)

    @property
    def _mark(self) -> str:
        return self.mark.name.rsplit(".", 2)[-2]

    def write(self, table: Any) -> None:
        """Create the table."""
        self.engine.write(table, Target(self.waiting, "table"))
        self.engine.mark(self.waiting, self._mark)

    def digest(self) -> str:
        """Return the mark that the table bears."""
        return self._mark

    def digest_in_place(self) -> str | None:
        """Return the mark that the table in place bears."""
        return self.engine.mark_of(self.target.name)

    def place(self, *, force: bool) -> None:
        """Let the table take its name."""
        if not force and self.exists():
            raise self.taken()
        self.engine.place(self.waiting, self.target.name, replace=force)

    def undo(self) -> None:
        """Remove the table."""
        self.engine.drop(self.target.name)

    def settle(self) -> None:
        """Remove the table that still waits, or bring back the one that it was to replace."""
        self.engine.settle(self.waiting, self.target.name)

    def exists(self) -> bool:
        """Tell whether a table has this name."""
        return self.engine.has(self.target.name)


def stage_of(target: Target, mark: Path, engine: Engine) -> Stage:
    """Return the stage that a target needs."""
    if isinstance(engine, TableEngine) and target.kind == "table":
        return TableStage(target, mark, engine)
    return (FolderStage if target.kind == "folder" else FileStage)(target, mark, engine)


def sync(path: Path) -> None:
    """Let a file's contents outlive a power cut."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    """List the files that hold data, in the order of their names."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._"]
    return sorted(found)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_folder(folder: Path) -> str:
    whole = hashlib.sha256()
    if not folder.is_dir():
        raise NotADirectoryError(folder)
    for path in _files(folder):
        whole.update(f"{path.relative_to(folder).as_posix()}\0{_sha256(path)}\n".encode())
    return whole.hexdigest()
