"""Files from which a table is opened: uploads, tables below the given folder, and sheets of workbooks."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.engines.file_checks import check_content, check_size
from shoal.engines.frames import WorkbookSheet, checked, list_sheets, read_sheet
from shoal.engines.names import check_readable
from shoal.web.errors import Refused, TooLarge, no_workspace
from shoal.workflow.inspect import table_endings

UPLOAD_ENDINGS = table_endings()
FOLDER_ENDINGS = tuple(ending for ending in UPLOAD_ENDINGS if ending != ".txt")
_PROGRAMS = {".xlsx": "Excel", ".sav": "SPSS", ".sas7bdat": "SAS", ".dta": "Stata"}
_MAX_FILES = 1_000  # maximum number of files that are listed
_WORKBOOK = ".xlsx"


class Upload:
    """A context manager that receives a file in chunks. After an error, it removes the file."""

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self.path = path
        self.name = name
        self.limit = limit
        self.size = 0

    def __enter__(self) -> Upload:
        try:
            self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except FileNotFoundError:  # the workspace has been deleted
            raise no_workspace() from None
        return self

    def write(self, piece: bytes) -> None:
        """Write a chunk. Raise TooLarge if the file exceeds the limit."""
        self.size += len(piece)
        if self.size > self.limit:
            raise TooLarge(f"The file is larger than {self.limit:,} bytes, which is the limit.", "file")
        self._file.write(piece)

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is not None:
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class FileAnswer:
    """A table below the given folder."""

    name: str  # path relative to the folder, with slashes
    size: int


class DataFolder:
    """The folder of the option `--folder`, which contains tables to open."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path).resolve()
        if self.path is not None and not self.path.is_dir():
            raise Refused(f"The folder {str(path)!r} does not exist. Create it, or name another.", "folder")

    def tables(self) -> list[FileAnswer]:
        """List the tables, without hidden files, symbolic links and folders of recipes and audits."""
        if self.path is None:
            return []
        tables = []
        for parent, folders, files in os.walk(self.path, followlinks=False):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and not _private(name))
            for name in sorted(files):
                path = Path(parent) / name
                if name.lower().endswith(FOLDER_ENDINGS) and name[0] != "." and not path.is_symlink():
                    with suppress(OSError):  # the file may have been removed in the meantime
                        relative = path.relative_to(self.path).as_posix()
                        tables.append(FileAnswer(name=relative, size=path.stat().st_size))
                if len(tables) == _MAX_FILES:
                    return tables
        return tables

    def resolve(self, name: str) -> Path:
        """Return the path of a table. Reject a path outside the folder, even if it exists."""
        if self.path is None:
            raise Refused(
                "No folder was given to choose from. Start shoal studio with --folder, or upload a file.",
                "name",
            )
        message = "Name a table below the given folder, without '..' and without links that lead out."
        parts = Path(name).parts if "\0" not in name else ("..",)
        if not parts or ".." in parts or Path(name).is_absolute() or "\\" in name or len(name) > 1000:
            raise Refused(message, "name")
        try:
            path = (self.path / name).resolve()
            inside = path.is_relative_to(self.path) and path.is_file()
        except (OSError, RuntimeError, ValueError):
            inside = False
        if not inside:
            raise Refused(message, "name")
        if not path.name.lower().endswith(FOLDER_ENDINGS):
            raise Refused(f"A table is a file that ends in {', '.join(FOLDER_ENDINGS)}.", "name")
        return path


def _private(folder: str) -> bool:
    """Return whether a folder holds recipes and audits of releases."""
    return folder.endswith(".private")


def file_types() -> str:
    """List the types of files that can be read here."""
    programs = [_PROGRAMS[ending] for ending in UPLOAD_ENDINGS if ending in _PROGRAMS]
    names = ["CSV", "TSV", "text", "Parquet", "Arrow", *programs]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def format_bytes(size: int) -> str:
    """Format a number of bytes in the largest unit that divides it.

    >>> format_bytes(1 << 30), format_bytes(1 << 20), format_bytes(1000)
    ('1 GiB', '1 MiB', '1,000 bytes')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def is_workbook(path: Path) -> bool:
    """Return whether a file's name is that of a workbook."""
    return path.name.lower().endswith(_WORKBOOK)


def sheets_of(path: Path) -> list[WorkbookSheet]:
    """Return the non-empty sheets of a workbook. A workbook above the size limits is refused."""
    _check_workbook(path)
    return list_sheets(path)


def needs_choice(sheets: list[WorkbookSheet]) -> bool:
    """Return whether to ask for the sheet: there are several, or rows above the column names."""
    return len(sheets) > 1 or any(sheet.header_row > 1 for sheet in sheets)


def extract_sheet(path: Path, sheet: WorkbookSheet, folder: Path) -> Path:
    """Write a sheet as a table into the private folder of a workspace, and return its path."""
    _check_workbook(path)
    if not 1 <= sheet.header_row <= 10_000:
        raise Refused("The row of the column names is a number from 1 to 10,000.", "header_row")
    table = checked(read_sheet(path, sheet))
    from pyarrow.feather import write_feather

    target = folder / f"upload-{secrets.token_hex(6)}.arrow"
    target.touch(mode=0o600, exist_ok=False)
    try:
        write_feather(table, str(target))
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target


def _check_workbook(path: Path) -> None:
    check_readable(path)
    check_content(path, _WORKBOOK)
    check_size(path, _WORKBOOK)
