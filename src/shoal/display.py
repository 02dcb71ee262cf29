"""How results are printed: tables, names with values, plain lines, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

_LONGEST = 32  # letters of a word that may not be broken


def show_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int | Collection[int] = 1,
    plain: bool = False,
) -> None:
    """Show a table some of whose columns, or the first so many, stand at the left, the others at the right.

    No word is broken: where the screen is too narrow for that, each row is told line by line instead. A plain
    table has fewer lines and, above it, a title of any length.
    """
    from rich import box
    from rich.table import Table

    told = [list(row) for row in rows]
    at_left = range(left) if isinstance(left, int) else left
    screen = console()
    widths = fitted(headings, told, screen.width - _frame(headings, plain))
    if plain or widths is None:
        say(title)
    if widths is None:
        _show_rows(headings, told)
        return
    if plain:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    else:
        table = Table(title=escaped(title), title_justify="left")
    for place, (heading, width) in enumerate(zip(headings, widths, strict=True)):
        side = "left" if place in at_left else "right"
        table.add_column(escaped(heading), justify=side, width=width, overflow="fold")  # type: ignore[arg-type]
    for row in told:
        table.add_row(*map(escaped, row))
    screen.print(table)


def fits(headings: Sequence[str], rows: Iterable[Sequence[str]], *, plain: bool = False) -> bool:
    """Tell whether the screen is wide enough for a table without a broken word."""
    return fitted(headings, list(rows), console().width - _frame(headings, plain)) is not None


def _frame(headings: Sequence[str], plain: bool) -> int:
    """Return the width of what stands between columns and around them."""
    return 3 * len(headings) + (-1 if plain else 1)


def fitted(headings: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return the width of each column so that all fit and no word is broken; None where that cannot be.

    >>> rows = [["Mary Ann", "1,000"]]
    >>> fitted(["name", "n"], rows, 80), fitted(["name", "n"], rows, 11), fitted(["name", "n"], rows, 8)
    ([8, 5], [6, 5], None)
    """
    from rich.cells import cell_len

    columns = list(zip(headings, *rows, strict=True))
    wanted = [
        max(cell_len(line) for cell in cells for line in cell.splitlines() or [""]) for cells in columns
    ]
    widths = [
        min(max((cell_len(word) for cell in cells for word in cell.split()), default=0), _LONGEST)
        for cells in columns
    ]
    spare = room - sum(widths)
    if spare < 0:
        return None
    # Columns that need little more are whole; what is left is for those that hold long texts.
    for place in sorted(range(len(columns)), key=lambda place: wanted[place] - widths[place]):
        more = min(wanted[place] - widths[place], spare)
        widths[place] += more
        spare -= more
    return widths


def _show_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Tell rows line by line, a blank line between them."""
    for number, row in enumerate(rows):
        if number:
            say("")
        show_pairs({heading: cell for heading, cell in zip(headings, row, strict=True) if cell})


def show_pairs(rows: Mapping[str, str]) -> None:
    """Print names and values, a line each however long, so that paths can be copied."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        padding = " " * (width - len(name))
        line = f"[bold]{escaped(name)}[/bold]{padding}  {escaped(value)}"
        console().print(line, soft_wrap=True, highlight=False)


def say(text: str, *, stderr: bool = False) -> None:
    """Print a line as it is, however long."""
    console(stderr=stderr).print(text, markup=False, highlight=False, soft_wrap=True)


def escaped(text: str) -> str:
    """Keep brackets of the data from being read as markup."""
    from rich.markup import escape

    return escape(text)


def console(*, stderr: bool = False) -> Any:
    """Return where to print: results to stdout, messages to stderr."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=stderr)


def print_json(data: Any) -> None:
    """Print one JSON value to stdout."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
