"""Terminal: documents, tables, labels with values, lines and JSON on the screen."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shoal.document.document import Document, Table, without_markup
from shoal.files.signals import installed

_LONGEST = 32  # words with at most this number of characters are not broken
_GAP = 2  # between columns


def show(document: Document) -> None:
    """Print a document."""
    for warning in document.warnings:
        say(f"Warning: {warning}")
    say(without_markup(document.headline))
    show_facts({without_markup(fact.label): without_markup(fact.value) for fact in document.facts})
    for table in document.tables:
        say("")
        show_table(table)
    for note in document.notes:
        say(without_markup(note))


def show_table(table: Table) -> None:
    """Print a table without breaking words.

    On a narrow screen, optional columns are left out first. If that is not enough, each row is printed as
    labels with values.
    """
    from rich import box
    from rich.table import Table as Grid

    say(without_markup(table.title))
    columns = _visible(table, console().width)
    headers = [without_markup(table.headers[column]) for column in columns]
    rows = [[without_markup(row[column]) for column in columns] for row in table.rows]
    widths = fitted(headers, rows, console().width - _GAP * (len(headers) - 1))
    if widths is None:
        _show_rows([" ".join(header.split()) for header in headers], rows)
    else:
        grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for column, header, width in zip(columns, headers, widths, strict=True):
            side: Any = "left" if column in table.left else "right"
            grid.add_column(escaped(header), justify=side, width=width, overflow="fold")
        for row in rows:
            grid.add_row(*map(escaped, row))
        _print_trimmed(grid)
    if table.omitted:
        say(f"and {table.omitted:,} more; --json has all.")
    if table.note:
        say(without_markup(table.note))


def _print_trimmed(grid: Any) -> None:
    screen = console()
    with screen.capture() as captured:
        screen.print(grid)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _visible(table: Table, width: int) -> list[int]:
    """Return the columns to show. Optional columns are left out until the rest fits."""
    columns = list(range(len(table.headers)))
    for column in table.optional:
        cells = [[without_markup(row[index]) for row in (table.headers, *table.rows)] for index in columns]
        widths = [max(map(_width, texts)) for texts in cells]
        if sum(widths) + _GAP * (len(columns) - 1) <= width:
            break
        columns.remove(column)
    return columns


def _width(text: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in text.splitlines()), default=0)


def fitted(headers: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return column widths with which all columns fit and no word is broken, or None if that is impossible.

    >>> rows = [["Mary Ann", "1,000"]]
    >>> fitted(["name", "n"], rows, 80), fitted(["name", "n"], rows, 11), fitted(["name", "n"], rows, 8)
    ([8, 5], [6, 5], None)
    """
    from rich.cells import cell_len

    columns = list(zip(headers, *rows, strict=True))
    longest = [max(map(_width, cells)) for cells in columns]
    widths = [
        min(max((cell_len(word) for cell in cells for word in cell.split()), default=0), _LONGEST)
        for cells in columns
    ]
    spare = room - sum(widths)
    if spare < 0:
        return None
    # Columns that need little extra space get all that they need. Columns with long texts share the rest.
    for column in sorted(range(len(columns)), key=lambda column: longest[column] - widths[column]):
        extra = min(longest[column] - widths[column], spare)
        widths[column] += extra
        spare -= extra
    return widths


def _show_rows(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for number, row in enumerate(rows):
        if number:
            say("")
        show_facts({header: cell for header, cell in zip(headers, row, strict=True) if cell})


def show_facts(rows: Mapping[str, str]) -> None:
    """Print labels and values, one unwrapped line each, so that paths can be copied."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        padding = " " * (width - len(name))
        line = f"[bold]{escaped(name)}[/bold]{padding}  {escaped(value)}"
        console().print(line, soft_wrap=True, highlight=False)


def say(text: str, *, stderr: bool = False) -> None:
    """Print a line without markup or wrapping."""
    console(stderr=stderr).print(text, markup=False, highlight=False, soft_wrap=True)


def escaped(text: str) -> str:
    """Escape brackets, which rich would read as markup."""
    from rich.markup import escape

    return escape(text)


def console(*, stderr: bool = False) -> Any:
    """Return the console for stdout (results) or stderr (messages)."""
    from rich.console import Console

    screen = Console(stderr=stderr, soft_wrap=stderr)
    screen.on_broken_pipe = _raise_again  # type: ignore[method-assign] # the default exits with code 1
    return screen


def _raise_again() -> None:
    raise


def print_json(data: Any) -> None:
    """Print one JSON value to stdout. It includes a signal that arrived after the release was published."""
    handlers = installed()
    if handlers is not None:
        if isinstance(data, dict) and handlers.number is not None and handlers.committed:
            data = {**data, "signal": handlers.name, "message": handlers.complete}
        handlers.printed = True
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
