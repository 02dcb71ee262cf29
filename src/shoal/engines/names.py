"""Names of tables as users write them: paths of files, and names of database tables with dots."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from shoal.errors import DataError, UsageError
from shoal.files.outputs import check_path
from shoal.wording import quote as quoted_path

TABLE_FILES = (
    ".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".gz", ".xlsx", ".xls", ".sav", ".dta",
    ".sas7bdat",
)  # fmt: skip
# `Path` has merged two slashes into one. A single letter before a colon is a Windows drive.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.:-]+:/|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


def parts_of(name: str, quote: str, most: int) -> tuple[str, ...]:
    """Split the name of a table into its parts; the last part is the table itself.

    >>> parts_of('people', '"', 2), parts_of('clinic."odd.name"', '"', 2), parts_of('`a``b`', '`', 3)
    (('people',), ('clinic', 'odd.name'), ('a`b',))
    """
    refuse_address(name)
    part = re.compile(rf"{quote}((?:[^{quote}]|{quote}{quote})+){quote}|([^{quote}.]+)")
    parts, position = [], 0
    while match := part.match(name, position):
        parts.append(match[1].replace(quote * 2, quote) if match[1] else match[2])
        position = match.end() + 1
        if name[match.end() : position] != ".":
            break
    if position <= len(name) or not 1 <= len(parts) <= most:
        raise UsageError(
            f"Expected the name of a table, as people, clinic.people or clinic.{quote}Odd name{quote}; "
            f"got {name!r}."
        )
    return tuple(parts)


def quoted(parts: tuple[str, ...], quote: str) -> str:
    """Return a name with each part quoted.

    >>> quoted(('clinic', 'a"b'), '"')
    '"clinic"."a""b"'
    """
    return ".".join(f"{quote}{part.replace(quote, quote * 2)}{quote}" for part in parts)


def refuse_file(name: str, engine: str) -> None:
    """Refuse the name of a file if a table is expected or the engine does not read such files.

    >>> refuse_file("out.csv", "postgres")
    Traceback (most recent call last):
    shoal.errors.UsageError: Engine 'postgres' has no such files: 'out.csv'. Name a table, as clinic.people.
    """
    if name.lower().endswith(TABLE_FILES):
        files = "" if engine == "postgres" else " or a .parquet, .csv or .tsv"
        raise UsageError(
            f"Engine {engine!r} has no such files: {name!r}. Name a table, as clinic.people{files}."
        )


def refuse_address(name: str) -> None:
    """Refuse the address of a server without showing it, because it may contain a password.

    >>> refuse_address("postgresql:/me:secret@host/db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: Give the name of a table or a path, not an address; ...
    """
    if _ADDRESS.match(name):
        raise UsageError(
            "Give the name of a table or a path, not an address; set the server and its credentials in the "
            "environment."
        )


def ending_of(path: Path, known: Sequence[str], read_only: Collection[str] = ()) -> str:
    """Return the extension that determines a file's format; `read_only` formats cannot be written."""
    refuse_address(str(path))
    for ending in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return ending
    problem = f"Unknown format of {quoted_path(path.name)}"
    if path.name.lower().endswith(tuple(read_only)):
        problem = f"Cannot write {quoted_path(path.name)}: {path.suffix.lower()} files can only be read"
    message = f"{problem}. Use one of {', '.join(known)}."
    if not read_only and path.is_file():
        message += " If it is a text of rows, let its name end in .csv."
    if path.is_dir():
        message = f"{quoted_path(path)} is a folder. Name a file that ends in one of {', '.join(known)}."
    raise DataError(message)


def check_readable(path: Path) -> None:
    """Raise DataError if there is no file to read."""
    check_path(path)
    try:
        exists = path.exists()
    except OSError as error:
        raise DataError(f"Cannot read {quoted_path(path)}: {error.strerror}.") from None
    if not exists:
        raise DataError(f"No such file: {quoted_path(path)}. Look at its name and at the folder.")
    if not path.is_file():
        raise DataError(f"{quoted_path(path)} is not a file. Name one.")
    if path.stat().st_size == 0:
        raise DataError(f"{quoted_path(path)} is empty. Give a table with a line of column names.")
