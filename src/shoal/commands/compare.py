"""The command that compares searches, k, limits and metrics on one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    AsJson,
    Data,
    EngineName,
    Force,
    MemoryLimit,
    Models,
    NodeLevels,
    PolicyFile,
    Reveal,
    SparkMaster,
    read_engine,
    read_levels,
    read_limits,
    read_numbers,
    read_plugins,
    read_policy,
)
from shoal.display import console, print_json, show_comparison, show_pairs


def compare(
    data: Data,
    policy: PolicyFile,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="Searches, as ola,contour or datafly:ties=random; all without it. May be repeated."
        ),
    ] = None,
    k: Annotated[
        list[str] | None, typer.Option("--k", help="Values of k, as 2..15 or 2,5,10. May be repeated.")
    ] = None,
    suppression_limit: Annotated[
        list[str] | None, typer.Option(help="Limits, as 1%,5% or a number of records. May be repeated.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Losses to minimize, as precision,height. May be repeated.")
    ] = None,
    model: Models = None,
    node: NodeLevels = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the rows go: .csv or .json.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for plots, PNG and SVG.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop each search after so many seconds.")] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Compare searches: what each finds and what it costs, for every k, limit and metric."""
    from shoal.compare import compare as run
    from shoal.comparison import Stopped, check_output
    from shoal.comparison_plots import comparison_plots
    from shoal.plots import prepare, save

    journal = output.with_name(f"{output.name}.part") if output else None
    with reporting(as_json, reveal):
        if output:
            check_output(output, force=force, table=data)
        if plots:
            prepare(plots)
        try:
            with progress_bar() as bar:
                found = run(
                    data,
                    read_policy(policy, model, None, None, None),
                    algorithms=read_plugins(algorithm),
                    k=read_numbers(k),
                    suppression_limits=read_limits(suppression_limit),
                    metrics=read_plugins(metric),
                    node=read_levels(node),
                    journal=journal,
                    engine=read_engine(engine, spark_master, memory_limit),
                    memory_limit=memory_limit,
                    seconds=seconds,
                    progress=bar,
                )
        except Stopped as stop:
            if not journal:
                _show(stop.finished, as_json)
            _tell_what_is_kept(journal, len(stop.finished.rows), stop.total)
            raise typer.Exit(130) from None
        except KeyboardInterrupt:
            held = f" {str(journal)!r} is as it was." if journal and journal.exists() else ""
            _say(f"Stopped before the first search.{held}")
            raise typer.Exit(130) from None
        if output and journal:
            found.write(output, force=force)
            journal.unlink(missing_ok=True)
        drawn = save(comparison_plots(found.rows), plots) if plots else []
    _show(found, as_json)
    where = {"rows": str(output)} if output else {}
    if drawn:
        where["plots"] = f"{plots} ({len(drawn)} files)"
    if where and not as_json:
        show_pairs(where)


def _show(found: Any, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dicts())
    else:
        show_comparison(found.rows)


def _tell_what_is_kept(journal: Path | None, done: int, total: int) -> None:
    """Say what a stopped comparison leaves behind."""
    if journal:
        _say(f"Stopped: {done} of {total} rows are kept in {str(journal)!r}. The same command resumes.")
    else:
        _say(f"Stopped after {done} of {total} rows. With --output they would be kept, to go on with.")


def _say(text: str) -> None:
    console(stderr=True).print(text, markup=False, highlight=False)
