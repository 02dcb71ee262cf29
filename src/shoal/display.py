"""How results are printed: tables, names with values, plain lines, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def show_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Show a table whose first columns, so many, stand at the left and the others at the right."""
    from rich.table import Table

    table = Table(title=escaped(title), title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(escaped(heading), justify="left" if place < left else "right")
    for row in rows:
        table.add_row(*map(escaped, row))
    console().print(table)


def show_pairs(rows: Mapping[str, str]) -> None:
    """Print names and values, a line each however long, so that paths can be copied."""
    width = max(map(len, rows))
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
