"""Text that is not UTF-8, decoded while the database reads it."""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import Any
from uuid import uuid4

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile

from shoal.files.text import codec, decode_file, open_file


class DecodedText(AbstractFileSystem):
    """A file system with one file: the content of a text file in another encoding, as UTF-8."""

    cachable = False  # fsspec would keep the instance forever

    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__()
        self.path, self.encoding = path, encoding
        self.protocol = f"shoal-{uuid4().hex}"
        self._read = (self._stamp(), TextParts(path, encoding))

    @property
    def address(self) -> str:
        """The address under which a database opens the file."""
        return f"{self.protocol}://table.csv"

    @property
    def parts(self) -> TextParts:
        """The offsets of the parts of the file, in its current state."""
        if self._read[0] != (now := self._stamp()):
            self._read = (now, TextParts(self.path, self.encoding))
        return self._read[1]

    def _stamp(self) -> tuple[int, int]:
        stat = os.stat(self.path)
        return stat.st_size, stat.st_mtime_ns

    def glob(self, path: str, **options: Any) -> list[str]:
        return [path]

    def size(self, path: str) -> int:
        return self.parts.size

    def open(self, path: str, mode: str = "rb", **options: Any) -> DecodedFile:
        return DecodedFile(self, path)


class TextParts:
    """The offsets at which the parts of a text begin, in the file and in UTF-8."""

    def __init__(self, path: Path, encoding: str) -> None:
        self.offsets: list[int] = []
        self.starts: list[int] = []
        self.size = 0  # of all parts, in UTF-8
        for offset, text in decode_file(path, encoding):
            self.offsets.append(offset)
            self.starts.append(self.size)
            self.size += len(text.encode())


class DecodedFile(AbstractBufferedFile):
    """A text in UTF-8 with random access."""

    def __init__(self, files: DecodedText, path: str) -> None:
        self._parts, self._encoding = files.parts, files.encoding
        self._file = open_file(files.path)
        self._current, self._text = -1, b""  # the part that was read last
        super().__init__(files, path, cache_type="none", size=self._parts.size)

    def _fetch_range(self, start: int, end: int) -> bytes:
        chunks = []
        end = min(end, self._parts.size)
        while start < end:
            number = bisect_right(self._parts.starts, start) - 1
            begun = start - self._parts.starts[number]
            chunks.append(self._part(number)[begun : begun + end - start])
            if not chunks[-1]:
                raise OSError("The file became shorter while it was read.")
            start += len(chunks[-1])
        return b"".join(chunks)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _part(self, number: int) -> bytes:
        if number != self._current:
            first, *after = self._parts.offsets[number : number + 2]
            self._file.seek(first)
            raw = self._file.read(after[0] - first if after else -1)
            self._current, self._text = number, raw.decode(codec(self._encoding)).encode()
        return self._text
