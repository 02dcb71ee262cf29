"""Saved projects. The folder of `--projects` has a folder for each user, with a folder for each project.

A project folder holds project.json, a summary for the list, and a copy of the table if its owner asked for
one. Folders have random or hashed names, never a name that a user types.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from shoal.errors import OutputError
from shoal.web.errors import Refused, Unknown
from shoal.web.workspace.files import UPLOAD_ENDINGS
from shoal.web.workspace.project_file import MAX_BYTES, SavedProject, read_project

_NAME = re.compile(r"[0-9a-f]{16}")
_MAX_PROJECTS = 1_000  # per user
_SUMMARY, _PROJECT, _TABLE = "summary.json", "project.json", "table"


@dataclass(frozen=True)
class ProjectSummary:
    """An entry of the list of projects."""

    id: str
    name: str
    table: str
    records: int
    saved: str
    step: str
    keeps_table: bool
    columns: str  # a digest of the column names


class Projects:
    """The saved projects of all users."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            text = f"The folder of projects cannot be used: {error.strerror}. Name another one."
            raise OutputError(text) from None
        self._lock = threading.Lock()

    def create(self, owner: str) -> str:
        """Create a project folder and return its name."""
        with self._lock:
            folder = self._user_folder(owner)
            if folder.is_dir() and sum(1 for _ in folder.iterdir()) >= _MAX_PROJECTS:
                raise Refused(f"You have {_MAX_PROJECTS:,} projects, the limit. Delete one first.", "project")
            name = secrets.token_hex(8)
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / name).mkdir(mode=0o700)
        return name

    def _user_folder(self, owner: str) -> Path:
        return self.folder / hashlib.sha256(f"user:{owner}".encode()).hexdigest()[:32]

    def _path(self, owner: str, name: str) -> Path:
        """Return the folder of a project. Raise Unknown for a project of another user."""
        path = self._user_folder(owner) / name
        if not _NAME.fullmatch(name) or not path.is_dir():
            raise Unknown("There is no such project. It may have been deleted.", "project")
        return path

    def save(self, owner: str, name: str, project: SavedProject) -> None:
        """Write a project atomically: after a crash, the file is either the old or the new version."""
        folder = self._path(owner, name)
        content = project.to_json()
        if len(content) > MAX_BYTES:
            raise Refused("The project is too large to be saved: its hierarchies are too long.", "project")
        _write(folder / _PROJECT, content)
        summary = ProjectSummary(
            id=name,
            name=project.name,
            table=project.table.name,
            records=project.table.records,
            saved=project.saved,
            step=project.step,
            keeps_table=self.table(owner, name) is not None,
            columns=columns_digest(project.table.columns),
        )
        _write(folder / _SUMMARY, json.dumps(asdict(summary)).encode())

    def load(self, owner: str, name: str) -> SavedProject:
        path = self._path(owner, name) / _PROJECT
        try:
            with open(path, "rb") as file:
                return read_project(file.read(MAX_BYTES + 1))
        except FileNotFoundError:
            raise Unknown("There is no such project. It may have been deleted.", "project") from None

    def summary(self, owner: str, name: str) -> ProjectSummary:
        content = json.loads((self._path(owner, name) / _SUMMARY).read_bytes())
        return ProjectSummary(**content)

    def all(self, owner: str) -> list[ProjectSummary]:
        """List the projects of a user. The project that was saved last comes first."""
        listed = []
        user_folder = self._user_folder(owner)
        for folder in user_folder.iterdir() if user_folder.is_dir() else ():
            with suppress(OSError, ValueError, TypeError, Unknown):  # the project is being created or deleted
                listed.append(self.summary(owner, folder.name))
        return sorted(listed, key=lambda project: (project.saved, project.id), reverse=True)

    def delete(self, owner: str, name: str) -> None:
        """Delete a project with everything in it."""
        path = self._path(owner, name)
        renamed = path.with_name(f"{name}-deleted")
        path.rename(renamed)  # so that a concurrent save does not find it
        shutil.rmtree(renamed, ignore_errors=True)

    # The copy of the table, which a project may keep.

    def table(self, owner: str, name: str) -> Path | None:
        folder = self._path(owner, name)
        paths = (folder / f"{_TABLE}{ending}" for ending in UPLOAD_ENDINGS)
        return next((path for path in paths if path.is_file()), None)

    def keep_table(self, owner: str, name: str, path: Path) -> Path:
        """Copy a table into the project, and return the path of the copy."""
        ending = table_ending(path.name)
        target = self._path(owner, name) / f"{_TABLE}{ending}"
        if path != target:
            part = target.with_name(f"part-{secrets.token_hex(4)}")
            try:
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as copy, open(path, "rb") as table:
                    shutil.copyfileobj(table, copy, 1 << 20)
                self.forget_table(owner, name)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return target

    def forget_table(self, owner: str, name: str) -> None:
        if (path := self.table(owner, name)) is not None:
            path.unlink(missing_ok=True)


def columns_digest(names: Sequence[str]) -> str:
    """Return a digest of the names of columns that does not depend on their order."""
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()[:32]


def table_ending(name: str) -> str:
    """Return the ending of a table's file name."""
    ending = next((ending for ending in UPLOAD_ENDINGS if name.lower().endswith(ending)), None)
    if ending is None:
        raise Refused(f"A table is a file that ends in {', '.join(UPLOAD_ENDINGS)}.", "file")
    return ending


def _write(path: Path, content: bytes) -> None:
    """Write a private file atomically. Raise Unknown if its folder was deleted."""
    part = path.with_name(f"part-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileNotFoundError:
        raise Unknown("There is no such project. It may have been deleted.", "project") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
