"""The command that compares searches, k, limits and metrics on one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.comparisons import show_comparison
from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import (
    Data,
    EngineName,
    Force,
    MemoryLimit,
    Models,
    NodeLevels,
    Plots,
    PolicyFile,
    Reveal,
    SparkMaster,
)
from shoal.commands.plots import prepare_plots, where_drawn
from shoal.commands.reading import (
    read_engine,
    read_levels,
    read_limits,
    read_numbers,
    read_plugins,
    read_policy,
)
from shoal.display import print_json, say, show_pairs


def compare(
    data: Data,
    policy: PolicyFile,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="Searches, as `ola,contour` or `datafly:ties=random`; may be repeated.",
            show_default="all, those that need a label only where the policy has one",
        ),
    ] = None,
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k",
            help="Values of k, as `2..15` or `2,5,10`, for the policy's k-anonymity; may be repeated.",
            show_default="the policy's",
        ),
    ] = None,
    suppression_limit: Annotated[
        list[str] | None,
        typer.Option(
            help="Limits, as `1%,5%`, `0.05` or a number of records; may be repeated.",
            show_default="the policy's",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Metrics, as `precision,height` or `coverage:aggregate=geometric`; may be repeated.",
            show_default="the policy's",
        ),
    ] = None,
    model: Models = None,
    node: NodeLevels = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the rows go; its ending, `.csv` or `.json`, is its format. What is finished waits in "
            "`OUTPUT.part`.",
        ),
    ] = None,
    plots: Plots = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Stop each search after so many seconds, with the best node so far (`proven` is then "
            "`acceptable`)."
        ),
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON list of rows to stdout and nothing else there.")
    ] = False,
    reveal: Reveal = False,
) -> None:
    """Compare searches: what each finds and what it costs, for every k, limit and metric."""
    from shoal.compare import compare as run
    from shoal.comparing.plots import comparison_plots
    from shoal.comparison import check_output
    from shoal.plots import save

    journal = output.with_name(f"{output.name}.part") if output else None
    with reporting(as_json, reveal):
        if output:
            check_output(output, force=force, table=data)
        prepare_plots(plots)
        with _told_when_stopped(journal, as_json=as_json), progress_bar() as bar:
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
        if output and journal:
            found.write(output, force=force)
            journal.unlink(missing_ok=True)
        drawn = save(comparison_plots(found.rows), plots) if plots else []
    _show(found, as_json=as_json)
    where = {"rows": str(output)} if output else {}
    if drawn:
        where["plots"] = where_drawn(plots, drawn)
    if where and not as_json:
        show_pairs(where)


@contextmanager
def _told_when_stopped(journal: Path | None, *, as_json: bool) -> Iterator[None]:
    """Say what a comparison that is stopped leaves behind, and end with 130."""
    from shoal.comparison import Stopped

    try:
        yield
    except Stopped as stop:
        done = len(stop.finished.rows)
        if journal:
            kept = f"{done:,} of {stop.total:,} rows are kept in {str(journal)!r}. The same command resumes."
            say(f"Stopped: {kept}", stderr=True)
        else:
            _show(stop.finished, as_json=as_json)
            lost = f"{done:,} of {stop.total:,} rows. With --output they would be kept, to go on with."
            say(f"Stopped after {lost}", stderr=True)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        held = f" {str(journal)!r} is as it was." if journal and journal.exists() else ""
        say(f"Stopped before the first search.{held}", stderr=True)
        raise typer.Exit(130) from None


def _show(found: Any, *, as_json: bool) -> None:
    print_json(found.to_dicts()) if as_json else show_comparison(found.rows)
