"""The command that compares searches, k, limits and metrics on one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    engine: EngineName = "duckdb",
    memory_limit: MemoryLimit = None,
    force: Force = False,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Compare searches: what each finds and what it costs, for every k, limit and metric."""
    from shoal.compare import compare as run
    from shoal.comparison import check_output
    from shoal.comparison_plots import comparison_plots
    from shoal.plots import prepare, save

    journal = output.with_name(f"{output.name}.part") if output else None
    kept: list[tuple[int, int | None]] = []
    with reporting(as_json, reveal):
        if output:
            check_output(output, force=force, table=data)
        if plots:
            prepare(plots)
        try:
            with progress_bar() as bar:

                def tell(phase: str, done: int, total: int | None) -> None:
                    if phase == "compare":
                        kept[:] = [(done, total)]
                    bar(phase, done, total)

                found = run(
                    data,
                    read_policy(policy, model, None, None, None),
                    algorithms=read_plugins(algorithm),
                    k=read_numbers(k),
                    suppression_limits=read_limits(suppression_limit),
                    metrics=read_plugins(metric),
                    node=read_levels(node),
                    journal=journal,
                    engine=engine,
                    memory_limit=memory_limit,
                    seconds=seconds,
                    progress=tell,
                )
        except KeyboardInterrupt:
            if journal:
                _tell_what_is_kept(journal, kept)
                raise typer.Exit(130) from None
            raise
        if output and journal:
            found.write(output, force=force)
            journal.unlink(missing_ok=True)
        drawn = save(comparison_plots(found.rows), plots) if plots else []
    if as_json:
        print_json(found.to_dicts())
        return
    show_comparison(found.rows)
    where = {"rows": str(output)} if output else {}
    if drawn:
        where["plots"] = f"{plots} ({len(drawn)} files)"
    if where:
        show_pairs(where)


def _tell_what_is_kept(journal: Path, kept: list[tuple[int, int | None]]) -> None:
    """Say what a stopped comparison leaves behind."""
    told = "Stopped before the table was counted."
    if kept:
        done, total = kept[0]
        told = f"Stopped: {done} of {total} rows are kept in {str(journal)!r}. The same command resumes."
    console(stderr=True).print(told, markup=False, highlight=False)
