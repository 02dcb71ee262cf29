"""Text files: their encoding, if it is not UTF-8, and the delimiter of their values.

A file is assumed to be UTF-8 until reading it fails; only then is its encoding determined. Excel writes
Windows-1252 in much of Europe, and UTF-16 as "Unicode text".
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from shoal.errors import DataError

UTF_8 = "utf-8-sig"
TO_UTF_8 = (
    "Save it as CSV UTF-8. Or convert it, with its encoding instead of cp1252: python -c "
    "\"open('NEW', 'w', encoding='utf-8', newline='')"
    ".write(open('OLD', encoding='cp1252', newline='').read())\""
)
# The names of encodings in messages.
ENCODING_NAMES = {UTF_8: "UTF-8", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
# The byte order marks with which a text may begin.
MARKS = {UTF_8: codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}

_CHUNK_BYTES = 1 << 20  # bytes read at once
_MULTI_BYTE = re.compile(
    rb"[\xc2-\xf4](?:(?<=[\xc2-\xdf])[\x80-\xbf]|(?<=[\xe0-\xef])[\x80-\xbf]{2}|(?<=[\xf0-\xf4])[\x80-\xbf]{3})"
)  # a multi-byte UTF-8 character; one set of all first bytes makes the search fast
_UNDEFINED = re.compile(rb"[\x00\x81\x8d\x8f\x90\x9d]")  # bytes without a character in Windows-1252


def encoding_note(encoding: str) -> str:
    """Return a note on how a file was read, to follow the file's name in a sentence."""
    read = f"is not UTF-8; it was read as {ENCODING_NAMES[encoding]}"
    return f"{read}. If letters look wrong, save it as CSV UTF-8."


def open_file(path: Path, encoding: str | None = None) -> IO[Any]:
    """Open as text in `encoding`, or as bytes; decompress .gz."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    text = {"mode": "rt", "encoding": encoding, "newline": ""} if encoding else {"mode": "rb"}
    file: IO[Any] = opener(path, **text)
    if encoding in MARKS and encoding != UTF_8:
        file.read(1)  # skip the byte order mark; for UTF-8, the codec skips it
    return file


def begins_as(path: Path, encoding: str) -> bool:
    """Return whether a file begins with the byte order mark of an encoding."""
    with open_file(path) as file:
        return bool(file.read(len(MARKS[encoding])) == MARKS[encoding])


def read_text(path: Path, name: str | None = None) -> tuple[str, str]:
    """Return the text of a file and its encoding; messages call the file by `name`, or by its path."""
    try:
        with open_file(path, UTF_8) as file:
            return file.read(), UTF_8
    except UnicodeDecodeError:
        encoding = other_encoding(path, name) or UTF_8
    return "".join(text for _, text in decode_file(path, encoding, name)), encoding


def other_encoding(path: Path, name: str | None = None) -> str | None:
    """Return the encoding of a file, or None if it is UTF-8; raise DataError if it is unknown.

    In Windows-1252, nearly every byte is a character, so damaged UTF-8 could be read as Windows-1252 without
    an error. Therefore a file that is not UTF-8 but has multi-byte UTF-8 characters is refused.
    """
    for encoding in ("utf-16-le", "utf-16-be"):
        if begins_as(path, encoding):
            for _ in decode_file(path, encoding, name):
                pass  # an invalid character raises an error
            return encoding
    invalid_line = multi_byte_line = unknown_line = 0  # the first line of each kind
    line = 1
    with open_file(path) as file:
        while part := _read_whole_characters(file):
            unknown_line = unknown_line or _line_of(_UNDEFINED.search(part), part, line)
            if not part.isascii():
                multi_byte_line = multi_byte_line or _line_of(_MULTI_BYTE.search(part), part, line)
                invalid_line = invalid_line or _not_utf_8(part, line)
            line += part.count(b"\n")
    if not invalid_line:
        return None
    if multi_byte_line:
        reason = (
            f"has characters in UTF-8 (line {multi_byte_line}) and others not in UTF-8 (line {invalid_line})"
        )
    elif unknown_line:
        reason = f"is neither UTF-8 nor Windows-1252 (line {unknown_line})"
    else:
        return "cp1252"
    raise DataError(f"{(name or str(path))!r} {reason}. {TO_UTF_8}")


def _read_whole_characters(file: IO[bytes]) -> bytes:
    """Read a chunk that does not end inside a multi-byte UTF-8 character."""
    part = file.read(_CHUNK_BYTES)
    for distance in range(1, min(4, len(part) + 1)):
        first = part[-distance]
        if first >= 0xC0:  # the first byte of a character determines its length
            size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return part + file.read(max(0, size - distance))
        if first < 0x80:
            break
    return part


def _line_of(match: re.Match[bytes] | None, part: bytes, line: int) -> int:
    return line + part.count(b"\n", 0, match.start()) if match else 0


def _not_utf_8(part: bytes, line: int) -> int:
    try:
        part.decode("utf-8")
    except UnicodeDecodeError as error:
        return line + part.count(b"\n", 0, error.start)
    return 0


def decode_file(path: Path, encoding: str, name: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the text in parts, without the byte order mark, each with the offset of its first byte."""
    decoder = codecs.getincrementaldecoder(codec(encoding))()
    line = 1
    with open_file(path) as file:
        start = position = len(file.read(len(MARKS.get(encoding, b""))))
        while part := file.read(_CHUNK_BYTES):
            position += len(part)
            yield start, (text := _decode(decoder, part, name or str(path), encoding, line))
            line += text.count("\n")
            start = position - len(decoder.getstate()[0])
        _decode(decoder, b"", name or str(path), encoding, line)


def codec(encoding: str) -> str:
    """Return the codec for a part from the middle of a file, where there is no byte order mark."""
    return encoding.removesuffix("-sig")


def _decode(decoder: codecs.IncrementalDecoder, part: bytes, name: str, encoding: str, line: int) -> str:
    try:
        return decoder.decode(part, final=not part)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].decode(codec(encoding), "ignore").count("\n")
        known = ENCODING_NAMES[encoding]
        problem = f"{name!r} begins as {known}, but line {line} has bytes that are invalid in {known}"
        raise DataError(f"{problem}. It is damaged or cut short: export it again, as CSV UTF-8.") from None


DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}


def delimiter_of(ending: str) -> str:
    r"""Return the delimiter of files with this ending.

    >>> delimiter_of(".csv.gz"), delimiter_of(".tsv")
    (',', '\t')
    """
    return "\t" if ending == ".tsv" else ","


def declared_delimiter(line: str) -> str | None:
    r"""Return the delimiter that a first line such as `sep=;` declares for Excel, or None.

    >>> declared_delimiter("sep=;\r\n"), declared_delimiter("separator;age")
    (';', None)
    """
    match = re.fullmatch(r"sep=([,;\t|])[\r\n]*", line, re.IGNORECASE)
    return match[1] if match else None


def must_quote(names: Sequence[str], delimiter: str) -> bool:
    """Return whether the names need quotes so that readers detect the delimiter from the header.

    Readers choose the character that occurs most often in the header outside quotes. They take a single
    unquoted name for a title if the values below it contain delimiters.

    >>> must_quote(["age", "sex"], ";"), must_quote(["age"], ","), must_quote(["a,b", "c"], ";")
    (False, True, True)
    """
    if len(names) == 1:
        return True
    unquoted = "".join(name for name in names if not set(name) & {delimiter, '"', "\r", "\n"})
    counts = {mark: unquoted.count(mark) for mark in DELIMITERS.values()} | {delimiter: len(names) - 1}
    return max(counts, key=counts.__getitem__) != delimiter
