"""A text that is not UTF-8, for a database to read as if it were: decoded on the way, nothing is stored."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from pathlib import Path
from typing import Any
from uuid import uuid4

from fsspec import AbstractFileSystem

from shoal.core.encodings import codec, decoded, opened


class DecodedText(AbstractFileSystem):
    """A file system of one file, which holds in UTF-8 what a file holds in another encoding."""

    cachable = False  # by fsspec, which would keep it for good

    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__()
        self.path, self.encoding = path, encoding
        self.protocol = f"shoal-{uuid4().hex}"
        self._read = (self._stamp(), Parts(path, encoding))

    @property
    def address(self) -> str:
        """The name under which a database finds the file."""
        return f"{self.protocol}://table.csv"

    @property
    def parts(self) -> Parts:
        """Where the parts of the file begin, as it is now."""
        if self._read[0] != (now := self._stamp()):
            self._read = (now, Parts(self.path, self.encoding))
        return self._read[1]

    def _stamp(self) -> tuple[int, int]:
        stat = os.stat(self.path)
        return stat.st_size, stat.st_mtime_ns

    def glob(self, path: str, **options: Any) -> list[str]:
        """Find the one file."""
        return [path]

    def size(self, path: str) -> int:
        """Count the bytes of UTF-8."""
        return self.parts.size

    def open(self, path: str, mode: str = "rb", **options: Any) -> DecodedFile:
        """Open the file to be read."""
        return DecodedFile(self.path, self.encoding, self.parts)


class Parts:
    """Where the parts of a text begin, in the file and in UTF-8."""

    def __init__(self, path: Path, encoding: str) -> None:
        self.places: list[int] = []
        self.starts: list[int] = []
        self.size = 0  # of all, in UTF-8
        for place, text in decoded(path, encoding):
            self.places.append(place)
            self.starts.append(self.size)
            self.size += len(text.encode())


class DecodedFile(io.RawIOBase):
    """A text in UTF-8, read from any place."""

    def __init__(self, path: Path, encoding: str, parts: Parts) -> None:
        self._file = opened(path)
        self._encoding, self._parts, self._at = encoding, parts, 0
        self._held, self._text = -1, b""  # the part read last

    def seekable(self) -> bool:
        """Tell that any place can be sought."""
        return True

    def tell(self) -> int:
        """Return the place that is read next."""
        return self._at

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = place + (0, self._at, self._parts.size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or what is left."""
        end = self._parts.size if size < 0 else min(self._at + size, self._parts.size)
        found = []
        while self._at < end:
            number = bisect_right(self._parts.starts, self._at) - 1
            begun = self._at - self._parts.starts[number]
            found.append(self._part(number)[begun : begun + end - self._at])
            if not found[-1]:
                message = "The file became shorter while it was read."
                raise OSError(message)
            self._at += len(found[-1])
        return b"".join(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _part(self, number: int) -> bytes:
        if number != self._held:
            first, *after = self._parts.places[number : number + 2]
            self._file.seek(first)
            raw = self._file.read(after[0] - first if after else -1)
            self._held, self._text = number, raw.decode(codec(self._encoding)).encode()
        return self._text
