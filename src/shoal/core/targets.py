"""Where a release is written, and the interface of engines that write to database tables."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shoal.core.contracts import Engine
from shoal.files.text import delimiter_of


@dataclass(frozen=True)
class Target:
    """The destination of a release: a file, a folder of files, or a database table."""

    name: str
    kind: Literal["file", "folder", "table"]
    ending: str = ""  # of a file or a folder
    delimiter: str | None = None  # of a text file, if it is not the default for its ending
    folder: Path | None = None  # of the files that accompany a table; default: the current folder

    @property
    def separator(self) -> str:
        return self.delimiter or delimiter_of(self.ending)

    @property
    def path(self) -> Path:
        """The file or folder; for a table, the path that accompanying files are named after."""
        if self.kind != "table":
            return Path(self.name)
        plain = re.sub(r'"(\w+)"|`(\w+)`', r"\1\2", self.name)
        # Distinct names need distinct paths, so every other character is replaced by its code point.
        name = re.sub(r"[^\w.-]", lambda match: f"%{ord(match[0]):x}%", plain)
        return (self.folder or Path()) / name


class TableEngine(Engine):
    """An engine that writes releases to database tables."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether a table or view of this name exists."""

    @abstractmethod
    def mark(self, name: str, mark: str) -> None:
        """Attach a mark to a table, which shows that this run created it."""

    @abstractmethod
    def mark_of(self, name: str) -> str | None:
        """Return the mark of a table, or None."""

    @abstractmethod
    def staging_name(self, name: str, mark: str) -> str:
        """Return the name of the staging table, which is renamed when it is complete."""

    @abstractmethod
    def publish(self, staging: str, name: str, *, replace: bool) -> None:
        """Rename the staging table, replacing a table of that name; atomically if possible."""

    def recover(self, staging: str, name: str) -> None:
        """Restore the table that an interrupted `publish` renamed, and drop the staging table."""
        self.drop(staging)

    def undo(self, name: str) -> None:
        """Drop a table that `publish` has published."""
        self.drop(name)

    @abstractmethod
    def drop(self, name: str) -> None:
        """Drop a table if it exists."""
