"""Names of tables as users write them: files by their ending, others in parts with dots between."""

from __future__ import annotations

import re

from shoal.errors import UsageError

TABLE_FILES = (
    ".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".gz", ".xlsx", ".xls", ".sav", ".dta",
    ".sas7bdat",
)  # fmt: skip
# A path loses one of two slashes; one letter before a colon is a drive.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.:-]+:/|.*\bpassword\s*=", re.IGNORECASE | re.DOTALL)


def parts_of(name: str, quote: str, most: int) -> tuple[str, ...]:
    """Split the name of a table into its parts, the last of which is its own.

    >>> parts_of('people', '"', 2), parts_of('clinic."odd.name"', '"', 2), parts_of('`a``b`', '`', 3)
    (('people',), ('clinic', 'odd.name'), ('a`b',))
    """
    refuse_address(name)
    part = re.compile(rf"{quote}((?:[^{quote}]|{quote}{quote})+){quote}|([^{quote}.]+)")
    found, at = [], 0
    while match := part.match(name, at):
        found.append(match[1].replace(quote * 2, quote) if match[1] else match[2])
        at = match.end() + 1
        if name[match.end() : at] != ".":
            break
    if at <= len(name) or not 1 <= len(found) <= most:
        message = (
            f"Expected the name of a table, as people, clinic.people or clinic.{quote}Odd name{quote}; "
            f"got {name!r}."
        )
        raise UsageError(message)
    return tuple(found)


def quoted(parts: tuple[str, ...], quote: str) -> str:
    """Write a name with every part in quotes.

    >>> quoted(('clinic', 'a"b'), '"')
    '"clinic"."a""b"'
    """
    return ".".join(f"{quote}{part.replace(quote, quote * 2)}{quote}" for part in parts)


def refuse_file(name: str, engine: str) -> None:
    """Refuse the name of a file where a table is meant, or where the engine does not read such files.

    >>> refuse_file("out.csv", "postgres")
    Traceback (most recent call last):
    shoal.errors.UsageError: Engine 'postgres' has no such files: 'out.csv'. Name a table, as clinic.people.
    """
    if name.lower().endswith(TABLE_FILES):
        files = "" if engine == "postgres" else " or a .parquet, .csv or .tsv"
        message = f"Engine {engine!r} has no such files: {name!r}. Name a table, as clinic.people{files}."
        raise UsageError(message)


def refuse_address(name: str) -> None:
    """Refuse the address of a server without showing it: it may hold a password.

    >>> refuse_address("postgresql:/me:secret@host/db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: Give the name of a table or a path, not an address; ...
    """
    if _ADDRESS.match(name):
        message = (
            "Give the name of a table or a path, not an address; where a server is and who may enter, the "
            "environment says."
        )
        raise UsageError(message)
