"""Stages: where a release is written and checked, and how it is then moved to its target.

A file is published by one rename or link. A folder is published by a rename; a folder that it replaces is
renamed first. A table is published by the database, in one transaction if the database supports that.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.targets import TableEngine, Target
from shoal.errors import OutputError
from shoal.files.outputs import appeared_meanwhile, private_folder
from shoal.files.yaml import MAX_JSON_BYTES, load_json, read_bytes

CODEBOOK = "codebook.csv"  # the name of the codebook while it waits in the private folder
SENSITIVE = "sensitive"  # the name of the second table in the private folder, without its extension
Companions = Mapping[str, Path]  # the files next to a release, by their names in the private folder


def codebook_path(output: Path) -> Path:
    """Return the path of a release's codebook."""
    return output.parent / f"{output.name}.codebook.csv"


def second_table_path(output: Path, ending: str) -> Path:
    """Return the path of a release's second table.

    >>> second_table_path(Path("out.csv.gz"), ".csv.gz").name
    'out.sensitive.csv.gz'
    """
    stem = output.name[: -len(ending)]
    return output.with_name(f"{stem}.{SENSITIVE}{output.name[-len(ending) :]}")


def companions(output: Path, names: Iterable[object]) -> Companions:
    """Return the paths of the files next to a release; unknown names are ignored.

    >>> paths = companions(Path("r.csv"), ["codebook.csv", "sensitive.csv", "../x", "sensitive.parquet", 7])
    >>> [(name, str(path)) for name, path in paths.items()]
    [('codebook.csv', 'r.csv.codebook.csv'), ('sensitive.csv', 'r.sensitive.csv')]
    """
    result = {}
    for name in names:
        if name == CODEBOOK:
            result[CODEBOOK] = codebook_path(output)
        elif isinstance(name, str) and name.startswith(f"{SENSITIVE}."):
            ending = name.removeprefix(SENSITIVE)
            if output.name.lower().endswith(ending) and len(output.name) > len(ending):
                result[name] = second_table_path(output, ending)
    return result


