"""Progress and errors of commands: on stderr, and with --json also on stdout."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer

from shoal.document.terminal import console, print_json, say
from shoal.errors import Infeasible, Note, ReleaseRefused, ShoalError, UsageError
from shoal.files.signals import Handlers, check, installed, offering
from shoal.wording import message, percent, quote

_BROKEN_PIPE = 141  # 128 + SIGPIPE, the exit code of shells
_RELEASES = ("anonymize", "apply", "demo")


def stop_message(handlers: Handlers | None, words: list[str]) -> str:
    """Return a message that says that a signal ended the command, and whether output was written."""
    name = handlers.name if handlers else "SIGINT"
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "studio":
        return f"{name} ended the studio."
    if handlers and handlers.written:
        files = ", ".join(repr(str(path)) for path in handlers.written)
        return f"{name} ended the command after it had written {files}."
    return f"{name} ended the command. Nothing was {'released' if command in _RELEASES else 'written'}."


def stop_answer(message: str, name: str) -> dict[str, Any]:
    """Return the JSON output of a command that a signal ended."""
    return {"error": "Interrupted", "message": message, "signal": name, "nearest": {}, "values": []}


def report_end(handlers: Handlers) -> None:
    """Print why the process ends. This is called in another thread than that of the command."""
    words = sys.argv[1:]
    message = handlers.complete if handlers.committed else stop_message(handlers, words)
    if "--json" in words and not handlers.printed:
        answer = {"message": message, "signal": handlers.name}
        _write(1, json.dumps(answer if handlers.committed else stop_answer(message, handlers.name)))
    if sys.stderr.isatty():
        message = f"\r\x1b[2K\x1b[?25h{message}"  # erase the progress bar, show the cursor again
    _write(2, message)


def announce(handlers: Handlers) -> None:
    """Print why a command takes some time to end."""
    _write(
        2, f"{handlers.name}: the results so far are being saved. A second signal ends the command at once."
    )


def report_stop(handlers: Handlers | None) -> int:
    """Print that a signal ended the command; return the exit code."""
    words = sys.argv[1:]
    message = stop_message(handlers, words)
    with suppress(OSError):
        sys.stdout.flush()
    if "--json" in words and not (handlers and handlers.printed):
        _write(1, json.dumps(stop_answer(message, handlers.name if handlers else "SIGINT")))
    _write(2, message)
    return handlers.code if handlers else 130


def report_complete(handlers: Handlers) -> None:
    """Print that a signal arrived after the release was published."""
    with suppress(OSError):
        sys.stderr.flush()
    _write(2, handlers.complete)


def output_closed() -> int:
    """Return the exit code for a closed output, such as after `| head`."""
    # Prevent the interpreter from flushing its buffers at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    handlers = installed()
    return 0 if handlers is not None and handlers.committed else _BROKEN_PIPE


def _write(descriptor: int, text: str) -> None:
    """Write a line, bypassing Python's buffers, whose lock another thread may hold."""
    with suppress(OSError):
        os.write(descriptor, f"{text}\n".encode(errors="replace"))


_COMPILING = "Compiling for this machine. This takes some seconds; the result is kept for later runs."
_shown_once: set[str] = set()  # messages that are shown once per process
_LARGEST = 2**53  # a progress bar shows no larger total
_MOST = 50  # maximum number of values that an error shows


@contextmanager
def reporting(as_json: bool, reveal: bool | None = None) -> Iterator[None]:
    """Report errors of shoal as text or JSON, and print notes as they occur.

    `reveal` is whether values may be shown; None if the command has no such option.
    """
    try:
        with _notes():
            yield
    except ShoalError as error:
        raise typer.Exit(report(error, as_json=as_json, reveal=reveal)) from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        long = UsageError(f"The path {quote(error.filename)} is too long. Give a shorter one.")
        raise typer.Exit(report(long, as_json=as_json)) from None


@contextmanager
def _notes() -> Iterator[None]:
    """Print each note once on stderr."""
    printed: set[str] = set()

    def show(warning: Any, *details: Any, **arguments: Any) -> None:
        if not isinstance(warning, Note):
            original(warning, *details, **arguments)
        elif (text := message(warning, "cli")) not in printed:
            printed.add(text)
            _print_note("Note:", "yellow", text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        original: Any = warnings.showwarning
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def report(error: ShoalError, *, as_json: bool = False, reveal: bool | None = None) -> int:
    """Print an error and return its exit code."""
    text = message(error, "cli")
    values = list(error.values) if reveal else []
    if as_json:
        nearest = error.nearest if isinstance(error, Infeasible) else {}
        findings = error.findings if isinstance(error, ReleaseRefused) else {}
        name = type(error).__name__
        print_json({"error": name, "message": text, "nearest": nearest, "values": values, **findings})
    _print_note("Error:", "red", text + values_text(error.values, reveal, error.values_label))
    return 2 if isinstance(error, UsageError) else 1


def stopped(message: str, *, as_json: bool) -> typer.Exit:
    """Print what a stopped command leaves behind. Return the exception that ends the command."""
    handlers = installed()
    if as_json:
        print_json(stop_answer(message, handlers.name if handlers else "SIGINT"))
    say(message, stderr=True)
    return typer.Exit(130)


def values_text(values: Sequence[str], reveal: bool | None, label: str = "Values") -> str:
    """List the values that an error is about. If values must not be shown, say which option shows them.

    >>> values_text(["7", "x"], True), values_text(["7", "x"], False), values_text(["7"], None)
    (" Values: '7', 'x'.", ' --reveal lists them.', '')
    """
    if not values or reveal is None:
        return ""
    if not reveal:
        return f" --reveal lists {'them' if len(values) > 1 else 'it'}."
    more = f", and {len(values) - _MOST:,} more" if len(values) > _MOST else ""
    return f" {label}: {', '.join(map(quote, values[:_MOST]))}{more}."


def _print_note(word: str, colour: str, text: str) -> None:
    screen = console(stderr=True)
    screen.print(f"[bold {colour}]{word}[/bold {colour}] ", end="")
    screen.print(text, markup=False, highlight=False)


class ProgressBar:
    """Shows phases in a terminal, and asks questions in between."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.task = bar.add_task("starting", total=None, number="")

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Show the progress of a phase. A total that is too large to show is treated as unknown."""
        check()
        if phase == "compile" and _COMPILING not in _shown_once:  # several groups of kernels may be compiled
            _shown_once.add(_COMPILING)
            self.bar.console.print(_COMPILING)
        if total is not None and total > _LARGEST:
            total = None
        number = f"{done:,}" if done or total else ""
        number += f" of {total:,}" if total else ""
        self.bar.update(self.task, description=phase, completed=done, total=total, number=number)

    def ask_to_release(self, retained: float) -> bool:
        """Ask whether to release the best result so far. Any answer except yes means no."""
        self.bar.stop()
        retains = f"The best result so far retains {percent(retained)} of the information"
        _write(2, f"The search was interrupted. {retains}.")
        os.write(2, b"Release it? [y/N] ")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return False
        self.bar.start()
        return True


@contextmanager
def progress_bar() -> Iterator[ProgressBar]:
    """Show progress on stderr. Outside a terminal, show only a message about a long compilation."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[number]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        yield ProgressBar(bar)


@contextmanager
def offering_best(progress: ProgressBar) -> Iterator[None]:
    """If Ctrl-C ends a search in a terminal, offer its best result so far."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    with offering(progress.ask_to_release):
        yield
