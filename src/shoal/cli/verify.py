"""The command that checks a release, alone and together with an older release of the same table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.messages import progress_bar
from shoal.cli.options import Display, EngineChoice, PolicyFile, ReleasedTable
from shoal.document.terminal import print_json, show
from shoal.errors import Note, UsageError

_RecipeOption = Annotated[
    Path | None,
    typer.Option(
        help="The release's recipe. It states how often each sensitive value occurred in the whole input, "
        "which some models compare with."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        help="The whole input, for the same models. Do not give the release: it lacks the suppressed "
        "records, so classes can seem closer to it than to the input. With the recipe, the persons of a "
        "`unit` column that the release does not have are counted, too."
    ),
]
SensitiveTableOption = Annotated[
    Path | None,
    typer.Option(help="The second table of a release by `anatomy`, if it is not next to the release."),
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(
        help="An older release of the same persons. Checks that k also holds for someone who has both "
        "releases; exit code 1 if not. Do not use it for releases of different persons."
    ),
]
AgainstPolicyOption = Annotated[
    Path | None, typer.Option(help="The policy of the older release.", show_default="the same")
]
AgainstRecipeOption = Annotated[
    Path | None,
    typer.Option(help="The recipe of the older release, if it is not next to it."),
]
TableOption = Annotated[
    Path | None,
    typer.Option("--input", help="The table that both releases were made from; it makes the result exact."),
]


def verify(
    release: ReleasedTable,
    policy: PolicyFile,
    reading: EngineChoice,
    display: Display,
    recipe: _RecipeOption = None,
    reference: ReferenceOption = None,
    sensitive_table: SensitiveTableOption = None,
    against: AgainstOption = None,
    against_policy: AgainstPolicyOption = None,
    against_recipe: AgainstRecipeOption = None,
    table: TableOption = None,
) -> None:
    """Count the classes of a release and check them against the policy's models; exit code 1 if one fails."""
    from shoal.workflow.verify import other_models
    from shoal.workflow.verify import verify as run

    with display.reporting(), progress_bar() as progress:
        progress("verify", 0, None)
        verification = run(
            release,
            policy,
            recipe=recipe,
            reference=reference,
            sensitive_table=sensitive_table,
            engine=reading.create(),
        )
        if (note := other_models(release, policy, recipe)) is not None:
            warnings.warn(note, Note, stacklevel=1)
        intersection = _intersection(
            release,
            policy,
            against,
            old_policy=against_policy,
            table=table,
            recipe=recipe,
            old_recipe=against_recipe,
            engine=reading.create(),
        )
    if display.as_json:
        print_json(verification.to_dict() | {"against": intersection.to_dict() if intersection else None})
    else:
        show(verification.document())
        if intersection is not None:
            show(intersection.document())
    raise typer.Exit(0 if verification.verified and (intersection is None or intersection.holds) else 1)


def _intersection(release: Path, policy: Path, against: Path | None, **options: Any) -> Any:
    """Check what a release and an older one reveal together, if an older one is given."""
    if against is None:
        if options["old_policy"] or options["old_recipe"] or options["table"]:
            raise UsageError(
                "--against-policy, --against-recipe and --input are about an older release. Name it with "
                "--against."
            )
        return None
    from shoal.workflow.attack.successive import intersect

    return intersect(release, against, policy, **options)
