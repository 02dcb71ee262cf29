"""The commands that make a release: by a policy, or with the recipe of an earlier release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.messages import offering_best, progress_bar
from shoal.cli.outliers import ask_generalizations
from shoal.cli.parsing import (
    read_changes,
    read_generalize,
    read_limit,
    read_node,
    read_policy,
    read_request,
)
from shoal.document.terminal import print_json, say, show
from shoal.errors import UsageError
from shoal.wording import percent

if TYPE_CHECKING:
    from shoal.workflow.advice import Advice
    from shoal.workflow.release.release import Release


def note_semicolons(data: Path, output: Path, delimiter: str | None, *, bom: bool) -> None:
    """If only the input is separated by semicolons, print how to get a release with semicolons."""
    from shoal.workflow.release.spreadsheet import has_semicolons

    if delimiter is None and output.suffix.lower() == ".csv" and has_semicolons(data):
        change = "--delimiter semicolon" + " --bom" * (not bom)
        say(
            "Note: The input is separated by semicolons, the release by commas. To open the release in Excel "
            f"like the input, use {change}."
        )


_MarginOption = Annotated[
    str | None,
    typer.Option(
        help="Search with k and distinct l raised and the limit lowered by a share like `20%`, so that the "
        "recipe fits the next sample of the same population."
    ),
]
_CandidatesOption = Annotated[
    Path | None,
    typer.Option(
        "--candidates",
        help="Write the candidate nodes of the search to this file, `.csv` or `.json`: levels, "
        "suppressed records and loss of each, the best first. For `ola`, `all-minimal`, `samarati` and "
        "`incognito`.",
    ),
]
_LimitOfRecipe = Annotated[
    str | None,
    typer.Option(
        "--suppression-limit",
        help="How many records may be suppressed: `5%`, `0.05`, or a number of records.",
        show_default="the recipe's",
    ),
]
_RepairOption = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="If the recipe's levels do not satisfy the policy, raise them to those of least loss that do.",
    ),
]


def anonymize(
    data: options.Data,
    output: options.ReleaseOutput,
    files: options.FileOptions,
    reading: options.TableReading,
    display: options.Display,
    policy: options.PolicyOrGuess = None,
    known: options.Known = None,
    keep: options.Keep = None,
    k: options.GuessedK = None,
    drop: options.Drop = None,
    model: options.Models = None,
    suppression_limit: options.SuppressionLimitOption = None,
    metric: options.MetricName = None,
    algorithm: options.AlgorithmName = None,
    local: options.LocalRecoding = False,
    local_labels: options.LocalLabelsOption = None,
    node: options.NodeOrOffer = None,
    generalize: options.Generalize = None,
    interactive: options.Interactive = False,
    seconds: options.SearchSeconds = options.SEARCH_SECONDS,
    margin: _MarginOption = None,
    advice: options.WithAdvice = None,
    candidates: _CandidatesOption = None,
) -> None:
    """De-identify a table by a policy: search, recode, verify the written file, release."""
    from shoal.workflow.policy_request import check_alone
    from shoal.workflow.release.anonymize import anonymize as run

    with display.reporting():
        request: Any = None
        changes = read_changes(model, suppression_limit, metric, algorithm, local=local, labels=local_labels)
        if policy is None:
            if interactive or generalize:
                raise UsageError("needs --policy.", option="interactive" if interactive else "generalize")
            request = read_request(known, keep, k, changes)
        else:
            check_alone(known=known, keep=keep, k=k)
            request = read_generalize(read_policy(policy, changes, reading.engine), generalize)
        if candidates:
            algorithm = changes.get("algorithm", "auto") if policy is None else request.algorithm
            inputs = {} if policy is None else request.read_files
            _check_candidates(candidates, algorithm, data, output, inputs, force=files.force)
        levels, table_options = read_node(node), reading.options()
        if interactive:
            request = ask_generalizations(data, request, levels, table_options, as_json=display.as_json)
    with display.reporting(), progress_bar() as progress, offering_best(progress):
        release = run(
            data,
            request,
            drop=drop or (),
            output=output,
            node=levels,
            seconds=seconds,
            margin=margin,
            progress=progress,
            **files.options(),
            **table_options,
        )
    with display.reporting():
        if candidates and release.evaluation.candidates:
            release.write_candidates(candidates, force=files.force)
        elif candidates:
            stopped = "Note: The search was stopped before it had listed its candidates."
            say(f"{stopped} {str(candidates)!r} was not written.", stderr=True)
    in_terminal = not display.as_json and sys.stdout.isatty() and sys.stderr.isatty()
    with_advice = in_terminal if advice is None else advice
    guessed = None if policy or known else (data, request, table_options["engine"])
    if display.as_json:
        extra = {"advice": _advice_with_commands(release, sys.argv[1:], guessed)} if with_advice else {}
        print_json({**release.to_dict(), **extra})
        return
    show(release.document())
    note_semicolons(data, output, files.delimiter, bom=files.bom)
    if with_advice:
        show_advice(release, sys.argv[1:], guessed)


def _check_candidates(
    path: Path, algorithm: Any, data: Path, output: Path, files: dict[Path, str], *, force: bool
) -> None:
    """Before the search, refuse an output that cannot be written and an algorithm without candidates."""
    from shoal.workflow.candidates import check_candidates_file, check_lists_candidates

    check_lists_candidates(algorithm)
    check_candidates_file(path, force=force, table=data, output=output, inputs=files)


def _advice(release: Release, guessed: tuple[Any, ...] | None = None) -> tuple[Advice, ...]:
    """Search for advice, and add it to the report if a report is written.

    `guessed` is the table, the request and the engine of a release made without `--known` or a policy.
    """
    with progress_bar() as progress:
        advice = release.advice(progress=progress)
        if guessed:
            from shoal.workflow.advice import with_known_advice

            advice = with_known_advice(advice, release, *guessed)
    if release.report:
        from shoal.workflow.report.report import add_advice

        add_advice(release, advice)
    return advice


def _advice_with_commands(
    release: Release, arguments: Sequence[str], guessed: tuple[Any, ...] | None
) -> list[dict[str, Any]]:
    """Return each advice as plain values, with the command that makes the advised release."""
    from shoal.workflow.advice import changed_command

    return [
        entry.to_dict() | {"command": changed_command(arguments, entry)}
        for entry in _advice(release, guessed)
    ]


def show_advice(release: Release, arguments: Sequence[str], guessed: tuple[Any, ...] | None = None) -> None:
    """Print how much other choices retain, each with its drawback and its command."""
    from shoal.workflow.advice import advice_summary, changed_command, retained_text

    advice, overall = _advice(release, guessed), release.retained_overall
    say(f"\n{advice_summary(release, advice)}")
    if not advice:
        say("\nNo other choice that was tried retains more.")
        return
    say(f"\nWhat other choices retain; this release retains {percent(overall)}:")
    for entry in advice:
        say(f"  {retained_text(entry, overall)}, if {entry.change}.")
        say(f"    Drawback: {entry.drawback}.")
        say(f"    {changed_command(arguments, entry)}")


RecipeArgument = Annotated[
    Path, typer.Argument(help="The recipe of an earlier release, or its private folder.")
]


def apply(
    recipe: RecipeArgument,
    data: options.Data,
    output: options.ReleaseOutput,
    files: options.FileOptions,
    reading: options.TableReading,
    display: options.Display,
    suppression_limit: _LimitOfRecipe = None,
    repair: _RepairOption = False,
    seconds: options.SearchSeconds = options.SEARCH_SECONDS,
    local: options.LocalRecoding = False,
    local_labels: options.LocalLabelsOption = None,
) -> None:
    """Recode new data with a saved recipe; exit code 1 if the policy's models do not hold."""
    from shoal.workflow.release.anonymize import apply as run

    with display.reporting(), progress_bar() as progress:
        release = run(
            recipe,
            data,
            output=output,
            suppression_limit=read_limit(suppression_limit),
            repair=repair,
            local={"labels": local_labels} if local_labels is not None else local,
            seconds=seconds,
            progress=progress,
            **files.options(),
            **reading.options(),
        )
    display.show(release)
    if not display.as_json:
        note_semicolons(data, output, files.delimiter, bom=files.bom)
