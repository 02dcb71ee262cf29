"""The command that says what an analyst loses: a table beside its release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Data,
    EngineName,
    MemoryLimit,
    Plots,
    PolicyFile,
    Reveal,
    SparkMaster,
)
from shoal.commands.plots import prepare_plots, print_drawn
from shoal.commands.reading import read_engine, read_names
from shoal.display import console, escaped, say, show_pairs, show_table

_MOST = 10  # pairs of columns that are shown


def utility(
    data: Data,
    policy: PolicyFile,
    release: Annotated[Path, typer.Option("--release", help="The released table.")],
    target: Annotated[
        str | None,
        typer.Option(
            help="A column to predict from the quasi-identifiers; needs the extra `ml`.",
            show_default="the policy's label",
        ),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            help="Two columns whose records are counted, as `age,sex`; a name with a comma in quotes.",
            show_default="those that tell most of each other",
        ),
    ] = None,
    plots: Plots = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Say what an analyst loses: distributions, associations and a classifier, before and after."""
    from shoal.analysing.plots import save_utility
    from shoal.utility import utility as run

    with reporting(as_json, reveal):
        prepare_plots(plots)
        with progress_bar() as progress:
            found = run(
                data,
                release,
                policy,
                target=target,
                pair=read_names([pair], option="--pair") if pair is not None else None,
                engine=read_engine(engine, spark_master, memory_limit),
                memory_limit=memory_limit,
                progress=progress,
            )
        drawn = save_utility(found, plots) if plots else []
    print_drawn(found, show_utility, plots, drawn, as_json=as_json)


def show_utility(found: Any) -> None:
    """Show what is left of each column and of the pairs that told most of each other, and the classifier."""
    _show_columns(found.columns)
    if found.associations:
        most = sorted(found.associations, key=lambda one: -one.before)[:_MOST]
        pairs = [
            (" and ".join(one.columns), f"{one.before:.3f}", f"{one.after:.3f}", f"{one.change:+.3f}")
            for one in most
        ]
        title = "How much columns tell of each other, Cramer's V"
        show_table(title, ("columns", "before", "after", "change"), pairs)
    rows = {"records": f"{found.records_before:,} before, {found.records_after:,} after"}
    if found.prediction:
        for when, one in (("before", found.prediction.before), ("after", found.prediction.after)):
            rows[f"{found.prediction.target} predicted {when}"] = (
                f"{one.accuracy:.1%} right; the most frequent value is {one.majority:.1%}"
            )
    show_pairs(rows)
    for note in found.notes:
        say(note)


def _show_columns(columns: Any) -> None:
    from rich.table import Table

    table = Table(title="What is left of each column", title_justify="left")
    table.add_column("column", overflow="fold")
    for heading in ("values", "labels", "bits", "kept", "shift", "mean"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in columns:
        bits = f"{one.entropy_before:.2f} \u2192 {one.entropy_after:.2f}"
        shares = _share(one.kept_information), _share(one.suppressed_shift)
        mean = (
            f"{_mean(one.mean_before)} \u2192 {_mean(one.mean_after)}" if one.mean_before is not None else ""
        )
        table.add_row(escaped(one.column), f"{one.values:,}", f"{one.labels:,}", bits, *shares, mean)
    console().print(table)


def _share(share: float | None) -> str:
    return "?" if share is None else f"{share:.1%}"


def _mean(mean: float | None) -> str:
    return "?" if mean is None else f"{mean:,.4g}"
