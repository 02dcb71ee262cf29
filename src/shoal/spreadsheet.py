"""Text tables made safe for spreadsheets, which run what begins like a formula."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

from shoal.core.contracts import Target
from shoal.errors import OutputError, PolicyError, UsageError
from shoal.policy import Policy

SAFE = "Cells that begin with =, +, -, @, a tab or a carriage return have an apostrophe before them."
_BEGINS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula
_ENDINGS = (".csv", ".tsv")
_OPTION = "spreadsheet_safe (--spreadsheet-safe)"


def is_text_table(path: Path) -> bool:
    """Tell whether a file can be made safe for a spreadsheet."""
    return path.suffix in _ENDINGS


def safe_cell(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would run.

    >>> safe_cell("=1+1"), safe_cell("20-29"), safe_cell("-5")
    ("'=1+1", '20-29', "'-5")
    """
    return f"'{cell}" if cell.startswith(_BEGINS) else cell


def plain_cell(cell: str) -> str:
    """Take the apostrophe away that keeps a spreadsheet from running a cell.

    >>> plain_cell("'-5"), plain_cell("'tis")
    ('-5', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_BEGINS) else cell


def safe_lines(path: Path) -> Iterator[str]:
    """Read a text table with every cell made safe, header too; a negative number becomes text as well."""
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with open(path, encoding="utf-8", newline="") as file:
        writer = csv.writer(_Line(), delimiter=delimiter)  # which quotes what is in its own line ends, CR LF
        for row in csv.reader(file, delimiter=delimiter):
            yield writer.writerow(map(safe_cell, row)).removesuffix("\r\n") + "\n"


class _Line:
    """Gives a line back to whoever writes it."""

    def write(self, line: str) -> str:
        """Return what is written."""
        return line


def make_safe(path: Path) -> None:
    """Write a text table anew with every cell made safe."""
    made = path.with_name(f"{path.name}.safe")
    try:
        with open(made, "w", encoding="utf-8", newline="") as file:
            file.writelines(safe_lines(path))
    except csv.Error:
        message = f"A cell is too long to be made safe for a spreadsheet. Leave out {_OPTION}."
        raise OutputError(message) from None
    shutil.copymode(path, made)
    made.replace(path)


def check_safe(policy: Policy, target: Target | None) -> None:
    """Refuse what cannot be made safe: any output but a text file, and names that would change."""
    if target is None or target.kind != "file" or target.ending not in _ENDINGS:
        what = "this is a table in memory" if target is None else f"{target.name!r} is a {target.kind}"
        what += f" of another format, {target.ending}" if target and target.kind == "file" else ""
        message = (
            f"Only a {' or '.join(_ENDINGS)} file is made safe for spreadsheets; {what}. "
            f"Name such an output, or leave out {_OPTION}."
        )
        raise UsageError(message)
    strange = [name for name in policy.columns if safe_cell(name) != name]
    if strange:
        message = (
            f"A spreadsheet would run the name of a column: {', '.join(map(repr, strange))}. Rename it, in "
            f"the table and in the policy, or leave out {_OPTION}."
        )
        raise PolicyError(message)
