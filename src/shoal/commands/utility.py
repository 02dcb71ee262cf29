"""The command that says what an analyst loses: a table beside its release."""

from __future__ import annotations

from functools import partial
from math import isinf
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
from shoal.display import say, show_pairs, show_table
from shoal.errors import UsageError

_MOST = 10  # pairs of columns that are shown
_CELLS = 15  # pairs of labels that are shown


def utility(
    data: Data,
    policy: PolicyFile,
    release: Annotated[Path | None, typer.Argument(help="The released table.", show_default=False)] = None,
    release_option: Annotated[
        Path | None, typer.Option("--release", help="The released table, instead of the argument.")
    ] = None,
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
        released = _one_of(release, release_option)
        prepare_plots(plots)
        with progress_bar() as progress:
            found = run(
                data,
                released,
                policy,
                target=target,
                pair=read_names([pair], option="--pair") if pair is not None else None,
                engine=read_engine(engine, spark_master, memory_limit),
                memory_limit=memory_limit,
                progress=progress,
            )
        drawn = save_utility(found, plots) if plots else []
    show = partial(show_utility, pair=pair is not None)
    print_drawn(found, show, plots, drawn, as_json=as_json)


def _one_of(argument: Path | None, option: Path | None) -> Path:
    """Return the released table, which is named once."""
    named = [path for path in (argument, option) if path is not None]
    if len(named) != 1:
        message = "Name the released table once: shoal utility DATA RELEASE --policy POLICY."
        raise UsageError(message)
    return named[0]


def show_utility(found: Any, *, pair: bool = False) -> None:
    """Show what is left of each column and of the pairs that told most of each other, and the classifier.

    With `pair`, show also how many records have which labels of the pair.
    """
    _show_columns(found.columns)
    if found.associations:
        most = sorted(found.associations, key=lambda one: -one.before)[:_MOST]
        pairs = [
            (" and ".join(one.columns), f"{one.before:.3f}", f"{one.after:.3f}", f"{one.change:+.3f}")
            for one in most
        ]
        title = "How much columns tell of each other, Cramer's V"
        show_table(title, ("columns", "before", "after", "change"), pairs)
    if pair and found.contingency:
        _show_pair(found.contingency)
    rows = {"records": f"{found.records_before:,} before, {found.records_after:,} after"}
    if found.prediction:
        for when, one in (("before", found.prediction.before), ("after", found.prediction.after)):
            rows[f"{found.prediction.target} predicted {when}"] = (
                f"{one.accuracy:.1%} right; the most frequent value is {one.majority:.1%}"
            )
    show_pairs(rows)
    for note in found.notes:
        say(note)


def _show_pair(found: Any) -> None:
    """Show the labels of a pair that most records of the release have together."""
    from shoal.analysing.bars import shown

    rows = []
    for one, label in enumerate(map(shown, found.rows)):
        for other, across in enumerate(map(shown, found.across)):
            before = found.before[one][other] if found.before else None
            if before or found.after[one][other]:
                rows.append((label, across, before, found.after[one][other]))
    rows = sorted(rows, key=lambda row: (-row[3], -(row[2] or 0)))[:_CELLS]
    told = [(*row[:2], "?" if row[2] is None else f"{row[2]:,}", f"{row[3]:,}") for row in rows]
    title = "Records by {} and {}".format(*found.columns)
    show_table(title, (*found.columns, "before", "after"), told, left=2)
    left = sum(map(sum, found.after)) - sum(row[3] for row in rows)
    if left:
        say(f"{left:,} of the records after have other labels; --json and --plots tell more of them.")


def _show_columns(columns: Any) -> None:
    from shoal.analysing.bars import number

    rows = []
    for one in columns:
        values = f"{one.values:,} \u2192 {one.labels:,}"
        bits = f"{one.entropy_before:.2f} \u2192 {one.entropy_after:.2f}"
        shares = _share(one.kept_information), _share(one.suppressed_shift)
        means = f"{number(one.mean_before)} \u2192 {number(one.mean_after)}"
        mean = means if one.mean_before is not None else ""
        rows.append((one.column, values, bits, *shares, mean))
    show_table("What is left of each column", ("column", "values", "bits", "kept", "shift", "mean"), rows)
    open_ones = [one.column for one in columns if one.mean_after is not None and _open_bands(one)]
    if open_ones:
        say(f"In the mean of {', '.join(open_ones)}, open bands count as their end.")


def _open_bands(column: Any) -> bool:
    """Tell whether a label of a column, as 90+ or <18, has one end only."""
    from shoal.analysing.labels import ends_of, with_point

    labels = with_point([one.label for one in column.records if not one.unknown])
    return any(isinf(end) for label in labels for end in ends_of(label) or ())


def _share(share: float | None) -> str:
    return "?" if share is None else f"{share:.1%}"
