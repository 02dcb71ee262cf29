"""Journals: the finished entries of a long run, one per line, so that a stopped run can continue.

The first line identifies the run by a fingerprint with a random salt. A reader of the journal can recognize
the same request on the same table, but cannot read the table from the fingerprint.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from shoal.errors import OutputError
from shoal.files.outputs import cannot_write, check_place
from shoal.files.yaml import load_json

_FORMAT = 1


class Journal:
    """The entries of an earlier run, and a file for further entries."""

    def __init__(self, path: Path | None, file: BinaryIO | None, entries: list[dict[str, Any]]) -> None:
        self.entries = entries
        self._path = path
        self._file = file

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append an entry, and return after it is written to the file."""
        if self._file and self._path:
            line = _line(entry)
            try:
                while line:  # the file is unbuffered, so a write may be partial
                    line = line[self._file.write(line) :]
            except OSError as error:
                raise cannot_write(self._path, error) from None


@contextmanager
def open_journal(path: Path | None, fingerprint: Callable[[str], str]) -> Iterator[Journal]:
    """Open a new journal, or continue one. `fingerprint` returns the fingerprint of the run for a salt."""
    if path is None:
        yield Journal(None, None, [])
        return
    check_place(path)
    try:
        content = path.read_bytes() if path.exists() else b""
        complete_lines = content[: content.rfind(b"\n") + 1]  # without an incomplete last line
        entries = _entries(path, complete_lines, fingerprint) if content else []
        file = open(path, "ab", buffering=0, opener=_for_its_owner)  # noqa: SIM115 - closed below
    except OSError as error:
        raise cannot_write(path, error) from None
    with file:
        journal = Journal(path, file, entries)
        if content:
            os.truncate(path, len(complete_lines))
        else:
            salt = secrets.token_hex(32)
            journal.add({"journal": _FORMAT, "salt": salt, "fingerprint": fingerprint(salt)})
        yield journal


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _entries(path: Path, text: bytes, fingerprint: Callable[[str], str]) -> list[dict[str, Any]]:
    """Read the entries of an earlier run; raise if the journal is that of another run."""
    try:
        header, *entries = [load_json(line) for line in text.splitlines()]
        if header["journal"] != _FORMAT or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError
        same = secrets.compare_digest(fingerprint(header["salt"]), header["fingerprint"])
    except (ValueError, KeyError, TypeError):
        raise OutputError(
            f"{str(path)!r} is not a journal of shoal, or is damaged. Remove it or name another file."
        ) from None
    if not same:
        raise OutputError(
            f"{str(path)!r} is the journal of another run: the table, the policy, the seconds or the version "
            "of shoal is not the same. Remove it to start again, or name another output."
        )
    return entries
