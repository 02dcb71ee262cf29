"""The command that imports an ARX project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.messages import reporting
from shoal.cli.options import AsJson, Force
from shoal.document.terminal import print_json, say, show

ProjectArgument = Annotated[Path, typer.Argument(help="The project saved by ARX, a `.deid` file.")]
_OutputOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="The folder for `policy.yaml` and `hierarchies/`; it is created, readable only by you.",
    ),
]
_DataOption = Annotated[
    bool, typer.Option("--data", help="Also extract the project's data, to `data.csv` in the folder.")
]


def import_arx(
    project: ProjectArgument,
    output: _OutputOption,
    data: _DataOption = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Import an ARX project as a policy and hierarchy files, and list unsupported settings."""
    from shoal.integrations.arx.arx import import_arx as run
    from shoal.integrations.arx.arx import write_import

    with reporting(as_json):
        imported = run(project)
        written = write_import(imported, output, project=project if data else None, force=force)
    if as_json:
        print_json({**imported.to_dict(), "output": str(output), "files": [str(path) for path in written]})
        return
    show(imported.document())
    for path in written:
        say(str(path))
