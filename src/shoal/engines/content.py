"""What a file is by its first bytes, held against what the ending of its name says."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import DataError

# By how a file begins: what it is called, and the endings that go with it.
_BEGINNINGS = {
    b"PAR1": ("a Parquet file", (".parquet",)),
    b"ARROW1": ("an Arrow file", (".arrow", ".feather")),
    b"FEA1": ("a Feather file", (".feather", ".arrow")),
    b"\x1f\x8b": ("compressed with gzip", (".csv.gz",)),
    b"PK\x03\x04": ("an Excel or zip file", (".xlsx",)),
    b"\xd0\xcf\x11\xe0": ("an Excel file of before 2007", ()),
}
_TEXT = (".csv", ".tsv")


def check_content(path: Path, ending: str) -> None:
    """Refuse a file that is of another kind than its name says, and say which name would do."""
    with open(path, "rb") as file:
        first = file.read(8)
    is_text = first.isascii() and all(byte > 31 or byte in b"\t\r\n" for byte in first)
    for begins, (what, endings) in _BEGINNINGS.items():
        if first.startswith(begins) and ending not in endings and not is_text:
            do = f"Let its name end in {endings[0]}." if endings else "Save it as .xlsx or CSV UTF-8."
            message = f"{str(path)!r} is {what}, not {_named(ending)}. {do}"
            raise DataError(message)
    own = [begins for begins, (_, endings) in _BEGINNINGS.items() if ending in endings]
    if own and ending not in _TEXT and not first.startswith(tuple(own)):
        hint = " If it is text, let its name end in .csv." if b"\0" not in first else ""
        message = f"{str(path)!r} cannot be read as {ending}: it is not {_named(ending)}.{hint}"
        raise DataError(message)


def _named(ending: str) -> str:
    found = [what for what, endings in _BEGINNINGS.values() if ending == (endings or ("",))[0]]
    return found[0] if found else f"a {ending} file"
