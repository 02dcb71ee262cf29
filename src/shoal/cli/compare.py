"""The command that compares searches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.messages import progress_bar, stopped
from shoal.cli.parsing import (
    check_plots,
    plot_summary,
    read_changes,
    read_levels,
    read_limits,
    read_names,
    read_numbers,
    read_plugins,
    read_policy,
)
from shoal.document.terminal import print_json, say, show, show_facts
from shoal.errors import Note, UsageError

AlgorithmOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Searches, such as `ola,contour` or `datafly:ties=random`; may be repeated.",
        show_default="all; those that need a label only if the policy has one",
    ),
]
_KOption = Annotated[
    list[str] | None,
    typer.Option(
        "--k",
        help="Values of k, such as `2..15` or `2,5,10`, for the policy's k-anonymity; may be repeated.",
        show_default="the policy's",
    ),
]
_SuppressionLimitOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Limits, such as `1%,5%`, `0.05` or a number of records; may be repeated.",
        show_default="the policy's",
    ),
]
_MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Metrics, such as `precision,height` or `coverage:aggregate=geometric`; may be repeated.",
        show_default="the policy's",
    ),
]
_OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The output file; its extension, `.csv` or `.json`, sets the format. Finished rows are kept in "
        "`OUTPUT.part` until all are done.",
    ),
]
_CandidatesOption = Annotated[
    bool,
    typer.Option(
        "--candidates",
        help="List, in JSON and CSV, the 100 best candidate nodes of each search: levels, "
        "suppressed records and loss.",
    ),
]
_PartitionsOption = Annotated[
    str | None,
    typer.Option(
        help="With --plots: two quasi-identifiers, such as `age,zip`, to draw one-dimensional cuts and the "
        "multidimensional cuts of mondrian. The picture shows values of the table.",
    ),
]
AsJsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON list of rows to stdout and nothing else there.")
]


@dataclass(frozen=True)
class _Display(options.Display):
    as_json: AsJsonOption = False

    def show(self, result: Any) -> None:
        """Print the rows of a comparison as JSON, or its document."""
        print_json(result.to_dicts()) if self.as_json else show(result.document())


def compare(
    data: options.Data,
    policy: options.PolicyFile,
    reading: options.TableReading,
    display: _Display,
    algorithm: AlgorithmOption = None,
    k: _KOption = None,
    suppression_limit: _SuppressionLimitOption = None,
    metric: _MetricOption = None,
    model: options.Models = None,
    local: options.LocalRecoding = False,
    local_labels: options.LocalLabelsOption = None,
    node: options.NodeLevels = None,
    candidates: _CandidatesOption = False,
    output: _OutputOption = None,
    plots: options.Plots = None,
    partitions: _PartitionsOption = None,
    seconds: options.SearchSeconds = options.SEARCH_SECONDS,
    force: options.Force = False,
) -> None:
    """Compare searches by result and cost, for every k, limit and metric."""
    from shoal.workflow.compare.compare import compare as run
    from shoal.workflow.compare.comparison import check_output

    journal = output.with_name(f"{output.name}.part") if output else None
    with display.reporting():
        changes = read_changes(model, local=local, labels=local_labels)
        chosen = read_policy(policy, changes, reading.engine)
        if output:
            check_output(output, force=force, table=data, inputs=chosen.read_files)
        pair = _pair(partitions, plots, chosen)
        check_plots(plots)
        axes = _axes(algorithm, k, suppression_limit, metric)
        axes |= {"node": read_levels(node), "candidates": candidates, "seconds": seconds, **reading.options()}
        with _report_when_stopped(journal, display), progress_bar() as bar:
            comparison = run(data, chosen, **axes, journal=journal, progress=bar)
        if output and journal:
            comparison.write(output, force=force)
            _remove(journal)
        plot_files = _save_figures(comparison, plots) if plots else []
        if plots and pair:
            plot_files += _draw_partitions(data, chosen, pair, reading.create(), seconds, plots)
    display.show(comparison)
    if not display.as_json:
        _show_files(output, plot_summary(plots, plot_files))


def _axes(
    algorithm: list[str] | None, k: list[str] | None, limit: list[str] | None, metric: list[str] | None
) -> dict[str, Any]:
    return {
        "algorithms": read_plugins(algorithm),
        "k": read_numbers(k),
        "suppression_limits": read_limits(limit),
        "metrics": read_plugins(metric),
    }


def _save_figures(comparison: Any, folder: Path) -> list[Path]:
    from shoal.document.figures import save

    return save(comparison.document().figures, folder)


def _show_files(rows: Path | None, plots: str | None) -> None:
    files = {name: str(path) for name, path in (("rows", rows), ("plots", plots)) if path}
    if files:
        show_facts(files)


def _draw_partitions(
    data: Path, policy: Any, pair: list[str], engine: Any, seconds: float | None, folder: Path
) -> list[Path]:
    from shoal.document.figures import save
    from shoal.workflow.compare.partitions import draw_partitions, partition_plot

    picture = partition_plot(data, policy, pair, engine=engine, seconds=seconds)
    return save([picture], folder, drawing=draw_partitions)


def _pair(partitions: str | None, plots: Path | None, policy: Any) -> list[str] | None:
    """Read the two columns of a plot of partitions, before any search."""
    if partitions is None:
        return None
    if plots is None:
        raise UsageError("--partitions goes with --plots, which names the folder of the picture.")
    from shoal.workflow.compare.partitions import check_pair

    names = read_names([partitions], policy.roles.quasi_identifiers, option="--partitions")
    check_pair(policy, names)
    return names


def _remove(journal: Path) -> None:
    """Remove the journal of a comparison whose rows are written. If this fails, the next run tries again."""
    try:
        journal.unlink(missing_ok=True)
    except OSError as error:
        message = f"The rows are written, but {str(journal)!r} cannot be removed: {error.strerror}."
        warnings.warn(message, Note, stacklevel=2)


@contextmanager
def _report_when_stopped(journal: Path | None, display: _Display) -> Iterator[None]:
    """If the comparison is stopped, print which results are saved, and exit with code 130."""
    from shoal.workflow.compare.comparison import Stopped

    try:
        yield
    except Stopped as stop:
        done = len(stop.finished.rows)
        if journal:
            message = (
                f"{done:,} of {stop.total:,} rows are kept in {str(journal)!r}. The same command resumes."
            )
            raise stopped(f"Stopped: {message}", as_json=display.as_json) from None
        display.show(stop.finished)
        lost = f"{done:,} of {stop.total:,} rows. With --output they would be kept, to resume from."
        say(f"Stopped after {lost}", stderr=True)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        journal_note = f" {str(journal)!r} was not changed." if journal and journal.exists() else ""
        text = f"Stopped before the first search.{journal_note or ' Nothing was written.'}"
        raise stopped(text, as_json=display.as_json) from None
