"""How the letters of a text file are written, where that is not UTF-8.

A file is taken to be UTF-8 until whoever reads it stumbles; only then is it looked at here. Excel writes
Windows-1252 in much of Europe, and UTF-16 as "Unicode text".
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from shoal.errors import DataError

UTF_8 = "utf-8-sig"
TO_UTF_8 = (
    "Save it as CSV UTF-8, or convert it, with its own encoding in place of cp1252: python -c "
    "\"open('NEW', 'w', encoding='utf-8', newline='')"
    ".write(open('OLD', encoding='cp1252', newline='').read())\""
)
# In place of an encoding's name, how to say it.
SPOKEN = {UTF_8: "UTF-8", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
# How a text may begin that says so itself.
MARKS = {UTF_8: codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}

_PART = 1 << 20  # bytes taken at once
_SEVERAL = re.compile(
    rb"[\xc2-\xf4](?:(?<=[\xc2-\xdf])[\x80-\xbf]|(?<=[\xe0-\xef])[\x80-\xbf]{2}|(?<=[\xf0-\xf4])[\x80-\xbf]{3})"
)  # a letter of UTF-8 that takes several bytes; one class of first bytes for all is what makes it fast
_NO_LETTER = re.compile(rb"[\x00\x81\x8d\x8f\x90\x9d]")  # nothing in Windows-1252


def read_as(encoding: str) -> str:
    """Say how a file was read; the file's name goes before."""
    return f"is not UTF-8; it was read as {SPOKEN[encoding]}. If letters look wrong, save it as CSV UTF-8."


def opened(path: Path, encoding: str | None = None) -> IO[Any]:
    """Open a file for its letters in an encoding, else for its bytes; a compressed one as it was before."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    text = {"mode": "rt", "encoding": encoding, "newline": ""} if encoding else {"mode": "rb"}
    file: IO[Any] = opener(path, **text)
    if encoding in MARKS and encoding != UTF_8:
        file.read(1)  # the mark; that of UTF-8 is left out by itself
    return file


def begins_as(path: Path, encoding: str) -> bool:
    """Tell whether a file begins with the mark of an encoding."""
    with opened(path) as file:
        return bool(file.read(len(MARKS[encoding])) == MARKS[encoding])


def read_text(path: Path) -> tuple[str, str]:
    """Read a file as a whole, and tell how it is written."""
    try:
        with opened(path, UTF_8) as file:
            return file.read(), UTF_8
    except UnicodeDecodeError:
        encoding = other_encoding(path) or UTF_8
    return "".join(text for _, text in decoded(path, encoding)), encoding


def other_encoding(path: Path) -> str | None:
    """Tell how a file is written that is not UTF-8; refuse one of which that cannot be told.

    Windows-1252 gives nearly every byte a letter, so only a file without any letter of UTF-8 is taken for it.
    """
    for encoding in ("utf-16-le", "utf-16-be"):
        if begins_as(path, encoding):
            for _ in decoded(path, encoding):
                pass  # a broken letter is refused
            return encoding
    wrong = mixed = strange = 0  # the first line of each kind
    line = 1
    with opened(path) as file:
        while part := _whole_letters(file):
            strange = strange or _line_of(_NO_LETTER.search(part), part, line)
            if not part.isascii():
                mixed = mixed or _line_of(_SEVERAL.search(part), part, line)
                wrong = wrong or _not_utf_8(part, line)
            line += part.count(b"\n")
    if not wrong:
        return None
    if mixed:
        why = f"has letters in UTF-8 (line {mixed}) and others that are not (line {wrong})"
    elif strange:
        why = f"is neither UTF-8 nor Windows-1252 (line {strange})"
    else:
        return "cp1252"
    message = f"{str(path)!r} {why}. {TO_UTF_8}"
    raise DataError(message)


def _whole_letters(file: IO[bytes]) -> bytes:
    """Read a part that ends in an ASCII sign, so that no letter of several bytes is cut."""
    part = bytearray(file.read(_PART))
    while part and part[-1] > 127 and (more := file.read(1)):
        part += more
    return bytes(part)


def _line_of(found: re.Match[bytes] | None, part: bytes, line: int) -> int:
    return line + part.count(b"\n", 0, found.start()) if found else 0


def _not_utf_8(part: bytes, line: int) -> int:
    try:
        part.decode("utf-8")
    except UnicodeDecodeError as error:
        return line + part.count(b"\n", 0, error.start)
    return 0


def decoded(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield what follows the mark in parts, each with the place of its first byte; refuse a broken letter."""
    decoder = codecs.getincrementaldecoder(codec(encoding))()
    line = 1
    with opened(path) as file:
        begun = place = len(file.read(len(MARKS.get(encoding, b""))))
        while part := file.read(_PART):
            place += len(part)
            yield begun, (text := _decoded(decoder, part, path, encoding, line))
            line += text.count("\n")
            begun = place - len(decoder.getstate()[0])
        _decoded(decoder, b"", path, encoding, line)


def codec(encoding: str) -> str:
    """Return what decodes a part that may lie anywhere in a file."""
    return encoding.removesuffix("-sig")


def _decoded(decoder: codecs.IncrementalDecoder, part: bytes, path: Path, encoding: str, line: int) -> str:
    try:
        return decoder.decode(part, final=not part)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].decode(codec(encoding), "ignore").count("\n")
        told = f"{str(path)!r} begins as {SPOKEN[encoding]}, and line {line} holds what is no letter there"
        message = f"{told}. It is damaged or cut short: export it again, as CSV UTF-8."
        raise DataError(message) from None
