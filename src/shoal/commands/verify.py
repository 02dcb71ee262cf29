"""The command that counts a release afresh, alone and beside an older release of the same table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.commands.messages import progress_bar, reporting
from shoal.commands.options import AsJson, EngineName, PolicyFile, ReleasedTable, Reveal, SparkMaster
from shoal.commands.reading import read_engine
from shoal.commands.releases import show_verification
from shoal.display import print_json, show_pairs
from shoal.errors import Note, UsageError, so_many


def verify(
    release: ReleasedTable,
    policy: PolicyFile,
    recipe: Annotated[
        Path | None,
        typer.Option(
            help="The release's recipe, which holds how often each sensitive value occurred in the whole "
            "input, for models that compare with it."
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="The whole input, for such models, instead of a recipe. Never the release itself: "
            "beside what suppression left of the input, a release can look nearer than it is."
        ),
    ] = None,
    sensitive_table: Annotated[
        Path | None,
        typer.Option(
            help="The second table of a release by `anatomy`, where it does not stand beside the release."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="An older release of the same persons: does k remain for who has both? Exit code 1 when it "
            "does not. It does not apply to different persons."
        ),
    ] = None,
    against_policy: Annotated[
        Path | None, typer.Option(help="The policy of the older release.", show_default="the same")
    ] = None,
    against_recipe: Annotated[
        Path | None,
        typer.Option(help="The recipe of the older release, where it does not stand beside it."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--input", help="The table that both releases were made from; then what remains is exact."
        ),
    ] = None,
    engine: EngineName = "auto",
    spark_master: SparkMaster = None,
    as_json: AsJson = False,
    reveal: Reveal = False,
) -> None:
    """Count a release afresh and check it against the policy's models; exit code 1 when it fails."""
    from shoal.verify import other_models
    from shoal.verify import verify as run

    with reporting(as_json, reveal), progress_bar() as progress:
        progress("verify", 0, None)
        found = run(
            release,
            policy,
            recipe=recipe,
            reference=reference,
            sensitive_table=sensitive_table,
            engine=read_engine(engine, spark_master),
        )
        if (note := other_models(release, policy, recipe)) is not None:
            warnings.warn(note, Note, stacklevel=1)
        beside = _side_by_side(
            release,
            policy,
            against,
            old_policy=against_policy,
            table=table,
            recipe=recipe,
            old_recipe=against_recipe,
            engine=read_engine(engine, spark_master),
        )
    if as_json:
        print_json(found.to_dict() | {"against": beside.to_dict() if beside else None})
    else:
        show_verification(found)
        _show_intersection(beside)
    raise typer.Exit(0 if found.verified and (beside is None or beside.holds) else 1)


def _side_by_side(release: Path, policy: Path, against: Path | None, **options: Any) -> Any:
    """Put a release beside an older one, where one is named."""
    if against is None:
        if options["old_policy"] or options["old_recipe"] or options["table"]:
            message = (
                "--against-policy, --against-recipe and --input are about an older release. Name it with "
                "--against."
            )
            raise UsageError(message)
        return None
    from shoal.successive import intersect

    return intersect(release, against, policy, **options)


def _show_intersection(found: Any) -> None:
    """Show what remains of k beside the older release."""
    if found is None:
        return
    remaining = "no record can be in both" if found.remaining is None else f"{found.remaining:,}"
    told = "exact"
    if not found.exact:
        told = "if the same persons are in both; estimated from the releases alone"
        if not found.same_recoding:
            told += ": give --input, the table that both were made from, for an exact count"
    few = f"{so_many(found.records, 'record')} in those of fewer than {found.k:,}"
    rows = {
        "k beside the other release": remaining if found.remaining is None else f"{remaining} ({told})",
        "pairs of classes": f"{found.pairs:,}; {few}",
    }
    if found.warning:
        rows["warning"] = found.warning
    if found.note:
        rows["note"] = found.note
    show_pairs(rows)
