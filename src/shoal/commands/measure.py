"""The command that says what a table satisfies as it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, Data, EngineName, MemoryLimit, Reveal, SparkMaster
from shoal.commands.reading import read_engine, read_names
from shoal.display import print_json, say, show_pairs, show_table
from shoal.errors import UsageError, so_many

# What each measure is called, and how it compares.
_ROWS = {
    "distinct_l": ("distinct l-diversity", "l"),
    "entropy_l": ("entropy l-diversity", "l"),
    "recursive_c": ("recursive (c,l)-diversity", "c above"),
    "t_equal": ("t-closeness, equal distance", "t"),
    "t_ordered": ("t-closeness, ordered distance", "t"),
    "alpha": ("(alpha,k)-anonymity", "alpha"),
    "basic_beta": ("basic beta-likeness", "beta"),
    "enhanced_beta": ("enhanced beta-likeness", "beta"),
    "delta": ("delta-disclosure", "delta above"),
    "delta_present_only": ("delta-disclosure, present only", "delta above"),
}


def measure(
    data: Data,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns whose combinations are the classes, as `age,sex,zip`; a name with a comma in "
            "quotes.",
            show_default="the policy's quasi-identifiers",
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="Sensitive columns, as `illness,ward`; may be repeated; without any only the sizes of "
            "classes are measured.",
            show_default="the policy's",
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="A policy whose columns are taken, a YAML file.")
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Say what a table satisfies as it is: k, and for each sensitive column l, t, alpha, beta and delta."""
    from shoal.measure import measure as run

    with reporting(as_json, reveal), progress_bar() as progress:
        if columns is None and policy is None:
            message = "Name the columns that make classes, as --columns age,sex, or give the --policy."
            raise UsageError(message)
        progress("measure", 0, None)
        found = run(
            data,
            () if columns is None else read_names([columns]),
            read_names(sensitive or (), option="--sensitive"),
            policy=policy,
            engine=read_engine(engine, spark_master, memory_limit),
            memory_limit=memory_limit,
        )
    print_json(found.to_dict()) if as_json else show_measurement(found)


def show_measurement(found: Any) -> None:
    """Show the classes, and a table of what each sensitive column satisfies."""
    unique = found.unique_records
    show_pairs(
        {
            "records": f"{found.records:,}",
            "classes": f"{found.classes:,}, the smallest of {so_many(found.k, 'record')}",
            "k": f"{found.k:,}",
            "unique records": f"{unique:,} ({unique / found.records:.1%})",
        }
    )
    if not found.sensitive:
        return
    rows = []
    for name, (model, sign) in _ROWS.items():
        cells = [_cell(getattr(one, name), least=name == "entropy_l") for one in found.sensitive]
        if name == "recursive_c":  # for the l of each column
            cells = [f"{cell} (l={one.distinct_l})" for cell, one in zip(cells, found.sensitive, strict=True)]
        rows.append((model, sign, *cells))
    headings = ("model", "", *[one.column for one in found.sensitive])
    show_table("What every class satisfies", headings, rows, left=2)
    for one in found.sensitive:
        for note in one.notes:
            say(f"{one.column}: {note}")


def _cell(value: float | None, *, least: bool) -> str:
    """Write four decimals, rounded to the side on which the model holds."""
    if value is None or isinstance(value, int):
        return "none" if value is None else f"{value:,}"
    parts = math.floor(value * 10_000 + 1e-6) if least else math.ceil(value * 10_000 - 1e-6)
    return f"{parts / 10_000:,.4f}"
