"""The command that recodes new data as an earlier release was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Bom,
    Data,
    Delimiter,
    EngineName,
    Force,
    MemoryLimit,
    Output,
    Reveal,
    SparkMaster,
    SpreadsheetSafe,
    WithMapping,
    WithReport,
)
from shoal.commands.reading import read_engine
from shoal.commands.releases import note_semicolons, show_release
from shoal.display import print_json


def apply(
    recipe: Annotated[Path, typer.Argument(help="The recipe of an earlier release, or its private folder.")],
    data: Data,
    output: Output,
    mapping: WithMapping = False,
    report: WithReport = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    delimiter: Delimiter = None,
    bom: Bom = False,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Recode new data with a saved recipe; exit code 1 when it no longer holds."""
    from shoal.apply import apply as run

    with reporting(as_json, reveal), progress_bar() as progress:
        release = run(
            recipe,
            data,
            output=output,
            force=force,
            mapping=mapping,
            report=report,
            spreadsheet_safe=spreadsheet_safe,
            delimiter=delimiter,
            bom=bom,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            progress=progress,
        )
    if as_json:
        print_json(release.to_dict())
        return
    show_release(release)
    note_semicolons(data, output, delimiter, bom=bom)
