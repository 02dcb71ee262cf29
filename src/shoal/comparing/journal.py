"""Journals: what a long run has finished, a line each, so that the same run goes on where it was stopped.

The first line says which run it is, by a fingerprint under a random salt: whoever holds the journal can
recognize the same request on the same table, and reads nothing of the table from it.
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
from shoal.outputs import cannot, check_place

_FORMAT = 1


class Journal:
    """Entries that an earlier run has left, and a place for further ones."""

    def __init__(self, path: Path | None, file: BinaryIO | None, entries: list[dict[str, Any]]) -> None:
        """Take a file that is open for appending, or none to keep nothing."""
        self.entries = entries
        self._path = path
        self._file = file

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append one entry; it is in the file when this returns."""
        if self._file and self._path:
            line = _line(entry)
            try:
                while line:  # unbuffered, so that no part of a line waits for the next
                    line = line[self._file.write(line) :]
            except OSError as error:
                raise cannot(self._path, error) from None


@contextmanager
def open_journal(path: Path | None, fingerprint: Callable[[str], str]) -> Iterator[Journal]:
    """Open the journal of a run, begun anew or gone on with; `fingerprint` tells the run under a salt."""
    if path is None:
        yield Journal(None, None, [])
        return
    check_place(path)
    try:
        kept = path.read_bytes() if path.exists() else b""
        whole = kept[: kept.rfind(b"\n") + 1]  # a torn last line is dropped
        entries = _entries(path, whole, fingerprint) if kept else []
        file = open(path, "ab", buffering=0, opener=_for_its_owner)  # noqa: SIM115 - closed below
    except OSError as error:
        raise cannot(path, error) from None
    with file:
        opened = Journal(path, file, entries)
        if kept:
            os.truncate(path, len(whole))
        else:
            salt = secrets.token_hex(32)
            opened.add({"journal": _FORMAT, "salt": salt, "fingerprint": fingerprint(salt)})
        yield opened


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _entries(path: Path, text: bytes, fingerprint: Callable[[str], str]) -> list[dict[str, Any]]:
    """Read what an earlier run has left, refusing what is not the journal of the same run."""
    try:
        header, *entries = [json.loads(line) for line in text.splitlines()]
        if header["journal"] != _FORMAT or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError
        same = secrets.compare_digest(fingerprint(header["salt"]), header["fingerprint"])
    except (ValueError, KeyError, TypeError):
        message = f"{str(path)!r} is no journal of shoal, or is damaged. Remove it or name another file."
        raise OutputError(message) from None
    if not same:
        message = (
            f"{str(path)!r} is the journal of another run: the table, the policy, the seconds or the version "
            "of shoal is not the same. Remove it to begin anew, or name another output."
        )
        raise OutputError(message)
    return entries
