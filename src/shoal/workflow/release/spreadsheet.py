"""Text tables for spreadsheets: escaped formulas, the delimiter, and a byte order mark."""

from __future__ import annotations

import codecs
import csv
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shoal.core.targets import Target
from shoal.errors import OutputError, PolicyError, UsageError
from shoal.files.text import DELIMITERS, delimiter_of, must_quote
from shoal.policy.policy import Policy
from shoal.wording import Change

SAFE = "Cells that begin with =, +, -, @, a tab or a carriage return have an apostrophe before them."
# Valid in the regular-expression syntax of every engine.
FORMULA = r"^[=@\t\r]|^[+-][0-9.,]*([^0-9.,eE%]|%(.|\n)|[eE]([^0-9+-]|$|[+-]?[0-9]+[^0-9]|[+-][^0-9]))"
_LONGEST = 2**31 - 1  # maximum number of characters of a cell
_BEGINS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet treats such cells as formulas
_ENDINGS = (".csv", ".tsv")
_BOM = codecs.BOM_UTF8.decode()


@dataclass(frozen=True)
class Sheet:
    """Options of a text file for spreadsheets: escaped cells, the delimiter, a byte order mark."""

    safe: bool = False  # put an apostrophe before cells that begin like a formula
    delimiter: str | None = None  # a name or a character; None means that of the file extension
    bom: bool = False  # begin the file with a byte order mark

    @property
    def sign(self) -> str | None:
        """The delimiter as a character."""
        if self.delimiter is None:
            return None
        sign = DELIMITERS.get(self.delimiter.lower(), self.delimiter.replace("\\t", "\t"))
        if sign not in DELIMITERS.values():
            raise UsageError(
                f"must be {', '.join(DELIMITERS)}, or the sign itself; got {self.delimiter!r}.",
                option="delimiter",
            )
        return sign

    @property
    def notes(self) -> tuple[str, ...]:
        """How the file differs from a plain CSV file."""
        notes = [SAFE] if self.safe else []
        if self.sign:
            name = next(name for name, sign in DELIMITERS.items() if sign == self.sign)
            notes.append(f"Values are separated by a {name}.")
        if self.bom:
            notes.append("The file begins with a byte order mark, which tells Excel that it is UTF-8.")
        return tuple(notes)

    def check(self, policy: Policy, target: Target | None) -> None:
        """Raise if the output is not a text file, or if a column name would be changed."""
        options = {"spreadsheet_safe": self.safe, "delimiter": self.sign is not None, "bom": self.bom}
        if any(options.values()):
            _check_text(target, [option for option, is_given in options.items() if is_given])
        if target and target.ending == ".tsv" and self.sign not in (None, "\t"):
            raise UsageError(
                f"{target.name!r} is separated by tabs, by its extension .tsv.",
                advice=[Change(action="Name a .csv"), Change("delimiter", action="Leave out {}")],
            )
        if self.safe:
            _check_names(policy)

    def on(self, target: Target) -> Target:
        """Return the target with the delimiter."""
        return replace(target, delimiter=self.sign)

    @property
    def rewrites(self) -> bool:
        """Whether the file must be rewritten, because no engine can write it this way."""
        return self.safe or self.bom

    def finish(self, path: Path, target: Target) -> None:
        """Rewrite a file that an engine has written, if an option requires it."""
        if not self.rewrites:
            return
        made = path.with_name(f"{path.name}.safe")
        try:
            with open(made, "w", encoding="utf-8", newline="") as file:
                file.writelines(self.lines(path, target.separator))
        except csv.Error:
            raise OutputError(
                "A cell is too long to be made safe for a spreadsheet.",
                advice=[Change("spreadsheet_safe", action="Leave out {}")],
            ) from None
        shutil.copymode(path, made)
        made.replace(path)

    def lines(self, path: Path, delimiter: str) -> Iterator[str]:
        """Yield the lines of a text table in the requested form."""
        with open(path, encoding="utf-8", newline="") as file:
            if self.bom:
                yield _BOM
            if self.safe or self.sign not in (None, delimiter):
                yield from _rewritten(file, delimiter, self.sign or delimiter, safe=self.safe)
            else:
                yield from file


PLAIN_SHEET = Sheet()


def is_text_table(path: Path) -> bool:
    """Return whether a file is a text table, which may be opened with a spreadsheet."""
    return path.suffix.lower() in _ENDINGS


