"""The commands that assess a table or its release: measure, risk, utility and attack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.messages import progress_bar
from shoal.cli.options import Data, Display, EngineChoice, Plots, PolicyFile, ReleasedTable, TableReading
from shoal.cli.parsing import check_plots, plot_summary, read_names
from shoal.errors import UsageError

_MeasuredColumns = Annotated[
    str | None,
    typer.Option(
        help="The columns whose combinations are the classes, such as `age,sex,zip`. Quote a name that "
        "contains a comma.",
        show_default="the policy's quasi-identifiers",
    ),
]
_MeasuredSensitive = Annotated[
    list[str] | None,
    typer.Option(
        help="Sensitive columns, such as `illness,ward`; may be repeated. Without any, only the sizes of "
        "classes are measured.",
        show_default="the policy's",
    ),
]
_MeasurePolicy = Annotated[
    Path | None, typer.Option("--policy", "-p", help="A policy, a YAML file, that defines the columns.")
]


def measure(
    data: Data,
    reading: TableReading,
    display: Display,
    columns: _MeasuredColumns = None,
    sensitive: _MeasuredSensitive = None,
    policy: _MeasurePolicy = None,
) -> None:
    """Report the k of a table as it is, and the l, t, alpha, beta and delta of each sensitive column."""
    from shoal.workflow.measure import measure as run

    with display.reporting(), progress_bar() as progress:
        if columns is None and policy is None:
            raise UsageError(
                "Name the columns that define classes, such as --columns age,sex, or give --policy."
            )
        progress("measure", 0, None)
        result = run(
            data,
            () if columns is None else read_names([columns]),
            read_names(sensitive or (), option="--sensitive"),
            policy=policy,
            **reading.options(),
        )
    display.show(result)


_RiskPolicy = Annotated[
    Path | None, typer.Option("--policy", "-p", help="The policy, which defines the quasi-identifiers.")
]
_RiskColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="The columns that an outsider could know, such as `age,sex`; may be repeated.",
        show_default="the policy's quasi-identifiers",
    ),
]
_ReleaseBesideTable = Annotated[
    Path | None, typer.Option(help="A release of the table, to see the risk before and after.")
]
ThresholdOption = Annotated[
    str | None,
    typer.Option(
        help="The risk threshold, such as `0.09` or `1/11`.", show_default="1/k of the policy, or 0.2"
    ),
]
PopulationSizeOption = Annotated[
    int | None,
    typer.Option(help="The number of persons that the table was drawn from.", show_default="the policy's"),
]
SamplingShareOption = Annotated[
    str | None,
    typer.Option(help="Or the table's share of them, such as `5%`.", show_default="the policy's"),
]
SpecialSizeOption = Annotated[
    int,
    typer.Option(help="Search for special uniques in sets of at most this many columns; `0`: no search."),
]


def risk(
    data: Data,
    reading: TableReading,
    display: Display,
    policy: _RiskPolicy = None,
    columns: _RiskColumns = None,
    release: _ReleaseBesideTable = None,
    threshold: ThresholdOption = None,
    population_size: PopulationSizeOption = None,
    sampling_share: SamplingShareOption = None,
    special_size: SpecialSizeOption = 3,
    plots: Plots = None,
) -> None:
    """Estimate how likely a prosecutor, journalist or marketer finds people, and what makes them unique."""
    from shoal.document.figures import save
    from shoal.workflow.risk.risk import risk as assess

    with display.reporting(), progress_bar() as progress:
        if not columns and policy is None:
            raise UsageError(
                "Name the columns that somebody could know, such as --columns age,sex,zip, or give a "
                "--policy, which `shoal init` can write."
            )
        check_plots(plots)
        assessment = assess(
            data,
            policy,
            columns=partial(read_names, columns) if columns else None,
            release=release,
            threshold=threshold,
            population_size=population_size,
            sampling_share=sampling_share,
            special_size=special_size,
            progress=progress,
            **reading.options(),
        )
        document = assessment.document()
        plot_files = save(document.figures, plots) if plots else []
    display.show_drawn(assessment, document, plot_summary(plots, plot_files))


ReleaseArgument = Annotated[Path | None, typer.Argument(help="The released table.", show_default=False)]
_ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="The released table, instead of the argument.")
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        help="A column to predict from the quasi-identifiers; needs the extra `ml`.",
        show_default="the policy's label",
    ),
]
PairOption = Annotated[
    str | None,
    typer.Option(
        help="Two columns to cross-tabulate, such as `age,sex`. Quote a name that contains a comma.",
        show_default="the most strongly associated pair",
    ),
]


def utility(
    data: Data,
    policy: PolicyFile,
    reading: TableReading,
    display: Display,
    release: ReleaseArgument = None,
    release_option: _ReleaseOption = None,
    target: TargetOption = None,
    pair: PairOption = None,
    plots: Plots = None,
) -> None:
    """Show what an analyst loses: distributions, associations and a classifier, before and after."""
    from shoal.workflow.utility.figures import save_utility
    from shoal.workflow.utility.utility import utility as run

    with display.reporting():
        released = _one_of(release, release_option)
        check_plots(plots)
        with progress_bar() as progress:
            result = run(
                data,
                released,
                policy,
                target=target,
                pair=read_names([pair], option="--pair") if pair is not None else None,
                progress=progress,
                **reading.options(),
            )
        plot_files = save_utility(result, plots) if plots else []
    display.show_drawn(result, result.document(pair=pair is not None), plot_summary(plots, plot_files))


def _one_of(argument: Path | None, option: Path | None) -> Path:
    """Return the path of the released table. It must be given once: as the argument or as the option."""
    named = [path for path in (argument, option) if path is not None]
    if len(named) != 1:
        raise UsageError("Name the released table once: shoal utility DATA RELEASE --policy POLICY.")
    return named[0]


_MOST_PERSONS = 20  # maximum number of persons that are listed


KnownOption = Annotated[Path, typer.Option(help="The table of known data: one row per person.")]
OnOption = Annotated[
    str,
    typer.Option(
        help="The known columns, such as `age,sex`, or `age=years` if the known table names one "
        "differently. Quote a name that contains a comma."
    ),
]
_AttackPolicy = Annotated[
    Path | None,
    typer.Option("--policy", "-p", help="The policy, whose hierarchies define what labels cover."),
]
_AttackRecipe = Annotated[
    Path | None, typer.Option(help="The release's recipe, or its private folder; instead of the policy.")
]
_LeastMatches = Annotated[
    int | None,
    typer.Option(help="The least records that a person should match.", show_default="the policy's, else 5"),
]
_AttackSensitive = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns about which something may be learnt, such as `illness,ward`; may be repeated.",
        show_default="the policy's",
    ),
]
_RevealPersons = Annotated[
    bool,
    typer.Option(
        help=f"Show up to {_MOST_PERSONS} persons who are singled out, with what is learnt about them, and "
        "let error messages show values of the data."
    ),
]


@dataclass(frozen=True)
class _PersonsDisplay(Display):
    reveal: _RevealPersons = False


def attack(
    release: ReleasedTable,
    known: KnownOption,
    on: OnOption,
    reading: EngineChoice,
    display: _PersonsDisplay,
    policy: _AttackPolicy = None,
    recipe: _AttackRecipe = None,
    k: _LeastMatches = None,
    sensitive: _AttackSensitive = None,
) -> None:
    """Join a release with known persons; exit code 1 if one has fewer than k matches, or all have none."""
    from shoal.workflow.attack.attack import attack as run

    with display.reporting(), progress_bar() as progress:
        progress("attack", 0, None)
        result = run(
            release,
            known,
            read_names([on], option="--on"),
            policy=policy,
            recipe=recipe,
            k=k,
            sensitive=read_names(sensitive or (), option="--sensitive"),
            engine=reading.create(),
            reveal=_MOST_PERSONS if display.reveal else 0,
        )
    display.show(result)
    raise typer.Exit(1 if result.below_k or not result.conclusive else 0)
