"""How commands tell their progress and their errors: on stderr, and as JSON where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from shoal.display import console, print_json
from shoal.errors import Infeasible, ShoalError, UsageError


@contextmanager
def reporting(as_json: bool, reveal: bool) -> Iterator[None]:
    """Report deliberate errors the way the caller reads them."""
    try:
        yield
    except ShoalError as error:
        raise typer.Exit(report(error, as_json=as_json, reveal=reveal)) from None


def report(error: ShoalError, *, as_json: bool = False, reveal: bool = False) -> int:
    """Tell an error and return the exit code that goes with it."""
    values = list(error.values) if reveal else []
    if as_json:
        nearest = error.nearest if isinstance(error, Infeasible) else {}
        print_json(
            {"error": type(error).__name__, "message": str(error), "nearest": nearest, "values": values}
        )
    screen = console(stderr=True)
    screen.print(f"[bold red]{type(error).__name__}[/bold red] ", end="")
    screen.print(str(error), markup=False, highlight=False)
    if values:
        screen.print("Values: " + ", ".join(values[:50]), markup=False, highlight=False)
    return 2 if isinstance(error, UsageError) else 1


@contextmanager
def progress_bar() -> Iterator[Any]:
    """Show phases on stderr: a bar in a terminal, nothing elsewhere but word of a long compilation."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    screen = console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def tell(phase: str, done: int, total: int | None) -> None:
            if phase == "compile" and done == 0:
                bar.console.print("Compiling for this machine; this happens once and takes a few seconds.")
            bar.update(task, description=phase, completed=done, total=total)

        yield tell