def is_sheet(target: Target) -> bool:
    """Return whether a target is a text table."""
    return target.kind == "file" and is_text_table(target.path)


def safe_cell(cell: str) -> str:
    """Put an apostrophe before a cell that a spreadsheet would run.

    >>> safe_cell("=1+1"), safe_cell("20-29"), safe_cell("-5")
    ("'=1+1", '20-29', "'-5")
    """
    return f"'{cell}" if cell.startswith(_BEGINS) else cell


def plain_cell(cell: str) -> str:
    """Remove the apostrophe that keeps a spreadsheet from running a cell.

    >>> plain_cell("'-5"), plain_cell("'tis")
    ('-5', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_BEGINS) else cell


def plain_cells(texts: Sequence[str | None], listed: Collection[object] = ()) -> list[str | None]:
    """Undo `safe_cell`, except where two different values would become equal.

    Values in `listed` keep their apostrophe.

    >>> plain_cells(["'-5", "3", None, "'+1"], {"'+1"}), plain_cells(["'-5", "-5"])
    (['-5', '3', None, "'+1"], ["'-5", '-5'])
    """
    known = set(texts)
    plain = [text if text is None or text in listed else plain_cell(text) for text in texts]
    return [text if unescaped in known else unescaped for text, unescaped in zip(texts, plain, strict=True)]


def is_formula(cell: str) -> bool:
    """Return whether a cell begins like a formula and is not a number.

    >>> [is_formula(cell) for cell in ("=1+1", "+49 30 1", "-5-3", "@a", "-1.5e-05", "-", "20-29")]
    [True, True, True, True, False, False, False]
    >>> [is_formula(cell) for cell in ("-5%+cmd", "-1e5+cmd", "-5%", "+1e5")]
    [True, True, False, False]
    """
    return re.search(FORMULA, cell) is not None


def _rewritten(file: Iterable[str], delimiter: str, sign: str, *, safe: bool) -> Iterator[str]:
    """Yield header and rows with the delimiter `sign`; with `safe`, also escape negative numbers."""
    if csv.field_size_limit() < _LONGEST:
        csv.field_size_limit(_LONGEST)  # not reset, because another thread may be reading
    rows = csv.reader(file, delimiter=delimiter)
    header = next(rows, None)
    if header is None:
        return
    quotes_all = must_quote(header, sign)
    # The writer's line ending is CR LF, so that it quotes cells that contain CR or LF.
    writer = csv.writer(_Line(), delimiter=sign, quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
    yield writer.writerow(map(safe_cell, header) if safe else header).removesuffix("\r\n") + "\n"
    for row in rows:
        yield writer.writerow(map(safe_cell, row) if safe else row).removesuffix("\r\n") + "\n"


class _Line:
    """A file for csv.writer whose write() returns the line."""

    def write(self, line: str) -> str:
        return line


def _check_text(target: Target | None, options: Sequence[str]) -> None:
    if target is None or not is_sheet(target):
        what = "this is a table in memory" if target is None else f"{target.name!r} is a {target.kind}"
        what += f" of another format, {target.ending}" if target and target.kind == "file" else ""
        raise UsageError(
            f"Only a {' or '.join(_ENDINGS)} file is written for spreadsheets; {what}.",
            advice=[
                Change(action="Name such an output"),
                Change(options[0], action="Leave out {}", others=tuple(options[1:])),
            ],
        )


def _check_names(policy: Policy) -> None:
    rewritten = [name for name in policy.columns if safe_cell(name) != name]
    if rewritten:
        raise PolicyError(
            f"A spreadsheet would run the name of a column: {', '.join(map(repr, rewritten))}.",
            advice=[
                Change(action="Rename it, in the table and in the policy"),
                Change("spreadsheet_safe", action="Leave out {}"),
            ],
        )


def lines_of(path: Path, sheet: Sheet) -> Iterator[str]:
    """Yield the lines of a file in the form of a sheet; the file extension implies the delimiter."""
    return sheet.lines(path, delimiter_of(path.suffix))


def has_semicolons(path: Path) -> bool:
    """Return whether a file is a text table with semicolons as delimiters."""
    from shoal.engines.text import guess_delimiter

    return path.suffix.lower() in (".csv", ".txt") and path.is_file() and guess_delimiter(path) == ";"
