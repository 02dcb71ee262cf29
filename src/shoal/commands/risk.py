"""The command that says how likely people are found in a table, and in its release."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.diagnose import read_names
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, Data, EngineName, MemoryLimit, Reveal, SparkMaster, read_engine
from shoal.display import console, escaped, print_json, show_pairs

_SETS = 10  # of columns that are shown


def risk(
    data: Data,
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="The policy, whose quasi-identifiers are meant.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="The columns somebody could know, as age,sex. May be repeated.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="A release of the table, to see the risk before and after.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="The risk that is too high, as 0.09 or 1/11. [default: 1/k of the policy, or 0.2]"),
    ] = None,
    population_size: Annotated[
        int | None, typer.Option(help="The persons that the table was drawn from.")
    ] = None,
    sampling_share: Annotated[
        str | None, typer.Option(help="Or the share of them that it holds, as 5%.")
    ] = None,
    special_size: Annotated[
        int, typer.Option(help="Look for special uniques in sets of at most so many columns; 0: not at all.")
    ] = 3,
    plots: Annotated[Path | None, typer.Option(help="A folder for plots, PNG and SVG.")] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Say how likely people are found: by prosecutor, journalist and marketer; and what makes them unique."""
    from shoal.plots import prepare, save
    from shoal.risk import risk as assess
    from shoal.risk_plots import risk_plots

    with reporting(as_json, reveal), progress_bar() as progress:
        if plots:
            prepare(plots)
        found = assess(
            data,
            policy,
            columns=partial(read_names, columns) if columns else None,
            release=release,
            threshold=threshold,
            population_size=population_size,
            sampling_share=sampling_share,
            special_size=special_size,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
            progress=progress,
        )
        files = save(risk_plots(found), plots) if plots else []
    if as_json:
        print_json(found.to_dict())
        return
    show_risk(found)
    if plots:
        show_pairs({"plots": f"{plots} ({len(files)} files)"})


def show_risk(found: Any) -> None:
    """Show the risks before and after, what makes records unique, and columns that look like identifiers."""
    from rich.table import Table

    from shoal.risk_rows import risk_rows

    screen = console()
    table = Table(title=f"Risk by {', '.join(map(escaped, found.columns))}", title_justify="left")
    table.add_column("measure")
    tables = [found.before, *([found.after] if found.after else [])]
    for name in ("before", "after")[: len(tables)]:
        table.add_column(name, justify="right")
    for row in risk_rows(found):
        table.add_row(*row)
    screen.print(table)
    _show_special(found)
    if found.identifiers:
        screen.print("Columns that look like an identifier of HIPAA's Safe Harbor:")
        for name, one in found.identifiers.items():
            screen.print(f"  {name}: {one.mark}; {one.reason}", markup=False, highlight=False, soft_wrap=True)
    for note in found.notes:
        screen.print(note, markup=False, highlight=False, soft_wrap=True)


def _show_special(found: Any) -> None:
    from rich.table import Table

    special = found.before.special
    if special is None or not special.sets:
        return
    many = "single columns" if special.size == 1 else f"sets of at most {special.size} columns"
    title = f"What makes records unique: {many}"
    table = Table(title=title, title_justify="left")
    table.add_column("columns, none of which can be left out")
    table.add_column("records", justify="right")
    for columns, records in special.sets[:_SETS]:
        table.add_row(", ".join(map(escaped, columns)), f"{records:,}")
    more = len(special.sets) - _SETS
    if more > 0:
        table.add_row(f"{more:,} more sets", "")
    console().print(table)
