"""Where a release goes, and what an engine can do that releases to tables of a database."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shoal.core.contracts import Engine
from shoal.core.delimiters import delimiter_of


@dataclass(frozen=True)
class Target:
    """Where a release goes: a file, a folder of files, or a table of a database."""

    name: str
    kind: Literal["file", "folder", "table"]
    ending: str = ""  # of a file or a folder
    delimiter: str | None = None  # of a text file, where it is not the one that its ending stands for

    @property
    def separator(self) -> str:
        """The delimiter of a text file."""
        return self.delimiter or delimiter_of(self.ending)

    @property
    def path(self) -> Path:
        """The file or folder; of a table, what the files that go with it are named after."""
        if self.kind != "table":
            return Path(self.name)
        plain = re.sub(r'"(\w+)"|`(\w+)`', r"\1\2", self.name)
        # No two names may become one: what is not a letter, a digit or one of these is told by its number.
        return Path(re.sub(r"[^\w.-]", lambda found: f"%{ord(found[0]):x}%", plain))


class TableEngine(Engine):
    """An engine that releases to tables of a database."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Tell whether a table (or view) of this name exists."""

    @abstractmethod
    def mark(self, name: str, mark: str) -> None:
        """Write a mark on a table that this run made."""

    @abstractmethod
    def mark_of(self, name: str) -> str | None:
        """Return the mark of a table, if it has one."""

    @abstractmethod
    def beside(self, name: str, mark: str) -> str:
        """Return the name under which a table waits before it is put in place."""

    @abstractmethod
    def place(self, waiting: str, name: str, *, replace: bool) -> None:
        """Let a table that waits take a name, and the place of one that has it; at once if possible."""

    def settle(self, waiting: str, name: str) -> None:
        """Bring back the table that `place` moved aside, where none took its place, and remove what waits."""
        self.drop(waiting)

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table that may not exist."""
