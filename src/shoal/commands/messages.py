"""How commands tell their progress and their errors: on stderr, and as JSON where that is asked for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from shoal.display import console, print_json
from shoal.errors import Infeasible, Note, ShoalError, UsageError

_COMPILING = "Compiling for this machine, which takes some seconds; it is kept for later runs."
_told: set[str] = set()  # what is said once in a process
_MOST = 50  # values that an error shows
# What Python calls by these words is an option in a terminal; words of a path or in quotes are names.
_OPTIONS = re.compile(
    r"(?<![\w'./=-])(?:(force|bom)=True|(delimiter)=|"
    r"(memory_limit|max_size|sensitive_table|spark_master|spreadsheet_safe))"
    r"(?![\w'/=]|\.\w)"
)


@contextmanager
def reporting(as_json: bool, reveal: bool | None = None) -> Iterator[None]:
    """Report deliberate errors the way the caller reads them, and notes as they come.

    `reveal` is whether values may be shown; None where a command has no such option.
    """
    try:
        with _notes():
            yield
    except ShoalError as error:
        raise typer.Exit(report(error, as_json=as_json, reveal=reveal)) from None


@contextmanager
def _notes() -> Iterator[None]:
    """Say notes on stderr, each once."""
    said: set[str] = set()

    def show(message: Any, *place: Any, **more: Any) -> None:
        if not isinstance(message, Note):
            usual(message, *place, **more)
        elif str(message) not in said:
            said.add(str(message))
            _tell("Note:", "yellow", str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        usual: Any = warnings.showwarning
        warnings.showwarning = show
        yield


def report(error: ShoalError, *, as_json: bool = False, reveal: bool | None = None) -> int:
    """Tell an error and return the exit code that goes with it."""
    said = in_terminal(str(error))
    values = list(error.values) if reveal else []
    if as_json:
        nearest = error.nearest if isinstance(error, Infeasible) else {}
        print_json({"error": type(error).__name__, "message": said, "nearest": nearest, "values": values})
    _tell("Error:", "red", said + values_of(error.values, reveal, error.listed))
    return 2 if isinstance(error, UsageError) else 1


def in_terminal(text: str) -> str:
    """Write what Python calls an option by as a terminal does.

    >>> in_terminal("'o.csv' exists. Use force=True to replace it."), in_terminal("Raise memory_limit.")
    ("'o.csv' exists. Use --force to replace it.", 'Raise --memory-limit.')
    """
    text = text.replace("engine='spark'", "--engine spark")
    return _OPTIONS.sub(lambda found: f"--{(found[found.lastindex or 0]).replace('_', '-')}", text)


def values_of(values: Sequence[str], reveal: bool | None, listed: str = "Values") -> str:
    """Write the values that an error is about, where they may be shown; else how to see them.

    >>> values_of(["7", "x"], True), values_of(["7", "x"], False), values_of(["7"], None)
    (" Values: '7', 'x'.", ' --reveal lists them.', '')
    """
    if not values or reveal is None:
        return ""
    if not reveal:
        return f" --reveal lists {'them' if len(values) > 1 else 'it'}."
    more = f", and {len(values) - _MOST:,} more" if len(values) > _MOST else ""
    return f" {listed}: {', '.join(map(repr, values[:_MOST]))}{more}."


def _tell(word: str, colour: str, text: str) -> None:
    """Say something on stderr after a word in colour."""
    screen = console(stderr=True)
    screen.print(f"[bold {colour}]{word}[/bold {colour}] ", end="")
    screen.print(text, markup=False, highlight=False)


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
            if phase == "compile" and _COMPILING not in _told:  # kernels may be compiled family by family
                _told.add(_COMPILING)
                bar.console.print(_COMPILING)
            bar.update(task, description=phase, completed=done, total=total)

        yield tell
