"""The command that says how likely people are found in a table, and in its release."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, Data, EngineName, MemoryLimit, Plots, Reveal, SparkMaster
from shoal.commands.plots import prepare_plots, print_drawn
from shoal.commands.reading import read_engine, read_names
from shoal.display import say, show_table
from shoal.errors import UsageError

_SETS = 10  # of columns that are shown


def risk(
    data: Data,
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="The policy, whose quasi-identifiers are meant.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="The columns that somebody could know, as `age,sex`; may be repeated.",
            show_default="the policy's quasi-identifiers",
        ),
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="A release of the table, to see the risk before and after.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="The risk that is too high, as `0.09` or `1/11`.", show_default="1/k of the policy, or 0.2"
        ),
    ] = None,
    population_size: Annotated[
        int | None,
        typer.Option(help="The persons that the table was drawn from.", show_default="the policy's"),
    ] = None,
    sampling_share: Annotated[
        str | None,
        typer.Option(help="Or the share of them that the table holds, as `5%`.", show_default="the policy's"),
    ] = None,
    special_size: Annotated[
        int,
        typer.Option(help="Look for special uniques in sets of at most so many columns; `0`: not at all."),
    ] = 3,
    plots: Plots = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Say how likely people are found: by prosecutor, journalist and marketer; and what makes them unique."""
    from shoal.assessing.plots import risk_plots
    from shoal.plots import save
    from shoal.risk import risk as assess

    with reporting(as_json, reveal), progress_bar() as progress:
        if not columns and policy is None:
            message = (
                "Name the columns that somebody could know of a person, as --columns age,sex,zip, or give a "
                "--policy, as `shoal init` makes one."
            )
            raise UsageError(message)
        prepare_plots(plots)
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
        drawn = save(risk_plots(found), plots) if plots else []
    print_drawn(found, show_risk, plots, drawn, as_json=as_json)


def show_risk(found: Any) -> None:
    """Show the risks before and after, what makes records unique, and columns that look like identifiers."""
    from shoal.assessing.rows import risk_rows

    headings = ("measure", "before", *(("after",) if found.after else ()))
    show_table(f"Risk by {', '.join(found.columns)}", headings, risk_rows(found))
    _show_special(found.before.special)
    if found.identifiers:
        say("Columns that look like an identifier of HIPAA's Safe Harbor:")
        for name, one in found.identifiers.items():
            say(f"  {name}: {one.mark}; {one.reason}")
    for note in found.notes:
        say(note)


def _show_special(special: Any) -> None:
    if special is None or not special.sets:
        return
    many = "single columns" if special.size == 1 else f"sets of at most {special.size} columns"
    rows = [(", ".join(columns), f"{records:,}") for columns, records in special.sets[:_SETS]]
    more = len(special.sets) - _SETS
    if more > 0:
        rows.append((f"{more:,} more sets", ""))
    headings = ("columns, none of which can be left out", "records")
    show_table(f"What makes records unique: {many}", headings, rows)
