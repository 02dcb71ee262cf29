"""The command that says what an analyst loses: a table beside its release."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Data,
    EngineName,
    MemoryLimit,
    PolicyFile,
    Reveal,
    SparkMaster,
    read_engine,
)
from shoal.display import console, escaped, print_json, show_pairs

_MOST = 10  # pairs of columns that are shown


def utility(
    data: Data,
    policy: PolicyFile,
    release: Annotated[Path, typer.Option("--release", help="The released table.")],
    target: Annotated[
        str | None, typer.Option(help="A column to predict; the policy's label without it. Needs shoal[ml].")
    ] = None,
    pair: Annotated[
        str | None, typer.Option(help="Two columns whose records are counted, as age,sex.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for plots, PNG and SVG.")] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Say what an analyst loses: distributions, associations and a classifier, before and after."""
    from shoal.plots import prepare
    from shoal.utility import utility as run
    from shoal.utility_plots import save_utility

    with reporting(as_json, reveal):
        if plots:
            prepare(plots)
        with progress_bar() as progress:
            found = run(
                data,
                release,
                policy,
                target=target,
                pair=next(csv.reader([pair], skipinitialspace=True), []) if pair is not None else None,
                engine=read_engine(engine, spark_master, memory_limit),
                memory_limit=memory_limit,
                progress=progress,
            )
        drawn = save_utility(found, plots) if plots else []
    if as_json:
        print_json(found.to_dict())
        return
    show_utility(found)
    if drawn:
        show_pairs({"plots": f"{plots} ({len(drawn)} files)"})


def show_utility(found: Any) -> None:
    """Show what is left of each column and of the pairs that told most of each other, and the classifier."""
    from rich.table import Table

    screen = console()
    table = Table(title="What is left of each column", title_justify="left")
    table.add_column("column", overflow="fold")
    for heading in ("values", "labels", "bits", "kept", "shift", "mean"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.columns:
        bits = f"{one.entropy_before:.2f} \u2192 {one.entropy_after:.2f}"
        shares = _share(one.kept_information), _share(one.suppressed_shift)
        mean = (
            f"{_mean(one.mean_before)} \u2192 {_mean(one.mean_after)}" if one.mean_before is not None else ""
        )
        table.add_row(escaped(one.column), f"{one.values:,}", f"{one.labels:,}", bits, *shares, mean)
    screen.print(table)
    if found.associations:
        title = "How much columns tell of each other, Cramer's V"
        table = Table(title=title, title_justify="left")
        table.add_column("columns")
        for heading in ("before", "after", "change"):
            table.add_column(heading, justify="right")
        for one in sorted(found.associations, key=lambda one: -one.before)[:_MOST]:
            names = escaped(" and ".join(one.columns))
            table.add_row(names, f"{one.before:.3f}", f"{one.after:.3f}", f"{one.change:+.3f}")
        screen.print(table)
    rows = {"records": f"{found.records_before:,} before, {found.records_after:,} after"}
    if found.prediction:
        for when, one in (("before", found.prediction.before), ("after", found.prediction.after)):
            rows[f"{found.prediction.target} predicted {when}"] = (
                f"{one.accuracy:.1%} right; the most frequent value is {one.majority:.1%}"
            )
    show_pairs(rows)
    for note in found.notes:
        screen.print(note, markup=False, highlight=False, soft_wrap=True)


def _share(share: float | None) -> str:
    return "?" if share is None else f"{share:.1%}"


def _mean(mean: float | None) -> str:
    return "?" if mean is None else f"{mean:,.4g}"