def recorded_companions(output: Path) -> Companions:
    """Return the paths of the files next to the published release, as listed in its audit.

    A file that has its own private folder is left out: it is another release by now.
    """
    try:
        listed = companions(output, read_audit(private_folder(output))["beside"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: path for name, path in listed.items() if not private_folder(path).exists()}


def owned_companions(output: Path) -> Companions:
    """Return the recorded companions that are unchanged since the release wrote them, by their digests.

    Other files belong to the user and are not replaced or removed with the release.
    """
    owned = {}
    for name, path in recorded_companions(output).items():
        with suppress(OSError, ValueError, KeyError, TypeError):
            if read_audit(private_folder(output))["beside"][name] == sha256(path):
                owned[name] = path
    return owned


def check_no_companion(output: Path) -> None:
    """Raise if an output is the codebook or the second table of another release."""
    before, mark, ending = output.name.rpartition(f".{SENSITIVE}.")
    names = [output.name.removesuffix(".codebook.csv"), f"{before}.{ending}" if mark else output.name]
    for name in names:
        owner = output.with_name(name)
        if name != output.name and output in recorded_companions(owner).values():
            raise OutputError(f"{str(output)!r} belongs to the release {owner.name!r}. Name another output.")


def read_audit(private: Path) -> Any:
    """Read the audit in a private folder; raises OSError or ValueError."""
    return load_json(read_bytes(private / "audit.json", MAX_JSON_BYTES))


@dataclass(frozen=True)
class Stage(ABC):
    """A release that is not published yet, and its target."""

    target: Target
    mark: Path  # prefix of all temporary files of a run
    engine: Engine

    @property
    @abstractmethod
    def waiting(self) -> Any:
        """Where the release is read back and checked: a path, or the name of a table."""

    @abstractmethod
    def write(self, table: Any) -> None:
        """Write the release to the waiting file or table."""

    @abstractmethod
    def digest(self) -> str:
        """Make sure that the waiting release is on disk, and return its digest."""

    @abstractmethod
    def digest_in_place(self) -> str | None:
        """Return the digest of the published release; None if there is none."""

    @abstractmethod
    def publish(self, *, force: bool) -> None:
        """Move the release to its target; from this moment it is published."""

    @abstractmethod
    def undo(self) -> None:
        """Withdraw the release; only used if it did not replace another."""

    def recover(self) -> None:  # noqa: B027 - most stages have nothing to restore
        """Restore the files or tables that an interrupted run had moved away."""

    def exists(self) -> bool:
        """Return whether the target exists."""
        return os.path.lexists(self.target.path)

    def taken(self) -> OutputError:
        """Return the error for a target that appeared during the run."""
        return appeared_meanwhile(self.target.name)


class FileStage(Stage):
    """A release in one file."""

    @property
    def waiting(self) -> Path:
        """The file, in a folder that only its owner can open."""
        return Path(f"{self.mark}.release") / f"release.tmp{self.target.ending}"

    def write(self, table: Any) -> None:
        self.waiting.parent.mkdir(mode=0o700, exist_ok=True)
        self.engine.write(table, replace(self.target, name=str(self.waiting)))

    def digest(self) -> str:
        sync(self.waiting)
        return sha256(self.waiting)

    def digest_in_place(self) -> str | None:
        try:
            return sha256(self.target.path)
        except OSError:
            return None

    def publish(self, *, force: bool) -> None:
        """Rename with `force`; otherwise link, which never replaces another file."""
        output = self.target.path
        if force:
            self.waiting.replace(output)
            return
        try:
            os.link(self.waiting, output)
        except FileExistsError:
            raise self.taken() from None
        except (NotImplementedError, OSError):  # a file system without links
            if os.path.lexists(output):
                raise self.taken() from None
            self.waiting.rename(output)

    def undo(self) -> None:
        self.target.path.unlink()


class FolderStage(FileStage):
    """A release in a folder of files, such as a cluster writes."""

    @property
    def waiting(self) -> Path:
        """The folder; the workers of a cluster must be able to open it."""
        return Path(f"{self.mark}{self.target.ending}")

    def write(self, table: Any) -> None:
        self.engine.write(table, replace(self.target, name=str(self.waiting)))

    @property
    def _replaced(self) -> Path:
        return Path(f"{self.mark}.before")

    def digest(self) -> str:
        for path in _files(self.waiting):
            sync(path)
        return _sha256_of_folder(self.waiting)

    def digest_in_place(self) -> str | None:
        try:
            return _sha256_of_folder(self.target.path)
        except OSError:
            return None

    def publish(self, *, force: bool) -> None:
        output = self.target.path
        if os.path.lexists(output):
            if not force:
                raise self.taken()
            output.rename(self._replaced)
        self.waiting.rename(output)

    def undo(self) -> None:
        self.target.path.rename(self.waiting)

    def recover(self) -> None:
        if self._replaced.exists() and not os.path.lexists(self.target.path):
            self._replaced.rename(self.target.path)


@dataclass(frozen=True)
class TableStage(Stage):
    """A release in a table of a database."""

    engine: TableEngine

    @property
    def waiting(self) -> str:
        """The name of the table before it is published."""
        return self.engine.staging_name(self.target.name, self._mark)

    @property
    def _mark(self) -> str:
        return self.mark.name.rsplit(".", 2)[-2]

    def write(self, table: Any) -> None:
        self.engine.write(table, Target(self.waiting, "table"))
        self.engine.mark(self.waiting, self._mark)

    def digest(self) -> str:
        return self._mark

    def digest_in_place(self) -> str | None:
        return self.engine.mark_of(self.target.name)

    def publish(self, *, force: bool) -> None:
        if not force and self.exists():
            raise self.taken()
        self.engine.publish(self.waiting, self.target.name, replace=force)

    def undo(self) -> None:
        self.engine.undo(self.target.name)

    def recover(self) -> None:
        self.engine.recover(self.waiting, self.target.name)

    def exists(self) -> bool:
        return self.engine.has(self.target.name)


def stage_of(target: Target, mark: Path, engine: Engine) -> Stage:
    """Return the stage for a kind of target."""
    if isinstance(engine, TableEngine) and target.kind == "table":
        return TableStage(target, mark, engine)
    return (FolderStage if target.kind == "folder" else FileStage)(target, mark, engine)


def sync(path: Path) -> None:
    """Write a file's contents to disk, so that they survive a power cut."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    if not folder.is_dir():
        raise NotADirectoryError(folder)
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256(path)}\n".encode())
    return digest.hexdigest()
