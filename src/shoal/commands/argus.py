"""A talk about outliers in the terminal: what is rare, which column goes further up, until it will do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from shoal.commands.messages import progress_bar, report
from shoal.commands.reading import typed
from shoal.commands.releases import show_outliers
from shoal.display import say, show_table
from shoal.errors import ShoalError, UnknownName, UsageError

_HELP = """\
COLUMN               one level further up
COLUMN 2             up to a level (at least: never below where each value is frequent enough)
set COLUMN 2         the same, with or without a level, of a column that is named as a command is
undo                 as it was before
show                 what is rare, again
accept               blank what is left and release
help, quit           quit releases nothing"""

_COMMANDS = ("set", "undo", "show", "accept", "help", "quit")


def talk(data: Path, policy: Any, node: Any, engine: Any, memory_limit: str | None, *, as_json: bool) -> Any:
    """Let the holder of the data choose what to generalize; return the policy with it."""
    from shoal.outliers import Holder, generalizing
    from shoal.profiling.offer import adopted

    generalizing(policy, {}, "--interactive")  # refuses another search, in a terminal or not
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = "--interactive asks in a terminal, and not with --json. Or use --generalize, as age=2."
        raise UsageError(message)
    wanted, levels = adopted(policy, node)
    with progress_bar() as progress:
        holder = Holder(data, wanted, levels, engine=engine, memory_limit=memory_limit, progress=progress)
    chosen = Talk(holder).run()
    return generalizing(policy, chosen)


class Talk:
    """Columns that go further up one by one, and what is rare after each step."""

    def __init__(self, holder: Any, read: Callable[[], str] = typed) -> None:
        """Begin with no column further up; `read` gives the next line or raises EOFError."""
        self.holder = holder
        self.read = read
        self.chosen: dict[str, int] = {}
        self.before: list[dict[str, int]] = []
        self.outliers = holder.look({})

    def run(self) -> Mapping[str, int]:
        """Talk until it is accepted; whoever leaves before that releases nothing."""
        self.show()
        say("Name a column to generalize it further, or accept; help lists the commands.")
        while True:
            try:
                line = self.read().strip()
            except (EOFError, KeyboardInterrupt) as end:
                say("Nothing was released.")
                raise typer.Exit(130 if isinstance(end, KeyboardInterrupt) else 1) from None
            if line in ("quit", "exit", "q"):
                say("Nothing was released.")
                raise typer.Exit(1)
            if line == "accept":
                return self.chosen
            try:
                if line:
                    self.obey(line)
            except ShoalError as error:
                report(error)

    def obey(self, line: str) -> None:
        """Do what a line says; a word that is a command is never taken for a column."""
        if line == "undo":
            self.undo()
        elif line == "show":
            self.show()
        elif line == "help":
            say(_HELP)
        elif line.startswith("set "):
            self.set(line.removeprefix("set ").strip(), "column")
        else:
            self.set(line, "command or column", _COMMANDS)

    def set(self, asked: str, kind: str, others: tuple[str, ...] = ()) -> None:
        """Take the column that is named, with a level or without, further up."""
        name, _, level = asked.rpartition(" ")
        if asked in self.holder.heights:
            self.step(asked, self.outliers.levels[asked] + 1)
        elif name.strip() in self.holder.heights:
            self.step(name.strip(), _level(level))
        else:
            raise UnknownName(asked, kind, [*others, *self.holder.heights])

    def step(self, name: str, level: int) -> None:
        """Take a column up and look again."""
        chosen = {**self.chosen, name: level}
        outliers = self.holder.look(chosen)  # raises before anything is changed
        self.before.append(self.chosen)
        self.chosen, self.outliers = chosen, outliers
        self.show()

    def undo(self) -> None:
        """Go back by one step."""
        if not self.before:
            message = "There is nothing to undo."
            raise UsageError(message)
        self.chosen = self.before.pop()
        self.outliers = self.holder.look(self.chosen)
        self.show()

    def show(self) -> None:
        """Show what is rare, by set of columns and by column."""
        show_outliers(self.outliers)
        rows = []
        for one in self.outliers.columns:
            (name,) = one.columns
            level = f"{self.outliers.levels[name]} of {self.holder.heights[name]}"
            rows.append((name, level, f"{one.combinations:,}", f"{one.records:,}"))
        title = f"By column, of {self.holder.records:,} records"
        show_table(title, ("column", "level", "in rare combinations", "records"), rows)


def _level(text: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        message = f"A level is a whole number, as 2; got {text!r}."
        raise UsageError(message)
    return int(text)
