"""Project files: a ZIP file with project.json and, on request, the table.

An archive may come from an untrusted source. No entry is extracted to the path that it names. Only two known
entries are read. A limit applies while reading, because the sizes that the archive declares may be false.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path

from shoal.web.errors import Refused, TooLarge
from shoal.web.workspace.files import Upload
from shoal.web.workspace.project_file import MAX_BYTES, SavedProject, read_project
from shoal.web.workspace.projects import table_ending

ENDING = ".shoal"
_PROJECT, _TABLE = "project.json", "table"
_PIECE_BYTES = 1 << 20
_MAX_ENTRIES = 2
_NOT_AN_ARCHIVE = "This is not a project file of the studio, or it is damaged."
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


def write_archive(path: Path, project: SavedProject, table: Path | None) -> None:
    """Write a project, with its table if one is given."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_PROJECT, project.to_json())
        if table is not None:
            with (
                open(table, "rb") as source,
                archive.open(f"{_TABLE}{table_ending(table.name)}", "w", force_zip64=True) as entry,
            ):
                shutil.copyfileobj(source, entry, _PIECE_BYTES)


def read_archive(path: Path) -> SavedProject:
    """Read the project of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_entries(archive)
            with archive.open(_PROJECT) as entry:
                content = entry.read(MAX_BYTES + 1)
    except _DAMAGED:
        raise Refused(_NOT_AN_ARCHIVE, "file") from None
    if len(content) > MAX_BYTES:
        raise TooLarge(f"The project is larger than {MAX_BYTES:,} bytes, which is the limit.", "file")
    return read_project(content)


def table_name(path: Path) -> str | None:
    """Return the name of the table in an archive, if there is one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return next((name for name in archive.namelist() if name != _PROJECT), None)
    except _DAMAGED:
        raise Refused(_NOT_AN_ARCHIVE, "file") from None


def extract_table(path: Path, upload: Upload) -> None:
    """Write the table of an archive to an upload. The upload enforces the size limit."""
    name = table_name(path)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name or "") as entry:
            while piece := entry.read(_PIECE_BYTES):
                upload.write(piece)
    except TooLarge:
        raise
    except (KeyError, *_DAMAGED):
        raise Refused(_NOT_AN_ARCHIVE, "file") from None


def _check_entries(archive: zipfile.ZipFile) -> None:
    """Reject an archive that has entries other than a project and a table."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    tables = [name for name in names if name != _PROJECT]
    are_tables = all(name == f"{_TABLE}{table_ending(name)}" for name in tables)
    are_readable = all(entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries)
    if len(entries) > _MAX_ENTRIES or names.count(_PROJECT) != 1 or not are_tables or not are_readable:
        raise ValueError(_NOT_AN_ARCHIVE)
    if any(entry.flag_bits & 1 for entry in entries):  # encrypted
        raise ValueError(_NOT_AN_ARCHIVE)
