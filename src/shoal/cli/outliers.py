"""A prompt for outliers: lists rare combinations, raises the level of a column, and repeats."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from shoal.cli.messages import progress_bar, report
from shoal.cli.parsing import read_line
from shoal.document.document import Table
from shoal.document.terminal import say, show_table
from shoal.errors import ShoalError, UnknownName, UsageError

_HELP = """\
COLUMN               one level further up
COLUMN 2             at least to this level; never below the level at which all values are frequent enough
set COLUMN 2         the same, with or without a level, for a column named like a command
undo                 undo the last step
show                 list rare combinations again
accept               blank the remaining rare cells and release
help, quit           quit releases nothing"""

_COMMANDS = ("set", "undo", "show", "accept", "help", "quit")


def ask_generalizations(
    data: Path, policy: Any, node: Any, reading: Mapping[str, Any], *, as_json: bool
) -> Any:
    """Let the data custodian choose what to generalize; return the policy with these choices."""
    from shoal.workflow.outliers import OutlierSession, generalizing
    from shoal.workflow.profile.offer import adopted

    generalizing(policy, {}, "--interactive")  # refuses other searches than mu-argus
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--interactive asks in a terminal, and not with --json. Or use --generalize age=2.")
    adopted_policy, levels = adopted(policy, node)
    with progress_bar() as progress:
        holder = OutlierSession(data, adopted_policy, levels, progress=progress, **reading)
    chosen = OutlierPrompt(holder).run()
    return generalizing(policy, chosen)


class OutlierPrompt:
    """Raises the levels of columns one by one, and lists rare combinations after each step."""

    def __init__(self, holder: Any, read: Callable[[], str] = read_line) -> None:
        """Start at the lowest levels. `read` returns the next line or raises EOFError."""
        self.holder = holder
        self.read = read
        self.chosen: dict[str, int] = {}
        self.before: list[dict[str, int]] = []
        self.outliers = holder.outliers({})

    def run(self) -> Mapping[str, int]:
        """Ask until the user accepts the result. If the user quits, nothing is released."""
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
                    self.execute(line)
            except ShoalError as error:
                report(error)

    def execute(self, line: str) -> None:
        """Execute a line. A line that is a command is never read as the name of a column."""
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

    def set(self, text: str, kind: str, others: tuple[str, ...] = ()) -> None:
        """Raise the named column to a given level, or by one."""
        name, _, level = text.rpartition(" ")
        if text in self.holder.heights:
            self.step(text, self.outliers.levels[text] + 1)
        elif name.strip() in self.holder.heights:
            self.step(name.strip(), _level(level))
        else:
            raise UnknownName(text, kind, [*others, *self.holder.heights])

    def step(self, name: str, level: int) -> None:
        """Raise a column to a level and list rare combinations again."""
        chosen = {**self.chosen, name: level}
        outliers = self.holder.outliers(chosen)  # raises before any change
        self.before.append(self.chosen)
        self.chosen, self.outliers = chosen, outliers
        self.show()

    def undo(self) -> None:
        """Undo one step."""
        if not self.before:
            raise UsageError("There is nothing to undo.")
        self.chosen = self.before.pop()
        self.outliers = self.holder.outliers(self.chosen)
        self.show()

    def show(self) -> None:
        """Show rare combinations by set of columns, and rare values by column."""
        from shoal.workflow.outliers import outliers_table

        show_table(outliers_table(self.outliers))
        rows = []
        for outlier in self.outliers.columns:
            (name,) = outlier.columns
            level = f"{self.outliers.levels[name]} of {self.holder.heights[name]}"
            rows.append((name, level, f"{outlier.combinations:,}", f"{outlier.records:,}"))
        title = f"By column, of {self.holder.records:,} records"
        show_table(Table(title, ("column", "level", "in rare combinations", "records"), rows))


def _level(text: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise UsageError(f"A level is a whole number, such as 2; got {text!r}.")
    return int(text)
