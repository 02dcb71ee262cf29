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
        help="The release's recipe, which contains how often each sensitive value occurred in the whole "
        "input, for models that compare with it."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        help="The whole input, for such models. Never the release: compared with what suppression left "
        "of the input, a release can seem closer than it is. Together with the recipe, it identifies the "
        "persons of a `unit` that the release does not have."
    ),
]
SensitiveTableOption = Annotated[
    Path | None,
    typer.Option(help="The second table of a release by `anatomy`, if it is not next to the release."),
]
AgainstOption = Annotated[
    Path | None,
    typer.Option(
        help="An older release of the same persons: does k hold for someone who has both? Exit code 1 if it "
        "does not. It does not apply to different persons."
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
    """Count a release and check it against the policy's models; exit code 1 if it fails."""
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
        intersection = _side_by_side(
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


def _side_by_side(release: Path, policy: Path, against: Path | None, **options: Any) -> Any:
    """Combine a release with an older one, if one is given."""
    if against is None:
        if options["old_policy"] or options["old_recipe"] or options["table"]:
            raise UsageError(
                "--against-policy, --against-recipe and --input are about an older release. Name it with "
                "--against."
            )
        return None
    from shoal.workflow.attack.successive import intersect

    return intersect(release, against, policy, **options)
