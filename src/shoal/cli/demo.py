"""The command that demonstrates a release with a bundled sample."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.messages import progress_bar, reporting
from shoal.cli.options import AsJson, Force
from shoal.document.terminal import console, escaped, print_json, say, show

if TYPE_CHECKING:
    from shoal.workflow.release.release import Release

Record = dict[str, str]  # a row of a text table, by column


_FolderOption = Annotated[
    Path | None,
    typer.Option(
        help="The folder for the sample, its policy and the release.",
        show_default="a new temporary folder",
    ),
]


def demo(
    folder: _FolderOption = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """De-identify the bundled sample of hospital admissions and show what was done."""
    from shoal.sample import bundled
    from shoal.workflow.release.anonymize import anonymize as run

    with reporting(as_json), progress_bar() as progress:
        target = folder or _new_folder()
        data, policy = bundled(target, force=force)
        release = run(data, policy, output=target / "release.csv", force=force, progress=progress)
    if as_json:
        print_json(release.to_dict())
        return
    before, after = _same_records(release, data, target / "release.csv")
    _show_rows("Before: 3 of 5,000 made-up hospital admissions", before)
    _show_rows("After: the same 3 records in the release", after)
    show(release.document())
    from shoal.cli.anonymize import show_advice

    show_advice(release, ["anonymize", str(data), "--policy", str(policy), "--output", "mine.csv"])
    call = [_program(), "anonymize", str(data), "--policy", str(policy), "--output", "mine.csv"]
    say(f"\nTry it yourself:\n  {shlex.join(call)}")


def _new_folder() -> Path:
    import tempfile

    from shoal.files.work_folders import cannot_create, temporary_folder

    parent = temporary_folder()
    try:
        return Path(tempfile.mkdtemp(prefix="shoal-demo-", dir=parent))
    except OSError as error:
        raise cannot_create(parent, error) from None


def _program() -> str:
    """Return the command that starts shoal: its name, or its path if the environment is not activated."""
    program, on_path = Path(sys.executable).with_name("shoal"), shutil.which("shoal")
    if not program.is_file() or (on_path and Path(on_path).resolve() == program.resolve()):
        return "shoal"
    folder = Path.cwd()
    return os.path.join(".", program.relative_to(folder)) if program.is_relative_to(folder) else str(program)


def _same_records(release: Release, data: Path, output: Path) -> tuple[list[Record], list[Record]]:
    """Return three records of the input, and the same records in the release."""
    inputs, released = _records(data), _records(output)
    released_records = {tuple(record.values()) for record in released}
    pairs = [(record, _recoded(release, record, list(released[0]))) for record in inputs]
    in_both = [pair for pair in pairs if tuple(pair[1].values()) in released_records]
    shown = in_both[:: max(1, len(in_both) // 3)][:3]
    return [before for before, _ in shown], [after for _, after in shown]


def _recoded(release: Release, record: Record, columns: Sequence[str]) -> Record:
    """Recode one record as in the release: a label for each quasi-identifier, other values unchanged."""
    levels = release.levels or {}
    recoded = {name: record[name] for name in columns}
    for hierarchy in release.hierarchies:
        level = levels.get(hierarchy.name, 0)
        if level and (text := record[hierarchy.name]) in hierarchy.labels[0]:
            group = hierarchy.groups(level)[hierarchy.labels[0].index(text)]
            recoded[hierarchy.name] = hierarchy.labels[level][group]
    return recoded


def _records(path: Path) -> list[Record]:
    import csv

    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _show_rows(title: str, records: Sequence[Record]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False)
    for name in records[0]:
        cells = [record[name] for record in records]
        table.add_row(f"[bold]{escaped(name)}[/bold]", *map(escaped, cells))
    console().print(table)
