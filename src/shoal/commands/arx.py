"""The command that reads a project of ARX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.commands.messages import reporting
from shoal.commands.options import AsJson, Force
from shoal.display import print_json, say


def import_arx(
    project: Annotated[Path, typer.Argument(help="The project that ARX saved, a `.deid` file.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder for `policy.yaml` and `hierarchies/`; it is made, closed to others.",
        ),
    ],
    data: Annotated[
        bool, typer.Option("--data", help="Also take the project's data out, to `data.csv` in the folder.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Read an ARX project into a policy and hierarchy files, and list what has no counterpart."""
    from shoal.arx import import_arx as run
    from shoal.importing.folder import write_import

    with reporting(as_json):
        found = run(project)
        written = write_import(found, output, project=project if data else None, force=force)
    if as_json:
        print_json({**found.to_dict(), "output": str(output), "files": [str(path) for path in written]})
        return
    for path in written:
        say(str(path))
    if found.unsupported:
        say("\nWhat has no counterpart (also on top of policy.yaml):")
    for one in found.unsupported:
        say(f"- {one}")
