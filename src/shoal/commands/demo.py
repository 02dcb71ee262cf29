"""The command that shows on a bundled sample what is done."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, Force
from shoal.commands.releases import show_release
from shoal.display import console, escaped, print_json, say


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where to leave the sample, its policy and the release.",
            show_default="a new temporary folder",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """De-identify the bundled sample of hospital admissions and show what was done."""
    import tempfile

    from shoal.anonymize import anonymize as run
    from shoal.sample import bundled

    with reporting(as_json), progress_bar() as progress:
        target = folder or Path(tempfile.mkdtemp(prefix="shoal-demo-"))
        data, policy = bundled(target, force=force)
        release = run(data, policy, output=target / "release.csv", force=force, progress=progress)
    if as_json:
        print_json(release.to_dict())
        return
    _show_rows("Before: 5,000 made-up hospital admissions", data)
    _show_rows("After: what may leave the house", target / "release.csv")
    show_release(release)
    call = [_program(), "anonymize", str(data), "--policy", str(policy), "--output", "mine.csv"]
    say(f"\nTry it yourself:\n  {shlex.join(call)}")


def _program() -> str:
    """Return what starts shoal in this shell: its name, or where it is if an environment is not activated."""
    own, found = Path(sys.executable).with_name("shoal"), shutil.which("shoal")
    if not own.is_file() or (found and Path(found).resolve() == own.resolve()):
        return "shoal"
    here = Path.cwd()
    return os.path.join(".", own.relative_to(here)) if own.is_relative_to(here) else str(own)


def _show_rows(title: str, path: Path) -> None:
    """Show a few records of a text table, a column each."""
    import csv

    from rich.table import Table

    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = Table(title=title, title_justify="left", show_header=False)
    few = rows[:: max(1, len(rows) // 3)][:3]
    for name, *cells in zip(header, *few, strict=True):
        table.add_row(f"[bold]{escaped(name)}[/bold]", *map(escaped, cells))
    console().print(table)
