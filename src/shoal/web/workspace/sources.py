"""Sources: tables in databases, read from a file at start, with their users and the place for releases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.engines.names import quoted
from shoal.errors import UsageError
from shoal.files.yaml import LoadError, load_yaml
from shoal.web.errors import NotReady, Refused
from shoal.web.server.users import read_private
from shoal.workflow.session import RemoteTable

_CONTENT = "It gives each source a name, an `address` and a `table`."
_NO_SOURCE = "There is no such source, or you may not use it. The first page lists those that you may use."
_TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_Text = Annotated[str, Field(min_length=1, max_length=4_000)]


class _Entry(BaseModel):
    """A source in the file."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    address: _Text
    table: _Text
    users: list[_Text] | None = None  # None: all users
    releases: _Text | None = None  # the schema in which new tables of releases may be created


@dataclass(frozen=True)
class SourceAnswer:
    """A table in a database that the user may open."""

    name: str
    releases: bool  # whether a release can be written to the database


@dataclass(frozen=True)
class Sources:
    """The sources by name. Only this class knows their addresses, which are never shown."""

    entries: Mapping[str, _Entry] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: str | Path | None) -> Sources:
        """Read the file of sources. It contains passwords, so only its owner may have access."""
        if path is None:
            return cls()
        text = read_private(Path(path), "file of sources", _CONTENT)
        try:
            loaded = load_yaml(text)
        except LoadError as error:
            raise UsageError(f"The file of sources {str(path)!r} is {error}.") from None
        if not isinstance(loaded, dict) or not loaded:
            raise UsageError(f"{str(path)!r} has no source. {_CONTENT}")
        return cls({str(name)[:200]: _entry(str(name)[:200], entry) for name, entry in loaded.items()})

    def of(self, user: str) -> list[SourceAnswer]:
        """List the sources that a user may open."""
        return [
            SourceAnswer(name, bool(entry.releases))
            for name, entry in self.entries.items()
            if entry.users is None or user in entry.users
        ]

    def resolve(self, name: str, user: str, folder: Path) -> RemoteTable:
        """Return a table. The error for a forbidden table is the same as for one that does not exist."""
        entry = self.entries.get(name)
        if entry is None or name not in {source.name for source in self.of(user)}:
            raise Refused(_NO_SOURCE, "name")
        return _remote(name, entry, folder)


def release_table(table: RemoteTable | None, name: str) -> str:
    """Return the full name of a new table for a release, in the schema that the file of sources names."""
    if table is None or table.releases is None or not table.in_postgres:
        raise NotReady("Releases of this table are files: no schema of a database is given for them.", "form")
    if not _TABLE_NAME.fullmatch(name):
        raise Refused(
            "A table's name has at most 63 lower-case letters, digits and _, and begins with a letter.",
            "table",
        )
    return quoted((table.releases, name), '"')


def _remote(name: str, entry: _Entry, folder: Path) -> RemoteTable:
    return RemoteTable(name, entry.table, entry.address, entry.releases, folder)


def _entry(name: str, entry: object) -> _Entry:
    try:
        return _Entry.model_validate(entry)
    except ValidationError as error:
        part = ".".join(str(part) for part in error.errors()[0]["loc"][:1]) or "entry"
        raise UsageError(
            f"The source {name!r}: its {part} is not valid. Give an `address` and a `table`, and if needed a "
            "list of `users`, and the schema of `releases`."
        ) from None
