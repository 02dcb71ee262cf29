"""Text tables for spreadsheets: cells that are no formulas, the delimiter and the mark that they expect."""

from __future__ import annotations

import codecs
import csv
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shoal.core.delimiters import DELIMITERS, delimiter_of, must_quote
from shoal.core.targets import Target
from shoal.errors import OutputError, PolicyError, UsageError
from shoal.policy import Policy

SAFE = "Cells that begin with =, +, -, @, a tab or a carriage return have an apostrophe before them."
# In every dialect that engines speak.
FORMULA = r"^[=@\t\r]|^[+-][0-9.,]*([^0-9.,eE%]|%.|[eE]([^0-9+-]|$|[+-]?[0-9]+[^0-9]|[+-][^0-9]))"
_LONGEST = 2**31 - 1  # characters of a cell
_BEGINS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula
_ENDINGS = (".csv", ".tsv")
_BOM = codecs.BOM_UTF8.decode()


@dataclass(frozen=True)
class Sheet:
    """How a release is written for a spreadsheet: with safe cells, another delimiter, a byte order mark."""

    safe: bool = False  # no cell begins like a formula
    delimiter: str | None = None  # by its name or as it is; that of the file's ending without it
    bom: bool = False  # the file tells that it is UTF-8

    @property
    def sign(self) -> str | None:
        """The delimiter itself."""
        if self.delimiter is None:
            return None
        sign = DELIMITERS.get(self.delimiter.lower(), self.delimiter.replace("\\t", "\t"))
        if sign not in DELIMITERS.values():
            message = (
                f"delimiter must be {', '.join(DELIMITERS)}, or the sign itself; got {self.delimiter!r}."
            )
            raise UsageError(message)
        return sign

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how the file is written, where it is not as others are."""
        told = [SAFE] if self.safe else []
        if self.sign:
            name = next(name for name, sign in DELIMITERS.items() if sign == self.sign)
            told.append(f"Values are parted by a {name}.")
        if self.bom:
            told.append("The file begins with a byte order mark, which tells Excel that it is UTF-8.")
        return tuple(told)

    def check(self, policy: Policy, target: Target | None) -> None:
        """Refuse what cannot be: any output but a text file, and names that would change."""
        given = {
            "spreadsheet_safe": self.safe,
            "delimiter=": self.sign is not None,
            "bom=True": self.bom,
        }
        if any(given.values()):
            _check_text(target, " and ".join(option for option, on in given.items() if on))
        if target and target.ending == ".tsv" and self.sign not in (None, "\t"):
            message = (
                f"{target.name!r} is parted by tabs, as .tsv says. Name a .csv, or leave out delimiter=."
            )
            raise UsageError(message)
        if self.safe:
            _check_names(policy)

    def on(self, target: Target) -> Target:
        """Let a target be written with the delimiter."""
        return replace(target, delimiter=self.sign)

    @property
    def rewrites(self) -> bool:
        """Whether a file must be written anew: no engine does these."""
        return self.safe or self.bom

    def finish(self, path: Path, target: Target) -> None:
        """Write the file of a target, which waits elsewhere, anew with what no engine does."""
        if not self.rewrites:
            return
        made = path.with_name(f"{path.name}.safe")
        try:
            with open(made, "w", encoding="utf-8", newline="") as file:
                file.writelines(self.lines(path, target.separator))
        except csv.Error:
            message = "A cell is too long to be made safe for a spreadsheet. Leave out spreadsheet_safe."
            raise OutputError(message) from None
        shutil.copymode(path, made)
        made.replace(path)

    def lines(self, path: Path, delimiter: str) -> Iterator[str]:
        """Read a text table, parted by a delimiter, as it is to be."""
        with open(path, encoding="utf-8", newline="") as file:
            if self.bom:
                yield _BOM
            if self.safe or self.sign not in (None, delimiter):
                yield from _rewritten(file, delimiter, self.sign or delimiter, safe=self.safe)
            else:
                yield from file


AS_IT_IS = Sheet()


def is_text_table(path: Path) -> bool:
    """Tell whether a file is a table that people may open with a spreadsheet."""
    return path.suffix.lower() in _ENDINGS


def is_sheet(target: Target) -> bool:
    """Tell whether a target is such a file."""
    return target.kind == "file" and is_text_table(target.path)


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


def plain_cells(texts: Sequence[str | None], told: Collection[object] = ()) -> list[str | None]:
    """Return what cells held before they were made safe for a spreadsheet; two values never become one.

    Those that are told with an apostrophe keep it.

    >>> plain_cells(["'-5", "3", None, "'+1"], {"'+1"}), plain_cells(["'-5", "-5"])
    (['-5', '3', None, "'+1"], ["'-5", '-5'])
    """
    here = set(texts)
    plain = [text if text is None or text in told else plain_cell(text) for text in texts]
    return [text if own in here else own for text, own in zip(texts, plain, strict=True)]


def is_formula(cell: str) -> bool:
    """Tell whether a cell begins like a formula and is no number.

    >>> [is_formula(cell) for cell in ("=1+1", "+49 30 1", "-5-3", "@a", "-1.5e-05", "-", "20-29")]
    [True, True, True, True, False, False, False]
    >>> [is_formula(cell) for cell in ("-5%+cmd", "-1e5+cmd", "-5%", "+1e5")]
    [True, True, False, False]
    """
    return re.search(FORMULA, cell) is not None


def _rewritten(file: Iterable[str], delimiter: str, sign: str, *, safe: bool) -> Iterator[str]:
    """Write rows anew, header too; a negative number made safe becomes text."""
    if csv.field_size_limit() < _LONGEST:
        csv.field_size_limit(_LONGEST)  # Python's own is short, and others may be reading just now
    rows = csv.reader(file, delimiter=delimiter)
    header = next(rows, None)
    if header is None:
        return
    every = must_quote(header, sign)
    # The writer quotes what is in its own line ends, CR LF.
    writer = csv.writer(_Line(), delimiter=sign, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL)
    yield writer.writerow(map(safe_cell, header) if safe else header).removesuffix("\r\n") + "\n"
    for row in rows:
        yield writer.writerow(map(safe_cell, row) if safe else row).removesuffix("\r\n") + "\n"


class _Line:
    """Gives a line back to whoever writes it."""

    def write(self, line: str) -> str:
        """Return what is written."""
        return line


def _check_text(target: Target | None, options: str) -> None:
    if target is None or not is_sheet(target):
        what = "this is a table in memory" if target is None else f"{target.name!r} is a {target.kind}"
        what += f" of another format, {target.ending}" if target and target.kind == "file" else ""
        message = (
            f"Only a {' or '.join(_ENDINGS)} file is written for spreadsheets; {what}. "
            f"Name such an output, or leave out {options}."
        )
        raise UsageError(message)


def _check_names(policy: Policy) -> None:
    strange = [name for name in policy.columns if safe_cell(name) != name]
    if strange:
        message = (
            f"A spreadsheet would run the name of a column: {', '.join(map(repr, strange))}. Rename it, in "
            f"the table and in the policy, or leave out spreadsheet_safe."
        )
        raise PolicyError(message)


def lines_of(path: Path, sheet: Sheet) -> Iterator[str]:
    """Read a file whose ending tells its delimiter, as a sheet wants it."""
    return sheet.lines(path, delimiter_of(path.suffix))


def has_semicolons(path: Path) -> bool:
    """Tell whether a table is a text whose values are parted by semicolons."""
    from shoal.engines.text import sign_of

    return path.suffix.lower() in (".csv", ".txt") and path.is_file() and sign_of(path) == ";"
